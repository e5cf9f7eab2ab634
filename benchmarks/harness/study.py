"""What a study is to the harness: a plan that expands to runs, runs that are streams of items.

A *run* is one stream of items, worked through in order. Its unit of commit is one item with
the memory deltas it caused. A run may start from the bank another run left behind, and read
what others found; that makes the runs of a plan a directed acyclic graph (`RunGraph`). The harness knows nothing else of
what is studied, and a study knows nothing of logs, locks, resuming or scheduling.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Annotated,
    ClassVar,
    Final,
    Generic,
    Protocol,
    Self,
    TypeAlias,
    TypeVar,
)

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, JsonValue, model_validator
from pydantic_core import PydanticCustomError

from langgraft._core.arguments import CONFIDENTIAL, check_no_secrets
from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import PlanError
from langgraft.benchmarks.comparison.verdicts import Better, Cell, Hypotheses
from langgraft.benchmarks.harness.budget import CALL_SECONDS, MOST_KEPT, REPLY_BYTES, Caps, Price
from langgraft.memory.model import MemoryDelta

if TYPE_CHECKING:  # a log is read without them
    from langchain_core.language_models import BaseChatModel
    from langgraph.store.base import BaseStore

    from langgraft.benchmarks.harness.conversations import Message, PlayedEpisode


def check_server_url(url: str) -> str:
    """Return a URL that holds nothing to be kept secret.

    Raises:
        ValueError: It may, or is no HTTP URL. What may be a secret is not quoted.
    """
    if any(sign in url for sign in "@?#"):
        msg = (
            "leave user, password and query out of a server's URL, which is kept in plan, log and"
            " messages: a key goes into the provider's environment variable, such as OPENAI_API_KEY"
        )
        raise PydanticCustomError(CONFIDENTIAL, msg)
    if not url.startswith(("http://", "https://")):
        msg = f"{url!r:.80} does not begin with http:// or https://"
        raise ValueError(msg)
    return url


ServerUrl: TypeAlias = Annotated[str, AfterValidator(check_server_url)]
"""A field of a plan."""


RUN_ID_LENGTH = 12

WORK = "work"
"""Folder of a run for items under way."""

SIMULATED = "simulated"
"""The model of a plan that needs no language model."""


class Plan(BaseModel):
    """What every plan file holds; each study adds its own fields."""

    # An error with what was given would show a secret in a URL.
    model_config = ConfigDict(extra="forbid", frozen=True, hide_input_in_errors=True)

    study: str
    """Name of the study the plan belongs to."""
    title: str = ""
    """One line for people."""
    model: str = SIMULATED
    """`simulated`, or any string `init_chat_model` understands, such as `openai:gpt-4.1-mini`."""
    base_url: ServerUrl | None = None
    """Where an OpenAI-compatible server listens, for models that take it."""
    call_seconds: float = Field(default=CALL_SECONDS, gt=0, exclude=True)
    """How long one call of a real model may take in all, in seconds; it decides no result."""
    reply_bytes: int = Field(default=REPLY_BYTES, gt=0, exclude=True)
    """Most bytes of a reply; more is a failed call. It decides no result."""
    replay: Path | None = Field(default=None, exclude=True)
    """Kept replies of a real model, or a run directory that has some: the plan is answered from them
    alone, without a key and without a network. A relative path begins where the command is given."""
    cache_bytes: int = Field(default=MOST_KEPT, gt=0, exclude=True)
    """Most bytes of the file of kept replies; what is new is no longer kept then."""
    caps: Caps = Field(default=Caps(), exclude=True)
    """Most calls, tokens, dollars and hours. They decide no result: `caps: {dollars: 20}`."""
    prices: dict[str, Price] = Field(default_factory=dict, exclude=True)
    """Prices by model, where the shipped ones are out of date or know none:
    `openai:my-model: {prompt: 0.1, completion: 0.4}`, in dollars a million tokens."""
    temperature: float = 0.5
    """Sampling temperature."""
    max_tokens: int = 4096
    """Most tokens a reply may have."""
    model_settings: dict[str, JsonValue] = Field(default_factory=dict)
    """Other settings of real models, as their clients take them: `reasoning_effort: low`,
    `extra_body: {chat_template_kwargs: {enable_thinking: false}}`. They decide what is answered."""
    hypotheses: Hypotheses = ()
    """What is registered before anything is run (docs/statistics.md); all else is exploratory."""

    @model_validator(mode="before")
    @classmethod
    def _without_secrets(cls, fields: object) -> object:
        check_no_secrets(fields)
        return fields

    def limited(self, items: int) -> Self:  # noqa: ARG002  (for studies whose plans have sizes)
        """Return the plan for at most `items` items a run; the harness cuts what is longer."""
        return self

    @classmethod
    def with_model(
        cls,
        fields: Mapping[str, JSON],
        model: str | None,
        base_url: str | None,
        model_settings: Mapping[str, JSON] | None = None,
    ) -> dict[str, JSON]:
        """Return a plan's fields, as checked when it is read, with another model, server or settings.

        `None` leaves the plan's; but the simulated model has neither server nor settings.
        """
        changes = {"model": model, "base_url": base_url, "model_settings": model_settings}
        given = {name: value for name, value in changes.items() if value is not None}
        if model == SIMULATED:
            return {**fields, "base_url": None, "model_settings": {}, **given}
        return {**fields, **given}


@dataclass(frozen=True, slots=True)
class BankSource:
    """The bank a run starts from: what another run of the plan left behind."""

    run: str
    """Name of the other run."""
    items: int | None = None
    """After how many of its items; `None` for all of them."""


@dataclass(frozen=True, slots=True)
class RunFiles:
    """Where a run keeps files beside its log; they decide no result."""

    folder: Path
    """The run's folder in the run directory."""
    shared: Path
    """A folder of all runs of the plan, for what they have in common, such as caches.

    It may be deleted whenever no process runs the plan. Made by whoever writes to it first.
    """

    def work(self, index: int) -> Path:
        """Return the folder of an item under way: what it needs to go on after a crash.

        Made by whoever writes to it first; the harness removes it once the item is committed, and
        never before.
        """
        return self.folder / WORK / f"{index:04d}"

    @property
    def kept(self) -> Path:
        """The folder of files that stay: what people want to look at beside the log."""
        return self.folder / "kept"


