"""Real kills and real full disks: what was flushed stays, what was not is not half there."""

import json
import random
import shutil
import signal
import subprocess
import time

import numpy as np
import pytest
from store_samples import (
    KEY,
    append,
    append_for_ever,
    create_for_ever,
    key_of,
    leftovers,
    new_run,
    parts,
    rows,
    start_child,
)
from tests.killing import Child

from clinometer.store import RunFolder

KILLS = 20
BATCH = 7


@pytest.mark.xdist_group("killed")
def test_killed_at_random_moments_no_flushed_row_is_lost(run):
    """Every append is a flush, and the child says so afterwards: what it said must be there after SIGKILL.

    Each child goes on where the intact records end, so that a gap, a torn part or a lost one shows in the end.
    """
    rng = random.Random(time.time_ns())
    said, startup = 0, 0.0
    for turn in range(KILLS):
        began = time.monotonic()
        child = Child(append_for_ever, run.path, BATCH)
        heard = []
        if turn % 4 == 3:  # while it starts, looks up what is done and opens the stage
            time.sleep(rng.uniform(0, 1) * startup)
        else:
            heard.append(child.hear())
            startup = time.monotonic() - began
            time.sleep(rng.uniform(0, 0.05))
        child.kill()
        heard += child.hear_the_rest()
        assert child.code == -signal.SIGKILL
        survivor = RunFolder.open(run.path)
        assert survivor.check() == ()
        done = survivor.done(KEY)
        said = max([said, *heard])
        assert said <= len(done) <= said + BATCH  # the part in flight may have been named, and not yet reported
        said = len(done)
    table = RunFolder.open(run.path).table(KEY)
    assert said >= KILLS * BATCH // 2
    assert table["index"].to_list() == list(range(said))
    assert table["key"].to_list() == [key_of(index) for index in range(said)]
    assert table["got_logprobs"].list.get(0).to_list() == [-float(index) for index in range(said)]
    with run.lock():
        run.writer(KEY)
    assert leftovers(run) == []


KILLED_WHILE_WRITING = """
import builtins, os, signal, stat, sys
from store_samples import append
from clinometer.store import RunFolder, atomic
moment = sys.argv[2]
kill = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
class HalfWritten:
    def __init__(self, *arguments): self.file = builtins.open(*arguments)
    def __enter__(self): return self
    def __exit__(self, *_): pass
    def write(self, data): self.file.write(data[: len(data) // 2]); self.file.flush(); kill()
def kill_at_folder(descriptor, sync=os.fsync):
    kill() if stat.S_ISDIR(os.fstat(descriptor).st_mode) else sync(descriptor)
run = RunFolder.open(sys.argv[1])
if moment == "half written": atomic.open = HalfWritten
if moment == "written": os.fsync = kill
if moment == "synced": os.replace = kill
if moment == "named": os.fsync = kill_at_folder
append(run, 10, 15)
"""


@pytest.mark.parametrize("moment", ["half written", "written", "synced", "named"])
def test_killed_at_every_step_of_a_write(run, moment):
    append(run, 0, 10)
    with start_child(KILLED_WHILE_WRITING, str(run.path), moment) as child:
        pass
    assert child.returncode == -signal.SIGKILL
    survivor = RunFolder.open(run.path)
    assert survivor.check() == ()
    named = moment == "named"
    assert survivor.table(KEY)["index"].to_list() == list(range(15 if named else 10))
    assert len(leftovers(run)) == (not named)  # proof that the kill hit where it should
    append(run, 10, 15)
    assert leftovers(run) == []
    assert RunFolder.open(run.path).table(KEY)["index"].to_list() == list(range(15))


@pytest.mark.xdist_group("killed")
def test_killed_while_creating_the_run_can_be_created_again(tmp_path):
    """Whatever moment the kill hits, the folder is a run, or a run may be created in it."""
    rng = random.Random(time.time_ns())
    for turn in range(3):
        home = tmp_path / str(turn)
        child = Child(create_for_ever, home)
        assert child.hear() == "ready"
        time.sleep(rng.uniform(0.001, 0.05))
        child.kill()
        for path in home.glob("*"):
            run = RunFolder.open(path) if (path / "provenance.json").exists() else new_run(path)
            assert run.provenance["seed"] == 3


