"""A PostgreSQL server to measure and to test on, and stores in it that do not see each other."""

import os
import secrets
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

import psycopg
from langgraph.store.postgres import PostgresStore
from psycopg.conninfo import make_conninfo

GIVEN: Final = "LANGGRAFT_POSTGRES"
"""Variable that names a server to use instead: a connection URI of a user who may make schemas."""

HOW_TO_GET_IT: Final = (
    "no PostgreSQL here: install it (Debian: apt install postgresql),"
    f" or set {GIVEN} to the URI of a server"
)

_DEBIAN: Final = Path("/usr/lib/postgresql")


def binaries() -> Path | None:
    """Return the folder of the newest server that is installed."""
    if found := shutil.which("initdb"):
        return Path(found).parent
    versions = [path for path in _DEBIAN.glob("*/bin") if (path / "initdb").exists()]
    return max(versions, key=lambda path: int(path.parent.name), default=None)


def available() -> bool:
    """Say whether there is a server to use."""
    return bool(os.environ.get(GIVEN)) or binaries() is not None


@contextmanager
def running_server() -> Iterator[str]:
    """Run a server for as long as the block lasts, or use the one given; give the URI to connect with.

    Raises:
        RuntimeError: There is none, or it does not start.
    """
    if given := os.environ.get(GIVEN):
        yield given
        return
    with own_server() as (uri, _):
        yield uri


@contextmanager
def own_server() -> Iterator[tuple[str, Callable[[], None]]]:
    """Run a server for as long as the block lasts; give its URI, and what crashes and restarts it.

    It listens on a socket in a folder of its own and nowhere else, and writes nothing safely.

    Raises:
        RuntimeError: There is none, or it does not start.
    """
    programs = binaries()
    if programs is None:
        raise RuntimeError(HOW_TO_GET_IT)
    # Not below a caller's folder: the path of a socket has at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="pg-"))
    try:
        owner = _owner(folder)
        data, log = folder / "data", folder / "log"
        initialize = ["-D", str(data), "-U", "tester", "-A", "trust", "-E", "UTF8", "--locale=C"]
        _run([str(programs / "initdb"), "--no-sync", *initialize], folder, owner)
        control = [str(programs / "pg_ctl"), "-D", str(data), "-w", "-t", "600"]
        options = f"-F -k {folder} -c listen_addresses='' -c max_connections=500"
        start = ["-l", str(log), "-o", options]
        _run([*control, *start, "start"], folder, owner)
        try:
            restart = [*control, *start, "-m", "immediate", "restart"]
            yield (
                f"postgresql://tester@/postgres?host={folder}",
                lambda: _run(restart, folder, owner),
            )
        finally:
            _run([*control, "-m", "immediate", "stop"], folder, owner)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


class Schemas:
    """Makes stores in one server, each in a schema of its own, and drops them in the end."""

    def __init__(self, uri: str) -> None:
        self.uri = uri
        self._names: list[str] = []
        self._open = ExitStack()

    def new(self) -> str:
        """Return what connects to a new, empty schema."""
        name = f"test_{secrets.token_hex(6)}"
        with psycopg.connect(self.uri, autocommit=True) as connection:
            connection.execute(f"CREATE SCHEMA {name}".encode())
        self._names.append(name)
        return make_conninfo(self.uri, options=f"-csearch_path={name},public")

    def store(self, conninfo: str | None = None, **options: Any) -> PostgresStore:
        """Open a store in a schema: a new one, unless one is given."""
        store = self._open.enter_context(
            PostgresStore.from_conn_string(conninfo or self.new(), **options)
        )
        store.setup()
        return store

    def close(self) -> None:
        """Close the stores and drop their schemas."""
        self._open.close()
        with psycopg.connect(self.uri, autocommit=True) as connection:
            for name in self._names:
                connection.execute(f"DROP SCHEMA {name} CASCADE".encode())


def has_vectors() -> bool:
    """Say whether the server can store vectors (the extension pgvector); starts none."""
    if given := os.environ.get(GIVEN):
        with psycopg.connect(given) as connection:
            asked = "SELECT 1 FROM pg_available_extensions WHERE name = 'vector'"
            return connection.execute(asked).fetchone() is not None
    programs = binaries()
    if programs is None or not (programs / "pg_config").exists():
        return False
    command = [str(programs / "pg_config"), "--sharedir"]
    shared = subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()
    return (Path(shared) / "extension" / "vector.control").exists()


def _owner(folder: Path) -> dict[str, Any]:
    """Say as whom to run: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return {}
    shutil.chown(folder, "nobody", "nogroup")
    return {"user": "nobody", "group": "nogroup", "extra_groups": []}


def _run(command: list[str], folder: Path, owner: dict[str, Any]) -> None:
    # To a file: the server keeps what it inherits open, and a pipe would never end.
    with (folder / "setup.log").open("ab") as output:
        done = subprocess.run(
            command, cwd=folder, stdout=output, stderr=output, check=False, **owner
        )
    if done.returncode:
        said = "".join(path.read_text() for path in sorted(folder.glob("*log")))
        msg = f"{Path(command[0]).name} failed: {said}"
        raise RuntimeError(msg)
