"""A PostgreSQL server to measure and to test on: one that is given, or one of our own."""

import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

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
    """Run a server for as long as the block lasts; give the URI to connect with.

    It listens on a socket in a folder of its own and nowhere else, and writes nothing safely.

    Raises:
        RuntimeError: There is none, or it does not start.
    """
    if given := os.environ.get(GIVEN):
        yield given
        return
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
        control = [str(programs / "pg_ctl"), "-D", str(data), "-w"]
        options = f"-F -k {folder} -c listen_addresses='' -c max_connections=500"
        _run([*control, "-l", str(log), "-o", options, "start"], folder, owner)
        try:
            yield f"postgresql://tester@/postgres?host={folder}"
        finally:
            _run([*control, "-m", "immediate", "stop"], folder, owner)
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _owner(folder: Path) -> dict[str, Any]:
    """Say as whom to run: PostgreSQL refuses root."""
    if os.geteuid() != 0:
        return {}
    shutil.chown(folder, "nobody", "nogroup")
    return {"user": "nobody", "group": "nogroup", "extra_groups": []}


def _run(command: list[str], folder: Path, owner: dict[str, Any]) -> None:
    # To a file: the server keeps what it inherits open, and a pipe would never end.
    with (folder / "setup.log").open("ab") as output:
        done = subprocess.run(  # noqa: S603  (PostgreSQL's own programs)
            command, cwd=folder, stdout=output, stderr=output, check=False, **owner
        )
    if done.returncode:
        said = "".join(path.read_text() for path in sorted(folder.glob("*log")))
        msg = f"{Path(command[0]).name} failed: {said}"
        raise RuntimeError(msg)
