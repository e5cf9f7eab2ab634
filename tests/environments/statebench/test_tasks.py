"""Tasks and recorded trajectories as they are read; what is refused; the replay of all tool calls."""

import dataclasses
import json
import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from langgraft._core.errors import InputError, SettingsError
from langgraft.environments.statebench import StateBench
from langgraft.environments.statebench.release import import_code

NAME = "1-cancel_economy_domestic"
TASK = f"state_bench/domains/travel/tasks/{NAME}.json"
SPLITS = "state_bench/domains/travel/splits/train_test.json"
RECORDED = f"datasets/train_task_trajectories/travel/{NAME}.json"


@pytest.fixture
def copied(statebench: StateBench, tmp_path: Path) -> StateBench:
    """Return a copy of one domain, to be damaged."""
    for part in ("state_bench/domains/travel", "datasets/train_task_trajectories/travel"):
        shutil.copytree(statebench.root / part, tmp_path / part)
    code = import_code(statebench.root)
    domains = {"travel": code.domains["travel"]}
    return StateBench(dataclasses.replace(code, root=tmp_path, domains=domains))


def test_tasks_when_read_are_as_many_as_the_benchmark_says(statebench: StateBench) -> None:
    """Three domains of 150 tasks, a third of them for tests; 371 ask for a change of state."""
    assert len(statebench.domains) == 3
    counted = Counter((task.domain, task.split) for task in statebench.tasks())
    assert set(counted.values()) == {100, 50}
    assert len({task.id for task in statebench.tasks()}) == 450
    assert sum(bool(task.requirements) for task in statebench.tasks(split="train")) == 246
    assert sum(bool(task.requirements) for task in statebench.tasks(split="test")) == 125
    assert all(task.kind and task.opening for task in statebench.tasks())


def test_task_when_named_is_found_or_refused(statebench: StateBench) -> None:
    """By its id alone."""
    assert statebench.task(f"travel/{NAME}").opening.startswith("Hi, I need to cancel")
    with pytest.raises(SettingsError, match="<domain>/<name>"):
        statebench.task(NAME)
    with pytest.raises(SettingsError, match="travel"):
        statebench.tasks("travels")
    with pytest.raises(SettingsError, match="split"):
        statebench.tasks("travel", "tests")  # type: ignore[arg-type]


def test_task_when_shown_does_not_tell_its_gold_state(statebench: StateBench) -> None:
    """What is printed or logged of a task holds nothing an agent must not see."""
    assert "cancellation_fee" not in repr(statebench.task(f"travel/{NAME}"))


def test_replay_when_all_calls_are_made_again_then_every_result_is_the_recorded_one(
    statebench: StateBench,
) -> None:
    """2,842 of 2,842."""
    replay = statebench.replay()
    assert replay.different == ()
    assert replay.calls == 2_842


def test_replay_when_scored_then_four_fifths_reach_the_gold_state(statebench: StateBench) -> None:
    """197 of the 246 trajectories that carry state requirements, as the benchmark's code finds."""
    scores = [each.replay()[1] for each in statebench.trajectories()]
    assert Counter((bool(s.required), s.success) for s in scores) == {
        (True, True): 197,
        (True, False): 49,
        (False, True): 49,
        (False, False): 5,
    }
    assert all(score.share == 1 for score in scores if score.success)


def test_replay_when_a_result_was_changed_then_tells_which(copied: StateBench) -> None:
    """A difference is found, and its place."""
    path = copied.root / RECORDED
    given = json.loads(path.read_text())
    calls = [call for turn in given["conversation"] for call in turn.get("tool_calls") or ()]
    calls[3]["result"]["refund_amount"] += 1
    path.write_text(json.dumps(given))
    (different,) = copied.replay().different
    assert different.startswith(f"travel/{NAME}, call 4: cancel_booking gave")


def damaged(path: str, change: Callable[[Any], Any]) -> Callable[[Path], None]:
    """Return what changes a JSON file below a root."""

    def damage(root: Path) -> None:
        whole = json.loads((root / path).read_text())
        (root / path).write_text(json.dumps(change(whole)))

    return damage


@pytest.mark.parametrize(
    ("file", "damage", "told"),
    [
        (SPLITS, lambda root: (root / SPLITS).unlink(), "absent"),
        (SPLITS, damaged(SPLITS, lambda _: {"splits": {"train": ["a"]}}), "lists no tasks"),
        (
            SPLITS,
            damaged(SPLITS, lambda _: {"splits": {"train": ["../a"], "test": ["b"]}}),
            "lists",
        ),
        (
            SPLITS,
            damaged(SPLITS, lambda _: {"splits": {"train": ["a"], "test": ["a"]}}),
            "twice: a",
        ),
        (TASK, lambda root: (root / TASK).write_text("{"), "cannot be read as JSON"),
        (TASK, lambda root: (root / TASK).write_bytes(b" " * (1 << 21)), "larger"),
        (TASK, damaged(TASK, lambda t: {**t, "user_id": 7}), "user_id|text"),
        (TASK, damaged(TASK, lambda _: []), "is no task"),
        (TASK, damaged(TASK, lambda t: {**t, "task_env_path": "/etc/hosts"}), "lies outside"),
        (TASK, damaged(TASK, lambda t: {**t, "task_env_path": "state_bench/domains/x"}), "absent"),
        (TASK, damaged(TASK, lambda t: {**t, "state_requirements": [1]}), "is no task"),
    ],
)
def test_tasks_when_a_file_is_damaged_then_name_it(
    copied: StateBench, file: str, damage: Callable[[Path], None], told: str
) -> None:
    """One clear error, with the file, before anything is done."""
    damage(copied.root)
    with pytest.raises(InputError, match=told) as caught:
        copied.tasks()
    assert str(copied.root / file) in str(caught.value)


@pytest.mark.parametrize(
    "change",
    [
        lambda _: {},
        lambda _: {"conversation": [{"role": "judge", "content": "1"}]},
        lambda _: {"conversation": [{"role": "assistant", "tool_calls": [{"name": "f"}]}]},
        lambda _: {"conversation": 3},
    ],
)
def test_trajectories_when_one_is_damaged_then_name_it(
    copied: StateBench, change: Callable[[Any], Any]
) -> None:
    """Tasks can be read all the same."""
    damaged(RECORDED, change)(copied.root)
    assert len(copied.tasks()) == 150
    with pytest.raises(InputError, match="is no trajectory") as caught:
        copied.trajectories("travel")
    assert str(copied.root / RECORDED) in str(caught.value)
