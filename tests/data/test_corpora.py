"""Corpora are read document by document; every complaint names the file and the line."""

from __future__ import annotations

import gzip
import itertools
import json
import lzma
import os
from pathlib import Path

import pytest

from clinometer.data.corpora import choose_documents, corpus_name, read_corpus
from clinometer.errors import DataError

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
        ("a.jsonl", '{"text": "a"}\n{"text": ', "line 2: no JSON"),
        ("a.jsonl", '{"text": "a"}\n["b"]', 'line 2: no "text"'),
        ("a.jsonl", '{"body": "a"}', 'line 1: no "text"'),
        ("a.jsonl", '{"text": 7}', 'line 1: no "text"'),
        ("a.jsonl", '{"text": "a", "title": 7}', '"title" is no text'),
        ("a.jsonl", '{"text": " "}', '"text" is empty'),
        ("a.txt.xz", b"no archive", "cannot be unpacked"),
        ("a.txt.gz", b"no archive", "cannot be unpacked"),
        ("a.txt.xz", lzma.compress(b"text " * 999)[:-20], "cannot be unpacked"),
        ("a.txt.gz", gzip.compress(b"text " * 999, mtime=0)[:-20], "cannot be unpacked"),
        ("a.csv", "a,b", "ends in '.csv'"),
        ("a.csv.xz", "a,b", "a corpus is a file .txt or .jsonl"),
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


def test_names():
    assert [corpus_name(name) for name in ("a/b.c.jsonl.xz", "news.txt", "x.txt.gz")] == ["b.c", "news", "x"]


@pytest.mark.skipif(not REAL.is_dir(), reason="needs corpora/ in the folder $CLINOMETER_TEST_DATA")
@pytest.mark.parametrize(
    ("name", "count"), [("abc.jsonl.xz", 3186), ("nyt-editorials.jsonl.xz", 498), ("reuters.jsonl.xz", 16703)]
)
def test_published_corpora_have_the_documents_they_should(name, count):
    assert sum(1 for _ in read_corpus([REAL / name])) == count
