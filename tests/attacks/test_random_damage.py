"""A thousand random flips, cuts, deletions and swaps over all files of a run: each is found, and named."""

from __future__ import annotations

import random
import shutil

import pytest

from tests.attacks.samples import tiny_run, told, verify

SEED = 16
CASES = 1_000


def flip(rng: random.Random, files: dict[str, bytes]) -> dict[str, bytes | None]:
    name = rng.choice([name for name, data in files.items() if data])
    data = bytearray(files[name])
    data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    return {name: bytes(data)}


def cut(rng: random.Random, files: dict[str, bytes]) -> dict[str, bytes | None]:
    name = rng.choice([name for name, data in files.items() if data])
    return {name: files[name][: rng.randrange(len(files[name]))]}


def delete(rng: random.Random, files: dict[str, bytes]) -> dict[str, bytes | None]:
    return {rng.choice(list(files)): None}


def swap(rng: random.Random, files: dict[str, bytes]) -> dict[str, bytes | None]:
    one, other = rng.sample(list(files), 2)
    while files[one] == files[other]:
        one, other = rng.sample(list(files), 2)
    return {one: files[other], other: files[one]}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    words = folder / "words.txt"
    words.write_text("nurse pilot clerk miner")
    path = tiny_run(folder / "run", words_file=str(words)).path
    assert verify(path).problems == ()
    return path


def test_every_damage_is_found_and_named(run, tmp_path):
    path = tmp_path / "run"
    shutil.copytree(run, path)
    files = {each.relative_to(path).as_posix(): each.read_bytes() for each in path.rglob("*") if each.is_file()}
    assert len(files) >= 10
    rng = random.Random(SEED)
    unnamed, kinds = [], {flip: 0, cut: 0, delete: 0, swap: 0}
    for case in range(CASES):
        kind = rng.choice(list(kinds))
        kinds[kind] += 1
        damage = kind(rng, files)
        for name, data in damage.items():
            (path / name).unlink() if data is None else (path / name).write_bytes(data)
        said = told(path)
        if not any(name in said for name in damage):
            unnamed.append(
                f"seed {SEED}, case {case}: {kind.__name__} of {', '.join(damage)}: {said or 'not found'}"
            )
        for name in damage:
            (path / name).write_bytes(files[name])
    assert unnamed == []
    assert min(kinds.values()) > 200
    assert told(path) == ""
