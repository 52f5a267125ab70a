"""Runs on shared storage, on a real S3 server: nothing half-written, one driver at a time, resumed elsewhere."""

from __future__ import annotations

import hashlib
import threading

import pytest
from tests.attacks.samples import Tiny, fake
from tests.store.s3_server import moto_server, s3_server

import clinometer
from clinometer.errors import InputError, RunLockedError, StoreError
from clinometer.store import sharing
from clinometer.store.lease import Lease
from clinometer.store.remote import Mirror, Remote, address_of
from clinometer.store.sharing import mirror_of
from clinometer.workflows import VerifyRequest, run_verify

pytestmark = pytest.mark.skipif(
    moto_server() is None, reason="moto is not installed: pip install 'moto[s3]' flask"
)


@pytest.fixture(scope="module")
def server():
    with s3_server() as address:
        yield address


@pytest.fixture
def bucket(server, monkeypatch, tmp_path):
    monkeypatch.setenv("AWS_ENDPOINT_URL", server)
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setattr(sharing, "cache_folder", lambda: tmp_path / "cache")
    return f"s3://shared/{hashlib.sha256(str(tmp_path).encode()).hexdigest()[:8]}"


@pytest.fixture(autouse=True)
def at_once(monkeypatch):
    """No test waits a second for a rival that it does not have."""
    made = Lease.__init__
    monkeypatch.setattr(Lease, "__init__", lambda self, remote, moment=0.0: made(self, remote, moment=moment))


def problems(address):
    """What verify finds in a run that is fetched."""
    return run_verify(VerifyRequest(run=clinometer.open_run(address).folder, probes=(Tiny(),))).problems


def elsewhere(monkeypatch, tmp_path):
    """Another machine: nothing of the run is here."""
    monkeypatch.setattr(sharing, "cache_folder", lambda: tmp_path / "another")


def test_a_run_on_shared_storage_is_the_run_that_is_here(bucket, tmp_path):
    here = clinometer.audit(fake(), probes=[Tiny()], folder=tmp_path / "run")
    there = clinometer.audit(fake(), probes=[Tiny()], folder=f"{bucket}/run")
    files = Remote(f"{bucket}/run").files()
    kinds = {path.partition("/")[0] for path in files}
    assert kinds == {
        "spec.toml",
        "provenance.json",
        "models.json",
        "run.sha256",
        "report.html",
        "records",
        "findings",
    }
    assert there["tiny"]["lean"].rows == here["tiny"]["lean"].rows


def test_another_machine_reads_and_verifies_it(bucket, tmp_path, monkeypatch):
    clinometer.audit(fake(), probes=[Tiny()], folder=f"{bucket}/run")
    elsewhere(monkeypatch, tmp_path)
    assert problems(f"{bucket}/run") == ()


def test_another_machine_resumes_what_a_dead_driver_left(bucket, tmp_path, monkeypatch):
    whole = clinometer.audit(fake(), probes=[Tiny()], folder=f"{bucket}/run")
    rows = whole["tiny"]["lean"].rows
    remote = Remote(f"{bucket}/run")
    (part,) = [path for path in remote.files() if path.startswith("records/")]
    for path in (part, "run.sha256"):  # as if it had died before these were sent
        remote.remove(path)
    elsewhere(monkeypatch, tmp_path)
    done = clinometer.resume(f"{bucket}/run", models=[fake()], probes=[Tiny()])
    assert done["tiny"]["lean"].rows == rows
    assert {"run.sha256", part} & set(remote.files()) >= {"run.sha256"}
    assert (
        run_verify(VerifyRequest(run=clinometer.open_run(f"{bucket}/run").folder, probes=(Tiny(),))).problems == ()
    )


def test_a_flipped_byte_in_the_store_is_found(bucket, tmp_path, monkeypatch):
    clinometer.audit(fake(), probes=[Tiny()], folder=f"{bucket}/run")
    remote = Remote(f"{bucket}/run")
    (part,) = [path for path in remote.files() if path.startswith("records/")]
    data = bytearray(remote.read(part))
    data[100] ^= 1
    remote.write(part, bytes(data))
    elsewhere(monkeypatch, tmp_path)
    run = clinometer.open_run(f"{bucket}/run").folder
    assert any(
        "the checksum differs" in each for each in run_verify(VerifyRequest(run=run, probes=(Tiny(),))).problems
    )


