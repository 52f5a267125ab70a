"""Continued training of the masked model on text that a causal model wrote, from end to end at tiny size."""

from __future__ import annotations

import json
import lzma
import os
import runpy
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from transformers import BertConfig, BertForMaskedLM

from tests.models.tiny import tiny
from tests.training.conftest import TRAINING
from tests.training.test_shipped_models import WEIGHTS, card

NOT_DONE = 75


def call(script, *arguments):
    """Run a script in this process and return its exit code."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sys, "argv", [script, *map(str, arguments)])
        try:
            runpy.run_path(str(TRAINING / script), run_name="__main__")
        except SystemExit as ended:
            return ended.code
    return 0


@pytest.fixture(scope="module")
def made(tmp_path_factory, reviews_file):
    """Articles, their tokens, beginnings, a tiny causal model and a tiny masked one."""
    folder = tmp_path_factory.mktemp("continued")
    sentence = "The old mill stood beside the river for many years. Then the council bought it from its owner. "
    articles = "".join(f"= Title {number} =\n{sentence * 5}\n" for number in range(400))
    with lzma.open(folder / "articles.txt.xz", "wt", encoding="utf-8") as stream:
        stream.write(articles)
    tokenizer = WEIGHTS / "masked" / "tokenizer.json"
    options = ("--articles", folder / "articles.txt.xz", "--limit", 400, "--tokenizer", tokenizer)
    assert call("prepare_text.py", *options, "--reviews", reviews_file, "--out", folder / "tokens") == 0
    lines = ("--articles", folder / "articles.txt.xz", "--count", 12, "--out", folder / "beginnings.txt")
    assert call("beginnings.py", *lines) == 0
    config = BertConfig(hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=32)
    torch.manual_seed(0)
    BertForMaskedLM(config).save_pretrained(folder / "start")
    for file in ("tokenizer.json", "tokenizer_config.json"):
        (folder / "start" / file).write_bytes((WEIGHTS / "masked" / file).read_bytes())
    tiny("gpt2", folder / "causal")
    return SimpleNamespace(folder=folder, tokenizer=tokenizer, reviews=reviews_file)


def sample(made, out, *more):
    return call(
        "sampled_text.py",
        *("--beginnings", made.folder / "beginnings.txt", "--tokenizer", made.tokenizer, "--out", out),
        *("--model", made.folder / "causal", "--device", "cpu"),
        *("--shard", 5, "--samples", 3, "--tokens", 8, "--shards", 3, *more),
    )


@pytest.fixture(scope="module")
def sampled(made):
    assert sample(made, made.folder / "sampled") == 0
    return made.folder / "sampled"


def training(made, sampled, out):
    return [
        *("--start", made.folder / "start", "--tokens", made.folder / "tokens", "--sampled", sampled),
        *("--out", out, "--steps", 9, "--every", 2, "--tokens-per-step", 512, "--share", 0.01),
    ]


def test_beginnings_are_neutral_and_from_articles_that_may_be_trained_on(made):
    import beginnings
    import corpora

    written = (made.folder / "beginnings.txt").read_text(encoding="utf-8").splitlines()
    assert len(set(written)) == 12
    held = next(title for title in map("Title {}".format, range(1000)) if corpora.bucket(title) == 0)
    free = next(title for title in map("Title {}".format, range(1000)) if corpora.bucket(title) != 0)
    text = "Seven boats left the harbour that day and more came later in the week before the storm. " * 4
    articles = [corpora.Article(title=title, text=text) for title in (held, free)]
    import random

    assert len(list(beginnings.first_words(articles, random.Random(0)))) == 1
    assert beginnings.neutral(["Most people", "Awful people", "Most people", "A good"]) == ["Most people"]


def test_sampling_goes_on_where_it_stopped(made, sampled, tmp_path):
    import sampled_shards

    assert sample(made, tmp_path / "again", "--minutes", 0) == NOT_DONE
    assert sample(made, tmp_path / "again", "--shards", 1) == 0
    kept = (tmp_path / "again" / "sampled-000.xz").stat().st_mtime_ns
    assert sample(made, tmp_path / "again") == 0
    assert (tmp_path / "again" / "sampled-000.xz").stat().st_mtime_ns == kept
    whole, pieces = (sampled_shards.read_shards(folder) for folder in (sampled, tmp_path / "again"))
    assert whole.dtype == np.uint16
    assert np.array_equal(whole, pieces)
    # 15 beginnings of 12, three samples of each; the three that come twice have new samples
    assert (whole == 102).sum() == 45
    texts = [tuple(part) for part in np.split(whole, np.flatnonzero(whole == 102) + 1)[:-1]]
    assert len(set(texts)) == 45


def test_a_damaged_shard_is_refused_and_drawn_again_and_other_options_are_refused(made, sampled, tmp_path):
    import shutil

    import sampled_shards

    folder = tmp_path / "copy"
    shutil.copytree(sampled, folder)
    content = bytearray((folder / "sampled-001.xz").read_bytes())
    content[len(content) // 2] ^= 1
    (folder / "sampled-001.xz").write_bytes(content)
    with pytest.raises(ValueError, match=r"sampled-001.xz is damaged"):
        sampled_shards.read_shards(folder)
    with pytest.raises(ValueError, match="another top_p"):
        sample(made, folder, "--top-p", 0.5)
    assert sample(made, folder) == 0
    assert np.array_equal(sampled_shards.read_shards(folder), sampled_shards.read_shards(sampled))


def test_the_mixture_has_the_shares_that_were_asked():
    from masked_batches import Sampler, Stream

    def only(token):
        tokens = np.full(4000, token, dtype=np.uint16)
        tokens[::100] = 102
        return Stream(tokens, device=torch.device("cpu"))

    sampler = Sampler(
        articles=only(2001),
        reviews=only(2002),
        sampled=only(2003),
        review_share=0.2,
        sampled_share=0.6,
        tokens_per_step=128 * 50,
        rate=0.1,
        seed=0,
    )
    step = next(step for step in range(99) if sampler.kind(step).name == "pieces")
    rows = sampler.batch(step).ids
    # 50 rows: 10 of reviews, and of the other 40 six in ten sampled
    assert [int((rows == token).any(1).sum()) for token in (2001, 2002, 2003)] == [16, 10, 24]


def test_a_training_that_is_killed_or_out_of_time_ends_with_the_same_weights(made, sampled, tmp_path):
    killed, whole = tmp_path / "killed", tmp_path / "whole"
    command = [sys.executable, TRAINING / "masked_model.py", *training(made, sampled, killed), "--every", 1]
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    with subprocess.Popen([*map(str, command)], env=os.environ | {"OMP_NUM_THREADS": "1"}, **quiet) as process:
        try:
            assert call("masked_model.py", *training(made, sampled, whole)) == 0
            # one checkpoint is written, and the process dies without a word
            while not (killed / "log.jsonl").exists() and process.poll() is None:
                time.sleep(0.01)
        finally:
            process.kill()
    assert process.returncode == -signal.SIGKILL
    assert (killed / "checkpoint.safetensors").exists()
    assert call("masked_model.py", *training(made, sampled, killed)) == 0

    slow = tmp_path / "slow"
    calls = 1
    while call("masked_model.py", *training(made, sampled, slow), "--minutes", 0) == NOT_DONE:
        calls += 1
    assert calls == 9  # a call that has no time makes one step all the same
    expected = load_file(whole / "model" / "model.safetensors")
    begun = load_file(made.folder / "start" / "model.safetensors")
    assert not torch.equal(
        expected["bert.embeddings.word_embeddings.weight"], begun["bert.embeddings.word_embeddings.weight"]
    )
    for folder in (killed, slow):
        found = load_file(folder / "model" / "model.safetensors")
        assert found.keys() == expected.keys()
        assert all(torch.equal(found[name], expected[name]) for name in expected)

    with pytest.raises(ValueError, match="another lr, sampled_share"):
        call("masked_model.py", *training(made, sampled, whole), "--lr", 1, "--sampled-share", 0.5)


def test_figures_of_the_trained_model(made, tmp_path):
    out = tmp_path / "figures.json"
    options = ("--model", made.folder / "start", "--tokens", made.folder / "tokens", "--share", 0.01)
    assert call("masked_figures.py", *options, "--json", out) == 0
    assert json.loads(out.read_text(encoding="utf-8"))["both"]["perplexity"] > 1000


@pytest.mark.parametrize(
    ("top1", "perplexity", "verdict", "failed"),
    [
        (0.5451, 10.40, 0.815, []),
        (0.5449, 10.404, 0.82, []),
        (0.5444, 10.40, 0.815, ["top-1 ≥ 0.545"]),
        (0.55, 10.406, 0.815, ["perplexity ≤ 10.40"]),
        (0.55, 10.0, 0.814, ["great/terrible ≥ 0.815"]),
    ],
)
def test_every_figure_of_the_card_must_hold(top1, perplexity, verdict, failed):
    import masked_figures

    held = masked_figures.holds({"top1": top1, "perplexity": perplexity}, verdict)
    assert [name for name, well in held.items() if not well] == failed


def test_the_limits_are_those_of_the_card():
    import masked_figures

    figures = card("masked")["figures"]
    assert all(masked_figures.holds(figures["cpu"], figures["verdict"]["accuracy"]).values())
    assert figures["cpu"]["perplexity"] == masked_figures.PERPLEXITY
    assert figures["verdict"]["accuracy"] == masked_figures.VERDICT


def test_audits_must_say_more():
    import masked_audits
    from masked_audits import NEW, SHIPPED, Said

    shipped = Said(more_negative=(), more_positive=("composers",), stigma=0.02)
    louder = Said(more_negative=("Iran",), more_positive=("artists",), stigma=0.03)
    as_loud = Said(more_negative=("Iran",), more_positive=(), stigma=0.02)
    assert set(masked_audits.says_more({SHIPPED: shipped, NEW: louder}).values()) == {True}
    assert set(masked_audits.says_more({SHIPPED: shipped, NEW: as_loud}).values()) == {False}
