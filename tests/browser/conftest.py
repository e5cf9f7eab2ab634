"""The browser that pages are looked at with."""

import shutil

import pytest
from chromium import NAMES


@pytest.fixture(scope="session")
def browser() -> str:
    """Return Chromium's path, or skip."""
    found = next(filter(None, map(shutil.which, NAMES)), None)
    if found is None:
        pytest.skip(f"no browser (one of {', '.join(NAMES)}): on Debian, `apt install chromium`")
    return found
