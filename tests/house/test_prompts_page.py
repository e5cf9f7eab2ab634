"""docs/prompts.md says what agents are told today."""

import shutil
from pathlib import Path

import pytest
from prompts_page.page import COMPETITIONS, written
from prompts_page.points import AIDE, AIRA, MLAB, MLE_BENCH, OPENHANDS

from langgraft.environments import Registry
from langgraft.environments.competitions.preparing import prepare_competition

pytestmark = pytest.mark.matrix  # a whole page of prompts

PAGE = Path(__file__).parents[2] / "docs" / "prompts.md"

pytest.importorskip("pandas", reason="needs pandas: pip install 'langgraft[mle]'")


def test_page_when_prompts_change_is_written_anew(tmp_path: Path) -> None:
    """`make prompts` writes it; whatever it names as told is in the prompts, to the letter."""
    registry = Registry(tmp_path)
    competitions = [registry.get_competition(each) for each in COMPETITIONS]
    for competition in competitions:
        prepare_competition(competition)
    assert written(competitions) == PAGE.read_text("utf-8")
    shutil.rmtree(tmp_path)


def test_points_when_ours_do_not_tell_them_have_a_reason() -> None:
    """Nothing that an original tells its model is missing in silence."""
    for points in (AIDE, AIRA, MLE_BENCH, OPENHANDS, MLAB):
        assert [each.tells for each in points if not (each.ours or each.note)] == []
