"""The rows of one Chroma collection: read in pages, written whole."""

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from langgraft._core.errors import InfrastructureError, SettingsError
from langgraft.memory.stores.chroma.rows import Row, placeholder, under
from langgraft.memory.stores.records import Namespace

if TYPE_CHECKING:
    from chromadb.api import ClientAPI

FORMAT: Final = 1
"""Version of how rows are written; it stands in the collection's metadata."""

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

    Raises:
        SettingsError: The name cannot be one, or the collection is not one of ours.
        InfrastructureError: Chroma failed.
    """

    def __init__(self, client: "ClientAPI", collection: str, where: str) -> None:
        if not _NAME.fullmatch(collection):
            msg = (
                f"collection must be 3 to 512 of a-z, A-Z, 0-9, '.', '_', '-', with a letter or"
                f" digit at both ends, got {collection!r}"
            )
            raise SettingsError(msg)
        self.where = where
        self._name = collection
        with self._errors("open"):
            self._rows = client.get_or_create_collection(
                collection, embedding_function=None, metadata={_MARK: FORMAT}
            )
            self._most = client.get_max_batch_size()
        found = (self._rows.metadata or {}).get(_MARK)
        if found != FORMAT:
            msg = (
                f"collection {collection!r} of Chroma at {where} was not made by this version of"
                f" ChromaStore (format {found}, here {FORMAT}); use another collection"
            )
            raise SettingsError(msg)

    def read(self, ids: Sequence[str]) -> dict[str, Row]:
        """Return the rows with these ids; those that are not there are left out."""
        found: dict[str, Row] = {}
        with self._errors("read from"):
            for start in range(0, len(ids), _PAGE):
                page = self._rows.get(ids=list(ids[start : start + _PAGE]), include=["metadatas"])
                for identifier, metadata in zip(page["ids"], page["metadatas"] or (), strict=True):
                    found[identifier] = Row.from_metadata(metadata)
        return found

    def under(self, prefix: Namespace) -> list[Row]:
        """Return the rows under a namespace prefix in the order they were first written.

        Ids come first: pages by position would miss or repeat rows while others write.
        """
        with self._errors("read from"):
            ids = self._rows.get(where=under(prefix), include=[])["ids"]
        return sorted(self.read(ids).values(), key=lambda row: (row.created, row.id))

    def write(self, rows: Sequence[Row]) -> None:
        """Write rows over those of the same address; each one whole or not at all."""
        with self._errors("write to"):
            for ids, metadatas in self._parts(rows):
                vectors = np.array([placeholder(i) for i in ids], dtype=np.float32)
                self._rows.upsert(ids=ids, embeddings=vectors, metadatas=metadatas)

    def remove(self, ids: Sequence[str]) -> None:
        """Remove rows; those that are not there are no error."""
        with self._errors("delete from"):
            for start in range(0, len(ids), self._most):
                self._rows.delete(ids=list(ids[start : start + self._most]))

    def _parts(self, rows: Sequence[Row]) -> Iterator[tuple[list[str], list[Any]]]:
        """Cut rows into calls of as many, and as many bytes, as Chroma takes."""
        ids: list[str] = []
        metadatas: list[Any] = []
        size = 0
        for row in rows:
            metadata = row.metadata()
            length = sum(len(part) for part in metadata.values() if isinstance(part, str))
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
        except Exception as error:
            msg = (
                f"could not {doing} collection {self._name!r} of Chroma at {self.where}:"
                f" {error or type(error).__name__}"
            )
            raise InfrastructureError(msg) from error
