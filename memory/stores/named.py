"""Stores by name: from what a user types to an open LangGraph store.

==========================  =====================================================================
`memory`                    LangGraph's `InMemoryStore`; gone when the process ends
`sqlite:PATH`               a SQLite file of ours, shared by the processes of one machine
`chroma:PATH`               an embedded Chroma database in the folder PATH, held by one process
`http://HOST:PORT`          a Chroma server, as `chroma run` starts one; `https://` too
`postgresql://USER@HOST/…`  a PostgreSQL database; its tables are made where they are missing
==========================  =====================================================================

Where a bank lies decides nothing of what is found in it, so that every name is as good as any
other. Of a URL, an error shows scheme, host, port and path: no password, no options.
"""

import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import urlsplit

from langgraph.store.base import BaseStore, Op, Result
from langgraph.store.memory import InMemoryStore

from langgraft._core.effects import acarry_out, carry_out
from langgraft._core.errors import InfrastructureError, InputError, LanggraftError, SettingsError
from langgraft._core.lazy import require
from langgraft.memory.stores.sqlite import SQLiteFileStore


class GuardedStore(BaseStore):
    """Pass operations on to a store whose database may go away.

    Args:
        store: The store.
        failures: What its driver raises when the database cannot be reached any more.
        name: What errors call the store.
    """

    def __init__(
        self, store: BaseStore, failures: tuple[type[Exception], ...], *, name: str
    ) -> None:
        self.store = store
        self.supports_ttl = store.supports_ttl
        self.ttl_config = store.ttl_config
        self._failures = failures
        self._name = name

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out a batch.

        Raises:
            InfrastructureError: The database cannot be reached any more.
        """
        try:
            return carry_out(self.store, ops)
        except self._failures as error:
            raise self._lost(error) from error

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as `batch` does, asynchronously."""
        try:
            return await acarry_out(self.store, ops)
        except self._failures as error:
            raise self._lost(error) from error

    def _lost(self, error: Exception) -> InfrastructureError:
        words = " ".join(str(error).split()) or type(error).__name__
        return InfrastructureError(f"store {self._name} does not answer: {words}")


StoreKind: TypeAlias = Literal["memory", "sqlite", "chroma", "chroma-server", "postgresql"]

KNOWN: Final = "memory, chroma:PATH, http://HOST:PORT, sqlite:PATH, postgresql://USER@HOST/DATABASE"

CONNECT_SECONDS: Final = 10
"""How long a database may take to answer at first, where its URL says nothing else."""

_HIDDEN: Final = "…"
_ATTEMPTS: Final = 20
_ATTEMPT_SECONDS: Final = 0.05

_PATHS: Final[dict[str, StoreKind]] = {"sqlite": "sqlite", "chroma": "chroma"}
_SCHEMES: Final[dict[str, StoreKind]] = {
    "http": "chroma-server",
    "https": "chroma-server",
    "postgresql": "postgresql",
    "postgres": "postgresql",
}


def store_kind(spec: str) -> StoreKind:
    """Return what kind of store a name stands for; nothing is opened.

    Raises:
        SettingsError: It is no name of a store.
    """
    if spec == "memory":
        return "memory"
    kind, _, path = spec.partition(":")
    if path and kind in _PATHS:
        return _PATHS[kind]
    scheme, found, rest = spec.partition("://")
    if found and rest and scheme in _SCHEMES:
        return _SCHEMES[scheme]
    msg = f"no store is called {shown(spec)!r}; there are {KNOWN}"
    raise SettingsError(msg)


def open_store(spec: str) -> AbstractContextManager[BaseStore]:
    """Open a store by its name; leaving the block closes it.

    Args:
        spec: One of the names in the module's table.

    Raises:
        SettingsError: It is no name of a store, or the store cannot be opened or reached.
        MissingExtraError: What talks to it is not installed.
    """
    openers: dict[StoreKind, Callable[[str], AbstractContextManager[BaseStore]]] = {
        "memory": _memory,
        "sqlite": _sqlite,
        "chroma": _chroma,
        "chroma-server": _chroma_server,
        "postgresql": _postgres,
    }
    return openers[store_kind(spec)](spec)


