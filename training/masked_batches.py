"""Draw training batches for the masked model, all on the device that trains."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

PAD, CLS, SEP, MASK = 0, 101, 102, 103
# "." "!" "?" in BERT's uncased vocabulary: where a sentence ends.
SENTENCE_ENDS = (1012, 999, 1029)
IGNORED = -100


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """One shape of batch. Shapes are fixed, because each is compiled once.

    `align` says where a piece begins: "anywhere" in the stream; so that it closes with the "end" of a text
    (reviews only); or at a "sentence", cut after a whole sentence and padded.
    """

    name: str
    length: int
    align: str
    share: float


# Long pieces teach the later positions and how reviews end; short ones are what audits ask: one bare sentence.
KINDS = (
    Kind(name="pieces", length=128, align="anywhere", share=0.58),
    Kind(name="long", length=256, align="end", share=0.30),
    Kind(name="sentences", length=32, align="sentence", share=0.12),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """Masked ids (rows, length), flat positions to predict, what stood there, and which tokens are no padding."""

    ids: Tensor
    positions: Tensor
    targets: Tensor
    real: Tensor | None


class Stream:
    """A flat array of token ids on a device, a separator after each text."""

    def __init__(self, tokens: np.ndarray, *, device: torch.device) -> None:
        self.tokens = torch.from_numpy(tokens.astype(np.int32)).to(device)
        self.text_ends = torch.nonzero(self.tokens == SEP).flatten()
        after = torch.isin(self.tokens[:-1], torch.tensor([*SENTENCE_ENDS, SEP], device=device))
        self.sentence_starts = torch.nonzero(after).flatten() + 1

    def draw(self, rows: int, kind: Kind, *, generator: torch.Generator, to_text_end: bool) -> Tensor:
        """Return (rows, length − 2) token ids, padded where the kind is cut at a sentence."""
        width = kind.length - 2
        device = self.tokens.device

        def below(limit: int) -> Tensor:
            return torch.randint(limit, (rows,), generator=generator, device=device)

        if kind.align == "sentence":
            starts = self.sentence_starts[below(len(self.sentence_starts))]
        elif kind.align == "end" and to_text_end:
            starts = self.text_ends[below(len(self.text_ends))] - width
        else:
            starts = below(len(self.tokens) - width)
        starts = starts.clamp(0, len(self.tokens) - width)
        ids = self.tokens[starts[:, None] + torch.arange(width, device=device)].long()
        if kind.align == "sentence":
            ids = _cut_at_sentence_end(ids, whole=below(2).bool())
        return ids


def _cut_at_sentence_end(ids: Tensor, *, whole: Tensor) -> Tensor:
    """Pad each row after its last whole sentence (where `whole`) or else its first; keep a row that has no end."""
    place = torch.arange(ids.shape[1], device=ids.device)
    text_end = torch.where(ids == SEP, place, ids.shape[1]).amin(1, keepdim=True)
    # A first sentence of one or two tokens is a heading: "history ."
    ends = torch.isin(ids, torch.tensor(SENTENCE_ENDS, device=ids.device)) & (place >= 3) & (place < text_end)
    last = torch.where(ends, place, -1).amax(1, keepdim=True)
    first = torch.where(ends, place, ids.shape[1]).amin(1, keepdim=True)
    cut = torch.where(whole[:, None], last, first)
    cut = torch.where(ends.any(1, keepdim=True), cut, text_end - 1)
    return torch.where(place <= cut.clamp(min=0), ids, PAD)


def mask(ids: Tensor, *, rate: float, generator: torch.Generator, padded: bool) -> Batch:
    """Frame each row with [CLS] and [SEP] and put [MASK] at `rate` of its ordinary tokens, at least one.

    Every row has the same number of slots to predict, so that shapes stay fixed; slots beyond what a shorter row
    needs carry the target IGNORED and leave their token alone.
    """
    rows, width = ids.shape
    full = torch.full((rows, width + 2), PAD, dtype=ids.dtype, device=ids.device)
    full[:, 0] = CLS
    full[:, 1:-1] = ids
    if padded:
        full.scatter_(1, (ids != PAD).sum(1, keepdim=True) + 1, SEP)
    else:
        full[:, -1] = SEP
    ordinary = full > MASK
    wanted = (ordinary.sum(1, keepdim=True) * rate).round().clamp(min=1)
    noise = torch.rand(full.shape, generator=generator, device=ids.device) - 2.0 * ~ordinary
    slots = max(1, round(rate * width))
    scores, places = noise.topk(slots, dim=1)
    used = (torch.arange(slots, device=ids.device) < wanted) & (scores >= 0)
    originals = full.gather(1, places)
    real = full != PAD if padded else None
    masked = full.scatter(1, places, torch.where(used, MASK, originals))
    flat = places + torch.arange(rows, device=ids.device)[:, None] * (width + 2)
    targets = torch.where(used, originals, IGNORED)
    return Batch(ids=masked, positions=flat.flatten(), targets=targets.flatten(), real=real)


class Sampler:
    """Makes the batch of a step from (seed, step) alone, so that a resumed run sees what an unbroken one would.

    `review_share` of its rows are reviews; of the others, `sampled_share` are text that a model wrote.
    """

    def __init__(
        self,
        *,
        articles: Stream,
        reviews: Stream,
        review_share: float,
        sampled: Stream | None = None,
        sampled_share: float = 0.0,
        tokens_per_step: int,
        rate: float,
        seed: int,
    ) -> None:
        self.articles = articles
        self.reviews = reviews
        self.review_share = review_share
        self.sampled = sampled
        self.sampled_share = sampled_share
        self.tokens_per_step = tokens_per_step
        self.rate = rate
        self.seed = seed
        self.generator = torch.Generator(articles.tokens.device)

    def kind(self, step: int) -> Kind:
        """Return the shape of a step's batch."""
        draw = np.random.default_rng((self.seed, step)).random()
        edges = np.cumsum([kind.share for kind in KINDS])
        return KINDS[min(int(np.searchsorted(edges, draw, side="right")), len(KINDS) - 1)]

    def batch(self, step: int) -> Batch:
        """Return a step's batch."""
        kind = self.kind(step)
        self.generator.manual_seed(int(np.random.default_rng((self.seed, step, 1)).integers(2**62)))
        rows = self.tokens_per_step // kind.length
        review_rows = round(rows * self.review_share)
        sampled_rows = round((rows - review_rows) * self.sampled_share) if self.sampled else 0
        article_rows = rows - review_rows - sampled_rows
        parts = [
            self.articles.draw(article_rows, kind, generator=self.generator, to_text_end=False),
            self.reviews.draw(review_rows, kind, generator=self.generator, to_text_end=True),
        ]
        if self.sampled:
            parts.append(self.sampled.draw(sampled_rows, kind, generator=self.generator, to_text_end=False))
        return mask(torch.cat(parts), rate=self.rate, generator=self.generator, padded=kind.align == "sentence")
