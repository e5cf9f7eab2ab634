"""Opening Chroma: as this process's own, under a lock, or as a server's client; or taking a client that is open."""

import ctypes
import inspect
import json
import os
import sqlite3
import struct
import uuid
from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, cast
from urllib.parse import urlsplit

from filelock import FileLock, Timeout

from langgraft._core.canonical import JSON
from langgraft._core.errors import ForkError, InfrastructureError, SettingsError, StorePathError
from langgraft._core.forks import fork_error, renewed
from langgraft._core.sqlite_file import check_file
from langgraft.memory.stores.kept_indexes import Changes
from langgraft.memory.stores.programs import Address, Namespace

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.client import Client
    from chromadb.config import Settings

DATABASE: Final = "chroma.sqlite3"
"""Chroma's file in its folder."""

_FULL_TEXT: Final = (
    "CREATE VIRTUAL TABLE embedding_fulltext_search USING fts5(string_value, tokenize='trigram')",
    "CREATE VIRTUAL TABLE embedding_fulltext USING fts5(string_value)",
)
"""The virtual tables that versions of Chroma make."""

_PORTS = {"http": 8000, "https": 443}


@dataclass(frozen=True, slots=True)
class Connection:
    """An open Chroma.

    Attributes:
        client: Its client.
        where: Its folder or address, for messages.
        alone: Whether nobody else can write to it.
        close: Closes it and releases what was held for it.
        changes: What is written to it, where nobody else can.
        scrub: Rewrites its file, and hands over the client of the file as it is then, also where that
            failed; `None` where the file is not this process's own.
        again: Connects a forked child to the same server; `None` where Chroma runs in this process.
        abandon: Leaves Chroma to the parent; called in a forked child.
    """

    client: "ClientAPI"
    where: str
    alone: bool
    close: Callable[[], None]
    changes: "FolderChanges | None" = None
    scrub: "Callable[[Callable[[ClientAPI], None]], None] | None" = None
    again: "Callable[[], Connection] | None" = None
    abandon: Callable[[], None] = lambda: None


_OPENED: Final[dict[Path, int]] = {}
"""Folders that were opened, with the process. Chroma never lets go of one: in a forked child it hangs."""


def forked(where: str) -> ForkError:
    """Return the error for a Chroma that runs in the parent of this process."""
    return fork_error(
        f"the Chroma database {where}",
        "for several workers, use a Chroma server (`chroma run`) or a store `sqlite:PATH`",
    )


def open_folder(path: str | Path) -> Connection:
    """Open the Chroma database in a folder as its only owner.

    Raises:
        SettingsError: `path` names no folder, but nothing, or a server.
        StorePathError: It is open already, here or in another process, or is no folder that
            can be written to.
        InfrastructureError: Chroma cannot open what is there.
    """
    if not str(path) or str(path).startswith(("http:", "https:")):
        msg = f"path must be a folder, got {str(path)!r}; use ChromaStore.connect for a server"
        raise SettingsError(msg)
    # Two names of one folder have one lock. It lies beside the folder, which may be removed.
    folder = Path(path).resolve()
    if _OPENED.get(folder, os.getpid()) != os.getpid():
        raise forked(str(folder))
    with ExitStack() as stack:
        try:
            folder.mkdir(parents=True, exist_ok=True)
            lock = FileLock(f"{folder}.lock", thread_local=False)
            lock.acquire(timeout=0)
            stack.callback(lock.release)
            changes = FolderChanges(folder)
        except Timeout:
            msg = (
                "is open already, in this process or another; embedded Chroma has one owner (close"
                " the other store; or, for several processes, start `chroma run --path` and use"
                " ChromaStore.connect, or keep memory in a store `sqlite:PATH`)"
            )
            raise StorePathError(msg, path=folder) from None
        except OSError as error:
            msg = (
                f"cannot be used as a folder for a store: {error.strerror}: {error.filename}"
                " (a lock file lies beside the folder)"
            )
            raise StorePathError(msg, path=folder) from error
        opened = [_embedded(folder)]
        _OPENED[folder] = os.getpid()
        stack.callback(changes.leave)
        stack.callback(blank_unused, folder)
        stack.callback(lambda: opened[0].close())  # noqa: PLW0108  (the one there is then)

        def scrub(use: "Callable[[ClientAPI], None]") -> None:
            # Not beside Chroma: two SQLite libraries of a process undo each other's locks on a file.
            opened[0].close()
            try:
                _scrub(folder / DATABASE)
            finally:
                opened[0] = _embedded(folder)
                use(opened[0])

        return Connection(
            opened[0],
            str(folder),
            True,
            stack.pop_all().close,
            changes,
            scrub,
            abandon=lambda: _keep_alive(opened[0]),
        )


