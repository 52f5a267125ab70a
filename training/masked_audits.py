"""What two audits say of a masked model: the groups that stereotypes singles out, and the difference of stigma."""

from __future__ import annotations

import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

import clinometer
from clinometer.probes.kit import is_found
from clinometer.types import ModelSpec, Profile

SHIPPED, NEW = "builtin:masked", "new"


@dataclass(frozen=True, slots=True, kw_only=True)
class Said:
    """What is said of one model; the difference is that of negative words, stigmatized conditions less others."""

    more_negative: tuple[str, ...]
    more_positive: tuple[str, ...]
    stigma: float

    @property
    def groups(self) -> int:
        """How many groups are singled out."""
        return len(self.more_negative) + len(self.more_positive)


def ask(model: Path, *, profile: Profile = "standard") -> dict[str, Said]:
    """Audit the model and the shipped one in a run of their own."""
    with tempfile.TemporaryDirectory() as scratch:
        run = clinometer.audit(
            [SHIPPED, ModelSpec(name=str(model), alias=NEW)],
            probes=["stereotypes", "stigma"],
            profile=profile,
            folder=Path(scratch) / "run",
        )
        return {name: _said(run, name) for name in (SHIPPED, NEW)}


def _said(run: clinometer.Run, model: str) -> Said:
    tables = {table.name: table for findings in run.findings for table in findings.tables}
    single = [row for row in tables["negativity"].rows if row.labels["model"] == model and is_found(row)]
    (stigma,) = (v for v in run.verdicts if v.model == model and v.aspect == "attitude to stigmatized conditions")
    return Said(
        more_negative=tuple(str(row.labels["group"]) for row in single if row.estimate > 0),
        more_positive=tuple(str(row.labels["group"]) for row in single if row.estimate < 0),
        stigma=stigma.estimate,
    )


def says_more(said: Mapping[str, Said]) -> dict[str, bool]:
    """Return, for each audit, whether it says more of the new model than of the shipped one.

    >>> quiet = Said(more_negative=(), more_positive=(), stigma=0.06)
    >>> says_more({SHIPPED: quiet, NEW: quiet})
    {'more groups singled out': False, 'larger stigma difference': False}
    """
    shipped, new = said[SHIPPED], said[NEW]
    return {
        "more groups singled out": new.groups > shipped.groups,
        "larger stigma difference": new.stigma > shipped.stigma,
    }


def readable(said: Mapping[str, Said]) -> dict[str, dict[str, object]]:
    """Return it for JSON."""
    return {name: asdict(each) for name, each in said.items()}
