"""Plans: from a YAML file to checked runs, with everything that decides their results."""

import importlib.metadata
import platform
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Generic

import yaml
from pydantic import ValidationError

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import PlanError
from langgraft._core.settings import describe_validation
from langgraft._core.untrusted import MOST_YAML_BYTES, load_yaml, read_most
from langgraft.benchmarks.harness.graph import RunGraph, build_graph, run_to_json
from langgraft.benchmarks.harness.study import Plan, PlanT, Study

Studies = Mapping[str, Study[Any]]
"""The studies a caller offers, by name."""

MANIFEST_FORMAT = 1

PACKAGES = (
    "langgraft",
    "langgraph",
    "langchain",
    "langchain-core",
    "langchain-openai",
    "pydantic",
)
"""The packages whose version may change a result of any study."""


def load_plan(path: Path, studies: Studies) -> tuple[Study[Any], Plan]:
    """Read a plan file.

    Args:
        path: A YAML file.
        studies: The studies there are, by name.

    Returns:
        The study and its plan.

    Raises:
        PlanError: The file cannot be read, is not YAML, or names an unknown study or field.
    """
    try:
        data = load_yaml(read_most(path, MOST_YAML_BYTES).decode())
    except OSError as error:
        msg = f"cannot be read: {error.strerror or error}"
        raise PlanError(msg, path=path) from error
    except UnicodeDecodeError as error:
        msg = f"is not UTF-8 text (byte {error.start})"
        raise PlanError(msg, path=path) from error
    except ValueError as error:
        raise PlanError(f"is not YAML: {error}", path=path) from error
    return plan_from_data(data, studies, path)


def plan_from_data(data: object, studies: Studies, path: Path) -> tuple[Study[Any], Plan]:
    """Check the content of a plan file; see `load_plan`."""
    known = ", ".join(sorted(studies)) or "none"
    if not isinstance(data, dict):
        msg = f"a plan is a mapping of fields, got {type(data).__name__}"
        raise PlanError(msg, path=path)
    name = data.get("study")
    if not isinstance(name, str) or name not in studies:
        got = f"{name!r:.80}" if "study" in data else "nothing"
        msg = f"study: expected one of {known}; got {got}"
        raise PlanError(msg, path=path)
    study = studies[name]
    try:
        return study, study.plan_model.model_validate(data)
    except ValidationError as error:
        told = describe_validation(error, study.plan_model.model_fields)
        raise PlanError(told, path=path) from error


def package_versions(study: Study[PlanT], plan: PlanT) -> dict[str, str]:
    """Return the installed versions of the packages whose version may change a result."""
    versions = {}
    for name in (*PACKAGES, *study.packages(plan)):
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    return versions


@dataclass(frozen=True)
class PreparedPlan(Generic[PlanT]):
    """A plan with its runs and the manifest of all that decides their results."""

    study: Study[PlanT]
    plan: PlanT
    graph: RunGraph
    resolved: Mapping[str, JSON]
    """The plan with every default written out."""
    limit: int | None
    """At most so many items a run."""
    packages: Mapping[str, str]
    """Package versions to hold the runs to."""

    @cached_property
    def manifest(self) -> Mapping[str, JSON]:
        """All that decides the results.

        Raises:
            PlanError: The fingerprints are not JSON, or cannot be taken.
            SettingsError: Code that the plan names cannot be imported.
        """
        manifest: dict[str, JSON] = {
            "format": MANIFEST_FORMAT,
            "study": self.study.name,
            "plan": digest(self.resolved),
            "limit": self.limit,
            "runs": {
                "count": len(self.graph),
                "digest": digest([run_to_json(run) for run in self.graph]),
            },
            "fingerprints": dict(self.study.fingerprints(self.plan)),
            "packages": dict(self.packages),
            "python": platform.python_version(),
        }
        _check_json(manifest)
        return manifest


def prepare(
    study: Study[PlanT],
    plan: PlanT,
    *,
    limit: int | None = None,
    packages: Mapping[str, str] | None = None,
) -> PreparedPlan[PlanT]:
    """Expand a plan to its runs; nothing is executed or written, and no code it names imported.

    Args:
        study: The study.
        plan: Its plan.
        limit: At most so many items a run; a limited plan is another plan.
        packages: Package versions to hold the runs to; `None` for the installed ones.

    Raises:
        PlanError: The plan asks for something impossible.
    """
    if limit is not None:
        plan = plan.limited(max(limit, 1))
    study.check(plan)
    graph = build_graph(study.expand(plan), limit)
    resolved: dict[str, JSON] = plan.model_dump(mode="json")
    _check_json(resolved)
    versions = package_versions(study, plan) if packages is None else packages
    return PreparedPlan(study, plan, graph, resolved, limit, versions)


def _check_json(value: JSON) -> None:
    try:
        digest(value)
    except (TypeError, ValueError) as error:
        msg = f"the plan or its fingerprints are not JSON: {error}"
        raise PlanError(msg) from error


def resolved_yaml(resolved: Mapping[str, JSON]) -> bytes:
    """Return a resolved plan as it stands in `plan.yaml`."""
    text: str = yaml.safe_dump(dict(resolved), sort_keys=False, allow_unicode=True)
    return text.encode()
