"""A LangGraph `BaseStore` in one SQLite file that any number of processes share."""

import asyncio
import json
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from itertools import chain
from pathlib import Path
from sqlite3 import Cursor
from typing import Final, Self, TypeAlias, TypeVar, cast

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON
from langgraft._core.effects import close_at_exit
from langgraft._core.errors import InputError, SettingsError
from langgraft._core.forks import at_fork
from langgraft._core.sqlite_file import DamagedError, Layout, SQLiteFile
from langgraft.memory.stores.filters import check_filter, passes
from langgraft.memory.stores.kept_indexes import Changes, IndexFolder
from langgraft.memory.stores.programs import (
    Namespace,
    as_json,
    check_conditions,
    check_key,
    check_labels,
    encode,
    listed,
    moment,
)

NAME: Final = "memory.sqlite"
"""The file in a folder, where a folder is named in the place of a file."""

_END: Final = "\x1f"
"""Behind each label of a namespace; JSON escapes it, so that no label holds it."""
_BEYOND: Final = "\x20"

_RECORDS: Final = """
    CREATE TABLE records (
        namespace TEXT NOT NULL,
        key TEXT NOT NULL,
        value TEXT NOT NULL,
        created INTEGER NOT NULL,
        updated INTEGER NOT NULL,
        change INTEGER NOT NULL,
        UNIQUE (namespace, key)
    );
    CREATE INDEX changed ON records (change);
    CREATE TABLE gone (
        namespace TEXT NOT NULL,
        key TEXT NOT NULL,
        change INTEGER NOT NULL,
        PRIMARY KEY (namespace, key)
    ) WITHOUT ROWID;
    CREATE INDEX left ON gone (change);
"""

_ERASED: Final = """
    CREATE TABLE erased (
        place TEXT NOT NULL,
        whole INTEGER NOT NULL,
        change INTEGER NOT NULL,
        PRIMARY KEY (place, whole)
    ) WITHOUT ROWID;
"""
_LOG: Final = """
    CREATE TABLE log (
        name TEXT NOT NULL,
        change INTEGER NOT NULL
    );
    INSERT INTO log VALUES (lower(hex(randomblob(16))), 0)
"""
_EARLIER_LOG: Final = (
    "CREATE TABLE log (name TEXT NOT NULL, change INTEGER NOT NULL, begins INTEGER NOT NULL)"
)

_FILE: Final = Layout(
    kind="a memory store of langgraft",
    application=0x6C674D53,
    version=1,
    schema=_RECORDS + _ERASED + _LOG,
    advice="name another file",
    overwrites=True,
    earlier=(_RECORDS + _EARLIER_LOG, _RECORDS + _ERASED + _EARLIER_LOG),
)

_ROWS: Final = 20
"""Records written by one statement, where there are as many: in half the time of one by one."""


def _upsert(rows: int) -> str:
    """Return the statement that writes records: of a change, with namespace, key, value and time of each."""
    fields = [f"?{i}, ?{i + 1}, ?{i + 2}, ?{i + 3}, ?{i + 3}, ?1" for i in range(2, 4 * rows, 4)]
    return (
        f"INSERT INTO records VALUES ({'), ('.join(fields)})"  # noqa: S608  (numbers alone)
        " ON CONFLICT DO UPDATE SET value = excluded.value, updated = max(excluded.updated, created), change = ?1"
    )


_UPSERT: Final = _upsert(1)
_UPSERT_ROWS: Final = _upsert(_ROWS)

_KEYS: Final = 10
"""Records read by one statement, where there are more than one."""
_SELECT: Final = (
    "SELECT namespace, key, value, created, updated FROM records WHERE namespace = ? AND key = ?"
)
_SELECT_ROWS: Final = f"{_SELECT.removesuffix('= ?')}IN ({', '.join('?' * _KEYS)})"

ItemT = TypeVar("ItemT", bound=Item)

_Record: TypeAlias = tuple[str, str, str, int, int]
"""Namespace, key, value, when it was created and updated."""


