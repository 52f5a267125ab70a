"""The import arrows of docs/design.md, kept true by reading every import statement of the package."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "clinometer"

STANDARD = set(sys.stdlib_module_names)

# room -> rooms of ours that it may import; "models.protocols" is narrower than "models"
OURS = {
    "__init__": {"front"},
    "__main__": {"cli"},
    "types": set(),
    "errors": set(),
    "plain": set(),
    "limits": set(),
    "plugins": {"errors"},
    "folders": set(),
    "spec": {"types", "limits", "errors"},
    "questions": {"types"},
    "metrics": set(),
    "stats": {"errors"},
    "data": {"types", "limits", "errors", "plain"},
    "models": {"types", "questions", "limits", "errors", "folders", "plugins", "data"},
    "probes": {"types", "errors", "plain", "plugins", "data", "metrics", "stats", "models.protocols"},
    "store": {"types", "questions", "limits", "errors", "plain", "folders", "models.protocols"},
    "engine": {"types", "questions", "errors", "plain", "plugins", "folders", "models", "store"},
    "report": {"types", "limits", "errors", "plain", "folders", "store", "stats"},
    "results": {"types", "errors", "store", "report"},
    "annotation": {"errors", "plain", "data", "stats", "store"},
    "replication": {"limits", "errors", "data", "metrics", "probes"},
    "train": {"types", "limits", "errors", "data", "models", "stats", "engine.progress", "probes.kit"},
    "workflows": {
        "__init__", "limits", "types", "errors", "spec", "questions", "data", "models", "probes", "store",
        "engine", "report", "results", "train", "replication",
    },
    "front": {
        "types", "errors", "spec", "data", "models", "probes", "store", "engine", "results", "workflows", "train",
    },
    "cli": {
        "__init__", "limits", "types", "errors", "plain", "plugins", "spec", "data", "stats", "annotation",
        "models", "probes", "store", "engine", "report", "results", "workflows", "front", "train",
        "replication",
    },
}  # fmt: skip

# room -> other people's packages that it may import
THEIRS = {
    "__init__": set(),
    "__main__": set(),
    "types": set(),
    "errors": set(),
    "plain": set(),
    "limits": set(),
    "spec": {"pydantic", "tomli_w"},
    "questions": {"numpy"},
    "plugins": set(),
    "folders": set(),
    "results": {"polars", "pandas"},
    "metrics": {"numpy", "scipy"},
    "stats": {"numpy", "scipy"},
    "data": {"polars", "pyarrow", "datasets", "filelock"},
    "models": {
        "torch", "transformers", "tokenizers", "safetensors", "huggingface_hub", "numpy", "gguf", "accelerate",
        "filelock", "jinja2", "peft", "triton", "openai", "httpx2", "xllamacpp", "vllm",
    },
    "probes": {"numpy", "polars", "pydantic"},
    "store": {"numpy", "pyarrow", "polars", "filelock"},
    "engine": {"numpy", "ray", "filelock"},
    "report": {"altair", "vl_convert", "jinja2", "markupsafe", "polars", "huggingface_hub", "yaml"},
    "annotation": {"numpy", "polars"},
    "replication": {"numpy"},
    "train": {"torch", "transformers", "safetensors", "numpy", "tomli_w", "accelerate", "peft", "filelock"},
    "workflows": {"polars", "huggingface_hub"},
    "front": set(),
    "cli": {"typer", "rich"},
}  # fmt: skip

# files of the models room that the torch-free rooms read
WITHOUT_TORCH = (
    "models/protocols.py",
    "models/fake.py",
    "models/word_model.py",
    "models/builtin.py",
    "models/callable_scorer.py",
    "models/files.py",
    "models/load.py",
    *(f"models/endpoint/{file.name}" for file in (PACKAGE / "models" / "endpoint").glob("*.py")),
    "models/__init__.py",
    "models/providers/__init__.py",
    "models/providers/adapters.py",
    "models/providers/answers.py",
    "models/providers/gguf.py",
    "models/providers/local.py",
    "models/providers/openai.py",
    "models/providers/opinion_words.py",
    "models/providers/protocol.py",
    "models/providers/vllm.py",
)


def room_of(file: Path) -> str:
    return file.relative_to(PACKAGE).parts[0].removesuffix(".py")


def imports(file: Path, *, at_top_only: bool = False) -> set[str]:
    """Every module that a file imports, by full name."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    nodes = tree.body if at_top_only else ast.walk(tree)
    found: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: write imports in full"
            assert node.module is not None
            if node.module == "clinometer":
                # a name of the package itself, or one of its rooms
                names = [alias.name for alias in node.names]
                found |= {f"clinometer.{name if name in OURS else '__init__'}" for name in names}
            else:
                found.add(node.module)
    return found


FILES = sorted(PACKAGE.rglob("*.py"))


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(PACKAGE)))
def test_a_room_imports_only_what_the_design_allows(file):
    room = room_of(file)
    for module in imports(file):
        top, _, rest = module.partition(".")
        if top == "clinometer":
            target = rest.split(".")[0]
            narrow = ".".join(rest.split(".")[:2])
            assert target == room or target in OURS[room] or narrow in OURS[room], f"{file}: imports {module}"
        else:
            assert top in STANDARD or top in THEIRS[room], f"{file}: imports {module}"


def test_every_room_has_its_arrows():
    assert {room_of(file) for file in FILES} == set(OURS) == set(THEIRS)


@pytest.mark.parametrize("name", WITHOUT_TORCH)
def test_what_torch_free_rooms_read_does_not_import_torch_at_the_top(name):
    tops = {module.split(".")[0] for module in imports(PACKAGE / name, at_top_only=True)}
    assert not tops & {"torch", "transformers", "tokenizers", "safetensors", "huggingface_hub"}


@pytest.mark.parametrize(
    "statement",
    [
        "import clinometer",
        "import clinometer.cli.main",
        "from clinometer import audit, open_run, verify, write_report",
    ],
)
def test_the_front_door_opens_without_torch(statement):
    assert loaded_after(statement, "torch", "transformers") == "[]"


def test_the_command_line_does_not_load_what_help_does_not_need():
    heavy = ("torch", "polars", "pyarrow", "numpy", "altair", "pydantic")
    assert loaded_after("import clinometer.cli.main", *heavy) == "[]"


def loaded_after(statement: str, *modules: str) -> str:
    """Which of the modules a fresh interpreter has loaded after the statement."""
    program = f"{statement}\nimport sys\nprint(sorted(set({modules!r}) & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    return done.stdout.strip()
