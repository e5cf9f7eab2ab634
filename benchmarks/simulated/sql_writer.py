r"""A rule-based writer of SQL. It is not a language model.

    model = SimulatedSQLWriter(seed=42)

It reads messages only: the schema as `CREATE TABLE` statements, the question in the last human message,
and recalled notes. It understands questions that count rows or take the total, average, largest or
smallest of a column; of all rows, of those with a value or of a month, of those of a row in another table,
for each of these, for the highest few, or that ask which have none; and it writes a correct query for
each, as far as the schema tells. What no schema tells it does not know, and *declares* what it does instead:

=====================================  ============================================================
what it does not know                  what it does without a note
=====================================  ============================================================
the unit of a column                   takes the numbers as they are
that rows with `deleted_at` are gone   takes all rows
which accounts are no real ones        takes all rows
how a status is written                compares with the word of the question
that moments are numbers               compares them with days, as text
=====================================  ============================================================

A recalled note is heeded where it shows how, for the table or column that it names first, or for all
where it names none: in prose (`divide it by 100`, `leave out deleted rows`, `'T' stands for 'shipped'`), or
as the query of an attempt that succeeded; of one that failed only what was said of it is read. What a
note advises against is not done (`langgraft.benchmarks.simulated.notes`); where notes disagree the first
wins, and a wrong one is obeyed. Above temperature 0 it slips in `slips` of the questions: it
misspells a table, or forgets which rows were asked for. Slips are drawn by seed and question, whatever notes say.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from langchain_core.messages import BaseMessage, HumanMessage
from pydantic import Field
from typing_extensions import override

from langgraft._core.canonical import seeded_fraction
from langgraft.benchmarks.simulated.chat import AtALoss, Sampling, SimulatedChatModel
from langgraft.benchmarks.simulated.notes import split_notes, stances
from langgraft.memory.model import BLOCK_END, BLOCK_START, strip_block

_BLOCK: Final = re.compile(rf"{re.escape(BLOCK_START)}(.*?){re.escape(BLOCK_END)}", re.DOTALL)
_TABLE: Final = re.compile(r"CREATE TABLE (\w+) \((.*?)\);", re.DOTALL)
_COLUMN: Final = re.compile(r"\s*(\w+) \w+[^,]*?(?:REFERENCES (\w+)\(\w+\))?\s*(?:,|$)")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September"),
    *("October", "November", "December"),
)

Schema = Mapping[str, Mapping[str, str]]
"""Table → column → the table that it refers to, or nothing."""


class SimulatedSQLWriter(SimulatedChatModel):
    """Writes SQL for questions about a schema, and does as notes show where the schema is silent."""

    model_name: str = "simulated-sql-writer"
    slips: float = Field(default=0.05, ge=0, le=1)
    """How often it slips, above temperature 0."""

    @override
    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str:
        texts = [message.text for message in messages]
        asked_by = [message.text for message in messages if isinstance(message, HumanMessage)]
        question = strip_block(asked_by[-1]).strip() if asked_by else ""
        schema = read_schema(strip_block("\n".join(texts)))
        asked = _asked(question, schema)
        if asked is None:
            return AtALoss("I do not understand the question.")
        habits = read_habits("\n".join(_BLOCK.findall("\n".join(texts))), schema)
        draw = seeded_fraction("slip", sampling.seed, question)
        slips = sampling.sampled and draw < self.slips
        forgets = slips and draw < self.slips / 2 and (asked.value is not None or asked.month)
        if forgets:
            asked = replace(asked, other="", column="", value=None, month="")
        sql = _written(asked, schema, habits)
        if slips and not forgets:
            sql = sql.replace(f"FROM {asked.table}", f"FROM {asked.table.removesuffix('s')}")
        return f"```sql\n{sql}\n```"


def read_schema(text: str) -> Schema:
    """Read `CREATE TABLE` statements."""
    return {
        found[1]: {column[1]: column[2] or "" for column in _COLUMN.finditer(found[2])}
        for found in _TABLE.finditer(text)
    }


# What is asked ----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Asked:
    """A question, as far as its words and the schema tell."""

    table: str
    how: str = ""
    """How a column is summed up; empty: rows are counted."""
    measure: str = ""
    other: str = ""
    """The table that a row's value is to be looked up in; empty: its own."""
    column: str = ""
    value: str | None = None
    without: bool = False
    """Whether rows with the value are those that are not asked for."""
    moment: str = ""
    month: str = ""
    """As `2024-03`."""
    per: str = ""
    top: int = 0
    lacking: str = ""


