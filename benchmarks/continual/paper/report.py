"""One page over all pairs of a study, environments side by side, published beside ours.

    <out>/index.html        the page
    <out>/tables/*.csv      its tables, the paper's numbers in columns of their own
    <out>/figures/*.svg     its figures
    <out>/<pair>/           the report of each pair, written elsewhere

No metric is computed here: the analyses of the pairs have them all.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from langgraft.benchmarks.comparison.estimates import Estimate
from langgraft.benchmarks.comparison.outcomes import Scores, differences_of, in_common
from langgraft.benchmarks.comparison.verdicts import CONFIDENCE, holm
from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.cells import CellKey
from langgraft.benchmarks.continual.columns import MEANINGS
from langgraft.benchmarks.continual.mechanisms import explain_transfer, hanging, key_words
from langgraft.benchmarks.continual.metrics import SMALLEST_SUBSET, Direction, Transfer, scaled
from langgraft.benchmarks.continual.page_one import extremes, notices, transfer_sentences
from langgraft.benchmarks.continual.paper.counterparts import (
    Cast,
    Readings,
    Side,
    reading_words,
    readings,
    roles,
    side_of,
)
from langgraft.benchmarks.continual.paper.tables import PaperTable, paper_tables, table_7, table_8
from langgraft.benchmarks.continual.plan import Condition, ContinualPlan
from langgraft.benchmarks.continual.retrieval import SUBSETS, CrossRecall, FirstRecall
from langgraft.benchmarks.continual.tables import FIRST, first_fields
from langgraft.benchmarks.harness.progress import Spent
from langgraft.benchmarks.harness.study import Report
from langgraft.benchmarks.published import ROLES, STUDY_1, Role, continual_memory
from langgraft.benchmarks.reporting.findings import Registration
from langgraft.benchmarks.reporting.pages import check_extra, environment, trusted, write_folder
from langgraft.benchmarks.reporting.tables import (
    Table,
    metric,
    percent,
    registered_tables,
    spending_tables,
)
from langgraft.benchmarks.reporting.words import (
    change,
    listing,
    plain,
    points,
    sample,
    several,
    signed,
)

_TITLE: Final = "Continual learning"
_NOTHING: Final = Registration()

Verdict: TypeAlias = Literal["same sign", "opposite sign", "cannot be told from 0", "no data"]

_DIRECTIONS: Final[tuple[tuple[Direction, str], ...]] = (
    ("forward", "forward transfer"),
    ("backward", "backward transfer"),
)


def write_paper_report(
    plan: ContinualPlan,
    analyses: Mapping[str, Analysis],
    out: Path,
    *,
    simulated: bool,
    registered: Registration = _NOTHING,
    spent: Sequence[Spent] = (),
) -> Report:
    """Write the page over all pairs of a study; `<out>/<pair>/` are their own reports.

    Args:
        plan: The plan.
        analyses: The analysis of each pair, by the pair's name, in plan order.
        out: Folder for the page; made where it is missing.
        simulated: Whether a simulated model played.
        registered: What came of the hypotheses that the plan registers.
        spent: What was spent, by condition and node.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
        RunDirectoryError: A file cannot be written.
    """
    check_extra()
    from langgraft.benchmarks.continual.paper.figures import draw  # noqa: PLC0415  ([bench], slow to load)

    sides = [side_of(name, analysis) for name, analysis in analyses.items()]
    tables, settings = paper_tables(plan, sides), (table_7(plan), table_8(plan))
    figures, read = draw(sides, roles(plan)), reading_table(reading_rows(plan, sides))
    documented = (*registered_tables(registered), *spending_tables(spent), read)
    page = write_folder(
        out,
        tables=(
            *(each.as_csv() for each in tables.values()),
            *settings,
            _signs(plan, sides),
            *_sequences(sides),
            *documented,
            MEANINGS.table(documented),
        ),
        figures=figures,
        page=_render(
            plan, sides, (registered, spent), (tables, settings), figures, simulated=simulated
        ),
    )
    return _short(plan, sides, registered, page, simulated=simulated)


def _signs(plan: ContinualPlan, sides: Sequence[Side]) -> Table:
    rows = (
        (
            *(sign.side.name, sign.direction, sign.sequence, sign.role, sign.published),
            None
            if sign.row is None or sign.row.transfer.estimate is None
            else 100 * sign.row.transfer.estimate.value,
            sign.verdict,
        )
        for sign in signs(sides, roles(plan))
    )
    columns = ("pair", "direction", "sequence", "role", "published", "ours", "verdict")
    return Table.of("signs", columns, rows)


_AVERAGES: Final = ("average", "forward", "zero_shot", "backward", "forgetting")


def _sequences(sides: Sequence[Side]) -> Iterator[Table]:
    """Return the averages of sequences of more than two tasks, where there are any."""
    rows = [
        (side.name, row.condition, row.sequence, *(getattr(row, name) for name in _AVERAGES))
        for side in sides
        for row in side.analysis.sequences
    ]
    if rows:
        head = ("pair", "condition", "sequence")
        yield Table.of("sequences", (*head, *map(metric, _AVERAGES)), rows)


def apart(sides: Sequence[Side]) -> Iterator[str]:
    """Say how far memories lie apart in each long sequence: streams tell them apart or do not."""
    for side in sides:
        memories = side.analysis.study.memories
        for sequence in side.analysis.study.long_sequences:
            found = sorted(
                (row.average.estimate.value, row.condition)
                for row in side.analysis.sequences
                if row.sequence == sequence and row.condition in memories and row.average.estimate
            )
            if len(found) > 1:
                (least, low), (most, high) = found[0], found[-1]
                yield (
                    f"{side.name}, {sequence.replace('>', '→')}: average accuracy of"
                    f" {several(len(found), 'memory', 'memories')} from {plain(least)} % ({low}) to"
                    f" {plain(most)} % ({high}), {plain(most - least)} points apart."
                )


def _short(
    plan: ContinualPlan,
    sides: Sequence[Side],
    registered: Registration,
    page: Path,
    *,
    simulated: bool,
) -> Report:
    """Return what a terminal shows of the page."""
    rows = tuple((side.name, ", ".join(side.analysis.domains.values())) for side in sides)
    told = notices(simulated=simulated, generated=any(side.generated for side in sides))
    read = reading_sentences(reading_rows(plan, sides))
    lines = (*told, *registered.lines, *read, *sentences(sides, roles(plan)))
    return Report(page, plan.title or _TITLE, ("pair", "task families"), rows, lines)


def _render(
    plan: ContinualPlan,
    sides: Sequence[Side],
    told: tuple[Registration, Sequence[Spent]],
    tables: tuple[Mapping[str, PaperTable], Sequence[Table]],
    figures: Mapping[str, str],
    *,
    simulated: bool,
) -> str:
    pages = environment(__package__ or "", "langgraft.benchmarks.continual")
    cast, paper = roles(plan), continual_memory()
    limits = [side.analysis.manifest.get("limit") for side in sides]
    played, settings = (each.rows for each in tables[1])
    read = reading_rows(plan, sides)
    page: str = pages.get_template("paper.html.jinja").render(
        registration=told[0],
        spent=told[1],
        plan=plan,
        title=plan.title or _TITLE,
        sides=sides,
        tables=tables[0],
        table_7=played,
        table_8=settings,
        figures={name: trusted(svg) for name, svg in figures.items()},
        sentences=sentences(sides, cast),
        readings=read,
        reading_words=reading_words,
        read=" ".join(reading_sentences(read)),
        key_words=key_words,
        hanging=hanging,
        told_of={side.name: [*transfer_sentences(extremes(side.analysis))] for side in sides},
        streams=[(side, row) for side in sides for row in side.analysis.sequences],
        apart=list(apart(sides)),
        causes=_causes(sides, cast),
        told=_told(sides, cast),
        subsets=SUBSETS,
        twice=[
            change(table["B>A", "BabyAI", "agg"].transfer)
            for table in (paper.table_4, paper.table_6)
        ],
        least_key_diversity=paper.appendix_d.least_key_diversity,
        cases=_cases(sides, cast),
        small=SMALLEST_SUBSET,
        simulated=simulated,
        limit=next((limit for limit in limits if limit is not None), None),
        complete=all(side.complete for side in sides),
    )
    return page


def _causes(sides: Sequence[Side], cast: Cast) -> list[tuple[Side, CrossRecall]]:
    """Return what came of retrieving from the other task; of Raw and Insight."""
    names = {cast[role].name for role in STUDY_1 if role in cast}
    return [
        (side, row)
        for side in sides
        for row in side.analysis.cross_recalls
        if row.condition in names
    ]


def _told(sides: Sequence[Side], cast: Cast) -> list[tuple[Side, str]]:
    """Say the same in words where Raw's forward transfer is below zero."""
    if "raw" not in cast:
        return []
    name = cast["raw"].name
    return [
        (side, text)
        for side in sides
        for sequence in side.sequences
        for row in (side.row("forward", sequence, name),)
        if row is not None and row.transfer.estimate and row.transfer.estimate.value < 0
        for text in explain_transfer(
            [
                each
                for each in side.analysis.cross_recalls
                if (each.condition, each.sequence) == (name, sequence)
            ]
        )
    ]


