"""`clinometer data`: data sets that are not in the package: add, get, list, remove, collect."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinometer.cli.collect_stereotypes import collect_stereotypes
from clinometer.cli.terminal import show
from clinometer.errors import DataError

if TYPE_CHECKING:
    from clinometer.data.user_folder import AddedDataset

data = typer.Typer(
    help="Data sets that are not in the package: add, list and remove them, or get and collect new ones.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)

NameArgument = Annotated[
    str, typer.Argument(metavar="NAME", help="A data set; see `clinometer data list`.", show_default=False)
]


@data.command()
def add(
    name: NameArgument,
    path: Annotated[Path, typer.Argument(metavar="PATH", help="Its file.", show_default=False)],
) -> None:
    """Check a file and keep a copy of it for every later audit."""
    from clinometer.data.user_folder import add_file

    _print_added(add_file(name, path))


@data.command()
def get(
    name: NameArgument,
    url: Annotated[str, typer.Option(help="Another address to download it from.", show_default=False)] = "",
    sha256: Annotated[
        str, typer.Option(help="The SHA-256 that the file must have, if not the known one.", show_default=False)
    ] = "",
) -> None:
    """Download a data set, check it and keep it for every later audit."""
    import tempfile

    from clinometer.data.downloads import download
    from clinometer.data.user_folder import add_file, get_dataset

    dataset = get_dataset(name)
    address = url or dataset.url
    if not address:
        raise DataError(
            f"{name!r} cannot be downloaded without agreeing to its terms ({dataset.terms}): get it from "
            f"{dataset.page}, then clinometer data add {name} PATH"
        )
    with tempfile.TemporaryDirectory(prefix="clinometer-") as folder:
        file = Path(folder) / "download"
        download(address, file, sha256=sha256 or dataset.sha256, on_bytes=_show_bytes)
        _print_added(add_file(name, file, origin=address))


@data.command("list")
def list_() -> None:
    """List the data sets that can be added, and those that were."""
    from clinometer.data.user_folder import DATASETS, added_file, read_record, user_folder

    for name, dataset in DATASETS.items():
        show(f"{name}: {dataset.about}")
        show(f"  terms   {dataset.terms}")
        show(f"  page    {dataset.page}")
        try:
            added = added_file(name)
        except DataError as error:
            show(f"  damaged {error}")
            continue
        if added is None:
            how = f"clinometer data get {name}" if dataset.url else f"clinometer data add {name} PATH"
            show(f"  not added: {how}")
        else:
            record = read_record(name)
            show(f"  added   {record.added} from {record.origin}")
            show(f"  found   {record.found}")
            show(f"  sha256  {record.sha256}")
    show(f"kept in {user_folder()}")


@data.command()
def remove(name: NameArgument) -> None:
    """Remove a data set that was added."""
    from clinometer.data.user_folder import remove_added

    record = remove_added(name)
    show(f"{name}: removed" + (f" ({record.found}, from {record.origin})" if record else ""))


@data.command()
def get_reviews(
    name: Annotated[
        str, typer.Argument(help="A dataset on the hub, or a folder of data files.", show_default=False)
    ],
    out: Annotated[Path, typer.Option(help="The CSV file to write; it must not exist.", show_default=False)],
    config: Annotated[
        str | None, typer.Option(help="Which configuration, where the dataset has several.", show_default=False)
    ] = None,
    split: Annotated[str, typer.Option(help="A split, or part of one: train[:5000]+train[-5000:].")] = "train",
    text_column: Annotated[str, typer.Option(help="The column with the text.")] = "text",
    label_column: Annotated[str, typer.Option(help="The column with the label.")] = "label",
    positive: Annotated[str, typer.Option(help="The label of positive reviews: a value or a class name.")] = "1",
    negative: Annotated[str, typer.Option(help="The label of negative reviews; other rows are left out.")] = "0",
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
    show(f"{count:,} reviews written to {out}; audit with: --reviews {out}")


data.command()(collect_stereotypes)


def _print_added(record: AddedDataset) -> None:
    from clinometer.data.user_folder import user_folder

    show(f"{record.name}: {record.found}")
    show(f"  sha256  {record.sha256}")
    show(f"  kept in {user_folder() / record.name}")


def _show_bytes(done: int, total: int) -> None:
    """Update one line on a terminal; print nothing elsewhere."""
    if sys.stderr.isatty():
        of = f" of {total / 1e6:.1f}" if total else ""
        end = "\n" if done == total else "\r"
        show(f"  {done / 1e6:.1f}{of} MB", end=end, error=True)
