"""Which condition of a plan plays which of the paper's: by what it is, never by its name.

Raw keeps trajectories; Insight, which is Cond-Agg too, bundles of lessons; Cond-Ind single
lessons; Cond-Step single lessons, asked for again while an episode goes on (Table 7).
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from langgraft.benchmarks.continual.conditions import Condition, paper_conditions
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.harness.foreign_code import provider_place
from langgraft.benchmarks.published import ROLES, Role
from langgraft.memory.providers import provider_settings

_OPEN: Final = frozenset({"top_k", "requery_interval", "success_only", "ranker"})
_FIELDS: Final = frozenset({"key_fields", "query_fields", "requery_fields"})
"""Settings that may differ: those of Table 8, and what the paper leaves open."""


def roles(plan: ContinualPlan) -> dict[Role, Condition]:
    """Return the condition that plays each role, where there is one.

    A remedy, and one that distills by outcome, plays none. Of several, the one with the paper's
    own settings does, else the first.
    """
    found: dict[Role, Condition] = {}
    for role, ideal in _ideals().items():
        fits = [each for each in plan.conditions if _plays(each, ideal)]
        exact = [each for each in fits if departures(each, ideal) == {}]
        if fits:
            found[role] = (exact or fits)[0]
    return found


def paper_condition(role: Role) -> Condition:
    """Return a role with the settings of Table 8."""
    return _ideals()[role]


def _ideals() -> dict[Role, Condition]:
    return dict(zip(ROLES, paper_conditions(), strict=True))


def departures(condition: Condition, ideal: Condition) -> dict[str, tuple[Any, Any]]:
    """Return the settings in which a condition differs from the paper's: its value, and ours."""
    wanted, there = _settings(ideal), _settings(condition)
    names = [name for name in there if there[name] != wanted.get(name)]
    return {name: (wanted.get(name), there[name]) for name in names}


def _plays(condition: Condition, ideal: Condition) -> bool:
    if condition.mends is not None or condition.distillation != "plain":
        return False
    if provider_place(condition.provider) != provider_place(ideal.provider):
        return False
    found = departures(condition, ideal)
    asks = found.get("requery_interval", (1, 1))
    return found.keys() <= _OPEN | _FIELDS and None not in asks


def _settings(condition: Condition) -> Mapping[str, Any]:
    settings = provider_settings(condition.provider, condition.settings)
    return {name: getattr(settings, name) for name in type(settings).model_fields}


def others(plan: ContinualPlan) -> Sequence[tuple[str, str]]:
    """List what plays no role, with what it is: further conditions, then controls."""
    playing = {condition.name for condition in roles(plan).values()}
    found = [(each.name, _kind(each)) for each in plan.conditions if each.name not in playing]
    return [*found, *((each.name, f"control of {each.of}") for each in plan.controls)]


def _kind(condition: Condition) -> str:
    words = []
    if condition.mends is not None:
        words.append(f"to improve on {condition.mends}")
    if condition.distillation != "plain":
        words.append("distills by outcome")
    return ", ".join(words) or "another memory"
