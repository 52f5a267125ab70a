"""Train `builtin:masked`: the packaged sentence encoder with a new prediction head, all weights, masked-LM loss.

Give it the folder that prepare_text.py wrote; with the folder of a masked model as `--start`, that one is trained
on, and with `--sampled` part of each batch is text that sampled_text.py let another model write.

A run that is stopped and started again with the same options goes on from its last checkpoint to the same weights;
with other options or other text it is refused. `--minutes` ends a call in time, with a checkpoint and exit code
75. `--smoke` trains a few steps of a tiny model on made-up text, on any machine.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import masked_figures
import numpy as np
import torch
from masked_batches import IGNORED, Sampler, Stream
from muon import Muon
from safetensors import safe_open
from safetensors.torch import load_file, save_file
from sampled_shards import read_shards
from torch import Tensor, nn
from torch.nn import functional
from transformers import AutoTokenizer, BertConfig, BertForMaskedLM

# Rows of the vocabulary projection are padded to a multiple of this: odd widths miss the fast matrix kernels.
_ALIGNMENT = 64
_IMPOSSIBLE = -1e4
_AHEAD = 20  # steps that a GPU may be given ahead of time
# Seconds that --minutes leaves for the last checkpoint, its figures and the export.
_LAST = 25.0
NOT_DONE = 75  # exit code: time was up, and the same command goes on
# Options that change no weight of the last step.
_FREE = ("out", "every", "share", "minutes", "smoke", "tokens", "sampled", "start")


def encode(model: BertForMaskedLM, ids: Tensor, real: Tensor | None) -> Tensor:
    """Return the last hidden states: BertModel's forward pass, query, key and value projected in one product."""
    embeddings = model.bert.embeddings
    length = ids.shape[1]
    hidden: Tensor = embeddings.word_embeddings(ids) + (
        embeddings.position_embeddings.weight[:length] + embeddings.token_type_embeddings.weight[0]
    )
    hidden = embeddings.LayerNorm(hidden)
    heads = model.config.num_attention_heads
    allowed = None if real is None else real[:, None, None, :].expand(-1, heads, length, -1)
    for layer in model.bert.encoder.layer:
        parts = (layer.attention.self.query, layer.attention.self.key, layer.attention.self.value)
        weight = torch.cat([part.weight for part in parts])
        bias = torch.cat([part.bias for part in parts])
        projected = functional.linear(hidden, weight, bias).view(*ids.shape, 3, heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = projected.unbind(0)
        attended = functional.scaled_dot_product_attention(query, key, value, attn_mask=allowed)
        attended = attended.transpose(1, 2).flatten(-2)
        hidden = layer.attention.output.LayerNorm(hidden + layer.attention.output.dense(attended))
        inner = functional.gelu(layer.intermediate.dense(hidden))
        hidden = layer.output.LayerNorm(hidden + layer.output.dense(inner))
    return hidden


def predict(model: BertForMaskedLM, ids: Tensor, real: Tensor | None, positions: Tensor) -> Tensor:
    """Return logits at the flat positions only; columns beyond the vocabulary are padding."""
    head = model.cls.predictions
    hidden = head.transform(encode(model, ids, real).flatten(0, 1)[positions])
    missing = -model.config.vocab_size % _ALIGNMENT
    weight = functional.pad(model.bert.embeddings.word_embeddings.weight, (0, 0, 0, missing))
    return functional.linear(hidden, weight, functional.pad(head.bias, (0, missing), value=_IMPOSSIBLE))


def masked_loss(
    model: BertForMaskedLM, ids: Tensor, real: Tensor | None, positions: Tensor, targets: Tensor
) -> Tensor:
    """Return the mean cross-entropy over masked tokens."""
    logits = predict(model, ids, real, positions)
    return functional.cross_entropy(logits.float(), targets, ignore_index=IGNORED)


class Trainer:
    """A bf16 model that computes, float32 weights that are optimised, and what is needed to go on later."""

    def __init__(
        self,
        model: BertForMaskedLM,
        *,
        lr: float,
        steps: int,
        warmup: float,
        optimiser: str,
        made_with: dict[str, str],
    ) -> None:
        self.model = model
        self.made_with = made_with
        self.peak = lr
        self.steps = steps
        self.warmup = max(1, round(warmup * steps))
        self.step = 0
        self.names = [name for name, _ in model.named_parameters()]
        self.fast = [parameter for _, parameter in model.named_parameters()]
        self.weights = [parameter.detach().float().clone() for parameter in self.fast]
        for weight in self.weights:
            weight.grad = torch.zeros_like(weight)
        matrices = [
            optimiser == "muon" and weight.ndim == 2 and "embeddings" not in name
            for name, weight in zip(self.names, self.weights, strict=True)
        ]
        self.muon = Muon([weight for weight, matrix in zip(self.weights, matrices, strict=True) if matrix])
        rest = [weight for weight, matrix in zip(self.weights, matrices, strict=True) if not matrix]
        self.adam = torch.optim.AdamW(
            [
                {"params": [weight for weight in rest if weight.ndim > 1], "weight_decay": 0.01},
                {"params": [weight for weight in rest if weight.ndim == 1], "weight_decay": 0.0},
            ],
            betas=(0.9, 0.98),
            fused=True,
        )

    def learning_rate(self) -> float:
        """Return the rate of the step to come: up linearly, then down linearly to zero."""
        if self.step < self.warmup:
            return self.peak * (self.step + 1) / self.warmup
        return self.peak * (self.steps - self.step) / max(1, self.steps - self.warmup)

    def update(self) -> None:
        """Move the weights by the gradients of the fast model, and hand them back to it."""
        rate = self.learning_rate()
        gradients = [weight.grad for weight in self.weights]
        torch._foreach_copy_(gradients, [parameter.grad for parameter in self.fast])
        nn.utils.clip_grad_norm_(self.weights, 1.0)
        for group in self.adam.param_groups:
            group["lr"] = rate
        self.adam.step()
        if self.muon.parameters:
            self.muon.lr = rate
            self.muon.step()
        with torch.no_grad():
            torch._foreach_copy_(self.fast, self.weights)
        self.step += 1

    def save(self, folder: Path) -> None:
        """Write the checkpoint; a run killed while writing keeps the one before."""
        tensors = {f"weight.{name}": weight for name, weight in zip(self.names, self.weights, strict=True)}
        tensors |= {f"muon.{index}": buffer for index, buffer in enumerate(self.muon.buffers)}
        for index, state in self.adam.state_dict()["state"].items():
            tensors |= {f"adam.{index}.{key}": value for key, value in state.items()}
        tensors["step"] = torch.tensor(self.step)
        save_file(tensors, folder / "checkpoint.part", metadata=self.made_with)
        (folder / "checkpoint.part").replace(folder / "checkpoint.safetensors")

    def load(self, folder: Path) -> None:
        """Take up the checkpoint in a folder, if there is one; ValueError if it is that of another training."""
        path = folder / "checkpoint.safetensors"
        if not path.exists():
            return
        with safe_open(path, framework="pt") as stored:
            made_with = stored.metadata() or {}
        if differ := {
            key for key in {*made_with, *self.made_with} if made_with.get(key) != self.made_with.get(key)
        }:
            raise ValueError(f"{path} was made with another {', '.join(sorted(differ))}: give another --out")
        tensors = load_file(path, device=str(self.weights[0].device))
        with torch.no_grad():
            for name, weight, parameter in zip(self.names, self.weights, self.fast, strict=True):
                weight.copy_(tensors[f"weight.{name}"])
                parameter.copy_(weight)
            for index, buffer in enumerate(self.muon.buffers):
                buffer.copy_(tensors[f"muon.{index}"])
        state: dict[int, dict[str, Tensor]] = {}
        for key, value in tensors.items():
            if key.startswith("adam."):
                _, index, field = key.split(".")
                state.setdefault(int(index), {})[field] = value
        self.adam.load_state_dict(self.adam.state_dict() | {"state": state})
        self.step = int(tensors["step"])


def export(model: BertForMaskedLM, folder: Path, *, tokenizer: Path | None) -> None:
    """Write a folder that plain `from_pretrained` loads, the tied projection stored once."""
    model.save_pretrained(folder)
    if tokenizer:
        words = AutoTokenizer.from_pretrained(tokenizer)
        # The sentence encoder cuts and pads every text to 128 tokens; a masked model must not.
        words.backend_tokenizer.no_truncation()
        words.backend_tokenizer.no_padding()
        for leftover in ("max_length", "pad_to_multiple_of", "stride", "truncation_strategy"):
            words.init_kwargs.pop(leftover, None)
        words.save_pretrained(folder)


def figures(
    model: BertForMaskedLM, held_out: dict[str, np.ndarray], *, device: torch.device, share: float
) -> dict[str, dict[str, float]]:
    """Return the figures on held-out articles, reviews and both."""

    def fill(ids: Tensor, real: Tensor | None, where: Tensor) -> Tensor:
        return predict(model, ids, real, where)

    parts = {
        name: masked_figures.fill_figures(tokens, fill, device=device, share=share)
        for name, tokens in held_out.items()
    }
    parts["both"] = masked_figures.pooled(parts.values())
    return {name: part.readable() for name, part in parts.items()}


def train(
    trainer: Trainer,
    sampler: Sampler,
    *,
    out: Path,
    every: int,
    loss_of: Callable[..., Tensor],
    measure: Callable[[], dict[str, dict[str, float]]],
    until: float = float("inf"),
) -> Iterator[dict[str, object]]:
    """Run the steps that are left; yield a line for the log at each `every` steps and after the last.

    No step begins later than `until`, by the clock `time.monotonic`; what has been done then is a checkpoint.
    """
    began, from_step, losses = time.monotonic(), trainer.step, []
    time_is_up = False  # a call makes one step at least, or it would never end
    while trainer.step < trainer.steps and not time_is_up:
        batch = sampler.batch(trainer.step)
        for parameter in trainer.fast:
            parameter.grad = None
        loss = loss_of(trainer.model, batch.ids, batch.real, batch.positions, batch.targets)
        torch.autograd.backward(loss)
        trainer.update()
        losses.append(loss.detach())
        if trainer.step % _AHEAD == 0:
            losses[-1].item()  # waits for the GPU: else the steps in its queue would end after the time
        time_is_up = time.monotonic() >= until
        if trainer.step % every == 0 or trainer.step == trainer.steps or time_is_up:
            trained = float(torch.stack(losses).mean())
            seconds = time.monotonic() - began
            trainer.save(out)
            yield {
                "step": trainer.step,
                "seconds": round(seconds, 1),
                "tokens_per_second": round((trainer.step - from_step) * sampler.tokens_per_step / seconds),
                "train_loss": round(trained, 4),
                "held_out": measure(),
            }
            losses = []


def made_up_streams(vocabulary: int) -> dict[str, np.ndarray]:
    """Return small random streams for a smoke run: short texts of words and full stops."""
    rng = np.random.default_rng(0)
    tokens = rng.integers(104, vocabulary, 20_000).astype(np.uint16)
    tokens[::9] = 1012
    tokens[::300] = 102
    names = ("articles-train", "articles-held-out", "reviews-train", "reviews-held-out")
    return {name: tokens[index * 5000 : (index + 1) * 5000] for index, name in enumerate(names)}


def arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--smoke", action="store_true")
    parser.add_argument("--start", "--encoder", type=Path, help="the packaged encoder, or a masked model's folder")
    parser.add_argument("--tokens", type=Path, help="folder that prepare_text.py wrote")
    parser.add_argument("--sampled", type=Path, help="folder that sampled_text.py wrote")
    parser.add_argument("--out", type=Path, help="where checkpoints, log and model go")
    parser.add_argument("--steps", type=int, default=8_500)
    parser.add_argument("--tokens-per-step", type=int, default=131_072)
    parser.add_argument("--lr", type=float, default=2e-3)
    parser.add_argument("--optimiser", choices=["muon", "adamw"], default="muon")
    parser.add_argument("--rate", type=float, default=0.2, help="share of tokens masked in training")
    parser.add_argument("--review-share", type=float, default=0.14)
    parser.add_argument("--sampled-share", type=float, default=0.6, help="of what is not reviews, with --sampled")
    parser.add_argument("--warmup", type=float, default=0.02, help="share of the steps")
    parser.add_argument("--every", type=int, default=500, help="steps between checkpoints")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="end this call before that")
    parser.add_argument(
        "--share", type=float, default=0.3, help="share of the held-out pieces measured on the way"
    )
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    if options.smoke:
        options.out = options.out or Path(tempfile.mkdtemp())
        options.steps, options.tokens_per_step, options.every = min(options.steps, 12), 1024, 6
    elif not (options.start and options.tokens and options.out):
        parser.error("give --start, --tokens and --out, or --smoke to try the script on made-up text")
    return options