class SQLiteFileStore(BaseStore):
    """Keep records in a SQLite file, for any number of threads, tasks and processes of one machine.

    ```python
    with SQLiteFileStore("memory.sqlite") as store:
        store.put(("ada",), "m1", {"text": "the red door opens with the red key"})
    ```

    * It behaves as LangGraph's `InMemoryStore`, but keeps `created_at` when a record is written
      again, forgets empty namespaces, gives out copies, and takes a filter's missing or unlike
      value for one that does not pass. Filters may name dotted paths. `query` is ignored: a
      provider, or a `RankedStore`, ranks.
    * Searches list records in the order they were first written.
    * Values are JSON and come back as they were, but for tuples, which become lists. What JSON
      cannot give back is refused before anything is written.
    * A batch is one transaction, on disk when it returns. Writers of all processes wait for one
      another, a minute at most; readers wait for nobody (WAL). The file must not lie on a network
      drive, where SQLite's locks do not hold.
    * Asynchronous batches run in a thread of the store's own.
    * What is deleted is overwritten in the file.

    Args:
        path: The file; made where it is missing, with its folder. A folder stands for the file
            `memory.sqlite` in it.

    Attributes:
        path: The file.
        indexes: Where indexes of its records are kept: in a folder beside it.

    Raises:
        SettingsError: `path` is empty or SQLite's name of a database in memory.
        InputError: The file cannot be opened, is damaged, or another program's.
    """

    @checked
    def __init__(self, path: Path | str) -> None:
        self.path = sqlite_path(path)
        self._file = SQLiteFile(self.path, _FILE)
        # Beside the file itself: two names of one file have the same indexes.
        real = self.path.resolve()
        self.indexes = IndexFolder(real.with_name(f"{real.name}.indexes"))
        self._threads: ThreadPoolExecutor | None = None
        self._closed = False
        at_fork("in_child", self._in_child)
        close_at_exit(self)

    def close(self) -> None:
        """Save indexes and close the file; what is under way is finished first."""
        if not self._closed:
            self.indexes.flush(self)
        self._closed = True
        if self._threads is not None:
            self._threads.shutdown()
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Carry out operations in one transaction; results come in their order, reads precede writes.

        Raises:
            InputError: An operation cannot be used, or the store is closed; nothing was changed.
            InfrastructureError: The file cannot be used now, such as on a full disk.
        """
        return self._carry_out(_planned(ops))

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as `batch` does, asynchronously."""
        made = _planned(ops)
        self._check_open()
        return await asyncio.wrap_future(self._pool().submit(self._carry_out, made))

    def changes(self, prefix: Namespace, since: JSON) -> Changes:
        """Tell which records under a prefix were written since a moment."""
        self._check_open()
        with self._file.transaction(write=False) as cursor:
            name, change = _log(cursor)
            now: JSON = [name, change]
            if since == now:
                return Changes(now, ())
            then = since[1] if isinstance(since, list) and since[0] == name else None
            if not isinstance(then, int) or then > change or _is_erased(cursor, prefix, then):
                return Changes(now, None)
            first, end = _range(prefix)
            # The unary plus has the index of changes used: few records are as new.
            rows = cursor.execute(
                "SELECT namespace, key FROM records"
                " WHERE change > ?1 AND +namespace >= ?2 AND +namespace < ?3"
                " UNION ALL SELECT namespace, key FROM gone"
                " WHERE change > ?1 AND +namespace >= ?2 AND +namespace < ?3",
                (then, first, end),
            )
            return Changes(now, [(_labels(namespace), _text(key)) for namespace, key in rows])

    async def achanges(self, prefix: Namespace, since: JSON) -> Changes:
        """Do as `changes` does, asynchronously."""
        self._check_open()
        return await asyncio.wrap_future(self._pool().submit(self.changes, prefix, since))

    def forget_deleted(self, prefix: Namespace) -> None:
        """Keep no trace of what was deleted under a prefix, in SQLite's log neither.

        Whoever has an index of these records is told no more than to read them anew.

        Raises:
            InfrastructureError: The file cannot be used now.
        """
        self._check_open()
        with self._file.transaction(write=True) as cursor:
            first, end = _range(prefix)
            cursor.execute("DELETE FROM gone WHERE namespace >= ? AND namespace < ?", (first, end))
            change = _next_change(cursor)
            places = [(_place(prefix[:length]), change) for length in range(len(prefix) + 1)]
            cursor.execute("REPLACE INTO erased VALUES (?, TRUE, ?)", places.pop())
            cursor.executemany("REPLACE INTO erased VALUES (?, FALSE, ?)", places)
        self._file.checkpoint()

    def scrub(self) -> bool:
        """Rewrite the file, so that no byte of what was deleted is left in it or in SQLite's log.

        Returns:
            Whether the log is empty: not where another process still reads what was there before.

        Raises:
            InfrastructureError: The file cannot be used now.
        """
        self._check_open()
        return self._file.scrub()

    def _pool(self) -> ThreadPoolExecutor:
        if self._threads is None:
            self._threads = ThreadPoolExecutor(1, thread_name_prefix="langgraft-sqlite")
        return self._threads

    def _in_child(self) -> None:
        self._threads = None

    def _check_open(self) -> None:
        if self._closed:
            msg = f"the store {self.path} is closed; open it again"
            raise InputError(msg)

    def _carry_out(self, made: "_Plan") -> list[Result]:
        self._check_open()
        results: list[Result] = [None] * made.size
        with self._file.transaction(write=bool(made.writes)) as cursor:
            for place, op in made.reads.items():
                results[place] = _answer(cursor, op)
            for namespace, places in made.gets.items():
                for key, row in _rows(cursor, namespace, [*places]):
                    for place in places[key]:
                        results[place] = _read(row, Item)
            if made.writes:
                _write(cursor, made.writes)
        return results


