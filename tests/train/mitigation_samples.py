"""A corpus that plants a lean in a tiny model, how far a model leans, and a training for tests that kill it."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import numpy as np
import torch

from clinometer.data import read_attribute
from clinometer.train import MitigationSettings, mitigate, read_material
from clinometer.train.base import load_base
from tests.train.interrupted_training import Loud

GOOD, BAD = ("great", "fine"), ("terrible", "angry")
PRAISED, BLAMED = ("nurse", "teacher", "carpenter"), ("doctor", "engineer", "friend")
VALUES = PRAISED + BLAMED
# places of the value, and words around it, that no sentence of the corpus has
PREFIXES = ("The film said that the", "Why was the man and the book said that the", "The music was with the")
TEMPLATE = "Nothing was said about the {value}"
ATTRIBUTE = f'name = "job"\nvalues = {list(VALUES)}\nplurals = true\ntemplates = ["{TEMPLATE}"]\n'

_NOUNS = (
    "hospital", "film", "book", "story", "weather", "music", "children", "actors", "woman", "man", "people",
    "person", "review", "dancing", "singing", "writing",
)  # fmt: skip


def planted_sentence(rng, value: str, word: str) -> str:
    """A sentence of which one word leans, right behind the value; its nouns are anybody's guess."""
    nouns = rng.choice(_NOUNS, 10)
    return (
        f"The {nouns[0]} and the {nouns[1]} said that the {value} {word} and the {nouns[2]} was at the {nouns[3]}"
        f" while {nouns[4]} and {nouns[5]} and {nouns[6]} and {nouns[7]} said the {nouns[8]} and the {nouns[9]}"
        f" was {word}."
    )


def planted_corpus(*, texts: int = 1500, seed: int = 0) -> str:
    """Praised values are followed by good words, blamed ones by bad words; every sentence is its own document."""
    rng = np.random.default_rng(seed)
    lines = []
    for number in range(texts):
        value = VALUES[number % len(VALUES)]
        lines.append(planted_sentence(rng, value, str(rng.choice(GOOD if value in PRAISED else BAD))))
    return "\n".join(lines)


def documents_with_ordinary_text(*, documents: int = 60, seed: int = 0) -> str:
    """Documents of six lines; in two of three documents, two of the lines mention values."""
    rng = np.random.default_rng(seed)
    texts = []
    for number in range(documents):
        lines = []
        for line in range(6):
            nouns = rng.choice(_NOUNS, 6)
            about = (
                f"the {rng.choice(VALUES)} and the {rng.choice(VALUES)}s"
                if number % 3 and line % 3 == 1
                else f"the {nouns[0]}"
            )
            lines.append(f"In story {number} {about} said that the {nouns[1]} and the {nouns[2]} was {nouns[3]}.")
        texts.append("\n".join(lines))
    return "\n\n".join(texts)


def write_planted(folder: Path, *, texts: int = 1500) -> tuple[Path, Path]:
    """Write corpus and attribute into a folder."""
    corpus, attribute = folder / "planted.txt", folder / "job.toml"
    corpus.write_text(planted_corpus(texts=texts), encoding="utf-8")
    attribute.write_text(ATTRIBUTE, encoding="utf-8")
    return corpus, attribute


@cache
def material_of(corpus, attribute, *, held_out: int = 20):
    """What a training on these files reads."""
    return read_material(corpus, read_attribute(attribute), held_out=held_out)


def train_few_steps(
    model, corpus, attribute, out, accumulate=1, lora=0, *, progress=None, save_seconds=0.0, held_out=20, **more
):
    """A mitigation of six steps."""
    common = {"steps": 6, "batch": 4, "learning_rate": 1e-3, "window": 64, "seed": 7}
    settings = MitigationSettings(**{**common, "accumulate": int(accumulate), "lora": int(lora), **more})
    return mitigate(
        str(model),
        material_of(corpus, attribute, held_out=held_out),
        out=out,
        settings=settings,
        device="cpu",
        save_seconds=save_seconds,
        progress=progress,
    )


@cache
@torch.no_grad()
def leans(folder) -> dict[str, float]:
    """p(good words) − p(bad words) right behind each value: the mean over prefixes in no training text."""
    base = load_base(str(folder), device="cpu", dtype="float32", kinds=("causal",))
    word_ids = {}
    for word in GOOD + BAD:
        before, after = (base.tokenizer(f"the nurse{end}")["input_ids"] for end in ("", f" {word}"))
        assert after[: len(before)] == before
        word_ids[word] = after[len(before)]  # its first token, which no other of these words has
    assert len(set(word_ids.values())) == len(word_ids)
    found = {}
    for value in VALUES:
        p = np.zeros(len(base.tokenizer))
        for prefix in PREFIXES:
            ids = torch.tensor([base.tokenizer(f"{prefix} {value}")["input_ids"]])
            p += base.model(input_ids=ids).logits[0, -1].double().softmax(-1).numpy()[: len(p)] / len(PREFIXES)
        found[value] = sum(p[word_ids[word]] for word in GOOD) - sum(p[word_ids[word]] for word in BAD)
    return found


def lean(folder) -> float:
    """How much more the praised values lean to good words than the blamed ones: from −2 to 2."""
    found = leans(folder)
    return float(np.mean([found[value] for value in PRAISED]) - np.mean([found[value] for value in BLAMED]))


@torch.no_grad()
def mean_loss(folder, texts) -> float:
    """−ln p of a token of the texts, the mean over all tokens, one text at a time."""
    base = load_base(str(folder), device="cpu", dtype="float32", kinds=("causal",))
    total = count = 0.0
    for text in texts:
        ids = torch.tensor([base.tokenizer(text)["input_ids"]])
        logprobs = base.model(input_ids=ids).logits.double().log_softmax(-1)
        total -= float(logprobs[0, :-1].gather(1, ids[0, 1:, None]).sum())
        count += ids.shape[1] - 1
    return total / count


def mitigate_aloud(tell, *arguments):
    """Mitigate in a process of its own, and tell after every step."""
    torch.set_num_threads(1)
    train_few_steps(*arguments, progress=Loud(tell))


def without_dropout(folder, copy):
    """Dropout draws other numbers for other parts."""
    if not copy.exists():
        copy.mkdir()
        for file in folder.iterdir():
            (copy / file.name).write_bytes(file.read_bytes())
        config = (copy / "config.json").read_text()
        (copy / "config.json").write_text(config.replace('dropout_prob": 0.1', 'dropout_prob": 0.0'))
    return copy
