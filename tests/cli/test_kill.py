"""A plan on real BabyAI, run by the real command line and killed again and again."""

from pathlib import Path

import pytest
import yaml
from acceptance.kill import kill_and_resume, small_plan, three_tasks
from alfworld_cases import needs_alfworld
from memory_command import ran_here
from warm_python import started


@pytest.mark.kill
@pytest.mark.usefixtures("no_figures")
def test_run_when_killed_at_random_moments_and_reissued_then_leaves_the_same_bytes(
    tmp_path: Path,
) -> None:
    """After two SIGKILLs logs and tables are those of an uninterrupted run, and `verify` agrees."""
    plan = tmp_path / "plan.yaml"
    plan.write_text(yaml.safe_dump({**small_plan(2, 1), "sequences": ["A>B"]}))
    kills = kill_and_resume(plan, tmp_path, kills=2, seed=184, begin=started, undisturbed=ran_here)
    assert kills.killed == 2
    assert kills.files > 20
    assert kills.different == []
    assert kills.findings == []


@needs_alfworld
@pytest.mark.kill
@pytest.mark.usefixtures("no_figures")
def test_sequences_of_three_tasks_when_killed_in_both_worlds_then_leave_the_same_bytes(
    tmp_path: Path,
) -> None:
    """A SIGKILL, then resumed: logs, matrices and tables of an uninterrupted run, and reports."""
    plan = tmp_path / "plan.yaml"
    plan.write_text(yaml.safe_dump(three_tasks(1, 1)))
    kills = kill_and_resume(plan, tmp_path, kills=1, seed=172, begin=started, undisturbed=ran_here)
    assert kills.killed == 1
    assert kills.different == []
    assert kills.findings == []
    report = tmp_path / "killed-0" / "report"
    for pair in ("grid", "home"):
        matrix = (report / pair / "tables" / "accuracy_matrix.csv").read_text().splitlines()
        # Without memory, and after each of three phases, three tasks each; the control after the last.
        assert len(matrix) == 1 + 12 + 6
        assert "A → B → C" in (report / pair / "index.html").read_text("utf-8")
