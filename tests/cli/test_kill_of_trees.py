"""A study of tree searches, run by the real command line and killed again and again."""

from pathlib import Path

import pytest
import yaml
from acceptance.kill import kill_and_resume
from memory_command import ran_here
from mle_study import house_plan
from warm_python import started


@pytest.mark.kill
@pytest.mark.usefixtures("no_figures")
def test_tree_study_when_killed_in_the_middle_of_searches_then_leaves_the_same_bytes(
    tmp_path: Path,
) -> None:
    """Searches with two programs in flight go on from their checkpoints, memory with them."""
    plan = tmp_path / "plan.yaml"
    small = house_plan(tmp_path, memory=["warm"], steps=2, width=2, seeds=[0], build_seeds=[100])
    places = {"folders": [str(tmp_path / "mine")], "data_dir": str(tmp_path / "data")}
    plan.write_text(yaml.safe_dump({**small.model_dump(mode="json"), **places}))
    kills = kill_and_resume(plan, tmp_path, kills=1, seed=5, begin=started, undisturbed=ran_here)
    assert kills.killed == 1
    assert kills.files >= 2
    assert kills.different == []
    assert kills.findings == []
