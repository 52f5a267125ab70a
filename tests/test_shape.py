"""The shape of the house: functions that can be called from memory, files that fit in a head."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "clinometer"
MOST_PARAMETERS = 12
MOST_LINES = 500
MOST_PROBE_FILES = 60
MOST_AUDIT_FILES = 9  # beside __init__.py


def is_read_by_a_tool(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Typer reads a command's options from its signature; a GPU kernel takes pointers and strides one by one."""
    command = any(
        "typer." in ast.unparse(each) or "Option" in ast.unparse(each) for each in ast.walk(function.args)
    )
    return command or any("triton" in ast.unparse(each) for each in function.decorator_list)


@pytest.mark.parametrize("room", sorted({file.relative_to(PACKAGE).parts[0] for file in PACKAGE.rglob("*.py")}))
def test_no_function_has_more_parameters_than_a_reader_can_hold(room):
    files = [PACKAGE / room] if room.endswith(".py") else list((PACKAGE / room).rglob("*.py"))
    for file in files:
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and not is_read_by_a_tool(node):
                given = node.args
                count = len(given.posonlyargs) + len(given.args) + len(given.kwonlyargs)
                assert count <= MOST_PARAMETERS, f"{file.name}:{node.lineno} {node.name} has {count} parameters"


@pytest.mark.parametrize("room", sorted({file.relative_to(PACKAGE).parts[0] for file in PACKAGE.rglob("*.py")}))
def test_no_file_is_longer_than_a_reader_can_hold(room):
    files = [PACKAGE / room] if room.endswith(".py") else list((PACKAGE / room).rglob("*.py"))
    for file in files:
        lines = len(file.read_text(encoding="utf-8").splitlines())
        assert lines <= MOST_LINES, f"{file.relative_to(PACKAGE)} has {lines} lines"


def test_an_audit_is_a_story_of_few_files():
    """Ask, read, measure, tell: what two audits both do is in the kit."""
    probes = PACKAGE / "probes"
    assert len(list(probes.rglob("*.py"))) <= MOST_PROBE_FILES
    audits = [folder for folder in probes.iterdir() if (folder / "probe.py").exists()]
    assert len(audits) == 5
    for audit in audits:
        files = sorted(file.name for file in audit.rglob("*.py") if file.name != "__init__.py")
        assert len(files) <= MOST_AUDIT_FILES, f"{audit.name} has {len(files)} files: {', '.join(files)}"
        assert {"probe.py", "options.py", "questions.py", "answers.py"} <= set(files)
        assert not list(audit.glob("*/*.py"))
