"""A section for a model card, and its `model-index` metadata: what a run found, where the model's users look.

The metadata is made and read by `huggingface_hub`'s own classes. A README that is there keeps every byte but those
of our section, which is between two comments, and of the key `model-index`, in which results of others stay.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from clinometer.errors import InputError, nearest
from clinometer.report.rounding import count_text
from clinometer.report.verdict_files import verdict_table
from clinometer.types import Findings, ModelInfo, Verdict

if TYPE_CHECKING:
    from huggingface_hub import EvalResult

BEGIN, END = "<!-- clinometer: begin -->", "<!-- clinometer: end -->"
_OURS = "clinometer/"  # begins the dataset type of our results
_TASKS = {
    "masked": "fill-mask",
    "permuted": "fill-mask",
    "classifier": "text-classification",
}  # else text-generation
_FRONT = re.compile(r"\A(\ufeff?---[ \t]*\r?\n)(.*?\r?\n|)(---[ \t]*(?:\r?\n|\Z))", re.DOTALL)
_INDEX = re.compile(r"^model-index:.*\n(?:(?:[ \t-].*|)\n)*", re.MULTILINE)
_SECTION = re.compile(rf"{re.escape(BEGIN)}.*?{re.escape(END)}(?:\r?\n)?", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class CardSource:
    """The run that a card is about."""

    name: str
    digest: str
    created: str
    profile: str
    findings: tuple[Findings, ...]
    models: tuple[ModelInfo, ...]
    titles: Mapping[str, str]  # audit -> its title


def card_model(source: CardSource, wanted: str = "") -> ModelInfo:
    """Return the model that a card is for: the one that is named, or the only one."""
    known = {info.name: info for info in source.models}
    if wanted in known:
        return known[wanted]
    if wanted:
        raise InputError(f"no model {wanted!r} in {source.name}; {nearest(wanted, known)}")
    if len(known) != 1:
        raise InputError(
            f"{source.name} has {len(known)} models; say whose card it is: --model {' or '.join(known)}"
        )
    return next(iter(known.values()))


def eval_results(source: CardSource, model: ModelInfo) -> list[EvalResult]:
    """Return every verdict on a model as `huggingface_hub` keeps results."""
    from huggingface_hub import EvalResult

    results = []
    for verdict in _verdicts(source, model):
        told = verdict.state != "cannot tell" and math.isfinite(verdict.estimate)
        numbers = {name: getattr(verdict, name) for name in ("low", "high", "q", "detectable")}
        results.append(
            EvalResult(
                task_type=_TASKS.get(model.kind, "text-generation"),
                dataset_type=_OURS + verdict.audit,
                dataset_name=source.titles.get(verdict.audit, verdict.audit),
                dataset_config=source.profile,
                metric_type=verdict.concerns,
                metric_name=_asked(verdict, model),
                metric_value=verdict.estimate if told else "cannot tell",
                metric_args={
                    "state": verdict.state,
                    "n": verdict.n,
                    **({name: value for name, value in numbers.items() if math.isfinite(value)} if told else {}),
                    "run": source.digest[:16],
                    "model": model.name,
                },
            )
        )
    if not results:
        raise InputError(f"{source.name} has no verdicts on {model.name}; there is nothing for a card")
    return results


def section(source: CardSource, model: ModelInfo) -> str:
    """Return the section of a card, as Markdown."""
    verdicts = _verdicts(source, model)
    records = f"{count_text(len(verdicts))} question{'s' if len(verdicts) != 1 else ''}"
    return "\n".join(
        (
            BEGIN,
            "## Which way this model leans",
            "",
            f"Measured with Clinometer on {source.created} (profile {source.profile}): {records}. *lean*: found, "
            "beyond chance; *none found*: nothing beyond chance, and a lean smaller than what is detectable could "
            "be missed; *cannot tell*: the model did not show that it understood the question, or too little was "
            "measured. A lean that was not found may still exist.",
            "",
            *verdict_table(verdicts),
            "",
            f"Run `{source.digest[:16]}` (the beginning of its digest): `clinometer verify` recomputes it.",
            END,
            "",
        )
    )


def written_into(readme: str, source: CardSource, model: ModelInfo) -> str:
    """Return a README with our section and metadata, in the place of earlier ones; all else as it was."""
    from huggingface_hub import ModelCardData

    front = _FRONT.match(readme)
    line = "\r\n" if "\r\n" in readme else "\n"
    start, metadata, end = front.groups() if front else (f"---{line}", "", f"---{line}")
    text = readme[front.end() :] if front else readme
    before = _metadata(metadata)
    name, others = _results_of_others(before)
    data = ModelCardData(
        model_name=name or _short(model.name), eval_results=[*others, *eval_results(source, model)]
    )
    ours: str = data.to_yaml().rstrip("\n") + "\n"
    index = _INDEX.search(metadata.replace("\r\n", "\n"))
    plain = metadata.replace("\r\n", "\n")
    plain = plain[: index.start()] + ours + plain[index.end() :] if index else plain + ours
    mine = section(source, model).replace("\n", line)
    if _SECTION.search(text):
        text = _SECTION.sub(lambda _: mine, text, count=1)
    else:
        text = text + ("" if not text or text.endswith("\n") else line) + (line if text.strip() else "") + mine
    whole: str = start + plain.replace("\n", line) + end + text
    _require_kept(before, whole)
    return whole


def _results_of_others(metadata: Mapping[str, Any]) -> tuple[str, list[EvalResult]]:
    """Return the results in a README's metadata that are not ours, and the name that it gives the model.

    That is its `model_name`, which some trainers write, or the name in its model-index: unless we wrote that for
    the model of an earlier run, which may have had another name.
    """
    from huggingface_hub.repocard_data import model_index_to_eval_results

    says = metadata.get("model_name")
    named = says if isinstance(says, str) else ""
    index = metadata.get("model-index")
    if not index:
        return named, []
    try:
        name, results = model_index_to_eval_results(index)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise InputError(f"the model-index of the README cannot be read ({error!r}); mend it first") from error
    if len(index) > 1:
        raise InputError("the model-index of the README has results of several models; give each its own README")
    others = [result for result in results if not result.dataset_type.startswith(_OURS)]
    written = {
        _short(str((result.metric_args or {}).get("model", name))) for result in results if result not in others
    }
    return named or ("" if name in written else name), others


def _short(name: str) -> str:
    return name.rpartition("/")[2] or name


def _metadata(text: str) -> dict[str, Any]:
    """Return the metadata of a README; raise InputError for any that is not a table."""
    import yaml  # type: ignore[import-untyped]  # what huggingface_hub reads it with

    try:
        read = yaml.safe_load(text)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InputError(f"the metadata of the README cannot be read: {' '.join(str(error).split())}") from error
    if not isinstance(read or {}, dict):
        raise InputError(f"the metadata of the README cannot be read: it is a {type(read).__name__}, not a table")
    return read or {}


def _require_kept(before: Mapping[str, Any], readme: str) -> None:
    """Raise InputError unless the hub can read the README, and all metadata but model-index is as it was."""
    from huggingface_hub import ModelCard

    front = _FRONT.match(readme)
    after = _metadata(front[2]) if front else {}
    try:
        ModelCard(readme.removeprefix("\ufeff"))
        kept = {**before, "model-index": 0} == {**after, "model-index": 0}
    except ValueError:
        kept = False
    if not kept:
        raise InputError("the metadata of the README cannot be changed safely; nothing was written")


def _verdicts(source: CardSource, model: ModelInfo) -> Sequence[Verdict]:
    return [
        verdict
        for found in source.findings
        for verdict in found.verdicts
        if verdict.model == model.name or verdict.model.startswith(f"{model.name} (")
    ]


def _asked(verdict: Verdict, model: ModelInfo) -> str:
    """Name a question, with the way in which the model was asked where it was asked in several."""
    way = verdict.model.removeprefix(model.name).strip(" ()")
    return f"{verdict.aspect} ({way})" if way else verdict.aspect
