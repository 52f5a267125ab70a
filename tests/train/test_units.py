"""Windows and ordinary text: what is packed, which tokens are compared, and that no template gets in."""

from __future__ import annotations

import re
from dataclasses import replace

import numpy as np
import pytest
import torch
from safetensors.torch import load_file

from clinometer.data import counterfactual, find_values, mention_finder, read_attribute
from clinometer.errors import DataError, InputError
from clinometer.models.local.text import Tokens
from clinometer.train import MitigationSettings, mitigate, read_material
from clinometer.train import pairs as pairs_module
from clinometer.train.base import load_base
from clinometer.train.checked import CheckedPairs
from clinometer.train.loop import IGNORED
from clinometer.train.pairs import collate
from clinometer.train.units import ordinary_windows, sensitive_windows
from tests.train.mitigation_samples import ATTRIBUTE, TEMPLATE, documents_with_ordinary_text, train_few_steps
from tests.train.samples import Listener, Stop, files_of

WINDOWS = MitigationSettings(unit="window", steps=6, batch=4, learning_rate=1e-3, window=96, seed=7)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch):
    monkeypatch.setattr(pairs_module, "_BLOCK", 64)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("documents")
    (folder / "documents.txt").write_text(documents_with_ordinary_text())
    (folder / "job.toml").write_text(ATTRIBUTE)
    return folder / "documents.txt", folder / "job.toml"


@pytest.fixture(scope="module")
def material(files):
    return read_material(files[0], read_attribute(files[1]), held_out=10)


@pytest.fixture(scope="module")
def base_of(tiny_folder):
    return lambda family: load_base(
        str(tiny_folder(family)), device="cpu", dtype="float32", kinds=("causal", "masked")
    )


def squeezed(text):
    return re.sub(r"\s", "", text).lower()


def written(base, ids):
    return squeezed(base.tokenizer.decode([token for token in ids if token not in base.tokenizer.all_special_ids]))


@pytest.mark.parametrize("family", ["gpt2", "bert"])
def test_a_window_is_consecutive_text_of_one_document_and_nothing_is_lost(family, material, base_of):
    tokens = Tokens(base_of(family).tokenizer)
    found = sensitive_windows(material, tokens, size=90)
    others = ordinary_windows(material, tokens, size=90, at_most=10**6, seed=0)
    documents = [document.text for document in material.split.training.documents]
    texts = [unit.text for unit in found.kept]
    assert len(texts) > len(documents)  # they do not fit in one window each
    assert all(any(text in document for document in documents) for text in texts)
    assert "\n" in "".join(texts)
    every = sorted(line for unit in (*found.kept, *others) for line in unit.text.splitlines())
    assert every == sorted(line for document in documents for line in document.splitlines())
    for unit in found.kept:
        assert set(unit.values) == set(find_values(unit.text, material.attribute))
        assert unit.values
        assert sum(map(len, tokens.first(unit.text.splitlines()))) <= 90
    assert all(not find_values(unit.text, material.attribute) for unit in others)
    assert sum(len(unit.values) > 1 for unit in found.kept) > 5


def pairs_of(base, material, **changed):
    return CheckedPairs(material).of(base, replace(WINDOWS, **changed)).pairs


@pytest.mark.parametrize("family", ["gpt2", "llama", "bert", "roberta"])
def test_every_mention_of_a_window_is_compared_with_its_counterpart(family, material, base_of):
    base = base_of(family)
    pairs = pairs_of(base, material, masked_share=1e-9)
    mentions = mention_finder(material.attribute)
    several = 0
    for place in range(60):
        unit, pair = pairs.unit_at(place), pairs.row_at(place)["pair"]
        drawn = pairs.other_values(place, unit.values)
        assert all(drawn[value] != value for value in drawn)
        reading = pairs.reading_at(place)
        # simultaneously: what took the place of a value is not replaced again
        expected = [drawn[each.value] for each in mentions(unit.text)]
        assert [each.value for each in mentions(reading.other)] == expected
        assert len(pair.at) == len(pair.other_at) == len(expected)
        unmasked = [label if label != IGNORED and base.kind == "masked" else token
                    for token, label in zip(pair.ids, pair.labels, strict=True)]  # fmt: skip
        for (at, other_at), mention, value in zip(
            zip(pair.at, pair.other_at, strict=True), mentions(unit.text), expected, strict=True
        ):
            word = unit.text[mention.start : mention.end]
            assert written(base, unmasked[: at + 1]).endswith(squeezed(word))
            assert len(written(base, unmasked[:at])) < len(squeezed(unit.text[: mention.end]))
            plural = "s" if word.endswith("s") else ""
            assert written(base, pair.other[: other_at + 1]).endswith(value + plural)
        several += len(pair.at) > 1
    assert several > 10
    lengths = {
        len(pairs.row_at(place)["pair"].other) - len(pairs.row_at(place)["pair"].ids) for place in range(60)
    }
    # places differ because values differ in length; to the tiny BERT each value is one token
    assert (len(lengths) > 1) == (family != "bert")


