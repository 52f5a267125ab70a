"""Training: on a corpus, on a few labelled reviews by a prompt, or with a loss that reduces a lean."""

from clinometer.errors import ModelError

try:
    import torch as _torch  # noqa: F401
except ModuleNotFoundError as error:  # the core is installed alone
    raise ModelError('training needs torch and its companions: pip install "clinometer[train]"') from error

from clinometer.train.base import KeptBase
from clinometer.train.causal import train_causal
from clinometer.train.checkpoints import Checkpoint
from clinometer.train.masked import tune_masked
from clinometer.train.material import Material, read_material
from clinometer.train.mitigation import Variant, check_methods, mitigate, mitigate_all, variants
from clinometer.train.prompt_tuning import tune_prompt
from clinometer.train.sentiment import SentimentProjection, fit_projection
from clinometer.train.settings import (
    CausalSettings,
    CorpusSettings,
    LabellingSettings,
    MaskedSettings,
    MitigationSettings,
    PromptSettings,
)

__all__ = [
    "CausalSettings",
    "Checkpoint",
    "CorpusSettings",
    "KeptBase",
    "LabellingSettings",
    "MaskedSettings",
    "Material",
    "MitigationSettings",
    "PromptSettings",
    "SentimentProjection",
    "Variant",
    "check_methods",
    "fit_projection",
    "mitigate",
    "mitigate_all",
    "read_material",
    "train_causal",
    "tune_masked",
    "tune_prompt",
    "variants",
]
