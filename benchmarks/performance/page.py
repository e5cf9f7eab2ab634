"""The page of `langgraft bench`: a table a section, growth curves, who is ahead, and why not where we are not.

<out>/index.html     the page
<out>/figures.md     the same figures as Markdown
<out>/bench.json     every figure that was taken, and the machine
<out>/tables/*.csv   a table a section, and that of who is ahead
<out>/figures/*.svg  growth curves
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from itertools import cycle
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from langgraft._core.files import atomic_write
from langgraft.benchmarks.performance.searching import Row, Section
from langgraft.benchmarks.performance.timing import Spread
from langgraft.benchmarks.reporting.drawing import GRAY, PALETTE, chart, svg_text
from langgraft.benchmarks.reporting.pages import environment, trusted, write_folder
from langgraft.benchmarks.reporting.tables import Meanings, Table
from langgraft.benchmarks.reporting.words import DASH, TIMES, number

Verdict: TypeAlias = Literal["ahead", "level", "behind"]


@dataclass(frozen=True, slots=True)
class Comparison:
    """One of ours beside one peer, at one size."""

    section: Section
    ours: Row
    peer: Row
    ratio: Spread
    """Ours over the peer's, question by question: above 1 we are slower or larger."""
    verdict: Verdict
    """`level`: 1 lies between the quartiles."""
    why: str
    """Where we are behind."""


def comparisons(section: Section) -> Iterator[Comparison]:
    """Compare each of ours with every peer at its size.

    Of what writes, only with those that keep as much: in memory, or on disk.
    """
    for ours in section.rows:
        for peer in section.rows:
            if (ours.who, peer.who) != ("langgraft", "peer") or ours.size != peer.size:
                continue
            if ours.durable != peer.durable and not section.name.startswith(_READING):
                continue
            ratio = _ratio(ours, peer)
            verdict: Verdict = "level"
            if ratio.high < 1 or ratio.low > 1:
                verdict = "ahead" if ratio.high < 1 else "behind"
            why = _why(section, ours, peer) if verdict == "behind" else ""
            yield Comparison(section, ours, peer, ratio, verdict, why)


_READING: Final = ("recall", "open")


def _ratio(ours: Row, peer: Row) -> Spread:
    """Return ours over another's, figure by figure: of wall time where one of them is a server."""
    wall = ours.server or peer.server
    mine, theirs = (each.times.wall if wall else each.times.cpu for each in (ours, peer))
    return Spread.of([a / max(b, _LEAST) for a, b in zip(mine, theirs, strict=False)])


_LEAST: Final = 1e-6

_CHECKS: Final = (
    "Each value is checked to come back from JSON as it was before anything is written, and the same"
    " transaction notes what changed, so that indexes of other processes read that alone."
)
_ANNOUNCED: Final = (
    "The records lie in the peer itself, whose own write is most of ours. Beside that it is announced to"
    " every index before and after, so that no search misses what another thread or task wrote, or what"
    " was cancelled half way; the peer by itself has no index by words to keep."
)
_FETCHED: Final = (
    "Ranking is a part of it: whole records are then fetched from the database, and it is asked first"
    " what other processes wrote. The peer looks at its own file or memory alone."
)
_CHROMA: Final = (
    "Chroma's own calls take most of it: the same index over a SQLite file, or in memory, stands beside"
    " it. Where that counts, keep the bank in a SQLite file."
)
_OPENED: Final = (
    "The saved index is held against its checksum and against what was written since, so that damage and"
    " other writers are noticed: all of it is read once, which the peer does not do."
)
_NOT_EXACT: Final = (
    "The peer's index is approximate (HNSW), and misses of the best ten what its column says; ours"
    " looks at every vector."
)
_ONE_SCAN: Final = (
    "The peer scans its vectors within the database and returns rows; ours ranks by one matrix product"
    " and then fetches whole records, which is the larger part while records are few."
)
_NO_RECORDS: Final = (
    "The peer holds no records: ours has all of them as Python objects beside the index."
)
_HELD: Final = "The index is held in memory, where searches are answered; the peer reads it from disk for each."
_TURN: Final = (
    "A fixed cost, however many records: what is recalled becomes a block within a budget with a receipt,"
    " and the turn is filed as an episode in one step. The peer's twelve lines show and put a text."
)
_WHY: Final[Sequence[tuple[str, str, str, str]]] = (
    ("write", "InMemoryStore", "", _ANNOUNCED),
    ("write", "SQLite file", "", _CHECKS),
    ("write", "Chroma", "", _CHROMA),
    ("found", "Chroma", "", _CHROMA),
    ("found", "", "", _FETCHED),
    ("recall-vectors", "", "raw Chroma", _NOT_EXACT),
    ("recall-vectors", "", "sqlite-vec", _ONE_SCAN),
    ("recall", "Chroma", "", _CHROMA),
    ("recall", "", "", _FETCHED),
    ("open", "Chroma", "", _CHROMA),
    ("open", "", "", _OPENED),
    ("memory", "", "bm25s", _NO_RECORDS),
    ("memory", "Chroma", "", _CHROMA),
    ("memory", "", "", _HELD),
    ("turn", "", "", _TURN),
    ("imports", "", "", "What it stands on is imported with it: LangGraph and LangChain."),
)
"""Section, a part of our name, a part of the peer's, and why ours is behind; the first that fits counts."""

