"""The report: one HTML file that needs nothing else, with CSV tables and SVG figures beside.

    <out>/index.html       the page to open, send or print
    <out>/tables/*.csv     every number, tidy
    <out>/figures/*.svg    every figure
    <out>/cases/*.html     single episodes in full, chosen by rule

The same log gives the same bytes. What comes from outside (titles, ids, model names) is
escaped; the page runs no script and fetches nothing.
"""

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from langgraft._core.extras import require
from langgraft.benchmarks.continual.analysis import Analysis, analyze, summary_table
from langgraft.benchmarks.continual.banks import Banks
from langgraft.benchmarks.continual.case_pages import case_pages
from langgraft.benchmarks.continual.cases import RULES
from langgraft.benchmarks.continual.cross_recall import SUBSETS
from langgraft.benchmarks.continual.metrics import SMALLEST_SUBSET
from langgraft.benchmarks.continual.page_one import (
    MOST_ROWS,
    cost_sentences,
    extremes,
    transfer_sentences,
)
from langgraft.benchmarks.continual.pages import environment
from langgraft.benchmarks.continual.retrieval import SHARES
from langgraft.benchmarks.continual.tables import write_tables
from langgraft.benchmarks.continual.wording import flat
from langgraft.benchmarks.harness.files import atomic_write, make_directory
from langgraft.benchmarks.harness.study import (
    Plan,
    PlanLogReader,
    Report,
    RunSpec,
    is_simulated,
    run_id,
)
from langgraft.memory.rankers.tfidf import VECTORIZER

PAGE = "index.html"
_TEMPLATE = "report.html.jinja"
_CASE_TEMPLATE = "case.html.jinja"
_PURPOSE = "The report"
_TITLE = "Continual learning"


def write_report(
    plan: Plan,
    log: PlanLogReader,
    out: Path,
    *,
    analysis: Analysis | None = None,
    ids: Mapping[str, str] | None = None,
) -> Report:
    """Write the report of a study, finished or under way.

    Args:
        plan: The plan, for its title, model and settings.
        log: What has been committed so far.
        out: Folder for the report; made where it is missing, overwritten where it is not.
        analysis: The analysis of the log, where it is there already.
        ids: Id of each run by name, where the log is a part of another.

    Raises:
        InputError: The log holds no baseline.
        MissingExtraError: The extra `bench` is not installed.
        RunDirectoryError: A file cannot be written.
    """
    check_extra()
    analysis = analysis or analyze(log)
    drawn = _drawn(analysis)
    for folder in (out, out / "tables", out / "figures", out / "cases"):
        make_directory(folder)
    write_tables(analysis, out / "tables")
    for name, svg in drawn.items():
        atomic_write(out / "figures" / f"{name}.svg", f"{svg}\n".encode())
    simulated = is_simulated(plan, log)
    _write_cases(analysis, log, out / "cases", simulated=simulated)
    page = out / PAGE
    atomic_write(page, _render(plan, analysis, drawn, ids, simulated=simulated).encode())
    return _short(plan, analysis, page, simulated=simulated)


def check_extra() -> None:
    """Check that what draws and computes a report is installed.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
    """
    for module in ("scipy", "statsmodels", "matplotlib", "jinja2"):
        require(module, extra="bench", purpose=_PURPOSE)


def _short(plan: Plan, analysis: Analysis, page: Path, *, simulated: bool) -> Report:
    """Return what a terminal shows of the report."""
    tasks = tuple(f"success {task}, %" for task, _ in analysis.baseline)
    rows = (
        (row.condition, *row.accuracies, row.difference, row.verdict)
        for row in summary_table(analysis)
    )
    columns = ("condition", *tasks, "against none [95 %]", "verdict")
    lines = (
        *notices(simulated=simulated, generated=analysis.generated),
        *(analysis.summary, analysis.gate_findings),
        *transfer_sentences(extremes(analysis)),
        *cost_sentences(analysis, simulated=simulated),
        *analysis.sentences,
    )
    return Report(page, plan.title or _TITLE, columns, tuple(rows), lines)


