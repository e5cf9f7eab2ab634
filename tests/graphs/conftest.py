"""What tests of graphs share."""

from pathlib import Path

import pytest
from tree_cases import toy

from langgraft.environments.competitions.competition import Competition


@pytest.fixture
def competition(tmp_path: Path) -> Competition:
    """Return the tiny competition."""
    return toy(tmp_path / "toy")
