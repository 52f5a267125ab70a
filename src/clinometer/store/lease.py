"""Who works on a run on shared storage: a lease that its holder renews, and that ends when the holder does.

A store has no locks. So each driver writes a file of its own below `leases/`, renews it, and looks at those of the
others. Time is the store's: how old a file is, is the difference between what the store says of it and of one that
was written just now; no two machines have to agree on a clock.

To take the lease, a driver says that it wants it, waits a moment, and looks again. Whoever has renewed a lease
within the last 60 seconds has it. Of two who want it at the same moment, the smaller name gets it. The moment is
longer than a write takes, so of two drivers the later one sees the earlier.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import secrets
import time
from collections.abc import Callable
from typing import Any, final

from clinometer.errors import RunLockedError
from clinometer.store.remote import LEASES, Remote

EXPIRES = 60.0  # seconds after which nobody believes a lease that was not renewed
RENEWED = 10.0  # seconds between two renewals
MOMENT = 1.0  # seconds between wanting the lease and looking who else does


@final
class Lease:
    """The right to write to a run on shared storage."""

    def __init__(
        self,
        remote: Remote,
        *,
        expires: float = EXPIRES,
        moment: float = MOMENT,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._remote = remote
        self._expires = expires
        self._moment = moment
        self._sleep = sleep
        self._name = f"{LEASES}/{secrets.token_hex(8)}.json"

    def take(self) -> None:
        """Take the lease; raise RunLockedError with the name of a driver that has it."""
        self._refuse_held()
        self._say("wants")
        try:
            self._sleep(self._moment)
            self._refuse_held()
            fresh = self._others()
            rivals = sorted(name for name, said in fresh.items() if said.get("state") == "wants")
            if rivals and rivals[0] < self._name:
                raise self._locked(fresh[rivals[0]])
            self._say("holds")
            self._refuse_held()  # a rival whose network stood still for that moment
        except BaseException:
            self._remote.remove(self._name)
            raise
        for name in self._stale():  # nobody is behind these any more
            self._remote.remove(name)

    def renew(self) -> None:
        """Say that this driver is still there; raise RunLockedError if another took over meanwhile."""
        for said in self._others().values():
            if said.get("state") == "holds":
                raise self._locked(said)
        self._say("holds")

    def give_back(self) -> None:
        """Let others have it at once."""
        self._remote.remove(self._name)

    def _refuse_held(self) -> None:
        for said in self._others().values():
            if said.get("state") == "holds":
                raise self._locked(said)

    def _others(self) -> dict[str, dict[str, Any]]:
        """Return the leases of others that are still believed, by name, with what they say."""
        fresh = {}
        for name, age in self._ages().items():
            if name.endswith(".json") and age <= self._expires:
                with contextlib.suppress(FileNotFoundError, ValueError):  # given back just now
                    fresh[name] = dict(json.loads(self._remote.read(name)))
        return fresh

    def _stale(self) -> list[str]:
        return [name for name, age in self._ages().items() if age > self._expires]

    def _ages(self) -> dict[str, float]:
        """Return how many seconds ago the files of others were written."""
        found = {name: info for name, info in self._remote.files(LEASES).items() if name != self._name}
        if not found:
            return {}
        now = self._now()
        return {name: now - info.mtime_ns / 1e9 for name, info in found.items()}

    def _now(self) -> float:
        """Return the time by the clock of the store."""
        name = f"{LEASES}/{secrets.token_hex(8)}.now"
        self._remote.write(name, b"{}")
        try:
            return float(self._remote.files(LEASES)[name].mtime_ns) / 1e9
        finally:
            self._remote.remove(name)

    def _say(self, state: str) -> None:
        said = {"state": state, "machine": platform.node(), "process": os.getpid()}
        self._remote.write(self._name, json.dumps(said).encode())

    def _locked(self, said: dict[str, Any]) -> RunLockedError:
        who = f"process {said.get('process', '?')} on {said.get('machine', '?')}"
        return RunLockedError(
            f"{self._remote.address} is in use by {who}; "
            f"wait until it ends, or stop it: {self._expires:.0f} seconds later the run is free"
        )
