"""Asks a tokenizer how it writes text, so that no table of tokenizer families is needed."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clinometer.errors import ModelError
from clinometer.models.reasons import reason
from clinometer.models.source import has_vocabulary

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


def load_tokenizer(folder: Path, *, trust_remote_code: bool) -> Any:
    """Load the tokenizer of a model folder; a folder without a sound one is an error."""
    from transformers import AutoTokenizer

    if not has_vocabulary(folder) and not trust_remote_code:
        raise ModelError(
            f"no tokenizer in {str(folder)!r}: expected tokenizer.json, vocab.txt or a sentencepiece .model;"
            " save it there with save_pretrained()"
        )
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, trust_remote_code=trust_remote_code)
        if not isinstance(tokenizer.model_max_length, int | float):
            raise ValueError(f"its model_max_length is {tokenizer.model_max_length!r}, which is no number")
    except Exception as error:  # damaged files make the libraries raise anything, even a bare Exception
        raise ModelError(
            f"no tokenizer can be loaded from {str(folder)!r} ({reason(error)});"
            " save it there with save_pretrained()"
        ) from error
    return tokenizer