@dataclass(frozen=True, slots=True)
class EarlierRun:
    """What a finished run left, as another one reads it (`RunSpec.reads`)."""

    results: Sequence[Mapping[str, JSON]]
    """The result of each item, in order."""
    deltas: Sequence[MemoryDelta]
    """What its items did to its bank, in order, without what that bank started from."""
    sha256: str
    """Of its log."""


@dataclass(frozen=True, slots=True)
class BankPlace:
    """Where a run keeps its bank while it is under way, and what it may read of other runs.

    Where the bank lies decides no result. The harness hands it over empty, and empties it when the
    run is closed: a bank is folded from the deltas, wherever the records of another time may lie.
    """

    store: "BaseStore"
    """Shared with the other runs of the process, unless it lies in memory."""
    namespace: tuple[str, ...]
    """The run's own."""
    files: RunFiles | None = None
    """Where the run keeps files; `None` where there is no run directory."""
    earlier: Mapping[str, EarlierRun] = field(default_factory=dict)
    """The runs that it reads, by name."""


@dataclass(frozen=True)
class RunSpec:
    """One stream of items of a `study`: everything that decides what the stream does, and nothing else."""

    study: str
    name: str
    """Unique within the plan and readable: `agg/run-0/train A→B`."""
    factors: Mapping[str, JSON]
    """The settings of the run: condition, replicate, split, seeds, provider settings …"""
    item_ids: tuple[str, ...]
    """The items in the order in which they are worked through."""
    source: BankSource | None = None
    """The bank to start from; `None` starts empty."""
    frozen: bool = False
    """The bank does not change: items are independent and may run side by side."""
    reads: tuple[str, ...] = ()
    """Names of runs whose results and deltas it reads; it is opened when they are finished."""

    @property
    def parents(self) -> tuple[str, ...]:
        """The runs that it needs: its source, and those that it reads."""
        return self.reads if self.source is None else (self.source.run, *self.reads)

    def identity(self, ids: Mapping[str, str]) -> dict[str, JSON]:
        """Return what `run_id` is the digest of; `ids` are those of its parents, by name."""
        source: JSON = None
        if self.source is not None:
            source = {"run": ids[self.source.run], "items": self.source.items}
        read: dict[str, JSON] = {"reads": [ids[name] for name in self.reads]} if self.reads else {}
        return {
            "study": self.study,
            "name": self.name,
            "factors": dict(self.factors),
            "item_ids": list(self.item_ids),
            "source": source,
            "frozen": self.frozen,
            **read,
        }

    @cached_property
    def length(self) -> int:
        """Number of items."""
        return len(self.item_ids)


