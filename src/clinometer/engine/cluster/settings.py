"""What a cluster is asked for: how many workers, and what each of them has."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from clinometer.errors import SpecError


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterSettings:
    """A cluster as a user asks for it. Nothing here may change a finding.

    `threads` moves the last bits of a number that is computed on a CPU. So a run records it, and a resumed run
    takes that of the run, unless the user says otherwise.
    """

    address: str = ""  # of a Ray cluster that is there; "": one on this machine, for this run alone
    workers: int = 0  # 0: as many as there is room for, more when nodes join
    resources: Mapping[str, float] = field(default_factory=dict)  # of each worker: cpu, gpu, memory, your own
    threads: int = 0  # of each worker; 0: as many as it has CPUs
    logs: bool = False  # whether Ray may print what it logs

    @property
    def cpus(self) -> float:
        """How many CPUs a worker reserves."""
        return self.resources.get("cpu", 1.0)

    @property
    def gpus(self) -> float:
        """How many GPUs a worker has to itself."""
        return self.resources.get("gpu", 0.0)

    @property
    def threads_of_worker(self) -> int:
        """How many threads a worker computes with."""
        return self.threads or max(1, math.floor(self.cpus))

    def device(self, wanted: str) -> str:
        """Return the device of a worker: what it was given decides, unless the user names the CPU.

        >>> ClusterSettings(resources={"gpu": 4}).device("auto"), ClusterSettings().device("auto")
        ('gpus', 'cpu')
        """
        if wanted == "cpu" or not self.gpus:
            return "cpu"
        return "gpus" if self.gpus > 1 else "cuda"

    def actor_options(self) -> dict[str, Any]:
        """Return what Ray is told to reserve for a worker."""
        own = {name: value for name, value in self.resources.items() if name not in ("cpu", "gpu", "memory")}
        memory = {"memory": int(self.resources["memory"])} if "memory" in self.resources else {}
        return {"num_cpus": self.cpus, "num_gpus": self.gpus, "resources": own, **memory}

    def room_in(self, total: Mapping[str, float]) -> int:
        """Return how many workers a node, or a cluster, with these resources in total can have.

        >>> ClusterSettings(resources={"gpu": 1}).room_in({"CPU": 16, "GPU": 4})
        4
        """
        needed = {"CPU": self.cpus, "GPU": self.gpus, **self.actor_options()["resources"]}
        needed |= {"memory": self.resources["memory"]} if "memory" in self.resources else {}
        wanted = {name: value for name, value in needed.items() if value}
        return min((int(total.get(name, 0.0) / value + 1e-9) for name, value in wanted.items()), default=1)


def read_resources(given: Sequence[str]) -> dict[str, float]:
    """Read what a worker needs, as the command line has it.

    >>> read_resources(["gpu=1,cpu=4", "a100=1"])
    {'gpu': 1.0, 'cpu': 4.0, 'a100': 1.0}
    """
    found: dict[str, float] = {}
    for part in (part.strip() for text in given for part in text.split(",")):
        name, _, value = part.partition("=")
        try:
            amount = float(value)
        except ValueError:
            amount = math.nan
        if not name or not 0 <= amount < math.inf:
            raise SpecError(f"--worker-resources {part!r}: expected NAME=NUMBER, such as gpu=1 or cpu=4")
        found[name.lower() if name.lower() in ("cpu", "gpu", "memory") else name] = amount
    return found
