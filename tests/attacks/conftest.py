"""The command line in this process, as `tests/cli` runs it."""

from tests.cli.conftest import clinometer

__all__ = ["clinometer"]
