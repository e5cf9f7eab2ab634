"""Which runs a tree study asks for.

    build/<competition>                one search a build seed, one after another, from an empty bank
    <memory>/<competition>/seed-<n>    one search

A warm condition starts from the bank that the build run of its competition left. Conditions of
`CodingMemory` share it: their settings decide what is recalled, and nothing of what is kept. A
condition of another provider has a build run of its own, `build-<memory>/<competition>`.

Runs of one competition come one after another, and within it the seeds of a condition: so runs
that are under way together use one sandbox, and what one condition ran first is known when the
next one asks for it.
"""

from collections.abc import Iterator, Mapping
from typing import Final, cast

from langgraft._core.canonical import JSON
from langgraft.benchmarks.harness.study import BankSource, RunSpec
from langgraft.benchmarks.mle.conditions import BUILD, BUILDER, CODING, MemoryCondition
from langgraft.benchmarks.mle.plan import AgentName, MlePlan

SEARCH: Final = "search"
"""The phase of runs that are compared."""


def runs_of(plan: MlePlan) -> Iterator[RunSpec]:
    """List the runs of a plan, sources first."""
    for agent in plan.agents:
        for competition in plan.competitions:
            for builder in _builders(plan):
                yield _build(plan, agent, competition, builder)
            for condition in plan.memory:
                for seed in plan.seeds:
                    yield _search(plan, agent, competition, condition, seed)


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


def seed_of_item(item_id: str) -> int:
    """Return the seed that an item stands for."""
    return int(item_id.removeprefix("seed-"))


def _item(seed: int) -> str:
    return f"seed-{seed}"


def _builders(plan: MlePlan) -> list[MemoryCondition]:
    """Return the memories that banks are built with, each once."""
    found = {}
    for condition in plan.memory:
        if condition.start == "warm" and condition.control is None:
            builder = BUILDER if condition.provider_name == CODING else condition
            found[builder.name] = builder
    return list(found.values())


def _builder_of(plan: MlePlan, condition: MemoryCondition) -> MemoryCondition:
    own = condition if condition.of is None else plan.condition(condition.of)
    return BUILDER if own.provider_name == CODING else own


def _build_name(builder: MemoryCondition, competition: str) -> str:
    return f"{BUILD if builder is BUILDER else f'{BUILD}-{builder.name}'}/{competition}"


def _build(plan: MlePlan, agent: AgentName, competition: str, builder: MemoryCondition) -> RunSpec:
    factors: Mapping[str, JSON] = {
        "agent": agent,
        "memory": builder.name,
        "competition": competition,
        "seed": plan.build_seeds[0],
        "phase": BUILD,
    }
    items = tuple(_item(seed) for seed in plan.build_seeds)
    return RunSpec(plan.study, _build_name(builder, competition), factors, items)


def _search(
    plan: MlePlan, agent: AgentName, competition: str, condition: MemoryCondition, seed: int
) -> RunSpec:
    factors: Mapping[str, JSON] = {
        "agent": agent,
        "memory": condition.name,
        "competition": competition,
        "seed": seed,
        "phase": SEARCH,
    }
    source = None
    if condition.start == "warm":
        source = BankSource(_build_name(_builder_of(plan, condition), competition))
    name = f"{condition.name}/{competition}/{_item(seed)}"
    return RunSpec(plan.study, name, factors, (_item(seed),), source)