UNEXPLAINED: Final = "Not explained yet."


def _why(section: Section, ours: Row, peer: Row) -> str:
    for name, mine, theirs, why in _WHY:
        if section.name.startswith(name) and mine in ours.name and theirs in peer.name:
            return why
    return UNEXPLAINED


# Tables ---------------------------------------------------------------------------------------

_COLUMNS: Final = {
    "name": "what was measured",
    "who": "langgraft, a peer, or the floor",
    "records": "records of the memory, or what else the size is",
    "median": "median over the questions, in the unit of the section: of CPU time, where it is a time",
    "low": "lower quartile",
    "high": "upper quartile",
    "n": "figures it rests on",
    "wall": "median of the wall time, in ms",
    "over_floor": "median over that of the floor at this size",
    "durable": "whether what was written is on disk when the write returns",
    "exact": "whether a search looks at everything",
    "agreement": "share of the floor's best ten that it found",
    "section": "section of the page",
    "ours": "one of ours",
    "peer": "the peer it is compared with",
    "ratio": "ours over the peer's, paired by question: the median",
    "ratio_low": "its lower quartile",
    "ratio_high": "its upper quartile",
    "verdict": "ahead or behind: both quartiles say so; else level",
    "why": "why ours is behind",
}


def _table(section: Section) -> Table:
    columns = ("name", "who", "records", "median", "low", "high", "n", "wall", "over_floor")
    rows = []
    for row in section.rows:
        found = Spread.of(row.times.cpu)
        wall = Spread.of(row.times.wall).median
        numbers = (found.median, found.low, found.high, found.n, wall, over_floor(section, row))
        rows.append((row.name, row.who, row.size, *numbers, row.durable, row.exact, row.agreement))
    return Table.of(section.name, (*columns, "durable", "exact", "agreement"), rows)


def over_floor(section: Section, row: Row) -> float | None:
    """Return the median over that of the floor beside it: at its size, the last before it in the table."""
    if row.who == "floor":
        return None
    before = section.rows[: section.rows.index(row)]
    floors = [each for each in before if each.who == "floor" and each.size == row.size]
    if not floors:
        return None
    floor = Spread.of(floors[-1].times.cpu).median
    return Spread.of(row.times.cpu).median / max(floor, _LEAST)


def _ahead_table(found: Sequence[Comparison]) -> Table:
    columns = ("section", "ours", "peer", "records", "ratio", "ratio_low", "ratio_high", "n")
    rows = [
        (
            *(each.section.name, each.ours.name, each.peer.name, each.ours.size),
            *(each.ratio.median, each.ratio.low, each.ratio.high, each.ratio.n),
            *(each.verdict, each.why),
        )
        for each in found
    ]
    return Table.of("ahead", (*columns, "verdict", "why"), rows)


# The page -------------------------------------------------------------------------------------


def write_page(
    out: Path, done: Sequence[Section], machine: Mapping[str, str], sizes: Sequence[int]
) -> Path:
    """Write the page and all that belongs to it, and return where it is.

    Args:
        out: A folder, made where it is missing.
        done: What was measured.
        machine: What it was measured on.
        sizes: Records that were asked for.

    Raises:
        RunDirectoryError: A file cannot be written.
        MissingExtraError: The extra `bench` is not installed.
    """
    found = [each for section in done for each in comparisons(section)]
    tables = [*map(_table, done), _ahead_table(found)]
    tables.append(Meanings(_COLUMNS).table(tables))
    figures = dict(_figures(done))
    template = environment("langgraft.benchmarks.performance").get_template("bench.html.jinja")
    page = template.render(
        title="langgraft beside its peers",
        sections=[_shown(section, found) for section in done],
        machine=list(machine.items()),
        sizes=sizes,
        tally=tally(found),
        figures={name: trusted(svg) for name, svg in figures.items()},
    )
    where = write_folder(out, tables=tables, figures=figures, page=page)
    atomic_write(out / "figures.md", markdown(done, machine).encode())
    told = {
        "machine": dict(machine),
        "sizes": list(sizes),
        "sections": [asdict(each) for each in done],
    }
    atomic_write(out / "bench.json", (json.dumps(told, indent=1) + "\n").encode())
    return where


def tally(found: Sequence[Comparison]) -> dict[str, int]:
    """Count in how many comparisons ours is ahead, level and behind."""
    return {
        name: sum(each.verdict == name for each in found) for name in ("ahead", "level", "behind")
    }


