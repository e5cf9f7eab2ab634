"""The journal of a tree search: every program of a run, what came of it, and where it came from.

One form for all: a search of ours fills in every field, a journal of AIDE's those it has (see
`langgraft.benchmarks.mle.journals`). Nothing in it differs between two runs of the same search:
no clocks, durations, hosts or paths.

A search of ours is kept as a chain of contents (see `langgraft.nodes.artifacts`). Each program
is one record:

    {"node": {…}, "submission": "<reference or nothing>", "deltas": [[…], …], "previous": "<reference
    or nothing>"}

`node` is the `JournalNode` with all its texts, `deltas` what it changed in memory.

Halves of surrogate pairs, which no UTF-8 text can hold, become question marks as a record is
written, as they do in replies (`langgraft.nodes.replies`). Everything else survives, NUL included.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import InputError
from langgraft.memory.model import MemoryDelta
from langgraft.nodes.artifacts import Artifacts, RecordChain, check_reference
from langgraft.nodes.replies import encodable

Stage: TypeAlias = Literal["draft", "debug", "improve", "merge"]
"""What a program was written for: a new solution, a repair of its parent, a better one, or one
made of two parents."""


_KEYS: Final = ("node", "submission", "deltas")
_SELDOM: Final = ("partner_id",)
"""Fields of a node that are left out where they are not set."""


class JournalNode(BaseModel):
    """One program of a run.

    `code` with the name `id`, written as number `step` out of `parent_id` (`None`: a draft); `is_buggy`
    where it gave nothing of use; `exc_value` is what its exception says; `timed_out` and `oom` say what
    ended it.
    """

    model_config = ConfigDict(frozen=True, extra="ignore")

    step: int = Field(ge=0)
    id: str = Field(min_length=1)
    parent_id: str | None = None
    plan: str
    """What the program was to do, in the agent's words."""
    code: str
    metric: float | None = None
    """Validation score; `None` where there is none, NaN included."""
    is_buggy: bool
    exc_type: str | None = None
    """Class of the exception that ended the program."""
    exc_value: str | None = None
    analysis: str = ""
    """What the review made of the run."""
    output: str = ""
    """What the program printed and how it ended, where the journal has it."""

    # Of our own searches alone ---------------------------------------------------------------

    partner_id: str | None = None
    """The other parent of a merge."""
    timed_out: bool = False
    oom: bool = False
    submission: Literal["valid", "invalid", "absent"] | None = None
    """What the sample submission says of the file it left; `None`: not looked at."""
    reasons: tuple[str, ...] = ()
    """Why it counts as buggy, a reason each; empty where it does not."""
    recalled: str = ""
    """The block of memory in the prompt that it was written by; empty: nothing was recalled."""
    recalled_kinds: tuple[str, ...] = ()
    """The kind of error of each entry recalled (`code`, `environment`, `resource`, or nothing)."""
    receipt: dict[str, JsonValue] | None = None
    """Receipt of that recall, as `langgraft.memory.recall.Receipt`; `None`: memory was not asked."""
    error: dict[str, JsonValue] | None = None
    """The diagnosis of its failure, as `langgraft.memory.model.ErrorRecord`."""
    asked: dict[str, JsonValue] = Field(default_factory=dict)
    """How each model call of it went: by `write`, `review`, `diagnose`, `judge`."""

    @property
    def parent_ids(self) -> tuple[str, ...]:
        """What it was written from: nothing, one program, or the two of a merge."""
        return tuple(each for each in (self.parent_id, self.partner_id) if each is not None)

    @field_validator("metric", mode="before")
    @classmethod
    def _value(cls, metric: Any) -> Any:
        metric = metric.get("value") if isinstance(metric, Mapping) else metric
        return None if isinstance(metric, float) and math.isnan(metric) else metric

    @field_validator("analysis", "output", mode="before")
    @classmethod
    def _text(cls, text: Any) -> Any:
        return "" if text is None else text


@dataclass(frozen=True, slots=True)
class Journal:
    """One run, its programs in the order of their steps. `nodes` are the programs."""

    run: str
    """Name of the run: that of its file."""
    task: str
    """The competition."""
    nodes: tuple[JournalNode, ...]

    @property
    def buggy(self) -> tuple[JournalNode, ...]:
        """The programs that failed, or gave no metric."""
        return tuple(node for node in self.nodes if node.is_buggy)

    def stage(self, node: JournalNode) -> Stage:
        """Return what a program was written for (AIDE's `stage_name`, and `merge`)."""
        if node.parent_id is None:
            return "draft"
        if node.partner_id is not None:
            return "merge"
        parent = next(each for each in self.nodes if each.id == node.parent_id)
        return "debug" if parent.is_buggy else "improve"


