"""A run that is killed, damaged or crowded out ends in the findings of one that was left in peace."""

from __future__ import annotations

import random
import shutil
import signal
import time

import polars as pl
import pytest

from clinometer.engine import Silent
from clinometer.errors import InputError, ModelError, RunLockedError, StoreError
from clinometer.store import RunFolder
from clinometer.workflows import Execution
from tests.attacks.forging import forge
from tests.interrupted_run import audit_slowly, spec, treacherous
from tests.killing import Child
from tests.runs import resume_audit, start_audit, verify_audit

KILLS = 20


def child(folder, seconds_per_batch):
    process = Child(audit_slowly, folder, seconds_per_batch)
    assert process.hear() == "working"
    return process


def findings(folder):
    """Every byte that was concluded, by file."""
    return {path.relative_to(folder): path.read_bytes() for path in sorted((folder / "findings").rglob("*.*"))}


@pytest.fixture(scope="module")
def peaceful(tmp_path_factory):
    folder = tmp_path_factory.mktemp("peaceful") / "run"
    start_audit(spec(), folder, loaded={"fake": treacherous(0)}, execution=Execution(batch_tokens=600))
    assert findings(folder)
    return folder


@pytest.fixture
def run(peaceful, tmp_path):
    """A finished run of one's own to damage."""
    folder = tmp_path / "run"
    shutil.copytree(peaceful, folder)
    return RunFolder.open(folder)


class Notes(Silent):
    """Remembers what the run had to say, and how much it asked."""

    def __init__(self):
        self.texts, self.asked, self.kept = [], 0, 0

    def begin(self, label, *, total, done):
        self.kept += done

    def advance(self, count):
        self.asked += count

    def note(self, text):
        self.texts.append(text)


def resume(run, **options):
    notes = Notes()
    resume_audit(
        RunFolder.open(run.path),
        loaded={"fake": treacherous(0)},
        execution=Execution(batch_tokens=600),
        progress=notes,
        **options,
    )
    return notes


def recorded(run):
    run = RunFolder.open(run.path)
    return sum(len(run.done(key)) for key in run.stages())


def records(run):
    return sorted(run.path.glob("records/*/*/*/*.parquet"))


def answers_in(folder):
    """Return what is recorded: stage, place, request and answer."""
    columns = ["index", "key", "got_logprobs"]
    return {
        (path.parent.name, index, key, tuple(logprobs))
        for path in folder.glob("records/*/*/*/*.parquet")
        for index, key, logprobs in pl.read_parquet(path, columns=columns).rows()
    }


@pytest.mark.timeout(300)
@pytest.mark.xdist_group("killed")
def test_killed_at_random_moments_it_ends_in_the_same_bytes(peaceful, tmp_path):
    rng = random.Random(20)
    process = child(tmp_path / "undisturbed", 0.002)
    start = time.monotonic()
    assert process.ends_within(120)
    whole = time.monotonic() - start
    assert findings(tmp_path / "undisturbed") == findings(peaceful)

    kills = finished = 0
    folder = tmp_path / "killed-0"
    seen: set[tuple[object, ...]] = set()
    while kills < KILLS or not finished:
        process = child(folder, 0.002)
        # anywhere from the making of the folder to the writing of the findings
        patience = rng.uniform(0.0, whole) if kills < KILLS else 120
        if not process.ends_within(patience):
            process.kill()
        if process.code == -signal.SIGKILL:
            kills += 1
            # what was written before the kill is still there, wherever parts were joined
            rows = answers_in(folder)
            assert seen <= rows
            seen = rows
            if folder.exists() and not (folder / "provenance.json").exists():
                shutil.rmtree(folder)  # killed while the folder was made: there is no run to resume yet
                seen = set()
            continue
        assert process.code == 0, process.hear()
        assert findings(folder) == findings(peaceful)
        assert verify_audit(RunFolder.open(folder)).problems == ()
        finished += 1
        seen = set()
        folder = tmp_path / f"killed-{finished}"


def test_a_resumed_run_asks_only_what_is_missing(run, peaceful):
    parts = records(run)
    whole = recorded(run)
    parts[0].unlink()
    shutil.rmtree(run.path / "findings")
    left = recorded(run)
    notes = resume(run)
    assert notes.kept == left
    assert notes.asked == whole - left > 0
    assert findings(run.path) == findings(peaceful)


def test_a_finished_run_is_not_asked_again_and_needs_no_model(run, peaceful):
    assert resume(run).asked == 0
    resume_audit(RunFolder.open(run.path))
    assert findings(run.path) == findings(peaceful)


