"""Corpora: the texts that a model is trained on, read document by document from the user's files.

`.jsonl`: one document per line, an object with `text` and perhaps `title`; other keys are ignored.
`.txt`: if the first line of text is a heading `= Title =`, as in dumps of Wikipedia, every such heading begins a
document (`== Section ==` does not). Otherwise blank lines separate the documents; without any, every line is one.
Both may be compressed as `.xz` or `.gz`.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import lzma
import os
import re
import zlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Literal

from clinometer import limits
from clinometer.data.wording import split_sentences
from clinometer.errors import DataError

_HEADING = re.compile(r"\s*= (?P<title>[^=\s]|[^=\s].*[^=\s]) =\s*")
_COMPRESSED = (".xz", ".gz")
_LONGEST_LINE = 64_000_000  # bytes
_KINDS = (".txt", ".jsonl")

Layout = Literal["headings", "paragraphs", "lines"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One text of a corpus, and the line on which it begins."""

    text: str
    title: str
    source: str
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """The documents chosen from a corpus, in its order, and how many the corpus has."""

    documents: tuple[Document, ...]
    total: int

    @property
    def digest(self) -> str:
        """The SHA-256 of the chosen texts: it tells whether two trainings used the same ones."""
        digest = hashlib.sha256()
        for document in self.documents:
            digest.update(document.text.encode() + b"\0")
        return digest.hexdigest()


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusSplit:
    """A corpus in two parts: documents to train on, and documents held out to measure on."""

    training: Selection
    held_out: tuple[Document, ...]


def corpus_name(path: str | os.PathLike[str]) -> str:
    """Return the name of a corpus: its file's name without the endings.

    >>> corpus_name("news/reuters.jsonl.xz")
    'reuters'
    """
    name = Path(path)
    while name.suffix in (*_COMPRESSED, *_KINDS):
        name = name.with_suffix("")
    return name.name


def read_corpus(paths: Sequence[str | os.PathLike[str]]) -> Iterator[Document]:
    """Read the documents of one or more files, one after the other, without keeping them all in memory.

    Raises DataError with the file and the line for anything that is not text, not JSON, or empty.
    """
    for given in paths:
        path, kind = Path(given), _kind(given)
        found = False
        for document in _read_jsonl(path) if kind == ".jsonl" else _read_txt(path):
            found = True
            yield document
        if not found:
            raise DataError(f"'{path}' holds no text; expected at least one document")


def choose_documents(
    paths: Sequence[str | os.PathLike[str]], *, fraction: float = 1.0, seed: int = 0, at_most: int = 0
) -> Selection:
    """Choose a random share of a corpus.

    Which documents are chosen depends only on the seed and on their texts. Smaller shares are part of larger ones
    with the same seed: 10 % ⊂ 25 % ⊂ 50 % ⊂ 100 %. `at_most` limits the corpus to that many documents (0: no
    limit) before the fraction is taken; at least one document is chosen.
    """
    return split_corpus(paths, held_out=0, fraction=fraction, seed=seed, at_most=at_most).training


def split_corpus(
    paths: Sequence[str | os.PathLike[str]],
    *,
    held_out: int,
    fraction: float = 1.0,
    at_most: int = 0,
    seed: int = 0,
) -> CorpusSplit:
    """Hold documents out of a corpus, and choose a random share of the others as `choose_documents` does.

    Which documents are held out depends only on the seed, their number and the texts of the corpus: they are the
    same for every fraction and limit. No two have the same text, and no copy of one is chosen to train on.
    """
    if not 0 < fraction <= 1:
        raise DataError(f"the fraction {fraction:g} of a corpus is not valid; expected more than 0 and at most 1")
    for count, what in ((at_most, "at most"), (held_out, "held out")):
        if count < 0:
            raise DataError(f"{count} documents {what} is not valid; expected 0 or more")
    # two passes: the first keeps 16 bytes of each document, the second the documents that are chosen
    ranks = [
        (hashlib.blake2b(f"{seed}\0{document.text}".encode(), digest_size=16).digest(), index)
        for index, document in enumerate(read_corpus(paths))
    ]
    total = len(ranks)
    ranks.sort()
    first_copies = [
        rank for rank, before in zip(ranks, [None, *ranks], strict=False) if not before or before[0] != rank[0]
    ]
    if held_out and len(first_copies) <= held_out:
        names = ", ".join(f"'{path}'" for path in paths)
        raise DataError(
            f"{names}: {len(first_copies):,} different documents; expected at "
            f"least {held_out + 1:,}, of which {held_out:,} are held out: give a larger corpus, or hold out fewer"
        )
    # from the end of the order: then a small share is the same whether documents are held out or not
    held = first_copies[len(first_copies) - held_out :]
    if held:
        ranks = [rank for rank in ranks if rank < held[0]]
    pool = min(len(ranks), at_most) if at_most else len(ranks)
    training = {index for _, index in ranks[: max(1, round(fraction * pool))]}
    measured = {index for _, index in held}
    chosen: list[Document] = []
    kept: list[Document] = []
    for index, document in enumerate(read_corpus(paths)):
        if index in training:
            chosen.append(document)
        elif index in measured:
            kept.append(document)
    return CorpusSplit(training=Selection(documents=tuple(chosen), total=total), held_out=tuple(kept))


