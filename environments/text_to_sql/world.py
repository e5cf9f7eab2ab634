"""Questions about a real SQLite database, answered in SQL; what its schema does not tell is there to be learned.

    shop = TextToSQL(SHOP, seed=0)
    task = shop.tasks("train")[0]
    task.question                          # How many orders with the status 'shipped' are there?
    shop.score(task, "SELECT count(*) FROM orders")  # 1.0 where the rows are the right ones, else 0.0

The schema is all that an agent is shown. What a company takes for granted stands in no schema (`Company`):
amounts are in cents, moments are numbers, statuses are letters, rows with `deleted_at` and those of test
accounts do not count. Gold queries respect it. Tasks are made by walking the schema as the database itself
tells it (tables, columns, types, foreign keys, values of columns that have few).

Feedback that an agent is entitled to is of two kinds, and neither holds a gold query or a gold result:

* what the database says of a query: its rows, or its error;
* on tasks for training alone, a reviewer's remarks (`review`): which of the company's conventions a query
  disregards. A remark is a general rule; for tasks of the test split there is none.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from functools import cached_property
from itertools import combinations
from random import Random
from typing import Final, Literal, TypeAlias, get_args

from langgraft._core.errors import InputError
from langgraft.environments.text_to_sql.company import (
    Company,
    CompanyDatabase,
    Table,
    same_rows,
)

Split: TypeAlias = Literal["train", "test"]

EACH: Final = 40
"""Most tasks of a kind, half of them for training."""


@dataclass(frozen=True, slots=True)
class Remark:
    """A convention that a query disregards, as a reviewer puts it; it tells a rule, and no result.

    `table` is the one it is about.
    """

    table: str
    wrong: str
    """What is wrong with a query that disregards it."""
    right: str
    """What to do instead."""


@dataclass(frozen=True, slots=True)
class SQLTask:
    """A question about a database. `question` is in words, of a `kind`, in a `split`."""

    id: str
    """`<company>/<kind>/<number>`."""
    split: Split
    kind: str
    question: str
    gold: str
    """A query that answers it. It is for grading: no agent is shown it."""
    ordered: bool
    """Whether the question asks for an order of the rows."""


@dataclass(frozen=True, slots=True)
class _Ask:
    """What is asked, apart from words and conventions."""

    kind: str
    table: str
    measure: str = ""
    """The column that is added up; empty: rows are counted."""
    how: str = "total"
    where: tuple[str, str, str] | None = None
    """Table, column and value, of the table itself or of one that it refers to."""
    negated: bool = False
    period: tuple[str, str] | None = None
    """Column, and month as `2024-03`."""
    per: str = ""
    """The table whose names the result is grouped by."""
    top: int = 0
    lacking: str = ""
    """The table whose names are wanted that no row of `table` refers to."""


_HOW: Final = {"total": "sum", "average": "avg", "largest": "max", "smallest": "min"}


class _Writing:
    """Writes the query of what is asked, and notes which conventions that takes.

    Args:
        company: Whose conventions they are.
        tables: The schema.
        disregarded: Conventions to write it without, as one who knows the schema alone would.
    """

    def __init__(
        self, company: Company, tables: Mapping[str, Table], disregarded: Collection[Remark] = ()
    ) -> None:
        self.company, self.tables, self._disregarded = company, tables, disregarded
        self.used: dict[Remark, None] = {}

    def _respects(self, table: str, wrong: str, right: str) -> bool:
        convention = Remark(table, wrong, right)
        self.used[convention] = None
        return convention not in self._disregarded

    def query(self, ask: _Ask) -> str:
        """Return the query."""
        if ask.lacking:
            return self._lacking(ask)
        value = self._measured(ask)
        other = ask.per or (ask.where[0] if ask.where and ask.where[0] != ask.table else "")
        joined = f" JOIN {other} ON {self._link(ask.table, other)}" if other else ""
        conditions = self._conditions(ask) + (self._counting(other) if other else [])
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        found = f"FROM {ask.table}{joined}{where}"
        if not ask.per:
            return f"SELECT {value} {found}"
        grouped = f"SELECT {other}.name, {value} AS result {found} GROUP BY {other}.id"
        ordered = f" ORDER BY result DESC, {other}.name LIMIT {ask.top}"
        return grouped + ordered if ask.top else grouped

    def _lacking(self, ask: _Ask) -> str:
        link = self._link(ask.table, ask.lacking)
        inner = " AND ".join([link, *self._conditions(ask)])
        absent = f"NOT EXISTS (SELECT 1 FROM {ask.table} WHERE {inner})"  # noqa: S608
        where = " AND ".join([*self._counting(ask.lacking), absent])
        return f"SELECT {ask.lacking}.name FROM {ask.lacking} WHERE {where}"  # noqa: S608

    def _link(self, table: str, other: str) -> str:
        columns = self.tables[table].references.items()
        column = next(column for column, target in columns if target == other)
        return f"{table}.{column} = {other}.id"

    def _measured(self, ask: _Ask) -> str:
        if not ask.measure:
            return "count(*)"
        place = f"{ask.table}.{ask.measure}"
        value = f"{_HOW[ask.how]}({place})"
        factor, kind = _unit(self.company, ask.measure)
        if factor == 1:
            return value
        wrong, right = {
            "euros": ("is not in euros", f"is in cents: divide it by {factor} to get euros"),
            "pieces": ("is not in pieces", f"counts boxes: multiply it by {factor} to get pieces"),
        }[kind]
        if not self._respects(ask.table, f"{place} {wrong}", f"{place} {right}."):
            return value
        return f"{value} / {factor}.0" if kind == "euros" else f"{value} * {factor}"

    def _conditions(self, ask: _Ask) -> list[str]:
        conditions = []
        if ask.where:
            table, column, value = ask.where
            conditions.append(
                f"{table}.{column} {'<>' if ask.negated else '='} '{self._coded(table, column, value)}'"
            )
        if ask.period:
            conditions.append(self._within(ask.table, *ask.period))
        return conditions + self._counting(ask.table)

    def _coded(self, table: str, column: str, value: str) -> str:
        if column != "status":
            return value
        code = self.company.codes[value]
        right = f"In {table}.status, '{code}' stands for '{value}'."
        return code if self._respects(table, f"{table}.status is never '{value}'", right) else value

    def _within(self, table: str, column: str, month: str) -> str:
        place, days = f"{table}.{column}", (f"{month}-01", f"{_after(month)}-01")
        unit = "seconds" if self.company.ticks == 1 else "milliseconds"
        scale = "" if self.company.ticks == 1 else f" * {self.company.ticks}"
        right = (
            f"{place} counts {unit} since 1970, UTC: compare it with strftime('%s', day){scale}."
        )
        if not self._respects(table, f"{place} is no text that days can be compared with", right):
            return f"{place} >= '{days[0]}' AND {place} < '{days[1]}'"
        first, last = (f"CAST(strftime('%s', '{day}') AS INTEGER){scale}" for day in days)
        return f"{place} >= {first} AND {place} < {last}"

    def _counting(self, table: str) -> list[str]:
        """Return the conditions on rows of a table that count."""
        conditions = []
        if self.company.deleted_out and "deleted_at" in self.tables[table].columns:
            right = (
                f"Leave out deleted rows of {table}: keep those where {table}.deleted_at IS NULL."
            )
            if self._respects(table, f"deleted rows of {table} are in the result", right):
                conditions.append(f"{table}.deleted_at IS NULL")
        ending = self.company.test_accounts
        owner = next((c for c, t in self.tables[table].references.items() if t == "customers"), "")
        if ending and (owner or table == "customers"):
            whose = (
                f"orders whose {table}.{owner} is one of them" if owner else "they are customers"
            )
            right = f"Leave out test accounts in {table}: their customers.email ends in {ending}; {whose}."
            if self._respects(table, f"test accounts are in the result of {table}", right):
                like = f"LIKE '%{ending}'"
                accounts = f"(SELECT customers.id FROM customers WHERE customers.email {like})"  # noqa: S608
                theirs = f"{table}.{owner} NOT IN {accounts}" if owner else ""
                conditions.append(theirs or f"customers.email NOT {like}")
        return conditions


def _unit(company: Company, column: str) -> tuple[int, str]:
    """Return how many units of a column are one of the unit that is asked for, or its parts, and that."""
    if column.endswith(("price", "amount")):
        return company.cents, "euros"
    return (company.pieces, "pieces") if column == "quantity" else (1, "")


def _after(month: str) -> str:
    year, number = map(int, month.split("-"))
    return f"{year + number // 12}-{number % 12 + 1:02}"


def _words(name: str) -> str:
    return name.replace("_", " ")


def _question(ask: _Ask, company: Company) -> str:
    rows = f"{_words(ask.table)}{_restricted(ask)}"
    if ask.lacking:
        return f"Which {_words(ask.lacking)} have no {rows}? Give their names."
    unit = _unit(company, ask.measure)[1] if ask.measure else ""
    measured = f"{ask.how} {_words(ask.measure)}{f' in {unit}' if unit else ''}"
    if not ask.per:
        counted = f"How many {rows} are there?"
        return f"What is the {measured} of all {rows}?" if ask.measure else counted
    what = f"{measured} of {rows}" if ask.measure else f"number of {rows}"
    if not ask.top:
        return f"What is the {what} for each of the {_words(ask.per)} that have any? Give name and result."
    order = "Give name and result, the highest first, and equal ones by name."
    return f"Which {ask.top} {_words(ask.per)} have the highest {what}? {order}"


def _restricted(ask: _Ask) -> str:
    said = ""
    if ask.period:
        column, month = ask.period
        day = datetime.strptime(month, "%Y-%m").replace(tzinfo=UTC)
        said += f" {_words(column.removesuffix('_at'))} in {day:%B %Y}"
    if ask.where:
        table, column, value = ask.where
        of = "" if table == ask.table else f" of {_words(table)}"
        said += of + (f" with another {column} than" if ask.negated else f" with the {column}")
        said += f" '{value}'"
    return said


class TextToSQL(CompanyDatabase):
    """A company's database, questions about it, and what judges queries.

    Args:
        company: Whose database it is.
        seed: Decides its rows, and which questions are asked.
    """

    def tasks(self, split: Split) -> tuple[SQLTask, ...]:
        """Return the tasks of a split, kind by kind; no question is in both.

        Raises:
            InputError: There is no such split.
        """
        if split not in get_args(Split):
            msg = f"no split {split!r:.80}; there are {', '.join(get_args(Split))}"
            raise InputError(msg)
        return tuple(task for task, _ in self._made.values() if task.split == split)

    def score(self, task: SQLTask, sql: str) -> float:
        """Return 1 where the rows of a query are those asked for, in order where one is asked for, else 0.

        Rows are a multiset, names of columns do not matter, their order does; numbers are equal
        within `TOLERANCE`.
        """
        return self.grade(task, sql)[0]

    def grade(self, task: SQLTask, sql: str) -> tuple[float, str]:
        """Score a query, and say why: with the database's own error where there is one."""
        answer = self.query(sql)
        if answer.error:
            return 0.0, answer.error
        right = same_rows(answer.rows, self.query(task.gold).rows, ordered=task.ordered)
        return (1.0, "the right rows") if right else (0.0, "other rows than those asked for")

    def review(self, task_id: str, sql: str) -> tuple[Remark, ...]:
        """Return the conventions that a query for a training task disregards, as far as can be told.

        That is told by results: the fewest conventions without which the gold query has the query's
        rows. Nothing is said of a query that fails or is wrong for another reason, nor on tasks of
        the test split.

        Raises:
            InputError: There is no such task.
        """
        if task_id not in self._made:
            msg = f"no task {task_id!r:.80} at {self.company.name}"
            raise InputError(msg)
        task, ask = self._made[task_id]
        answer = self.query(sql)
        if task.split == "test" or answer.error or self.score(task, sql):
            return ()
        writing = _Writing(self.company, self.tables)
        writing.query(ask)
        for count in range(1, len(writing.used) + 1):
            for some in combinations(writing.used, count):
                without = self.query(_Writing(self.company, self.tables, some).query(ask))
                if same_rows(answer.rows, without.rows, ordered=task.ordered):
                    return some
        return ()

    @cached_property
    def _made(self) -> Mapping[str, tuple[SQLTask, _Ask]]:
        made: dict[str, tuple[SQLTask, _Ask]] = {}
        kinds: dict[str, list[_Ask]] = {}
        for ask in _asks(self.tables):
            kinds.setdefault(ask.kind, []).append(ask)
        for kind, asks in kinds.items():
            Random(f"{self.company.name}/{self.seed}/{kind}").shuffle(asks)  # noqa: S311
            number = 0
            for ask in asks:
                gold = _Writing(self.company, self.tables).query(ask)
                rows = self.query(gold).rows
                # A query that finds nothing would be right for the wrong reason.
                if number == EACH or not rows or rows[0] in {(0,), (None,)}:
                    continue
                name = f"{self.company.name}/{kind}/{number}"
                split: Split = "test" if number % 2 else "train"
                question = _question(ask, self.company)
                made[name] = SQLTask(name, split, kind, question, gold, ask.top > 0), ask
                number += 1
        return made