def connect(url: str) -> Connection:
    """Open a connection to a Chroma server.

    Raises:
        SettingsError: `url` is no address of a server.
        InfrastructureError: No Chroma server answers there.
    """
    scheme, host, port = _parts(url)
    from chromadb import HttpClient  # noqa: PLC0415  (takes a second)

    try:
        client = HttpClient(host=host, port=port, ssl=scheme == "https", settings=_settings())
    except Exception as error:
        msg = (
            f"no Chroma server answers at {url}: {error}"
            " (start one with `chroma run --path FOLDER`, or use ChromaStore.open)"
        )
        raise InfrastructureError(msg) from error
    opened = cast("Client", client)
    return _to_server(opened, url, close=lambda: _hang_up(opened))


def _to_server(client: "ClientAPI", where: str, close: Callable[[], None]) -> Connection:
    """Return a connection to a server, which a forked child makes again: sockets are the parent's."""

    def again() -> Connection:
        from chromadb.api.client import Client  # noqa: PLC0415  (takes a second)

        try:
            new = Client(client.tenant, client.database, client.get_settings())
        except Exception as error:
            msg = f"no Chroma server answers at {where}: {error}"
            raise InfrastructureError(msg) from error
        return _to_server(new, where, close=lambda: _hang_up(new))

    return Connection(client, where, alone=False, close=close, again=again)


def adopt(client: object) -> Connection:
    """Take a client that somebody else made, and closes.

    Raises:
        SettingsError: It is asynchronous, or no client of Chroma.
    """
    from chromadb.api import ClientAPI  # noqa: PLC0415  (takes a second)
    from chromadb.api.async_api import AsyncClientAPI  # noqa: PLC0415

    if isinstance(client, ClientAPI):
        # Whoever made it may write through it, so nothing is held in memory.
        if client.get_settings().chroma_server_host:
            return _to_server(client, _place(client), close=lambda: None)
        return Connection(
            client,
            _place(client),
            alone=False,
            close=lambda: None,
            abandon=lambda: _keep_alive(client),
        )
    wanted = (
        "client must be a chromadb client, as EphemeralClient, PersistentClient or HttpClient make"
    )
    if isinstance(client, AsyncClientAPI) or inspect.iscoroutine(client):
        msg = (
            f"{wanted}, got an asynchronous one: give an HttpClient (the store's own asynchronous"
            " methods run it in a thread)"
        )
        raise SettingsError(msg)
    if isinstance(client, str | Path):
        msg = f"{wanted}, got {str(client)!r:.80}: ChromaStore.open takes a folder, .connect an address"
        raise SettingsError(msg)
    msg = f"{wanted}, got {client!r:.80}"
    raise SettingsError(msg)


def _place(client: "ClientAPI") -> str:
    """Return a client's address or folder, for messages."""
    settings = client.get_settings()
    if host := settings.chroma_server_host:
        return f"{host}:{settings.chroma_server_http_port}"
    return str(Path(settings.persist_directory).resolve()) if settings.is_persistent else "memory"


def _hang_up(client: "Client") -> None:
    """Close a client and its sockets, which Chroma leaves to the garbage collector.

    A client asks for its database by a second client, which has a connection of its own.
    """
    parts = (client, client._admin_client)  # noqa: SLF001  (nothing public has the sessions)
    sessions = [getattr(getattr(part, "_server", None), "_session", None) for part in parts]
    client.close()
    for session in sessions:
        if session is not None:
            session.close()


