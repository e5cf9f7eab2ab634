"""The report: one HTML file that needs nothing else, with CSV tables and SVG figures beside.

    <out>/index.html       the page to open, send or print
    <out>/tables/*.csv     every number, tidy
    <out>/figures/*.svg    every figure

The same log gives the same bytes. What comes from outside (titles, ids, model names) is
escaped; the page runs no script and fetches nothing.
"""

from collections.abc import Iterable, Mapping
from importlib import resources
from pathlib import Path
from typing import Any

from langgraft._core.extras import require
from langgraft.benchmarks.continual.analysis import PAIRED, Analysis, analyze, summary_table
from langgraft.benchmarks.continual.costs import Spread
from langgraft.benchmarks.continual.metrics import SMALLEST_SUBSET
from langgraft.benchmarks.continual.tables import write_tables
from langgraft.benchmarks.continual.wording import (
    detectable,
    flat,
    interval,
    p_value,
    plain,
    sample,
    several,
    signed,
    subtraction,
)
from langgraft.benchmarks.harness.files import atomic_write, make_directory
from langgraft.benchmarks.harness.study import Plan, PlanLogReader, Report, RunSpec, run_id

PAGE = "index.html"
SIMULATED = "simulated"
_TEMPLATE = "report.html.jinja"
_PURPOSE = "The report"
_TITLE = "Continual learning"
_PAIRING = (
    f"Differences are means over tasks against '{PAIRED}', the baseline runs that conditions are"
    " paired with; 'none' is over all baseline runs."
)


def write_report(plan: Plan, log: PlanLogReader, out: Path) -> Report:
    """Write the report of a study, finished or under way.

    Args:
        plan: The plan, for its title, model and settings.
        log: What has been committed so far.
        out: Folder for the report; made where it is missing, overwritten where it is not.

    Raises:
        InputError: The log holds no baseline.
        MissingExtraError: The extra `bench` is not installed.
        RunDirectoryError: A file cannot be written.
    """
    for module in ("scipy", "statsmodels", "matplotlib", "jinja2"):
        require(module, extra="bench", purpose=_PURPOSE)
    analysis = analyze(log)
    drawn = _figures(analysis)
    for folder in (out, out / "tables", out / "figures"):
        make_directory(folder)
    write_tables(analysis, out / "tables")
    for name, svg in drawn.items():
        atomic_write(out / "figures" / f"{name}.svg", f"{svg}\n".encode())
    page = out / PAGE
    atomic_write(page, render(plan, analysis, drawn).encode())
    return _short(plan, analysis, page)


def _short(plan: Plan, analysis: Analysis, page: Path) -> Report:
    """Return what a terminal shows of the report."""
    tasks = tuple(f"success {task}, %" for task, _ in analysis.baseline)
    rows = (
        (row.condition, *row.accuracies, row.difference, row.verdict)
        for row in summary_table(analysis)
    )
    columns = ("condition", *tasks, "against none [95 %]", "verdict")
    notice = ("The model is simulated.",) if plan.model == SIMULATED else ()
    pairing = (_PAIRING,) if analysis.paired else ()
    lines = (*notice, analysis.summary, *analysis.sentences, *pairing)
    return Report(page, plan.title or _TITLE, columns, tuple(rows), lines)


def _figures(analysis: Analysis) -> dict[str, str]:
    """Draw the figures there is something to draw for."""
    from langgraft.benchmarks.continual import figures  # noqa: PLC0415  ([bench], slow to load)

    drawn = {}
    if any(contrast.estimate for contrast in (*analysis.family, *analysis.beside)):
        drawn["forest"] = figures.forest(analysis)
    if figures.transfer_exists(analysis.transfers):
        drawn["forward"] = figures.transfer_bars(analysis, "forward")
        drawn["subsets"] = figures.subset_bars(analysis)
        drawn["backward"] = figures.transfer_bars(analysis, "backward")
    if any(curve.length for curve in analysis.curves):
        drawn["learning"] = figures.learning(analysis)
    if any(milestone.accuracy.estimate for milestone in analysis.milestones):
        drawn["milestones"] = figures.milestone_lines(analysis)
    return drawn


def render(plan: Plan, analysis: Analysis, drawn: Mapping[str, str]) -> str:
    """Return the page as HTML; `drawn` are SVG figures of ours by name."""
    jinja: Any = require("jinja2", extra="bench", purpose=_PURPOSE)
    environment = jinja.Environment(
        autoescape=True, undefined=jinja.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    environment.filters.update(
        signed=signed,
        plain=plain,
        interval=interval,
        sample=sample,
        p=p_value,
        spread=_spread,
        detectable=detectable,
    )
    environment.globals.update(several=several, small=SMALLEST_SUBSET, subtraction=subtraction)
    source = resources.files(__package__).joinpath(_TEMPLATE).read_text(encoding="utf-8")
    markup: Any = environment.from_string(source).render(
        a=analysis,
        plan=plan,
        title=plan.title or _TITLE,
        paired_name=PAIRED,
        simulated=plan.model == SIMULATED,
        complete=all(run.done == run.planned for run in analysis.study.runs),
        figures={name: jinja.utils.markupsafe.Markup(svg) for name, svg in drawn.items()},
        settings=flat(plan.model_dump(mode="json")),
        provenance=flat(dict(analysis.manifest)),
        runs=list(analysis.study.runs),
        curve_sequences=list(dict.fromkeys(curve.sequence for curve in analysis.curves)),
        curves={(curve.condition, curve.sequence): curve for curve in analysis.curves},
        banks={(bank.condition, bank.sequence): bank for bank in analysis.banks},
        ids=run_ids(run.spec for run in (*analysis.study.training, *analysis.study.runs)),
    )
    return f"{markup}\n"


def run_ids(specs: Iterable[RunSpec]) -> dict[str, str]:
    """Return the id of each run by name; sources come before the runs that start from them."""
    found: dict[str, str] = {}
    for spec in specs:
        source = None if spec.source is None else found.get(spec.source.run)
        found[spec.name] = run_id(spec.identity(source))
    return found


def _spread(spread: Spread | None, digits: int = 1) -> str:
    """Write a mean with the range of its runs: `12.4 (11.9 to 13.0)`."""
    if spread is None:
        return "\N{EN DASH}"
    mean = f"{spread.mean:,.{digits}f}"
    if spread.low == spread.high:
        return mean
    return f"{mean} ({spread.low:,.{digits}f} to {spread.high:,.{digits}f})"
