"""Whether records are such as we write them: a part that somebody else made may ask for all of the memory."""

from __future__ import annotations

from typing import Any

from clinometer.errors import InputError
from clinometer.limits import require_reasonable_size
from clinometer.store.schema import KEY_BYTES

_SPARSE = 10  # places for each record …
_ANYWAY = 10_000_000  # … beyond this many: a run fills its stage from the front, and takes 25 bytes for each place


def require_records(metadata: Any) -> None:
    """Raise ValueError or OSError for a part without index and key, or too large to read, by its metadata."""
    schema = metadata.schema.to_arrow_schema()
    if schema.names[:1] != ["index"] or "key" not in schema.names:
        raise ValueError("it has no columns index and key")
    if str(schema.field("index").type) != "int64" or str(schema.field("key").type) != _KEY:
        raise ValueError("its columns index and key have other types")
    require_reasonable_size(metadata)
    for number in range(metadata.num_row_groups):
        found = metadata.row_group(number).column(0).statistics
        if found is None or not found.has_min_max or found.min < 0 or found.null_count != 0:
            raise ValueError("it does not say which places it holds")


def require_near(size: int, *, records: int) -> None:
    """Raise InputError where the highest place of a stage is far beyond the number of its records."""
    if size > max(_ANYWAY, _SPARSE * records):
        raise InputError(
            f"a record is at place {size - 1:,}, though its stage has {records:,} records; no run is made like "
            "that: take the part out that holds it, or get the run again"
        )


_KEY = f"fixed_size_binary[{KEY_BYTES}]"
