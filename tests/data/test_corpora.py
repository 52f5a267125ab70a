"""Corpora are read document by document; every complaint names the file and the line."""

from __future__ import annotations

import gzip
import itertools
import json
import lzma
import os
from pathlib import Path

import pytest

from clinometer.data.corpora import Document, as_passages, choose_documents, corpus_name, read_corpus, split_corpus
from clinometer.errors import DataError
from clinometer.probes.counterfactual.questions import passages

REAL = Path(os.environ.get("CLINOMETER_TEST_DATA", "nowhere")) / "corpora"


def texts(path):
    return [document.text for document in read_corpus([path])]


def written(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def test_headings_of_a_wikipedia_dump_separate_documents(tmp_path):
    file = written(
        tmp_path / "w.txt", "\n= Ant =\nAnts work.\n\n== Nests ==\nIn the ground.\n\n= B =\nA letter.\n"
    )
    documents = list(read_corpus([file]))
    assert [(document.title, document.text) for document in documents] == [
        ("Ant", "Ants work.\n\n== Nests ==\nIn the ground."),
        ("B", "A letter."),
    ]
    assert [document.line for document in documents] == [3, 9]


def test_wikitext_section_headings_do_not_begin_a_document(tmp_path):
    assert len(texts(written(tmp_path / "w.txt", " = Ant = \n\n text \n\n = = Nests = = \n\n more \n"))) == 1


def test_blank_lines_separate_documents(tmp_path):
    assert texts(written(tmp_path / "p.txt", "one\nstill one\n\n\ntwo\n")) == ["one\nstill one", "two"]


def test_without_blank_lines_every_line_is_a_document(tmp_path):
    assert texts(written(tmp_path / "l.txt", "\n\none\r\ntwo\r\nthree\n\n")) == ["one", "two", "three"]


@pytest.mark.parametrize(("suffix", "pack"), [("", bytes), (".xz", lzma.compress), (".gz", gzip.compress)])
def test_json_lines_packed_or_not(tmp_path, suffix, pack):
    lines = [{"text": " Grüße ", "title": "Hello", "date": 1987}, {"text": "two"}]
    raw = "\ufeff" + "\n\n".join(json.dumps(line) for line in lines)
    file = written(tmp_path / f"c.jsonl{suffix}", pack(raw.encode()))
    assert [(document.text, document.title, document.line) for document in read_corpus([file])] == [
        ("Grüße", "Hello", 1),
        ("two", "", 3),
    ]


def test_several_files_are_one_corpus(tmp_path):
    files = [written(tmp_path / "a.txt", "one"), written(tmp_path / "b.jsonl", '{"text": "two"}')]
    assert [document.text for document in read_corpus(files)] == ["one", "two"]


@pytest.mark.parametrize(
    ("name", "content", "complaint"),
    [
        ("a.txt", "", "holds no text"),
        ("a.txt", " \n\n ", "holds no text"),
        ("a.txt", "= Title =\n\n", "holds no text"),
        ("a.jsonl", "\n", "holds no text"),
        ("a.txt", b"good\nb\xff", "line 2: byte 0xff is not UTF-8"),
        ("a.txt", b"good\nb\0", "line 2: a zero byte"),
        ("a.jsonl", '{"text": "a"}\n{"text": ', "line 2: not JSON"),
        ("a.jsonl", '{"text": "a"}\n["b"]', 'line 2: no "text"'),
        ("a.jsonl", '{"body": "a"}', 'line 1: no "text"'),
        ("a.jsonl", '{"text": 7}', 'line 1: no "text"'),
        ("a.jsonl", '{"text": "a", "title": 7}', '"title" is not text'),
        ("a.jsonl", '{"text": " "}', '"text" is empty'),
        ("a.txt.xz", b"no archive", "cannot be unpacked"),
        ("a.txt.gz", b"no archive", "cannot be unpacked"),
        ("a.txt.xz", lzma.compress(b"text " * 999)[:-20], "cannot be unpacked"),
        ("a.txt.gz", gzip.compress(b"text " * 999, mtime=0)[:-20], "cannot be unpacked"),
        ("a.csv", "a,b", "ends in '.csv'"),
        ("a.csv.xz", "a,b", "a corpus is a .txt or .jsonl file"),
    ],
)
def test_what_is_wrong_is_named(tmp_path, name, content, complaint):
    file = written(tmp_path / name, content)
    with pytest.raises(DataError, match=complaint) as raised:
        texts(file)
    assert str(file) in str(raised.value)


def test_a_file_that_is_not_there_or_a_folder(tmp_path):
    with pytest.raises(DataError, match="no file"):
        texts(tmp_path / "none.txt")
    (tmp_path / "folder.txt").mkdir()
    with pytest.raises(DataError, match="cannot be read"):
        texts(tmp_path / "folder.txt")


@pytest.fixture
def corpus(tmp_path):
    return written(tmp_path / "c.txt", "\n".join(f"document {number}" for number in range(200)))


def chosen(corpus, **options):
    return [document.text for document in choose_documents([corpus], **options).documents]


def test_smaller_shares_lie_within_larger_ones(corpus):
    shares = [chosen(corpus, fraction=fraction, seed=3) for fraction in (0.1, 0.25, 0.5, 1.0)]
    assert [len(share) for share in shares] == [20, 50, 100, 200]
    for smaller, larger in itertools.pairwise(shares):
        assert set(smaller) < set(larger)
    assert shares[-1] == texts(corpus)  # in the order of the corpus


def test_the_seed_decides_and_not_the_order_of_the_file(corpus, tmp_path):
    assert chosen(corpus, fraction=0.1, seed=1) != chosen(corpus, fraction=0.1, seed=2)
    turned = written(tmp_path / "turned.txt", "\n".join(reversed(texts(corpus))))
    assert set(chosen(turned, fraction=0.1, seed=1)) == set(chosen(corpus, fraction=0.1, seed=1))


def test_a_limit_comes_before_the_share(corpus):
    limited = choose_documents([corpus], fraction=0.5, seed=1, at_most=40)
    assert (len(limited.documents), limited.total) == (20, 200)
    assert {document.text for document in limited.documents} < set(chosen(corpus, at_most=40, seed=1))
    assert len(chosen(corpus, fraction=0.001)) == 1
    assert len(chosen(corpus, at_most=1000)) == 200


@pytest.mark.parametrize("options", [{"fraction": 0.0}, {"fraction": 1.1}, {"fraction": -1.0}, {"at_most": -1}])
def test_a_share_that_is_none(corpus, options):
    with pytest.raises(DataError, match="is not valid"):
        chosen(corpus, **options)


def test_the_digest_tells_other_texts_apart(corpus):
    whole = choose_documents([corpus])
    assert whole.digest == choose_documents([corpus]).digest
    assert whole.digest != choose_documents([corpus], fraction=0.99).digest


def both(paths, **options):
    split = split_corpus(paths, **options)
    return [each.text for each in split.training.documents], [each.text for each in split.held_out]


def test_every_share_and_limit_holds_out_the_same_documents(corpus):
    splits = [
        both([corpus], held_out=30, seed=3, **options)
        for options in (
            {},
            {"fraction": 0.5},
            {"fraction": 0.1},
            {"at_most": 50},
            {"at_most": 50, "fraction": 0.1},
        )
    ]
    # 170 documents are left to train on
    assert [(len(training), len(held)) for training, held in splits] == [
        (170, 30), (85, 30), (17, 30), (50, 30), (5, 30),
    ]  # fmt: skip
    assert all(held == splits[0][1] for _, held in splits)
    assert set(splits[0][0]) | set(splits[0][1]) == set(texts(corpus))
    for smaller, larger in ((1, 0), (2, 1), (3, 0), (4, 3)):
        assert set(splits[smaller][0]) < set(splits[larger][0])
    assert splits[0][1] != both([corpus], held_out=30, seed=4)[1]
    assert splits[0] == both([corpus], held_out=30, seed=3)


def test_what_is_held_out_is_the_same_in_another_order_and_more_hold_fewer(corpus, tmp_path):
    turned = written(tmp_path / "turned.txt", "\n".join(reversed(texts(corpus))))
    assert both([turned], held_out=30)[1] == both([corpus], held_out=30)[1][::-1]
    assert set(both([corpus], held_out=30)[1]) < set(both([corpus], held_out=31)[1])


def test_a_small_share_is_what_it_is_where_nothing_is_held_out(corpus):
    split = split_corpus([corpus], held_out=10, at_most=40, seed=1)
    assert split.training == choose_documents([corpus], at_most=40, seed=1)
    assert split.training.total == 200
    assert split_corpus([corpus], held_out=0, fraction=0.3).held_out == ()


@pytest.mark.parametrize("held_out", [1, 2, 3])
@pytest.mark.parametrize("seed", range(5))
def test_no_copy_of_what_is_held_out_is_trained_on(tmp_path, held_out, seed):
    lines = ["a", "b", "a", "c", "a", "d", "b"]
    training, held = both([written(tmp_path / "c.txt", "\n".join(lines))], held_out=held_out, seed=seed)
    assert len(held) == len(set(held)) == held_out
    assert training == [line for line in lines if line not in held]


def test_a_corpus_that_is_too_small_to_hold_out_from(tmp_path):
    small = written(tmp_path / "small.txt", "a\nb\na\na")
    assert len(both([small], held_out=1)[1]) == 1
    with pytest.raises(
        DataError, match=r"small\.txt': 2 different documents; expected at least 3, of which 2 are held"
    ):
        both([small], held_out=2)
    with pytest.raises(DataError, match="-1 documents held out is not valid"):
        both([small], held_out=-1)


def documents(*texts_of_them):
    return [Document(text=text, title="", source="", line=1) for text in texts_of_them]


def test_documents_as_passages_are_read_back_one_by_one(tmp_path):
    text = as_passages(documents("Ants.\n\n \n== Nests ==\n  In the ground. ", "One line", "é\r\n\r\nü"))
    assert text == "Ants.\n== Nests ==\nIn the ground.\n\nOne line\n\né\nü\n"
    file = written(tmp_path / "held.txt", text)
    assert passages(str(file)) == ("Ants.\n== Nests ==\nIn the ground.", "One line", "é\nü")
    # a single passage has no blank line to tell that its lines belong together
    file = written(tmp_path / "held.txt", as_passages(documents("Ants.\n\nBees.")))
    assert passages(str(file)) == ("Ants. Bees.",)


@pytest.mark.parametrize(
    ("text", "at_most", "expected"),
    [
        ("One two. Three four.", 20, "One two. Three four."),
        ("One two. Three four.", 19, "One two."),
        ("One two.\nThree four.", 19, "One two."),
        ("One two. Three four.", 8, "One"),  # one sentence so far, and not known to be whole
        ("One two three", 12, "One two"),
        ("One two three", 7, "One"),
        ("Abcdefgh", 5, "Abcde"),
    ],
)
def test_long_passages_are_cut(text, at_most, expected):
    found = as_passages(documents(text, "x"), at_most_characters=at_most)
    assert found == f"{expected}\n\nx\n"


def test_names():
    assert [corpus_name(name) for name in ("a/b.c.jsonl.xz", "news.txt", "x.txt.gz")] == ["b.c", "news", "x"]


@pytest.mark.skipif(not REAL.is_dir(), reason="needs corpora/ in the folder $CLINOMETER_TEST_DATA")
@pytest.mark.parametrize(
    ("name", "count"), [("abc.jsonl.xz", 3186), ("nyt-editorials.jsonl.xz", 498), ("reuters.jsonl.xz", 16703)]
)
def test_published_corpora_have_the_documents_they_should(name, count):
    assert sum(1 for _ in read_corpus([REAL / name])) == count
