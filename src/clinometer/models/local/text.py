"""How text becomes token ids: the tokenizer asked, words as single tokens, and a request as one row of ids.

The tokenizer itself is asked how it writes text, so that no table of tokenizer families is needed.
"""

from __future__ import annotations

import enum
import re
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from clinometer.errors import RequestError
from clinometer.models.local.joining import Joined, Matrix, Part, Parts
from clinometer.questions import Requests
from clinometer.types import HIDDEN, MASK, WordQuery

Ids = npt.NDArray[np.int32]

# "[HIDDEN:old people]" is as many blanks as "old people" has tokens
BLANKS = re.compile(rf"({re.escape(MASK)}|{re.escape(HIDDEN[:-1])}(?::[^\[\]]+)?\])")
_CACHED_PARTS = 1 << 16
_CACHED_COLUMNS = 16
_NO_IDS: Ids = np.zeros(0, np.int32)
_NOTHING = Part(_NO_IDS)
# One thread measures the next requests while another prepares a batch, whose columns are known by then.
_ENCODING = threading.RLock()
_NO_LIMIT = 10**9  # tokenizers write 10**30 for "no limit known"
# These count positions from the padding token's id on, so that many rows of the position matrix are never used.
_OFFSET_FAMILIES = frozenset({"roberta", "xlm-roberta", "xlm-roberta-xl", "camembert", "mpnet", "data2vec-text"})
PIECE = "##"  # how the name of a token that is not a whole word begins, in every family
# A part is encoded behind one of these words, whose own tokens are then taken off: that is how a tokenizer writes
# what follows a space inside a sentence, whatever its rules for the beginning of a text.
_ANCHORS = ("the", "a", "0", ".")


class Tokens:
    """A tokenizer, asked the few things the adapters need. Parts are encoded without special tokens.

    `start` and `end` are the special tokens that the family puts around a text, `end_types` the segments of those
    at the end (XLNet's last token has a segment of its own).
    """

    def __init__(self, tokenizer: Any) -> None:
        self.tokenizer = tokenizer
        self.special: frozenset[int] = frozenset(tokenizer.all_special_ids)
        # In a text these strings would become control tokens; a single character cannot be broken and is let be.
        self._special_texts = sorted(
            {
                str(token)
                for token in tokenizer.added_tokens_decoder.values()
                if token.special and len(str(token)) > 1
            }
            | {token for token in tokenizer.all_special_tokens if len(token) > 1},
            key=len,
            reverse=True,
        )
        bare = self._encode(["the"])[0]
        framed = tokenizer("the", return_token_type_ids=True)
        ids = list(framed["input_ids"])
        at = next(at for at in range(len(ids)) if ids[at : at + len(bare)] == bare)
        self.start: tuple[int, ...] = tuple(ids[:at])
        self.end: tuple[int, ...] = tuple(ids[at + len(bare) :])
        self.end_types: tuple[int, ...] = tuple(framed["token_type_ids"][at + len(bare) :])
        self._anchor, self._anchor_ids = self._choose_anchor()

    def first(self, parts: Sequence[str]) -> list[list[int]]:
        """Encode parts as they read at the beginning of a text."""
        return self._encode(parts)

    def following(self, parts: Sequence[str]) -> list[list[int]]:
        """Encode parts as they read after a space inside a sentence."""
        skip = len(self._anchor_ids)
        return [ids[skip:] for ids in self._encode([f"{self._anchor} {part}" for part in parts])]

    def as_text(self, part: str) -> str:
        """Break every special token that is written out in the part by a space, so that it stays text.

        The tokenizers' own switch for this does not hold for sentencepiece models: their vocabulary contains the
        special tokens.
        """
        for special in self._special_texts:
            if special in part:
                part = part.replace(special, f"{special[0]} {special[1:]}")
        return part

    def _encode(self, parts: Sequence[str]) -> list[list[int]]:
        if not parts:
            return []
        encoded = self.tokenizer(
            list(parts),
            add_special_tokens=False,
            return_attention_mask=False,
            return_token_type_ids=False,
            verbose=False,
        )
        return list(encoded["input_ids"])

    def _choose_anchor(self) -> tuple[str, list[int]]:
        for anchor in _ANCHORS:
            alone, followed = self._encode([anchor, f"{anchor} {anchor}"])
            if alone and followed[: len(alone)] == alone and not self.special.intersection(alone):
                return anchor, alone
        # a vocabulary without these: unknown tokens serve as well
        return _ANCHORS[0], self._encode([_ANCHORS[0]])[0]