def shown(spec: str) -> str:
    """Return a name as it may stand in a message: a URL without user, password and options."""
    scheme, found, _ = spec.partition("://")
    if not found:
        # A mistyped URL, or the words a database driver takes, may hold a password too.
        secret = not spec.startswith(("chroma:", "sqlite:")) and any(sign in spec for sign in "@=")
        return _HIDDEN if secret else spec
    try:
        url = urlsplit(spec)
        host, port = url.hostname or "", "" if url.port is None else f":{url.port}"
    except ValueError:  # such as a port that is no number: it may be half a password
        return f"{scheme}://{_HIDDEN}"
    if spec.count("@") > url.netloc.count("@") or url.netloc.count("@") > 1:
        # A password with characters that should have been escaped: no part of it is a host.
        return f"{scheme}://{_HIDDEN}"
    return f"{scheme}://{host}{port}{url.path}"


@contextmanager
def _memory(_: str) -> Iterator[BaseStore]:
    yield InMemoryStore()


@contextmanager
def _sqlite(spec: str) -> Iterator[BaseStore]:
    with _told(spec):
        store = SQLiteFileStore(spec.partition(":")[2])
    with store:
        yield store


@contextmanager
def _chroma(spec: str) -> Iterator[BaseStore]:
    from langgraft.memory.stores.chroma import ChromaStore  # noqa: PLC0415  (loads chromadb)

    with _told(spec):
        store = ChromaStore.open(Path(spec.partition(":")[2]).expanduser())
    with store:
        yield store


@contextmanager
def _chroma_server(spec: str) -> Iterator[BaseStore]:
    from langgraft.memory.stores.chroma import ChromaStore  # noqa: PLC0415  (loads chromadb)

    if "@" in spec:
        msg = f"store {shown(spec)}: the URL of a Chroma server takes no user and no password"
        raise SettingsError(msg)
    with _told(spec):
        store = ChromaStore.connect(spec)
    with store:
        yield store


@contextmanager
def _told(spec: str) -> Iterator[None]:
    """Make of what goes wrong on opening one error that names the store."""
    try:
        yield
    except InputError:
        raise
    except (LanggraftError, OSError, ValueError) as error:
        raise _refusal(spec, error) from error


@contextmanager
def _postgres(spec: str) -> Iterator[BaseStore]:
    purpose = "A bank in PostgreSQL"
    postgres = require("langgraph.store.postgres", extra="postgres", purpose=purpose)
    driver = require("psycopg", extra="postgres", purpose=purpose)
    with ExitStack() as opened:
        try:
            found = postgres.PostgresStore.from_conn_string(_connection(spec))
            store = opened.enter_context(found)
            _set_up(store, driver)
        except driver.Error as error:
            raise _refusal(spec, error) from error
        failures = (driver.OperationalError, driver.InterfaceError)
        yield GuardedStore(store, failures, name=shown(spec))


def _set_up(store: Any, driver: Any) -> None:
    """Make the tables that are missing, also where others open the database at the same time."""
    errors = driver.errors
    made_twice = (errors.UniqueViolation, errors.DuplicateObject, errors.DuplicateTable)
    for _ in range(_ATTEMPTS):
        with suppress(*made_twice, errors.DeadlockDetected):
            store.setup()
            return
        time.sleep(_ATTEMPT_SECONDS)
    store.setup()


def _connection(spec: str) -> str:
    """Return the URL as connection string, with a limit on how long connecting may take."""
    from psycopg import ProgrammingError, conninfo  # noqa: PLC0415  (an extra)

    try:
        given = conninfo.conninfo_to_dict(spec)
    except ProgrammingError:
        given = None
    if given is None or shown(spec).endswith(_HIDDEN):
        # Not in the driver's words, which may quote a part of the password.
        msg = (
            f"store {shown(spec)}: not a URL as PostgreSQL reads it; check its options, and write"
            " what is special in user or password as %40, %2F …"
        )
        raise SettingsError(msg)
    seconds = given.get("connect_timeout", CONNECT_SECONDS)
    return conninfo.make_conninfo(spec, connect_timeout=seconds)


def _refusal(spec: str, error: Exception) -> SettingsError:
    words = " ".join(str(error).split()) or type(error).__name__
    return SettingsError(f"store {shown(spec)} cannot be opened: {words}")
