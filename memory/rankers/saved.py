"""Documents in files: written once, and read only where somebody looks."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
from numpy.typing import NDArray

from langgraft.memory.rankers.base import DocumentId, DurableIndex, Order, RankerIndex

_MAPPED_BYTES: Final = 1 << 20
"""Smaller files are read at once: that takes no time, and a mapped one stays open, where a
process may have a thousand files and a store more small indexes than that."""


@dataclass(frozen=True, slots=True)
class Document:
    """A document as it was put."""

    id: DocumentId
    text: str
    order: Order


def save_documents(folder: Path, documents: Sequence[Document | None]) -> None:
    """Write documents into a folder; `None` keeps a place that is free.

    Ids and orders must be strings, integers, or tuples of such.
    """
    ids = ("" if entry is None else json.dumps(entry.id) for entry in documents)
    orders = ("" if entry is None else json.dumps(entry.order) for entry in documents)
    _save_strings(folder / "ids", (line + "\n" for line in ids))
    _save_strings(folder / "orders", orders)
    _save_strings(folder / "texts", ("" if entry is None else entry.text for entry in documents))


class SavedDocuments:
    """What `save_documents` wrote."""

    def __init__(self, folder: Path) -> None:
        self._ids = _SavedStrings(folder / "ids")
        self._orders = _SavedStrings(folder / "orders")
        self._texts = _SavedStrings(folder / "texts")
        self._places: dict[str, int] | None = None

    def __len__(self) -> int:
        return len(self._ids)

    def __getitem__(self, place: int) -> Document:
        """Read the document at a place that is not free."""
        return Document(
            id=_with_tuples(json.loads(self._ids[place])),
            text=self._texts[place],
            order=_with_tuples(json.loads(self._orders[place])),
        )

    def ids(self) -> list[DocumentId]:
        """Read the ids of all documents; no place must be free."""
        lines = self._ids.everything().removesuffix("\n").replace("\n", ",")
        return [_with_tuples(identity) for identity in json.loads(f"[{lines}]")]

    def take(self, document: DocumentId) -> int | None:
        """Return the place of a document, once: from then on the caller keeps it."""
        if self._places is None:
            # Ids are compared as they are written: reading all of them takes many times as long.
            lines = self._ids.everything().split("\n")
            self._places = dict(zip(lines, range(len(self)), strict=False))
        return self._places.pop(json.dumps(document), None)


class Documents:
    """Documents by id; of those that were loaded, each is read when it is asked for."""

    def __init__(self) -> None:
        self._present: dict[DocumentId, Document] = {}
        self._saved: SavedDocuments | None = None
        self._unread = 0

    def __len__(self) -> int:
        return len(self._present) + self._unread

    def __getitem__(self, document: DocumentId) -> Document:
        entry = self._present.get(document) or self.get(document)
        if entry is None:
            raise KeyError(document)
        return entry

    def get(self, document: DocumentId) -> Document | None:
        """Return a document, if it is there."""
        entry = self._present.get(document)
        if entry is None and self._saved is not None:
            place = self._saved.take(document)
            if place is not None:
                self._unread -= 1
                entry = self._present[document] = self._saved[place]
        return entry

    def put(self, document: Document) -> None:
        """Add a document, or replace it."""
        self.get(document.id)
        self._present[document.id] = document

    def pop(self, document: DocumentId) -> Document | None:
        """Forget a document and return it, if it is there."""
        return self._present.pop(document, None) if self.get(document) else None

    def ids(self) -> list[DocumentId]:
        """List all ids."""
        if self._saved is not None:
            for document in self._saved.ids():
                self.get(document)
            self._saved = None
        return list(self._present)

    def save(self, folder: Path, ids: Iterable[DocumentId] | None = None) -> None:
        """Write all documents into a folder, in the order of `ids`."""
        order = self.ids() if ids is None else ids
        save_documents(folder, [self[document] for document in order])

    def load(self, folder: Path) -> None:
        """Become what `save` wrote."""
        self._saved = SavedDocuments(folder)
        self._present, self._unread = {}, len(self._saved)


def save_part(index: RankerIndex, folder: Path) -> None:
    """Save an index that is part of another one, if it can be saved."""
    if isinstance(index, DurableIndex):
        folder.mkdir()
        index.save(folder)


def load_part(index: RankerIndex, folder: Path, documents: Documents) -> None:
    """Load an index that is part of another one, or fill it with the other one's documents."""
    if isinstance(index, DurableIndex):
        index.load(folder)
        return
    for identity in documents.ids():
        document = documents[identity]
        index.put(identity, document.text, document.order)


def mapped(path: Path) -> NDArray[Any]:
    """Return the array in a file, which is read where it is looked at if it is large.

    Changes of the array stay in memory.
    """
    mode: Literal["c"] | None = "c" if path.stat().st_size >= _MAPPED_BYTES else None
    array = np.load(path, mmap_mode=mode, allow_pickle=False)
    # A plain view: indexing a `memmap` costs several times as much.
    return np.asarray(array)


def _save_strings(path: Path, strings: Iterable[str]) -> None:
    ends = [0]
    with path.with_suffix(".bin").open("wb") as file:
        for string in strings:
            ends.append(ends[-1] + file.write(string.encode("utf-8", "surrogatepass")))
    np.save(path.with_suffix(".npy"), np.array(ends, dtype=np.int64))


class _SavedStrings:
    """Strings in one file, one after the other, and where each ends in a second."""

    def __init__(self, path: Path) -> None:
        blob = path.with_suffix(".bin")
        large = blob.stat().st_size >= _MAPPED_BYTES
        self._bytes: NDArray[np.uint8] = (
            np.asarray(np.memmap(blob, np.uint8, "r")) if large else np.fromfile(blob, np.uint8)
        )
        self._ends = mapped(path.with_suffix(".npy"))

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, place: int) -> str:
        return self._decoded(self._bytes[self._ends[place] : self._ends[place + 1]])

    def everything(self) -> str:
        return self._decoded(self._bytes)

    @staticmethod
    def _decoded(part: NDArray[np.uint8]) -> str:
        return part.tobytes().decode("utf-8", "surrogatepass")


def _with_tuples(value: Any) -> Any:
    """Turn the lists of JSON into the tuples they were."""
    return tuple(map(_with_tuples, value)) if isinstance(value, list) else value
