"""The records of a stage that had nothing to ask: no rows, but columns of the right types."""

from __future__ import annotations

import typing
from collections.abc import Iterable

import polars as pl
import pyarrow as pa

from clinometer.models.protocols import ANSWERS
from clinometer.store.schema import KEY_BYTES, arrow_type


def empty_records(columns: Iterable[str]) -> pl.DataFrame:
    """Return an empty table with these columns of records; a tag, whose type nobody knows, is text.

    >>> [str(kind) for kind in empty_records(["index", "got_logprobs", "tag_word"]).dtypes]
    ['Int64', 'List(Float32)', 'String']
    """
    types = {"index": pa.int64(), "key": pa.binary(KEY_BYTES)}
    for question, answer in ANSWERS.items():
        for prefix, kind in (("ask", question), ("got", answer)):
            for name, hint in typing.get_type_hints(kind).items():
                types.setdefault(f"{prefix}_{name}", arrow_type(hint))
    return pl.DataFrame(pa.schema([(name, types.get(name, pa.string())) for name in columns]).empty_table())