def _parts(url: str) -> tuple[str, str, int]:
    """Return scheme, host and port of a server's address."""
    try:
        parts = urlsplit(url)
        if parts.scheme in _PORTS and parts.hostname and parts.path in {"", "/"}:
            return parts.scheme, parts.hostname, parts.port or _PORTS[parts.scheme]
    except ValueError:  # a port that is none
        pass
    msg = f"url must be like 'http://localhost:8000', got {url!r}"
    raise SettingsError(msg)


def _embedded(folder: Path) -> "Client":
    from chromadb import PersistentClient  # noqa: PLC0415  (takes a second)

    try:
        # Closed before Chroma opens it: two SQLite libraries of a process undo each other's locks.
        check_file(folder / DATABASE, virtual=_FULL_TEXT)
        return cast("Client", PersistentClient(str(folder), settings=_settings()))
    except Exception as error:
        _forget(str(folder))
        msg = f"Chroma cannot open {folder}: {error}"
        raise InfrastructureError(msg) from error


def _keep_alive(client: "ClientAPI") -> None:
    """Have Chroma's database never freed in this process: it would wait for threads of the parent."""
    bindings = getattr(getattr(client, "_server", None), "bindings", None)
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(bindings))


def _scrub(database: Path) -> None:
    """Rewrite Chroma's database of what it holds, while nobody has it open.

    Chroma logs each write with all of its metadata, and keeps what the index of vectors, which needs
    none of it, has not saved yet. What the records themselves have taken in is taken out of that log.

    Raises:
        InfrastructureError: The file cannot be written.
    """
    try:
        with closing(sqlite3.connect(database, isolation_level=None)) as connection:
            connection.execute(
                "UPDATE embeddings_queue SET metadata = NULL WHERE seq_id <= (SELECT max_seq_id.seq_id"
                " FROM max_seq_id JOIN segments ON segments.id = segment_id"
                " WHERE scope = 'METADATA' AND topic LIKE '%' || collection)"
            )
            connection.execute("VACUUM")
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    except sqlite3.Error as error:
        msg = f"{database}: what was deleted cannot be overwritten: {error}; try again"
        raise InfrastructureError(msg) from error


_HEADER: Final = struct.Struct("<i4Q")
"""Of an index of vectors: version, offset, room, count and size of its elements, and what follows."""
_FLOAT: Final = 4


def blank_unused(folder: Path) -> None:
    """Overwrite the room in files of vectors that no vector takes; Chroma must not write meanwhile.

    Chroma writes that room as it got it from the system, with what the process had in this memory
    before: texts that were deleted long ago among it. It reads none of it.
    """
    for header in folder.glob("*/header.bin"):
        with suppress(OSError, struct.error):
            _, _, room, count, size = _HEADER.unpack_from(header.read_bytes())
            for name, each in (("data_level0.bin", size), ("length.bin", _FLOAT)):
                path = header.with_name(name)
                if path.stat().st_size == room * each and count <= room:
                    with path.open("r+b") as file:
                        file.seek(count * each)
                        file.write(bytes((room - count) * each))


def _forget(identifier: str) -> None:
    """Let a folder be opened after it could not be.

    Chroma keeps one system a path in the process, also where it failed to start.
    """
    from chromadb.api.shared_system_client import SharedSystemClient  # noqa: PLC0415

    if not SharedSystemClient._identifier_to_refcount.get(identifier):  # noqa: SLF001
        SharedSystemClient._identifier_to_system.pop(identifier, None)  # noqa: SLF001


def _settings() -> "Settings":
    """Return new settings, because Chroma writes into those it is given."""
    from chromadb.config import Settings  # noqa: PLC0415  (takes a second)

    return Settings(anonymized_telemetry=False)


# What the one owner of a folder wrote --------------------------------------------------------

INDEXES: Final = "langgraft-indexes"
"""Folder in that of the database, where indexes are."""
_AS_OF: Final = "as-of"
"""File in it that says what its last owner left."""
_MOST: Final = 10_000
"""Records whose last change is remembered."""


