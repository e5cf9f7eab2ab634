"""A search's journal as a chain of contents (see `langgraft.nodes.record_chain`).

Each program is one record:

    {"node": {…}, "submission": "<reference or nothing>", "deltas": [[…], …], "previous": "<reference
    or nothing>"}

`node` is the `JournalNode` with all its texts, `deltas` what it changed in memory.

Halves of surrogate pairs, which no UTF-8 text can hold, become question marks as a record is
written, as they do in replies (`langgraft.nodes.replies`). Everything else survives, NUL included.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft.memory.deltas import MemoryDelta
from langgraft.nodes.artifacts import Artifacts, check_reference
from langgraft.nodes.record_chain import RecordChain
from langgraft.nodes.search.journal import Journal, JournalNode
from langgraft.nodes.search.node_json import node_json

_KEYS: Final = ("node", "submission", "deltas")


@dataclass(frozen=True, slots=True)
class Search:
    """A search so far, as its chain has it."""

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
    if node.parent_id is not None and node.parent_id not in known:
        msg = f"{where}: names the parent {node.parent_id!r:.80}, which the search does not have"
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
