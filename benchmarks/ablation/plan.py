"""The plan of an ablation: what is compared, and the runs that takes.

A plan lists names and ids; the agent itself is code, and its experiment is found by `experiment`, or handed
over by the program that runs it.
"""

import random
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from langgraft._core.canonical import JSON
from langgraft.benchmarks.ablation.experiment import Condition
from langgraft.benchmarks.comparison.verdicts import MARGIN
from langgraft.benchmarks.harness.study import SIMULATED, BankSource, Plan, RunSpec
from langgraft.memory.recall import DEFAULT_TOKENS

STUDY: Final = "ablation"
OWN: Final = "the agent's own"
"""The model of a plan whose agent makes its own."""
NONE: Final = "none"
RERUN: Final = "rerun"
HISTORY: Final = "full_history"
CURRENT: Final = "current"
AGAINST: Final = "against"

ROUNDS: Final = 5
"""Rounds that the calls of credit by item are spent in: each goes where it can still matter."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)


class MemorySpec(_Part):
    """A memory under test."""

    name: str
    provider: str
    settings: dict[str, JsonValue] = Field(default_factory=dict)


class TestTask(_Part):
    """A task that conditions are tried on."""

    id: str
    kind: str = ""


class SourceSpec(_Part):
    """What a bank is made from."""

    name: str
    """Empty where there is only one."""
    items: tuple[str, ...]
    """Ids of tasks or episodes, or the name of a bank's file."""


class GuardSpec(_Part):
    """What a change is held against, and how long."""

    against: str
    """Digest of the earlier bank or of the outcomes of an earlier run."""
    logged: bool = False
    """Whether the outcomes are read from an earlier run."""
    batch: int = Field(default=20, ge=1)
    """Pairs of task and replicate between two looks."""


class AblationPlan(Plan):
    """What `ablate` runs; made from an `Experiment`."""

    study: Literal["ablation"] = "ablation"
    experiment: str = ""
    """Where the experiment is, as `package.module:object`; empty: a program hands it over."""
    model: str = SIMULATED
    memories: tuple[MemorySpec, ...]
    conditions: tuple[Condition, ...] = ()
    sources: tuple[SourceSpec, ...]
    made: Literal["played", "filed", "imported"] = "played"
    """How a bank comes about: tasks are played, episodes filed, or a bank imported."""
    tests: tuple[TestTask, ...]
    replicates: int = Field(ge=1)
    seed: int = 0
    budget: int = DEFAULT_TOKENS
    margin: float = MARGIN
    solved: float = 0.5
    calls: int = 1
    harm: bool = False
    """Whether items are also tried in the variants of the harm suite."""
    credit_calls: int = Field(default=0, ge=0)
    """Attempts spent on which item changed which answer."""
    guard: GuardSpec | None = None
    fingerprint: dict[str, JsonValue] = Field(default_factory=dict)
    """Digests of tasks and code."""

    def arms(self) -> Iterator["Arm"]:
        """Yield the conditions, the baseline first."""
        yield Arm(NONE)
        if RERUN in self.conditions:
            yield Arm(RERUN)
        for memory in self.memories:
            for source in self.sources:
                yield Arm(memory.name, source.name)
                for control in self.controls:
                    yield Arm(memory.name, source.name, control)
        if HISTORY in self.conditions and all(each.name != HISTORY for each in self.memories):
            for source in self.sources:
                yield Arm(HISTORY, source.name)

    @property
    def controls(self) -> tuple[str, ...]:
        """Controls of each memory, the variants of the harm suite last."""
        from langgraft.benchmarks.ablation.credit import VARIANTS  # noqa: PLC0415

        own = tuple(each for each in self.conditions if each not in (HISTORY, RERUN))
        return (*own, *(VARIANTS if self.harm else ()))

    def memory(self, name: str) -> MemorySpec:
        """Return a memory by name."""
        found = {each.name: each for each in self.memories}
        return found.get(name) or MemorySpec(name=HISTORY, provider=HISTORY)


@dataclass(frozen=True, slots=True)
class Arm:
    """A condition: a memory, the source of its bank, and what stands in its place."""

    memory: str
    source: str = ""
    control: str = ""

    @property
    def bank(self) -> str:
        """What its bank is called: `trajectory@travel`."""
        return f"{self.memory}@{self.source}" if self.source else self.memory

    @property
    def name(self) -> str:
        """The condition's name: `trajectory@travel~placebo`."""
        return f"{self.bank}~{self.control}" if self.control else self.bank

    @property
    def has_memory(self) -> bool:
        """Whether there is a bank behind it."""
        return self.memory not in (NONE, RERUN)


