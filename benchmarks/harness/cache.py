"""A response cache: what a model once answered, it answers again, for nothing.

`ResponseCache` is a LangChain `BaseCache` over one SQLite file that threads and processes
may share. `MeteredChatModel` uses it with a key it writes itself, because LangChain's own
key contains operational settings (`timeout`, `max_retries`) and leaves out which replicate
is asking: at temperature above zero, replicates must not share their answers.
"""

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from enum import StrEnum
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from langchain_core.caches import RETURN_VAL_TYPE, BaseCache
from langchain_core.messages import (
    AIMessage,
    BaseMessageChunk,
    message_chunk_to_message,
    message_to_dict,
)
from langchain_core.outputs import ChatGeneration, Generation

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import InputError
from langgraft._core.sqlite_file import Layout, SQLiteFile
from langgraft.benchmarks.harness.replies import is_complete

SCHEMA_VERSION = 1
"""Part of every key and of the file: raise it when kept replies can no longer be trusted."""

MOST_CHARACTERS = 16 << 20
"""Of a reply that is kept, as JSON."""

_FILE = Layout(
    kind="a response cache",
    application=0,
    version=SCHEMA_VERSION,
    schema="CREATE TABLE replies (key TEXT PRIMARY KEY, value TEXT NOT NULL)",
    advice="give another path, or delete the file: models are then asked again",
    durable=False,
)

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
        self._file: SQLiteFile | None = None
        if self.mode is not CacheMode.OFF:
            read_only = self.mode is CacheMode.READ_ONLY
            self._file = SQLiteFile(self.path, _FILE, read_only=read_only)

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Return the kept replies to a request, or `None`.

        Raises:
            InputError: The mode is `read_only` and the request is unknown.
        """
        if self.mode is CacheMode.OFF:
            return None
        key = request_key(prompt, llm_string)
        text = self.find(key)
        found = None if text is None else _read(text)
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
        first = self.put(key, value)
        return replies if first is None else _read(first)

    def find(self, key: str) -> str | None:
        """Return what is kept under a key, as `put` was given it."""
        if self._file is None:
            return None
        with self._file.transaction(write=False) as cursor:
            row = cursor.execute("SELECT value FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, value: str) -> str | None:
        """Keep a value unless the key has one already, which is then returned."""
        if self._file is None:
            return None
        with self._file.transaction(write=True) as cursor:
            cursor.execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", (key, value))
            if cursor.rowcount == 1:
                return None
        return self.find(key)

    def clear(self, **_kwargs: Any) -> None:
        """Forget all replies.

        Raises:
            InputError: The mode is `read_only`.
        """
        if self.mode is CacheMode.READ_ONLY:
            msg = f"{self.path}: a read-only cache cannot be cleared"
            raise InputError(msg)
        if self._file is not None:
            with self._file.transaction(write=True) as cursor:
                cursor.execute("DELETE FROM replies")

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
        if self._file is None:
            return 0
        with self._file.transaction(write=False) as cursor:
            (rows,) = cursor.execute("SELECT count(*) FROM replies").fetchone()
        return int(rows)

    def __bool__(self) -> bool:
        """An empty cache is a cache."""
        return True

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        if self._file is not None:
            self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.close()


def _read(value: str) -> Sequence[Generation]:
    return [_read_reply(written) for written in json.loads(value)]


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