_MONTHS: Final = tuple(f"{year}-{month:02}" for year in (2023, 2024) for month in range(1, 13))


def _asks(tables: Mapping[str, Table]) -> Iterator[_Ask]:
    """Walk the schema: tables, columns, months, tables referred to; no question comes twice."""
    for table in tables.values():
        name = table.name
        own = [(name, column, value) for column, all_ in table.values.items() for value in all_]
        measures = [(number, how) for number in table.numbers for how in _HOW]
        periods = [(column, month) for column in table.moments for month in _MONTHS]
        yield _Ask("count", name)
        yield from (_Ask("count", name, where=each) for each in own)
        yield from (_Ask("negation", name, where=each, negated=True) for each in own)
        yield from (_Ask("date", name, period=each) for each in periods)
        for number, how in measures:
            amount = _Ask("aggregate", name, number, how)
            yield from (amount, *(replace(amount, where=each) for each in own))
            yield from (replace(amount, kind="date", period=each) for each in periods)
        for other in map(tables.__getitem__, table.references.values()):
            theirs = [(other.name, c, value) for c, all_ in other.values.items() for value in all_]
            for each in theirs:
                yield _Ask("join", name, where=each)
                yield from (_Ask("join", name, *measure, where=each) for measure in measures)
            if "name" not in other.columns:
                continue
            yield from (_Ask("negation", name, period=p, lacking=other.name) for p in periods)
            yield _Ask("negation", name, lacking=other.name)
            for grouped in (
                *(_Ask("group", name, period=p, per=other.name) for p in (None, *periods)),
                *(_Ask("group", name, *measure, per=other.name) for measure in measures),
            ):
                yield grouped
                yield from (replace(grouped, kind="top", top=n) for n in (2, 3, 4, 5))
