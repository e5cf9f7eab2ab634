"""Whether what memory changes depends on the policy, or the model, of an agent: a crossing.

Agents of one kind meet the same competitions with the same seeds: what a memory changed in one of them
less what it changed in another is a difference of differences, paired by competition and seed. The
first agent of the plan is the one that others are held against. The family is declared before anything
is run: every memory in every other agent, by the rate of failures and by all confirmatory measures of
diversity, which are those that are neither good nor bad in themselves. So it can be asked whether fewer
failures at less diversity (mle-agent-memory §4.3) are due to memory, or to greedy search.
"""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Final

from langgraft.benchmarks.comparison.measures import (
    Measure,
    MeasureContrast,
    Measured,
    Roles,
    compare_measures,
)
from langgraft.benchmarks.comparison.outcomes import Pair
from langgraft.benchmarks.mle.analysis import Analysis
from langgraft.benchmarks.mle.searches import Kind

FAILURES: Final = "bug_rate"
"""The measure of failures."""

_NOTHING: Final = "none"
_MEAN: Final = "mean"


def is_diversity(measure: Measure) -> bool:
    """Say whether a measure is one of diversity: neither more nor less of it is good in itself."""
    return measure.confirmatory and measure.better is None


@dataclass(frozen=True)
class Crossed:
    """What one memory, or control, changes by one measure in every agent."""

    condition: str
    measure: Measure
    within: Mapping[str, MeasureContrast]
    """By agent: the condition less the baseline, corrected in the agent's own family."""
    between: Mapping[str, MeasureContrast]
    """By agent other than the first: what the condition changes there less what it changes in the first."""
    mean: MeasureContrast
    """What it changes in the mean of the agents; in no family."""

    @property
    def in_question(self) -> bool:
        """Whether the declared family asks of it: failures, and diversity."""
        return self.measure.name == FAILURES or is_diversity(self.measure)


@dataclass(frozen=True)
class Crossing:
    """The agents of one kind, and what memories change in each."""

    kind: Kind
    agents: tuple[str, ...]
    """In the plan's order."""
    baseline: str
    conditions: tuple[str, ...]
    """Those that all agents have; memories first, controls last."""
    controls: frozenset[str]
    rows: tuple[Crossed, ...]

    @property
    def reference(self) -> str:
        """The agent that others are held against."""
        return self.agents[0]

    @property
    def family(self) -> tuple[MeasureContrast, ...]:
        """The declared family, whose p values are corrected together."""
        return tuple(e for row in self.rows for e in row.between.values() if e.in_family)

    def of(self, condition: str) -> tuple[Crossed, ...]:
        """Return the rows of a condition."""
        return tuple(row for row in self.rows if row.condition == condition)

    def judged(self, condition: str) -> tuple[str, ...]:
        """Return the agents of which a verdict on failures and diversity can be had."""
        asked = [row for row in self.of(condition) if row.in_question]
        unjudged = {"too few runs", "incomplete"}
        return tuple(
            agent
            for agent in self.agents
            if not unjudged & {row.within[agent].sharpest_verdict for row in asked}
        )

    def trading(self, condition: str) -> tuple[str, ...]:
        """Return the agents in which failures and some diversity both fall, beyond chance."""
        rows = self.of(condition)
        fewer = {a for row in rows if row.measure.name == FAILURES for a in _falling(row)}
        narrower = {a for row in rows if is_diversity(row.measure) for a in _falling(row)}
        return tuple(agent for agent in self.agents if agent in fewer & narrower)

    def differing(self, condition: str) -> tuple[tuple[str, Measure], ...]:
        """Return the agents and measures by which what a condition changes is another, beyond chance."""
        return tuple(
            (agent, row.measure)
            for row in self.of(condition)
            for agent, found in row.between.items()
            if found.in_family and found.sharpest_verdict == "changed"
        )


def _falling(row: Crossed) -> Iterator[str]:
    for agent, found in row.within.items():
        told = found.sharpest_verdict in {"better", "worse", "changed"}
        if told and found.sharpest is not None and found.sharpest.value < 0:
            yield agent


def crossings(analyses: Sequence[Analysis]) -> tuple[Crossing, ...]:
    """Cross memory with the agents of each kind of which there are several."""
    kinds: dict[str, list[Analysis]] = {}
    for each in analyses:
        kinds.setdefault(each.searches.kind, []).append(each)
    return tuple(_crossing(found) for found in kinds.values() if len(found) > 1)


def _crossing(analyses: Sequence[Analysis]) -> Crossing:
    first = analyses[0].searches
    conditions = [
        name
        for name in first.compared
        if all(name in other.searches.compared for other in analyses[1:])
    ]
    asked = [
        (condition, name)
        for condition in conditions
        for name, found in analyses[0].measured.items()
        if found.measure.confirmatory
    ]
    agents = tuple(each.agent for each in analyses)
    crossed = [_differences(analyses, *each, first.roles) for each in asked]
    between = compare_measures(crossed) if crossed else ()
    # One agent after the other, each by all measures.
    found = dict(zip(product(agents[1:], asked), between, strict=True))
    rows = tuple(
        Crossed(
            condition=condition,
            measure=analyses[0].measured[name].measure,
            within={each.agent: each.contrast(condition, name) for each in analyses},
            between={agent: found[agent, (condition, name)] for agent in agents[1:]},
            mean=_mean(measured, analyses[0].measured[name].measure),
        )
        for (condition, name), measured in zip(asked, crossed, strict=True)
    )
    controls = frozenset(filter(first.roles.controls.__contains__, conditions))
    return Crossing(first.kind, agents, first.baseline, tuple(conditions), controls, rows)


def _differences(analyses: Sequence[Analysis], condition: str, name: str, roles: Roles) -> Measured:
    """Return what a condition changed, by agent, as values that can be compared in their turn."""
    known = {each.agent: each.measured[name] for each in analyses}
    measure = next(iter(known.values())).measure
    judged = roles.is_memory(condition) and (measure.name == FAILURES or is_diversity(measure))
    return Measured(
        # That memory changes more in one of them is neither good nor bad.
        replace(measure, better=None, confirmatory=judged),
        {agent: each.differences(condition) for agent, each in known.items()},
        {a: e.planned[condition] & e.planned[e.roles.baseline] for a, e in known.items()},
        2 * max(each.most for each in known.values()),
        Roles(baseline=analyses[0].agent, reruns=(), placebos=(), others=()),
    )


def _mean(measured: Measured, measure: Measure) -> MeasureContrast:
    """Compare the mean of the agents with nothing."""
    pairs = frozenset.intersection(*(frozenset(each) for each in measured.values.values()))
    values: dict[Pair, float | None] = {}
    for pair in sorted(pairs):
        known = [each[pair] for each in measured.values.values()]
        told = [each for each in known if each is not None]
        values[pair] = math.fsum(told) / len(told) if len(told) == len(known) else None
    planned = frozenset.intersection(*measured.planned.values())
    averaged = replace(
        measured,
        measure=replace(measure, confirmatory=False),
        values={_NOTHING: dict.fromkeys(values, 0.0), _MEAN: values},
        planned={_NOTHING: planned, _MEAN: planned},
        most=measured.most / 2,
        roles=replace(measured.roles, baseline=_NOTHING),
    )
    return averaged.contrast(_MEAN)
