"""The report of a tree study: one HTML file that needs nothing else, with CSV, SVG and trees.

<out>/index.html       the page to open, send or print
<out>/tables/*.csv     every number, tidy
<out>/figures/*.svg    every figure
<out>/trees/*.html     the tree of every search
"""

from pathlib import Path

from langgraft.benchmarks.harness.study import Plan, PlanLogReader, Report


def write_report(plan: Plan, log: PlanLogReader, out: Path) -> Report:
    """Write the report of a tree study, finished or under way.

    Args:
        plan: The plan, for its title, model and settings.
        log: What has been committed so far.
        out: Folder for the report; made where it is missing, overwritten where it is not.

    Raises:
        MissingExtraError: The extra `bench` is not installed.
        RunDirectoryError: A file cannot be written.
    """
