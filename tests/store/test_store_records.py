"""What is appended is read back: every kind of request and answer, in any order of writing."""

import dataclasses
import itertools
import math
import typing

import hypothesis.strategies as st
import numpy as np
import polars as pl
import pytest
from hypothesis import given, settings
from store_samples import KEY, append, key_of, parts, rows

from clinometer.errors import RecordsError, StoreError
from clinometer.models.protocols import ANSWERS
from clinometer.questions import Items, WordAnswers
from clinometer.store import Row, RunFolder, StageKey, columns, compacting, digest_of_tags, schema
from clinometer.store import writer as writer_module
from clinometer.store.names import model_slug
from clinometer.store.parts import PartReader
from clinometer.store.schema import arrow_type
from clinometer.store.writer import RecordWriter
from clinometer.types import (
    Ask,
    Classify,
    ClassifyAnswer,
    Embed,
    EmbedAnswer,
    Fill,
    Item,
    Message,
    NextWord,
    TextAnswer,
    WordAnswer,
)

TEXT = st.text(max_size=12)  # hypothesis leaves surrogates out, and has NUL, newlines and astral characters in
INT = st.integers(-(2**63), 2**63 - 1)
FLOAT32 = st.floats(width=32)


def values_of(hint):
    """A strategy for a field's type, written apart from the mapping that is under test."""
    if typing.get_origin(hint) is typing.Literal:
        return st.sampled_from(typing.get_args(hint))
    if typing.get_origin(hint) is tuple:
        inner = typing.get_args(hint)[0]
        return st.lists(FLOAT32 if inner is float else values_of(inner), max_size=4).map(tuple)
    if dataclasses.is_dataclass(hint):
        return instances(hint)
    return {str: TEXT, int: INT, float: st.floats(), bool: st.booleans()}[hint]


def instances(kind):
    hints = typing.get_type_hints(kind)
    return st.builds(kind, **{field.name: values_of(hints[field.name]) for field in dataclasses.fields(kind)})


def as_read(value):
    """What polars gives for a value that was written."""
    if isinstance(value, tuple):
        return [as_read(inner) for inner in value]
    return dataclasses.asdict(value) if dataclasses.is_dataclass(value) else value


def same(found, expected):
    """Equal in type and value, with NaN equal to NaN and -0.0 different from 0.0."""
    if isinstance(expected, list):
        return len(found) == len(expected) and all(map(same, found, expected))
    if isinstance(expected, float):
        return type(found) is float and repr(found) == repr(expected)
    return type(found) is type(expected) and found == expected


@pytest.mark.parametrize("kind", ANSWERS, ids=lambda kind: kind.__name__)
def test_every_kind_of_request_and_answer_round_trips(kind, run):
    stages = (StageKey(probe="p", model="m", stage=f"s{turn}") for turn in itertools.count())

    @settings(max_examples=25, deadline=None)
    @given(
        asked=st.lists(instances(kind), min_size=1, max_size=6),
        answered=st.lists(instances(ANSWERS[kind]), min_size=6, max_size=6),
        tags=st.lists(
            st.fixed_dictionaries({"a b": TEXT, "dotted.name": INT, "ünï": st.floats()}), min_size=6, max_size=6
        ),
        keys=st.lists(st.binary(min_size=16, max_size=16), min_size=6, max_size=6),
        cut=st.integers(0, 6),
        several_parts=st.booleans(),
    )
    def round_trip(*, asked, answered, tags, keys, cut, several_parts):
        stage = next(stages)
        written = [
            Row(index, key, Item(request=request, tags=tag), answer)
            for index, (key, request, tag, answer) in enumerate(zip(keys, asked, tags, answered, strict=False))
        ]
        with run.writer(stage, flush_seconds=0 if several_parts else 1e9) as writer:
            writer.append(written[cut:])
            writer.append(written[:cut])
        table = run.table(stage)
        assert table.height == len(written)
        for row, record in zip(written, table.iter_rows(named=True), strict=True):
            assert record.pop("index") == row.index
            assert record.pop("key") == row.key
            assert record.pop("tags") == digest_of_tags(row.item.tags)
            assert record.pop("ask_kind") == kind.__name__
            expected = {f"tag_{name}": value for name, value in row.item.tags.items()}
            for prefix, value in (("ask", row.item.request), ("got", row.answer)):
                expected |= {f"{prefix}_{f.name}": getattr(value, f.name) for f in dataclasses.fields(value)}
            assert record.keys() == expected.keys()
            for name, value in expected.items():
                assert same(record[name], as_read(value)), name
        done = run.done(stage)
        assert len(done) == len(written)
        assert all(done.matches(row.index, row.key) for row in written)
        assert all(done.tagged(row.index, digest_of_tags(row.item.tags)) for row in written)
        assert not any(done.tagged(row.index, b"another!") for row in written)

    round_trip()


