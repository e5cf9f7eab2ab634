"""SQLite files that somebody made to harm whoever opens them, from an ordinary file of ours."""

import os
import sqlite3
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any, Final

_ENDLESS: Final = "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n)"

Make = Callable[[Path], None]


def table_of(path: Path) -> str:
    """Return the name of a file's first table."""
    with closing(sqlite3.connect(path)) as file:
        found = "SELECT name FROM sqlite_master WHERE type = 'table' ORDER BY rowid"
        return str(file.execute(found).fetchone()[0])


def _columns(path: Path) -> list[str]:
    with closing(sqlite3.connect(path)) as file:
        return [str(row[1]) for row in file.execute(f"PRAGMA table_info({table_of(path)})")]


def _sql(path: Path, *statements: str, parameters: tuple[Any, ...] = ()) -> None:
    table = table_of(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        for statement in statements:
            words = statement.replace("TABLE_", table)
            file.execute(words, parameters if "?" in words else ())


def _rewritten(path: Path, change: Callable[[str], str]) -> None:
    """Make the first table again, by another statement."""
    table = table_of(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        found = "SELECT sql FROM sqlite_master WHERE name = ?"
        (made,) = file.execute(found, (table,)).fetchone()
        file.execute(f"DROP TABLE {table}")
        file.execute(change(made))


def _endless_view(path: Path) -> None:
    columns = ", ".join(f"i AS {name}" for name in _columns(path))
    _sql(
        path,
        "DROP TABLE TABLE_",
        f"CREATE VIEW {table_of(path)} AS {_ENDLESS} SELECT {columns} FROM n",
    )


def _trigger(when: str) -> Make:
    def make(path: Path) -> None:
        _sql(
            path,
            "CREATE TABLE copies (a)",
            f"CREATE TRIGGER copy AFTER {when} ON TABLE_ BEGIN INSERT INTO copies VALUES (1); END",
        )

    return make


def _virtual(path: Path) -> None:
    columns = ", ".join(_columns(path))
    _sql(path, "DROP TABLE TABLE_", f"CREATE VIRTUAL TABLE {table_of(path)} USING fts5({columns})")


def _added_column(definition: str) -> Make:
    def make(path: Path) -> None:
        _sql(path, f"ALTER TABLE TABLE_ ADD COLUMN {definition}")

    return make


def _checked(path: Path) -> None:
    _rewritten(path, lambda sql: sql.replace(",", " CHECK (length(randomblob(900000000)) > 1),", 1))


def _generated(path: Path) -> None:
    _rewritten(path, lambda sql: sql.replace(",", ", more AS (length(zeroblob(900000000))),", 1))


def _renamed_sql(old: str, new: str) -> Make:
    """Change a table's statement past all that SQLite checks."""

    def make(path: Path) -> None:
        with closing(sqlite3.connect(path, isolation_level=None)) as file:
            file.execute("PRAGMA writable_schema = ON")
            change = "UPDATE sqlite_master SET sql = replace(sql, ?, ?) WHERE type = 'table'"
            file.execute(change, (old, new))

    return make


def _untyped(path: Path) -> None:
    _rewritten(path, lambda sql: sql.replace("TEXT", "").replace("INTEGER", "NUMERIC"))


def _renamed(path: Path) -> None:
    _sql(
        path,
        "PRAGMA writable_schema = ON",
        "UPDATE sqlite_master SET name = 'x' || char(0) || 'y' WHERE type = 'table' AND name = ?",
        parameters=(table_of(path),),
    )


def _typed(value: str) -> Make:
    """Have the first table's values be of another type."""

    def make(path: Path) -> None:
        columns = ("value", "tokens", "vector", "result", "digest")
        column = next(name for name in _columns(path) if name in columns)
        _sql(path, f"UPDATE TABLE_ SET {column} = {value}")

    return make


def _many_tables(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file, file:
        for number in range(2_000):
            file.execute(f"CREATE TABLE t{number} (a)")


def _bytes(path: Path, change: Callable[[bytearray], bytes | bytearray]) -> None:
    _sql(path, "PRAGMA journal_mode = DELETE")
    path.write_bytes(change(bytearray(path.read_bytes())))


def _page(path: Path) -> None:
    def change(data: bytearray) -> bytearray:
        size = int.from_bytes(data[16:18], "big")
        data[size : 2 * size] = bytes(range(256)) * (size // 256)
        return data

    _bytes(path, change)


def _index(path: Path) -> None:
    """Have an index point to another table's page."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        found = file.execute("SELECT rootpage FROM sqlite_master WHERE rootpage > 1 ORDER BY rowid")
        first = found.fetchone()[0]
        file.execute("PRAGMA writable_schema = ON")
        file.execute("UPDATE sqlite_master SET rootpage = ? WHERE rootpage > ?", (first, first))


def _log(path: Path) -> None:
    """Lay a write-ahead log beside it that makes the first table a view."""
    with closing(sqlite3.connect(path, isolation_level=None)) as file:
        file.execute("PRAGMA journal_mode = WAL")
        file.execute("PRAGMA wal_autocheckpoint = 0")
        other = table_of(path)
        file.execute("BEGIN")
        file.execute(f"DROP TABLE {other}")
        file.execute(f"CREATE VIEW {other} AS {_ENDLESS} SELECT i FROM n")
        file.execute("COMMIT")
        kept = {name: Path(f"{path}{name}").read_bytes() for name in ("", "-wal")}
    for name, data in kept.items():
        Path(f"{path}{name}").write_bytes(data)
    Path(f"{path}-shm").unlink(missing_ok=True)


def _lies(path: Path) -> None:
    """Say in the header of another program's database that it is one of ours."""
    with closing(sqlite3.connect(path)) as file:
        names = ("application_id", "user_version")
        said = {name: file.execute(f"PRAGMA {name}").fetchone()[0] for name in names}
    path.unlink()
    with closing(sqlite3.connect(path)) as file, file:
        file.execute("CREATE TABLE bookmarks (address TEXT)")
        for name, value in said.items():
            file.execute(f"PRAGMA {name} = {value}")


def _no_database(path: Path) -> None:
    path.write_bytes(b"SQLite format 3\0" + b"\x01" * 5000)


def _in_place(make: Make) -> Make:
    def made(path: Path) -> None:
        path.unlink()
        make(path)

    return made


def _beside(make: Make, suffix: str) -> Make:
    return lambda path: make(path.with_name(path.name + suffix))


KINDS: Final[dict[str, Make]] = {
    "an endless view": _endless_view,
    "a trigger on insert": _trigger("INSERT"),
    "a trigger on delete": _trigger("DELETE"),
    "a trigger on update": _trigger("UPDATE"),
    "a virtual table": _virtual,
    "a generated column": _generated,
    "one more column": _added_column("more DEFAULT 1"),
    "a costly check": _checked,
    "a strange collation": _renamed_sql("TEXT", "TEXT COLLATE strange"),
    "untyped columns": _untyped,
    "no rowids": _renamed_sql(
        "UNIQUE (namespace, key)\n    )", "PRIMARY KEY (namespace, key)\n    ) WITHOUT ROWID"
    ),
    "an extra table": lambda path: _sql(path, "CREATE TABLE shadow (a)"),
    "an extra view": lambda path: _sql(path, f"CREATE VIEW more AS {_ENDLESS} SELECT i FROM n"),
    "an index on an expression": lambda path: _sql(
        path, "CREATE INDEX odd ON TABLE_ (length(zeroblob(9))) WHERE 1 = 1"
    ),
    "a missing table": lambda path: _sql(path, "DROP TABLE TABLE_"),
    "NUL in a name": _renamed,
    "two thousand tables": _many_tables,
    "a large blob for text": _typed("zeroblob(5000000)"),
    "a blob for text": _typed("x'00ff'"),
    "a damaged page": _page,
    "an index of another table": _index,
    "a cut file": lambda path: _bytes(path, lambda data: data[: len(data) // 2 + 100]),
    "no database": _no_database,
    "another program's log": _log,
    "a lying header": _lies,
    "a pipe": _in_place(os.mkfifo),
    "a link to itself": _in_place(lambda path: path.symlink_to(path)),
    "a device": _in_place(lambda path: path.symlink_to("/dev/zero")),
    "a pipe for a journal": _beside(os.mkfifo, "-journal"),
    "a pipe for a log": _beside(os.mkfifo, "-wal"),
    "a folder for a log": _beside(Path.mkdir, "-wal"),
}
"""What is wrong with each, and what makes it so; the file must hold an ordinary one of ours."""


def bytes_of(path: Path) -> bytes:
    """Return what a file holds; nothing where it is no file."""
    return path.read_bytes() if path.is_file() and not path.is_symlink() else b""
