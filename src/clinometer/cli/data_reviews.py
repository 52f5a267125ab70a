"""`clinometer data get-reviews`: reviews of a hub dataset as a file for the sentiment-words audit."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer


def get_reviews(
    name: Annotated[
        str, typer.Argument(help="A dataset on the hub, or a folder of data files.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The CSV file to write; it must not exist.", show_default=False)],
    config: Annotated[
        str | None, typer.Option(help="Which configuration, where the dataset has several.", show_default=False)
    ] = None,
    split: Annotated[str, typer.Option(help="Or a part of one: train[:5000]+train[-5000:].")] = "train",
    text_column: Annotated[str, typer.Option(help="The column with the text.")] = "text",
    label_column: Annotated[str, typer.Option(help="The column with the label.")] = "label",
    positive: Annotated[str, typer.Option(help="The label of positive reviews: a value or a class name.")] = "1",
    negative: Annotated[str, typer.Option(help="The label of negative reviews; others are left out.")] = "0",
) -> None:
    """Write the positive and negative reviews of a hub dataset to a CSV file; needs the extra `hub`."""
    from clinometer.data.reviews import fetch_hub_reviews

    count = fetch_hub_reviews(
        name,
        config=config,
        split=split,
        text_column=text_column,
        label_column=label_column,
        positive=positive,
        negative=negative,
        out=out,
    )
    print(f"{count:,} reviews written to {out}; audit with: --reviews {out}")
