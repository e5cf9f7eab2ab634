"""Commands that only show: `plans`, `preview`, `status`, `verify`."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import PlanError
from langgraft.benchmarks.cli.plan_choice import read_plan, shipped_plans
from langgraft.benchmarks.harness.graph import build_graph
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.plans import PreparedPlan
from langgraft.benchmarks.harness.verify import INTEGRITY, verify_directory


def show(title: str, columns: Sequence[str], rows: Sequence[Sequence[object]]) -> None:
    """Print a table; all columns after the first are set to the right."""
    table = Table(title=title, title_justify="left", header_style="bold")
    for number, column in enumerate(columns):
        table.add_column(column, justify="right" if number else "left")
    for row in rows:
        table.add_row(*(str(cell) for cell in row))
    Console().print(table)


def write_json(value: JSON) -> None:
    """Print one line of JSON."""
    print(canonical_json(value))  # noqa: T201


def show_plans(*, as_json: bool) -> None:
    """List the plans that ship; of one whose data is missing, what is missing."""
    names = ("name", "title", "runs", "items", "missing")
    rows = [_plan_row(name, path) for name, path in shipped_plans().items()]
    if as_json:
        write_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    show("Plans", names[:4], [["-" if cell is None else cell for cell in row[:4]] for row in rows])
    for name, *_, missing in rows:
        if missing is not None:
            Console().print(f"{name}: {missing}", markup=False, highlight=False)


def _plan_row(name: str, path: Path) -> tuple[str, str, int | None, int | None, str | None]:
    study, plan = read_plan(path)
    try:
        graph = build_graph(study.expand(plan))
    except PlanError as error:
        return name, plan.title, None, None, str(error)
    return name, plan.title, len(graph), sum(run.length for run in graph), None


def show_preview(prepared: PreparedPlan[Any], *, as_json: bool) -> None:
    """Show what a plan would run."""
    runs: Counter[tuple[str, str]] = Counter()
    items: Counter[tuple[str, str]] = Counter()
    calls: Counter[tuple[str, str]] = Counter()
    several = len({run.spec.factors.get("agent") for run in prepared.graph}) > 1
    for run in prepared.graph:
        factors = run.spec.factors
        condition = factors.get("condition", factors.get("memory", ""))
        if several:
            condition = f"{factors.get('agent')}/{condition}"
        if "pair" in factors:
            condition = f"{factors['pair']}/{condition}"
        group = (str(condition), str(factors.get("kind", factors.get("phase", ""))))
        runs[group] += 1
        items[group] += run.length
        calls[group] += prepared.study.most_calls(prepared.plan, run.spec)
    rows = [(*group, runs[group], items[group], calls[group]) for group in runs]
    total = (runs.total(), items.total(), calls.total())
    notes = prepared.study.notes(prepared.plan, [run.spec for run in prepared.graph])
    if as_json:
        names = ("condition", "kind", "runs", "items", "most_model_calls")
        groups: list[JSON] = [dict(zip(names, row, strict=True)) for row in rows]
        shown: dict[str, JSON] = {"groups": groups, "total": list(total), "notes": list(notes)}
        write_json({"plan": dict(prepared.resolved), **shown})
        return
    columns = ("condition", "kind", "runs", "items", "model calls ≤")
    show(prepared.plan.title, columns, [*rows, ("total", "", *total)])
    for line in (f"model: {prepared.plan.model}", *notes):
        Console().print(line, markup=False, highlight=False)


def show_status(directory: Path, *, as_json: bool) -> None:
    """Show how far each run of a directory is."""
    log = PlanLog(directory)
    progress = log.progress()
    if as_json:
        runs: list[JSON] = [
            {"run": run.name, "id": run.id, "done": run.done, "planned": run.planned}
            for run in progress
        ]
        write_json({"complete": log.complete, "runs": runs})
        return
    unfinished = [run for run in progress if not run.finished]
    rows = [(run.name, run.done, run.planned) for run in unfinished]
    if rows:
        show("Unfinished runs", ("run", "done", "planned"), rows)
    finished = len(progress) - len(unfinished)
    done, planned = sum(run.done for run in progress), sum(run.planned for run in progress)
    line = f"{finished} of {len(progress)} runs finished, {done} of {planned} items committed"
    Console().print(line, highlight=False)


def show_findings(directory: Path, *, as_json: bool) -> bool:
    """Show what is wrong with a directory; say whether anything is."""
    findings = verify_directory(directory)
    if as_json:
        found: list[JSON] = [
            {"path": str(finding.path), "message": finding.message} for finding in findings
        ]
        write_json({"findings": found, "scope": INTEGRITY})
    else:
        for finding in findings:
            Console().print(str(finding), markup=False, highlight=False, soft_wrap=True)
        told = f"{len(findings)} findings" if findings else "nothing wrong found"
        Console().print(f"{told}. {INTEGRITY}", highlight=False)
    return bool(findings)
