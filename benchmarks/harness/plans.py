"""Plans: from a YAML file to checked runs, with everything that decides their results.

A plan may come from anybody. To look at it, and at what came of it, no code is imported that it
names beside langgraft's own; where it is run, it is. Among what decides are digests of the code that
results rest on, so that changed code does not go on with another's run.
"""

import ast
import hashlib
import importlib.metadata
import platform
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, cached_property, partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, Generic

import yaml
from pydantic import ValidationInfo

from langgraft._core.arguments import validation_as
from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import PlanError, SettingsError
from langgraft._core.untrusted import MOST_YAML_BYTES, load_yaml, parse_program, read_most
from langgraft.benchmarks.comparison.verdicts import misfits
from langgraft.benchmarks.harness.study import (
    Plan,
    PlanT,
    RunGraph,
    RunSpec,
    Study,
    build_graph,
    run_to_json,
)
from langgraft.memory.providers import (
    PROVIDERS,
    provider_class,
    provider_settings,
    unknown_provider,
)

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
    """A plan with its runs and the manifest of all that decides their results.

    `study` and `plan` are those it was prepared from.
    """

    study: Study[PlanT]
    plan: PlanT
    outline: RunGraph
    """Its runs, as far as they can be told without importing code that it names."""
    exact: bool
    """Whether these are the runs themselves."""
    resolved: Mapping[str, JSON]
    """The plan with every default written out."""
    limit: int | None
    """At most so many items a run."""
    packages: Mapping[str, str]
    """Package versions to hold the runs to."""

    @cached_property
    def graph(self) -> RunGraph:
        """Its runs; to list them, code that it names may have to be imported.

        Raises:
            PlanError: It cannot be, or the plan asks it for something impossible.
        """
        return self.outline if self.exact else build_graph(self.study.expand(self.plan), self.limit)

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
    seen = study.glimpse(plan)
    outline = build_graph(study.expand(plan) if seen is None else seen, limit)
    check_hypotheses(study, plan, [run.spec for run in outline])
    resolved: dict[str, JSON] = plan.model_dump(mode="json")
    _check_json(resolved)
    versions = package_versions(study, plan) if packages is None else packages
    return PreparedPlan(study, plan, outline, seen is None, resolved, limit, versions)


def check_hypotheses(study: Study[Any], plan: Plan, runs: Iterable[RunSpec]) -> None:
    """Check that the hypotheses of a plan are about what its runs will tell.

    Raises:
        PlanError: One is not; the message names its place in the plan.
    """
    if not plan.hypotheses:
        return
    measures = study.measures()
    if not measures:
        msg = f"hypotheses: the study {study.name!r} takes none"
        raise PlanError(msg)
    cells = [cell for run in runs if (cell := study.cell(run)) is not None]
    if not cells:
        msg = "hypotheses: nothing is tested in this plan that they could be about"
        raise PlanError(msg)
    distinct = [dict(each) for each in dict.fromkeys(tuple(cell.items()) for cell in cells)]
    wrong = next(misfits(plan.hypotheses, distinct, measures), None)
    if wrong is not None:
        raise PlanError(wrong)


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


def is_path(name: str) -> bool:
    """Say whether a name has the form `package.module:Object`."""
    return _PATH.fullmatch(name) is not None


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
    elif not is_path(name):
        raise SettingsError(unknown_provider(name))


