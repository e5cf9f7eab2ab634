"""A response cache: what a model once answered, it answers again, for nothing.

`ResponseCache` is a LangChain `BaseCache` over one SQLite file that threads and processes
may share. `MeteredChatModel` uses it with a key it writes itself, because LangChain's own
key contains operational settings (`timeout`, `max_retries`) and leaves out which replicate
is asking: at temperature above zero, replicates must not share their answers.
"""

import json
import os
import sqlite3
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock
from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.messages import (
    AIMessage,
    BaseMessageChunk,
    message_chunk_to_message,
    message_to_dict,
)
from langchain_core.outputs import ChatGeneration, Generation

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import InfrastructureError, InputError
from langgraft.benchmarks.harness.replies import is_complete

SCHEMA_VERSION = 1
"""Part of every key and of the file: raise it when kept replies can no longer be trusted."""

MOST_CHARACTERS = 16 << 20
"""Of a reply that is kept, as JSON."""

LOCK_SECONDS = 60.0
"""How long to wait for another process that is writing."""

_TABLE = "CREATE TABLE IF NOT EXISTS replies (key TEXT PRIMARY KEY, value TEXT NOT NULL)"

_REPLICATE: ContextVar[str] = ContextVar("langgraft_replicate", default="")


class CacheMode(StrEnum):
    """What a cache does."""

    READ_WRITE = "read_write"
    """Answers what it can and keeps what is new."""
    READ_ONLY = "read_only"
    """Answers everything; a request it does not know is an error."""
    OFF = "off"
    """Nothing; the file is not touched."""


@contextmanager
def replicate_scope(name: str) -> Iterator[str]:
    """Ask as one replicate: requests in this context share answers only under the same name.

    Scopes nest, and their names are joined by a slash: `run-0` and `test` give `run-0/test`.

    Args:
        name: What tells this repetition from others of the same requests.

    Yields:
        The full name.
    """
    outer = _REPLICATE.get()
    full = f"{outer}/{name}" if outer else name
    token = _REPLICATE.set(full)
    try:
        yield full
    finally:
        _REPLICATE.reset(token)


def current_replicate() -> str:
    """Return the name of the replicate that is asking; empty outside of any scope."""
    return _REPLICATE.get()