def sqlite_path(path: Path | str) -> Path:
    """Return the file that a path stands for.

    Raises:
        SettingsError: It is empty or SQLite's name of a database in memory.
    """
    if str(path) in ("", ":memory:"):
        msg = (
            f"a SQLite store lies in a file, got path {str(path)!r}; `memory` is a store in memory"
        )
        raise SettingsError(msg)
    found = Path(path).expanduser().absolute()
    return found / NAME if found.is_dir() else found


@dataclass(slots=True)
class _Plan:
    """A batch as it is carried out: namespaces are tuples, and values are texts."""

    size: int = 0
    """Number of its operations."""
    reads: dict[int, Op] = field(default_factory=dict)
    """All but those of single records, by their place in it."""
    gets: dict[str, dict[str, list[int]]] = field(default_factory=dict)
    """Where in it single records are read, by namespace and key as the file has them."""
    writes: dict[tuple[str, str], str | None] = field(default_factory=dict)
    """The last one of each record by namespace and key, as the file has them: its value, or `None`."""


def _planned(ops: Iterable[Op]) -> _Plan:
    """Check a batch.

    Raises:
        InputError: An operation cannot be used.
    """
    made = _Plan()
    namespace: Namespace | None = None
    space = ""  # it as the file has it: nearly always that of the operation before
    for op in ops:
        match op:
            case PutOp():
                if namespace is None or op.namespace != namespace:
                    namespace = check_labels(op.namespace)
                    space = _encoded(namespace)
                check_key(op.key, namespace)
                # Written as text right here: the caller may go on to change what it gave.
                value = None if op.value is None else encode(op.value, (namespace, op.key))
                made.writes[space, as_json(op.key)] = value
            case GetOp():
                if namespace is None or op.namespace != namespace:
                    namespace = check_labels(op.namespace)
                    space = _encoded(namespace)
                check_key(op.key, namespace)
                keys = made.gets.setdefault(space, {})
                keys.setdefault(as_json(op.key), []).append(made.size)
            case SearchOp():
                check_filter(op.filter)
                prefix = check_labels(op.namespace_prefix)
                made.reads[made.size] = op._replace(namespace_prefix=prefix)
            case ListNamespacesOp():
                check_conditions(op)
                made.reads[made.size] = op
            case _:
                msg = f"a store carries out GetOp, PutOp, SearchOp, ListNamespacesOp; got {op!r}"
                raise InputError(msg)
        made.size += 1
    return made


def _answer(cursor: Cursor, op: Op) -> Result:
    match op:
        case SearchOp():
            return _search(cursor, op)
        case ListNamespacesOp():
            rows = cursor.execute("SELECT DISTINCT namespace FROM records")
            return listed((_labels(namespace) for (namespace,) in rows), op)
    return None


def _rows(cursor: Cursor, namespace: str, keys: list[str]) -> Iterator[tuple[str, _Record]]:
    """Yield records of a namespace by their keys; those that are not there are left out."""
    for start in range(0, len(keys), _KEYS):
        block = keys[start : start + _KEYS]
        # As many as the statement takes: the last one stands for those that are wanting.
        some = [*block, *block[-1:] * (_KEYS - len(block))] if len(block) > 1 else block
        rows: list[_Record] = cursor.execute(
            _SELECT if len(block) == 1 else _SELECT_ROWS, (namespace, *some)
        ).fetchall()
        yield from ((row[1], row) for row in rows)


