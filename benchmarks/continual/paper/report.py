"""One page over all pairs of a study, environments side by side, published beside ours.

    <out>/index.html        the page
    <out>/tables/*.csv      its tables, the paper's numbers in columns of their own
    <out>/figures/*.svg     its figures
    <out>/<pair>/           the report of each pair, written elsewhere

No metric is computed here: the analyses of the pairs have them all.
"""

from collections.abc import Mapping, Sequence
from importlib import resources
from pathlib import Path
from typing import Any, Final

from langgraft._core.extras import require
from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.cross_recall import SUBSETS, CrossRecall
from langgraft.benchmarks.continual.csv_tables import Table
from langgraft.benchmarks.continual.mechanisms import explain_transfer
from langgraft.benchmarks.continual.metrics import SMALLEST_SUBSET
from langgraft.benchmarks.continual.page_one import extremes, transfer_sentences
from langgraft.benchmarks.continual.pages import environment, template
from langgraft.benchmarks.continual.paper.roles import others, roles
from langgraft.benchmarks.continual.paper.rows import Cell, PaperTable
from langgraft.benchmarks.continual.paper.settings import settings_tables, table_7, table_8
from langgraft.benchmarks.continual.paper.sides import Side, side_of
from langgraft.benchmarks.continual.paper.tables import (
    Cast,
    backward_table,
    figure_11,
    forward_table,
    further_table,
    table_2,
)
from langgraft.benchmarks.continual.paper.words import sentences, signs
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.continual.report import notices
from langgraft.benchmarks.continual.wording import change
from langgraft.benchmarks.harness.files import atomic_write, make_directory
from langgraft.benchmarks.harness.study import Report
from langgraft.benchmarks.published import STUDY_1, STUDY_2, continual_memory

PAGE: Final = "index.html"
_TEMPLATE: Final = "paper.html.jinja"
_PURPOSE: Final = "The report"
_TITLE: Final = "Continual learning"


def write_paper_report(
    plan: ContinualPlan, analyses: Mapping[str, Analysis], out: Path, *, simulated: bool
) -> Report:
    """Write the page over all pairs of a study; `<out>/<pair>/` are their own reports.

    Args:
        plan: The plan.
        analyses: The analysis of each pair, by the pair's name, in plan order.
        out: Folder for the page; made where it is missing.
        simulated: Whether a simulated model played.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
        RunDirectoryError: A file cannot be written.
    """
    for module in ("matplotlib", "jinja2"):
        require(module, extra="bench", purpose=_PURPOSE)
    sides = [side_of(name, analysis) for name, analysis in analyses.items()]
    tables = paper_tables(plan, sides)
    drawn = _drawn(sides, roles(plan))
    for folder in (out, out / "tables", out / "figures"):
        make_directory(folder)
    for table in (*(each.as_csv() for each in tables.values()), *_csv_only(plan, sides)):
        atomic_write(out / "tables" / f"{table.name}.csv", table.to_csv().encode())
    for name, svg in drawn.items():
        atomic_write(out / "figures" / f"{name}.svg", f"{svg}\n".encode())
    page = out / PAGE
    atomic_write(page, _render(plan, sides, tables, drawn, simulated=simulated).encode())
    return _short(plan, sides, page, simulated=simulated)


def paper_tables(plan: ContinualPlan, sides: Sequence[Side]) -> dict[str, PaperTable]:
    """Return the tables of the page by name."""
    cast = roles(plan)
    found = (
        table_2(sides),
        forward_table("table_3", sides, cast, STUDY_1),
        backward_table("table_4", sides, cast, STUDY_1),
        forward_table("table_5", sides, cast, STUDY_2),
        backward_table("table_6", sides, cast, STUDY_2),
        figure_11(sides, cast),
        further_table(sides, others(plan)),
    )
    return {table.name: table for table in found}


def _csv_only(plan: ContinualPlan, sides: Sequence[Side]) -> tuple[Table, ...]:
    rows = tuple(
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
    return (*settings_tables(plan), Table("signs", columns, rows))


def _short(plan: ContinualPlan, sides: Sequence[Side], page: Path, *, simulated: bool) -> Report:
    """Return what a terminal shows of the page."""
    rows = tuple((side.name, ", ".join(side.analysis.domains.values())) for side in sides)
    told = notices(simulated=simulated, generated=any(side.generated for side in sides))
    lines = (*told, *sentences(sides, roles(plan)))
    return Report(page, plan.title or _TITLE, ("pair", "task families"), rows, lines)


def _drawn(sides: Sequence[Side], cast: Cast) -> dict[str, str]:
    from langgraft.benchmarks.continual.paper.figures import draw  # noqa: PLC0415  ([bench], slow to load)

    return draw(sides, cast)


def _render(
    plan: ContinualPlan,
    sides: Sequence[Side],
    tables: Mapping[str, PaperTable],
    drawn: Mapping[str, str],
    *,
    simulated: bool,
) -> str:
    markup: Any = require("jinja2", extra="bench", purpose=_PURPOSE).utils.markupsafe.Markup
    jinja = environment(_load)
    jinja.filters.update(printed=_printed)
    cast, paper = roles(plan), continual_memory()
    limits = [side.analysis.manifest.get("limit") for side in sides]
    page: str = jinja.get_template(_TEMPLATE).render(
        plan=plan,
        title=plan.title or _TITLE,
        sides=sides,
        tables=tables,
        table_7=table_7(plan),
        table_8=table_8(plan),
        figures={name: markup(svg) for name, svg in drawn.items()},
        sentences=sentences(sides, cast),
        told_of={side.name: [*transfer_sentences(extremes(side.analysis))] for side in sides},
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
    return f"{page}\n"


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
        for sequence in side.analysis.study.sequences
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


def _printed(cell: Cell) -> str:
    """Write the published number of a cell."""
    value = cell.published
    if value is None:
        return ""
    if cell.approximate:
        return f"≈{value:.0f}"
    if cell.difference:
        return change(value)
    if isinstance(cell.ours, int):
        return f"{value:.0f}"
    return f"{value:.2f}" if cell.scale == 1 else f"{value:.1f}"


def _load(name: str) -> str:
    """Return the text of a template: one of the page's own, or one of the reports'."""
    if not name.startswith("paper"):
        return template(name)
    return resources.files(__package__).joinpath("templates", name).read_text(encoding="utf-8")
