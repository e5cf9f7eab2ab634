"""Plans: from a YAML file to checked runs, with everything that decides their results.

A plan may come from anybody. To look at it, and at what came of it, no code is imported that it
names beside langgraft's own; where it is run, it is.
"""

import importlib.metadata
import platform
import re
import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial
from pathlib import Path
from typing import Any, Final, Generic

import yaml
from pydantic import ValidationInfo

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import PlanError, SettingsError
from langgraft._core.settings import validation_as
from langgraft._core.untrusted import MOST_YAML_BYTES, load_yaml, read_most
from langgraft.benchmarks.harness.graph import RunGraph, build_graph, run_to_json
from langgraft.benchmarks.harness.study import Plan, PlanT, Study
from langgraft.memory.providers import PROVIDERS, provider_class, provider_settings

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
    with validation_as(partial(PlanError, path=path), known=study.plan_model.model_fields):
        return study, study.plan_model.model_validate(data)


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


SHIPPED: Final = {"shipped": True}
"""Context in which a plan that ships is validated: tests check its providers, and checking imports them."""

_PATH: Final = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*")


def provider_place(name: str) -> tuple[str, str]:
    """Return the module and class that a provider's name stands for; nothing is imported."""
    module, _, attribute = name.partition(":")
    return PROVIDERS.get(name, (module, attribute))


def is_foreign(name: str) -> bool:
    """Say whether a provider is none of langgraft's own."""
    return provider_place(name) not in PROVIDERS.values()


def provider_modules(names: Iterable[str]) -> set[str]:
    """Return the modules of langgraft that providers' classes and their bases come from.

    Raises:
        SettingsError: One cannot be imported.
    """
    bases = (base for name in names for base in provider_class(name).__mro__)
    return {base.__module__ for base in bases if base.__module__.startswith("langgraft.")}


def is_shipped(info: ValidationInfo) -> bool:
    """Say whether a plan is validated in the context `SHIPPED`."""
    return info.context is SHIPPED


def check_provider(name: str, settings: Mapping[str, JSON]) -> None:
    """Check a provider as far as that goes without importing what is not langgraft's own.

    Raises:
        SettingsError: It is no name or path of a provider, or one of ours and has no such setting.
    """
    if not is_foreign(name):
        provider_settings(name, settings)
    elif not _PATH.fullmatch(name):
        known = ", ".join(PROVIDERS)
        msg = f"unknown provider {name!r:.80}; there are {known}, or 'package.module:Class'"
        raise SettingsError(msg)


def look_here() -> None:
    """Let code that is named lie in the current folder, where a console script does not look."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)