def begin(options: argparse.Namespace) -> tuple[BertForMaskedLM, dict[str, np.ndarray]]:
    """Return the model that the first step begins with, and the text."""
    if options.smoke:
        config = BertConfig(vocab_size=2000, hidden_size=32, num_hidden_layers=2, num_attention_heads=2)
        config.intermediate_size = 64
        return BertForMaskedLM(config), made_up_streams(config.vocab_size)
    streams = {path.stem: np.load(path) for path in sorted(options.tokens.glob("*.npy"))}
    if options.sampled:
        streams["sampled-train"] = read_shards(options.sampled)
    return BertForMaskedLM.from_pretrained(options.start, dtype=torch.float32), streams


def identity(
    options: argparse.Namespace, model: BertForMaskedLM, streams: dict[str, np.ndarray]
) -> dict[str, str]:
    """Return what decides the weights: a checkpoint that was made with anything else is not taken up."""
    known = {key: str(value) for key, value in vars(options).items() if key not in _FREE}
    known |= {
        name: hashlib.sha256(tokens.tobytes()).hexdigest()
        for name, tokens in streams.items()
        if name.endswith("-train")
    }
    weights = hashlib.sha256()
    # a new prediction head is drawn from the seed, so it is the same each time, too
    for parameter in model.parameters():
        weights.update(parameter.detach().numpy().tobytes())
    return known | {"start": weights.hexdigest()}


