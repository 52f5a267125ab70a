"""Fine-tuning: on a corpus by the masked-LM objective, or on a few labelled reviews by a prompt."""

from clinometer.train.checkpoints import Checkpoint
from clinometer.train.masked_language import tune_masked
from clinometer.train.progress import TrainingProgress
from clinometer.train.prompt_tuning import tune_prompt
from clinometer.train.settings import MaskedSettings, PromptSettings

__all__ = ["Checkpoint", "MaskedSettings", "PromptSettings", "TrainingProgress", "tune_masked", "tune_prompt"]
