"""The report of a tree study: one HTML file that needs nothing else, with CSV, SVG and trees.

    <out>/index.html       the page to open, send or print
    <out>/tables/*.csv     every number, tidy
    <out>/figures/*.svg    every figure
    <out>/trees/*.html     the tree of every search

The same log gives the same bytes. What comes from outside (names of competitions, packages,
exceptions, models) is escaped; the page runs no script and fetches nothing.
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from langgraft._core.canonical import text_digest
from langgraft._core.extras import require
from langgraft.benchmarks.continual.wording import flat, several
from langgraft.benchmarks.harness.files import atomic_write, make_directory
from langgraft.benchmarks.harness.study import SIMULATED, Plan, PlanLogReader, Report
from langgraft.benchmarks.mle.analysis import Analysis, analyze
from langgraft.benchmarks.mle.contrasts import in_family
from langgraft.benchmarks.mle.memory_use import most_common
from langgraft.benchmarks.mle.outcomes import OUTCOMES
from langgraft.benchmarks.mle.pages import environment
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.benchmarks.mle.published import findings
from langgraft.benchmarks.mle.relations import SHOWN
from langgraft.benchmarks.mle.searches import ROLES, Roles, Search
from langgraft.benchmarks.mle.sentences import INTERVALS, sentences, summary_rows
from langgraft.benchmarks.mle.tables import write_tables
from langgraft.benchmarks.mle.tree_page import write_tree_page

PAGE: Final = "index.html"
TREES: Final = "trees"
MOST_SHOWN: Final = 15
"""Packages and classes of exceptions on the page; the tables have all of them."""

_TEMPLATE: Final = "report.html.jinja"
_PURPOSE: Final = "The report"
_TITLE: Final = "Tree search with memory"
_UNSAFE: Final = re.compile(r"[^A-Za-z0-9._-]+")


def write_report(plan: Plan, log: PlanLogReader, out: Path) -> Report:
    """Write the report of a tree study, finished or under way.

    Args:
        plan: The plan, for its title, model and settings.
        log: What has been committed so far.
        out: Folder for the report; made where it is missing, overwritten where it is not.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
        RunDirectoryError: A file cannot be written.
        InputError: A tree's page cannot be written.
    """
    for module in ("scipy", "statsmodels", "matplotlib", "jinja2"):
        require(module, extra="bench", purpose=_PURPOSE)
    analysis = analyze(log, roles_of(plan))
    drawn = _drawn(analysis)
    for folder in (out, out / "tables", out / "figures", out / TREES):
        make_directory(folder)
    write_tables(analysis, out / "tables")
    for name, svg in drawn.items():
        atomic_write(out / "figures" / f"{name}.svg", f"{svg}\n".encode())
    _write_trees(plan, analysis, out / TREES)
    page = out / PAGE
    atomic_write(page, render(plan, analysis, drawn).encode())
    return _short(plan, analysis, page)


def roles_of(plan: Plan) -> Roles:
    """Return what the conditions of a plan are to each other."""
    if not isinstance(plan, MlePlan):
        return ROLES
    bare = [each.name for each in plan.memory if each.start == "off" and not each.resampled]
    return Roles(
        baseline=bare[0] if bare else ROLES.baseline,
        # A second one without memory has nothing to tell it from the first but its samples.
        reruns=(*bare[1:], *(each.name for each in plan.memory if each.resampled)),
        placebos=tuple(each.name for each in plan.memory if each.control == "placebo"),
        others=tuple(each.name for each in plan.memory if each.control in {"shuffled", "random"}),
    )


def _drawn(analysis: Analysis) -> dict[str, str]:
    from langgraft.benchmarks.mle.figures import draw  # noqa: PLC0415  ([bench], slow to load)

    return draw(analysis)


def tree_name(search: Search) -> str:
    """Return the file name of a search's tree page; distinct for distinct runs."""
    name = search.spec.name
    return f"{_UNSAFE.sub('-', name)[:80]}-{text_digest(name)[:6]}.html"


def _write_trees(plan: Plan, analysis: Analysis, out: Path) -> None:
    """Write the tree of every search; one of an earlier report that is none now is removed."""
    names = {tree_name(search) for search in analysis.searches.done}
    for stale in out.glob("*.html"):
        if stale.name not in names:
            stale.unlink()
    for search in analysis.searches.done:
        known = {node.id for node in search.journal.nodes}
        write_tree_page(
            search.journal,
            out / tree_name(search),
            title=f"{search.competition}: {search.condition}, seed {search.seed}",
            lower_is_better=search.lower_is_better,
            chosen=search.chosen if search.chosen in known else "",
            report=search.report,
            simulated=plan.model == SIMULATED,
        )


def render(plan: Plan, analysis: Analysis, drawn: Mapping[str, str]) -> str:
    """Return the page as HTML; `drawn` are SVG figures of ours by name."""
    markup: Any = require("jinja2", extra="bench", purpose=_PURPOSE).utils.markupsafe.Markup
    searches = analysis.searches
    shown = {measure.name: measure for measure, _ in analysis.levels}
    page: str = (
        environment()
        .get_template(_TEMPLATE)
        .render(
            a=analysis,
            s=searches,
            plan=plan,
            title=plan.title or _TITLE,
            simulated=plan.model == SIMULATED,
            sentences=sentences(analysis),
            figures={name: markup(svg) for name, svg in drawn.items()},
            outcomes=OUTCOMES,
            in_family=lambda contrast: in_family(contrast, searches),
            family=[each for each in analysis.contrasts if in_family(each, searches)],
            shown=[shown[name] for name in SHOWN],
            packages=most_common((each.packages for each in analysis.used), MOST_SHOWN),
            errors=most_common((each.errors for each in analysis.used), MOST_SHOWN),
            runs=sorted(searches.done, key=lambda run: (run.competition, run.seed)),
            tree=lambda run: f"{TREES}/{tree_name(run)}",
            published=findings(),
            settings=flat(plan.model_dump(mode="json")),
            provenance=flat(dict(analysis.manifest)),
        )
    )
    return f"{page}\n"


def _short(plan: Plan, analysis: Analysis, page: Path) -> Report:
    """Return what a terminal shows of the report."""
    columns, rows = summary_rows(analysis)
    notice = ("The model is simulated.",) if plan.model == SIMULATED else ()
    trees = several(len(analysis.searches.done), "tree")
    lines = (*notice, INTERVALS, *sentences(analysis), f"{trees} beside the page, in {TREES}.")
    return Report(page, plan.title or _TITLE, columns, rows, lines)
