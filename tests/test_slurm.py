"""The script for SLURM in docs/cluster.md, run with stand-ins: what would be started where, and in which order."""

from __future__ import annotations

import os
import re
import shlex
import subprocess
from pathlib import Path

import pytest
from typer.main import get_command

from clinometer.cli.main import app

PAGE = Path(__file__).parents[1] / "docs" / "cluster.md"
# each line that would be run goes to a file; `srun` refuses what SLURM would refuse
STAND_INS = {
    "scontrol": '[ "$*" = "show hostnames node[1-9]" ] || exit 9\nprintf "node1\\nnode2\\nnode3\\n"',
    "srun": """
echo "srun $*" >> "$LOG"
while [ "${1#-}" != "$1" ]; do
    case "$1" in
        --nodes=0|--ntasks=0) exit 9;;
        --nodes=*|--ntasks=*|--exclude=*|--overlap) shift;;
        -w) shift 2;;
        *) exit 9;;
    esac
done
"$@"
""",
    "ray": """
[ "$RAY_AUTH_MODE" = token ] || exit 9
[ "$*" != "get-auth-token --generate" ] || { echo secret; exit; }
echo "ray $*" >> "$LOG"
case "$*" in *--block*) sleep 0.1;; *) exit 9;; esac
""",
    "clinometer": 'echo "clinometer $*" >> "$LOG"; [ "$1" != resume ] || [ -e "$RUN" ]',
}


@pytest.fixture
def script() -> str:
    (found,) = re.findall(r"```bash\n(#!/bin/bash\n#SBATCH.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    return str(found)


def submitted(script: str, folder: Path, *, nodes: int = 3, begun: bool = False) -> list[str]:
    """Run the script and return what was run, one command a line."""
    for name, lines in STAND_INS.items():
        (folder / name).write_text(f"#!/bin/bash\n{lines}\n")
        (folder / name).chmod(0o755)
    if begun:
        (folder / "run").touch()
    job = {
        "PATH": f"{folder}:{os.environ['PATH']}", "LOG": str(folder / "log"), "RUN": str(folder / "run"),
        "SLURM_JOB_NODELIST": "node[1-9]", "SLURM_JOB_NUM_NODES": str(nodes), "SLURM_JOB_NAME": "november",
        "RAY_SECONDS": "0.3",
    }  # fmt: skip
    done = subprocess.run(["bash", "-c", script], env=job, capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == ""  # the token, above all
    return (folder / "log").read_text().splitlines()


def test_bash_can_read_it(script):
    done = subprocess.run(["bash", "-n"], input=script, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_head_is_started_first_then_the_others_then_the_audit(script, tmp_path):
    log = submitted(script, tmp_path)
    assert log[0] == "srun --nodes=1 --ntasks=1 -w node1 ray start --head --port=6379 --block"
    assert log[1] == "ray start --head --port=6379 --block"
    assert log[2] == "srun --nodes=2 --ntasks=2 --exclude=node1 ray start --address=node1:6379 --block"
    own = [line for line in log if line.startswith("clinometer")]
    assert [line.split()[1] for line in own] == ["resume", "audit"]  # there was nothing to resume
    assert all("s3://team/audits/november" in line and "--ray-address node1:6379" in line for line in own)


def test_a_second_submission_resumes_and_does_not_begin_again(script, tmp_path):
    own = [line for line in submitted(script, tmp_path, begun=True) if line.startswith("clinometer")]
    assert [line.split()[1] for line in own] == ["resume"]


def test_one_node_is_enough(script, tmp_path):
    log = submitted(script, tmp_path, nodes=1)
    assert [line.split()[0] for line in log] == ["srun", "ray", "srun", "clinometer", "srun", "clinometer"]


def test_the_command_line_knows_every_option_that_it_gives(script, tmp_path):
    for line in submitted(script, tmp_path):
        name, *rest = shlex.split(line)
        if name == "clinometer":
            command = get_command(app).commands[rest[0]]
            known = {option for each in command.params for option in each.opts}
            assert {word for word in rest if word.startswith("--")} <= known