def test_one_value_has_one_other_value_in_a_window(base_of, material):
    """A window of one value is the counterfactual of the data room."""
    base = base_of("bert")
    pairs = pairs_of(base, material, masked_share=1e-9)
    alone = [place for place in range(200) if len(pairs.unit_at(place).values) == 1]
    assert alone
    for place in alone:
        (value,) = pairs.unit_at(place).values
        text, other = pairs.texts_at(place)
        drawn = pairs.other_values(place, [value])[value]
        assert other == counterfactual(text, material.attribute, value, drawn)
        assert text.count(value) == other.count(drawn)


def test_no_sensitive_token_of_a_window_is_masked_and_the_same_words_in_both(base_of, material):
    base = base_of("bert")
    pairs = pairs_of(base, material, masked_share=0.5)
    mask = base.tokenizer.mask_token_id
    for place in range(40):
        pair = pairs.row_at(place)["pair"]
        assert all(pair.labels[at] == IGNORED for at in pair.at)
        assert mask not in {pair.ids[at] for at in pair.at} | {pair.other[at] for at in pair.other_at}
        # behind a mention, up to the next one, the same tokens follow in both
        ends = [*pair.at[1:], len(pair.ids)], [*pair.other_at[1:], len(pair.other)]
        for at, end, other_at, other_end in zip(pair.at, ends[0], pair.other_at, ends[1], strict=True):
            size = min(2, end - at - 1, other_end - other_at - 1)  # two words, before the next value may begin
            assert pair.ids[at + 1 : at + 1 + size] == pair.other[other_at + 1 : other_at + 1 + size]


def test_windows_longer_than_the_model_reads_are_cut_and_what_is_cut_off_is_not_compared(base_of, material):
    base = base_of("gpt2")
    pairs = pairs_of(base, material, window=24)
    for place in range(60):
        pair = pairs.row_at(place)["pair"]
        assert max(len(pair.ids), len(pair.other)) <= 24
        assert pair.at
        assert max(pair.at) < len(pair.ids)
        assert max(pair.other_at) < len(pair.other)


def test_templates_stay_out_of_windows(files, base_of, tiny_folder, tmp_path):
    """Also one that two lines make together; what is before and after it is still trained on."""
    smuggled = TEMPLATE.format(value="nurse") + " by anybody."
    lines = ["The nurse was at the hospital.", smuggled, "The doctor was at the hospital."]
    across = "The carpenter was here.\nNothing was said\nabout the teacher and the film."
    corpus = tmp_path / "with-templates.txt"
    documents = ["\n".join([*lines, f"It was story {number}."]) for number in range(30)]
    documents += [f"{across}\nThat was story {number}." for number in range(30)]
    corpus.write_text("\n\n".join(documents))
    material = read_material(corpus, read_attribute(files[1]), held_out=10)
    checked = CheckedPairs(material).of(base_of("bert"), replace(WINDOWS, window=128))
    texts = {text for place in range(200) for text in checked.pairs.texts_at(place)}
    template_in = material.template_finder()
    assert not any(map(template_in, texts))
    assert any("hospital" in text for text in texts)
    assert checked.left_out["left_out_with_a_template"] >= 50
    # and the check at the end would see one
    units = list(checked.pairs._units._units)
    checked.pairs._units._units = [replace(unit, text=f"{unit.text} {smuggled}") for unit in units]
    with pytest.raises(DataError, match=r"evaluation template 'Nothing was said about the \{value\}' appears in"):
        CheckedPairs(material)._check(checked.pairs, rows=4)


@pytest.mark.parametrize("unit", ["sentence", "window"])
@pytest.mark.parametrize(("batch", "share", "expected"), [(4, 0.5, 2), (8, 0.25, 2), (6, 0.5, 3)])
def test_the_share_of_ordinary_text_holds_in_every_batch_and_part(unit, batch, share, expected, base_of, material):
    pairs = pairs_of(base_of("bert"), material, unit=unit, batch=batch, ordinary=share)
    seen = set()
    for step in range(12):
        rows = [pairs.row_at(step * batch + index)["pair"] for index in range(batch)]
        ordinary = [not row.other for row in rows]
        assert sum(ordinary) == expected
        half = batch // 2
        assert abs(sum(ordinary[:half]) - sum(ordinary[half:])) <= 1  # parts of a step are alike
        for index, row in enumerate(rows):
            text = pairs.unit_at(step * batch + index).text
            seen.add(text)
            assert bool(find_values(text, material.attribute)) == bool(row.other)
            assert any(label != IGNORED for label in row.labels)
        batched = collate([{"pair": row} for row in rows], pad_id=0)
        assert len(batched["input_ids"]) == 2 * batch - expected
        assert float(batched["shares"].sum()) == pytest.approx(batch - expected)
    assert len(seen) > 12


def test_without_ordinary_text_rows_are_what_they_were(base_of, material):
    """The share decides nothing about the order of the other texts, nor about their counterfactuals."""
    plain = pairs_of(base_of("gpt2"), material, unit="sentence", batch=4)
    assert [plain.unit_at(place).text for place in range(4)] == [plain._units[place].text for place in range(4)]
    assert plain.ordinary == 0


