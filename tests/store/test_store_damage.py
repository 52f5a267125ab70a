"""A part that is not what this run wrote is named, and never read."""

import os
import random
import shutil

import pytest
from store_samples import KEY, append, key_of, leftovers, new_run, parts

from clinometer.errors import RecordsError
from clinometer.store import DamagedPart, RunFolder, StageKey
from clinometer.store.names import PartName


def tree(run):
    """Every file of the run with its bytes."""
    return {path: path.read_bytes() for path in run.path.rglob("*") if path.is_file()}


def assert_only_this_part_is_refused(run, path, reason):
    """Rows 10–19 are lost, rows 0–9 and 20–29 are not; nothing on disk is changed by finding out."""
    before = tree(run)
    for reader in (run, RunFolder.open(run.path)):
        assert [part.path for part in reader.check()] == [path]
        assert reason in reader.check()[0].reason
        done = reader.done(KEY)
        assert [part.path for part in done.damaged] == [path]
        assert [i for i in range(30) if done.matches(i, key_of(i))] == [*range(10), *range(20, 30)]
        with pytest.raises(RecordsError, match=f"{path.name}.*{reason}.*clinometer resume"):
            reader.table(KEY)
        assert reader.stages() == (KEY,)
    assert tree(run) == before


@pytest.fixture
def middle(run):
    """A run of three parts; the path of the second."""
    append(run, 0, 10)
    path = append(run, 10, 20)
    append(run, 20, 30)
    assert run.check() == ()
    assert run.table(KEY).height == 30
    return path


def test_a_flipped_bit_anywhere_is_caught(run, middle):
    data = middle.read_bytes()
    rng = random.Random(7)
    places = {0, 3, 4, len(data) - 1, len(data) - 4, len(data) - 5, *rng.sample(range(len(data)), 400)}
    for place in places:
        flipped = bytearray(data)
        flipped[place] ^= 1 << rng.randrange(8)
        middle.write_bytes(flipped)
        assert [part.path for part in run.check()] == [middle]
    assert_only_this_part_is_refused(run, middle, "checksum differs")
    middle.write_bytes(data)
    assert run.check() == ()


@pytest.mark.parametrize("keep", [0, 1, 4, 0.5, -8, -1])
def test_a_truncated_part_is_caught(run, middle, keep):
    data = middle.read_bytes()
    middle.write_bytes(data[: int(len(data) * keep) if keep == 0.5 else keep])
    assert_only_this_part_is_refused(run, middle, "checksum differs")


def test_bytes_after_the_end_are_caught(run, middle):
    middle.write_bytes(middle.read_bytes() + b"\0")
    assert_only_this_part_is_refused(run, middle, "checksum differs")


def test_damage_after_the_first_reading_is_seen_by_the_same_process(run, middle):
    run.table(KEY)
    data = bytearray(middle.read_bytes())
    data[100] ^= 1
    middle.write_bytes(data)
    os.utime(middle, ns=(0, 0))
    with pytest.raises(RecordsError, match=middle.name):
        run.table(KEY)


def test_check_sees_decay_that_leaves_the_file_times_alone(run, middle):
    run.table(KEY)
    status = middle.stat()
    data = bytearray(middle.read_bytes())
    data[100] ^= 1
    middle.write_bytes(data)
    os.utime(middle, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert [part.path for part in run.check()] == [middle]
    with pytest.raises(RecordsError, match=middle.name):
        run.table(KEY)


def test_a_renamed_part_is_caught(run, middle):
    renamed = middle.rename(middle.with_name("mine.parquet"))
    assert_only_this_part_is_refused(run, renamed, "its name carries no checksum")


def test_a_part_from_another_run_is_caught(run, middle, tmp_path):
    other = new_run(tmp_path / "other")
    foreign = append(other, 10, 20)
    assert foreign.read_bytes() != middle.read_bytes()
    middle.unlink()
    copied = shutil.copy(foreign, middle.with_name(foreign.name))
    assert_only_this_part_is_refused(run, copied, "it belongs to another run")


@pytest.mark.parametrize(
    "other",
    [
        StageKey(probe=KEY.probe, model=KEY.model, stage="other"),
        StageKey(probe=KEY.probe, model="other", stage=KEY.stage),
        StageKey(probe="other", model=KEY.model, stage=KEY.stage),
    ],
    ids=["stage", "model", "probe"],
)
def test_a_part_from_another_stage_is_caught(run, middle, other):
    folder = run.path / "records" / other.folder
    folder.mkdir(parents=True)
    moved = middle.rename(folder / middle.name)
    assert run.check() == (DamagedPart(path=moved, reason=f"it belongs to another stage: {KEY}"),)
    assert run.stages() == (KEY,)
    assert len(run.done(other)) == 0


def test_a_file_that_is_not_ours_is_caught_even_with_a_right_checksum(run, middle):
    for data in (b"", b"PAR1", b"not parquet at all"):
        stray = middle.with_name(PartName.of(data, sequence=9).file_name)
        stray.write_bytes(data)
        assert [part.path for part in run.check()] == [stray]
        assert "does not say which run" in run.check()[0].reason
        stray.unlink()


def test_an_unreadable_part_is_damaged(run, middle):
    middle.unlink()
    middle.mkdir()
    assert_only_this_part_is_refused(run, middle, "it cannot be read: it is not a plain file")


def test_the_same_part_twice_counts_once(run, middle):
    name = PartName.parse(middle.name)
    shutil.copy(middle, middle.with_name(PartName(sequence=50, checksum=name.checksum).file_name))
    assert run.check() == ()
    assert run.table(KEY)["index"].to_list() == list(range(30))
    assert len(run.done(KEY)) == 30


def test_damaged_parts_are_set_aside_as_evidence(run, middle):
    broken = middle.read_bytes()[:-1]
    middle.write_bytes(broken)
    assert [part.path for part in run.set_aside_damaged()] == [middle]
    aside = middle.with_name(middle.name + ".damaged")
    assert aside.read_bytes() == broken
    assert run.check() == ()
    assert run.set_aside_damaged() == ()
    assert run.table(KEY).height == 20
    # put back by hand, found again, and the first evidence is kept
    middle.write_bytes(b"again")
    run.set_aside_damaged()
    assert aside.read_bytes() == broken
    assert middle.with_name(aside.name + ".damaged").read_bytes() == b"again"


def test_opening_a_stage_for_writing_sets_its_damaged_parts_aside(run):
    """Then what was lost can be asked anew, under a number that was never used."""
    append(run, 0, 10)
    last = append(run, 10, 20)
    last.write_bytes(b"")
    again = append(run, 10, 20)
    assert [PartName.parse(path.name).sequence for path in (last, again)] == [2, 3]
    assert last.with_name(last.name + ".damaged").exists()
    assert run.check() == ()
    assert run.table(KEY)["index"].to_list() == list(range(20))


def test_a_stage_with_nothing_but_damage_has_no_records(run):
    append(run, 0, 10).write_bytes(b"x")
    assert run.stages() == ()
    assert len(run.check()) == 1
    assert len(run.done(KEY)) == 0


def test_unfinished_files_are_passed_over_and_removed_by_the_next_writer(run, middle):
    leftover = middle.with_name(".tmp-0123456789abcdef")
    leftover.write_bytes(middle.read_bytes()[:50])
    assert run.check() == ()
    assert run.table(KEY).height == 30
    assert run.stages() == (KEY,)
    assert leftover.exists()
    run.writer(KEY)
    assert leftovers(run) == []
    assert len(parts(run)) == 3
