"""Logits at chosen places of a batch, with gradients: the vocabulary matrix is applied nowhere else."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.nn.functional import linear

from clinometer.models.local.masked import head_of


def logits_at(
    model: Any,
    *,
    ids: Tensor,
    attention: Tensor,
    at: tuple[Tensor, Tensor],
    compute: torch.dtype,
    words: Sequence[int] | None = None,
) -> Tensor:
    """Return the logits (places × words) at places (row, column) for some tokens of the vocabulary (None: all).

    The model is called as the audits call it, so that what is trained is what is asked later; in particular BART's
    decoder reads the masked text and not the labels.
    """
    options = {"use_cache": False} if model.config.is_encoder_decoder else {}
    head = head_of(model.config.model_type)
    with torch.autocast(ids.device.type, dtype=torch.bfloat16, enabled=compute == torch.bfloat16):
        if head is None:
            logits = model(input_ids=ids, attention_mask=attention, **options).logits[at]
            return (logits if words is None else logits[:, list(words)]).float()  # type: ignore[no-any-return]
        hidden = head(model, model.base_model(input_ids=ids, attention_mask=attention, **options)[0][at])
        matrix = model.get_output_embeddings()
        bias = model.final_logits_bias[0] if hasattr(model, "final_logits_bias") else matrix.bias
        rows = slice(None) if words is None else list(words)
        return linear(hidden, matrix.weight[rows], None if bias is None else bias[rows]).float()
