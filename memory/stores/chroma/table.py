"""The rows of one Chroma collection: read in one go, written whole, and known where nobody else writes."""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from operator import attrgetter, methodcaller
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeVar

import numpy as np

from langgraft._core.errors import InfrastructureError, SettingsError
from langgraft.memory.stores.chroma.rows import Index, Matrix, Row, placeholder, under
from langgraft.memory.stores.programs import Namespace

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.models.Collection import Collection

T = TypeVar("T")

FORMAT: Final = 2
"""Version of how rows are written; it stands in the collection's metadata. Rows of 1 are read too."""

_MARK: Final = "langgraft:format"

_NAME: Final = re.compile(r"[a-zA-Z0-9][a-zA-Z0-9._-]{1,510}[a-zA-Z0-9]")

_PAGE: Final = 5_000
"""Rows read at a time: SQLite takes 32,766 variables, and each id is one."""

_BYTES: Final = 8_000_000
"""Bytes of metadata written at a time; a Chroma server takes requests of 40 MB."""


class Table:
    """Rows in a collection, which is made where it is not there yet.

    Args:
        client: An open Chroma client.
        collection: Name of the collection.
        where: Folder or address of Chroma, for messages.
        alone: Whether nobody else writes to it.

    Raises:
        SettingsError: The name cannot be one, or the collection is not one of ours.
        InfrastructureError: Chroma failed.
    """

    def __init__(self, client: "ClientAPI", collection: str, where: str, *, alone: bool) -> None:
        if not _NAME.fullmatch(collection):
            msg = (
                f"collection must be 3 to 512 of a-z, A-Z, 0-9, '.', '_', '-', with a letter or"
                f" digit at both ends, got {collection!r}"
            )
            raise SettingsError(msg)
        self.where = where
        self.name = collection
        self._alone = alone
        self._client = client
        with self._errors("open"):
            self._rows = self._fetched()
            self._most = client.get_max_batch_size()

    def read(self, ids: Sequence[str]) -> dict[str, Row]:
        """Return the rows with these ids; those that are not there are left out."""
        found: dict[str, Row] = {}
        for start in range(0, len(ids), _PAGE):
            of_page = methodcaller(
                "get", ids=list(ids[start : start + _PAGE]), include=["metadatas"]
            )
            with self._errors("read from"):
                page = self._asked(of_page)
                for identifier, metadata in zip(page["ids"], page["metadatas"] or (), strict=True):
                    found[identifier] = Row.from_metadata(metadata, identifier)
        return found

    def under(self, prefix: Namespace) -> list[Row]:
        """Return the rows under a namespace prefix in the order they were first written.

        Where others write, ids come first: pages by position would miss or repeat rows, and all
        rows in one answer may be too much for a server.
        """
        if self._alone:
            with self._errors("read from"):
                page = self._asked(
                    lambda rows: rows.get(where=under(prefix), include=["metadatas"])
                )
                found = zip(page["metadatas"] or (), page["ids"], strict=True)
                rows = [Row.from_metadata(*each) for each in found]
        else:
            with self._errors("read from"):
                ids = self._asked(lambda rows: rows.get(where=under(prefix), include=[]))["ids"]
            rows = list(self.read(ids).values())
        return sorted(rows, key=attrgetter("created", "id"))

    def is_empty(self) -> bool:
        """Say whether there are no rows."""
        with self._errors("read from"):
            return self._asked(lambda rows: rows.count()) == 0

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows over those of the same address; each one whole or not at all."""

        def upsert(collection: "Collection") -> None:
            for ids, metadatas in self._parts(rows):
                vectors = np.array([placeholder(i) for i in ids], dtype=np.float32)
                collection.upsert(ids=ids, embeddings=vectors, metadatas=metadatas)

        with self._errors("write to"):
            self._asked(upsert)

    def add(self, row: Row) -> bool:
        """Write a row unless there is one of its address; say whether it was written.

        Of several clients that add one at the same time, Chroma keeps the first.
        """
        with self._errors("write to"):
            vectors = np.array([placeholder(row.id)], dtype=np.float32)
            self._rows.add(ids=[row.id], embeddings=vectors, metadatas=[row.metadata()])
        return self.read([row.id]).get(row.id) == row

    def remove(self, ids: Sequence[str]) -> None:
        """Remove rows; those that are not there are no error."""

        def delete(collection: "Collection") -> None:
            for start in range(0, len(ids), self._most):
                collection.delete(ids=list(ids[start : start + self._most]))

        with self._errors("delete from"):
            self._asked(delete)

    def _asked(self, ask: "Callable[[Collection], T]") -> T:
        """Ask the collection; where it is gone, ask the one of its name that is there now.

        A server that comes back with another volume, or a collection that was deleted and made again,
        has another id for it. Everything asked may be asked twice.
        """
        from chromadb.errors import NotFoundError  # noqa: PLC0415  (takes a second)

        try:
            return ask(self._rows)
        except NotFoundError:
            self._rows = self._fetched()
            return ask(self._rows)

    def _fetched(self) -> "Collection":
        """Return the collection of the name, which is made where it is not there.

        Raises:
            SettingsError: It is not one of ours.
        """
        rows = self._client.get_or_create_collection(
            self.name, embedding_function=None, metadata={_MARK: FORMAT}
        )
        found = (rows.metadata or {}).get(_MARK)
        if found not in {1, FORMAT}:
            msg = (
                f"collection {self.name!r} of Chroma at {self.where} was not made by this version of"
                f" ChromaStore (format {found}, here {FORMAT}); use another collection"
            )
            raise SettingsError(msg)
        if found == 1:
            rows.modify(metadata={_MARK: FORMAT})
        return rows

    def _parts(self, rows: Sequence[Row]) -> Iterator[tuple[list[str], list[Any]]]:
        """Cut rows into calls of as many, and as many bytes, as Chroma takes."""
        ids: list[str] = []
        metadatas: list[Any] = []
        size = 0
        for row in rows:
            metadata = row.metadata()
            length = sum(map(len, metadata.values()))
            if ids and (len(ids) == self._most or size + length > _BYTES):
                yield ids, metadatas
                ids, metadatas, size = [], [], 0
            ids.append(row.id)
            metadatas.append(metadata)
            size += length
        if ids:
            yield ids, metadatas

    @contextmanager
    def _errors(self, doing: str) -> Iterator[None]:
        """Raise what Chroma raises as ours, naming the collection."""
        try:
            yield
        except SettingsError:
            raise
        except Exception as error:
            msg = (
                f"could not {doing} collection {self.name!r} of Chroma at {self.where}:"
                f" {error or type(error).__name__}"
            )
            raise InfrastructureError(msg) from error


@dataclass(frozen=True, slots=True)
class ListedRecord:
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

    def under(self, prefix: Namespace) -> list[ListedRecord]:
        """Return the records under a prefix."""
        ...

    def created(self, ids: Sequence[str]) -> dict[str, int]:
        """Return when records were first written; those that are not there are left out."""
        ...

    def rows(self, entries: Sequence[ListedRecord]) -> list[Row]:
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
        self._entries: dict[str, ListedRecord] | None = None

    def under(self, prefix: Namespace) -> list[ListedRecord]:
        """Return the records under a prefix."""
        depth = len(prefix)
        entries: Iterable[ListedRecord]
        if self._entries is None:
            # Of this once, their values are at hand as well.
            entries = [_entry(row, self._index, row) for row in self._table.under(())]
            self._entries = {entry.id: replace(entry, row=None) for entry in entries}
        else:
            entries = self._entries.values()
        found = [entry for entry in entries if entry.namespace[:depth] == prefix]
        # In order already, unless the clock went back between two openings.
        return sorted(found, key=attrgetter("created", "id"))

    def created(self, ids: Sequence[str]) -> dict[str, int]:
        """Return when records were first written; those that are not there are left out."""
        if self._entries is None and self._table.is_empty():
            self._entries = {}
        if self._entries is None:
            return {row.id: row.created for row in self._table.read(ids).values()}
        known = self._entries
        return {identifier: known[identifier].created for identifier in ids if identifier in known}

    def rows(self, entries: Sequence[ListedRecord]) -> list[Row]:
        """Return all there is of records."""
        found = self._table.read([entry.id for entry in entries if entry.row is None])
        return [entry.row or found[entry.id] for entry in entries]

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

    def under(self, prefix: Namespace) -> list[ListedRecord]:
        """Return the records under a prefix."""
        return [_entry(row, self._index, row) for row in self._table.under(prefix)]

    def created(self, ids: Sequence[str]) -> dict[str, int]:
        """Return when records were first written; those that are not there are left out."""
        return {row.id: row.created for row in self._table.read(ids).values()}

    def rows(self, entries: Sequence[ListedRecord]) -> list[Row]:
        """Return the rows as they were when the records were listed."""
        return [entry.row for entry in entries if entry.row is not None]

    def note(self, written: Iterable[Row], removed: Iterable[str]) -> None:
        """Do nothing."""

    def forget(self) -> None:
        """Do nothing."""


def _entry(row: Row, index: Index | None, whole: Row | None = None) -> ListedRecord:
    where = f"record {row.key!r} in {row.namespace!r}"
    vectors = None if index is None else index.unpack(row.packed, where)
    return ListedRecord(row.id, row.namespace, row.created, vectors, whole)
