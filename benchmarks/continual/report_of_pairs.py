"""The reports of a plan: of its one pair of task families, or of each pair and of all.

<out>/index.html          the page to open: all pairs side by side, or the report of the one
<out>/<pair>/index.html   the report of each pair, where there are several
"""

from pathlib import Path

from langgraft.benchmarks.continual.analysis import analyze
from langgraft.benchmarks.continual.pair_log import PairLog
from langgraft.benchmarks.continual.paper import write_paper_report
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.continual.report import check_extra, run_ids, write_report
from langgraft.benchmarks.harness.study import PlanLogReader, Report, is_simulated


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
        reports[name] = write_report(part, view, out / name, analysis=analyses[name], ids=own)
    over_all = write_paper_report(plan, analyses, out, simulated=is_simulated(plan, log))
    return _together(over_all, reports)


def _together(over_all: Report, reports: dict[str, Report]) -> Report:
    """Return what a terminal shows: the rows of all pairs, then what each report says."""
    first = next(iter(reports.values()))
    rows = tuple((name, *row) for name, report in reports.items() for row in report.rows)
    lines = (f"{name}: {line}" for name, report in reports.items() for line in report.lines)
    return Report(
        over_all.page, over_all.title, ("pair", *first.columns), rows, (*over_all.lines, *lines)
    )
