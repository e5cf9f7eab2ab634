"""Timeouts in memory steer a tree's programs to other packages, unless kinds are kept apart."""

from pathlib import Path

import pytest
from acceptance.tree_memory import COMPETITION, shift
from acceptance.tree_programs import Program, memories, write_programs

from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.preparing import prepare_competition
from langgraft.environments.competitions.registry import Registry
from langgraft.memory.recall import RecallContext


@pytest.fixture(scope="module")
def competition(tmp_path_factory: pytest.TempPathFactory) -> Competition:
    """Prepare the competition."""
    folder: Path = tmp_path_factory.mktemp("data")
    found = Registry(folder).get_competition(COMPETITION)
    prepare_competition(found)
    return found


def test_packages_when_timeouts_are_told_shift_and_by_stage_do_not(
    competition: Competition,
) -> None:
    """With kinds by stage every program is the one that a store without timeouts gives."""
    written = write_programs(competition, 15)
    assert shift(written, "seeded", "none").high < 0
    assert shift(written, "by stage", "seeded").low > 0
    assert written["by stage"] == written["no limits"]


def test_memories_when_debugging_tell_of_limits_also_by_stage(competition: Competition) -> None:
    """Whoever repairs a program that ran into one is told."""
    seen = "TimeoutError: the program was stopped while fitting LGBMClassifier"
    for name, memory in memories(competition).items():
        if memory is not None:
            asking = RecallContext(
                domain=f"mle/{COMPETITION}",
                task_id=COMPETITION,
                episode_id="s/9",
                stage="debug",
                step=9,
                observation=seen,
            )
            text = memory.provide("", asking).text
            assert ("LGBMClassifier" in text) is (name in {"seeded", "by stage"})


def test_program_when_it_imports_a_package_with_timeouts_is_counted() -> None:
    """By its imports, wherever they stand."""
    assert Program("draft", "def f():\n    from lightgbm import LGBMClassifier\n").boosted
    assert not Program("draft", "import sklearn  # lightgbm\n").boosted
