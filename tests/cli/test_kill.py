"""A plan on real BabyAI, run by the real command line and killed again and again."""

from pathlib import Path

import pytest
import yaml
from acceptance.kill import kill_and_resume, small_plan


@pytest.mark.kill
def test_run_when_killed_at_random_moments_and_reissued_then_leaves_the_same_bytes(
    tmp_path: Path,
) -> None:
    """After two SIGKILLs logs and tables are those of an uninterrupted run, and `verify` agrees."""
    plan = tmp_path / "plan.yaml"
    plan.write_text(yaml.safe_dump({**small_plan(2, 1), "sequences": ["A>B"]}))
    kills = kill_and_resume(plan, tmp_path, kills=2, seed=27)
    assert kills.killed == 2
    assert kills.files > 20
    assert kills.different == []
    assert kills.findings == []