def test_a_place_that_has_a_run_is_refused(bucket):
    clinometer.audit(fake(), probes=[Tiny()], folder=f"{bucket}/run")
    with pytest.raises(InputError, match=r"already holds a run; continue it with `clinometer resume s3://"):
        clinometer.audit(fake(), probes=[Tiny()], folder=f"{bucket}/run")


# -- the lease


def test_two_drivers_are_refused_and_the_second_learns_who_the_first_is(bucket):
    first, second = Lease(Remote(bucket)), Lease(Remote(bucket))
    first.take()
    with pytest.raises(RunLockedError, match=r"is in use by process \d+ on .*60 seconds later"):
        second.take()
    first.renew()
    first.give_back()
    second.take()


def test_a_resume_of_a_run_that_somebody_has_changes_nothing(bucket):
    clinometer.audit(fake(), probes=[Tiny()], folder=f"{bucket}/run")
    remote = Remote(f"{bucket}/run")
    before = {path: info.size for path, info in remote.files().items()}
    Lease(remote).take()
    with pytest.raises(RunLockedError):
        clinometer.resume(f"{bucket}/run", models=[fake()], probes=[Tiny()])
    after = {path: info.size for path, info in remote.files().items() if not path.startswith("leases/")}
    assert after == before


def test_a_lease_ends_sixty_seconds_after_its_driver(bucket, monkeypatch):
    remote = Remote(bucket)
    dead = Lease(remote)
    dead.take()
    now = Lease._now
    monkeypatch.setattr(Lease, "_now", lambda self: now(self) + 55)
    with pytest.raises(RunLockedError):
        Lease(remote).take()
    monkeypatch.setattr(Lease, "_now", lambda self: now(self) + 62)
    heir = Lease(remote)
    heir.take()
    monkeypatch.setattr(Lease, "_now", now)
    with pytest.raises(RunLockedError):  # one that only slept learns that it was given up
        dead.renew()
    heir.renew()


def test_of_many_who_want_it_at_once_one_gets_it(bucket):
    got, together = [], threading.Barrier(4)

    def want():
        one = Lease(Remote(bucket), moment=2.0)  # longer than a write takes, on a busy machine too
        together.wait()
        try:
            one.take()
            got.append(one)
        except RunLockedError:
            pass

    threads = [threading.Thread(target=want) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(got) == 1


# -- the mirror


def test_what_vouches_comes_after_what_it_vouches_for(bucket, tmp_path):
    folder = tmp_path / "run"
    (folder / "records").mkdir(parents=True)
    for name in ("run.sha256", "provenance.json", "spec.toml", "places.json", "run.lock", ".tmp-00", "records/a"):
        (folder / name).write_text(name)
    order = []

    class Noting(Remote):
        def write(self, path, data):
            order.append(path)
            super().write(path, data)

    mirror = Mirror(Noting(bucket), folder)
    mirror.send()
    assert order == ["records/a", "spec.toml", "provenance.json", "run.sha256"]
    (folder / "run.sha256").unlink()
    (folder / "records/a").unlink()
    (folder / "records/b").write_text("joined")
    mirror.send()
    assert set(Remote(bucket).files()) == {"records/b", "spec.toml", "provenance.json"}


def test_a_store_that_is_not_there_is_named(monkeypatch):
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "test")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "test")
    monkeypatch.setenv("AWS_MAX_ATTEMPTS", "1")
    with pytest.raises(StoreError, match=r"cannot list s3://shared/x .*check the address"):
        Remote("s3://shared/x").files()


def test_a_file_that_is_replaced_while_it_is_read_is_read_again(bucket, monkeypatch):
    remote = Remote(bucket)
    remote.write("a", b"1")
    tries = []
    open_stream = remote._fs.open_input_stream

    class Flaky:
        type_name = remote._fs.type_name

        def open_input_stream(self, place):
            tries.append(place)
            if len(tries) == 1:
                raise OSError("Failed to flush response stream")
            return open_stream(place)

    monkeypatch.setattr(remote, "_fs", Flaky())
    assert remote.read("a") == b"1"
    assert len(tries) == 2


def test_a_folder_here_has_no_address(tmp_path):
    assert address_of(tmp_path) == ""
    assert address_of("s3:/bucket/run/") == "s3://bucket/run"
    assert mirror_of("s3://a/b") != mirror_of("s3://a/c")
