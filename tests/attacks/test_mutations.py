"""Seven hundred broken JSON and TOML files: each is read or refused in a sentence, none ends in a traceback."""

from __future__ import annotations

import contextlib
import json
import random
import re
import tomllib

import pytest

import clinometer as library
from clinometer.data.counterexamples_data import read_sentences
from clinometer.data.files import packaged
from clinometer.data.reviews import read_reviews
from clinometer.errors import ClinometerError
from clinometer.models.files import tuning_of, weight_files
from clinometer.spec import parse_spec
from clinometer.workflows.report import report_run
from tests.attacks.forging import forge
from tests.attacks.samples import Tiny, resume, tiny_run

SEED = 20_261_117
CASES = 700

STRANGE = (
    "null", "true", "-1", "0", "1e999", "NaN", "1" * 5000, '""', '"\\u0000"', '"\\ud800"', '"../../etc/passwd"',
    "[]", "{}", "[[[[[]]]]]", "[" * 3000, '{"a": ' * 2000, '"' + "x" * 3000 + '"', "9223372036854775808", "1.5",
)  # fmt: skip
_VALUE = re.compile(r'(?<=[:=,\[] )(?:"[^"\n]*"|-?[\d.]+|true|false|null|\[\]|\{\})')
_KEY = re.compile(r'"\w+"(?=:)|^\w+(?= =)', re.MULTILINE)


def mutate(text: str, rng: random.Random) -> bytes:
    """Break a text in one of the ways in which a disk, an editor or a stranger would."""
    how = rng.randrange(7)
    values, keys = list(_VALUE.finditer(text)), list(_KEY.finditer(text))
    if how <= 2 and values:
        chosen = rng.choice(values)
        return (text[: chosen.start()] + rng.choice(STRANGE) + text[chosen.end() :]).encode()
    if how == 3 and keys:
        chosen = rng.choice(keys)
        new = rng.choice(['"x"' if text.lstrip().startswith(("{", "[")) else "x", chosen[0] * 2, '"a.b"'])
        return (text[: chosen.start()] + new + text[chosen.end() :]).encode()
    data = bytearray(text.encode())
    at = rng.randrange(len(data))
    if how == 4:
        del data[at : at + rng.randrange(1, 1 + len(data) // 2)]
    elif how == 5:
        data[at:at] = data[at : at + rng.randrange(1, 200)]
    else:
        for _ in range(rng.randrange(1, 4)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


SPEC = """version = 1
probes = [ "counterexamples" ]
profile = "quick"
seed = 3
models = [ {name = "builtin:masked", alias = "m", dtype = "float32"} ]
[roles]
scorer = [ {name = "builtin:sentiment", label_map = {LABEL_0 = "negative"}} ]
[options.counterexamples]
backgrounds = 3
ks = [ 3, 5 ]
"""
CARD = '[tuning]\nbase = "x"\nsteps = 5\n[tuning.more]\na = [ 1, 2 ]\n'
INDEX = json.dumps({"metadata": {"total_size": 5}, "weight_map": {"a": "model-1.safetensors", "b": "x"}}, indent=1)
REVIEWS = "\n".join(
    json.dumps({"text": f"A fine film {number}.", "label": label, "source": "s"})
    for number, label in enumerate(["positive", "negative"] * 6)
)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny_run(tmp_path_factory.mktemp("mutations") / "run").path


def _use_run(path) -> None:
    """Everything that reads a run, whether or not it is complete."""
    library.open_run(path).headlines  # noqa: B018
    library.verify(path, probes=[Tiny()])
    report_run(library.open_run(path).folder, probes={"tiny": Tiny()})
    resume(path)


def test_no_broken_document_ends_in_a_traceback(run, tmp_path):
    documents = [path for path in sorted(run.rglob("*")) if path.suffix in (".json", ".toml")]
    assert len(documents) == 4
    sentences = packaged("counterexamples", "knowledge.toml").read_text()
    readers = {
        "spec.toml": (SPEC, lambda data, place: parse_spec(data.decode("utf-8", "replace"))),
        "card.toml": (CARD, lambda data, place: tuning_of(place.parent)),
        "model.safetensors.index.json": (INDEX, lambda data, place: weight_files(place.parent)),
        "reviews.jsonl": (REVIEWS, lambda data, place: read_reviews(place)),
        "knowledge.toml": (sentences, lambda data, place: read_sentences(place)),
    }
    before = {path: path.read_bytes() for path in sorted(run.rglob("*")) if path.is_file()}
    refused = 0
    for case in range(CASES):
        rng = random.Random(SEED + case)
        if rng.random() < 0.5:
            name, (text, read) = rng.choice(sorted(readers.items()))
            place = tmp_path / name
            place.write_bytes(data := mutate(text, rng))
            use = lambda data=data, place=place, read=read: read(data, place)  # noqa: E731
        else:
            place = rng.choice(documents)
            place.write_bytes(data := mutate(before[place].decode(), rng))
            if rng.random() < 0.7:  # as a stranger would who knows the format
                with contextlib.suppress(Exception):  # what cannot be read cannot be forged
                    forge(run)
            use = lambda: _use_run(run)  # noqa: E731
        try:
            use()
        except ClinometerError as error:
            refused += 1
            if "\n" in str(error):
                pytest.fail(f"seed {SEED}, case {case}, {place.name}: more than a sentence: {error}")
        except Exception as error:
            said = f"{type(error).__name__}: {error}"
            raise AssertionError(f"seed {SEED}, case {case}, {place.name}: {said}"[:1000]) from error
        finally:
            for path in [path for path in run.rglob("*") if path.is_file() and path not in before]:
                path.unlink()
            for path, content in before.items():
                if not path.exists() or path.read_bytes() != content:
                    path.write_bytes(content)
    assert refused > CASES / 4, refused  # most mutations break something; the others change a word


def test_the_mutations_break_what_they_touch():
    """A mutation that leaves every text as it is would test nothing."""
    texts = {mutate(SPEC, random.Random(case)) for case in range(200)}
    assert len(texts) > 150
    broken = 0
    for text in texts:
        try:
            tomllib.loads(text.decode())
        except (ValueError, RecursionError):
            broken += 1
    assert broken > 50