def _cases(sides: Sequence[Side], cast: Cast) -> list[tuple[Side, Any]]:
    """Return the episodes that show transfer, of the paper's conditions."""
    playing = {condition.name for condition in cast.values()}
    return [
        (side, case)
        for side in sides
        for case in side.analysis.cases
        if case.about_transfer and case.key.condition in playing
    ]


# Readings: what depends on how the paper's retrieval is read ---------------------------------------


@dataclass(frozen=True, slots=True)
class ReadingRow:
    """The forward transfer of one reading, in one sequence of one pair."""

    side: Side
    of: Readings
    condition: Condition
    row: Transfer
    first: FirstRecall | None
    """What its tests recall first."""
    against: Estimate | None
    """FWT less that of the first reading, paired by item and run; `None` of the first itself."""
    p: float | None = None
    """Against no such difference, Holm-corrected over all rows."""

    @property
    def depends(self) -> bool:
        """Whether FWT differs from that of the first reading."""
        return self.p is not None and self.p < 1 - CONFIDENCE

    @property
    def place(self) -> str:
        """Which memory, in which pair and sequence."""
        name = ROLES[self.of.role].partition(" ")[0]
        return f"{name} on {self.side.name} {self.row.sequence.replace('>', '→')}"


def reading_rows(plan: ContinualPlan, sides: Sequence[Side]) -> tuple[ReadingRow, ...]:
    """Return the forward transfer of every reading beside that of the first one of its memory."""
    rows = [row for side in sides for row in _read_by(readings(plan), side)]
    tested = [place for place, row in enumerate(rows) if row.against is not None]
    found = dict(zip(tested, holm([_p(rows[place]) for place in tested]), strict=True))
    return tuple(replace(row, p=found.get(place)) for place, row in enumerate(rows))