FILL_UP = """
import json, resource, sys, os
import numpy as np
from pathlib import Path
from store_samples import KEY, new_run, rows, append, leftovers, parts
from clinometer.errors import DiskFullError
from clinometer.store import RunFolder, Row, findings_digest
from clinometer.types import Embed, EmbedAnswer, Finding, Findings, FindingTable, Item

home, how = Path(sys.argv[1]), sys.argv[2]
run = new_run(home / "run")
append(run, 0, 10)
def findings(height):
    noise = np.random.default_rng(0).random(height)
    rows = tuple(Finding(labels={}, estimate=float(x)) for x in noise)
    small = FindingTable(name="a", title=str(height), caption="", rows=rows[:1])
    large = FindingTable(name="b", title="", caption="", rows=rows)
    return Findings(probe="p", tables=(small, large), figures=())
run.write_findings(findings(3))
digest = findings_digest(run.read_findings())

ballast = home / "ballast"
def fill():
    if how == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, resource.RLIM_INFINITY))
    else:
        room = os.statvfs(home)
        ballast.write_bytes(bytes(room.f_bavail * room.f_frsize - 20_000))
def make_room():
    if how == "limit":
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    else:
        ballast.unlink()

heard = []
def expect_full(write):
    try:
        write()
    except DiskFullError as error:
        heard.append(str(error))
    assert leftovers(run) == []
    fresh = RunFolder.open(run.path)
    assert fresh.check() == ()
    assert fresh.table(KEY)["index"].to_list() == list(range(10))
    assert findings_digest(fresh.read_findings()) == digest

fill()
salt = np.random.default_rng(1).bytes(60_000).hex()
expect_full(lambda: append(run, 10, 11, salt=salt))
expect_full(lambda: run.write_findings(findings(5_000)))
with run.writer(KEY, flush_seconds=0) as writer:
    expect_full(lambda: writer.append(rows(10, 11, salt=salt)))
    make_room()
# the writer still had the batch, and wrote it when the block ended
assert RunFolder.open(run.path).table(KEY)["index"].to_list() == list(range(11))
run.write_findings(findings(5_000))
assert findings_digest(run.read_findings()) != digest
print(json.dumps({"heard": heard, "run": str(run.path)}))
"""


def assert_full_disk_was_survived(child):
    output, _ = child.communicate(timeout=60)
    assert child.returncode == 0
    report = json.loads(output)
    part, table, again = report["heard"]
    for message in report["heard"]:
        assert message.startswith(f"no space left while writing {report['run']}/")
        assert "bytes free; nothing written earlier was damaged" in message
        assert message.endswith(f"run `clinometer resume {report['run']}`")
    assert "/records/counterexamples/" in part
    assert "/records/counterexamples/" in again
    assert "/findings/p/b.parquet (" in table


def test_a_file_that_may_not_grow_further(tmp_path):
    """A limit on file sizes fails in the middle of a write as a full disk does, and needs no privilege."""
    with start_child(FILL_UP, str(tmp_path), "limit") as child:
        assert_full_disk_was_survived(child)


def test_a_disk_that_is_really_full(tmp_path):
    """A file system of 4 MB, in a mount namespace of its own that ends with the child."""
    if not shutil.which("unshare"):
        pytest.skip("NOT TESTED on a full disk: no `unshare` here")
    mount = f"mount -t tmpfs -o size=4m tmpfs '{tmp_path}'"
    space = ("unshare", "--user", "--map-root-user", "--mount")
    tried = subprocess.run([*space, "sh", "-c", mount], capture_output=True, text=True, check=False)
    if tried.returncode:
        pytest.skip(f"NOT TESTED on a full disk: may not mount one here ({tried.stderr.strip()})")
    with start_child(
        FILL_UP, str(tmp_path), "disk", before=(*space, "sh", "-c", f'{mount} && exec "$@"', "sh")
    ) as child:
        assert_full_disk_was_survived(child)


def test_a_large_stage_reads_back_in_order(run):
    """60,000 rows in shuffled batches: three parts of 20,000, one table."""
    order = np.random.default_rng(5).permutation(60)
    with run.writer(KEY, flush_seconds=1e9) as writer:
        for block in order:
            writer.append(rows(block * 1000, (block + 1) * 1000))
    assert len(parts(run)) == 3
    table = run.table(KEY, columns=["index", "tag_turn"])
    assert (table["index"] == np.arange(60_000)).all()
    assert (table["tag_turn"] == np.arange(60_000)).all()
    assert len(run.done(KEY)) == 60_000
    with run.writer(KEY, flush_seconds=1e9) as writer:
        writer.append(rows(20_000, 40_000, salt=" again"))
    again = run.table(KEY, columns=["ask_text"])["ask_text"].str.ends_with(" again")
    assert (again == np.repeat([False, True, False], 20_000)).all()
