"""Which runs a study asks for.

    build/<competition>                one search a build seed, one after another, from an empty bank
    <memory>/<competition>/seed-<n>    one search

Of a plan with other agents than one tree each name begins with the agent, `chain/build/…` or
`tree-uct/build/…`. A bank belongs to one agent: what an agent meets is what another one would not.

A warm condition starts from the bank that the build run of its competition left. Conditions of
`CodingMemory` share it as far as their settings decide what is recalled, and nothing of what is kept.
A condition whose settings do (`novelty`, say), or of another provider, has a build run of its own,
`build-<memory>/<competition>`.

Runs of one competition come one after another, and within it the seeds of a condition: so runs
that are under way together use one sandbox, and what one condition ran first is known when the
next one asks for it.
"""

from collections.abc import Iterable, Iterator, Mapping
from itertools import product
from typing import Final, cast

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison.verdicts import Cell
from langgraft.benchmarks.harness.study import BankSource, RunSpec
from langgraft.benchmarks.mle.agents.settings import AgentSettings
from langgraft.benchmarks.mle.conditions import BUILD, BUILDER, MemoryCondition
from langgraft.benchmarks.mle.plan import MlePlan

SEARCH: Final = "search"
"""The phase of runs that are compared."""


def runs_of(plan: MlePlan) -> Iterator[RunSpec]:
    """List the runs of a plan, sources first."""
    return runs_at(plan, plan.competitions)


def runs_at(plan: MlePlan, competitions: Iterable[str]) -> Iterator[RunSpec]:
    """List the runs of a plan at some of its competitions, sources first."""
    for agent, competition in product(plan.agents, competitions):
        for builder in _builders(plan.memory_of(agent)):
            yield _build(plan, agent, competition, builder)
        for condition in plan.memory_of(agent):
            for seed in plan.seeds_of(agent):
                yield _search(plan, agent, competition, condition, seed)


def agent_of(spec: RunSpec) -> str:
    """Return the label of a run's agent."""
    return str(spec.factors["agent"])


def memory_of(plan: MlePlan, run: RunSpec) -> MemoryCondition:
    """Return the memory of a run: a condition of the plan, or the builder of its bank."""
    name = condition_of(run)
    return BUILDER if name == BUILD else plan.condition(name)


def condition_of(spec: RunSpec) -> str:
    """Return the memory condition of a run."""
    return str(spec.factors["memory"])


def competition_of(spec: RunSpec) -> str:
    """Return the competition of a run."""
    return str(spec.factors["competition"])


def seed_of(spec: RunSpec) -> int:
    """Return the seed of a run."""
    return int(cast("int", spec.factors["seed"]))


def tested_cell(spec: RunSpec) -> Cell | None:
    """Return what a run tests, as hypotheses name it; `None`: it builds a bank."""
    if spec.factors.get("phase") == BUILD:
        return None
    return {
        "agent": str(spec.factors.get("agent") or ""),
        "condition": condition_of(spec),
        "competition": competition_of(spec),
    }


def seed_of_item(item_id: str) -> int:
    """Return the seed that an item stands for."""
    return int(item_id.removeprefix("seed-"))


def _item(seed: int) -> str:
    return f"seed-{seed}"


def _builders(conditions: Iterable[MemoryCondition]) -> list[MemoryCondition]:
    """Return the memories that banks are built with, each once."""
    found = {}
    for condition in conditions:
        if condition.start == "warm" and condition.control is None:
            builder = BUILDER if condition.keeps_alike else condition
            found[builder.name] = builder
    return list(found.values())


def _builder_of(plan: MlePlan, condition: MemoryCondition) -> MemoryCondition:
    own = plan.filled_by(condition)
    return BUILDER if own.keeps_alike else own


def _build_name(
    plan: MlePlan, agent: AgentSettings, builder: MemoryCondition, competition: str
) -> str:
    phase = BUILD if builder is BUILDER else f"{BUILD}-{builder.name}"
    return plan.named(agent.label, f"{phase}/{competition}")


def _build(
    plan: MlePlan, agent: AgentSettings, competition: str, builder: MemoryCondition
) -> RunSpec:
    seeds = plan.build_seeds_of(agent)
    factors: Mapping[str, JSON] = {
        "agent": agent.label,
        "memory": builder.name,
        "competition": competition,
        "seed": seeds[0],
        "phase": BUILD,
    }
    name = _build_name(plan, agent, builder, competition)
    return RunSpec(plan.study, name, factors, tuple(map(_item, seeds)))


def _search(
    plan: MlePlan, agent: AgentSettings, competition: str, condition: MemoryCondition, seed: int
) -> RunSpec:
    factors: Mapping[str, JSON] = {
        "agent": agent.label,
        "memory": condition.name,
        "competition": competition,
        "seed": seed,
        "phase": SEARCH,
    }
    source = None
    if condition.start == "warm":
        builder = _builder_of(plan, condition)
        source = BankSource(_build_name(plan, agent, builder, competition))
    name = plan.named(agent.label, f"{condition.name}/{competition}/{_item(seed)}")
    return RunSpec(plan.study, name, factors, (_item(seed),), source)