def look_here() -> None:
    """Let code that is named lie in the current folder, where a console script does not look."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.append(here)


HARNESS: Final = "langgraft.benchmarks.harness"
"""How runs are carried out decides no result; a log has a version of its own."""

_PACKAGE: Final = re.compile(r'"(\w+(?:\.\w+)+)"')


def source_digests(modules: Iterable[str], *, apart_from: Sequence[str] = ()) -> dict[str, str]:
    """Return the SHA-256 of the files that modules use, of each package one; see `source_files`."""
    states: defaultdict[str, hashlib._Hash] = defaultdict(hashlib.sha256)
    for (package, name), content in sorted(source_files(modules, apart_from=apart_from).items()):
        states[package].update(f"{name}\0{len(content)}\0".encode() + content)
    return {package: state.hexdigest() for package, state in states.items()}


def source_files(
    modules: Iterable[str], *, apart_from: Sequence[str] = ()
) -> dict[tuple[str, str], bytes]:
    """Return what the files hold that modules use, by package and name; nothing is imported.

    Imports within the same distribution are followed, wherever in a file they stand, and a name that
    a package exports lazily to the module it is from. Imports for type checkers do not count. A module
    that names a package in a string may read its files: all its modules and texts (`.md`) count.

    Args:
        modules: Dotted names of where to begin.
        apart_from: Modules and packages that decide no result.

    Raises:
        ModuleNotFoundError: There is no such module.
    """
    barred = tuple(f"{each}." for each in (HARNESS, *apart_from))
    found: dict[tuple[str, str], bytes] = {}
    # By the package whose imports are followed: most is imported in many files.
    met: defaultdict[str, set[tuple[str, str | None]]] = defaultdict(set)
    todo = list(modules)
    while todo:
        module = todo.pop()
        path = _path(module)
        is_package = path.name == "__init__.py"
        place = module if is_package else module.rpartition(".")[0], path.name
        if place in found or f"{module}.".startswith(barred):
            continue
        text = found[place] = path.read_bytes()
        ours = f"{module.partition('.')[0]}."
        imports = set(_named_imports(text)) - met[ours]
        met[ours] |= imports
        todo += _ours(imports, ours)
        # What an `__init__` names in strings are the modules of its lazy exports.
        for name in () if is_package else set(_PACKAGE.findall(text.decode())):
            if name.startswith(ours) and (folder := _folder(name)).is_dir():
                todo += (f"{name}.{each.stem}" for each in folder.glob("[!_]*.py"))
                found |= {(name, each.name): each.read_bytes() for each in folder.glob("*.md")}
    return found


def _folder(package: str) -> Path:
    top, *below = package.split(".")
    found = find_spec(top)
    if found is None or found.origin is None:
        msg = f"no module {package!r}"
        raise ModuleNotFoundError(msg, name=package)
    return Path(found.origin).parent.joinpath(*below)


def _path(module: str) -> Path:
    folder = _folder(module)
    for path in (folder / "__init__.py", folder.with_name(f"{folder.name}.py")):
        if path.is_file():
            return path
    msg = f"no module {module!r}"
    raise ModuleNotFoundError(msg, name=module)


def _ours(imports: Iterable[tuple[str, str | None]], ours: str) -> Iterator[str]:
    """Name the modules that are imported, of those whose names begin with `ours`."""
    for module, name in imports:
        if name is None and module.startswith(ours):
            yield module
        elif name is not None and f"{module}.".startswith(ours):
            yield _home(module, name)


# Parsing is most of the work, and each preview, start and resumption of a plan asks for all files.
@cache
def _named_imports(text: bytes) -> tuple[tuple[str, str | None], ...]:
    """Return what a file imports: modules, and names with the modules they are imported from."""
    found: list[tuple[str, str | None]] = []
    for each in _statements(parse_program(text, most=len(text)).body):
        if isinstance(each, ast.Import):
            found += ((name.name, None) for name in each.names)
        elif isinstance(each, ast.ImportFrom):
            found += ((str(each.module), name.name) for name in each.names)
    return tuple(found)


def _home(module: str, name: str) -> str:
    """Return the module that a name is from: a submodule, where a package's lazy export leads, or it."""
    path = _path(module)
    if path.name != "__init__.py":
        return module
    if (path.parent / name).is_dir() or (path.parent / f"{name}.py").is_file():
        return f"{module}.{name}"
    exported = _lazy_exports(path.read_bytes())
    return _home(exported[name], name) if name in exported else module


@cache
def _lazy_exports(text: bytes) -> dict[str, str]:
    """Return the module of each name that a package exports lazily, as type checkers are told it."""
    blocks = filter(_is_for_types, parse_program(text, most=len(text)).body)
    imports = (each for block in blocks for each in ast.walk(block))
    return {
        name.name: str(each.module)
        for each in imports
        if isinstance(each, ast.ImportFrom)
        for name in each.names
    }


def _statements(body: Iterable[ast.AST]) -> Iterator[ast.AST]:
    """Return all statements, but those for type checkers."""
    for each in body:
        yield each
        for part in ("body", "orelse", "finalbody", "handlers", "cases"):
            if part != "body" or not _is_for_types(each):
                yield from _statements(getattr(each, part, ()))


def _is_for_types(node: ast.AST) -> bool:
    test = node.test if isinstance(node, ast.If) else None
    return isinstance(test, ast.Name) and test.id == "TYPE_CHECKING"
