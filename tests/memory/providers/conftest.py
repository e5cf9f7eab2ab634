"""No model to call, in whatever a test of a provider does."""

from collections.abc import Iterator

import pytest

from langgraft.memory.testing.providers.base import models_refused


@pytest.fixture(autouse=True)
def _no_model() -> Iterator[None]:
    """Make every call of a language model fail."""
    with models_refused():
        yield
