"""What an erasure looks for, where copies of it may be, and how a store keeps no byte of what it deleted."""

import json
import os
import re
import sqlite3
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass, fields, is_dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Final, Protocol, cast

from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.serde.encrypted import EncryptedSerializer
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import JSON
from langgraft._core.errors import InfrastructureError, InputError
from langgraft.memory.embedders.cached import CachedEmbedder, VectorCache
from langgraft.memory.erasure.receipts import Looked
from langgraft.memory.model import BankContent, MemoryItem
from langgraft.memory.provenance import Following, following
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.sources import source
from langgraft.memory.stores.named import GuardedStore
from langgraft.memory.stores.ranked import RankedStore
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.memory.stores.sqlite import SQLiteFileStore
from langgraft.memory.words import SPACED
from langgraft.memory.writers import address_of

BLANK: Final = "[erased on request]"
"""What stands in a log in the place of what was erased."""

SHORTEST: Final = 12
"""Characters of a phrase: shorter ones are in half of all texts."""
_LABEL: Final = re.compile(r"^(?:Thought|Action|Observation|Result|- When [^:]+|-): ?|^- ")
"""What trajectories and lists put before a text."""
_WORD: Final = re.compile(rf"{SPACED}(?:{SPACED}|[@.+-]){{4,}}{SPACED}")
_BLOCK: Final = 1 << 24


@dataclass(frozen=True)
class Wanted:
    """What is to be erased, as places look for it.

    Attributes:
        items: Ids of items.
        episodes: Ids of episodes that are erased whole.
        sources: What else items follow from that are erased: `tool:search`, or `item:ID` itself.
        texts: What they said, whole: what is known by the digest of a text is found by these.
        phrases: What gives it away, wherever it stands.
    """

    sources: tuple[str, ...] = ()
    items: tuple[str, ...] = ()
    episodes: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    phrases: tuple[str, ...] = ()

    def in_text(self, text: str) -> bool:
        """Say whether a text has one of the phrases."""
        return self._pattern is not None and self._pattern.search(text) is not None

    def in_json(self, value: Any) -> bool:
        """Say whether a phrase is in a text anywhere in a JSON value, names included."""
        match value:
            case str():
                return self.in_text(value)
            case Mapping():
                return any(self.in_text(str(k)) or self.in_json(v) for k, v in value.items())
            case list() | tuple():
                return any(map(self.in_json, value))
        return False

    def blanked(self, text: str) -> str:
        """Return a text with `BLANK` in the place of every phrase."""
        return text if self._pattern is None else self._pattern.sub(BLANK, text)

    def in_bytes(self, data: bytes) -> bool:
        """Say whether a phrase is in bytes, in any form in which one is written."""
        return any(form in data for form in self._forms)

    def and_also(self, other: "Wanted") -> "Wanted":
        """Return both."""
        return Wanted(
            *(
                tuple(dict.fromkeys((*getattr(self, each.name), *getattr(other, each.name))))
                for each in fields(Wanted)
            )
        )

    def to_json(self) -> dict[str, JSON]:
        """Return it as JSON."""
        return {each.name: list(getattr(self, each.name)) for each in fields(self)}

    @classmethod
    def from_json(cls, value: Mapping[str, Any]) -> "Wanted":
        """Read it back."""
        return cls(**{name: tuple(listed) for name, listed in value.items()})

    @cached_property
    def _written(self) -> list[str]:
        """The phrases, and as JSON escapes them, once and twice: texts may be JSON themselves."""
        found = dict.fromkeys(self.phrases)
        for _ in range(2):
            for phrase in list(found):
                found |= {json.dumps(phrase, ensure_ascii=a)[1:-1]: None for a in (True, False)}
        return sorted(found, key=len, reverse=True)

    @cached_property
    def _pattern(self) -> "re.Pattern[str] | None":
        return re.compile("|".join(map(re.escape, self._written))) if self.phrases else None

    @cached_property
    def _forms(self) -> list[bytes]:
        encodings = ("utf-8", "utf-16-le", "utf-16-be")
        return [text.encode(code, "surrogatepass") for text in self._written for code in encodings]

    @cached_property
    def longest(self) -> int:
        """Bytes of the longest form in which a phrase is written."""
        return max(map(len, self._forms), default=1)


