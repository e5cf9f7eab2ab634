"""How large a plan is, said before it is run: programs, time, and the steps that would fit."""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from langgraft.benchmarks.harness.study import SIMULATED, RunSpec
from langgraft.benchmarks.mle.agents import agent_named
from langgraft.benchmarks.mle.agents.settings import AgentName, AgentSettings, StepSettings
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.benchmarks.mle.runs import agent_of

SECONDS_A_PROGRAM: Final[Mapping[AgentName, float]] = {"tree": 2.5, "chain": 1.5, "mlab": 1.0}
"""Of a program of the simulated models at a competition that ships: 1.2 to 2.0 s of one processor,
as measured, and its container. Of the others it is a step, of which two in three (chain) or one in
three (MLAB) execute anything, in a container that is there: 0.6 to 1.4 s, as measured. A language
model's may take all the time they are given."""

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
    for section in plan.agents:
        yield _programs_line(plan, section, _of(section, runs))
    if plan.model == SIMULATED:
        minutes = sum(
            most_programs(plan, _of(section, runs)) * _pace(section, workers) / 60
            for section in plan.agents
        )
        yield (
            f"time: at most about {_minutes(minutes)} if {_paces(plan)} and"
            f" {max(_at_once(each, workers) for each in plan.agents)} run at once (a program may take"
            f" {plan.seconds:g} s)"
        )
        if len(plan.agents) == 1:
            yield _fitting_line(plan, runs, workers)
        return
    yield f"time: as long as the models take and their programs, {plan.seconds:g} s each at most"
    for section in plan.agents:
        if isinstance(section, StepSettings):
            yield _hours_line(section, _of(section, runs))


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


def _of(section: AgentSettings, runs: Sequence[RunSpec]) -> list[RunSpec]:
    return [run for run in runs if agent_of(run) == section.name]


def _hours_line(section: StepSettings, runs: Sequence[RunSpec]) -> str:
    count = sum(run.length for run in runs)
    money = "" if section.dollars is None else f" and at most {section.dollars:,g} dollars"
    return (
        f"{section.name}: a run has at most {section.hours:g} h{money}, all {count:,} runs"
        f" {count * section.hours:,.0f} h, one after another"
    )


def _fitting_line(plan: MlePlan, runs: Sequence[RunSpec], workers: int) -> str:
    (section,) = plan.agents
    count = sum(run.length for run in runs)
    fitting = math.floor(SLOT_MINUTES * 60 / _pace(section, workers) / max(count, 1))
    fitting -= agent_named(section.name).most_executions(section) - section.steps
    if fitting < 1:
        return f"steps: not even one fits into {SLOT_MINUTES} minutes; take fewer searches"
    return f"steps: {fitting} would fit into {SLOT_MINUTES} minutes at that pace"


def _programs(plan: MlePlan, run: RunSpec) -> int:
    section = plan.agent(agent_of(run))
    return run.length * agent_named(section.name).most_executions(section)


def _at_once(section: AgentSettings, workers: int) -> int:
    return min(workers * agent_named(section.name).at_once(section), os.cpu_count() or 1)


def _pace(section: AgentSettings, workers: int) -> float:
    """Return the seconds from one program to the next, of all that run at once."""
    return SECONDS_A_PROGRAM[section.name] / _at_once(section, workers)


def _paces(plan: MlePlan) -> str:
    paces = sorted({SECONDS_A_PROGRAM[each.name] for each in plan.agents})
    if [each.name for each in plan.agents] == ["tree"]:
        return f"a program takes {paces[0]:g} s"
    paces = sorted({paces[0], paces[-1]})
    return f"a program or step takes {' to '.join(f'{pace:g}' for pace in paces)} s"


def _minutes(minutes: float) -> str:
    if minutes < 1:
        return "a minute"
    return f"{minutes:.0f} min" if minutes < 120 else f"{minutes / 60:.1f} h"  # noqa: PLR2004