def notices(*, simulated: bool, generated: bool) -> tuple[str, ...]:
    """Return what has to be known before any number, for a terminal."""
    model = ("The model is simulated: with it, memory helps by construction.",) if simulated else ()
    games = ("The games are generated here: no number is an ALFWorld score.",) if generated else ()
    return (*model, *games)


def _drawn(analysis: Analysis) -> dict[str, str]:
    from langgraft.benchmarks.continual.gallery import draw  # noqa: PLC0415  ([bench], slow to load)

    return draw(analysis)


def _render(
    plan: Plan,
    analysis: Analysis,
    drawn: Mapping[str, str],
    ids: Mapping[str, str] | None,
    *,
    simulated: bool,
) -> str:
    """Return the page as HTML; `drawn` are SVG figures of ours by name, `ids` as for the report."""
    specs = [run.spec for run in (*analysis.study.training, *analysis.study.runs)]
    markup: Any = require("jinja2", extra="bench", purpose=_PURPOSE).utils.markupsafe.Markup
    page: str = (
        environment()
        .get_template(_TEMPLATE)
        .render(
            a=analysis,
            plan=plan,
            title=plan.title or _TITLE,
            small=SMALLEST_SUBSET,
            vectorizer=VECTORIZER,
            shares=SHARES,
            subsets=SUBSETS,
            simulated=simulated,
            sections=list(_sections(analysis)),
            most_rows=MOST_ROWS,
            extremes=extremes(analysis),
            cost=cost_sentences(analysis, simulated=simulated),
            complete=all(run.done == run.planned for run in analysis.study.runs),
            figures={name: markup(svg) for name, svg in drawn.items()},
            settings=flat(plan.model_dump(mode="json")),
            provenance=flat(dict(analysis.manifest)),
            runs=list(analysis.study.runs),
            curve_sequences=list(dict.fromkeys(curve.sequence for curve in analysis.curves)),
            curves={(curve.condition, curve.sequence): curve for curve in analysis.curves},
            banks={(bank.condition, bank.sequence): bank for bank in analysis.banks},
            ids=run_ids(specs) if ids is None else ids,
            cases=analysis.cases,
            rules=RULES,
        )
    )
    return f"{page}\n"


def _sections(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """List what folds out below the first page: headings and templates."""
    yield "Every comparison with no memory", "help"
    yield "Forward transfer", "forward"
    yield "Backward transfer", "backward"
    yield "Learning", "learning"
    yield "What was retrieved", "retrieval"
    yield "Memory dilution", "dilution"
    if analysis.distillations:
        yield "Lessons", "distillation"
    if analysis.crossings or analysis.remedies:
        yield "Crossed probes and remedies", "probes"
    if analysis.cases:
        yield "Cases", "cases"
    yield "Costs", "costs"
    yield "Gates", "gates"
    yield "Provenance", "provenance"


def _write_cases(analysis: Analysis, log: PlanLogReader, out: Path, *, simulated: bool) -> None:
    """Write the pages of the cases; one of an earlier report that is no case now is removed."""
    template = environment().get_template(_CASE_TEMPLATE)
    for stale in out.glob("case-*.html"):
        stale.unlink()
    for page in case_pages(analysis.cases, Banks(analysis.study, log), log):
        html: str = template.render(
            page=page,
            rule=RULES[page.case.rule],
            simulated=simulated,
            generated=analysis.generated,
        )
        atomic_write(out / f"{page.case.name}.html", f"{html}\n".encode())


def run_ids(specs: Iterable[RunSpec]) -> dict[str, str]:
    """Return the id of each run by name; sources come before the runs that start from them."""
    found: dict[str, str] = {}
    for spec in specs:
        source = None if spec.source is None else found.get(spec.source.run)
        found[spec.name] = run_id(spec.identity(source))
    return found