def _p(row: ReadingRow) -> float:
    assert row.against is not None
    return row.against.p


def _read_by(all_read: Sequence[Readings], side: Side) -> Iterator[ReadingRow]:
    """Return the rows of a side; what runs differ by is pooled over its differences."""
    rows = [
        ReadingRow(side, of, each, row, side.analysis.first_recall(row), None)
        for sequence in side.analysis.study.sequences
        for of in all_read
        for each in of.all
        for row in (side.row("forward", sequence, each.name),)
        if row is not None and row.transfer.complete
    ]
    changes = {_place(each): _halved_changes(each) for each in rows}
    beside = [each for each in rows if each.condition.name != each.of.first.name]
    told = differences_of(
        (changes[_place(each)], changes.get((each.of.first.name, each.row.sequence), {}))
        for each in beside
    )
    against = {_place(each): found for each, found in zip(beside, told, strict=True)}
    for row in rows:
        found = against.get(_place(row))
        yield row if found is None else replace(row, against=scaled(found, 2.0))


def _place(row: ReadingRow) -> tuple[str, str]:
    return row.condition.name, row.row.sequence


def _halved_changes(row: ReadingRow) -> Scores:
    """Return half of each test's change, so that differences of two are within those of outcomes."""
    cells, move = row.side.analysis.study.cells, row.row
    after = cells[CellKey(move.condition, move.sequence, move.task)].scores
    before = cells[CellKey(move.condition, move.task, move.task)].scores
    ours, theirs = in_common([after, before])
    return {r: {i: (items[i] - theirs[r][i]) / 2 for i in items} for r, items in ours.items()}


