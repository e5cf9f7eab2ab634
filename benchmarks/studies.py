"""The studies there are, the plans that ship, and the way from either to a prepared plan."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from pydantic_core import to_jsonable_python

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError, PlanError
from langgraft._core.untrusted import load_json, load_yaml
from langgraft.benchmarks.harness.plans import (
    SHIPPED,
    PreparedPlan,
    load_plan,
    plan_from_data,
    prepare,
)
from langgraft.benchmarks.harness.study import Plan, Study

SUFFIXES = (".yaml", ".yml")


class _Studies(Mapping[str, Study[Any]]):
    """Studies by name; one is imported when it is first asked for."""

    def __init__(self) -> None:
        self._made: dict[str, Study[Any]] = {}

    def __getitem__(self, name: str) -> Study[Any]:
        if name not in self._made:
            self._made[name] = _STUDIES[name]()
        return self._made[name]

    def __iter__(self) -> Iterator[str]:
        return iter(_STUDIES)

    def __len__(self) -> int:
        return len(_STUDIES)


def _continual() -> Study[Any]:
    from langgraft.benchmarks.continual.study import ContinualStudy  # noqa: PLC0415

    return ContinualStudy()


def _mle() -> Study[Any]:
    from langgraft.benchmarks.mle.study import MleStudy  # noqa: PLC0415

    return MleStudy()


def _transplant() -> Study[Any]:
    from langgraft.benchmarks.transplant.study import TransplantStudy  # noqa: PLC0415

    return TransplantStudy()


def _ablation() -> Study[Any]:
    from langgraft.benchmarks.ablation.study import AblationStudy  # noqa: PLC0415

    return AblationStudy()


_STUDIES: Final[Mapping[str, Callable[[], Study[Any]]]] = {
    "ablation": _ablation,
    "continual": _continual,
    "mle": _mle,
    "transplant": _transplant,
}


def studies() -> Mapping[str, Study[Any]]:
    """Return all studies by name."""
    return _Studies()


def shipped_plans() -> dict[str, Path]:
    """Return the plan files that ship, by name."""
    folder = Path(__file__).with_name("plans")
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


def read_plan(path: Path) -> tuple[Study[Any], Plan]:
    """Read a plan file.

    Raises:
        PlanError: The plan cannot be read.
    """
    return load_plan(path, studies())


def read_shipped_plans() -> Iterator[tuple[str, Study[Any], Plan]]:
    """Yield the name, study and plan of each plan that ships; no provider is imported."""
    known = studies()
    for name, path in shipped_plans().items():
        fields: Any = load_yaml(path.read_text(encoding="utf-8"))
        study = known[fields["study"]]
        yield name, study, study.plan_model.model_validate(fields, context=SHIPPED)


def _object(what: str, text: str) -> Mapping[str, JSON]:
    """Read a JSON object of the command line.

    Raises:
        InputError: It is none.
    """
    try:
        value = load_json(text.encode())
    except ValueError as error:
        raise InputError(f"{what} is no JSON: {error}") from error
    if not isinstance(value, dict):
        raise InputError(f'{what} is no JSON object such as \'{{"reasoning_effort": "low"}}\'')
    return value


def _places(plan: Plan) -> dict[str, JSON]:
    """Return the fields that are no part of what is studied: where things lie on this machine."""
    excluded = {name for name, field in type(plan).model_fields.items() if field.exclude}
    return {name: to_jsonable_python(getattr(plan, name)) for name in excluded}


def choose(
    plan: str,
    *,
    model: str | None,
    base_url: str | None,
    limit: int | None,
    model_settings: str | None = None,
) -> PreparedPlan[Any]:
    """Load a plan, apply what the command line changes, and expand it.

    Raises:
        PlanError: The plan cannot be read or asks for something impossible.
        InputError: `model_settings` is no JSON object.
    """
    settings = None if model_settings is None else _object("--model-settings", model_settings)
    path = plan_path(plan)
    _, loaded = read_plan(path)
    fields = {**loaded.model_dump(mode="json"), **_places(loaded)}
    changed = loaded.with_model(fields, model, base_url, settings)
    study, chosen = plan_from_data(changed, studies(), path)
    return prepare(study, chosen, limit=limit)