_HOW: Final = {"total": "sum", "average": "avg", "largest": "max", "smallest": "min"}
_WHAT: Final = rf"(?:number|(?P<how>{'|'.join(_HOW)}) (?P<measure>[\w ]+?)(?: in \w+)?)"
_QUESTIONS: Final = tuple(
    re.compile(form)
    for form in (
        r"How many (?P<rows>.+) are there\?",
        rf"What is the {_WHAT} of all (?P<rows>.+)\?",
        rf"What is the {_WHAT} of (?P<rows>.+) for each of the (?P<per>[\w ]+) that have any\?",
        rf"Which (?P<top>\d+) (?P<per>[\w ]+) have the highest {_WHAT} of (?P<rows>.+)\?",
        r"Which (?P<lacking>[\w ]+) have no (?P<rows>.+)\?",
    )
)
_ROWS: Final = (
    r"(?P<table>{names})(?: (?P<moment>[a-z ]+) in (?P<month>{months}) (?P<year>\d{{4}}))?"
    r"(?: of (?P<other>{names}))?"
    r"(?: with (?P<which>the|another) (?P<column>\w+)(?: than)? '(?P<value>[^']*)')?"
)


def _asked(question: str, schema: Schema) -> _Asked | None:
    names = {table.replace("_", " "): table for table in schema}
    form = _ROWS.format(names="|".join(names) or "(?!)", months="|".join(_MONTHS))
    for pattern in _QUESTIONS:
        found = pattern.match(question)
        rows = found and re.fullmatch(form, found["rows"])
        if not (found and rows):
            continue
        part = found.groupdict()
        month = f"{rows['year']}-{_MONTHS.index(rows['month']) + 1:02}" if rows["month"] else ""
        asked = _Asked(
            table=names[rows["table"]],
            how=_HOW.get(part.get("how") or "", ""),
            measure=(part.get("measure") or "").replace(" ", "_"),
            other=names.get(rows["other"], ""),
            column=rows["column"] or "",
            value=rows["value"],
            without=rows["which"] == "another",
            moment=f"{(rows['moment'] or '').replace(' ', '_')}_at",
            month=month,
            per=names.get(part.get("per") or "", ""),
            top=int(part.get("top") or 0),
            lacking=names.get(part.get("lacking") or "", ""),
        )
        return asked if _answerable(asked, schema) else None
    return None


def _answerable(asked: _Asked, schema: Schema) -> bool:
    """Say whether a schema has the columns that a question is about, and the tables' links."""
    own = schema[asked.table]
    wanted = [asked.measure] * bool(asked.how) + [asked.moment] * bool(asked.month)
    named = asked.value is None or asked.column in schema[asked.other or asked.table]
    others = {asked.other, asked.per, asked.lacking} - {""}
    return named and own.keys() >= {*wanted} and others <= {*own.values()}


# What notes show --------------------------------------------------------------------------


@dataclass(slots=True)
class Habits:
    """What notes show of the rows of a database; `""` stands for all tables or columns.

    `None` is what a note advises against.
    """

    units: dict[str, str | None] = field(default_factory=dict)
    """Column → what turns a number into one of the unit asked for: `/ 100.0`."""
    deleted: dict[str, str | None] = field(default_factory=dict)
    """Table → what tells rows that are still there."""
    accounts: dict[str, str | None] = field(default_factory=dict)
    """Table → how addresses of accounts end that are no real ones; empty: it does not say."""
    codes: dict[str, str | None] = field(default_factory=dict)
    """Word for a status → how it is written."""
    moments: dict[str, str | None] = field(default_factory=dict)
    """Column → what turns seconds since 1970 into its unit; nothing, or ` * 1000`."""