def reading_sentences(rows: Sequence[ReadingRow]) -> tuple[str, ...]:
    """Say what depends on the reading of retrieval and what does not, by `ReadingRow.depends`."""
    tested = [row for row in rows if row.against is not None]
    if not tested:
        return ()
    places = {row.place: [each for each in rows if each.place == row.place] for row in tested}
    apart = {place: [row for row in each if row.depends] for place, each in places.items()}
    told = [_dependent(places[place], each) for place, each in apart.items() if each]
    alike = [_alike(place, places[place]) for place, each in apart.items() if not each]
    size = tested[0].against
    assert size is not None
    rule = (
        f"By rule: FWT differs from that of the first reading at 5 %, Holm-corrected over"
        f" {several(len(tested), 'comparison')} paired by item and run ({sample(size)})."
    )
    how = "on how the paper's retrieval is read"
    depends = (
        f"is seen to depend {how} for {'; '.join(told)}"
        if told
        else f"is seen to depend nowhere {how}"
    )
    seen = ". It is not seen to for " if told else ": "
    rest = f"{seen}{'; '.join(alike)}" if alike else ""
    return f"Forward transfer {depends}{rest}. {rule}", _hanging(rows)


def _dependent(rows: Sequence[ReadingRow], apart: Sequence[ReadingRow]) -> str:
    named = [f"{_fwt(row)} as {row.condition.name}" for row in apart]
    return f"{rows[0].place}, {_fwt(rows[0])} as {rows[0].of.first.name} but {listing(named)}"


def _alike(place: str, rows: Sequence[ReadingRow]) -> str:
    ranked = sorted(rows, key=lambda row: _estimate(row).value)
    return f"{place} ({_fwt(ranked[0])} to {_fwt(ranked[-1])} in {len(rows)} readings)"


def _hanging(rows: Sequence[ReadingRow]) -> str:
    told = [row for row in rows if _estimate(row).excludes_zero]
    found = [row for row in told if row.first is not None and row.first.hangs]
    named = [
        f"{row.condition.name} on {row.side.name} {row.row.sequence.replace('>', '→')}"
        for row in found
    ]
    names = f": {listing(named)}" if named else ""
    return (
        f"Of {several(len(rows), 'forward transfer')}, {len(told) or 'none'} can be told from 0;"
        f" {len(found) or 'none'} of these {'hangs' if len(found) == 1 else 'hang'} on one key that"
        f" is recalled first{names}."
    )


def _estimate(row: ReadingRow) -> Estimate:
    assert row.row.transfer.estimate is not None  # its episodes are all there
    return row.row.transfer.estimate


def _fwt(row: ReadingRow) -> str:
    return signed(_estimate(row).value)