def node_json(node: JournalNode) -> dict[str, JSON]:
    """Return a node as JSON; halves of surrogate pairs become question marks, NUL stays.

    Raises:
        InputError: It holds a number that JSON cannot: an infinite metric, say.
    """
    value: dict[str, JSON] = _encodable(node.model_dump(mode="json"))
    for name in _SELDOM:  # a search that has neither is written as before there were any
        if value[name] is None:
            del value[name]
    try:
        canonical_json(value)
    except ValueError as error:
        msg = f"node {node.id!r:.80} (step {node.step}) cannot be written as JSON: {error}"
        raise InputError(msg) from error
    return value


def _encodable(value: Any) -> Any:
    match value:
        case str():
            return encodable(value)
        case list():
            return [_encodable(each) for each in value]
        case dict():
            return {encodable(key): _encodable(each) for key, each in value.items()}
        case _:
            return value


@dataclass(frozen=True, slots=True)
class Search:
    """A search so far, as its chain has it. `run` names it, `task` is its competition."""

    reference: str
    """Of its last record; nothing before the first one."""
    nodes: tuple[JournalNode, ...] = ()
    """Its programs, in the order of their steps."""
    deltas: tuple[MemoryDelta, ...] = ()
    """What it changed in memory, in order: folded over the bank it began with, they give its bank."""
    submissions: Mapping[str, str] = field(default_factory=dict)
    """References of the submissions, by the ids of the programs that left one."""
    run: str = ""
    task: str = ""

    @property
    def journal(self) -> Journal:
        """The programs as a journal."""
        return Journal(self.run, self.task, self.nodes)

    def submission(self, node: JournalNode | str) -> str:
        """Return the reference of what a program submitted; nothing where it left none."""
        return self.submissions.get(node if isinstance(node, str) else node.id, "")


def append_record(
    artifacts: Artifacts,
    previous: str,
    node: JournalNode,
    *,
    submission: str = "",
    deltas: Iterable[MemoryDelta] = (),
) -> str:
    """Add a program to a search, and return the reference of the search with it.

    Args:
        artifacts: Where the search is kept.
        previous: Reference of the search so far; nothing for its first program.
        node: The program. It must come after all others, and its parent before it.
        submission: Reference of the file it left, if it left one.
        deltas: What it changed in memory, in order.

    Raises:
        InputError: The program does not fit the search, its metric is infinite, or the search so
            far is missing or damaged.
        InfrastructureError: It cannot be written now.
    """
    if submission:
        check_reference(submission)
    content: dict[str, JSON] = {
        "node": node_json(node),
        "submission": submission,
        "deltas": [delta.to_json() for delta in deltas],
    }
    return _SEARCHES.append(artifacts, previous, content)


def read_search(artifacts: Artifacts, reference: str, *, run: str = "", task: str = "") -> Search:
    """Read a search back.

    Args:
        artifacts: Where the search is kept.
        reference: Of its last record; nothing gives a search without programs.
        run: Name of the run, for the journal.
        task: The competition, for the journal.

    Raises:
        InputError: A record is missing, damaged, no record, or does not follow from the one before.
        InfrastructureError: A record is there and cannot be read now.
    """
    return replace(_SEARCHES.read(artifacts, reference), run=run, task=task)


# Records -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Record:
    node: JournalNode
    submission: str
    deltas: tuple[MemoryDelta, ...]


def _parse(value: Mapping[str, Any]) -> _Record:
    node, submission, deltas = (value[key] for key in _KEYS)
    if submission != "":
        check_reference(submission)
    if not isinstance(deltas, list):
        raise InputError("`deltas` is no list")
    return _Record(
        JournalNode.model_validate(node),
        submission,
        tuple(MemoryDelta.from_json(delta) for delta in deltas),
    )


def _extend(search: Search, record: _Record, reference: str) -> Search:
    """Return a search with one more program, which must fit it."""
    node, known = record.node, {each.id for each in search.nodes}
    where = f"node {node.id!r:.80} (step {node.step})"
    if node.id in known:
        raise InputError(f"{where}: the search has a node with this id already")
    if search.nodes and node.step <= search.nodes[-1].step:
        msg = f"{where}: does not come after step {search.nodes[-1].step}, the search's last"
        raise InputError(msg)
    for parent in node.parent_ids:
        if parent not in known:
            msg = f"{where}: names the parent {parent!r:.80}, which the search does not have"
            raise InputError(msg)
    left = {node.id: record.submission} if record.submission else {}
    return replace(
        search,
        reference=reference,
        nodes=(*search.nodes, node),
        deltas=search.deltas + record.deltas,
        submissions={**search.submissions, **left},
    )


_SEARCHES: Final = RecordChain("search", keys=_KEYS, parse=_parse, extend=_extend, start=Search(""))
