"""Which of our code answers for a model, and the checksum that identifies it. No torch."""

from __future__ import annotations

import ast
import functools
import hashlib
import io
import tokenize
from collections.abc import Iterator
from pathlib import Path

_ROOM = "clinometer.models.local"
_FOLDER = Path(__file__).parent / "local"


@functools.cache
def code_checksum(adapter: str) -> str:
    """Return the SHA-256 of the source that answers for models of one adapter, a module of the room `local`.

    That is the module and whatever it imports from the room, directly or not: a change in the code of chat models
    is none for a masked model. Comments, docstrings and blank lines answer nothing, so they do not count. Which
    provider opened the model does not matter.
    """
    digest = hashlib.sha256()
    for module in sorted(modules_of(adapter)):
        digest.update(module.encode() + b"\0" + what_runs(_source(module)).encode() + b"\0")
    return digest.hexdigest()


def modules_of(adapter: str) -> set[str]:
    """Return the modules of the room that an adapter consists of, such as `masked`, `text` and `fast.layers`.

    >>> "readout" in modules_of("masked"), "causal" in modules_of("masked")
    (True, False)
    """
    found: set[str] = set()
    waiting = [adapter]
    while waiting:
        module = waiting.pop()
        if module not in found:
            found.add(module)
            waiting += _imported(ast.parse(_source(module)))
    return found


def what_runs(source: str) -> str:
    """Return Python source without comments, docstrings and blank lines.

    >>> what_runs('def f(x):\\n    "Add one."\\n\\n    return x + 1  # the sum\\n')
    'def f(x):\\n    return x + 1'
    """
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    for first, last in _docstrings(ast.parse(source)):
        lines[first - 1 : last] = [""] * (last - first + 1)
    return "\n".join(kept for line in lines if (kept := line.rstrip()))


def _docstrings(tree: ast.Module) -> Iterator[tuple[int, int]]:
    """Yield the first and last line of every docstring."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            first = node.body[0] if node.body else None
            if (
                isinstance(first, ast.Expr)
                and isinstance(first.value, ast.Constant)
                and isinstance(first.value.value, str)
                and first.lineno > getattr(node, "lineno", 0)  # not on the line of `def`
            ):
                yield first.lineno, first.end_lineno or first.lineno


def _imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith(_ROOM):
            within = node.module.removeprefix(_ROOM).removeprefix(".")
            # `from room import module` names modules, `from room.module import name` does not
            named = [".".join(filter(None, (within, alias.name))) for alias in node.names]
            yield from (module for module in [within, *named] if module and _place(module).is_file())


def _source(module: str) -> str:
    return _place(module).read_text(encoding="utf-8")


def _place(module: str) -> Path:
    return _FOLDER.joinpath(*module.split(".")).with_suffix(".py")
