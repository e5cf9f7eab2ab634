"""Competitions to work at."""

from pathlib import Path

import pytest
from scientist_cases import Case, make_cases


@pytest.fixture(scope="session")
def cases(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Case]:
    """Return a small competition of each form."""
    folder: Path = tmp_path_factory.mktemp("competitions")
    return make_cases(folder)