def test_column_types_do_not_depend_on_the_values(run):
    stage = StageKey(probe="p", model="m", stage="empty_lists")
    asked = Fill(text="[MASK]")
    with run.writer(stage) as writer:
        writer.append([Row(0, bytes(16), Item(request=asked, tags={"t": 1}), WordAnswer(words=(), logprobs=()))])
    assert dict(run.table(stage).schema) == {
        "index": pl.Int64,
        "key": pl.Binary,
        "tags": pl.Binary,
        "tag_t": pl.Int64,
        "ask_kind": pl.String,
        "ask_text": pl.String,
        "ask_context": pl.String,
        "ask_join": pl.String,
        "ask_words": pl.List(pl.String),
        "ask_top_k": pl.Int64,
        "ask_normalise": pl.String,
        "got_words": pl.List(pl.String),
        "got_logprobs": pl.List(pl.Float32),
        "got_covered": pl.Float64,
        "got_told": pl.Float64,
        "got_draws": pl.Int64,
    }


def test_shared_objects_are_written_for_every_row(run):
    """Contexts and word lists that are one object in many rows take a short cut; it must not mix rows up."""
    contexts, lists = ["a" * 500, "b" * 500, ""], [("x", "y"), (), ("z",)]
    written = [
        Row(
            i,
            key_of(i),
            Item(request=Fill(text="[MASK]", context=contexts[i % 3], words=lists[i // 7 % 3]), tags={}),
            WordAnswer(words=lists[i // 7 % 3], logprobs=tuple(map(float, range(len(lists[i // 7 % 3]))))),
        )
        for i in range(100)
    ]
    with run.writer(KEY) as writer:
        writer.append(written)
    table = run.table(KEY)
    assert table["ask_context"].to_list() == [row.item.request.context for row in written]
    assert table["ask_words"].to_list() == [list(row.item.request.words) for row in written]
    assert table["got_logprobs"].to_list() == [list(row.answer.logprobs) for row in written]


def test_conversations_keep_their_turns(run):
    turns = (Message(role="system", content="<b>"), Message(role="user", content="é"))
    with run.writer(KEY) as writer:
        writer.append([Row(0, bytes(16), Item(request=Ask(messages=turns), tags={}), TextAnswer(texts=("a", "")))])
    record = run.table(KEY).row(0, named=True)
    assert record["ask_messages"] == [{"role": "system", "content": "<b>"}, {"role": "user", "content": "é"}]
    assert record["got_texts"] == ["a", ""]


def test_table_reads_only_the_columns_asked_for(run, monkeypatch):
    append(run, 0, 10)
    decoded = []
    read = pl.read_parquet
    monkeypatch.setattr(
        pl, "read_parquet", lambda data, columns: decoded.append(columns) or read(data, columns=columns)
    )
    table = run.table(KEY, columns=["got_logprobs", "tag_word"])
    assert table.columns == ["got_logprobs", "tag_word"]
    assert table["tag_word"].to_list() == [f"w{i % 5}" for i in range(10)]
    assert sorted(decoded[0]) == ["got_logprobs", "index", "tag_word"]


def test_table_keeps_only_the_indices_asked_for(run):
    append(run, 0, 6)
    append(run, 6, 10)
    append(run, 4, 5, salt=" again")
    table = run.table(KEY, indices=[8, 4, 1, 4, 99])  # twice and never recorded
    assert table.equals(run.table(KEY).filter(pl.col("index").is_in([1, 4, 8])), null_equal=True)
    assert table["ask_text"].to_list()[1] == "The [MASK] is number 4. again"
    assert run.table(KEY, columns=["tag_turn"], indices=range(7, 9))["tag_turn"].to_list() == [7, 8]
    none = run.table(KEY, indices=[])
    assert none.height == 0
    assert none.schema == run.table(KEY).schema


def test_rows_that_are_not_asked_for_are_dropped_part_by_part(run, monkeypatch):
    """A stage may be larger than memory; only what is wanted of each part is kept."""
    append(run, 0, 500)
    append(run, 500, 1000)
    joined = []
    concat = pl.concat
    monkeypatch.setattr(
        pl,
        "concat",
        lambda frames, **how: joined.extend(frame.height for frame in frames) or concat(frames, **how),
    )
    run.table(KEY, indices=[3, 700, 701])
    assert joined == [1, 2]


def test_column_names(run):
    with run.writer(KEY) as writer:
        writer.append([with_tags(0, {"kind": "base"})])
    with run.writer(KEY) as writer:
        writer.append([with_tags(1, {"kind": "known", "k": 3})])
    assert run.column_names(KEY) == run.table(KEY).columns
    assert run.column_names(KEY)[:5] == ["index", "key", "tags", "tag_kind", "tag_k"]
    with pytest.raises(RecordsError, match="no records for"):
        run.column_names(StageKey(probe="p", model="m", stage="nothing"))


def test_an_unknown_column_names_the_nearest(run):
    append(run, 0, 2)
    with pytest.raises(RecordsError, match="no column 'tag_wrod'; did you mean 'tag_word'"):
        run.table(KEY, columns=["tag_wrod"])


def test_rows_come_sorted_by_index_whatever_the_order_of_writing(run):
    with run.writer(KEY, flush_seconds=0) as writer:
        for start in (60, 0, 30):
            writer.append(rows(start, start + 30)[::-1])
    assert len(parts(run)) == 3
    table = run.table(KEY)
    assert table["index"].to_list() == list(range(90))
    assert table["tag_share"].to_list() == [i / 4 for i in range(90)]


def test_of_two_records_of_one_index_the_later_counts(run):
    append(run, 0, 6)
    append(run, 2, 4, salt=" again")
    table = run.table(KEY, columns=["ask_text"])
    assert table["ask_text"].to_list() == [
        f"The [MASK] is number {i}.{' again' if i in (2, 3) else ''}" for i in range(6)
    ]
    with run.writer(KEY) as writer:
        writer.append([dataclasses.replace(rows(0, 1)[0], key=b"k" * 16)])
    done = run.done(KEY)
    assert len(done) == 6
    assert done.matches(0, b"k" * 16)
    assert not done.matches(0, key_of(0))


def test_the_tenth_part_counts_after_the_ninth(run):
    """Part numbers are compared as numbers, also beyond their padding."""
    folder = run.path / "records" / KEY.folder
    append(run, 0, 1)
    for turn, salt in ((999_999, " old"), (1_000_000, " new")):
        with run.writer(KEY) as writer:
            writer._sequence = turn
            writer.append(rows(0, 1, salt=salt))
    assert sorted(path.name.split("-")[1] for path in folder.iterdir()) == ["000001", "1000000", "999999"]
    assert run.table(KEY)["ask_text"].item() == "The [MASK] is number 0. new"


def test_done_knows_indices_and_keys(run):
    append(run, 3, 5)
    done = run.done(KEY)
    assert len(done) == 2
    assert done.damaged == ()
    assert done.matches(3, key_of(3))
    assert not done.matches(3, key_of(4))
    assert not any(done.matches(index, key_of(index)) for index in (-1, -2, 0, 2, 5, 2**40))
    assert not done.matches(0, bytes(16))  # an absent index has no key, not a key of zeros


def test_nothing_recorded(run):
    assert len(run.done(KEY)) == 0
    assert run.stages() == ()
    with pytest.raises(RecordsError, match=r"no records for counterexamples, stage ask.*clinometer resume"):
        run.table(KEY)
    with run.writer(KEY) as writer:
        writer.append([])
    assert parts(run) == []


def test_items_may_differ_in_tags(run):
    items = [{"kind": "base"}, {"kind": "known", "k": 3}, {"kind": "known", "k": 0.5}]
    with run.writer(KEY, flush_seconds=1e9) as writer:
        for index, tags in enumerate(items):
            row = rows(index, index + 1)[0]
            writer.append([Row(index, row.key, Item(request=row.item.request, tags=tags), row.answer)])
    assert len(parts(run)) == 1
    table = run.table(KEY)
    assert table["tag_k"].to_list() == [None, 3.0, 0.5]
    assert table.columns[:6] == ["index", "key", "tags", "tag_kind", "tag_k", "ask_kind"]


def test_items_of_different_parts_may_differ_in_tags(run):
    for index, tags in enumerate([{"kind": "base", "share": 1}, {"kind": "known", "k": True, "share": 0.5}]):
        row = rows(index, index + 1)[0]
        with run.writer(KEY) as writer:
            writer.append([Row(index, row.key, Item(request=row.item.request, tags=tags), row.answer)])
    table = run.table(KEY)
    assert table["tag_k"].to_list() == [None, 1]
    assert table["tag_share"].to_list() == [1.0, 0.5]
    assert run.table(KEY, columns=["tag_k"])["tag_k"].to_list() == [None, 1]
    assert [name.split("_")[0] for name in table.columns] == [
        "index",
        "key",
        "tags",
        *["tag"] * 3,
        *["ask"] * 7,
        *["got"] * 5,
    ]


def with_tags(index, tags):
    row = rows(index, index + 1)[0]
    return Row(index, row.key, Item(request=row.item.request, tags=tags), row.answer)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([with_tags(1, {"word": "a"}), with_tags(2, {"word": 2})], "tag 'word' has values of type int, str"),
        ([with_tags(1, {"word": 7})], "a tag is text in some items and a number in others"),
        ([with_tags(1, {"word": ["a"]})], "tag 'word' has values of type list"),
        ([with_tags(1, {"a\0": 1})], "tag 'a.x00' cannot be a column"),
        ([with_tags(1, {"turn": 2**63})], "column tag_turn cannot hold"),
        ([with_tags(1, {"word": "\ud800"})], r"column tag_word has text that is not valid Unicode \('\\ud800'"),
        ([dataclasses.replace(rows(1, 2)[0], key=b"short")], "column key cannot hold"),
        ([dataclasses.replace(rows(1, 2)[0], index=-1)], "an index is negative"),
        (
            [dataclasses.replace(rows(1, 2)[0], answer=WordAnswer(words=("a\udc80",), logprobs=(0.0,)))],
            "column got_words has text that is not valid Unicode",
        ),
        (
            [rows(1, 2)[0], Row(2, key_of(2), Item(request=NextWord(text="a"), tags={}), rows(1, 2)[0].answer)],
            "one stage was given Fill, NextWord",
        ),
        (
            [
                Row(
                    2,
                    key_of(2),
                    Item(request=Classify(text="a"), tags={}),
                    ClassifyAnswer(negative=1, neutral=0, positive=0),
                )
            ],
            "was given Classify after Fill",
        ),
    ],
)
def test_a_batch_that_cannot_be_stored_is_refused_whole_and_alone(run, bad, message):
    with run.writer(KEY, flush_seconds=1e9) as writer:
        writer.append([with_tags(0, {"word": "a", "turn": 0})])
        with pytest.raises(StoreError, match=message):
            writer.append(bad)
        writer.append([with_tags(3, {"word": "b", "turn": 1})])
    assert run.table(KEY)["index"].to_list() == [0, 3]


def test_vectors_keep_single_precision(run):
    vector = (0.1, -1 / 3, math.inf)
    with run.writer(KEY) as writer:
        writer.append([Row(0, bytes(16), Item(request=Embed(text=""), tags={}), EmbedAnswer(vector=vector))])
    assert run.table(KEY)["got_vector"].to_list()[0] == pytest.approx(vector, rel=2**-24)


def test_a_field_of_unknown_type_is_an_error():
    with pytest.raises(TypeError, match="no column type for"):
        arrow_type(dict[str, int])


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_part_is_written_when_time_or_rows_say_so(run):
    folder = run.path / "records" / KEY.folder
    folder.mkdir(parents=True)
    clock = Clock()
    writer = RecordWriter(
        folder, stage=KEY, run=run.path, run_id=run.run_id, flush_seconds=2, max_rows=10, clock=clock
    )
    with writer:
        writer.append(rows(0, 9))
        assert len(parts(run)) == 0
        writer.append(rows(9, 10))  # 9 + 1 = 10 rows
        assert len(parts(run)) == 1
        clock.now = 1.9
        writer.append(rows(10, 11))
        assert len(parts(run)) == 1
        clock.now = 2.0
        writer.append(rows(11, 12))
        assert len(parts(run)) == 2
        clock.now = 3.9  # 1.9 since the last part
        writer.append(rows(12, 13))
        assert len(parts(run)) == 2
        writer.flush()
        assert len(parts(run)) == 3
        writer.flush()  # nothing waits: no empty part
    assert len(parts(run)) == 3
    assert run.table(KEY)["index"].to_list() == list(range(13))


def append_then_fail(run, error):
    with run.writer(KEY, flush_seconds=1e9) as writer:
        writer.append(rows(0, 5))
        raise error


def test_an_exception_does_not_lose_finished_batches(run):
    with pytest.raises(KeyboardInterrupt):
        append_then_fail(run, KeyboardInterrupt())
    assert len(run.done(KEY)) == 5


def test_equal_rows_give_equal_bytes(run):
    first, second = append(run, 0, 50), append(run, 0, 50)
    assert first.read_bytes() == second.read_bytes()


def test_each_part_is_hashed_once(run, monkeypatch):
    append(run, 0, 5)
    append(run, 5, 9)
    run = RunFolder.open(run.path)
    hashed = []
    verdict = PartReader._verdict
    monkeypatch.setattr(PartReader, "_verdict", lambda *a: hashed.append(a[1]) or verdict(*a))
    for _ in range(3):
        run.table(KEY)
        run.done(KEY)
        run.stages()
    assert sorted(hashed) == parts(run)
    run.check()  # but to check is to hash
    assert sorted(hashed) == sorted(parts(run) * 2)


LABELS = [
    "builtin:causal",
    "org/name",
    "org-name",
    "org:name",
    "Org/Name",
    "/abs/path/to/model/",
    "/abs/path/to/model",
    "..",
    ".",
    "",
    "模型/Ünïcode",
    "模型/Ünïcodé",
    "x" * 5000,
    "x" * 5001,
    "a\x00b\nc",
    "not-text-\udcff",
    "../../etc",
    "a.damaged",
]


def test_model_labels_become_distinct_safe_folders(run):
    slugs = [model_slug(label) for label in LABELS]
    assert len({slug.lower() for slug in slugs}) == len(LABELS)
    for slug in slugs:
        assert len(slug) <= 80
        assert slug.isascii()
        assert not set(slug) & set('/\\:*?"<>| \n\0')
        assert slug[0] not in ".-"
    keys = [StageKey(probe="p", model=label, stage="s") for label in LABELS]
    for turn, key in enumerate(keys):
        with run.writer(key) as writer:
            writer.append(rows(turn, turn + 1))
    assert set(run.stages()) == set(keys)
    assert [run.table(key)["index"].item() for key in keys] == list(range(len(keys)))
    assert run.check() == ()


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "é", ".hidden", "x" * 101, "a\n"])
def test_probe_and_stage_must_be_file_names(run, name):
    for key in (StageKey(probe=name, model="m", stage="s"), StageKey(probe="p", model="m", stage=name)):
        with pytest.raises(StoreError, match="cannot be a file name"):
            run.writer(key)
    assert not (run.path / "records").exists()


def test_a_column_that_older_records_lack_reads_as_null(run, monkeypatch):
    hints = schema.hints_of
    assert "got_covered" in schema.later_columns().names
    with monkeypatch.context() as older:
        older.setattr(columns, "hints_of", lambda kind: {k: v for k, v in hints(kind).items() if k != "covered"})
        with run.writer(KEY) as writer:
            writer.append(rows(0, 2))
    assert "got_covered" not in run.column_names(KEY)
    assert run.table(KEY, columns=["index", "got_covered"])["got_covered"].to_list() == [None, None]
    with run.writer(KEY) as writer:
        answer = WordAnswer(words=("a", "b"), logprobs=(-1.0, -2.0), covered=0.25)
        writer.append([Row(2, row.key, row.item, answer) for row in rows(2, 3)])
    assert run.table(KEY, columns=["got_covered"])["got_covered"].to_list() == [None, None, 0.25]
    (batch,) = run.batches(KEY, columns=["got_covered"])
    assert batch["got_covered"].to_list() == [None, None, 0.25]
    with pytest.raises(RecordsError, match="no column 'got_cover'"):
        run.table(KEY, columns=["got_cover"])


# -- columns


def as_columns(written):
    """The same rows as the engine hands them over: as columns, in two batches of one window."""
    items = Items.of([row.item for row in written])
    digests = columns.digests_of_tags(items.tags, len(items))
    for places in (np.arange(len(written))[::2], np.arange(len(written))[1::2]):
        yield columns.Recorded(
            indices=np.array([written[at].index for at in places]),
            keys=[written[at].key for at in places],
            items=items.take(places),
            digests=[digests[at] for at in places],
            answers=WordAnswers(
                ("a", "b"), np.array([written[at].answer.logprobs for at in places], np.float32).reshape(-1, 2)
            ),
        )


@settings(max_examples=30, deadline=None)
@given(
    texts=st.lists(TEXT, min_size=2, max_size=12),
    contexts=st.lists(TEXT, min_size=1, max_size=2),
    tags=st.lists(
        st.one_of(
            st.fixed_dictionaries({"n": st.integers(-(2**53), 2**53) | st.floats(), "t": TEXT}),
            st.fixed_dictionaries({"n": st.integers(-(2**53), 2**53)}),
            st.fixed_dictionaries({"t": TEXT, "dotted.name": st.booleans()}),
        ),
        min_size=2,
        max_size=12,
    ),
    logprobs=st.lists(st.tuples(FLOAT32, FLOAT32), min_size=12, max_size=12),
    shared=st.booleans(),
    small=st.booleans(),
)
def test_columns_are_recorded_as_rows_are(texts, contexts, tags, logprobs, shared, small, tmp_path_factory):
    run = RunFolder.create(tmp_path_factory.mktemp("columns") / "run", spec="", provenance={}, models=[])
    texts = texts * 3 if shared else texts  # one object in many rows
    written = [
        Row(
            at,
            key_of(at),
            Item(
                request=Fill(text=text, context=contexts[at % len(contexts)], words=("a", "b")),
                tags=tags[at % len(tags)],
            ),
            WordAnswer(words=("a", "b"), logprobs=logprobs[at % 12]),
        )
        for at, text in enumerate(texts)
    ]
    other = StageKey(probe="p", model="m", stage="columns")
    with run.writer(KEY, flush_seconds=1e9) as writer:
        for row in written:
            writer.append([row])
    with run.writer(other, flush_seconds=0 if small else 1e9) as writer:
        for recorded in as_columns(written):
            writer.append(recorded)
    one, two = run.table(KEY), run.table(other)
    assert two.select(one.columns).equals(one.cast(dict(two.schema)))
    assert all(run.done(other).tagged(row.index, digest_of_tags(row.item.tags)) for row in written)
    with run.lock():
        compacting.compact(run._intact(other), stage=other, run=run.path, run_id=run.run_id)
    assert RunFolder.open(run.path).table(other).select(two.columns).equals(two)


def test_a_batch_of_columns_that_cannot_be_stored_is_left_out(run):
    good = [Row(at, key_of(at), Item(request=Fill(text=f"{at}"), tags={"t": at}), ANSWER) for at in range(4)]
    bad = [Row(at, key_of(at), Item(request=Fill(text="\ud800"), tags={"t": at}), ANSWER) for at in range(4, 6)]
    with run.writer(KEY, flush_seconds=1e9) as writer:
        for recorded in as_columns(good):
            writer.append(recorded)
        for recorded in as_columns(bad):
            with pytest.raises(RecordsError, match="column ask_text has text that is not valid Unicode"):
                writer.append(recorded)
        with pytest.raises(RecordsError, match="an index is negative"):
            writer.append(dataclasses.replace(recorded, indices=np.array([-1])))
        with pytest.raises(RecordsError, match="column key cannot hold"):
            writer.append(dataclasses.replace(next(as_columns(good)), keys=[b"short", b"x" * 16]))
    assert run.table(KEY)["index"].to_list() == [0, 1, 2, 3]


@pytest.mark.parametrize("letters", ["y", "yz"])
def test_what_long_texts_take_ends_a_part(run, monkeypatch, letters):
    """A part stays small for whoever reads it, though a text that many rows share is written once."""
    monkeypatch.setattr(writer_module, "MAX_BYTES", 100_000)
    items = [Item(request=Fill(text="x", context=letter * 10_000), tags={}) for letter in letters]
    with run.writer(KEY, flush_seconds=1e9) as writer:
        for start in range(0, 40, 8):
            written = [Row(at, key_of(at), items[at % len(items)], ANSWER) for at in range(start, start + 8)]
            for recorded in as_columns(written):
                writer.append(recorded)
    assert len(parts(run)) == 4  # three batches of four texts are more than it may hold


ANSWER = WordAnswer(words=("a", "b"), logprobs=(-1.0, -2.0))
