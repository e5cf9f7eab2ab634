"""The guide to the study: its counts are those of the plans, its plan is one, its files exist."""

import re
from pathlib import Path

import pytest
import yaml

from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.columns import MEANINGS
from langgraft.benchmarks.continual.paper.counterparts import departures, paper_condition, roles
from langgraft.benchmarks.continual.plan import ContinualPlan, paper_conditions
from langgraft.benchmarks.studies import shipped_plans

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = (REPOSITORY / "docs" / "continual-study.md").read_text(encoding="utf-8")
ROWS = re.findall(
    r"^\| `([a-z-]+)` \| .* \| ([\d,]+) \| ([\d,]+) \| ([\d,]+) \|$", PAGE, re.MULTILINE
)


def plan_named(name: str) -> ContinualPlan:
    """Read a plan that ships."""
    return ContinualPlan.model_validate(
        yaml.safe_load(shipped_plans()[name].read_text(encoding="utf-8"))
    )


def number(text: str) -> int:
    """Read a count as the page writes it."""
    return int(text.replace(",", ""))


@pytest.mark.parametrize(("name", "runs", "training", "tests"), ROWS)
def test_counts_of_the_page_when_worked_out_by_its_rule_are_those(
    name: str, runs: str, training: str, tests: str
) -> None:
    """Streams and episodes of each plan, from its fields alone."""
    plan = plan_named(name)
    each = len(plan.conditions) * plan.runs
    tasks = sorted({*"".join(plan.sequences)} - {">"})
    begun = {s[: 2 * n + 1] for s in plan.sequences for n in range(1, len(s) // 2 + 1)} | {*tasks}
    met, ends = (sum(len(s) // 2 + 1 for s in each) for each in (begun, plan.sequences))
    come = sum(
        len({*"".join(s for s in plan.sequences if s.startswith(first))} - {*first, ">"})
        for first in begun
        if plan.tests == "all"
    )
    beside = sum((met if c.transfer else ends) for c in plan.controls) * plan.runs
    beside += ends * len(plan.probes) * plan.runs
    bare = len(tasks) * (plan.baseline_runs + (plan.runs if plan.rerun else 0))
    played = len(tasks) * plan.runs if plan.online_baseline else 0
    streams = len(begun) * each + played
    evaluations = (met * plan.milestones + come) * each + beside + bare
    pairs = len(plan.parts)
    assert number(training) == pairs * streams * plan.train_items
    assert number(tests) == pairs * evaluations * plan.test_items
    assert number(runs) == pairs * (streams + evaluations)


def test_plans_of_the_page_when_listed_are_all_that_ship() -> None:
    """No plan of this study is missing."""
    study = {
        name
        for name, path in shipped_plans().items()
        if yaml.safe_load(path.read_text(encoding="utf-8"))["study"] == "continual"
    }
    assert {name for name, *_ in ROWS} == study


def test_plan_of_the_page_when_read_is_one() -> None:
    """What a reader copies is accepted, and its first two conditions are the paper's."""
    (text,) = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    plan = ContinualPlan.model_validate(yaml.safe_load(text))
    assert {role: each.name for role, each in roles(plan).items()} == {"raw": "raw", "agg": "agg"}


def test_conditions_of_the_page_when_compared_are_the_defaults() -> None:
    """The paper's four, with its settings."""
    cast = roles(ContinualPlan())
    assert list(cast.values()) == list(paper_conditions())
    assert all(departures(each, paper_condition(role)) == {} for role, each in cast.items())
    for each in paper_conditions():
        for name, value in each.settings.items():
            assert f"`{name}: {value}`" in PAGE, name


def test_fields_of_the_page_when_looked_up_are_those_of_a_plan() -> None:
    """Each field in the table of a plan exists."""
    (told,) = re.findall(r"\| field \| meaning \| default \|\n(.*?)\n\n", PAGE, re.DOTALL)
    names = [
        name
        for line in told.splitlines()[1:]
        for name in re.findall(r"`(\w+)`", line.split("|")[1])
    ]
    assert set(names) <= set(ContinualPlan.model_fields)
    assert len(names) > 10
    assert MEANINGS.of("other_first_mean")
    assert "cross_recalls" in Analysis.__dataclass_fields__
