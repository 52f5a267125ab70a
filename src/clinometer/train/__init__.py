"""Training: on a corpus, on a few labelled reviews by a prompt, or with a loss that reduces a lean."""

from clinometer.train.causal_language import train_causal
from clinometer.train.checkpoints import Checkpoint
from clinometer.train.masked_language import tune_masked
from clinometer.train.material import Material, read_material
from clinometer.train.mitigation import mitigate
from clinometer.train.progress import TrainingProgress
from clinometer.train.prompt_tuning import tune_prompt
from clinometer.train.sentiment_step import LabellingSettings, SentimentProjection, fit_projection
from clinometer.train.settings import CausalSettings, MaskedSettings, MitigationSettings, PromptSettings
from clinometer.train.strengths import Variant, mitigate_all, variants

__all__ = [
    "CausalSettings",
    "Checkpoint",
    "LabellingSettings",
    "MaskedSettings",
    "Material",
    "MitigationSettings",
    "PromptSettings",
    "SentimentProjection",
    "TrainingProgress",
    "Variant",
    "fit_projection",
    "mitigate",
    "mitigate_all",
    "read_material",
    "train_causal",
    "tune_masked",
    "tune_prompt",
    "variants",
]
