"""What is compared between conditions, for each kind of agent, and over all runs of a study.

A measure that means nothing for an agent is in neither its list nor its family. The declared family
comes first in each list.
"""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from langgraft.benchmarks.comparison.measures import Better, Measure, Measured
from langgraft.benchmarks.mle.behaviour.programs import MOST_OPERATORS
from langgraft.benchmarks.mle.behaviour.steps import StepBehavior
from langgraft.benchmarks.mle.behaviour.trees import TreeBehavior
from langgraft.benchmarks.mle.outcomes import earned
from langgraft.benchmarks.mle.searches import Kind, Search, Searches

Value = Callable[[Search], float | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunMeasure(Measure):
    """A number of a run, and where it is found."""

    value: Value
    """`None` where a run has no such number; its pair is then left out."""
    most: Callable[[Searches], float]
    """The largest value there can be in a study; the least is 0, or there is none of either."""


def measured(searches: Searches) -> dict[str, Measured]:
    """Return all measures of an agent's runs by name; an item is a competition, a run a seed."""
    planned = {name: searches.planned_pairs(name) for name in searches.conditions}
    return {
        measure.name: Measured(
            measure,
            {
                name: {run.pair: measure.value(run) for run in searches.of(name)}
                for name in searches.conditions
            },
            planned,
            measure.most(searches),
            searches.roles,
        )
        for measure in MEASURES[searches.kind]
    }


def _number(
    name: str,
    label: str,
    unit: str,
    value: Value,
    most: Callable[[Searches], float],
    *,
    better: Better | None = None,
    confirmatory: bool = True,
    digits: int = 2,
) -> RunMeasure:
    return RunMeasure(
        name, label, unit, better, confirmatory, digits=digits, value=value, most=most
    )


def _share(
    name: str,
    label: str,
    value: Value,
    better: Better | None = None,
    *,
    unit: str = "%",
    confirmatory: bool = True,
) -> RunMeasure:
    """Return a measure from 0 to 1 that is written in percent."""
    return RunMeasure(
        *(name, label, unit, better, confirmatory),
        scale=100,
        digits=1,
        value=value,
        most=lambda _: 1.0,
    )


def _longest(searches: Searches) -> float:
    return float(searches.longest)


def _late_steps(searches: Searches) -> float:
    return float(max(searches.longest - searches.split, 0))


def _all_operators(_: Searches) -> float:
    return float(MOST_OPERATORS)


def _all_packages(searches: Searches) -> float:
    """Count the packages that any valid program of the study imports."""
    return float(len({name for search in searches.done for name in search.behavior.package_steps}))


def _all_tools(searches: Searches) -> float:
    """Count the actions that any run of the study took."""
    return float(len({name for run in searches.step_runs for name in run.behavior.tools}))


def _most_commands(searches: Searches) -> float:
    """Return the commands of the run that issued most: no run has more kinds than commands."""
    return float(max((run.behavior.commands for run in searches.step_runs), default=0))


def _best(searches: Searches) -> float:
    """Return 1 where all final scores are fractions; other scores have no bound."""
    found = [search.behavior.final for search in searches.done]
    inside = all(0 <= value <= 1 for value in found if value is not None)
    return 1.0 if inside else math.inf


def _recurrence(search: Search) -> float | None:
    found = search.behavior.errors_recur
    return None if found is None else float(found)


def _tree(search: Search) -> TreeBehavior:
    assert isinstance(search.behavior, TreeBehavior)
    return search.behavior


def _steps(search: Search) -> StepBehavior:
    assert isinstance(search.behavior, StepBehavior)
    return search.behavior


def _first_valid(label: str) -> RunMeasure:
    """Return when a run first had something that works, under the agent's word for it."""
    return _number(
        "first_valid",
        label,
        "steps",
        lambda s: s.behavior.first_valid.step,
        _longest,
        better="lower",
    )


# What all agents have; each agent's list says where it stands.
_BUG_RATE = _share("bug_rate", "bug rate", lambda s: s.behavior.bug_rate, "lower")
_OPERATORS = _number(
    "operators",
    "N_eff of operators",
    "operators",
    lambda s: s.behavior.operators_pooled,
    _all_operators,
)
_PACKAGES = _number(
    "packages",
    "N_eff of packages",
    "packages",
    lambda s: s.behavior.package_imports_pooled,
    _all_packages,
)
_EFFECTS = (
    _number(
        "late_errors",
        "late-phase errors",
        "steps",
        lambda s: s.behavior.late_errors,
        _late_steps,
        better="lower",
    ),
    _number(
        "best_metric",
        "best validation metric",
        "",
        lambda s: s.behavior.final,
        _best,
        better="higher",
        digits=4,
    ),
    _share("any_medal", "any medal", lambda s: earned(s, "any_medal"), "higher"),
)
_BESIDE = (
    _share(
        "above_median",
        "above median",
        lambda s: earned(s, "above_median"),
        "higher",
        confirmatory=False,
    ),
    _share(
        "valid_submission",
        "valid submission",
        lambda s: earned(s, "valid_submission"),
        "higher",
        confirmatory=False,
    ),
    _share(
        "error_recurrence",
        "error recurrence",
        _recurrence,
        "lower",
        unit="% of runs",
        confirmatory=False,
    ),
)

_TREE: Final = (
    _BUG_RATE,
    _first_valid("first valid node"),
    _OPERATORS,
    _PACKAGES,
    _share("code_distance", "valid code distance", lambda s: _tree(s).token_distance),
    *_EFFECTS,
    *_BESIDE,
    _number(
        "operators_per_program",
        "N_eff of operators, per program",
        "operators",
        lambda s: _tree(s).operators_per_program,
        _all_operators,
        confirmatory=False,
    ),
    _number(
        "packages_per_program",
        "N_eff of packages, per program",
        "packages",
        lambda s: _tree(s).package_imports_per_program,
        _all_packages,
        confirmatory=False,
    ),
    _number(
        "package_sets",
        "N_eff of packages, once a program",
        "packages",
        lambda s: _tree(s).packages_pooled,
        _all_packages,
        confirmatory=False,
    ),
    _share(
        "name_distance",
        "valid code distance, names",
        lambda s: _tree(s).name_distance,
        confirmatory=False,
    ),
)
"""Of a tree (mle-agent-memory Table 2)."""

_CHAIN: Final = (
    _BUG_RATE,
    _first_valid("first valid step"),
    _number("tools", "N_eff of tools", "actions", lambda s: _steps(s).tools_number, _all_tools),
    _number(
        "commands",
        "N_eff of commands",
        "commands",
        lambda s: _steps(s).commands_number,
        _most_commands,
    ),
    _OPERATORS,
    _PACKAGES,
    *_EFFECTS,
    *_BESIDE,
    _share(
        "execution_bug_rate",
        "bug rate of executions",
        lambda s: _steps(s).execution_bug_rate,
        "lower",
        confirmatory=False,
    ),
    _share(
        "failed_steps",
        "failed steps",
        lambda s: _steps(s).failed_step_rate,
        "lower",
        confirmatory=False,
    ),
    _share(
        "late_error_rate",
        "late-phase errors, of late steps",
        lambda s: _steps(s).late_error_rate,
        "lower",
        confirmatory=False,
    ),
    _number(
        "steps_used",
        "steps used",
        "steps",
        lambda s: s.behavior.steps,
        _longest,
        confirmatory=False,
    ),
    _number(
        "normalized_commands",
        "N_eff of commands, normalized",
        "commands",
        lambda s: _steps(s).normalized_commands_number,
        _most_commands,
        confirmatory=False,
    ),
)
"""Of agents that work step by step (Tables 3 and 9)."""

MEASURES: Final[Mapping[Kind, tuple[RunMeasure, ...]]] = {
    "tree": _TREE,
    "chain": _CHAIN,
    # The same but for commands: MLAB's tools take names of files, and no code.
    "mlab": tuple(each for each in _CHAIN if each.unit != "commands"),
}