def as_passages(documents: Sequence[Document], *, at_most_characters: int = 4000) -> str:
    """Return documents as one text, with a blank line between them and none inside them.

    This is the format that audits read from a user's text file: each document is a passage. A longer one is cut at
    the end of a sentence, or of a word if it is a single sentence.
    """
    passages = [
        _cut("\n".join(line.strip() for line in document.text.splitlines() if line.strip()), at_most_characters)
        for document in documents
    ]
    # without a blank line between passages, each line would be read as one
    return (passages[0].replace("\n", " ") if len(passages) == 1 else "\n\n".join(passages)) + "\n"


def _cut(text: str, at_most: int) -> str:
    if len(text) <= at_most:
        return text
    beginning = text[: at_most + 1].rstrip()
    whole_sentences = beginning.removesuffix(split_sentences(beginning)[-1]).rstrip()
    return whole_sentences or " ".join(beginning.split(" ")[:-1]).rstrip() or text[:at_most]


def _kind(given: str | os.PathLike[str]) -> str:
    path = Path(given)
    kind = path.with_suffix("").suffix if path.suffix in _COMPRESSED else path.suffix
    if kind not in _KINDS:
        raise DataError(
            f"'{path}' ends in '{path.suffix}'; a corpus is a .txt or .jsonl file, perhaps with .xz or .gz"
        )
    return kind


def _read_jsonl(path: Path) -> Iterator[Document]:
    for number, line in _lines(path):
        if not line.strip():
            continue
        where = f"'{path}', line {number}"
        try:
            entry = limits.parse_json(line)
        except ValueError as error:
            raise DataError(f"{where}: not JSON ({error}); expected one object with a text per line") from None
        if not isinstance(entry, dict) or not isinstance(entry.get("text"), str):
            raise DataError(f'{where}: no "text"; expected {{"text": "…"}}, one document per line')
        title = entry.get("title") or ""
        if not isinstance(title, str):
            raise DataError(f'{where}: "title" is not text; expected "title": "…", or none')
        if not entry["text"].strip():
            raise DataError(f'{where}: "text" is empty; fill it or remove the line')
        yield Document(text=entry["text"].strip(), title=title.strip(), source=str(path), line=number)


def _read_txt(path: Path) -> Iterator[Document]:
    layout = _layout(path)
    gathered: list[str] = []
    title, begins = "", 1

    def document() -> Iterator[Document]:
        text = "\n".join(gathered).strip()
        gathered.clear()
        if text:
            yield Document(text=text, title=title, source=str(path), line=begins)

    for number, line in _lines(path):
        heading = _HEADING.fullmatch(line) if layout == "headings" else None
        if heading or (layout != "headings" and not line.strip()):
            yield from document()
            title = heading["title"] if heading else ""
            continue
        if not gathered:
            begins = number
        gathered.append(line.strip())
        if layout == "lines":
            yield from document()
    yield from document()


def _layout(path: Path) -> Layout:
    """Return what separates the documents of a text file."""
    text_seen = blank_after_text = False
    for _, line in _lines(path):
        if not line.strip():
            blank_after_text = text_seen
        elif not text_seen and _HEADING.fullmatch(line):
            return "headings"
        elif blank_after_text:
            return "paragraphs"
        else:
            text_seen = True
    return "lines"


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the lines of a UTF-8 file with their numbers; a byte-order mark at the start is dropped."""
    with _opened(path) as file:
        lines = iter(lambda: file.readline(_LONGEST_LINE + 1), b"")
        for number, raw in enumerate(lines, start=1):
            if len(raw) > _LONGEST_LINE:
                raise DataError(f"'{path}', line {number}: more than {_LONGEST_LINE:,} bytes; expected text")
            if b"\0" in raw:
                raise DataError(f"'{path}', line {number}: a zero byte; expected UTF-8 text")
            try:
                yield number, raw.decode("utf-8-sig" if number == 1 else "utf-8").rstrip("\r\n")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"'{path}', line {number}: byte 0x{raw[error.start]:02x} is not UTF-8; save it as UTF-8 text"
                ) from None


@contextmanager
def _opened(path: Path) -> Iterator[IO[bytes]]:
    try:
        with limits.open_plain(path) as file:
            packed = path.suffix in _COMPRESSED
            yield io.BufferedReader(limits.Unpacked(file, suffix=path.suffix)) if packed else file
    except FileNotFoundError:
        raise DataError(
            f"no file '{path}'; give the path of a corpus (.txt or .jsonl, perhaps compressed as .xz or .gz)"
        ) from None
    except (lzma.LZMAError, zlib.error, gzip.BadGzipFile, EOFError) as error:
        raise DataError(
            f"'{path}' cannot be unpacked ({error}): it is damaged, cut short or not {path.suffix}; copy it again"
        ) from None
    except OSError as error:
        raise DataError(
            f"'{path}' cannot be read ({error.strerror or error}); give a file that you may read"
        ) from None