class FolderChanges:
    """Numbers the changes of a database: enough for indexes kept beside it. Threads may use it together.

    What was written is told from one owner of the folder to the next, where the one before closed it.
    After a kill, or where anybody else wrote to the database, nothing is known.

    Args:
        folder: The folder, which must be this object's alone, and not be opened by Chroma yet.

    Raises:
        OSError: What was left cannot be taken away.
    """

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._lock = renewed(Lock())
        self._name = uuid.uuid4().hex
        self._change = self._begins = 0
        self._told: dict[Address, int] = {}
        """Number of the last change of a record, in their order."""
        self._forgotten: dict[Namespace, int] = {}
        """Prefixes of which nothing is known any more of before a change."""
        self._left = ""
        """The same in JSON, as the last owner left it: nobody asks for it where nothing was written."""
        as_of = folder / INDEXES / _AS_OF
        # Otherwise nothing was left, or by another version.
        with suppress(OSError, ValueError, KeyError, TypeError):
            head, written = as_of.read_text("ascii").split("\n")
            self._take_over(json.loads(head), written)
        as_of.unlink(missing_ok=True)  # until `leave`, nothing is as it was left

    def note(self, addresses: Iterable[Address]) -> None:
        """Note that records were written, or may have been."""
        with self._lock:
            written = self._written()
            self._change += 1
            for address in addresses:
                written.pop(address, None)
                written[address] = self._change
            if len(written) > _MOST:
                self._told, self._begins = {}, self._change

    def changes(self, prefix: Namespace, since: JSON) -> Changes:
        """Tell which records under a prefix were written since a moment."""
        with self._lock:
            now: JSON = [self._name, self._change]
            if since == now:
                return Changes(now, ())
            written = self._written()
            then = since[1] if isinstance(since, list) and since[0] == self._name else None
            if not isinstance(then, int) or not self._begins <= then <= self._change:
                return Changes(now, None)
            if any(then < n and _overlap(prefix, other) for other, n in self._forgotten.items()):
                return Changes(now, None)
            found: list[Address] = []
            for address in reversed(written):
                if written[address] <= then:
                    break
                if address[0][: len(prefix)] == prefix:
                    found.append(address)
            return Changes(now, found)

    def forget(self, prefix: Namespace) -> None:
        """Keep nothing about the records under a prefix: indexes that hold one of them are built anew."""
        with self._lock:
            written = self._written()
            self._change += 1
            self._forgotten[prefix] = self._change
            for address in [each for each in written if each[0][: len(prefix)] == prefix]:
                del written[address]

    def leave(self) -> None:
        """Tell the next owner; Chroma must have closed the folder."""
        indexes = self._folder / INDEXES
        if not indexes.exists():
            return
        left = {
            "database": _database(self._folder),
            "name": self._name,
            "change": self._change,
            "begins": max(self._begins, *self._forgotten.values(), 0),
        }
        written = [[*address, number] for address, number in self._written().items()]
        (indexes / _AS_OF).write_text(f"{json.dumps(left)}\n{json.dumps(written)}", "ascii")

    def _take_over(self, left: Any, written: str) -> None:
        if left["database"] == _database(self._folder):
            self._name, self._change, self._begins = left["name"], left["change"], left["begins"]
            self._left = written

    def _written(self) -> dict[Address, int]:
        left, self._left = self._left, ""
        if left:
            try:
                self._told = {(tuple(labels), key): n for labels, key, n in json.loads(left)}
            except (ValueError, TypeError):  # torn, and all before this moment is unknown
                self._begins = self._change
        return self._told


def _overlap(one: Namespace, other: Namespace) -> bool:
    """Say whether records under one prefix are under the other."""
    return all(mine == yours for mine, yours in zip(one, other, strict=False))


def _database(folder: Path) -> JSON:
    """Return what changes whenever anybody writes to the database in a folder, or opens it."""
    files = sorted(folder.glob("chroma.sqlite3*"))
    return [[each.name, each.stat().st_mtime_ns, each.stat().st_size] for each in files]
