"""The tree policy's part of acceptance."""

from pathlib import Path

import pytest
from acceptance.figure import Setting
from acceptance.tree_policy import measure

CHECKOUT = Path(__file__).resolve().parents[3]


@pytest.mark.matrix  # whole searches
def test_acceptance_when_there_are_no_runs_of_aide_still_holds_the_policies_to_the_rules(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What cannot be measured is said to be so, and fails nothing."""
    monkeypatch.setenv("LANGGRAFT_DATA", str(tmp_path))
    *rules, real = measure(Setting(tmp_path, CHECKOUT, reduced=True, say=lambda line: None))
    assert [figure.passed for figure in rules] == [True] * 4
    assert real.passed is None
    assert "LANGGRAFT_DATA" in real.figure
