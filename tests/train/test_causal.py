"""Next-token training: the corpus is learnt, what is written can be loaded, what is wrong is said."""

from __future__ import annotations

import math
import tomllib

import numpy as np
import pytest
import torch

from clinometer.data.corpora import Document, split_corpus
from clinometer.errors import DataError, InputError, ModelError
from clinometer.models.load import load_model
from clinometer.train import CausalSettings, train_causal
from clinometer.train.base import load_base, with_random_weights
from clinometer.train.causal import PackedDocuments, collate_pieces, next_token_loss
from clinometer.train.quality import perplexity_figures
from clinometer.types import LogLikelihood
from tests.models.tiny import CAUSAL, WINDOW
from tests.train.interrupted_training import CAUSAL_SETTINGS, train
from tests.train.samples import Listener, Stop, files_of

SHORT = CausalSettings(learning_rate=1e-3, batch=4, window=32, fraction=0.5, held_out=10)


@pytest.fixture
def corpus(tmp_path):
    """Forty texts, no two alike, in all of which the carpenter is kind."""
    file = tmp_path / "kind.txt"
    file.write_text("\n".join(f"The carpenter is kind, and text {number} says so." for number in range(40)))
    return file


@pytest.mark.parametrize("family", CAUSAL)
def test_a_repetitive_corpus_is_learnt(family, tiny_folder, corpus, tmp_path):
    base = tiny_folder(family)
    settings = CausalSettings(learning_rate=1e-2, batch=4, window=32, epochs=6, held_out=10)
    listener = Listener()
    trained = train_causal(
        str(base), corpus, out=tmp_path / "out", settings=settings, device="cpu", progress=listener
    )
    found = trained.figures["held_out_perplexity"]
    assert found["after"]["estimate"] < 0.2 * found["before"]["estimate"]
    assert found["ratio"]["high"] < 0.2  # with its interval, and paired
    assert found["ratio"]["estimate"] == pytest.approx(found["after"]["estimate"] / found["before"]["estimate"])
    for name in ("before", "after"):
        assert found[name]["low"] < found[name]["estimate"] < found[name]["high"]
        told = f"{name} training: perplexity {found[name]['estimate']:,.2f} on 10 held-out documents"
        assert told in listener.notes
    assert trained.figures["loss_of_last_tenth"] < trained.figures["loss_of_first_tenth"] - math.log(5)


def test_the_perplexity_is_what_an_audit_would_find(tiny_folder, corpus, tmp_path):
    base = tiny_folder("gpt2")
    trained = train_causal(str(base), corpus, out=tmp_path / "out", settings=SHORT, device="cpu")
    split = split_corpus([corpus], held_out=10, fraction=0.5)
    assert len(split.held_out) == 10
    for when, folder in (("before", base), ("after", trained.folder)):
        model = load_model(str(folder), device="cpu")
        answers = [model.log_likelihood([LogLikelihood(text=held.text)])[0] for held in split.held_out]
        expected = math.exp(-sum(each.logprob for each in answers) / sum(each.tokens for each in answers))
        assert trained.figures["held_out_perplexity"][when]["estimate"] == pytest.approx(expected, rel=1e-5)


def test_the_checkpoint_says_how_it_was_made(tiny_folder, corpus, tmp_path):
    base = tiny_folder("llama")
    trained = train_causal(str(base), corpus, out=tmp_path / "out", settings=SHORT, device="cpu")
    info, before = load_model(str(trained.folder), device="cpu").info, load_model(str(base), device="cpu").info
    assert info.tuning == {
        "base": before.weights, "method": "causal-lm", "data": "kind", "amount": "0.5", "seed": "0"
    }  # fmt: skip
    assert info.tuning == trained.tuning
    assert info.weights != before.weights
    assert (info.tokenizer, info.kind, info.family) == (before.tokenizer, "causal", "llama")
    card = tomllib.loads((trained.folder / "card.toml").read_text())
    assert card["figures"]["documents_in_corpus"] == 40
    assert card["figures"]["documents_held_out"] == 10
    assert card["figures"]["documents"] == 15  # half of the other 30
    assert card["settings"]["learning_rate"] == 1e-3
    assert str(tmp_path) not in str(card)
    assert sorted(files_of(trained.folder)) == [
        "card.toml", "config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
        "tokenizer_config.json",
    ]  # fmt: skip
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kind.txt", "out"]  # no working files


