"""A PostgreSQL database to measure on: one that is given, or a private server for the time being."""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

LOCATION: Final = "LANGGRAFT_POSTGRES"
"""Environment variable with the URL of a database that may be written to."""

_BINARIES: Final = ("initdb", "pg_ctl")

_SETTINGS: Final = (
    "listen_addresses=",  # a socket in a folder of ours, and no port
    "fsync=off",
    "synchronous_commit=off",
    "full_page_writes=off",
)
"""For a database that is thrown away."""


@contextmanager
def database() -> Iterator[str | None]:
    """Yield the URL of a database, or `None` where there is neither one nor PostgreSQL's programs."""
    given = os.environ.get(LOCATION)
    programs = _programs()
    if given or programs is None:
        yield given
        return
    # Not below the caller's folder: the path of a socket has at most 107 characters.
    folder = Path(tempfile.mkdtemp(prefix="langgraft-pg-"))
    try:
        with _server(programs, folder) as url:
            yield url
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _programs() -> dict[str, str] | None:
    """Find PostgreSQL's programs; Debian keeps them out of the path."""
    folders = sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    path = os.pathsep.join([os.environ.get("PATH", ""), *map(str, folders)])
    found = {name: shutil.which(name, path=path) for name in _BINARIES}
    complete = {name: where for name, where in found.items() if where is not None}
    return complete if len(complete) == len(found) else None


@contextmanager
def _server(programs: Mapping[str, str], folder: Path) -> Iterator[str]:
    owner = _owner(folder)
    data, log = folder / "data", folder / "log"
    options = " ".join(
        f"-c {setting}" for setting in (*_SETTINGS, f"unix_socket_directories={folder}")
    )
    initdb = [programs["initdb"], "-D", str(data), "-U", "langgraft", "-A", "trust", "--no-sync"]
    _call([*initdb, "-E", "UTF8", "--locale=C"], owner)
    control = [programs["pg_ctl"], "-D", str(data), "-w"]
    _call([*control, "-l", str(log), "-o", options, "start"], owner)
    try:
        yield f"postgresql://langgraft@/postgres?host={folder}"
    finally:
        _call([*control, "-m", "immediate", "stop"], owner)


def _owner(folder: Path) -> str | None:
    """Return the user the server is to run as: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    names = {user.pw_name for user in pwd.getpwall()}
    owner = "postgres" if "postgres" in names else "nobody"
    shutil.chown(folder, owner)
    return owner


def _call(command: list[str], owner: str | None) -> None:
    done = subprocess.run(  # noqa: S603  (PostgreSQL's own programs)
        command,
        user=owner,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,  # not a pipe: the server would keep it open
        stderr=subprocess.PIPE if "start" not in command else subprocess.DEVNULL,
        cwd="/",
        check=False,
        text=True,
    )
    if done.returncode != 0:
        words = " ".join((done.stderr or "").split()[-30:])
        msg = f"{Path(command[0]).name} ended with {done.returncode}: {words}"
        raise RuntimeError(msg)