def strings_in(value: Any) -> Iterator[str]:
    """Yield all texts in a JSON value, names included."""
    match value:
        case str():
            yield value
        case Mapping():
            for key, part in value.items():
                yield str(key)
                yield from strings_in(part)
        case list() | tuple():
            for part in value:
                yield from strings_in(part)


def phrases_of(texts: Iterable[str], kept: Callable[[str], bool] = lambda _: False) -> list[str]:
    """Return what gives texts away: themselves, their lines, and words with a digit or an `@`.

    Left out is what is short, and what stands in a text that is not erased.

    Args:
        texts: The texts.
        kept: Says whether a phrase does.
    """
    found: dict[str, None] = {}
    for text in texts:
        lines = [line.strip() for line in text.splitlines()]
        for phrase in (text.strip(), *lines, *(_LABEL.sub("", line) for line in lines)):
            if len(phrase) >= SHORTEST:
                found[phrase] = None
        # Words that are rarely said by chance: numbers, addresses, names with a number.
        words = _WORD.findall(text)
        found |= dict.fromkeys(word for word in words if re.search(r"[\d@]", word))
    return [phrase for phrase in found if BLANK not in phrase and not kept(phrase)]


def follows(content: BankContent, wanted: Wanted) -> Following:
    """Return the items and episodes of a bank that follow from what is to be erased."""
    items = (source("item", each) for each in wanted.items)
    episodes = (source("episode", each) for each in wanted.episodes)
    return following(content, [*wanted.sources, *items, *episodes])


def texts_of(item: MemoryItem) -> list[str]:
    """Return all that an item says."""
    told = [item.text, *([item.key] if item.key else ())]
    return [*told, *(value for value in item.metadata.values() if isinstance(value, str))]


def found_in(paths: Iterable[Path], wanted: Wanted) -> list[Path]:
    """Return the files, in folders too, in which a phrase is found byte by byte.

    In a folder that others write to, links lead anywhere and pipes never end: only files are read there.

    Raises:
        InfrastructureError: One cannot be read.
    """
    files = (
        file
        for path in paths
        for file in (sorted(filter(_is_file, path.rglob("*"))) if path.is_dir() else [path])
    )
    return [file for file in files if _says(file, wanted)]


def _is_file(path: Path) -> bool:
    with suppress(FileNotFoundError):
        return stat.S_ISREG(path.lstat().st_mode)
    return False


_DATABASE: Final = b"SQLite format 3\0"
_HELD: Final[dict[tuple[int, int], int]] = {}
"""Descriptors of databases that were read, by device and file. They are never closed: the system would
undo every lock that this process has on the file, SQLite's too, and another process take it for its own."""


def _says(path: Path, wanted: Wanted) -> bool:
    try:
        known = path.stat()
        held = _HELD.get((known.st_dev, known.st_ino))
        descriptor = os.open(path, os.O_RDONLY) if held is None else held
    except FileNotFoundError:
        return False
    except OSError as error:
        raise _unread(path, error) from error
    data, at = b"", 0
    try:
        while block := os.pread(descriptor, _BLOCK, at):
            if not at and held is None and block.startswith(_DATABASE):
                held = _HELD[known.st_dev, known.st_ino] = descriptor
            data = data[-wanted.longest :] + block
            at += len(block)
            if wanted.in_bytes(data):
                return True
    except OSError as error:
        raise _unread(path, error) from error
    finally:
        if held is None:
            os.close(descriptor)
    return False


def _unread(path: Path, error: OSError) -> InfrastructureError:
    return InfrastructureError(
        f"{path}: cannot be searched for what is erased: {error.strerror}; put that right and erase again"
    )


# Places --------------------------------------------------------------------------------------