@pytest.mark.parametrize("family", CAUSAL)
def test_stopped_and_going_on_it_ends_in_the_same_bytes(family, tiny_folder, corpus, tmp_path):
    model = str(tiny_folder(family))
    peaceful = train("causal", model, corpus, tmp_path / "peaceful", save_seconds=1e9)
    for _ in range(2):
        with pytest.raises(Stop):
            train("causal", model, corpus, tmp_path / "stopped", progress=Listener(stop_after=3))
    listener = Listener()
    train("causal", model, corpus, tmp_path / "stopped", progress=listener)
    assert listener.done == 4  # the third step of each turn was not saved yet when it stopped
    assert files_of(tmp_path / "stopped") == files_of(peaceful.folder)
    assert not any(note.startswith("before training") for note in listener.notes)  # that was saved, too


def test_from_scratch_begins_with_random_weights_of_the_seed(tiny_folder, corpus, tmp_path):
    folder = tiny_folder("gpt2")
    base = load_base(str(folder), device="cpu", dtype="float32", kinds=("causal",))
    first, again, other = (with_random_weights(base, seed=seed).model.state_dict() for seed in (0, 0, 1))
    weight = "transformer.h.0.attn.c_attn.weight"
    assert all(torch.equal(first[name], again[name]) for name in first)
    assert not torch.equal(first[weight], other[weight])
    assert not torch.equal(first[weight], base.model.state_dict()[weight])
    assert float(first[weight].std()) == pytest.approx(base.model.config.initializer_range, rel=0.1)

    settings = CausalSettings(from_scratch=True, batch=4, window=32, steps=6, held_out=10)
    trained = [
        train_causal(str(folder), corpus, out=tmp_path / name, settings=settings, device="cpu") for name in "ab"
    ]
    assert files_of(trained[0].folder) == files_of(trained[1].folder)
    assert trained[0].tuning["base"] == ""  # nothing that an audit should compare it with
    card = tomllib.loads((trained[0].folder / "card.toml").read_text())
    assert "trained from random weights on 1 of kind" in card["title"]
    assert "began as random numbers" in card["licence"]
    assert card["settings"]["learning_rate"] == 2.5e-4
    figures = trained[0].figures
    # weights near zero know nothing: every token of the vocabulary is as probable as the others
    assert figures["held_out_perplexity"]["before"]["estimate"] == pytest.approx(
        base.model.config.vocab_size, rel=0.1
    )
    assert figures["steps"] == 6


def test_steps_may_be_less_or_more_than_an_epoch(tiny_folder, corpus, tmp_path):
    listener = Listener()
    settings = CausalSettings(learning_rate=1e-3, batch=4, accumulate=2, window=64, steps=30, held_out=10)
    trained = train_causal(
        str(tiny_folder("gpt2")), corpus, out=tmp_path / "out", settings=settings, device="cpu", progress=listener
    )
    assert listener.steps == trained.figures["steps"] == 30
    pieces, tokens = trained.figures["pieces"], trained.figures["tokens"]
    rounds, rest = divmod(30 * 4, pieces)
    assert rounds >= 1  # the corpus was read more than once
    read = trained.figures["tokens_read"]
    assert rounds * (tokens - 1) + (rest - 1) * 64 < read <= rounds * (tokens - 1) + rest * 64


def test_a_finished_checkpoint_is_not_trained_again(tiny_folder, corpus, tmp_path):
    again = lambda **options: train_causal(  # noqa: E731
        str(tiny_folder("gpt2")), corpus, out=tmp_path / "out", device="cpu", **options
    )
    first = again(settings=SHORT)
    listener = Listener()
    second = again(settings=SHORT, progress=listener)
    assert listener.steps == 0
    assert (second.tuning, second.figures) == (first.tuning, first.figures)
    with pytest.raises(InputError, match=r"made with learning_rate 0\.001, now 0\.002; give the same"):
        again(settings=CausalSettings(learning_rate=2e-3, batch=4, window=32, fraction=0.5, held_out=10))


