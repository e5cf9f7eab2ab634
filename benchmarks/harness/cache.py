"""A response cache: what a model once answered, it answers again, for nothing.

`ResponseCache` is a LangChain `BaseCache` over one SQLite file that threads and processes
may share. `MeteredChatModel` uses it with a key it writes itself, because LangChain's own
key contains operational settings (`timeout`, `max_retries`) and leaves out which replicate
is asking: at temperature above zero, replicates must not share their answers.

Beside each reply its request is kept, compressed. So a replay that misses can say what differs, and a
reply that is imported is filed under the key of its own request or not at all. An export has a line of
JSON a reply, between one that says what it is and one that says how many there are.
"""

import json
import logging
import sqlite3
import zlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, Final, Self

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
from langgraft._core.sqlite_file import Layout, SQLiteFile
from langgraft._core.texts import in_a_line
from langgraft._core.untrusted import check_number, load_json
from langgraft.benchmarks.harness.budget import MOST_KEPT
from langgraft.benchmarks.harness.replies import is_complete
from langgraft.benchmarks.harness.usage import asking_node, current_replicate

SCHEMA_VERSION = 1
"""Part of every key and of the file: raise it when kept replies can no longer be trusted."""

MOST_CHARACTERS = 16 << 20
"""Of a reply that is kept, as JSON, and of its request."""

_REPLIES: Final = "CREATE TABLE replies (key TEXT PRIMARY KEY, value TEXT NOT NULL)"
_REQUESTS: Final = "CREATE TABLE requests (key TEXT PRIMARY KEY, request BLOB NOT NULL)"

_FILE = Layout(
    kind="a response cache",
    application=0,
    version=SCHEMA_VERSION,
    schema=f"{_REPLIES};{_REQUESTS}",
    advice="give another path, or delete the file: models are then asked again",
    durable=False,
    earlier=(_REPLIES,),
)

_logger = logging.getLogger(__name__)


class CacheMode(StrEnum):
    """What a cache does."""

    READ_WRITE = "read_write"
    """Answers what it can and keeps what is new."""
    READ_ONLY = "read_only"
    """Answers everything; a request it does not know is an error."""
    OFF = "off"
    """Nothing; the file is not touched."""


@dataclass(frozen=True)
class Request:
    """Everything that decides an answer."""

    replicate: str
    model: str
    """The model and its settings, as LangChain's caches call it: the `llm_string`."""
    prompt: str

    @classmethod
    def now(cls, prompt: str, llm_string: str) -> "Request":
        """Return what the current replicate asks."""
        return cls(current_replicate(), llm_string, prompt)

    @cached_property
    def key(self) -> str:
        """What its reply is filed under."""
        return digest(
            {
                "schema": SCHEMA_VERSION,
                "replicate": self.replicate,
                "model": self.model,
                "prompt": self.prompt,
            }
        )

    def packed(self) -> bytes:
        """Return it as it is kept.

        Raises:
            ValueError: It is more than `_unpacked` would read.
        """
        text = key_text([self.replicate, self.model, self.prompt]).encode()
        check_number(text)
        if len(text) > MOST_CHARACTERS:
            msg = f"a request of more than {MOST_CHARACTERS:,} characters"
            raise ValueError(msg)
        return zlib.compress(text, 1)


def _unpacked(packed: bytes) -> Request:
    # The file may be somebody else's: a few bytes could stand for gigabytes.
    with _damage("request"):
        text = zlib.decompressobj().decompress(packed, MOST_CHARACTERS + 1)
        return _with_texts(Request(*load_json(text, MOST_CHARACTERS)))


def _with_texts(request: Request) -> Request:
    if not all(
        isinstance(each, str) for each in (request.replicate, request.model, request.prompt)
    ):
        raise ValueError("replicate, model and prompt are texts")
    return request