class Vocabulary:
    """Words as single tokens, and tokens as words.

    A word's token is the one that it becomes after a space inside a sentence: "Ġgreat", "▁great" or "great".
    """

    def __init__(self, tokenizer: Any) -> None:
        tokens = self._tokens = Tokens(tokenizer)
        self._ids: dict[str, int | None] = {}
        self._names: dict[int, str] = {}
        self._size = len(tokenizer)
        # What a token looks like behind another one tells whether it begins a word.
        self._before = tokens.first(["the"])[0]
        self._before_text = self._decode([self._before])[0]

    @property
    def special(self) -> frozenset[int]:
        """The tokens that are not text: mask, padding, separators, unknown."""
        return self._tokens.special

    @property
    def size(self) -> int:
        """The number of tokens; a model's matrix may have more rows, which mean nothing."""
        return self._size

    def id_of(self, word: str) -> int | None:
        """Return the one token that the word becomes inside a sentence; None if it is not exactly one."""
        return self.ids_of([word])[0]

    def ids_of(self, words: Sequence[str]) -> list[int | None]:
        """Return the token of each word, as `id_of` does."""
        new = [word for word in dict.fromkeys(words) if word not in self._ids]
        for word, ids in zip(new, self._tokens.following(new), strict=True):
            one = len(ids) == 1 and ids[0] not in self.special and bool(word.strip())
            self._ids[word] = ids[0] if one else None
        return [self._ids[word] for word in words]

    def word_of(self, token_id: int) -> str:
        """Return the word that a token is; for a piece of a word, "##" and how the tokenizer prints it."""
        return self.names_of([token_id])[0]

    def names_of(self, token_ids: Sequence[int]) -> list[str]:
        """Return the name of each token, as `word_of` does."""
        new = [token for token in dict.fromkeys(token_ids) if token not in self._names]
        if new:
            self._learn(new)
        return [self._names[token] for token in token_ids]

    def is_word(self, token_id: int) -> bool:
        """Tell whether the token is a whole word: asked for by its name, it is found again."""
        return self._ids.get(self.word_of(token_id)) == token_id

    def _learn(self, token_ids: Sequence[int]) -> None:
        texts = self._decode([[*self._before, token] for token in token_ids])
        words = [text.removeprefix(self._before_text).strip() for text in texts]
        printed = self._tokens.tokenizer.convert_ids_to_tokens(list(token_ids))
        for token, word, raw, found in zip(token_ids, words, printed, self.ids_of(words), strict=True):
            piece = f"{PIECE}{word}" if raw == f"{PIECE}{word}" else f"{PIECE}{raw}"
            self._names[token] = word if found == token else piece

    def _decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        return [
            self._tokens.tokenizer.decode(list(row), skip_special_tokens=False, clean_up_tokenization_spaces=False)
            for row in rows
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Encoded:
    """A request as token ids, special tokens included; `blank` is the place of the word that is asked for."""

    ids: Ids
    blank: int = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Padded:
    """Rows of different lengths in one matrix; `attention` is 1 on tokens and 0 on padding."""

    ids: npt.NDArray[np.int64]
    attention: npt.NDArray[np.int64]


class _Role(enum.Enum):
    """What a part is: a text with a blank, a text that is to be continued, or what comes before one."""

    FILL = enum.auto()
    PREFIX = enum.auto()
    CONTEXT = enum.auto()


class _Key(NamedTuple):
    """By what a part is known again."""

    role: _Role
    after_space: bool
    text: str


class TextEncoder:
    """Encodes requests for one tokenizer, each distinct part once."""

    def __init__(self, tokenizer: Any, *, window: int) -> None:
        self.tokens = Tokens(tokenizer)
        self.window = window
        self._mask_id: int | None = tokenizer.mask_token_id
        self._mask_text: str = tokenizer.mask_token or ""
        self._separator: int | None = tokenizer.sep_token_id
        self._parts: OrderedDict[_Key, Part] = OrderedDict()
        # columns of parts by the object that holds their texts, which is kept with them
        self._columns: OrderedDict[tuple[int, _Role, bool], tuple[tuple[str, ...], Parts]] = OrderedDict()

    def fill(self, queries: Sequence[WordQuery]) -> list[Encoded]:
        """Encode texts with one `MASK` each, between the special tokens of the family."""
        return _encoded(self._join(queries, _Role.FILL, end=self.tokens.end)) if queries else []

    def fill_matrix(self, queries: Sequence[WordQuery], *, pad_id: int) -> Matrix:
        """Encode as `fill` does, into one matrix."""
        return self._join(queries, _Role.FILL, end=self.tokens.end).matrix(pad_id=pad_id)

    def fill_lengths(self, queries: Sequence[WordQuery]) -> list[int]:
        """Return how many ids `fill` gives for each of these; raises as it does."""
        return self._join(queries, _Role.FILL, end=self.tokens.end).lengths.tolist() if queries else []

    def prefixes(self, queries: Sequence[WordQuery]) -> list[Encoded]:
        """Encode texts that are to be continued: no blanks are read, and no special tokens come after them."""
        return _encoded(self._join(queries, _Role.PREFIX, end=()), blanks=False) if queries else []

    def context(self, context: str) -> Ids:
        """Encode what comes before a text, without special tokens; spaces at its end are dropped."""
        if not context.rstrip():
            return _NO_IDS
        key = _Key(_Role.CONTEXT, False, context.rstrip())
        return self._encode_parts([key])[key].ids

    def _join(self, queries: Sequence[WordQuery], role: _Role, *, end: tuple[int, ...]) -> Joined:
        """Return what each request is joined from; `end` are the special tokens that come after it."""
        requests = Requests.of(queries)
        context, join, text = (requests.columns[name] for name in ("context", "join", "text"))
        contexts = self._parts_of(context.values, _Role.CONTEXT, after_space=False)
        present = np.array([bool(value.strip()) for value in context.values])[context.codes]
        separated = np.array([value == "separator" for value in join.values])[join.codes] & present
        after_space = present & ~separated
        codes = text.codes.astype(np.intp)
        if after_space.all() or not after_space.any():
            texts = self._parts_of(text.values, role, after_space=bool(after_space[0]))
        else:
            texts = self._parts_of(text.values, role, after_space=False)
            texts = texts.then(self._parts_of(text.values, role, after_space=True))
            codes += len(text.values) * after_space
        if separated.any() and self._separator is None:
            first = text.values[text.codes[int(separated.argmax())]]
            raise RequestError(
                f"this model has no separator token to put before {quote(first)}; join with a space"
            )
        around = len(self.tokens.start) + len(end)
        lengths = contexts.lengths[context.codes]
        starts = contexts.starts[context.codes]
        if self.window:
            room = self.window - around - texts.lengths[codes] - separated
            separated &= room > 0  # a text that leaves no room for its context comes alone
            kept = np.clip(room, 0, lengths)
            starts, lengths = starts + lengths - kept, kept
        joined = Joined(
            start=self.tokens.start,
            end=end,
            contexts=contexts,
            context_starts=starts,
            context_lengths=lengths,
            separator=self._separator if self._separator is not None else -1,
            separated=separated,
            texts=texts,
            text_codes=codes,
        )
        if self.window and (long := joined.lengths > self.window).any():
            at = int(long.argmax())
            raise RequestError(
                f"a text of {joined.lengths[at]} tokens is longer than the model's window of {self.window}:"
                f" {quote(text.values[text.codes[at]])}; shorten it (only the context is cut)"
            )
        return joined

    def _parts_of(self, texts: tuple[str, ...], role: _Role, *, after_space: bool) -> Parts:
        """Encode the values of a column, unless they were encoded before; a blank context has no ids."""
        known = (id(texts), role, after_space)
        if (found := self._columns.get(known)) is not None:
            return found[1]
        with _ENCODING:
            # spaces at the end of a context are the join's
            written = [text.rstrip() for text in texts] if role is _Role.CONTEXT else texts
            keys = [_Key(role, after_space, text) for text in written]
            parts = self._encode_parts(dict.fromkeys(key for key in keys if key.text or role is not _Role.CONTEXT))
            column = Parts.of([parts.get(key, _NOTHING) for key in keys])
            self._columns[known] = (texts, column)
            while len(self._columns) > _CACHED_COLUMNS:
                self._columns.popitem(last=False)
        return column

    def _with_mask(self, text: str) -> str:
        pieces = BLANKS.split(text)
        if pieces[1::2].count(MASK) != 1:
            raise RequestError(
                f"expected exactly one {MASK} in a text, found {pieces[1::2].count(MASK)}: {quote(text)};"
                f" write {MASK} where the word is asked for (and {HIDDEN} for a blank that is not)"
            )
        pieces[::2] = [self.tokens.as_text(piece) for piece in pieces[::2]]
        pieces[1::2] = [self._mask_text * self._masks(blank) for blank in pieces[1::2]]
        return "".join(pieces)

    def _masks(self, blank: str) -> int:
        """Return how many mask tokens a blank is: one, or as many as the text that it hides has tokens."""
        hidden = blank[len(HIDDEN) : -1]
        return max(1, len(self.tokens.following([hidden])[0])) if hidden else 1

    def _blank(self, text: str, ids: Ids) -> int:
        """Return the place of `MASK` among the ids of a text."""
        blanks = BLANKS.findall(text)
        masks = [self._masks(blank) for blank in blanks]
        places = np.flatnonzero(ids == self._mask_id)
        if len(places) != sum(masks):
            raise RequestError(
                f"the tokenizer reads {len(places)} masks where the text has {sum(masks)} blanks:"
                f" {quote(text)}; remove what looks like a mask token"
            )
        return int(places[sum(masks[: blanks.index(MASK)])])

    def _encode_parts(self, keys: Iterable[_Key]) -> Mapping[_Key, Part]:
        found: dict[_Key, Part] = {}
        missing: dict[bool, list[_Key]] = {False: [], True: []}
        for key in keys:
            if key in self._parts:
                self._parts.move_to_end(key)
                found[key] = self._parts[key]
            else:
                missing[key.after_space].append(key)
        for after_space, some in missing.items():
            texts = [self._written(key) for key in some]
            encoded = self.tokens.following(texts) if after_space else self.tokens.first(texts)
            for key, tokens in zip(some, encoded, strict=True):
                ids = np.asarray(tokens, np.int32)
                blank = self._blank(key.text, ids) if key.role is _Role.FILL else -1
                self._parts[key] = found[key] = Part(ids, blank)
        while len(self._parts) > _CACHED_PARTS:
            self._parts.popitem(last=False)
        return found

    def _written(self, key: _Key) -> str:
        """Return what the tokenizer is given for a part."""
        text = self._with_mask(key.text) if key.role is _Role.FILL else self.tokens.as_text(key.text)
        return text.lstrip() if key.after_space else text


def window_of(tokenizer: Any, config: Any) -> int:
    """Return the longest sequence, in tokens, that a model reads; 0 where no limit is known."""
    limits = [tokenizer.model_max_length]
    positions = getattr(config, "max_position_embeddings", None)
    if isinstance(positions, int) and positions > 0:
        offset = config.pad_token_id + 1 if config.model_type in _OFFSET_FAMILIES else 0
        limits.append(positions - offset)
    return min((int(limit) for limit in limits if 0 < limit < _NO_LIMIT), default=0)


def _encoded(joined: Joined, *, blanks: bool = True) -> list[Encoded]:
    """Return rows of ids one by one."""
    matrix = joined.matrix(pad_id=0)
    return [
        Encoded(ids=row[:length].astype(np.int32), blank=blank if blanks else -1)
        for row, length, blank in zip(matrix.ids, matrix.lengths.tolist(), matrix.blanks.tolist(), strict=True)
    ]


def pad(rows: Sequence[Ids], *, pad_id: int, left: bool = False) -> Padded:
    """Put rows of ids into one matrix, filled up at the right (or left) with the padding token."""
    lengths = np.array([len(row) for row in rows])[:, None]
    width = int(lengths.max())
    ids = np.full((len(rows), width), pad_id, np.int64)
    places = np.arange(width)
    attention = (places >= width - lengths if left else places < lengths).astype(np.int64)
    for index, row in enumerate(rows):
        ids[index, width - len(row) if left else 0 :][: len(row)] = row
    return Padded(ids=ids, attention=attention)


def quote(text: str) -> str:
    """Quote a text in an error message, a long one shortened."""
    return repr(text if len(text) <= 80 else f"{text[:55]} … {text[-22:]}")