def run_id(identity: Mapping[str, JSON]) -> str:
    """Return the id of a run: the start of the digest of its canonical identity."""
    return digest(dict(identity))[:RUN_ID_LENGTH]


@dataclass(frozen=True, slots=True)
class ItemOutcome:
    """What working through one item gave."""

    result: Mapping[str, JSON]
    """Canonical result, the same in every repetition: no clocks, paths, hosts or durations."""
    deltas: tuple[MemoryDelta, ...] = ()
    """How the item changed the bank, in order."""
    events: Mapping[str, JSON] = field(default_factory=dict)
    """What may differ between repetitions; goes to `events.jsonl`."""


class RunSession(Protocol):
    """A run under way."""

    async def run_item(self, index: int, item_id: str) -> ItemOutcome:
        """Work through one item.

        Items of a learning run come one after the other; in a frozen run several may be
        under way at once. Dropping an item cancels it.

        Raises:
            InfrastructureError: Something other than the model failed; nothing is committed
                and the item is tried again when the run is resumed.
        """
        ...

    async def aclose(self) -> None:
        """Free what the run holds."""
        ...


PlanT = TypeVar("PlanT", bound=Plan)


class Study(ABC, Generic[PlanT]):
    """One kind of experiment: its `name` in plans, and `plan_model`, which says what a plan may hold."""

    name: str
    plan_model: type[PlanT]
    default_store: ClassVar[str] = "memory"
    """Where banks lie meanwhile unless somebody says otherwise (see `run_plan`)."""
    default_concurrency: ClassVar[int] = 16
    """How many items go on at the same time, over all runs, unless somebody says otherwise."""
    default_processes: ClassVar[int | None] = None
    """How many processes share the runs unless somebody says otherwise; `None`: as many as a plan is
    worth, up to one a core."""
    no_conversations: ClassVar[str] = "its items are not logged as what a model was sent and said"
    """Why episodes cannot be exported, where `episodes` is not written."""
    varying: ClassVar[Mapping[str, float | None] | None] = None
    """How outcomes are taken to vary before there are any, for `planned_difference`; `None`: nobody knows."""

    def check(self, plan: PlanT) -> None:
        """Refuse a plan whose runs could not be played, before they are listed.

        Raises:
            PlanError: The plan asks for something impossible.
        """
        del plan

    @abstractmethod
    def expand(self, plan: PlanT) -> tuple[RunSpec, ...]:
        """List the runs of a plan with `list_runs`; sources come before those that need them.

        Imports nothing of what plays them, unless the plan has a `glimpse`.

        Raises:
            PlanError: The plan asks for something impossible.
        """

    def glimpse(self, plan: PlanT) -> tuple[RunSpec, ...] | None:
        """List the runs of a plan whose items only code that it names could tell, which is not imported.

        Other items stand in for them, as many as there can be. `None`: `expand` imports none, either.

        Raises:
            PlanError: The plan asks for something impossible.
        """
        del plan
        return None

    def measures(self) -> Mapping[str, Better | None]:
        """Return what hypotheses can be about, and which way is better; without any it takes none."""
        return {}

    def cell(self, run: RunSpec) -> Cell | None:
        """Return the levels by which a hypothesis names what a run is tested for; `None`: it is not."""
        del run
        return None

    def size(self, plan: PlanT) -> tuple[int, int]:
        """Count the runs and items a plan asks for; of large data, only that it is there is looked up.

        Raises:
            PlanError: The plan asks for something impossible, or its data is not there.
        """
        runs = self.expand(plan)
        return len(runs), sum(run.length for run in runs)

    @abstractmethod
    def fingerprints(self, plan: PlanT) -> Mapping[str, JSON]:
        """Return digests of what the results depend on beside the plan: prompts, data, rules."""

    def packages(self, plan: PlanT) -> tuple[str, ...]:
        """Name the packages whose version may change a result, beside those of every study."""
        del plan
        return ()

    @abstractmethod
    def open(
        self,
        plan: PlanT,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: "BaseChatModel",
        place: BankPlace,
    ) -> RunSession:
        """Start or resume a run; called in a thread, because filling a store may take time.

        Args:
            plan: The plan.
            run: The run.
            deltas: All deltas so far, those of the source first: fold them for the bank.
            model: The model to use.
            place: Where to keep the bank.
        """

    @abstractmethod
    def simulated_model(self, plan: PlanT, run: RunSpec) -> "BaseChatModel":
        """Return the simulated model that stands in for a language model in this study."""

    @abstractmethod
    def most_calls(self, plan: PlanT, run: RunSpec) -> int:
        """Return how many model calls a run makes at the most."""

    def make_ready(self, plan: PlanT) -> None:
        """Check and make what runs need beside the plan; called before anything is written.

        Called in a thread, and each time that a plan is run.

        Raises:
            LanggraftError: Something is missing; the message says how to get it.
        """
        del plan

    def foreign_code(self, plan: PlanT) -> tuple[str, ...]:
        """Return what runs import beside langgraft's own code, as `package.module:Class`.

        Nothing else of the study but `fingerprints` and `open` may import it; and `expand`, of a plan
        that has a `glimpse`.
        """
        del plan
        return ()

    def notes(self, plan: PlanT, runs: Sequence[RunSpec]) -> tuple[str, ...]:
        """Return what is worth knowing before the runs are paid for, a line each.

        Args:
            plan: The plan.
            runs: Its runs as they would be executed: all of them, and limited if they are.
        """
        del plan, runs
        return ()

    def episodes(self, plan: PlanT, log: "PlanLogReader") -> "Iterator[PlayedEpisode]":
        """Yield the episodes of a log, run by run, for `langgraft export`.

        Raises:
            PlanError: The log of such a study does not hold what a conversation needs.
        """
        del plan, log
        msg = f"a log of the study {self.name!r} cannot be exported: {self.no_conversations}"
        raise PlanError(msg)

    def went_well(self, result: Mapping[str, JSON]) -> bool | None:
        """Say whether an item went well, for people who watch; `None` where it is none to be scored."""
        found = result.get("success")
        return found if isinstance(found, bool) else None

    def messages(self, kept: Path) -> "Sequence[Message]":  # noqa: ARG002
        """Return what was said in an item, as files kept of it tell, of a study without `episodes`."""
        return ()

    def try_out(
        self, plan: PlanT, runs: Sequence[RunSpec], *, concurrency: int | None = None
    ) -> "Iterator[Checked]":
        """Try out what runs need beside the plan, for `langgraft preview --check`; no model is called.

        Args:
            plan: The plan.
            runs: Its runs, as they would be executed.
            concurrency: Items under way at the same time; `None`: as the study has it.
        """
        del plan, runs, concurrency
        yield from ()

    @abstractmethod
    def report(self, plan: PlanT, log: "PlanLogReader", out: Path) -> "Report":
        """Write the report and its tables to the folder `out`.

        Raises:
            MissingExtraError: What draws and computes the report is not installed.
        """


