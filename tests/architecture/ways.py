"""Which files of langgraft are entered while something is done."""

import asyncio
import inspect
import sys
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path
from types import FrameType
from typing import Any

from langgraph.store.memory import InMemoryStore

from architecture.imports import HOME
from langgraft.benchmarks.harness import PlanLog, PreparedPlan, run_plan
from langgraft.benchmarks.studies import choose
from langgraft.memory import Budget, Episode, Outcome, RecallContext, Step
from langgraft.memory.providers import SimpleRAG

_ROOMS = {each.resolve() for each in HOME.iterdir() if each.is_dir()} | {HOME}


def entered(work: Callable[[], object]) -> list[str]:
    """Return the files whose functions run while `work` is done, in the order of first entry.

    What only defines a module or a class does not count: it runs once a process.
    """
    found: dict[str, None] = {}

    def enter(frame: FrameType, event: str, _argument: Any) -> None:
        # Bodies of modules and classes are not optimized; a comprehension may be of such a body.
        code = frame.f_code
        if (
            event == "call"
            and code.co_flags & inspect.CO_OPTIMIZED
            and not code.co_name.endswith(("comp>", "genexpr>"))
        ):
            found.setdefault(frame.f_code.co_filename)

    threading.setprofile(enter)
    sys.setprofile(enter)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return [name for each in found if (name := _named(Path(each)))]


def _named(file: Path) -> str:
    """Return the path of one of our files from its room on, else nothing."""
    real = file.resolve()
    for room in _ROOMS:
        if real.is_relative_to(room):
            inside = real.relative_to(room).as_posix()
            return inside if room == HOME else f"{room.name}/{inside}"
    return ""


def way_of_an_episode() -> dict[str, list[str]]:
    """Return the files entered by filing an episode and by a recall after it."""
    provider = SimpleRAG(InMemoryStore())
    for number in range(3):
        _file(provider, number)
    query, context = (
        "heat the mug",
        RecallContext(domain="alfworld/heat", task_id="task-9", episode_id="episode-9"),
    )
    provider.provide(query, context, Budget())
    return {
        "take_in": entered(lambda: _file(provider, 3)),
        "provide": entered(lambda: provider.provide(query, context, Budget())),
    }


def _file(provider: SimpleRAG, number: int) -> None:
    provider.file(
        Episode(
            id=f"episode-{number}",
            domain="alfworld/heat",
            task_id=f"task-{number}",
            task=f"heat mug {number} with the microwave",
            steps=(Step("the mug is cold", "heat mug 1 with microwave 1", "The mug is hot."),),
            outcome=Outcome(success=True),
        )
    )


def way_of_a_plan(name: str = "demo") -> dict[str, list[str]]:
    """Return the files entered from a plan's name to its first runs, their commits and the report.

    Of one item each; agents, worlds and simulated models are left out, which are the study's matter.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "out"
        ways = {}
        prepared: list[PreparedPlan[Any]] = []
        ways["plan → runs"] = entered(
            lambda: prepared.append(choose(name, model=None, base_url=None, limit=1))
        )
        plan = prepared[0]
        model_for = plan.study.simulated_model
        ways["runs → items.jsonl"] = entered(
            lambda: asyncio.run(run_plan(plan, out, model_for=model_for, concurrency=1))
        )
        ways["items.jsonl → page"] = entered(
            lambda: plan.study.report(plan.plan, PlanLog(out), out / "report")
        )
    return {
        way: [
            each
            for each in files
            if each.startswith(("_core", "benchmarks")) and "simulated" not in each
        ]
        for way, files in ways.items()
    }
