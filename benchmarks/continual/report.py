"""The reports of a plan: of its one pair of task families, or of each pair and of all.

    <out>/index.html          the page to open: all pairs side by side, or the report of the one
    <out>/cases/*.html        single episodes in full, chosen by rule
    <out>/<pair>/index.html   the report of each pair, where there are several

Tables and figures lie beside each page; see `langgraft.benchmarks.reporting.pages`.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from langgraft.benchmarks.continual.analysis import Analysis, analyze, summary_table
from langgraft.benchmarks.continual.cases import RULES, case_pages
from langgraft.benchmarks.continual.cells import Banks, PairLog
from langgraft.benchmarks.continual.columns import MEANINGS
from langgraft.benchmarks.continual.contrasts import fewer_tasks, hypothesis_difference
from langgraft.benchmarks.continual.mechanisms import hanging, key_words
from langgraft.benchmarks.continual.metrics import SMALLEST_SUBSET
from langgraft.benchmarks.continual.page_one import (
    MOST_ROWS,
    cost_sentences,
    extremes,
    memory_note,
    notices,
    transfer_sentences,
)
from langgraft.benchmarks.continual.paper.report import write_paper_report
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.continual.retrieval import SHARES, SUBSETS
from langgraft.benchmarks.continual.tables import tables
from langgraft.benchmarks.harness.progress import Spent, spending
from langgraft.benchmarks.harness.study import (
    Plan,
    PlanLogReader,
    Report,
    RunSpec,
    is_simulated,
    run_id,
)
from langgraft.benchmarks.reporting.findings import ELSEWHERE, Registration, registration
from langgraft.benchmarks.reporting.pages import (
    check_extra,
    environment,
    trusted,
    write_folder,
    write_pages,
)
from langgraft.benchmarks.reporting.tables import registered_tables, spending_tables
from langgraft.benchmarks.reporting.words import flat
from langgraft.memory.rankers.diversity import VECTORIZER

TITLE: Final = "Continual learning"
_CASES: Final = "cases"


def write_reports(plan: ContinualPlan, log: PlanLogReader, out: Path) -> Report:
    """Write all reports of a plan, finished or under way.

    Raises:
        InputError: The log holds no baseline.
        MissingExtraError: The extra `bench` is not installed.
        RunDirectoryError: A file cannot be written.
    """
    if not plan.pairs:
        return write_report(plan, log, out, analysis=analyze(log, plan.margin))
    check_extra()
    ids = run_ids(log.runs)
    analyses, reports = {}, {}
    for name, part in plan.parts.items():
        view = PairLog(log, name)
        own = {run.removeprefix(f"{name}/"): each for run, each in ids.items()}
        analyses[name] = analyze(view, plan.margin)
        label = Registration(label=ELSEWHERE) if plan.hypotheses else Registration()
        reports[name] = write_report(
            part, view, out / name, analysis=analyses[name], ids=own, registered=label, spent=()
        )
    found = registration(
        plan.hypotheses,
        log.manifest,
        lambda each: hypothesis_difference(each, {n: a.study for n, a in analyses.items()}),
    )
    over_all = write_paper_report(
        *(plan, analyses, out),
        simulated=is_simulated(plan, log),
        registered=found,
        spent=spending(log),
    )
    return _together(over_all, reports)


def _together(over_all: Report, reports: Mapping[str, Report]) -> Report:
    """Return what a terminal shows: the rows of all pairs, then what each report says."""
    first = next(iter(reports.values()))
    rows = tuple((name, *row) for name, report in reports.items() for row in report.rows)
    lines = (f"{name}: {line}" for name, report in reports.items() for line in report.lines)
    return Report(
        over_all.page, over_all.title, ("pair", *first.columns), rows, (*over_all.lines, *lines)
    )


def write_report(
    plan: Plan,
    log: PlanLogReader,
    out: Path,
    *,
    analysis: Analysis | None = None,
    ids: Mapping[str, str] | None = None,
    registered: Registration | None = None,
    spent: Sequence[Spent] | None = None,
) -> Report:
    """Write the report of a pair of task families, finished or under way.

    Args:
        plan: The plan, for its title, model and settings.
        log: What has been committed so far.
        out: Folder for the report; made where it is missing, overwritten where it is not.
        analysis: The analysis of the log, where it is there already.
        ids: Id of each run by name, where the log is a part of another.
        registered: What came of registered hypotheses, where that is known already.
        spent: What was spent, likewise.

    Raises:
        InputError: The log holds no baseline.
        MissingExtraError: The extra `bench` is not installed.
        RunDirectoryError: A file cannot be written.
    """
    check_extra()
    from langgraft.benchmarks.continual.figures import draw  # noqa: PLC0415  ([bench], slow to load)

    analysis, simulated = analysis or analyze(log), is_simulated(plan, log)
    study = analysis.study
    registered = registered or registration(
        plan.hypotheses, log.manifest, lambda each: hypothesis_difference(each, {"": study})
    )
    spent, figures = spending(log) if spent is None else spent, draw(analysis)
    found = (*registered_tables(registered), *tables(analysis), *spending_tables(spent))
    fewer = fewer_tasks(plan, log.runs) if isinstance(plan, ContinualPlan) else ()
    write_pages(out / _CASES, _cases(analysis, log, simulated=simulated))
    page = write_folder(
        out,
        tables=(*found, MEANINGS.table(found)),
        figures=figures,
        page=_render(plan, analysis, registered, figures, ids, fewer, spent, simulated=simulated),
    )
    return _short(plan, analysis, registered, page, fewer, simulated=simulated)


def _short(
    plan: Plan,
    analysis: Analysis,
    registered: Registration,
    page: Path,
    fewer: Sequence[str],
    *,
    simulated: bool,
) -> Report:
    """Return what a terminal shows of the report."""
    tasks = tuple(f"success {task}, %" for task, _ in analysis.baseline)
    rows = (
        (row.condition, *row.accuracies, row.difference, row.verdict)
        for row in summary_table(analysis)
    )
    columns = ("condition", *tasks, "against none [95 %]", "verdict")
    lines = (
        *notices(simulated=simulated, generated=analysis.generated),
        *(f"{line}." for line in fewer),
        *registered.lines,
        *(analysis.summary, analysis.gate_findings),
        *transfer_sentences(extremes(analysis)),
        *cost_sentences(analysis, simulated=simulated),
        *analysis.sentences,
    )
    return Report(page, plan.title or TITLE, columns, tuple(rows), lines)


def _render(  # noqa: PLR0917  (what the page is made of)
    plan: Plan,
    analysis: Analysis,
    registered: Registration,
    figures: Mapping[str, str],
    ids: Mapping[str, str] | None,
    fewer: Sequence[str],
    spent: Sequence[Spent],
    *,
    simulated: bool,
) -> str:
    """Return the page as HTML; `figures` are SVG of ours by name, `ids` as for the report."""
    specs = [run.spec for run in (*analysis.study.training, *analysis.study.runs)]
    page: str = (
        _environment()
        .get_template("report.html.jinja")
        .render(
            a=analysis,
            registration=registered,
            spent=spent,
            plan=plan,
            title=plan.title or TITLE,
            small=SMALLEST_SUBSET,
            vectorizer=VECTORIZER,
            shares=SHARES,
            subsets=SUBSETS,
            simulated=simulated,
            fewer=fewer,
            sections=list(_sections(analysis)),
            most_rows=MOST_ROWS,
            memories=_memories(plan, analysis),
            extremes=extremes(analysis),
            cost=cost_sentences(analysis, simulated=simulated),
            complete=all(run.done == run.planned for run in analysis.study.runs),
            figures={name: trusted(svg) for name, svg in figures.items()},
            settings=flat(plan.model_dump(mode="json")),
            provenance=flat(dict(analysis.manifest)),
            runs=list(analysis.study.runs),
            curve_sequences=list(dict.fromkeys(curve.sequence for curve in analysis.curves)),
            curves={(curve.condition, curve.sequence): curve for curve in analysis.curves},
            banks={(bank.condition, bank.sequence): bank for bank in analysis.banks},
            ids=run_ids(specs) if ids is None else ids,
            cases=analysis.cases,
            rules=RULES,
            key_words=key_words,
            hanging=hanging,
        )
    )
    return page


def _memories(plan: Plan, analysis: Analysis) -> str:
    """Say what the memories in the first table are; nothing where the plan has none by name."""
    shown = [each.condition for each in analysis.family[:MOST_ROWS]]
    return memory_note(plan.conditions, shown) if isinstance(plan, ContinualPlan) else ""


def _environment() -> Any:
    return environment(__package__ or "")


def _sections(analysis: Analysis) -> Iterator[tuple[str, str]]:
    """List what folds out below the first page: headings and templates."""
    yield "Every comparison with no memory", "help"
    yield "Forward transfer", "forward"
    yield "Backward transfer", "backward"
    if analysis.sequences or analysis.mixtures:
        yield "Sequences", "sequences"
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


def _cases(analysis: Analysis, log: PlanLogReader, *, simulated: bool) -> Iterator[tuple[str, str]]:
    """Render the pages of the cases, by file name."""
    template = _environment().get_template("case.html.jinja")
    for page in case_pages(analysis.cases, Banks(analysis.study, log), log):
        yield (
            f"{page.case.name}.html",
            template.render(
                page=page,
                title=f"{page.case.name}: {page.case.rule}",
                rule=RULES[page.case.rule],
                simulated=simulated,
                generated=analysis.generated,
            ),
        )


def run_ids(specs: Iterable[RunSpec]) -> dict[str, str]:
    """Return the id of each run by name; sources come before the runs that start from them."""
    found: dict[str, str] = {}
    for spec in specs:
        found[spec.name] = run_id(spec.identity(found))
    return found