@dataclass(frozen=True, slots=True)
class Checked:
    """One thing that runs need, and whether it is there."""

    what: str
    """In a word or two: `image`, `sample of digits`."""
    told: str
    """What was found, in a line."""
    ok: bool = True


@dataclass(frozen=True, slots=True)
class Report:
    """A report that was written, and its findings short enough for a terminal: `title`, `columns`, `rows`."""

    page: Path
    """The page to open."""
    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    lines: tuple[str, ...] = ()
    """The findings in words."""

    def json_rows(self) -> list[dict[str, str]]:
        """Return the rows by column."""
        return [dict(zip(self.columns, row, strict=True)) for row in self.rows]


class PlanLogReader(Protocol):
    """What an analysis may read: the committed items of each run, and nothing else."""

    @property
    def runs(self) -> tuple[RunSpec, ...]:
        """The runs of the plan."""
        ...

    def results(self, name: str) -> list[Mapping[str, JSON]]:
        """Return the committed results of a run, in order."""
        ...

    def deltas(self, name: str) -> list[tuple[MemoryDelta, ...]]:
        """Return the deltas each committed item of a run caused, in order."""
        ...

    @property
    def manifest(self) -> Mapping[str, JSON]:
        """The manifest of the run directory."""
        ...


def is_simulated(plan: Plan, log: PlanLogReader) -> bool:
    """Say whether a simulated model played: by the plan, or by what the replies say of themselves.

    They say it also where the model was served over HTTP under another name.
    """
    if plan.model == SIMULATED:
        return True
    usages = (result.get("usage") for run in log.runs for result in log.results(run.name))
    return any(isinstance(usage, Mapping) and usage.get("simulated_replies") for usage in usages)


