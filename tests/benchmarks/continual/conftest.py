"""What tests of reports share."""

import pytest


@pytest.fixture
def no_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Leave figures out of reports: drawing takes three quarters of the time of writing one.

    For tests of words and tables; figures are drawn where they are tested, and for logs that
    are hostile, incomplete, tiny, or of a study that was played.
    """
    monkeypatch.setattr("langgraft.benchmarks.continual.figures.draw", lambda _: {})