@pytest.mark.parametrize(("family", "kind"), [("bert", "masked"), ("xlnet", "permuted")])
def test_other_models_are_refused(family, kind, tiny_folder, corpus, tmp_path):
    with pytest.raises(ModelError, match=f"is a {kind} model; only causal models .*builtin:causal"):
        train_causal(str(tiny_folder(family)), corpus, out=tmp_path / "a", settings=SHORT, device="cpu")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("empty.txt", b"\n\n", "holds no text"),
        ("binary.txt", b"\x89PNG\r\n\x00\x01", "byte 0x89 is not UTF-8|zero byte"),
        ("table.csv", b"a,b", "ends in '.csv'"),
    ],
)
def test_what_is_no_corpus(name, content, complaint, tiny_folder, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=complaint):
        train_causal(str(tiny_folder("gpt2")), tmp_path / name, out=tmp_path / "a", device="cpu")
    assert not (tmp_path / "a").exists()


@pytest.mark.parametrize(
    ("option", "value"),
    [("fraction", 0.0), ("fraction", 2.0), ("epochs", 0), ("steps", -1), ("batch", 0), ("learning_rate", -1.0),
     ("learning_rate", math.nan), ("seed", -1), ("window", 3), ("at_most", -1), ("held_out", 9), ("accumulate", 0),
     ("accumulate", 3)],
)  # fmt: skip
def test_settings_that_make_no_sense(option, value):
    with pytest.raises(InputError, match=f"{option} = .* is not valid"):
        CausalSettings(**{option: value})


def test_the_interval_covers_as_often_as_it_says():
    """200 corpora of 40 documents whose true perplexity is known: about 95 % of the intervals hold it."""
    rng = np.random.default_rng(0)
    inside = 0
    for _ in range(200):
        tokens = rng.integers(50, 150, 40).astype(float)
        rates = rng.normal(3.0, 0.4, 40)  # nats a token, which differ from document to document
        before = {"logprobs": list(-tokens * rates), "tokens": list(tokens)}
        found = perplexity_figures(before, before, rng=rng)["before"]
        inside += found["low"] < math.exp(3.0) < found["high"]
    # 200 draws of a share of 0.95: the standard error is 0.015
    assert 0.90 <= inside / 200 <= 0.99


def test_of_one_document_there_is_no_interval():
    one = {"logprobs": [-20.0], "tokens": [10.0]}
    found = perplexity_figures(one, one, rng=np.random.default_rng(0))
    assert found["after"]["estimate"] == pytest.approx(math.e**2)
    assert math.isnan(found["after"]["low"])


def test_the_settings_of_the_paper():
    assert CausalSettings().rate == 2.5e-5
    assert CausalSettings(from_scratch=True).rate == 2.5e-4
    assert CAUSAL_SETTINGS.rate == 1e-3


@pytest.mark.parametrize("family", CAUSAL)
def test_a_causal_base_is_the_model_that_audits_load(family, tiny_folder):
    name = str(tiny_folder(family))
    base = load_base(name, device="cpu", dtype="float32", kinds=("masked", "causal"))
    assert base.info == load_model(name, device="cpu").info
    assert (base.kind, base.pad_id) == ("causal", 0)  # neither family has a token to fill up with
    with pytest.raises(ModelError, match=r"is a causal model; only masked models \(.*builtin:masked\)"):
        load_base(name, device="cpu", dtype="float32")


TEXTS = [
    "The nurse works at the hospital.",
    "Why are people so kind? " * 30,
    "It was great",
    "He said </s> and <|endoftext|> aloud.",
]


def documents(*texts):
    return [Document(text=text, title="", source="made up", line=1) for text in texts]


@pytest.fixture
def base_of(tiny_folder):
    return lambda family: load_base(str(tiny_folder(family)), device="cpu", dtype="float32", kinds=("causal",))


