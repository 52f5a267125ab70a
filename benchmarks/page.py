"""How long the page of a large run takes, and how much memory, its findings being there.

    python benchmarks/page.py RUN [--records 4000000] [--keep FOLDER]

Copies a finished run, repeats the records of every stage until there are that many in all, and lets a process of
its own write the page as `clinometer report` does. Findings stay as they are: the page reads them from the folder.
"""

from __future__ import annotations

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from clinometer.store import RunFolder
from clinometer.store.compacting import ROWS
from clinometer.store.names import PartName
from clinometer.store.parts import encode_part

_REPORT = """
import resource, sys, time
from pathlib import Path
from clinometer.store import RunFolder
from clinometer.workflows import report_run
started = time.perf_counter()
page = report_run(RunFolder.open(Path(sys.argv[1])))
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(f"{time.perf_counter() - started:.1f} s, {peak / 1e9:.2f} GB, page of {page.stat().st_size / 1e6:.2f} MB")
"""


def grow(source: Path, target: Path, records: int) -> int:
    """Copy a run with its records repeated under new indices; return how many there are."""
    shutil.copytree(source, target, ignore=shutil.ignore_patterns("records", "run.sha256"))
    run = RunFolder.open(source)
    stages = {key: sorted(run.stage_folder(key).glob("*.parquet")) for key in run.stages()}
    rows = {key: sum(pq.read_metadata(part).num_rows for part in parts) for key, parts in stages.items()}
    times = -(-records // sum(rows.values()))
    for key, parts in stages.items():
        once = pa.concat_tables([pq.read_table(part) for part in parts], promote_options="permissive")
        folder = target / "records" / key.folder
        folder.mkdir(parents=True)
        at_once = max(1, ROWS // max(1, len(once)))
        for sequence, first in enumerate(range(0, times, at_once), start=1):
            many = [shifted(once, by=turn * len(once)) for turn in range(first, min(times, first + at_once))]
            data = encode_part(pa.concat_tables(many).to_batches(), run_id=run.run_id, stage=key, by=None)
            (folder / PartName.of(data, sequence=sequence).file_name).write_bytes(data)
    return times * sum(rows.values())


def shifted(table: pa.Table, *, by: int) -> pa.Table:
    """Return the rows under other indices."""
    place = table.schema.get_field_index("index")
    indices = pa.array(table["index"].to_numpy() + by, type=table.schema.field(place).type)
    return table.set_column(place, table.schema.field(place), indices)


def main() -> None:
    """Grow a run, write its page, print what that took."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("--records", type=int, default=4_000_000)
    parser.add_argument("--keep", type=Path, help="put the large run there, and leave it")
    chosen = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        target = chosen.keep or Path(temporary, "run")
        started = time.perf_counter()
        if not target.exists():
            grown = grow(chosen.run, target, chosen.records)
            print(f"{grown:,} records, made in {time.perf_counter() - started:.0f} s", flush=True)
        size = sum(path.stat().st_size for path in target.rglob("*") if path.is_file())
        print(f"{size / 1e6:,.0f} MB on disk, {os.cpu_count()} cores", flush=True)
        subprocess.run([sys.executable, "-c", _REPORT, str(target)], check=True)


if __name__ == "__main__":
    main()
