"""From what a user typed to a prepared plan."""

from importlib import resources
from pathlib import Path
from typing import Any

from langgraft._core.errors import PlanError
from langgraft.benchmarks.harness.plans import PreparedPlan, load_plan, prepare
from langgraft.benchmarks.studies import studies

SUFFIXES = (".yaml", ".yml")


def shipped_plans() -> dict[str, Path]:
    """Return the plan files that ship, by name."""
    folder = Path(str(resources.files("langgraft.benchmarks.plans")))
    return {path.stem: path for path in sorted(folder.glob("*.yaml"))}


def plan_path(plan: str) -> Path:
    """Find a plan file by path or by the name of one that ships.

    Raises:
        PlanError: There is neither.
    """
    path = Path(plan)
    if path.suffix in SUFFIXES or path.exists():
        return path
    shipped = shipped_plans()
    if plan not in shipped:
        msg = f"no plan {plan!r}: neither a file nor one of {', '.join(shipped)}"
        raise PlanError(msg)
    return shipped[plan]


def choose(
    plan: str, *, model: str | None, base_url: str | None, limit: int | None
) -> PreparedPlan[Any]:
    """Load a plan, apply what the command line changes, and expand it.

    Raises:
        PlanError: The plan cannot be read or asks for something impossible.
    """
    study, loaded = load_plan(plan_path(plan), studies())
    changes = {"model": model, "base_url": base_url}
    given = {name: value for name, value in changes.items() if value is not None}
    return prepare(study, loaded.model_copy(update=given), limit=limit)