def test_ordinary_text_alone_does_not_feel_the_strength(files, tiny_folder, tmp_path):
    """With λ = 1000 and half of the batch ordinary, the distance that is told is that of the other half."""
    corpus, attribute = files
    material = read_material(corpus, read_attribute(attribute), held_out=10)
    figures = []
    for share in (0.0, 0.5):
        settings = MitigationSettings(
            steps=1, batch=8, ordinary=share, learning_rate=1e-9, window=64, method="control", strength=0.0
        )
        made = mitigate(
            str(tiny_folder("llama")), material, out=tmp_path / str(share), settings=settings, device="cpu"
        )
        figures.append(made.figures)
    whole, mixed = figures
    assert mixed["fairness_of_first_tenth"] == pytest.approx(whole["fairness_of_first_tenth"], rel=0.5)
    assert (mixed["sentences_read"], mixed["ordinary_read"]) == (4, 4)
    assert "ordinary_read" not in whole


def test_a_corpus_without_ordinary_text(files, base_of, tmp_path):
    corpus = tmp_path / "full.txt"
    corpus.write_text("\n".join(f"The nurse was at the hospital on day number {day}." for day in range(60)))
    material = read_material(corpus, read_attribute(files[1]), held_out=10)
    for unit in ("sentence", "window"):
        with pytest.raises(DataError, match=rf"has no {unit} without a value of 'job'; give a larger corpus, or"):
            pairs_of(base_of("bert"), material, unit=unit, ordinary=0.5)


@pytest.mark.parametrize(
    ("option", "value"), [("unit", "page"), ("ordinary", 1.0), ("ordinary", -0.1), ("ordinary", 0.01)]
)
def test_settings_that_make_no_sense(option, value):
    with pytest.raises(InputError, match=f"{option} = .* is not valid; expected"):
        MitigationSettings(**{option: value})


def test_how_many_tokens_a_unit_has():
    assert MitigationSettings().tokens == 128
    assert MitigationSettings(unit="window").tokens == 512
    assert MitigationSettings(unit="window", window=96).tokens == 96


NEW = [
    ("gpt2", {"unit": "window", "ordinary": 0.5}),
    ("gpt2", {"method": "swapped", "strength": 0.0}),
    ("bert", {"unit": "window", "ordinary": 0.5, "lora": 4}),
    ("bert", {"method": "swapped", "strength": 0.0, "ordinary": 0.25}),
]


@pytest.mark.parametrize(("family", "more"), NEW)
def test_stopped_it_ends_in_the_same_bytes_and_other_settings_are_refused(
    family, more, files, tiny_folder, tmp_path
):
    model = tiny_folder(family)
    peaceful = train_few_steps(model, *files, tmp_path / "peaceful", held_out=10, save_seconds=1e9, **more)
    out = tmp_path / "out"
    for _ in range(2):
        with pytest.raises(Stop):
            train_few_steps(model, *files, out, held_out=10, progress=Listener(stop_after=3), **more)
    for changed, told in (
        ({"unit": "window" if "unit" not in more else "sentence"}, "unit"),
        ({"ordinary": 0.75}, "ordinary"),
        ({"method": "control", "strength": 0.0} if "method" in more else {"strength": 1.0}, "method|strength"),
    ):
        with pytest.raises(InputError, match=rf"training was begun with .*({told}) .*, now"):
            train_few_steps(model, *files, out, held_out=10, **{**more, **changed})
    listener = Listener()
    train_few_steps(model, *files, out, held_out=10, progress=listener, **more)
    assert listener.done == 4
    assert files_of(out) == files_of(peaceful.folder)
    before = load_file(model / "model.safetensors")
    after = load_file(out / "model.safetensors")
    assert any(not torch.equal(before[name], after[name]) for name in before)


def test_a_step_in_parts_is_the_same_step(files, tiny_folder, tmp_path):
    """Llama has no dropout, which would draw other numbers for other parts."""
    weights = []
    for accumulate in (1, 2):
        made = train_few_steps(
            tiny_folder("llama"), *files, tmp_path / str(accumulate), accumulate, held_out=10, unit="window",
            ordinary=0.5,
        )  # fmt: skip
        weights.append(load_file(made.folder / "model.safetensors"))
    for name in weights[0]:
        torch.testing.assert_close(weights[0][name], weights[1][name], rtol=0, atol=2e-5)


def test_drawn_values_and_masks_depend_on_seed_and_place_alone(base_of, material):
    for family in ("gpt2", "bert"):
        first, second, other = (pairs_of(base_of(family), material, seed=seed, ordinary=0.5) for seed in (1, 1, 2))
        rows = [first.row_at(place)["pair"] for place in range(40)]
        assert [second.row_at(place)["pair"] for place in reversed(range(40))] == rows[::-1]
        assert [other.row_at(place)["pair"] for place in range(40)] != rows
    drawn = [first.other_values(place, ["nurse", "doctor"]) for place in range(400)]
    assert len(np.unique([each["nurse"] for each in drawn])) == 5
    assert any(each["nurse"] == "doctor" and each["doctor"] == "nurse" for each in drawn)  # they may change places
