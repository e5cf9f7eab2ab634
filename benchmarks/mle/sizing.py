"""How large a plan is, said before it is run: programs, time, and the steps that would fit."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from langgraft.benchmarks.harness.study import RunSpec
from langgraft.benchmarks.mle.agents import agent_named
from langgraft.benchmarks.mle.agents.settings import AgentName, AgentSettings, StepSettings
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.benchmarks.mle.runs import agent_of

SECONDS_A_PROGRAM: Final[Mapping[AgentName, float]] = {"tree": 2.5, "chain": 2.5, "mlab": 2.5}
"""Of a program of the simulated models at a competition that ships: 1.2 to 2.0 s of one processor,
as measured, and its container. A language model's may take all the time they are given."""

SLOT_MINUTES: Final = 20


def most_programs(plan: MlePlan, runs: Sequence[RunSpec]) -> int:
    """Return how many programs the runs execute at the most."""
    return sum(_programs(plan, run) for run in runs)


def size_lines(plan: MlePlan, runs: Sequence[RunSpec], *, workers: int) -> Iterator[str]:
    """Say how many programs there are at most, about how long they take, and what would fit.

    Args:
        plan: The plan.
        runs: Its runs as they would be executed.
        workers: Runs that go on at the same time.
    """
    minutes = 0.0
    for section in plan.agents:
        own = [run for run in runs if agent_of(run) == section.name]
        at_once = _at_once(section, workers)
        minutes += most_programs(plan, own) * SECONDS_A_PROGRAM[section.name] / at_once / 60
        yield _programs_line(plan, section, own)
    yield (
        f"time: at most about {_minutes(minutes)} if {_paces(plan)} and"
        f" {_at_once(plan.agents[0], workers)} run at once (a program may take {plan.seconds:g} s)"
    )
    for section in plan.agents:
        if isinstance(section, StepSettings):
            yield _hours_line(section, [run for run in runs if agent_of(run) == section.name])
    if len(plan.agents) == 1:
        yield _fitting_line(plan, runs, workers)


def _programs_line(plan: MlePlan, section: AgentSettings, runs: Sequence[RunSpec]) -> str:
    agent = agent_named(section.name)
    count = sum(run.length for run in runs)
    what = "searches" if section.name == "tree" else "runs"
    first = "" if len(plan.agents) == 1 else f" of {section.name}"
    told = f"programs{first}: at most {most_programs(plan, runs):,} in {count:,} {what}"
    told += f" of {section.steps} steps; "
    if agent.cached:
        return f"{told}what is the same in several conditions runs once"
    return f"{told}each runs them all: what a live workspace did is not kept to be looked up"


def _hours_line(section: StepSettings, runs: Sequence[RunSpec]) -> str:
    count = sum(run.length for run in runs)
    return (
        f"{section.name}: a run ends after {section.hours:g} h at the latest, all {count:,} of them"
        f" after {count * section.hours:,.0f} h, one after another"
    )


def _fitting_line(plan: MlePlan, runs: Sequence[RunSpec], workers: int) -> str:
    (section,) = plan.agents
    count = sum(run.length for run in runs)
    pace = SECONDS_A_PROGRAM[section.name] / _at_once(section, workers)
    fitting = math.floor(SLOT_MINUTES * 60 / pace / max(count, 1))
    fitting -= agent_named(section.name).most_executions(section) - section.steps
    if fitting < 1:
        return f"steps: not even one fits into {SLOT_MINUTES} minutes; take fewer searches"
    return f"steps: {fitting} would fit into {SLOT_MINUTES} minutes at that pace"


def _programs(plan: MlePlan, run: RunSpec) -> int:
    section = plan.agent(agent_of(run))
    return run.length * agent_named(section.name).most_executions(section)


def _at_once(section: AgentSettings, workers: int) -> int:
    return min(workers * agent_named(section.name).at_once(section), os.cpu_count() or 1)


def _paces(plan: MlePlan) -> str:
    paces = sorted({SECONDS_A_PROGRAM[each.name] for each in plan.agents})
    return f"a program takes {' or '.join(f'{pace:g}' for pace in paces)} s"


def _minutes(minutes: float) -> str:
    if minutes < 1:
        return "a minute"
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"  # noqa: PLR2004