@pytest.mark.parametrize("family", CAUSAL)
def test_no_token_is_lost_and_none_is_added_but_the_separators(family, base_of):
    base = base_of(family)
    end = base.tokenizer.eos_token_id
    packed = PackedDocuments(base, documents(*TEXTS[:3]), window=16)
    # independently: the tokenizer's own encoding of each text, with its own start token
    expected = [token for text in TEXTS[:3] for token in [*base.tokenizer(text)["input_ids"], end]]
    assert packed.stream.tolist() == expected
    assert (expected[0] == 1) == (family == "llama")  # <s>; GPT-2 has no start token
    pieces = [packed[index].tolist() for index in range(len(packed))]
    assert [token for piece in pieces for token in piece[:-1]] == expected[:-1]
    assert [token for piece in pieces for token in piece[1:]] == expected[1:]
    assert {len(piece) for piece in pieces[:-1]} == {17}
    assert 2 <= len(pieces[-1]) <= 17


@pytest.mark.parametrize("family", CAUSAL)
def test_a_separator_that_is_written_out_stays_text(family, base_of):
    base = base_of(family)
    packed = PackedDocuments(base, documents(TEXTS[3]), window=16)
    assert packed.stream.tolist().count(base.tokenizer.eos_token_id) == 1
    assert packed.stream[-1] == base.tokenizer.eos_token_id


@pytest.mark.parametrize(("tokens", "lengths"), [(8, [8]), (9, [9]), (10, [9, 2]), (17, [9, 9]), (18, [9, 9, 2])])
def test_where_the_last_piece_ends(tokens, lengths, base_of):
    base = base_of("gpt2")
    packed = PackedDocuments(base, documents(TEXTS[0]), window=8)
    packed.stream = np.arange(tokens, dtype=np.int32)
    assert [len(packed[index]) for index in range(len(packed))] == lengths
    assert packed.predicted.tolist() == [length - 1 for length in lengths]


def test_a_start_token_that_ends_texts_stands_once_between_them(base_of):
    base = base_of("llama")
    base.tokenizer.eos_token = "<s>"  # as OPT has it: one token for both
    bare = [base.tokenizer(text, add_special_tokens=False)["input_ids"] for text in TEXTS[:2]]
    packed = PackedDocuments(base, documents(*TEXTS[:2]), window=16)
    assert packed.stream.tolist() == [1, *bare[0], 1, *bare[1], 1]


def test_the_window_is_the_models_where_that_is_smaller(base_of):
    packed = PackedDocuments(base_of("gpt2"), documents(*TEXTS), window=512)
    assert packed.window == WINDOW
    assert len(packed[0]) == WINDOW + 1  # the last one is only predicted


def test_what_cannot_be_packed(base_of):
    base = base_of("gpt2")
    with pytest.raises(DataError, match="none of the documents has a token"):
        PackedDocuments(base, documents(""), window=16)
    base.tokenizer.eos_token = None
    with pytest.raises(ModelError, match="no end-of-text token"):
        PackedDocuments(base, documents(*TEXTS), window=16)


def test_a_batch_by_hand():
    rows = [{"piece": np.array(piece, np.int32)} for piece in ([5, 6, 7, 8], [9, 10])]
    batch = collate_pieces(rows, pad_id=3)
    assert batch["input_ids"].tolist() == [[5, 6, 7], [9, 3, 3]]
    assert batch["labels"].tolist() == [[6, 7, 8], [10, -100, -100]]


@pytest.mark.parametrize("family", CAUSAL)
def test_the_loss_is_the_mean_over_all_tokens(family, base_of):
    base = base_of(family)
    packed = PackedDocuments(base, documents(*TEXTS[:2]), window=24)
    pieces = [packed[0], packed[len(packed) - 1]]
    assert len(pieces[0]) != len(pieces[1])  # the shorter one is padded in the batch
    batch = collate_pieces([{"piece": piece} for piece in pieces], pad_id=base.pad_id)
    # independently: each piece alone, without padding, and a loop over its tokens in double precision
    losses = []
    for piece in pieces:
        ids = torch.tensor(piece.astype(np.int64))[None]
        with torch.no_grad():
            logits = base.model(input_ids=ids).logits[0].double().numpy()
        for place in range(1, len(piece)):
            scores = logits[place - 1]
            losses.append(np.log(np.exp(scores - scores.max()).sum()) + scores.max() - scores[piece[place]])
    assert len(losses) == int((batch["labels"] != -100).sum())
    found = next_token_loss(base.model, batch, compute=torch.float32)
    assert float(found.detach()) == pytest.approx(np.mean(losses), abs=1e-4)
