"""Sharing out the seeds of a simulation to several processes."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from typing import Any

Run = Callable[..., Iterator[Any]]  # map, of one process or of several


def arguments(text: str | None, *, seeds: int = 200) -> argparse.Namespace:
    """Read SEEDS and --jobs from the command line."""
    parser = argparse.ArgumentParser(description=text)
    parser.add_argument("seeds", nargs="?", type=int, default=seeds)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes; default: all cores")
    return parser.parse_args()


@contextmanager
def shared_out(jobs: int) -> Iterator[Run]:
    """Give a map that shares its work out to so many processes, and keeps the order."""
    if jobs < 2:
        yield map
        return
    # one thread each: several processes that all want every core wait for each other
    for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "POLARS_MAX_THREADS"):
        os.environ.setdefault(variable, "1")
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        yield partial(pool.map, chunksize=4)