@dataclass(frozen=True)
class PlannedRun:
    """A run (`spec`) with its `id`, which covers everything the run depends on, sources included."""

    spec: RunSpec
    id: str
    parent_ids: Mapping[str, str]
    """Ids of the runs that it needs, by name."""

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
        return self.spec.identity(self.parent_ids)


@dataclass(frozen=True)
class RunGraph:
    """The `runs` of a plan, in the order of the plan; made by `build_graph`."""

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

    def awaited(self, run: PlannedRun) -> list[tuple[PlannedRun, int]]:
        """Return the runs that must have come so far, each with its number of items, before `run` can start."""
        needed = self.needed(run)
        read = [(self[name], self[name].length) for name in run.spec.reads]
        return read if needed is None else [needed, *read]

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
        PlanError: Two runs share a name, a run that another one needs is unknown or too short, or
            runs need each other in a circle.
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
        _check_parents(spec, by_name)
    ids: dict[str, str] = {}
    for spec in specs:
        _name_lineage(spec, by_name, ids)
    return RunGraph(
        tuple(
            PlannedRun(spec, ids[spec.name], {name: ids[name] for name in spec.parents})
            for spec in specs
        )
    )


def _limited(spec: RunSpec, limit: int) -> RunSpec:
    source = spec.source
    if source is not None and source.items is not None:
        source = BankSource(source.run, min(source.items, limit))
    return replace(spec, item_ids=tuple(spec.item_ids[:limit]), source=source)


def _check_parents(spec: RunSpec, by_name: Mapping[str, RunSpec]) -> None:
    if unknown := [name for name in spec.reads if name not in by_name]:
        msg = f"run {spec.name!r} reads {unknown[0]!r}, which no run is called"
        raise PlanError(msg)
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
    """Give ids to a run and to those it needs; a loop, so that long chains need no deep stack."""
    chain = [spec]
    while chain:
        last = chain[-1]
        unnamed = next((name for name in last.parents if name not in ids), None)
        if unnamed is not None:
            if any(unnamed == member.name for member in chain):
                names = " → ".join(repr(member.name) for member in chain)
                msg = f"runs need each other in a circle: {names} → {unnamed!r}"
                raise PlanError(msg)
            chain.append(by_name[unnamed])
            continue
        chain.pop()
        try:
            ids[last.name] = run_id(last.identity(ids))
        except (TypeError, ValueError) as error:
            msg = f"the factors of run {last.name!r} are not JSON: {error}"
            raise PlanError(msg) from error


def run_to_json(run: PlannedRun) -> dict[str, JSON]:
    """Return a run as `runs.jsonl` lists it."""
    return {"run_id": run.id, "identity": run.identity}