class Place(Protocol):
    """Somewhere copies may be. What it does again changes nothing more."""

    @property
    def name(self) -> str:
        """What a receipt calls it."""
        ...

    def harvest(self, wanted: Wanted) -> Wanted:
        """Return what else gives away what is to be erased; changes nothing."""
        ...

    def erase(self, wanted: Wanted, receipt: int) -> Looked:
        """Erase it, and say what came of it.

        Args:
            wanted: What is looked for.
            receipt: The number of the receipt that there will be.
        """
        ...


@dataclass(frozen=True)
class VectorPlace:
    """A `cache` of vectors, which are found by the texts they are of."""

    cache: VectorCache

    @property
    def name(self) -> str:
        """What a receipt calls it."""
        where = getattr(self.cache, "path", "memory")
        return f"vectors in {where}"

    def harvest(self, wanted: Wanted) -> Wanted:
        """Vectors say nothing more."""
        return wanted

    def erase(self, wanted: Wanted, receipt: int) -> Looked:  # noqa: ARG002
        """Delete the vectors of all texts and phrases, and rewrite the file."""
        cache: Any = self.cache
        if not hasattr(cache, "forget"):
            left = f"a {type(cache).__name__} cannot `forget`: delete its vectors yourself"
            return Looked(place=self.name, left=(left,))
        count = cache.forget({*wanted.texts, *wanted.phrases})
        unread: tuple[str, ...]
        unread = (
            () if not hasattr(cache, "scrub") or cache.scrub() else (_read_meanwhile(self.name),)
        )
        return Looked(place=self.name, removed=count, left=unread)


@dataclass(frozen=True)
class CheckpointPlace:
    """Checkpoints of graphs: a thread that holds a phrase is deleted, and so are those that are named.

    Attributes:
        saver: The checkpointer that the graphs were given.
        threads: Ids of threads to delete, whatever they hold.
    """

    saver: BaseCheckpointSaver[Any]
    threads: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """What a receipt calls it."""
        return f"checkpoints of {type(self.saver).__name__}"

    def harvest(self, wanted: Wanted) -> Wanted:
        """Threads are deleted whole, and say nothing more."""
        return wanted

    def erase(self, wanted: Wanted, receipt: int) -> Looked:  # noqa: ARG002
        """Delete the threads; a SQLite file is rewritten."""
        found = {str(each): None for each in self.threads} | dict.fromkeys(self._holding(wanted))
        for thread in found:
            self.saver.delete_thread(thread)
        left: list[str] = []
        connection = getattr(self.saver, "conn", None)
        if isinstance(connection, sqlite3.Connection):
            with getattr(self.saver, "lock", nullcontext()):  # graphs go on meanwhile
                left += _rewritten(connection, self.name)
        elif type(self.saver).__name__ != "InMemorySaver":
            left.append(f"{self.name}: what its database keeps of deleted rows")
        left += [f"thread {wanted.blanked(thread)}" for thread in self._holding(wanted)]
        return Looked(place=self.name, removed=len(found), left=tuple(left))

    def _holding(self, wanted: Wanted) -> Iterator[str]:
        told: set[str] = set()
        for each in self._listed():
            thread = str(each.config["configurable"]["thread_id"])
            if thread not in told and self._is_in(each, wanted):
                told.add(thread)
        yield from sorted(told)

    def _listed(self) -> Iterator[Any]:
        """List all checkpoints.

        Raises:
            InputError: One of them cannot be read: a file may be somebody else's.
        """
        listing = self.saver.list(None)
        while True:
            try:
                each = next(listing, None)
            except Exception as error:
                words = " ".join(f"{type(error).__name__}: {error}".split())
                msg = f"{self.name}: a checkpoint cannot be read: {words:.200}; nothing was erased there"
                raise InputError(msg) from error
            if each is None:
                return
            yield each

    def _is_in(self, checkpoint: Any, wanted: Wanted) -> bool:
        parts = (checkpoint.checkpoint, checkpoint.metadata, checkpoint.pending_writes)
        # Encrypted, they say nothing: what is encrypted is looked at.
        serde: Any = self.saver.serde
        if isinstance(serde, EncryptedSerializer):
            serde = serde.serde
        return any(wanted.in_bytes(serde.dumps_typed(part)[1]) for part in parts)


