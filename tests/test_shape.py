"""The shape of the house: functions that can be called from memory, files that fit in a head."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "src" / "clinometer"
MOST_PARAMETERS = 12


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
