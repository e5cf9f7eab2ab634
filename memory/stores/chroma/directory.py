"""Which records there are: held in memory by a single owner, else read for every question."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import Protocol

from langgraft.memory.stores.chroma.rows import Row
from langgraft.memory.stores.chroma.table import Table
from langgraft.memory.stores.chroma.vectors import Index, Matrix
from langgraft.memory.stores.records import Namespace


@dataclass(frozen=True, slots=True)
class Entry:
    """A record, as far as it is needed to list and rank it.

    Attributes:
        id: Of its row.
        namespace: Where it is.
        created: When it was first written, which is its place among all.
        vectors: One a row; `None` in a store without an index.
        row: All of it, where that was read anyway.
    """

    id: str
    namespace: Namespace
    created: int
    vectors: Matrix | None
    row: Row | None = None


class Directory(Protocol):
    """Knows the records of a table in the order they were first written."""

    def under(self, prefix: Namespace) -> list[Entry]:
        """Return the records under a prefix."""
        ...

    def rows(self, entries: Sequence[Entry]) -> list[Row]:
        """Return all there is of records."""
        ...

    def note(self, written: Iterable[Row], removed: Iterable[str]) -> None:
        """Learn what was written."""
        ...

    def forget(self) -> None:
        """Know nothing: it is uncertain what was written."""
        ...


class Held:
    """For a table that nobody else writes to: namespaces and vectors are read once and kept.

    Values are not kept; they are read for what is returned.
    """

    def __init__(self, table: Table, index: Index | None) -> None:
        self._table = table
        self._index = index
        self._entries: dict[str, Entry] | None = None

    def under(self, prefix: Namespace) -> list[Entry]:
        """Return the records under a prefix."""
        if self._entries is None:
            self._entries = {row.id: _entry(row, self._index) for row in self._table.under(())}
        depth = len(prefix)
        found = [entry for entry in self._entries.values() if entry.namespace[:depth] == prefix]
        # In order already, unless the clock went back between two openings.
        return sorted(found, key=attrgetter("created", "id"))

    def rows(self, entries: Sequence[Entry]) -> list[Row]:
        """Return all there is of records."""
        found = self._table.read([entry.id for entry in entries])
        return [found[entry.id] for entry in entries]

    def note(self, written: Iterable[Row], removed: Iterable[str]) -> None:
        """Learn what was written."""
        if self._entries is None:
            return
        for row in written:
            self._entries[row.id] = _entry(row, self._index)
        for identifier in removed:
            self._entries.pop(identifier, None)

    def forget(self) -> None:
        """Know nothing: it is uncertain what was written."""
        self._entries = None


class Fresh:
    """For a table that others write to: every question reads all rows under its prefix."""

    def __init__(self, table: Table, index: Index | None) -> None:
        self._table = table
        self._index = index

    def under(self, prefix: Namespace) -> list[Entry]:
        """Return the records under a prefix."""
        return [_entry(row, self._index, row) for row in self._table.under(prefix)]

    def rows(self, entries: Sequence[Entry]) -> list[Row]:
        """Return the rows as they were when the records were listed."""
        return [entry.row for entry in entries if entry.row is not None]

    def note(self, written: Iterable[Row], removed: Iterable[str]) -> None:
        """Do nothing."""

    def forget(self) -> None:
        """Do nothing."""


def _entry(row: Row, index: Index | None, whole: Row | None = None) -> Entry:
    where = f"record {row.key!r} in {row.namespace!r}"
    vectors = None if index is None else index.unpack(row.packed, where)
    return Entry(row.id, row.namespace, row.created, vectors, whole)
