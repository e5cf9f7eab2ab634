"""The demo from a fresh clone, and what it finds."""

import html
import shutil
import sys
from dataclasses import replace
from pathlib import Path

from acceptance.command import Ended, clean_environment, run
from acceptance.figure import Figure, Setting, share
from langgraft.benchmarks.comparison.verdicts import SIGNIFICANCE
from langgraft.benchmarks.continual.analysis import Analysis, analyze
from langgraft.benchmarks.continual.cells import UNTRAINED
from langgraft.benchmarks.continual.contrasts import compare_with_no_memory
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.reporting.words import points

LONGEST = 300
"""Seconds that `make demo` may take, installation included."""


def measure(setting: Setting) -> list[Figure]:
    """Run the demo and read its findings."""
    if setting.reduced:
        # CI makes the demo anyway, and verifies it.
        promise = "A fresh clone shows the demo in minutes, installation included"
        return [Figure(promise, "`make demo`", "made by .ci/run", "", None)]
    clone = setting.work / "clone"
    _clone(setting.checkout, clone)
    setting.say("make demo in a fresh clone, with empty package caches")
    done = run(["make", "demo"], folder=clone, environment=_fresh_environment(setting.work))
    directory = clone / "runs" / "demo"
    how = "`git clone`, then `make demo`: no virtual environment, empty package caches"
    figures = [
        Figure(
            "A fresh clone shows the demo in minutes, installation included",
            how,
            f"{done.seconds:.0f} s, exit code {done.code}{_complaint(done)}",
            f"< {LONGEST} s",
            done.code == 0 and done.seconds < LONGEST,
        ),
        _ending(done, directory, how),
        *_findings(directory, "the demo of the fresh clone"),
    ]
    shutil.rmtree(clone / ".venv", ignore_errors=True)
    return figures


def _clone(checkout: Path, clone: Path) -> None:
    done = run(["git", "clone", "--quiet", str(checkout), str(clone)])
    if done.code != 0:
        msg = f"git clone {checkout}: {done.stderr.strip()}"
        raise RuntimeError(msg)


def _fresh_environment(work: Path) -> dict[str, str]:
    """Return an environment that knows neither our virtual environment nor package caches."""
    environment = clean_environment()
    here = str(Path(sys.prefix) / "bin")
    path = [part for part in environment.get("PATH", "").split(":") if part != here]
    caches = {"UV_CACHE_DIR": str(work / "uv"), "PIP_CACHE_DIR": str(work / "pip")}
    return {**environment, **caches, "PATH": ":".join(path)}


def _complaint(done: Ended) -> str:
    last = done.stderr.strip().splitlines()[-1:]
    return "" if done.code == 0 else f": {' '.join(last)}"


def _ending(done: Ended, directory: Path, how: str) -> Figure:
    page = directory / "report" / "index.html"
    lines = done.stdout.strip().splitlines()
    table = any(line.startswith("┏") for line in lines)
    named = bool(lines) and lines[-1].startswith("report: ") and lines[-1].endswith("index.html")
    return Figure(
        "It ends with a table and the path of the report",
        how,
        f"table: {table}; last line: {lines[-1] if lines else 'none'}".replace(str(directory), "…"),
        "a table, and a path that exists",
        done.code == 0 and table and named and page.is_file(),
    )


def _findings(directory: Path, how: str) -> list[Figure]:
    analysis = analyze(PlanLog(directory))
    rows = [_best(analysis, how), _steady(analysis, how), *_controls(analysis, how)]
    return [*rows, _sentences(analysis, directory, how)]


def _best(analysis: Analysis, how: str) -> Figure:
    tested = [(c.condition, c.estimate) for c in analysis.family if c.estimate is not None]
    name, estimate = max(tested, key=lambda pair: pair[1].value)
    return Figure(
        "The best memory differs from no memory",
        how,
        f"{name}: {points(estimate)}",
        "the 95 % interval excludes 0",
        not estimate.low <= 0 <= estimate.high,
    )


def _steady(analysis: Analysis, how: str) -> Figure:
    """Judge once more without each run without memory, by p values alone."""
    study = analysis.study
    changed, tried = set[str](), 0
    for name in UNTRAINED & set(study.conditions):
        for replicate in {r for cell in study.final_cells(name) for r in cell.scores}:
            cells = {
                key: replace(
                    cell, runs=tuple(each for each in cell.runs if each.replicate != replicate)
                )
                if key.condition == name
                else cell
                for key, cell in study.cells.items()
            }
            tried += 1
            left = compare_with_no_memory(replace(study, cells=cells)).family
            for before, after in zip(analysis.family, left, strict=True):
                found = (after.p_adjusted or 0.0) < SIGNIFICANCE
                if before.verdict != "unclear" and found != (before.verdict in {"helped", "hurt"}):
                    changed.add(before.condition)
    return Figure(
        "Verdicts stay without any one run without memory, or are called unclear",
        how,
        f"{tried} runs left out; other verdicts: {', '.join(sorted(changed)) or 'none'}",
        "none",
        not changed,
    )


def _controls(analysis: Analysis, how: str) -> list[Figure]:
    found = analysis.comparison
    rows = []
    if found.rerun is not None and found.rerun.estimate is not None:
        rows.append(
            Figure(
                "No memory once more is equivalent to no memory",
                how,
                points(found.rerun.estimate),
                f"within ±{100 * found.margin:.0f} pp",
                found.quiet is True,
            )
        )
    rows += [
        Figure(
            f"{control.condition} is equivalent to no memory",
            how,
            "none" if control.estimate is None else points(control.estimate),
            f"within ±{100 * found.margin:.0f} pp",
            found.holds(control) is True,
        )
        for control in found.controls
    ]
    return rows


def _sentences(analysis: Analysis, directory: Path, how: str) -> Figure:
    page = directory / "report" / "index.html"
    text = " ".join(html.unescape(page.read_text(encoding="utf-8")).split())
    missing = [
        sentence for sentence in analysis.sentences if " ".join(sentence.split()) not in text
    ]
    total = len(analysis.sentences)
    return Figure(
        "The report says in words what each memory did",
        how,
        share(total - len(missing), total, missing) + " sentences stand in the report",
        "all",
        total == len(analysis.study.memories) and not missing,
    )
