"""`clinometer questions`: what would be asked, for a model that only its owner can call."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from clinometer.cli.terminal import show
from clinometer.types import AskedAs


def questions(
    spec: Annotated[Path, typer.Option(help="The TOML spec of the audit; its models may be empty.")],
    out: Annotated[Path, typer.Option(help="The file to write: one question a line, as JSON.")],
    form: Annotated[
        str, typer.Option("--format", help="plain, or openai for the batch files of OpenAI's interface.")
    ] = "plain",
    as_: Annotated[
        str | None,
        typer.Option(
            "--as", help="How the model can be asked: chat or causal. Default: chat.", show_default=False
        ),
    ] = None,
    model: Annotated[str, typer.Option(help="The name of the model, for --format openai.")] = "MODEL",
) -> None:
    """Write the questions of an audit to a file. Answer them anywhere, then run `audit answers:FILE`."""
    from clinometer.errors import SpecError
    from clinometer.spec import read_spec
    from clinometer.workflows.questions import QuestionsRequest, write_questions

    if form not in ("plain", "openai"):
        raise SpecError(f"--format {form}: expected plain or openai")
    if as_ not in (None, "chat", "causal"):
        raise SpecError(f"--as {as_}: expected chat or causal")
    kind: AskedAs = "causal" if as_ == "causal" else "chat" if as_ == "chat" else ""
    written = write_questions(
        QuestionsRequest(
            spec=read_spec(spec), out=out, kind=kind, form="openai" if form == "openai" else "plain", model=model
        )
    )
    for audit, count in written.counts.items():
        more = "; more will be asked once these are answered" if audit in written.later else ""
        show(f"{audit}: {count:,} questions{more}")
    for audit in written.left_out:
        show(f"{audit}: left out, it cannot ask such a model")
    show()
    show(out)
    show(f"answer them, then: clinometer audit answers:ANSWERS --spec {spec}")