@pytest.mark.parametrize("damage", ["flipped byte", "cut short", "emptied"])
def test_damaged_records_are_named_and_asked_again(run, peaceful, damage):
    part = records(run)[0]
    data = bytearray(part.read_bytes())
    if damage == "flipped byte":
        data[len(data) // 2] ^= 1
    elif damage == "cut short":
        del data[-100:]
    else:
        data.clear()
    part.write_bytes(data)
    problems = verify_audit(RunFolder.open(run.path)).problems
    assert any(part.name in problem for problem in problems)
    notes = resume(run)
    assert any(part.name in text for text in notes.texts)
    assert notes.asked > 0
    assert findings(run.path) == findings(peaceful)
    assert verify_audit(RunFolder.open(run.path)).problems == ()


def test_a_part_of_another_run_is_named_and_not_read(run, peaceful, tmp_path):
    other = tmp_path / "other"
    start_audit(spec(), other, loaded={"fake": treacherous(0)}, execution=Execution(batch_tokens=500))
    stranger = sorted(other.glob("records/*/*/*/*.parquet"))[0]
    place = records(run)[0].parent / stranger.name.replace("part-", "part-9", 1)
    shutil.copy(stranger, place)
    assert any("another run" in problem for problem in verify_audit(RunFolder.open(run.path)).problems)
    assert any(place.name in text for text in resume(run).texts)
    assert findings(run.path) == findings(peaceful)


def test_findings_that_do_not_follow_from_the_records_are_found_out(run):
    table = sorted(run.path.glob("findings/*/*.parquet"))[0]
    other = sorted(run.path.glob("findings/*/*.parquet"))[1]
    shutil.copy(other, table)
    assert verify_audit(RunFolder.open(run.path)).problems


def test_missing_findings_are_found_out(run):
    shutil.rmtree(run.path / "findings")
    assert any("findings are missing" in problem for problem in verify_audit(RunFolder.open(run.path)).problems)


@pytest.mark.xdist_group("killed")
def test_a_second_process_is_refused_with_the_pid_of_the_first(tmp_path):
    folder = tmp_path / "run"
    process = child(folder, 0.2)
    try:
        deadline = time.monotonic() + 60
        while not list(folder.glob("records/*/*/*/*.parquet")):
            assert process.code is None, process.hear()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        with pytest.raises(RunLockedError, match=str(process.pid)):
            resume_audit(RunFolder.open(folder), loaded={"fake": treacherous(0)})
    finally:
        process.kill()
    resume(RunFolder.open(folder))  # the dead process holds nothing


def test_a_run_is_not_continued_with_other_weights(run):
    records(run)[0].unlink()
    other = treacherous(0)
    other.info = other._fake.info.__class__(**{**_fields(other.info), "weights": "f" * 64})
    with pytest.raises(ModelError, match="the weights of fake changed"):
        resume_audit(RunFolder.open(run.path), loaded={"fake": other})


def test_a_run_is_not_continued_with_another_configuration(run):
    records(run)[0].unlink()
    other = treacherous(0)
    other.info = other._fake.info.__class__(**{**_fields(other.info), "settings": {"config": "other"}})
    with pytest.raises(ModelError, match="the configuration of fake changed"):
        resume_audit(RunFolder.open(run.path), loaded={"fake": other})


def test_models_that_do_not_fit_the_spec_are_named(run):
    (run.path / "models.json").write_text('{"audited": [], "beside": []}')
    (problem,) = verify_audit(RunFolder.open(run.path)).problems
    assert "models.json is not the one with which this run began" in problem
    forge(run.path)
    with pytest.raises(StoreError, match=r"models\.json names no model, spec\.toml fake"):
        verify_audit(RunFolder.open(run.path))


def _fields(info):
    return {name: getattr(info, name) for name in info.__dataclass_fields__}


def test_an_occupied_folder_is_refused(run):
    before = {path: path.stat().st_mtime_ns for path in run.path.rglob("*")}
    with pytest.raises(InputError):
        start_audit(spec(), run.path, loaded={"fake": treacherous(0)})
    assert {path: path.stat().st_mtime_ns for path in run.path.rglob("*")} == before


def test_a_shared_cache_answers_the_second_run(tmp_path, peaceful):
    execution = Execution(batch_tokens=600, cache=tmp_path / "cache")
    start_audit(spec(), tmp_path / "one", loaded={"fake": treacherous(0)}, execution=execution)

    class Forbidden:
        info = treacherous(0).info

        def cost(self, requests):
            return [1] * len(requests)

        def fill(self, batch):
            pytest.fail("asked again")

    start_audit(spec(), tmp_path / "two", loaded={"fake": Forbidden()}, execution=execution)
    assert findings(tmp_path / "two") == findings(tmp_path / "one") == findings(peaceful)
