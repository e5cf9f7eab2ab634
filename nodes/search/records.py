"""A search's journal as a chain of contents: a checkpoint holds one reference, however long it is.

Each program is one record, a content by reference in canonical JSON:

    {"node": {…}, "submission": "<reference or nothing>", "deltas": [[…], …], "previous": "<reference
    or nothing>"}

`node` is the `JournalNode` with all its texts, `deltas` what it changed in memory. As a record
names the one before it by digest, the last reference vouches for the whole search: two searches
are the same, byte for byte, exactly if their last references are equal, and a record that is
written again after a crash is the same content.

Halves of surrogate pairs, which no UTF-8 text can hold, become question marks as a record is
written, as they do in replies (`langgraft.nodes.replies`). Everything else survives, NUL included.
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final
from weakref import WeakKeyDictionary

from pydantic import ValidationError

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import InputError
from langgraft.memory.deltas import MemoryDelta
from langgraft.memory.items import describe_validation
from langgraft.nodes.artifacts import Artifacts, check_reference
from langgraft.nodes.search.journal import Journal, JournalNode
from langgraft.nodes.search.node_json import node_json

_KEYS: Final = {"node", "submission", "deltas", "previous"}
_HEADS: Final = 16
"""Searches that are remembered at a time, of each keeper of artifacts."""


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
    changed = tuple(deltas)
    written = node_json(node)
    kept = JournalNode.model_validate(written)  # as it will be read back
    longer = _with(_read(artifacts, previous), kept, submission, changed)
    record: dict[str, JSON] = {
        "node": written,
        "submission": submission,
        "deltas": [delta.to_json() for delta in changed],
        "previous": previous,
    }
    reference = artifacts.keep(canonical_json(record).encode("utf-8"))
    _memo(artifacts).remember(replace(longer, reference=reference))
    return reference


def read_search(artifacts: Artifacts, reference: str, *, run: str = "", task: str = "") -> Search:
    """Read a search back.

    What was read before in this process, through the same `artifacts`, is not read again: going
    through a search that grows step by step reads each record once.

    Args:
        artifacts: Where the search is kept.
        reference: Of its last record; nothing gives a search without programs.
        run: Name of the run, for the journal.
        task: The competition, for the journal.

    Raises:
        InputError: A record is missing, damaged, no record, or does not follow from the one before.
        InfrastructureError: A record is there and cannot be read now.
    """
    return replace(_read(artifacts, reference), run=run, task=task)


# Reading -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Record:
    reference: str
    node: JournalNode
    submission: str
    deltas: tuple[MemoryDelta, ...]
    previous: str


def _read(artifacts: Artifacts, reference: str) -> Search:
    """Read a search from its last record back to one that is remembered."""
    memo = _memo(artifacts)
    records: list[_Record] = []
    search, at = Search(""), reference
    while at:
        remembered = memo.get(at)
        if remembered is not None:
            search = remembered
            break
        records.append(_read_record(artifacts, at, after=len(records)))
        at = records[-1].previous
    for record in reversed(records):
        longer = _with(search, record.node, record.submission, record.deltas)
        search = replace(longer, reference=record.reference)
    memo.remember(search)
    return search


def _with(
    search: Search, node: JournalNode, submission: str, deltas: tuple[MemoryDelta, ...]
) -> Search:
    """Return a search with one more program, which must fit it."""
    known = {each.id for each in search.nodes}
    where = f"node {node.id!r:.80} (step {node.step})"
    if node.id in known:
        raise InputError(f"{where}: the search has a node with this id already")
    if search.nodes and node.step <= search.nodes[-1].step:
        msg = f"{where}: does not come after step {search.nodes[-1].step}, the search's last"
        raise InputError(msg)
    if node.parent_id is not None and node.parent_id not in known:
        msg = f"{where}: names the parent {node.parent_id!r:.80}, which the search does not have"
        raise InputError(msg)
    left = {node.id: submission} if submission else {}
    return replace(
        search,
        nodes=(*search.nodes, node),
        deltas=search.deltas + deltas,
        submissions={**search.submissions, **left},
    )


def _read_record(artifacts: Artifacts, reference: str, *, after: int) -> _Record:
    where = f"the search's record {check_reference(reference)[:12]}"
    if after:
        where += f", {after} before its last"
    try:
        content = artifacts.read(reference)
    except InputError as error:
        raise InputError(f"{where}: {error}") from error
    try:
        return _record(reference, json.loads(content.decode("utf-8")))
    except ValidationError as error:
        raise InputError(f"{where}: {describe_validation(error)}") from error
    except (ValueError, RecursionError, InputError) as error:
        msg = f"{where}: the content of that reference is no record of a search: {error}"
        raise InputError(msg) from error


def _record(reference: str, value: Any) -> _Record:
    if not isinstance(value, dict) or value.keys() != _KEYS:
        raise InputError(f"it has not the keys {', '.join(sorted(_KEYS))}")
    node, submission, deltas, previous = (
        value[key] for key in ("node", "submission", "deltas", "previous")
    )
    for named in (submission, previous):
        if named != "":
            check_reference(named)
    if not isinstance(deltas, list):
        raise InputError("`deltas` is no list")
    return _Record(
        reference,
        JournalNode.model_validate(node),
        submission,
        tuple(MemoryDelta.from_json(delta) for delta in deltas),
        previous,
    )


# Remembering -------------------------------------------------------------------------------------


class _Memo:
    """The searches read last. What a reference names never changes, so none is ever stale."""

    def __init__(self) -> None:
        self._searches: OrderedDict[str, Search] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, reference: str) -> Search | None:
        with self._lock:
            return self._searches.get(reference)

    def remember(self, search: Search) -> None:
        with self._lock:
            self._searches[search.reference] = search
            self._searches.move_to_end(search.reference)
            while len(self._searches) > _HEADS:
                self._searches.popitem(last=False)


_MEMOS: Final[WeakKeyDictionary[Artifacts, _Memo]] = WeakKeyDictionary()
"""Gone together with the artifacts they were read through."""
_MEMOS_LOCK: Final = threading.Lock()


def _memo(artifacts: Artifacts) -> _Memo:
    with _MEMOS_LOCK:
        try:
            return _MEMOS.setdefault(artifacts, _Memo())
        except TypeError:  # artifacts that cannot be a key: nothing is remembered
            return _Memo()