def runs_of(plan: AblationPlan) -> Iterator[RunSpec]:
    """Yield the runs of a plan; those that make banks come before those that need them."""
    if plan.guard is not None:
        yield from _guard_runs(plan, plan.guard)
        return
    arms = list(plan.arms())
    tests = tuple(each.id for each in plan.tests)
    for number in range(plan.replicates):
        for arm in arms:
            if arm.has_memory and not arm.control:
                yield _build(plan, arm, number)
        for arm in arms:
            yield RunSpec(
                study=STUDY,
                name=f"test {arm.name}/{number}",
                factors=_factors("test", arm, number),
                item_ids=tests,
                source=BankSource(f"build {arm.bank}/{number}") if arm.has_memory else None,
                frozen=arm.control != "write_only",
            )
        if plan.credit_calls:
            for arm in _credited(plan):
                yield from _credit_runs(plan, arm, number)


def _factors(kind: str, arm: Arm, number: int) -> dict[str, JSON]:
    return {
        "kind": kind,
        "condition": arm.name,
        "memory": arm.memory,
        "source": arm.source,
        "control": arm.control,
        "run": number,
    }


def _build(plan: AblationPlan, arm: Arm, number: int) -> RunSpec:
    items = next(list(each.items) for each in plan.sources if each.name == arm.source)
    if plan.made != "imported":
        random.Random(f"{plan.seed}/{number}").shuffle(items)  # noqa: S311  (an order, no secret)
    return RunSpec(
        study=STUDY,
        name=f"build {arm.bank}/{number}",
        factors=_factors("build", arm, number),
        item_ids=tuple(items),
    )


def _credited(plan: AblationPlan) -> list[Arm]:
    return [
        each
        for each in plan.arms()
        if each.has_memory and not each.control and each.memory != HISTORY
    ]


def _credit_runs(plan: AblationPlan, arm: Arm, number: int) -> Iterator[RunSpec]:
    """Yield the rounds of one replicate; each reads what the test and the rounds before found.

    All rounds together have as many replays as there are calls.
    """
    banks = [each.name for each in _credited(plan)]
    rounds = ROUNDS * plan.replicates * len(banks)
    earlier = [f"test {arm.name}/{number}"]
    for turn in range(ROUNDS):
        place = (turn * plan.replicates + number) * len(banks) + banks.index(arm.name)
        share = plan.credit_calls * (place + 1) // rounds - plan.credit_calls * place // rounds
        if not share:
            continue
        name = f"credit {arm.name}/{number}/round {turn}"
        yield RunSpec(
            study=STUDY,
            name=name,
            factors={**_factors("credit", arm, number), "round": turn},
            item_ids=tuple(f"replay-{place:04d}" for place in range(share)),
            source=BankSource(f"build {arm.bank}/{number}"),
            frozen=True,
            reads=tuple(earlier),
        )
        earlier.append(name)


def batches_of(plan: AblationPlan, size: int) -> list[tuple[int, tuple[str, ...]]]:
    """Return what a guard looks at, in its order: replicates, and some tasks of each."""
    batches = []
    for number in range(plan.replicates):
        order = [each.id for each in plan.tests]
        random.Random(f"guard/{plan.seed}/{number}").shuffle(order)  # noqa: S311
        batches += [(number, tuple(order[at : at + size])) for at in range(0, len(order), size)]
    return batches


def pair(task: str, number: int) -> str:
    """Name a task in a replicate."""
    return f"{task}#{number}"


def _guard_runs(plan: AblationPlan, guard: GuardSpec) -> Iterator[RunSpec]:
    """Yield the rounds of a guard: each asks first whether it is decided, and is then free."""
    arm = Arm(plan.memories[0].name, plan.sources[0].name)
    sides = (CURRENT,) if guard.logged else (CURRENT, AGAINST)
    earlier: list[str] = []
    built: set[int] = set()
    for turn, (number, tasks) in enumerate(batches_of(plan, guard.batch)):
        if number not in built:
            built.add(number)
            for side in sides:
                build = _build(plan, arm, number)
                items = build.item_ids if side == CURRENT else (guard.against,)
                yield replace(
                    build,
                    name=f"build {side}/{number}",
                    factors={**build.factors, "condition": side},
                    item_ids=items,
                    reads=tuple(earlier),
                )
        names = []
        for side in sides:
            name = f"guard {side}/round {turn}"
            names.append(name)
            yield RunSpec(
                study=STUDY,
                name=name,
                factors={**_factors("guard", arm, number), "condition": side, "round": turn},
                item_ids=tasks,
                source=BankSource(f"build {side}/{number}"),
                frozen=True,
                reads=tuple(earlier),
            )
        earlier += names


def guard_differences(rounds: Sequence[Sequence[Mapping[str, Any]]]) -> list[float]:
    """Return the differences after less before a change, pair by pair, in the order they came."""
    scores: dict[str, dict[str, float]] = {}
    for results in rounds:
        for result in results:
            if not result.get("skipped"):
                sides = scores.setdefault(result["pair"], {})
                sides[result["side"]] = result["score"]
                if "before" in result:
                    sides[AGAINST] = result["before"]
    return [each[CURRENT] - each[AGAINST] for each in scores.values() if len(each) > 1]
