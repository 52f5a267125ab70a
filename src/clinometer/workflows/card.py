"""A run as a part of a model card."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from clinometer.errors import InputError
from clinometer.limits import read_limited
from clinometer.probes import PROBES
from clinometer.report import read_page
from clinometer.report.card import CardSource, card_model, written_into
from clinometer.store import RunFolder, findings_digest, open_any


@dataclass(frozen=True, slots=True, kw_only=True)
class CardRequest:
    """Whose card, from which run or bundle; `readme` is the file that it goes into, which may not be there yet."""

    run: RunFolder | Path
    model: str = ""
    readme: Path | None = None


def run_card(request: CardRequest) -> str:
    """Return the README with section and metadata; a new one where none is given, or there."""
    try:
        import huggingface_hub  # noqa: F401
    except ImportError:
        raise InputError("a model card needs huggingface_hub; run `pip install huggingface_hub`") from None
    run = request.run if isinstance(request.run, RunFolder) else open_any(request.run)
    found = run.read_findings()
    page = read_page(run, probes={}, findings=found, evidence=False)
    source = CardSource(
        name=str(run.origin or run.path),
        digest=run.digest or findings_digest(found),
        created=page.created,
        profile=page.profile,
        findings=found,
        models=run.models,
        titles={name: probe.title for name, probe in PROBES.items()},
    )
    model = card_model(source, request.model)
    return written_into(_text_of(request.readme), source, model)


def _text_of(readme: Path | None) -> str:
    if readme is None or not readme.exists():
        return ""
    try:
        return read_limited(readme).decode()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{readme} cannot be read: {getattr(error, 'strerror', None) or 'not UTF-8'}") from error
