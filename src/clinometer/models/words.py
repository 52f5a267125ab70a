"""Which token of a model's vocabulary is which word."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from clinometer.models.tokens import Tokens

PIECE = "##"  # how the name of a token that is not a whole word begins, in every family


class Vocabulary:
    """Words as single tokens, and tokens as words.

    A word's token is the one that stands for it after a space inside a sentence: "Ġgreat", "▁great" or "great".
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
        """The tokens that are no text: mask, padding, separators, unknown."""
        return self._tokens.special

    @property
    def size(self) -> int:
        """The number of tokens; a model's matrix may have more rows, which stand for nothing."""
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
        """Return the word that a token stands for; for a piece of a word, "##" and how the tokenizer prints it."""
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