def _shown(section: Section, found: Sequence[Comparison]) -> dict[str, Any]:
    sizes = list(dict.fromkeys(row.size for row in section.rows))
    names = list(dict.fromkeys(row.name for row in section.rows))
    cells = {(row.name, row.size): row for row in section.rows}
    lines = []
    for name in names:
        first = next(row for row in section.rows if row.name == name)
        line = [_cell(section, cells.get((name, size))) for size in sizes]
        lines.append({"name": name, "who": first.who, "notes": notes(first), "cells": line})
    own = [each for each in found if each.section is section]
    pairs = list(dict.fromkeys((each.ours.name, each.peer.name) for each in own))
    by_size = {(each.ours.name, each.peer.name, each.ours.size): each for each in own}
    beside = [
        {"ours": ours, "peer": peer, "cells": [by_size.get((ours, peer, size)) for size in sizes]}
        for ours, peer in pairs
    ]
    behind: dict[tuple[str, str], list[str]] = {}
    for each in own:
        if each.verdict == "behind":
            told = "" if each.ours.size is None else f"{each.ours.size:,}"
            behind.setdefault((f"{each.ours.name} behind {each.peer.name}", each.why), []).append(
                told
            )
    return {
        "section": section,
        "sizes": sizes,
        "lines": lines,
        "beside": beside,
        "behind": [(who, ", ".join(filter(None, at)), why) for (who, why), at in behind.items()],
    }


def notes(row: Row) -> str:
    """Say what has to be known of a row to compare it."""
    said = []
    if row.durable is not None:
        said.append("durable" if row.durable else "not durable")
    if row.exact is not None and row.agreement is not None:
        said.append("exact" if row.exact else "approximate")
    if row.server:
        said.append("a server, compared by wall time")
    return ", ".join(said)


def _cell(section: Section, row: Row | None) -> dict[str, Any] | None:
    if row is None:
        return None
    found, ratio = Spread.of(row.times.cpu), over_floor(section, row)
    return {
        "value": figure(found.median),
        "range": f"{figure(found.low)} to {figure(found.high)}, n = {found.n}"
        if found.n > 1
        else "",
        "floor": "" if ratio is None else f"{figure(ratio)}{TIMES} the floor",
        "found": None if row.agreement is None else f"{row.agreement:.0%} of the best ten",
    }


def figure(value: float) -> str:
    """Write a number with three digits that count."""
    size = abs(value)
    return number(value, 0 if size >= 100 else 1 if size >= 10 else 2 if size >= 1 else 3)  # noqa: PLR2004


# Markdown and drawing -------------------------------------------------------------------------


def markdown(done: Sequence[Section], machine: Mapping[str, str]) -> str:
    """Write all figures as Markdown: a table a section, and what we are behind in."""
    named = ", ".join(f"{name} {value}" for name, value in machine.items())
    lines = [f"{named}.", ""]
    for section in done:
        sizes = list(dict.fromkeys(row.size for row in section.rows))
        shown = _shown(section, list(comparisons(section)))
        lines += [f"### {section.title} ({section.unit})", "", section.method, ""]
        heads = ["" if size is None else f"{size:,}" for size in sizes]
        lines += [_line(["", *heads]), _line(["---"] * (1 + len(sizes)))]
        for each in shown["lines"]:
            cells = [_brief(cell) for cell in each["cells"]]
            told = f" ({each['notes']})" if each["notes"] else ""
            lines.append(_line([f"{each['name']}{told}", *cells]))
        lines.append("")
        lines += [f"* Not measured: {name}: {why}." for name, why in section.missing.items()]
        lines += [f"* {who}{f' at {at}' if at else ''}: {why}" for who, at, why in shown["behind"]]
        lines.append("")
    return "\n".join(lines)


def _brief(cell: Mapping[str, Any] | None) -> str:
    if cell is None:
        return DASH
    return f"{cell['value']}{' (' + cell['floor'].removesuffix(' the floor') + ')' if cell['floor'] else ''}"


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _figures(done: Sequence[Section]) -> Iterator[tuple[str, str]]:
    for section in done:
        if len({row.size for row in section.rows}) > 1:
            name = f"growth-{section.name}"
            yield name, svg_text(name, partial(_growth, section))


def _growth(section: Section) -> Any:
    """Draw how everybody grows with the records, both axes by powers of ten."""
    names = list(dict.fromkeys(row.name for row in section.rows))
    figure, axes = chart(3.6)
    colors = cycle(PALETTE)
    for name in names:
        rows = sorted(
            (row for row in section.rows if row.name == name), key=lambda row: row.size or 0
        )
        who = rows[0].who
        style: Any = {"langgraft": {"lw": 2.4}, "peer": {"lw": 1.2, "ls": "--"}}.get(
            who, {"lw": 1.4}
        )
        color = GRAY if who == "floor" else next(colors)
        medians = [max(Spread.of(row.times.cpu).median, _LEAST) for row in rows]
        axes.plot(
            [row.size or 0 for row in rows],
            medians,
            color=color,
            marker="o",
            ms=4,
            label=name,
            **style,
        )
    axes.set_xscale("log")
    axes.set_yscale("log")
    for axis in (axes.xaxis, axes.yaxis):  # the default writes powers as formulas
        axis.set_major_formatter(lambda value, _: f"{value:,g}")
        axis.set_minor_formatter(lambda *_: "")
    axes.set_xlabel("size")
    axes.set_ylabel(section.unit)
    axes.grid(axis="y")
    figure.legend(loc="outside right upper", fontsize=8)
    return figure
