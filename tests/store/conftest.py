from pathlib import Path

import pytest
from store_samples import new_run

from clinometer.store import RunFolder


@pytest.fixture
def run(tmp_path: Path) -> RunFolder:
    return new_run(tmp_path / "run")
