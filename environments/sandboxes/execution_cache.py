"""Results of programs in a SQLite file, which outlives the process that ran them."""

import hashlib
import json
import sqlite3
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import asdict
from pathlib import Path
from threading import Lock
from typing import Any, Final

from filelock import FileLock

from langgraft._core.errors import InfrastructureError, InputError
from langgraft.environments.sandboxes.results import ExecutionResult, Frame, ProgramError

LAYOUT: Final = 1
"""Part of every key and of the file: raise it when kept results can no longer be trusted."""

_APPLICATION: Final = 0x6C677865
"""Written into the file's header, so that another program's database is not taken for ours."""

_SCHEMA: Final = """
CREATE TABLE executions (
    key TEXT PRIMARY KEY,
    result TEXT NOT NULL,
    files BLOB NOT NULL,
    sha256 BLOB NOT NULL
)
"""
_PATIENCE_SECONDS: Final = 60.0
"""How long to wait for another process that is writing."""

_ADVICE: Final = "give another path, or delete the file: programs are then run again"


class ExecutionCache:
    """Keep what came of programs. The first result of a key wins and never changes.

    Any number of threads and processes may share the file. A result is on disk once `keep`
    returns, whatever happens to the process or the machine afterwards; a process that is killed
    in between leaves the file as it was.

    Args:
        path: The file; created together with its folder.

    Raises:
        InputError: The file cannot be opened, is damaged, or is not one of ours.
    """

    def __init__(self, path: Path | str) -> None:
        self.path = Path(path)
        self._lock = Lock()
        self._connection: sqlite3.Connection | None = None
        with self._statements():
            pass

    def get(self, key: str) -> ExecutionResult | None:
        """Return what came of the program with this key, or `None`.

        Raises:
            InputError: The file is damaged.
            InfrastructureError: The file cannot be read now.
        """
        statement = "SELECT result, files, sha256 FROM executions WHERE key = ?"
        with self._statements() as cursor:
            row = cursor.execute(statement, (key,)).fetchone()
        if row is None:
            return None
        written, content, checksum = row
        if _checksum(key, written, content) != checksum:
            msg = f"{self.path}: the result {key[:12]} is damaged; {_ADVICE}"
            raise InputError(msg)
        return read_result(written, content)

    def keep(self, key: str, result: ExecutionResult) -> ExecutionResult:
        """Keep a result, and return the one that counts: the first one of its key.

        Raises:
            InputError: The file is damaged.
            InfrastructureError: The file cannot be written now.
        """
        written, content = write_result(result)
        row = (key, written, content, _checksum(key, written, content))
        with self._statements() as cursor:
            cursor.execute("INSERT OR IGNORE INTO executions VALUES (?, ?, ?, ?)", row)
        kept = self.get(key)
        assert kept is not None
        return kept

    def __len__(self) -> int:
        """Return the number of results kept."""
        with self._statements() as cursor:
            (rows,) = cursor.execute("SELECT count(*) FROM executions").fetchone()
        return int(rows)

    def __bool__(self) -> bool:
        """An empty cache is a cache."""
        return True

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        with self._lock:
            if self._connection is not None:
                self._connection.close()
            self._connection = None

    def __del__(self) -> None:
        # Newer Pythons warn of connections that nobody closed.
        connection = getattr(self, "_connection", None)
        if connection is not None:
            connection.close()

    @contextmanager
    def _statements(self) -> Iterator[sqlite3.Cursor]:
        """Give the one connection to one thread at a time; each statement commits by itself."""
        with self._lock, self._naming_the_file():
            if self._connection is None:
                self._connection = self._open()
            with closing(self._connection.cursor()) as cursor:
                yield cursor

    def _open(self) -> sqlite3.Connection:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # SQLite does not wait its turn when several processes turn a new file to WAL.
        with FileLock(f"{self.path}.lock", timeout=_PATIENCE_SECONDS):
            connection = sqlite3.connect(
                self.path, timeout=_PATIENCE_SECONDS, isolation_level=None, check_same_thread=False
            )
            try:
                self._prepare(connection)
            except BaseException:
                connection.close()
                raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check whose file it is; make the table in a new one."""
        (application,) = connection.execute("PRAGMA application_id").fetchone()
        (layout,) = connection.execute("PRAGMA user_version").fetchone()
        (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
        is_new = (application, layout, tables) == (0, 0, 0)
        if not is_new and (application, layout) != (_APPLICATION, LAYOUT):
            msg = f"{self.path}: this database is no execution cache of this version; {_ADVICE}"
            raise InputError(msg)
        connection.execute("PRAGMA journal_mode = WAL")
        # A result decides what an agent does next: it may not be lost even with the power.
        connection.execute("PRAGMA synchronous = FULL")
        if is_new:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_SCHEMA)
            connection.execute(f"PRAGMA application_id = {_APPLICATION}")
            connection.execute(f"PRAGMA user_version = {LAYOUT}")
            connection.execute("COMMIT")

    @contextmanager
    def _naming_the_file(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.OperationalError, OSError) as error:
            # Locked for long, disk full, no such folder: another time it may work.
            kind = InfrastructureError if self._connection is not None else InputError
            msg = f"{self.path}: the execution cache cannot be used: {error}"
            raise kind(msg) from error
        except sqlite3.DatabaseError as error:
            msg = f"{self.path}: no execution cache, or damaged ({error}); {_ADVICE}"
            raise InputError(msg) from error


def write_result(result: ExecutionResult) -> tuple[str, bytes]:
    """Write a result as JSON, with the lengths of its files, and the files' bytes one after another.

    JSON in ASCII with sorted keys: unlike UTF-8 it bears halves of surrogate pairs, which an
    exception's message may hold.
    """
    written = asdict(result) | {
        "files": [[name, len(content)] for name, content in result.files.items()],
        # As pairs, because sorted keys would change their order.
        "left_out": [[name, reason] for name, reason in result.left_out.items()],
    }
    text = json.dumps(written, sort_keys=True, separators=(",", ":"))
    return text, b"".join(result.files.values())


def read_result(written: str, content: bytes) -> ExecutionResult:
    """Read what `write_result` wrote."""
    fields: dict[str, Any] = json.loads(written)
    files: dict[str, bytes] = {}
    start = 0
    for name, length in fields["files"]:
        files[name] = content[start : start + length]
        start += length
    error = fields["error"]
    return ExecutionResult(
        **fields
        | {
            "error": None if error is None else _read_error(error),
            "printed": tuple(fields["printed"]),
            "files": files,
            "left_out": dict(fields["left_out"]),
        }
    )


def _read_error(fields: dict[str, Any]) -> ProgramError:
    frames = tuple(Frame(**frame) for frame in fields["frames"])
    return ProgramError(fields["type"], fields["message"], frames)


def _checksum(key: str, written: str, content: bytes) -> bytes:
    return hashlib.sha256(b"\0".join([key.encode(), written.encode(), content])).digest()
