"""How long it takes until something is seen: `clinometer --help`, and the first prompt of builtin:masked.

    python benchmarks/start.py [--repeats 3]

Each is a process of its own, from its start to its end. The first prompt is set against a process that only
imports torch and the classes of transformers that such a model needs; `import torch, transformers`, which leaves
out most of transformers until it is used, is timed beside it.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable

from measured import Row, arguments, median_seconds, tell

FIRST_PROMPT = """
from clinometer.models.load import load_model
from clinometer.types import Fill
load_model("builtin:masked", device="cpu").fill([Fill(text="Why are nurses so [MASK]?", top_k=5)])
"""
IMPORTS = (
    "import torch; from transformers import AutoConfig, AutoModelForMaskedLM, BertForMaskedLM, BertTokenizerFast"
)
PLAIN = "import torch, transformers"


def main() -> None:
    """Time the processes in turns, and tell."""
    parser = arguments(__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    options = parser.parse_args()
    runs = {
        "help": _process("-m", "clinometer", "--help"),
        "prompt": _process("-c", FIRST_PROMPT),
        "imports": _process("-c", IMPORTS),
        "plain": _process("-c", PLAIN),
    }
    seconds = median_seconds(runs, repeats=options.repeats)
    rows = [
        Row(
            work="clinometer --help",
            unit="s",
            ours=seconds["help"],
            targets={"≤ 0.3 s": seconds["help"] <= 0.3},
        ),
        Row(
            work="first prompt of builtin:masked, from the start of the process",
            unit="s",
            ours=seconds["prompt"],
            others={"importing torch and the classes of transformers alone": seconds["imports"]},
            targets={"≤ 1.2 × importing alone": seconds["prompt"] <= 1.2 * seconds["imports"]},
            notes=[f"import torch, transformers, which defers most of transformers: {seconds['plain']:.2f} s"],
        ),
    ]
    tell(rows, to=options.json)


def _process(*arguments: str) -> Callable[[], object]:
    return lambda: subprocess.run([sys.executable, *arguments], check=True, stdout=subprocess.DEVNULL)


if __name__ == "__main__":
    main()