def main() -> int:
    """Train, measure and export."""
    began = time.monotonic()
    options = arguments()
    options.out.mkdir(parents=True, exist_ok=True)
    torch.manual_seed(options.seed)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model, streams = begin(options)
    made_with = identity(options, model, streams)
    model = model.to(device=device, dtype=torch.bfloat16 if device.type == "cuda" else torch.float32)

    trainer = Trainer(
        model,
        lr=options.lr,
        steps=options.steps,
        warmup=options.warmup,
        optimiser=options.optimiser,
        made_with=made_with,
    )
    trainer.load(options.out)
    read = {name: Stream(streams[name], device=device) for name in streams if name.endswith("-train")}
    sampler = Sampler(
        articles=read["articles-train"],
        reviews=read["reviews-train"],
        review_share=options.review_share,
        sampled=read.get("sampled-train"),
        sampled_share=options.sampled_share,
        tokens_per_step=options.tokens_per_step,
        rate=options.rate,
        seed=options.seed,
    )
    held_out = {name: streams[f"{name}-held-out"] for name in ("articles", "reviews")}
    loss_of = torch.compile(masked_loss, dynamic=False, fullgraph=True) if device.type == "cuda" else masked_loss
    log = options.out / "log.jsonl"
    for line in train(
        trainer,
        sampler,
        out=options.out,
        every=options.every,
        loss_of=loss_of,
        measure=lambda: figures(model, held_out, device=device, share=options.share),
        until=began + 60 * options.minutes - _LAST,
    ):
        with log.open("a") as stream:
            print(json.dumps(line), file=stream)
        print(json.dumps(line), flush=True)
        export(model, options.out / "model", tokenizer=options.start)
    if trainer.step < trainer.steps:
        print(f"time is up at step {trainer.step:,} of {trainer.steps:,}; the same command goes on from there")
        return NOT_DONE
    print(json.dumps(figures(model, held_out, device=device, share=1.0), indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