def _rewritten(connection: sqlite3.Connection, name: str) -> list[str]:
    """Rewrite a SQLite database of somebody else's; say what is left."""
    try:
        connection.commit()
        connection.execute("VACUUM")
        busy, *_ = connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchone()
    except sqlite3.Error as error:
        return [f"{name}: its file cannot be rewritten: {error}"]
    return [_read_meanwhile(name)] if busy else []


def _read_meanwhile(name: str) -> str:
    return f"{name}: another process reads what was there before; erase again once it has ended"


# Stores --------------------------------------------------------------------------------------


def innermost(store: BaseStore) -> BaseStore:
    """Return the store that keeps the records."""
    while isinstance(store, RankedStore | ReadOnlyStore | GuardedStore):
        store = store.store
    return store


def described(store: BaseStore) -> str:
    """Return what a receipt calls a store."""
    if isinstance(store, InMemoryStore):
        return "memory"
    where = getattr(store, "path", None) or getattr(store, "where", None)
    return f"{type(store).__name__} {where}" if where else type(store).__name__


def scrubbed(store: BaseStore) -> tuple[list[str], list[str]]:
    """Have a store keep no byte of what was deleted; return what is left, and what cannot be reached."""
    name = described(store)
    if isinstance(store, InMemoryStore):
        return [], []
    if isinstance(store, SQLiteFileStore):
        return ([] if store.scrub() else [_read_meanwhile(name)]), []
    connection = getattr(store, "conn", None)
    if isinstance(connection, sqlite3.Connection):
        with getattr(store, "lock", nullcontext()):
            return _rewritten(connection, name), []
    if type(store).__name__ == "ChromaStore":
        done: bool = cast("Any", store).scrub()
        return [], [] if done else [
            f"{name}: the disk of a Chroma server, for its operator to vacuum"
        ]
    if type(store).__name__ == "PostgresStore":
        return _vacuumed(connection, name), [
            f"{name}: PostgreSQL's write-ahead log and its archives"
        ]
    return [], [f"{name}: what it keeps of deleted records"]


def _vacuumed(connection: Any, name: str) -> list[str]:
    """Rewrite the tables of a PostgreSQL store."""
    import psycopg  # noqa: PLC0415  (an extra)

    try:
        with closing(psycopg.connect(**address_of(connection), autocommit=True)) as own:
            for table in ("store", "store_vectors"):
                if own.execute("SELECT to_regclass(%s)", (table,)).fetchone() != (None,):
                    own.execute(f"VACUUM (FULL) {table}")
    except psycopg.Error as error:
        words = " ".join(str(error).split())
        return [f"{name}: its tables cannot be rewritten (VACUUM FULL): {words}"]
    return []


def files_of(store: BaseStore) -> list[Path]:
    """Return where a store keeps its records and indexes on this machine's disk."""
    if isinstance(store, SQLiteFileStore):
        beside = [Path(f"{store.path.resolve()}{end}") for end in ("", "-wal", "-journal")]
        return [*beside, store.indexes.path]
    if getattr(store, "alone", False) and (where := getattr(store, "where", None)):
        return [Path(where)]
    return []


def caches_of(memory: MemoryProvider[Any]) -> list[VectorPlace]:
    """Return the caches of vectors that a provider's ranker has."""
    found: list[VectorPlace] = []

    def look(part: object) -> None:
        if isinstance(part, CachedEmbedder):
            found.append(VectorPlace(part.cache))
        elif is_dataclass(part):
            for each in fields(part):
                look(getattr(part, each.name))
        elif isinstance(part, tuple):
            for each in part:
                look(each)

    look(getattr(memory.settings, "ranker", None))
    return found
