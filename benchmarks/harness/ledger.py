"""Counts of an item that is worked through by several processes, one after the other."""

import json
import os
from pathlib import Path

from langgraft._core.canonical import canonical_json
from langgraft._core.errors import RunDirectoryError
from langgraft._core.files import write_all
from langgraft.benchmarks.harness.files import disk_errors, make_directory, whole_lines
from langgraft.benchmarks.harness.usage import TokenCounts, Used


class UsageFile:
    """A ledger in a file: a line for each used reply.

    An item that goes on from a checkpoint does not ask again what it asked before it was killed,
    so that a meter in memory would miss it; and it does ask again what it had asked since the
    checkpoint. Here both count once: by request, the last line of each.

    Args:
        path: The file; made with its folder. A line that a crash left unfinished is dropped.

    Raises:
        RunDirectoryError: It cannot be read or written, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._noted: dict[str, tuple[str, TokenCounts | None, bool]] = {}
        make_directory(path.parent)
        with disk_errors("read", path):
            data = path.read_bytes() if path.exists() else b""
        whole = whole_lines(data)
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                request, node, tokens, simulated = _read(line)
            except (ValueError, TypeError, KeyError) as error:
                msg = f"line {number} is damaged; remove its folder to begin anew"
                raise RunDirectoryError(msg, path=path) from error
            self._noted[request] = (node, tokens, simulated)
        with disk_errors("open for writing", path):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.ftruncate(self._descriptor, len(whole))

    def note(self, request: str, node: str, tokens: TokenCounts | None, *, simulated: bool) -> None:
        """Note the reply to a request; it survives the process once this returns.

        Raises:
            RunDirectoryError: The file cannot be written.
        """
        counted = None if tokens is None else tokens.as_json()
        line = canonical_json([request, node, counted, simulated]).encode() + b"\n"
        with disk_errors("write", self._path):
            write_all(self._descriptor, line)
        self._noted[request] = (node, tokens, simulated)

    def used(self) -> Used:
        """Return what all that is noted amounts to."""
        used = Used()
        for node, tokens, simulated in self._noted.values():
            used.add(tokens, node, simulated=simulated)
        return used

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _read(line: bytes) -> tuple[str, str, TokenCounts | None, bool]:
    request, node, counted, simulated = json.loads(line)
    tokens = None
    if counted is not None:
        tokens = TokenCounts(*(counted[f"{name}_tokens"] for name in _COUNTS))
    return request, node, tokens, simulated


_COUNTS = ("prompt", "completion", "cached_prompt", "reasoning")
"""In the order of `TokenCounts`."""
