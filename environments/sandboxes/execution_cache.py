"""Results of programs in a SQLite file, which outlives the process that ran them."""

import hashlib
import json
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from langgraft._core.errors import InputError
from langgraft._core.sqlite_file import Layout, SQLiteFile
from langgraft.environments.sandboxes.results import ExecutionResult, Frame, ProgramError

LAYOUT: Final = 1
"""Part of every key and of the file: raise it when kept results can no longer be trusted."""

_FILE: Final = Layout(
    kind="an execution cache",
    application=0x6C677865,
    version=LAYOUT,
    schema="""
        CREATE TABLE executions (
            key TEXT PRIMARY KEY,
            result TEXT NOT NULL,
            files BLOB NOT NULL,
            sha256 BLOB NOT NULL
        )
    """,
    advice="give another path, or delete the file: programs are then run again",
)


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
        self._file = SQLiteFile(path, _FILE)
        self.path = self._file.path

    def get(self, key: str) -> ExecutionResult | None:
        """Return what came of the program with this key, or `None`.

        Raises:
            InputError: The file is damaged.
            InfrastructureError: The file cannot be read now.
        """
        statement = "SELECT result, files, sha256 FROM executions WHERE key = ?"
        with self._file.transaction(write=False) as cursor:
            row = cursor.execute(statement, (key,)).fetchone()
        if row is None:
            return None
        written, content, checksum = row
        if _checksum(key, written, content) != checksum:
            msg = f"{self.path}: the result {key[:12]} is damaged; {_FILE.advice}"
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
        with self._file.transaction(write=True) as cursor:
            cursor.execute("INSERT OR IGNORE INTO executions VALUES (?, ?, ?, ?)", row)
        kept = self.get(key)
        assert kept is not None
        return kept

    def __len__(self) -> int:
        """Return the number of results kept."""
        with self._file.transaction(write=False) as cursor:
            (rows,) = cursor.execute("SELECT count(*) FROM executions").fetchone()
        return int(rows)

    def __bool__(self) -> bool:
        """An empty cache is a cache."""
        return True

    def close(self) -> None:
        """Close the file; the next call opens it again."""
        self._file.close()


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