class ResponseCache(BaseCache):
    """Replies in a SQLite file. The first answer to a request wins and never changes.

    Truncated, filtered, refused and empty replies are not kept, nor are those of more than
    `MOST_CHARACTERS`. Values are JSON, from which nothing but plain generations and AI messages can
    be read: nothing is pickled.

    In a file that is full what is new is used and not kept, and nothing that is there goes: a run may
    have been answered from it, and would get other answers when it is resumed. `trim` makes room, oldest
    first, and only while nobody has the file open.

    | setting | meaning |
    | --- | --- |
    | `path` | the file; created on the first write together with its folder |
    | `mode` | `read_write`, `read_only` or `off` |
    | `most_bytes` | most bytes of the file |
    """

    def __init__(
        self,
        path: Path | str,
        mode: CacheMode | str = CacheMode.READ_WRITE,
        *,
        most_bytes: int = MOST_KEPT,
    ) -> None:
        """Open the cache.

        Raises:
            InputError: The file cannot be used: missing in `read_only`, unwritable, no
                response cache, or one of another version.
        """
        self.path = Path(path)
        self.most_bytes = most_bytes
        try:
            self.mode = CacheMode(mode)
        except ValueError as error:
            allowed = ", ".join(CacheMode)
            msg = f"cache mode {mode!r} is none of {allowed}"
            raise InputError(msg) from error
        self._full = False
        self._file: SQLiteFile | None = None
        if self.mode is not CacheMode.OFF:
            read_only = self.mode is CacheMode.READ_ONLY
            self._file = SQLiteFile(self.path, _FILE, read_only=read_only)

    def lookup(self, prompt: str, llm_string: str) -> RETURN_VAL_TYPE | None:
        """Do as `answer`."""
        return self.answer(Request.now(prompt, llm_string))

    def answer(self, request: Request) -> RETURN_VAL_TYPE | None:
        """Return the kept replies to a request, or `None`.

        Raises:
            InputError: The mode is `read_only` and the request is unknown; the message tells what
                differs from the kept request that is most like it.
        """
        if self.mode is CacheMode.OFF:
            return None
        text = self.find(request.key)
        found = None if text is None else _read(text)
        if found is None and self.mode is CacheMode.READ_ONLY:
            node = asking_node()
            msg = (
                f"{self.path}: no reply is kept for this request"
                f"{f' of node {node!r}' if node else ''} (replicate {request.replicate!r}, key"
                f" {request.key[:12]}): {self._difference(request)}; to ask the model, use no replay"
                " (cache mode 'read_write')"
            )
            raise InputError(msg)
        return found

    def _difference(self, asked: Request) -> str:
        """Say how a request differs from the kept one that is most like it."""
        assert self._file is not None
        nearest: tuple[tuple[bool, int, bool], Request] | None = None
        with self._file.transaction(write=False) as cursor:
            newest = "SELECT request FROM requests ORDER BY rowid DESC LIMIT ?"
            rows = cursor.execute(newest, (_LOOKED_AT,)) if _has_requests(cursor) else ()
            for (packed,) in rows:
                kept = _unpacked(packed)
                same = _same_start(kept.prompt, asked.prompt)
                likeness = (kept.model == asked.model, same, kept.replicate == asked.replicate)
                if nearest is None or likeness > nearest[0]:
                    nearest = likeness, kept
        if nearest is None:
            return "nothing is known of the requests that were answered"
        return f"the most similar one that is kept differs in {_told(nearest[1], asked)}"

    def update(self, prompt: str, llm_string: str, return_val: RETURN_VAL_TYPE) -> None:
        """Keep replies, unless the request has been answered before or they are not complete."""
        self.keep(Request.now(prompt, llm_string), return_val)

    def keep(self, request: Request, replies: RETURN_VAL_TYPE) -> RETURN_VAL_TYPE:
        """Do as `update` and return the replies that count: the first ones kept, or `replies`."""
        if self.mode is not CacheMode.READ_WRITE or not is_complete(replies):
            return replies
        try:
            value = key_text([_write_reply(reply) for reply in replies])
        except (TypeError, ValueError) as error:
            msg = f"{self.path}: a reply cannot be kept as JSON: {error}; use cache mode 'off'"
            raise InputError(msg) from error
        try:
            load_json(value.encode(), MOST_CHARACTERS)
            packed = request.packed()
        except ValueError:  # out of bounds
            return replies
        first = self.put(request.key, value, packed)
        return replies if first is None else _read(first)

    def find(self, key: str) -> str | None:
        """Return what is kept under a key, as `put` was given it."""
        if self._file is None:
            return None
        with self._file.transaction(write=False) as cursor:
            row = cursor.execute("SELECT value FROM replies WHERE key = ?", (key,)).fetchone()
        return None if row is None else str(row[0])

    def put(self, key: str, value: str, packed: bytes) -> str | None:
        """Keep a reply with its request, unless the key has one already, which is then returned."""
        if self._file is None:
            return None
        with self._file.transaction(write=True) as cursor:
            if _used_bytes(cursor) + len(value) + len(packed) > self.most_bytes:
                self._warn_full()
            elif _insert(cursor, key, value, packed):
                return None
        return self.find(key)

    def _warn_full(self) -> None:
        if not self._full:
            self._full = True
            told = "%s: full at %s bytes; replies are used, and no longer kept"
            _logger.warning(told, self.path, f"{self.most_bytes:,}")

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
                cursor.execute("DELETE FROM requests")

    def trim(self) -> int:
        """Forget what was kept longest ago, until the file has at most `most_bytes`; return how many.

        Raises:
            InputError: Somebody has the file open, and may have been answered from it.
        """
        assert self._file is not None
        assert not self._file.read_only
        gone = 0
        with self._file.alone() as cursor:
            while _used_bytes(cursor) > self.most_bytes and (rows := _count(cursor)):
                cursor.execute(
                    "DELETE FROM replies WHERE rowid IN (SELECT rowid FROM replies ORDER BY rowid LIMIT ?)",
                    (-(-rows // 50),),
                )
                gone += cursor.rowcount
                cursor.execute("DELETE FROM requests WHERE key NOT IN (SELECT key FROM replies)")
        return gone

    def forget(self, holds: Callable[[JSON], bool]) -> int:
        """Forget replies that are, or answer, what somebody is looking for, and return how many.

        Their requests are new ones then: a run that was answered by them is not resumed by them. No byte
        of them is left in the file, as long as nobody else reads in it; others may have it open.

        Args:
            holds: Says of a prompt or of replies whether it is meant.

        Raises:
            InputError: The mode is not `read_write`.
            InfrastructureError: Somebody else was reading all the while.
        """
        if self.mode is not CacheMode.READ_WRITE or self._file is None:
            msg = (
                f"{self.path}: replies are forgotten in mode 'read_write', not {self.mode.value!r}"
            )
            raise InputError(msg)
        with self._file.transaction(write=True) as cursor:
            rows = "SELECT key, value, request FROM replies LEFT JOIN requests USING (key)"
            gone = [(key,) for key, *row in cursor.execute(rows) if _any_holds(holds, *row)]
            cursor.executemany("DELETE FROM replies WHERE key = ?", gone)
            cursor.executemany("DELETE FROM requests WHERE key = ?", gone)
        if not self._file.scrub():
            msg = f"{self.path}: others read in it all the while; do it again once they have ended"
            raise InfrastructureError(msg)
        return len(gone)

    def export(self, out: BinaryIO, secrets: Iterable[str] = ()) -> tuple[int, int]:
        """Write all replies whose requests are kept as lines of JSON, in the order of their keys.

        Args:
            out: Where to.
            secrets: Texts that must not get out: what holds one of them is left out.

        Returns:
            How many replies were written, and how many left out.
        """
        assert self._file is not None
        hidden = [key_text(secret)[1:-1].encode() for secret in secrets]
        written = left = 0
        out.write(key_text({"format": _FORMAT, "version": SCHEMA_VERSION}).encode() + b"\n")
        with self._file.transaction(write=False) as cursor:
            left = _count(cursor)
            for key, value, packed in _all(cursor):
                request = _unpacked(packed)
                with _damage("reply"):
                    replies = json.loads(value)
                line = {
                    "key": key,
                    "replicate": request.replicate,
                    "model": request.model,
                    "prompt": request.prompt,
                    "replies": replies,
                }
                text = key_text(line).encode()
                if not any(secret in text for secret in hidden):
                    out.write(text + b"\n")
                    written += 1
        out.write(key_text({"replies": written}).encode() + b"\n")
        return written, left - written

    def bring_in(self, source: BinaryIO, name: str) -> tuple[int, int]:
        """Import what `export` wrote: all of it, or nothing.

        A request that is answered already keeps its answer.

        Args:
            source: The lines.
            name: What messages call it.

        Returns:
            How many replies are new, and how many requests were answered already.

        Raises:
            InputError: A line is no good, the end is missing, or the file would become too large.
        """
        assert self._file is not None
        new = known = 0
        with self._file.transaction(write=True) as cursor:
            for request, value in _lines_of(source, name):
                packed = request.packed()
                if _used_bytes(cursor) + len(value) + len(packed) > self.most_bytes:
                    msg = f"{name}: {self.path} would have more than {self.most_bytes:,} bytes; nothing is imported"
                    raise InputError(msg)
                if _insert(cursor, request.key, value, packed):
                    new += 1
                else:
                    known += 1
        return new, known

    def stats(self) -> dict[str, JSON]:
        """Return how many replies there are, by model and in all, how many replicates, how many bytes."""
        assert self._file is not None
        models: Counter[str] = Counter()
        replicates = set[str]()
        with self._file.transaction(write=False) as cursor:
            count, size = _count(cursor), _used_bytes(cursor)
            for _, _, packed in _all(cursor):
                request = _unpacked(packed)
                models[_model_name(request.model)] += 1
                replicates.add(request.replicate)
        return {
            "replies": count,
            "with_request": models.total(),
            "replicates": len(replicates),
            "bytes": size,
            "models": dict(sorted(models.items())),
        }

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
            return _count(cursor)

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


# In the file -------------------------------------------------------------------------------


def _read(value: str) -> Sequence[Generation]:
    with _damage("reply"):
        return [_read_reply(written) for written in json.loads(value)]


@contextmanager
def _damage(what: str) -> Iterator[None]:
    """Refuse in one line what a file holds that is not what we keep: it may be somebody else's."""
    try:
        yield
    except (
        ValueError,
        TypeError,
        KeyError,
        AttributeError,
        RecursionError,
        zlib.error,
    ) as error:
        told = in_a_line(f"{type(error).__name__}: {error}", 200)
        raise InputError(f"a {what} in the response cache is damaged: {told}") from error


def _any_holds(holds: Callable[[JSON], bool], value: str, packed: bytes | None) -> bool:
    prompt = "" if packed is None else _unpacked(packed).prompt
    with _damage("reply"):
        replies = json.loads(value)
    return holds(prompt) or holds(replies)


def _insert(cursor: sqlite3.Cursor, key: str, value: str, packed: bytes) -> bool:
    """Keep a reply; say whether it is the first one."""
    cursor.execute("INSERT OR IGNORE INTO replies VALUES (?, ?)", (key, value))
    new = cursor.rowcount == 1
    cursor.execute("INSERT OR IGNORE INTO requests VALUES (?, ?)", (key, packed))
    return new


def _all(cursor: sqlite3.Cursor) -> Iterator[tuple[str, str, bytes]]:
    """Yield keys, replies and requests, where these are kept."""
    if _has_requests(cursor):
        both = "SELECT key, value, request FROM replies JOIN requests USING (key) ORDER BY key"
        yield from cursor.execute(both)


def _has_requests(cursor: sqlite3.Cursor) -> bool:
    tables = "SELECT count(*) FROM sqlite_master WHERE name = 'requests'"
    return bool(cursor.execute(tables).fetchone()[0])


def _count(cursor: sqlite3.Cursor) -> int:
    return int(cursor.execute("SELECT count(*) FROM replies").fetchone()[0])


def _used_bytes(cursor: sqlite3.Cursor) -> int:
    pages, free, size = (
        cursor.execute(f"PRAGMA {name}").fetchone()[0]
        for name in ("page_count", "freelist_count", "page_size")
    )
    return int((pages - free) * size)


# Keys and values ---------------------------------------------------------------------------


def key_text(value: JSON) -> str:
    """Write a value as JSON in ASCII with sorted keys.

    Unlike canonical JSON it bears what models write at times: halves of surrogate pairs in
    text, and NaN among the arguments of a tool.

    Raises:
        TypeError: `value` holds something JSON cannot hold.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"))


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


# Lines of others ---------------------------------------------------------------------------

_FORMAT: Final = "langgraft-responses"
_LONGEST_LINE: Final = 2 * MOST_CHARACTERS
_FIELDS: Final = {"key", "replicate", "model", "prompt", "replies"}


def _lines_of(source: BinaryIO, name: str) -> Iterator[tuple[Request, str]]:
    """Yield the requests of an export, each with its replies as they are kept."""
    count = ended = 0
    for number, line in enumerate(iter(lambda: source.readline(_LONGEST_LINE + 1), b""), 1):
        try:
            data = load_json(line, _LONGEST_LINE)
            if number == 1:
                _check_head(data)
            elif ended:
                raise ValueError("the export ends before it")
            elif data.keys() == {"replies"}:
                ended = number
                if data["replies"] != count:
                    msg = f"it says {data['replies']!r:.20} replies, and there are {count}"
                    raise ValueError(msg)
            else:
                count += 1
                yield _checked(data)
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            why = str(error) if isinstance(error, ValueError) else "not what an export holds"
            told = in_a_line(why, 200)
            raise InputError(f"{name}: line {number}: {told}; nothing is imported") from error
    if not ended:
        msg = f"{name}: it breaks off: no last line says how many replies there are; nothing is imported"
        raise InputError(msg)


def _check_head(data: Mapping[str, Any]) -> None:
    if data.get("format") != _FORMAT:
        msg = f"no export of a response cache, which begins with its format, {_FORMAT!r}"
        raise ValueError(msg)
    if data.get("version") != SCHEMA_VERSION:
        msg = f"version {data.get('version')!r:.20}; this langgraft reads {SCHEMA_VERSION}"
        raise ValueError(msg)


def _checked(data: Mapping[str, Any]) -> tuple[Request, str]:
    """Return what a line holds, once it is found to be what would have been kept here.

    Raises:
        ValueError: It is not.
    """
    if data.keys() != _FIELDS:
        msg = f"its fields are {', '.join(sorted(_FIELDS))}"
        raise ValueError(msg)
    request = _with_texts(Request(data["replicate"], data["model"], data["prompt"]))
    if request.key != data["key"]:
        raise ValueError("its key is not that of its request")
    replies = [_read_reply(written) for written in data["replies"]]
    if not is_complete(replies):
        raise ValueError("a reply that is truncated, filtered, refused or empty is never kept")
    value = key_text([_write_reply(reply) for reply in replies])
    load_json(value.encode(), MOST_CHARACTERS)
    return request, value


# What differs ------------------------------------------------------------------------------

_LOOKED_AT: Final = 20_000
"""Requests, the newest, that a miss is compared with."""
_SHOWN: Final = 40
"""Characters of a difference."""


def _model_name(model: str) -> str:
    return str(_settings(model).get("identity.model", "unknown"))


def _settings(model: str) -> Mapping[str, Any]:
    """Return what a model's text says, by dotted names; of a text of other hands nothing."""
    try:
        told = load_json(model.encode())
    except ValueError:
        return {}
    parts = told.items() if isinstance(told, dict) else ()
    return {
        f"{part}.{name}": value
        for part, values in parts
        for name, value in (values.items() if isinstance(values, dict) else [("name", values)])
    }


def _told(kept: Request, asked: Request) -> str:
    told = []
    if kept.model != asked.model:
        there, here = _settings(kept.model), _settings(asked.model)
        names = [name for name in {**there, **here} if there.get(name) != here.get(name)]
        told += [_pair(name, there.get(name), here.get(name)) for name in names[:3]] or [
            "the model"
        ]
    if kept.replicate != asked.replicate:
        told.append(_pair("the replicate", kept.replicate, asked.replicate))
    if kept.prompt != asked.prompt:
        told.append(_told_of_prompt(kept.prompt, asked.prompt))
    return ", ".join(told)


def _told_of_prompt(kept: str, asked: str) -> str:
    start = max(0, _same_start(kept, asked) - _SHOWN // 2)
    end = start + 2 * _SHOWN
    return _pair(f"{_place(kept, asked)}the prompt", kept[start:end], asked[start:end])


def _place(kept: str, asked: str) -> str:
    """Say in which of a prompt's messages a difference begins."""
    try:
        there, here = json.loads(kept), json.loads(asked)
        pairs = enumerate(zip_longest(there, here), 1)
        first = next(number for number, (one, other) in pairs if one != other)
    except (ValueError, TypeError, StopIteration):
        return ""
    return f"message {first} (of {len(here)}, there {len(there)}) of "


def _pair(name: str, kept: object, asked: object) -> str:
    shown = [in_a_line(repr(each), 2 * _SHOWN) for each in (kept, asked)]
    return f"{name} (kept {shown[0]}, asked {shown[1]})"


def _same_start(one: str, other: str) -> int:
    """Return how many characters two texts begin with alike."""
    low, high = 0, min(len(one), len(other))
    while low < high:
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
