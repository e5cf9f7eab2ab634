"""A company's SQLite database: its schema, rows by seed, and untrusted queries within bounds."""

import math
import re
import shutil
import sqlite3
import time
import weakref
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path
from random import Random
from tempfile import mkdtemp
from typing import Final, TypeAlias

Value: TypeAlias = str | int | float | bytes | None
Row: TypeAlias = tuple[Value, ...]

TOLERANCE: Final = 1e-6
"""How far two numbers may be apart, of the larger one and at least of 1, to count as equal."""
MOST_CHARACTERS: Final = 10_000
"""Of a query."""
MOST_ROWS: Final = 1_000
"""Rows that a query may return."""
MOST_STEPS: Final = 3_000_000
"""Instructions of SQLite's machine that a query may take; those of tasks take less than a tenth."""
MOST_SECONDS: Final = 2.0
"""The same in seconds of CPU, for what a single instruction may cost."""
MOST_COPIES: Final = 200
"""How often the `WITH` clauses of a query may have one another written out before anything runs."""


_LIMITS: Final[Mapping[int, int]] = {
    sqlite3.SQLITE_LIMIT_LENGTH: 20_000,  # bytes of a value or row: no query fills the memory
    sqlite3.SQLITE_LIMIT_EXPR_DEPTH: 100,
    sqlite3.SQLITE_LIMIT_COMPOUND_SELECT: 20,
    sqlite3.SQLITE_LIMIT_COLUMN: 100,
    sqlite3.SQLITE_LIMIT_LIKE_PATTERN_LENGTH: 100,
    sqlite3.SQLITE_LIMIT_VDBE_OP: 20_000,
    sqlite3.SQLITE_LIMIT_ATTACHED: 0,
}
_ALLOWED: Final = frozenset(
    {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
)
_TOKEN: Final = re.compile(
    r"""--[^\n]*|/\*.*?(?:\*/|$)|'(?:[^']|'')*'|"(?:[^"]|"")*"|`[^`]*`|\[[^]]*\]|\w+|\S""",
    re.DOTALL,
)
"""Comments, texts, quoted names, words and marks, as SQLite tells them apart."""
_EVERY: Final = 1_000
"""Instructions between two looks at the limits."""


_SCHEMA: Final = """
CREATE TABLE categories (id INTEGER PRIMARY KEY, name TEXT);
CREATE TABLE products (id INTEGER PRIMARY KEY, category_id INTEGER REFERENCES categories(id),
  name TEXT, price INTEGER, stock INTEGER, deleted_at INTEGER);
CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT, email TEXT, city TEXT,
  signed_up_at INTEGER, deleted_at INTEGER);
CREATE TABLE orders (id INTEGER PRIMARY KEY, customer_id INTEGER REFERENCES customers(id),
  status TEXT, placed_at INTEGER, deleted_at INTEGER);
CREATE TABLE order_lines (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders(id),
  product_id INTEGER REFERENCES products(id), quantity INTEGER, unit_price INTEGER);
CREATE TABLE refunds (id INTEGER PRIMARY KEY, order_id INTEGER REFERENCES orders(id),
  amount INTEGER, reason TEXT, refunded_at INTEGER);
"""


@dataclass(frozen=True, slots=True)
class Company:
    """What a company takes for granted, and no schema tells. `name` stands in task ids."""

    name: str
    cents: int
    """Units of a price or amount in a euro."""
    pieces: int
    """Pieces in a unit of a quantity."""
    codes: Mapping[str, str]
    """What people call the status of an order → how it is written."""
    ticks: int
    """Units of a moment in a second; moments count from 1970, UTC."""
    deleted_out: bool
    """Whether rows with `deleted_at` are left out; else they are archived ones, and count."""
    test_accounts: str
    """How e-mail addresses of test accounts end; they and their orders do not count. Empty: none."""


SHOP: Final = Company(
    name="shop",
    cents=100,
    pieces=1,
    codes={"placed": "N", "shipped": "T", "delivered": "F", "cancelled": "X"},
    ticks=1,
    deleted_out=True,
    test_accounts="@test.invalid",
)
"""A company in euro cents and pieces, with test accounts that do not count."""
OUTLET: Final = Company(
    name="outlet",
    cents=1,
    pieces=12,
    codes={"placed": "A", "shipped": "B", "delivered": "C", "cancelled": "D"},
    ticks=1_000,
    deleted_out=False,
    test_accounts="",
)
"""The same schema, other habits: what is learned at one of the two misleads at the other."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What the database says to a query. `rows` are its result; none where it failed."""

    rows: tuple[Row, ...] = ()
    error: str = ""
    """Why there is no result; empty where there is one."""


@dataclass(frozen=True, slots=True)
class Table:
    """A table as the database describes it."""

    name: str
    columns: Mapping[str, str]
    """Column → type."""
    references: Mapping[str, str]
    """Column → the table whose `id` it holds."""
    values: Mapping[str, tuple[str, ...]]
    """Text columns of few values → these."""

    @property
    def moments(self) -> list[str]:
        """Columns that say when something was done, other than deleting."""
        return [each for each in self.columns if each.endswith("_at") and each != "deleted_at"]

    @property
    def numbers(self) -> list[str]:
        """Columns that can be added up."""
        whole = [each for each, kind in self.columns.items() if kind == "INTEGER"]
        keys = {"id", *self.references}
        return [each for each in whole if each not in keys and not each.endswith("_at")]


class CompanyDatabase:
    """A company's database, and what runs queries against it.

    It is a file in a temporary folder, and goes with this object. Queries are untrusted: each runs on
    a read-only connection of its own that can do nothing but select, returns at most `MOST_ROWS` rows
    and takes at most `MOST_STEPS` instructions. Any number of threads may ask.

    Args:
        company: Whose database it is.
        seed: Decides its rows.
    """

    def __init__(self, company: Company = SHOP, *, seed: int = 0) -> None:
        self.company, self.seed = company, seed
        folder = mkdtemp(prefix="text-to-sql-")
        weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
        self._path = Path(folder, f"{company.name}.sqlite")
        with closing(sqlite3.connect(self._path)) as connection, connection:
            connection.executescript(_SCHEMA)
            for table, rows in _rows(company, Random(f"{company.name}/{seed}")):  # noqa: S311
                marks = ", ".join("?" * len(rows[0]))
                connection.executemany(f"INSERT INTO {table} VALUES ({marks})", rows)  # noqa: S608

    @cached_property
    def schema(self) -> str:
        """The statements that make the tables: what an agent is shown."""
        with self._open() as connection:
            made = connection.execute("SELECT sql FROM sqlite_master WHERE type = 'table'")
            return "\n".join(f"{statement};" for (statement,) in made)

    @cached_property
    def tables(self) -> Mapping[str, Table]:
        """The tables by name, as the database describes them."""
        with self._open() as connection:
            names = connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")
            return {
                name: _described(connection, name, self.company) for (name,) in names.fetchall()
            }

    def query(self, sql: str) -> Answer:
        """Return what the database says to a query; nothing it says is raised."""
        if len(sql) > MOST_CHARACTERS:
            return Answer(error=f"longer than {MOST_CHARACTERS} characters")
        if _copies(sql) > MOST_COPIES:
            return Answer(error="its WITH clauses name one another too often, or one name twice")
        try:
            with self._open() as connection:
                _guard(connection)
                cursor = connection.execute(sql)
                rows = tuple(cursor.fetchmany(MOST_ROWS + 1))
        # `ValueError` is of texts that are no SQL (NUL, lone surrogates), `MemoryError` of its limits.
        except (sqlite3.Error, sqlite3.Warning, ValueError, MemoryError) as error:
            return Answer(error=f"{type(error).__name__}: {error}".removesuffix(": "))
        if cursor.description is None:
            return Answer(error="there is no query")
        if len(rows) > MOST_ROWS:
            return Answer(error=f"more than {MOST_ROWS} rows")
        return Answer(rows)

    def _open(self) -> "closing[sqlite3.Connection]":
        address = f"{self._path.as_uri()}?mode=ro&immutable=1"
        return closing(sqlite3.connect(address, uri=True, isolation_level=None))


def _guard(connection: sqlite3.Connection) -> None:
    """Let a connection do nothing but select, for so long."""
    for limit, value in _LIMITS.items():
        connection.setlimit(limit, value)
    ends, steps = time.thread_time() + MOST_SECONDS, 0

    def allowed(action: int, _: str | None, name: str | None, *__: str | None) -> int:
        loads = action == sqlite3.SQLITE_FUNCTION and (name or "").lower() == "load_extension"
        return sqlite3.SQLITE_OK if action in _ALLOWED and not loads else sqlite3.SQLITE_DENY

    def over() -> bool:
        nonlocal steps
        steps += _EVERY
        return steps > MOST_STEPS or time.thread_time() > ends

    connection.set_authorizer(allowed)
    connection.set_progress_handler(over, _EVERY)


def _described(connection: sqlite3.Connection, name: str, company: Company) -> Table:
    columns = {row[1]: row[2] for row in connection.execute(f"PRAGMA table_info({name})")}
    keys = connection.execute(f"PRAGMA foreign_key_list({name})")
    references = {row[3]: row[2] for row in keys}
    spoken = {code: word for word, code in company.codes.items()}
    values = {}
    for column, kind in columns.items():
        if kind == "TEXT":
            found = f"SELECT DISTINCT {column} FROM {name} ORDER BY {column} LIMIT 9"  # noqa: S608
            texts = [text for (text,) in connection.execute(found)]
            if len(texts) < 9:  # noqa: PLR2004  (more than eight are no labels)
                labels = (spoken[text] if column == "status" else text for text in texts)
                values[column] = tuple(labels)
    return Table(name, columns, references, values)


def _copies(sql: str) -> float:
    """Bound how many copies of a common table expression SQLite makes when it prepares a query.

    It writes each out wherever it is named, those within it first: twenty that name the one before
    twice are a million, and no limit of SQLite counts them. A name that is defined twice has no bound.
    """
    found = (each for each in _TOKEN.findall(sql) if each[:2] not in {"--", "/*"})
    words = ["", "", *(each.strip("'\"`[]").lower() for each in found), ""]
    names: list[str] = []
    for place in (n for n in range(2, len(words)) if words[n] == "("):
        before = place - 1
        if words[before] == "materialized":
            before -= 2 if words[before - 1] == "not" else 1
        if words[before] != "as":
            continue
        before -= 1
        if words[before] == ")":  # names of its columns
            before = next(n for n in range(before, -1, -1) if words[n] in {"(", ""}) - 1
        names.append(words[before])
    if len(set(names)) < len(names):
        return math.inf
    # Beside a dot it is the name of a column, or says whose column it is.
    named = [
        word for n, word in enumerate(words[1:-1], 1) if "." not in {words[n - 1], words[n + 1]}
    ]
    return math.prod(max(1, named.count(name) - 1) for name in names)


def same_rows(rows: Sequence[Row], others: Sequence[Row], *, ordered: bool) -> bool:
    """Say whether two results are equal: in order, or as multisets; numbers within `TOLERANCE`."""
    if len(rows) != len(others):
        return False
    if ordered:
        return all(map(_same_row, rows, others))
    left = list(others)
    for row in rows:
        place = next((n for n, other in enumerate(left) if _same_row(row, other)), None)
        if place is None:
            return False
        left.pop(place)
    return True


def _same_row(row: Row, other: Row) -> bool:
    return len(row) == len(other) and all(map(_same_value, row, other))


def _same_value(value: Value, other: Value) -> bool:
    if isinstance(value, int | float) and isinstance(other, int | float):
        return math.isclose(value, other, rel_tol=TOLERANCE, abs_tol=TOLERANCE)
    return type(value) is type(other) and value == other


# Rows -------------------------------------------------------------------------------------

_CATEGORIES: Final = ("Books", "Garden", "Kitchen", "Music", "Tools", "Toys")
_CITIES: Final = ("Aarhus", "Bergen", "Ghent", "Lyon", "Porto", "Turku")
_REASONS: Final = ("broken", "late", "unwanted", "wrong size")
_FIRST: Final = ("Ada", "Ben", "Cleo", "Dina", "Emil", "Finn", "Gita", "Hugo", "Iris", "Jan")
_LAST: Final = ("Adler", "Berg", "Costa", "Dahl", "Ebner", "Falk", "Greco", "Holm")
_COLORS: Final = ("Amber", "Blue", "Coral", "Green", "Ivory", "Plum")
_THINGS: Final = ("Box", "Kit", "Lamp", "Set", "Stand", "Guide", "Bag", "Case")
_BEGIN, _END = (int(datetime(year, 1, 1, tzinfo=UTC).timestamp()) for year in (2023, 2025))


def _rows(company: Company, random: Random) -> Iterator[tuple[str, list[Row]]]:
    """Yield the rows of each table; the last few customers and products have no orders."""
    cents, pick = company.cents, random.randint

    def moment() -> int:
        return random.randrange(_BEGIN, _END) * company.ticks

    def perhaps() -> int | None:
        return moment() if random.random() < 0.12 else None  # noqa: PLR2004

    def named(some: Sequence[str], others: Sequence[str], count: int) -> Iterator[tuple[int, str]]:
        every = [f"{first} {last}" for first in some for last in others]
        return enumerate(random.sample(every, count), 1)

    yield "categories", list(enumerate(_CATEGORIES, 1))
    prices = [pick(3, 90) * cents + random.randrange(cents) for _ in range(40)]
    things = named(_COLORS, _THINGS, 40)
    yield (
        "products",
        [(n, pick(1, 6), t, prices[n - 1], pick(0, 200), perhaps()) for n, t in things],
    )
    customers: list[Row] = []
    for n, name in named(_FIRST, _LAST, 70):
        ending = random.choices(("@mail.example", SHOP.test_accounts), (6, 1))[0]
        email = name.lower().replace(" ", ".") + ending
        customers.append((n, name, email, random.choice(_CITIES), moment(), perhaps()))
    yield "customers", customers
    codes = random.choices(list(company.codes.values()), (2, 3, 5, 1), k=420)
    yield "orders", [(n, pick(1, 66), code, moment(), perhaps()) for n, code in enumerate(codes, 1)]
    bought = [(order, pick(1, 37)) for order in range(1, 421) for _ in range(pick(1, 3))]
    lines = enumerate(bought, 1)
    yield "order_lines", [(n, o, p, pick(1, 9), prices[p - 1]) for n, (o, p) in lines]
    reasons = enumerate(random.choices(_REASONS, k=120), 1)
    yield "refunds", [(n, pick(1, 420), pick(2, 80) * cents, r, moment()) for n, r in reasons]