_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+")
_OUT: Final = r"\b(?:leav\w+ out|exclud\w+|ignor\w+|drop\w*|filter\w* out) (?:\w+ ){0,2}?"
_PROSE: Final[Mapping[str, re.Pattern[str]]] = {
    "units": re.compile(
        r"\b(?:(?P<way>divid|multipl)\w+\b.*?\bby (?P<factor>\d+)|in cents)\b", re.IGNORECASE
    ),
    "deleted": re.compile(_OUT + r"deleted\b|\bdeleted_at IS NULL\b", re.IGNORECASE),
    "accounts": re.compile(_OUT + r"accounts\b", re.IGNORECASE),
    "codes": re.compile(
        r"'(?P<code>\w)' (?:stands for|means|is) '(?P<word>\w+)'"
        r"|'(?P<word2>\w+)' is (?:written|stored|coded)(?: as)? '(?P<code2>\w)'"
    ),
    "moments": re.compile(r"\b(?P<thousand>milli)?seconds since\b", re.IGNORECASE),
}
_ENDING: Final = re.compile(r"@[\w.]*\w")
_SUMMED: Final = re.compile(r"\w+\((?P<place>\w+\.\w+)\) (?P<how>[/*] \d+(?:\.0)?)")
_KEPT: Final = re.compile(r"(?P<table>\w+)\.deleted_at IS NULL")
_REAL: Final = re.compile(
    r"(?P<table>\w+)\.\w+ NOT (?:IN \(SELECT [^()]*)?LIKE '%(?P<ending>@[^']+)'"
)
_COUNTED: Final = re.compile(r"(?P<place>\w+\.\w+) >= [^<>]*?'%s'[^<>]*?INTEGER\)(?P<how> \* \d+)?")
_STATUS: Final = re.compile(r"\bstatus (?:=|<>) '(\w)'")
_STATUS_ASKED: Final = re.compile(r"\bstatus(?: than)? '(\w+)'")


def read_habits(notes: str, schema: Schema) -> Habits:
    """Read what notes show; the first that speaks of something decides on it."""
    habits = Habits()
    for note in split_notes(notes):
        lines = note.text.splitlines()
        if not note.attempt:
            _read_prose(note.text, schema, habits)
            continue
        actions = [line for line in lines if line.startswith("Action:")]
        if re.search(r"^Result: success", note.text, re.MULTILINE):
            _read_query(note.text, "\n".join(actions), habits)
        for line in lines:
            if line not in actions and not line.startswith("Task:"):
                _read_prose(line, schema, habits)
    return habits


def _read_prose(line: str, schema: Schema, habits: Habits) -> None:
    for sentence in _SENTENCE.split(line):
        for name, advised in stances(sentence.lower(), _PROSE).items():
            found = _PROSE[name].search(sentence)
            if found is None:
                continue
            scope = _scope(sentence, schema) or _scope(line, schema)
            part = found.groupdict()
            shown = ""
            if name == "units":
                way = "*" if part["way"] and part["way"].lower() == "multipl" else "/"
                shown = f"{way} {part['factor'] or 100}.0"
            elif name == "codes":
                scope, shown = part["word"] or part["word2"], part["code"] or part["code2"]
            elif name == "moments":
                shown = " * 1000" if part["thousand"] else ""
            else:
                scope = scope.partition(".")[0]
            if name == "accounts":
                ending = _ENDING.search(sentence) or _ENDING.search(line)
                shown = ending[0] if ending else ""
            held: dict[str, str | None] = getattr(habits, name)
            held.setdefault(scope, shown if advised else None)


def _scope(text: str, schema: Schema) -> str:
    """Return the table, or column of a table, that a text names first."""
    tables = "|".join(sorted(schema, key=len, reverse=True)) or "(?!)"
    found = re.search(rf"\b(?P<table>{tables})\b(?:\.(?P<column>\w+))?", text)
    if found is None:
        return ""
    column = found["column"] in schema[found["table"]]
    return found[0] if column else found["table"]


