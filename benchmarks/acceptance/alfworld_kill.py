"""`kill -9` in a study of two worlds: the environments' state is lost, and what is left is whole."""

from typing import Any

import yaml

from langgraft._core.errors import SettingsError
from langgraft.benchmarks.acceptance.figure import Figure, Setting
from langgraft.benchmarks.acceptance.kill import kill_and_resume, kill_figures
from langgraft.environments.alfworld.library import open_library

TESTS = "tests/benchmarks/continual/test_pairs.py"
"""What cuts streams of such a plan in the middle."""
SEED = 2608


def measure(setting: Setting) -> list[Figure]:
    """Kill a plan of both pairs at seeded random moments; compare with an uninterrupted run."""
    promise = "A study of two worlds leaves the bytes of an uninterrupted run"
    if setting.reduced:
        return [Figure(promise, TESTS, "run with the tests", "", None)]
    plan, wanted = setting.work / "alfworld-kill.yaml", 12
    world = world_at_hand()
    plan.write_text(yaml.safe_dump(two_worlds(world, 6, 5)))
    setting.say(f"a plan of {world} and babyai killed {wanted} times")
    kills = kill_and_resume(plan, setting.work / "alfworld-kill", kills=wanted, seed=SEED)
    return kill_figures(promise, kills, wanted, f"{world} and babyai, ")


def world_at_hand() -> str:
    """Return the world of the released games, or of generated ones where there are none."""
    try:
        return open_library().world
    except SettingsError:
        return "alfworld-generated"


def two_worlds(world: str, train_items: int, test_items: int) -> dict[str, Any]:
    """Return a continual plan with a pair of households and one of grids."""
    return {
        "study": "continual",
        "title": "Killed in two worlds",
        "train_items": train_items,
        "test_items": test_items,
        "runs": 1,
        "baseline_runs": 1,
        "pairs": [
            {
                "name": "households",
                "A": f"{world}/pick_and_place",
                "B": f"{world}/pick_clean_then_place",
            },
            {"name": "grids", "A": "babyai/action_obj_door", "B": "babyai/find_obj"},
        ],
        "conditions": [
            {"name": "raw", "provider": "trajectory"},
            {"name": "agg", "provider": "insight", "settings": {"granularity": "aggregate"}},
        ],
        "controls": [{"control": "random-own", "of": "raw", "transfer": True}],
    }
