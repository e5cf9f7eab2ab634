"""Opening Chroma: as this process's own, under a lock, or as a server's client; or taking a client that is open."""

import inspect
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, cast
from urllib.parse import urlsplit

from filelock import FileLock, Timeout

from langgraft._core.errors import InfrastructureError, SettingsError, StorePathError
from langgraft.memory.stores.chroma.changes import FolderChanges

if TYPE_CHECKING:
    from chromadb.api import ClientAPI
    from chromadb.api.client import Client
    from chromadb.config import Settings

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
    """

    client: "ClientAPI"
    where: str
    alone: bool
    close: Callable[[], None]
    changes: FolderChanges | None = None


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
        client = _embedded(folder)
        stack.callback(changes.leave)
        stack.callback(client.close)
        return Connection(client, str(folder), True, stack.pop_all().close, changes)


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
    return Connection(opened, url, alone=False, close=lambda: _hang_up(opened))


def adopt(client: object) -> Connection:
    """Take a client that somebody else made, and closes.

    Raises:
        SettingsError: It is asynchronous, or no client of Chroma.
    """
    from chromadb.api import ClientAPI  # noqa: PLC0415  (takes a second)
    from chromadb.api.async_api import AsyncClientAPI  # noqa: PLC0415

    if isinstance(client, ClientAPI):
        # Whoever made it may write through it, so nothing is held in memory.
        return Connection(client, _place(client), alone=False, close=lambda: None)
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
        return cast("Client", PersistentClient(str(folder), settings=_settings()))
    except Exception as error:
        _forget(str(folder))
        msg = f"Chroma cannot open {folder}: {error}"
        raise InfrastructureError(msg) from error


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