def _search(cursor: Cursor, op: SearchOp) -> list[SearchItem]:
    start, count = max(op.offset, 0), max(op.limit, 0)
    # What a filter leaves out is counted here, all else by SQLite.
    window = (-1, 0) if op.filter else (count, start)
    rows = cursor.execute(
        "SELECT namespace, key, value, created, updated FROM records"
        " WHERE namespace >= ? AND namespace < ? ORDER BY rowid LIMIT ? OFFSET ?",
        (*_range(op.namespace_prefix), *window),
    )
    found = (_read(row, SearchItem) for row in rows)
    if not op.filter:
        return list(found)
    passing = (item for item in found if passes(item.value, op.filter))
    return [item for _, item in zip(range(start + count), passing, strict=False)][start:]


def _write(cursor: Cursor, writes: Mapping[tuple[str, str], str | None]) -> None:
    change = _next_change(cursor)
    now = time.time_ns()
    put: list[tuple[str, str, str, int]] = []
    for number, ((namespace, key), value) in enumerate(writes.items(), now):
        if value is not None:
            put.append((namespace, key, value, number))
            continue
        cursor.execute("DELETE FROM records WHERE namespace = ? AND key = ?", (namespace, key))
        if cursor.rowcount:
            cursor.execute("REPLACE INTO gone VALUES (?, ?, ?)", (namespace, key, change))
    whole = len(put) - len(put) % _ROWS
    blocks = (chain.from_iterable(put[i : i + _ROWS]) for i in range(0, whole, _ROWS))
    cursor.executemany(_UPSERT_ROWS, ((change, *block) for block in blocks))
    cursor.executemany(_UPSERT, ((change, *row) for row in put[whole:]))
    if put and cursor.execute("SELECT 1 FROM gone LIMIT 1").fetchone():
        again = [row[:2] for row in put]
        cursor.executemany("DELETE FROM gone WHERE namespace = ? AND key = ?", again)


def _next_change(cursor: Cursor) -> int:
    cursor.execute("UPDATE log SET change = change + 1")
    return _log(cursor)[1]


def _log(cursor: Cursor) -> tuple[str, int]:
    """Return the file's name for itself, and the number of its last change."""
    match cursor.execute("SELECT name, change FROM log").fetchone():
        case str(name), int(change):
            return name, change
    msg = "its log says nothing"
    raise DamagedError(msg)


def _is_erased(cursor: Cursor, prefix: Namespace, since: int) -> bool:
    """Say whether, since a change, all that was at, above or somewhere below a prefix was erased."""
    at_or_above = [(_place(prefix[:length]), True) for length in range(len(prefix) + 1)]
    known = "SELECT 1 FROM erased WHERE place = ? AND whole = ? AND change > ?"
    return any(
        cursor.execute(known, (place, whole, since)).fetchone()
        for place, whole in (*at_or_above, (_place(prefix), False))
    )


def _place(prefix: Namespace) -> str:
    """Return what stands for a prefix that must not be read any more."""
    return sha256(_encoded(prefix).encode("ascii")).hexdigest()


def _read(row: _Record, kind: Callable[..., ItemT]) -> ItemT:
    namespace, key, value, created, updated = row
    try:
        found = json.loads(value) if isinstance(value, str) else None
        if isinstance(found, dict):
            return kind(
                value=found,
                key=_text(key),
                namespace=_labels(namespace),
                created_at=moment(created),
                updated_at=moment(updated),
            )
    # What SQLite gives is of any type, and any length: a file may be somebody else's.
    except (ValueError, TypeError, AttributeError, OverflowError, RecursionError):
        pass
    msg = f"record {str(key)[:80]!r} holds no record's value"
    raise DamagedError(msg)


def _encoded(namespace: Namespace) -> str:
    """Write a namespace so that those under a prefix come one after the other."""
    return "".join(as_json(label) + _END for label in namespace)


@lru_cache(maxsize=64)
def _labels(namespace: str) -> Namespace:
    return tuple(_text(label) for label in namespace.split(_END)[:-1])


def _text(text: str) -> str:
    """Read a text in JSON; nearly always nothing is escaped in it."""
    return text[1:-1] if "\\" not in text else cast("str", json.loads(text))


def _range(prefix: Namespace) -> tuple[str, str]:
    """Return where the namespaces under a prefix begin, and what comes after them."""
    first = _encoded(prefix)
    return first, (first[:-1] + _BEYOND if first else "\x7f")