def _read_query(attempt: str, query: str, habits: Habits) -> None:
    """Read a query that was right."""
    for found in _SUMMED.finditer(query):
        habits.units.setdefault(found["place"], found["how"])
    for found in _KEPT.finditer(query):
        habits.deleted.setdefault(found["table"], "")
    for found in _REAL.finditer(query):
        habits.accounts.setdefault(found["table"], found["ending"])
    for found in _COUNTED.finditer(query):
        habits.moments.setdefault(found["place"], found["how"] or "")
    word, code = _STATUS_ASKED.search(attempt), _STATUS.search(query)
    if word and code:
        habits.codes.setdefault(word[1], code[1])


# What is written --------------------------------------------------------------------------


def _written(asked: _Asked, schema: Schema, habits: Habits) -> str:
    """Write the query."""
    table, value = asked.table, "count(*)"
    if asked.how:
        place = f"{table}.{asked.measure}"
        unit = _known(habits.units, place)
        value = f"{asked.how}({place})" + (f" {unit}" if unit else "")
    conditions = _asked_for(asked, habits) + _real(table, schema, habits)
    if asked.lacking:
        theirs = f"{table}.{_link(schema, table, asked.lacking)}"
        where = f" WHERE {' AND '.join(conditions)}" if conditions else ""
        inner = f"SELECT {theirs} FROM {table}{where}"  # noqa: S608
        real = [*_real(asked.lacking, schema, habits), f"{asked.lacking}.id NOT IN ({inner})"]
        return f"SELECT {asked.lacking}.name FROM {asked.lacking} WHERE {' AND '.join(real)}"  # noqa: S608
    found = f"FROM {table}"
    if other := asked.other or asked.per:
        found += f" JOIN {other} ON {other}.id = {table}.{_link(schema, table, other)}"
        conditions += _real(other, schema, habits)
    if conditions:
        found += f" WHERE {' AND '.join(conditions)}"
    if not asked.per:
        return f"SELECT {value} {found}"
    grouped = f"SELECT {asked.per}.name, {value} {found} GROUP BY {asked.per}.name"
    return grouped + (f" ORDER BY 2 DESC, 1 LIMIT {asked.top}" if asked.top else "")


def _asked_for(asked: _Asked, habits: Habits) -> list[str]:
    """Return the conditions that the question itself sets."""
    conditions = []
    if asked.value is not None:
        written = habits.codes.get(asked.value) if asked.column == "status" else None
        place = f"{asked.other or asked.table}.{asked.column}"
        conditions.append(f"{place} {'<>' if asked.without else '='} '{written or asked.value}'")
    if asked.month:
        year, month = map(int, asked.month.split("-"))
        days = f"{asked.month}-01", f"{year + month // 12}-{month % 12 + 1:02}-01"
        place = f"{asked.table}.{asked.moment}"
        unit = _known(habits.moments, place)
        first, last = (
            f"'{day}'" if unit is None else f"CAST(strftime('%s', '{day}') AS INTEGER){unit}"
            for day in days
        )
        conditions.append(f"{place} >= {first} AND {place} < {last}")
    return conditions


def _real(table: str, schema: Schema, habits: Habits) -> list[str]:
    """Return the conditions on rows of a table that notes show."""
    conditions = []
    if "deleted_at" in schema[table] and _known(habits.deleted, table) is not None:
        conditions.append(f"{table}.deleted_at IS NULL")
    ending = _known(habits.accounts, table)
    owner = next((name for name, columns in schema.items() if "email" in columns), "")
    if ending and table == owner:
        conditions.append(f"{table}.email NOT LIKE '%{ending}'")
    elif ending and owner in schema[table].values():
        whose = f"SELECT {owner}.id FROM {owner} WHERE {owner}.email LIKE '%{ending}'"  # noqa: S608
        conditions.append(f"{table}.{_link(schema, table, owner)} NOT IN ({whose})")
    return conditions


def _known(shown: Mapping[str, str | None], place: str) -> str | None:
    """Return what is shown of a column or table, or else of its table, or else of all."""
    keys = (place, place.partition(".")[0], "")
    return next((shown[key] for key in keys if key in shown), None)


def _link(schema: Schema, table: str, other: str) -> str:
    return next(column for column, target in schema[table].items() if target == other)
