"""The runs of a plan as a directed acyclic graph: which run starts from whose bank."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

from langgraft._core.canonical import JSON
from langgraft._core.errors import PlanError
from langgraft.benchmarks.harness.study import BankSource, RunSpec, run_id


@dataclass(frozen=True)
class PlannedRun:
    """A run with its id, which covers everything the run depends on, sources included."""

    spec: RunSpec
    id: str
    source_id: str | None

    @property
    def name(self) -> str:
        """The run's name."""
        return self.spec.name

    @property
    def length(self) -> int:
        """Number of items."""
        return self.spec.length

    @property
    def identity(self) -> dict[str, JSON]:
        """What the id is the digest of."""
        return self.spec.identity(self.source_id)


@dataclass(frozen=True)
class RunGraph:
    """The runs of a plan, in the order of the plan; made by `build_graph`."""

    runs: tuple[PlannedRun, ...]

    @cached_property
    def _by_name(self) -> dict[str, PlannedRun]:
        return {run.name: run for run in self.runs}

    def __getitem__(self, name: str) -> PlannedRun:
        return self._by_name[name]

    def __iter__(self) -> Iterator[PlannedRun]:
        return iter(self.runs)

    def __len__(self) -> int:
        return len(self.runs)

    def __contains__(self, name: object) -> bool:
        return name in self._by_name

    def needed(self, run: PlannedRun) -> tuple[PlannedRun, int] | None:
        """Return the run whose bank `run` starts from, and how many of its items that takes."""
        source = run.spec.source
        if source is None:
            return None
        other = self[source.run]
        return other, other.length if source.items is None else source.items

    def lineage(self, run: PlannedRun) -> list[tuple[PlannedRun, int]]:
        """Return the sources of a run, the oldest first, each with its number of items."""
        chain = []
        needed = self.needed(run)
        while needed is not None:
            chain.append(needed)
            needed = self.needed(needed[0])
        return chain[::-1]


MOST_RUNS: Final = 20_000
"""Runs of a plan: a few words of it could ask for millions."""
MOST_ITEMS: Final = 1_000_000
"""Items of all runs of a plan together."""


def list_runs(specs: Iterable[RunSpec]) -> tuple[RunSpec, ...]:
    """List the runs of a plan while they are made, unless there are too many.

    Raises:
        PlanError: There are.
    """
    listed: list[RunSpec] = []
    items = 0
    for spec in specs:
        listed.append(spec)
        items += spec.length
        if len(listed) > MOST_RUNS or items > MOST_ITEMS:
            msg = (
                f"the plan has more than {MOST_RUNS:,} runs, or more than {MOST_ITEMS:,} items:"
                " make several plans of it"
            )
            raise PlanError(msg)
    return tuple(listed)


def build_graph(specs: Sequence[RunSpec], limit: int | None = None) -> RunGraph:
    """Check the runs of a plan and give them their ids.

    Args:
        specs: The runs, in any order.
        limit: At most so many items a run. The limit is part of what the runs are: a limited
            run has another id than a whole one.

    Raises:
        PlanError: Two runs share a name, a source is unknown or too short, or runs start from
            each other in a circle.
    """
    if limit is not None:
        if limit < 1:
            msg = f"the limit on items is {limit}; it must be at least 1"
            raise PlanError(msg)
        specs = [_limited(spec, limit) for spec in specs]
    by_name: dict[str, RunSpec] = {}
    for spec in specs:
        if spec.name in by_name:
            msg = f"two runs of the plan are called {spec.name!r}"
            raise PlanError(msg)
        by_name[spec.name] = spec
    for spec in specs:
        _check_source(spec, by_name)
    ids: dict[str, str] = {}
    for spec in specs:
        _name_lineage(spec, by_name, ids)
    return RunGraph(
        tuple(
            PlannedRun(spec, ids[spec.name], ids[spec.source.run] if spec.source else None)
            for spec in specs
        )
    )


def _limited(spec: RunSpec, limit: int) -> RunSpec:
    source = spec.source
    if source is not None and source.items is not None:
        source = BankSource(source.run, min(source.items, limit))
    return replace(spec, item_ids=tuple(spec.item_ids[:limit]), source=source)


def _check_source(spec: RunSpec, by_name: Mapping[str, RunSpec]) -> None:
    source = spec.source
    if source is None:
        return
    if source.run not in by_name:
        msg = f"run {spec.name!r} starts from the bank of {source.run!r}, which no run is called"
        raise PlanError(msg)
    length = by_name[source.run].length
    if source.items is not None and not 0 <= source.items <= length:
        msg = (
            f"run {spec.name!r} starts from the bank of {source.run!r} after {source.items} "
            f"items; that run has {length}"
        )
        raise PlanError(msg)


def _name_lineage(spec: RunSpec, by_name: Mapping[str, RunSpec], ids: dict[str, str]) -> None:
    """Give ids to a run and to its sources; a loop, so that long chains need no deep stack."""
    chain = [spec]
    while (source := chain[-1].source) is not None and source.run not in ids:
        if any(source.run == member.name for member in chain):
            names = " → ".join(repr(member.name) for member in chain)
            msg = f"runs start from each other in a circle: {names} → {source.run!r}"
            raise PlanError(msg)
        chain.append(by_name[source.run])
    for member in reversed(chain):
        source_id = ids[member.source.run] if member.source else None
        try:
            ids[member.name] = run_id(member.identity(source_id))
        except (TypeError, ValueError) as error:
            msg = f"the factors of run {member.name!r} are not JSON: {error}"
            raise PlanError(msg) from error


def run_to_json(run: PlannedRun) -> dict[str, JSON]:
    """Return a run as `runs.jsonl` lists it."""
    return {"run_id": run.id, "identity": run.identity}


def runs_from_json(rows: Iterable[Mapping[str, JSON]]) -> RunGraph:
    """Read back the runs that `run_to_json` wrote.

    Raises:
        PlanError: They do not form a graph.
        KeyError: A field is missing.
        TypeError: A field has the wrong type.
    """
    names: dict[str, str] = {}
    identities = []
    for row in rows:
        identity = row["identity"]
        if not isinstance(identity, Mapping):
            msg = f"an identity is {identity!r}"
            raise TypeError(msg)
        names[str(row["run_id"])] = str(identity["name"])
        identities.append(identity)
        if len(identities) > MOST_RUNS:
            msg = f"there are more than {MOST_RUNS:,} runs"
            raise PlanError(msg)
    return build_graph([_spec_from_json(identity, names) for identity in identities])


def _spec_from_json(identity: Mapping[str, JSON], names: Mapping[str, str]) -> RunSpec:
    source, factors, item_ids = identity["source"], identity["factors"], identity["item_ids"]
    if not isinstance(factors, Mapping) or not isinstance(item_ids, Sequence):
        msg = f"factors or items of {identity['name']!r} have the wrong type"
        raise TypeError(msg)
    bank = None
    if isinstance(source, Mapping):
        items = source["items"]
        bank = BankSource(names[str(source["run"])], items if isinstance(items, int) else None)
    return RunSpec(
        study=str(identity["study"]),
        name=str(identity["name"]),
        factors=factors,
        item_ids=tuple(str(item) for item in item_ids),
        source=bank,
        frozen=bool(identity["frozen"]),
    )