def reading_table(rows: Sequence[ReadingRow]) -> Table:
    """Return all readings as CSV."""
    columns = (
        *("pair", "sequence", "role", "condition", "reading", metric("transfer"), *FIRST),
        *(percent("against"), percent("against_low"), percent("against_high"), "p_holm"),
    )
    values = (
        (
            *(row.side.name, row.row.sequence, ROLES[row.of.role], row.condition.name),
            *(reading_words(row.condition), row.row.transfer),
            *((None,) * len(FIRST) if row.first is None else first_fields(row.first)),
            *((None,) * 3 if (a := row.against) is None else (a.value, a.low, a.high)),
            row.p,
        )
        for row in rows
    )
    return Table.of("readings", columns, values)


# In words: which published signs are found again, and what Raw and Insight do -------------------


@dataclass(frozen=True, slots=True)
class Sign:
    """A published transfer, and what ours says of its sign."""

    side: Side
    direction: Direction
    sequence: str
    role: Role
    published: float
    row: Transfer | None
    verdict: Verdict


def signs(sides: Sequence[Side], cast: Cast) -> tuple[Sign, ...]:
    """Hold each published transfer that is not 0 to the interval of ours."""
    return tuple(
        Sign(side, direction, sequence, role, value, row, _verdict(row, value))
        for side in sides
        for direction, _ in _DIRECTIONS
        for sequence in side.sequences
        for role in cast
        for value in (_value(side, direction, sequence, role),)
        if value
        for row in (side.row(direction, sequence, cast[role].name),)
    )


def _value(side: Side, direction: Direction, sequence: str, role: Role) -> float | None:
    if direction == "forward":
        forward = side.forward(sequence, role)
        return None if forward is None else forward.transfer
    backward = side.backward(sequence, role, 1 if role == "raw" else 2)
    return None if backward is None else backward.transfer


def _verdict(row: Transfer | None, published: float) -> Verdict:
    if row is None or row.transfer.estimate is None:
        return "no data"
    estimate = row.transfer.estimate
    if not row.transfer.complete or estimate.low <= 0 <= estimate.high:
        return "cannot be told from 0"
    return "same sign" if (estimate.value > 0) == (published > 0) else "opposite sign"


def sentences(sides: Sequence[Side], cast: Cast) -> tuple[str, ...]:
    """Say what Raw and Insight do from the first task to the second, then whose signs come again."""
    return (*_study_1(sides, cast), *_agreement(sides, signs(sides, cast)))


def _study_1(sides: Sequence[Side], cast: Cast) -> Iterator[str]:
    for role in ("raw", "agg"):
        told = [text for side in sides for text in _one(side, cast, role)]
        if told:
            name = ROLES[role].partition(" ")[0]
            yield f"Forward transfer of {name}: {listing(told)}."


def _one(side: Side, cast: Cast, role: Role) -> Iterator[str]:
    for sequence in side.sequences:
        row = None if role not in cast else side.row("forward", sequence, cast[role].name)
        if row is None or row.transfer.estimate is None:
            continue
        text = f"{points(row.transfer.estimate)} on {side.name} {sequence.replace('>', '→')}"
        printed = side.forward(sequence, role)
        yield text if printed is None else f"{text} (published {change(printed.transfer)})"


def _agreement(sides: Sequence[Side], found: Sequence[Sign]) -> Iterator[str]:
    for side in sides:
        for direction, name in _DIRECTIONS:
            mine = [sign for sign in found if (sign.side, sign.direction) == (side, direction)]
            known = [sign.verdict for sign in mine if sign.verdict != "no data"]
            if known:
                counts = (known.count(v) for v in ("same sign", "opposite sign"))
                same, opposite = counts
                yield (
                    f"{side.name}: of {several(len(known), 'published value')} of {name} other than"
                    f" 0, ours has the same sign in {same} and the opposite one in {opposite}; in"
                    f" {len(known) - same - opposite} it cannot be told from 0."
                )
