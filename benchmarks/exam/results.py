"""The table of an exam: for a terminal, as Markdown, as CSV and as a page."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from langgraft.benchmarks.comparison.estimates import Estimate, proportion
from langgraft.benchmarks.exam.histories import KINDS, QUESTIONS
from langgraft.benchmarks.exam.sitting import BUDGET, Marks
from langgraft.benchmarks.reporting.pages import check_extra, environment, write_folder
from langgraft.benchmarks.reporting.tables import Field, Meanings, Number, Table
from langgraft.benchmarks.reporting.words import number

HEADINGS: Final = ("memory", "all", *KINDS, "stale", "tokens", "reused", "asks for")
"""Columns of the table that is read."""

_SHARE: Final = Number(
    "share", ("value", "low", "high"), lambda found: (found.value, found.low, found.high)
)
MEANINGS: Final = Meanings(
    {
        "memory": "the memory, or a reference",
        "kind": "what was asked for; all: of whatever kind",
        "right": "questions answered right",
        "asked": "questions",
        "share": "share of questions answered right",
        "chance": "what `shuffled` scores in the mean over all other subjects",
        "stale": "questions of kind staleness that a superseded value was given to",
        "tokens": "tokens of a recalled block, in the mean",
        "reused": "share of block and question that begins as at the question before, in the mean",
        "needs": "what a model has to give the memory with an episode",
    },
    {
        "value": "the share",
        "low": "lower end of Wilson's interval of 95 %",
        "high": "its upper end",
    },
)


def rows(marks: Sequence[Marks]) -> Iterator[tuple[str, ...]]:
    """Return the table, row by row, under `HEADINGS`; shares in percent."""
    for each in marks:
        found = proportion(*each.of(None))
        yield (
            each.name,
            f"{_percent(*each.of(None))} [{_ends(found)}]",
            *(_percent(*each.of(kind)) for kind in KINDS),
            _percent(*each.stale),
            number(each.tokens, 0),
            number(each.reused, 0, scale=100),
            ", ".join(each.needs) or number(None),
        )
        if each.chance:
            shares = [share for _, share in each.chance]
            overall = number(sum(shares) / len(shares), 0, scale=100)
            told = [number(share, 0, scale=100) for share in shares]
            yield ("*chance*", overall, *told, "", "", "", "")


def _percent(right: int, asked: int) -> str:
    return number(right / asked, 0, scale=100)


def _ends(found: Estimate) -> str:
    return f"{number(found.low, 0, scale=100)}, {number(found.high, 0, scale=100)}"


def markdown(marks: Sequence[Marks]) -> str:
    """Return the table as Markdown, its columns aligned."""
    cells = [HEADINGS, *rows(marks)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    words = {0, len(HEADINGS) - 1}
    rule = [
        "-" * width if at in words else "-" * (width - 1) + ":" for at, width in enumerate(widths)
    ]
    lines = [
        [
            cell.ljust(width) if at in words else cell.rjust(width)
            for at, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        for line in cells
    ]
    return "".join(f"| {' | '.join(line)} |\n" for line in (lines[0], rule, *lines[1:]))


def tables(marks: Sequence[Marks]) -> tuple[Table, ...]:
    """Return all numbers, tidy."""
    shares: list[Sequence[object]] = []
    for each in marks:
        chance = {str(kind): share for kind, share in each.chance}
        for kind in (None, *KINDS):
            right, asked = each.of(kind)
            row = (each.name, kind or "all", right, asked, proportion(right, asked))
            shares.append((*row, chance.get(str(kind))))
    costs: list[Sequence[Field]] = [
        (each.name, each.stale[0], each.tokens, each.reused, " ".join(each.needs)) for each in marks
    ]
    columns = ("memory", "kind", "right", "asked", _SHARE, "chance")
    found = (
        Table.of("exam", columns, shares),
        Table.of("costs", ("memory", "stale", "tokens", "reused", "needs"), costs),
    )
    return (*found, MEANINGS.table(found))


def write_report(out: Path, marks: Sequence[Marks]) -> Path:
    """Write page and tables to a folder; return the page.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
        RunDirectoryError: A file cannot be written.
    """
    check_extra()
    page = (
        environment(__package__)
        .get_template("exam.html.jinja")
        .render(
            title="Memory exam",
            headings=HEADINGS,
            rows=list(rows(marks)),
            budget=BUDGET,
            histories=len({answer.history for each in marks for answer in each.answers}),
            questions=QUESTIONS,
        )
    )
    return write_folder(out, tables=tables(marks), figures={}, page=page)