class ResponseCache(BaseCache):
    """Replies in a SQLite file. The first answer to a request wins and never changes.

    Truncated, filtered, refused and empty replies are not kept, nor are those of more than
    `MOST_CHARACTERS`. Values are JSON, from which nothing but plain generations and AI messages can
    be read: nothing is pickled.

    | setting | meaning |
    | --- | --- |
    | `path` | the file; created on the first write together with its folder |
    | `mode` | `read_write`, `read_only` or `off` |
    """

    def __init__(self, path: Path | str, mode: CacheMode | str = CacheMode.READ_WRITE) -> None:
        """Open the cache.

        Raises:
            InputError: The file cannot be used: missing in `read_only`, unwritable, no
                response cache, or one of another version.
        """
        self.path = Path(path)
        try:
            self.mode = CacheMode(mode)
        except ValueError as error:
            allowed = ", ".join(CacheMode)
            msg = f"cache mode {mode!r} is none of {allowed}"
            raise InputError(msg) from error
        self._lock = threading.RLock()
        self._opened: sqlite3.Connection | None = None
        self._process = os.getpid()
        if self.mode is not CacheMode.OFF:
            with self._connection():
                pass

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Return the kept replies to a request, or `None`.

        Raises:
            InputError: The mode is `read_only` and the request is unknown.
        """
        if self.mode is CacheMode.OFF:
            return None
        key = request_key(prompt, llm_string)
        found = self._read(key)
        if found is None and self.mode is CacheMode.READ_ONLY:
            msg = (
                f"{self.path}: no reply is kept for this request (replicate "
                f"{current_replicate()!r}, key {key[:12]}); run with cache mode 'read_write' to ask"
            )
            raise InputError(msg)
        return found

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Keep replies, unless the request has been answered before or they are not complete."""
        self.keep(prompt, llm_string, return_val)

    def keep(self, prompt: str, llm_string: str, replies: RETURN_VAL_TYPE) -> RETURN_VAL_TYPE:
        """Do as `update` and return the replies that count: the first ones kept, or `replies`."""
        if self.mode is not CacheMode.READ_WRITE or not is_complete(replies):
            return replies
        key = request_key(prompt, llm_string)
        try:
            value = key_text([_write_reply(reply) for reply in replies])
        except (TypeError, ValueError) as error:
            msg = f"{self.path}: a reply cannot be kept as JSON: {error}; use cache mode 'off'"
            raise InputError(msg) from error
        if len(value) > MOST_CHARACTERS:
            return replies
        with self._connection() as connection:
            written = connection.execute(
                "INSERT OR IGNORE INTO replies (key, value) VALUES (?, ?)", (key, value)
            )
            if written.rowcount == 1:
                return replies
        return self._read(key) or replies

    def clear(self, **_kwargs: Any) -> None:
        """Forget all replies.

        Raises:
            InputError: The mode is `read_only`.
        """
        if self.mode is CacheMode.READ_ONLY:
            msg = f"{self.path}: a read-only cache cannot be cleared"
            raise InputError(msg)
        if self.mode is CacheMode.READ_WRITE:
            with self._connection() as connection:
                connection.execute("DELETE FROM replies")

    # One statement takes some 0.1 ms: less than handing it to a thread and waiting for it.
    async def alookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Do as `lookup`."""
        return self.lookup(prompt, llm_string)

    async def aupdate(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Do as `update`."""
        self.update(prompt, llm_string, return_val)

    async def aclear(self, **_kwargs: Any) -> None:
        """Do as `clear`."""
        self.clear()

    def __len__(self) -> int:
        """Return the number of requests answered."""
        if self.mode is CacheMode.OFF:
            return 0
        with self._connection() as connection:
            row = connection.execute("SELECT count(*) FROM replies").fetchone()
        return int(row[0])

    def __bool__(self) -> bool:
        """An empty cache is a cache."""
        return True

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            if self._opened is not None and self._process == os.getpid():
                self._opened.close()
            self._opened = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()

    def _read(self, key: str) -> Sequence[Generation] | None:
        with self._connection() as connection:
            row = connection.execute("SELECT value FROM replies WHERE key = ?", (key,)).fetchone()
        if row is None:
            return None
        return [_read_reply(written) for written in json.loads(row[0])]

    @contextmanager
    def _connection(self) -> Iterator[sqlite3.Connection]:
        """Give the one connection to one thread at a time."""
        with self._lock:
            if self._process != os.getpid():
                # SQLite connections must not cross a fork: leave the parent's alone.
                self._opened, self._process = None, os.getpid()
            try:
                if self._opened is None:
                    self._opened = self._open()
            except (sqlite3.Error, OSError) as error:
                msg = f"{self.path}: the response cache cannot be opened: {error}"
                raise InputError(msg) from error
            try:
                yield self._opened
            except sqlite3.Error as error:
                msg = f"{self.path}: the response cache failed: {error}; nothing is lost"
                raise InfrastructureError(msg) from error

    def _open(self) -> sqlite3.Connection:
        if self.mode is CacheMode.READ_ONLY:
            return self._connect()
        self.path.parent.mkdir(parents=True, exist_ok=True)
        # SQLite does not wait its turn when several processes turn a new file to WAL.
        with FileLock(f"{self.path}.lock", timeout=LOCK_SECONDS):
            return self._connect()

    def _connect(self) -> sqlite3.Connection:
        read_only = self.mode is CacheMode.READ_ONLY
        uri = f"{self.path.absolute().as_uri()}?mode={'ro' if read_only else 'rwc'}"
        connection = sqlite3.connect(
            uri, uri=True, timeout=LOCK_SECONDS, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection)
        except BaseException:
            connection.close()
            raise
        return connection

    def _prepare(self, connection: sqlite3.Connection) -> None:
        """Check the file's version; make the table in a new one."""
        version = connection.execute("PRAGMA user_version").fetchone()[0]
        tables = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        is_new = version == 0 and tables == 0 and self.mode is not CacheMode.READ_ONLY
        if version != SCHEMA_VERSION and not is_new:
            msg = f"{self.path}: not a response cache of version {SCHEMA_VERSION}"
            raise InputError(msg)
        if self.mode is not CacheMode.READ_ONLY:
            connection.execute("PRAGMA journal_mode = WAL")
            # Power loss may take the last replies, never the file: they would be asked again.
            connection.execute("PRAGMA synchronous = NORMAL")
        if is_new:
            connection.execute("BEGIN IMMEDIATE")
            connection.execute(_TABLE)
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
            connection.execute("COMMIT")


def key_text(value: JSON) -> str:
    """Write a value as JSON in ASCII with sorted keys.

    Unlike canonical JSON it bears what models write at times: halves of surrogate pairs in
    text, and NaN among the arguments of a tool.

    Raises:
        TypeError: `value` holds something JSON cannot hold.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


def request_key(prompt: str, llm_string: str) -> str:
    """Return the key of a request: everything that decides the answer, replicate included."""
    return digest(
        {
            "schema": SCHEMA_VERSION,
            "replicate": current_replicate(),
            "model": llm_string,
            "prompt": prompt,
        }
    )


def _write_reply(reply: Generation) -> JSON:
    written: dict[str, Any] = {"text": reply.text, "info": reply.generation_info}
    if isinstance(reply, ChatGeneration):
        message = reply.message
        if isinstance(message, BaseMessageChunk):
            message = message_chunk_to_message(message)
        written["message"] = message_to_dict(message)["data"]
    return written


def _read_reply(written: dict[str, Any]) -> Generation:
    if "message" not in written:
        return Generation(text=written["text"], generation_info=written["info"])
    message = AIMessage(**written["message"])
    return ChatGeneration(message=message, generation_info=written["info"])
