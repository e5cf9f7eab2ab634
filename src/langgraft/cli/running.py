"""Commands that do something: `run` and `report`."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from langchain_core.language_models import BaseChatModel

from langgraft._core.arguments import validation_as
from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError, MissingExtraError, RunDirectoryError
from langgraft.benchmarks.harness.budget import Caps
from langgraft.benchmarks.harness.inflight import CallLimits
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.models import plan_budget, run_models
from langgraft.benchmarks.harness.plans import PreparedPlan, look_here
from langgraft.benchmarks.harness.progress import PlanOutcome, Progress, make_progress
from langgraft.benchmarks.harness.schedule import (
    Shard,
    run_plan,
    stop_on_signals,
    worth_processes,
)
from langgraft.benchmarks.harness.study import SIMULATED, RunSpec
from langgraft.benchmarks.harness.verify import sealed_report
from langgraft.benchmarks.studies import read_plan
from langgraft.cli.printing import complain, say, show_table, write_json

_LEAST_FREE: Final = 64 << 20
"""Bytes that a run directory's disk must have: even a small log needs some."""


def run(
    prepared: PreparedPlan[Any],
    out: Path,
    *,
    concurrency: int | None,
    processes: int | None,
    shard: str | None,
    store: str | None,
    as_json: bool,
    caps: Caps,
) -> int:
    """Run a plan, write its report and return the exit code.

    Args:
        prepared: The plan.
        out: The run directory.
        concurrency: Items under way at the same time, over all runs; `None`: as the study has it.
        processes: Processes that share the runs; `None`: as many as the plan is worth.
        shard: The part of the runs to carry out, as `0/4`; `None`: all, and the report.
        store: Where banks lie meanwhile; `None`: as the study has it.
        as_json: Whether progress and findings are written as JSON.
        caps: Caps that come before the plan's.
    """
    part = None if shard is None else read_shard(shard)
    look_here()
    refuse_full_disk(out)
    for name in prepared.study.foreign_code(prepared.plan):
        complain(f"importing {name}, which the plan names")
    if not prepared.exact:  # a preview could not tell
        for note in prepared.study.notes(prepared.plan, [run.spec for run in prepared.graph]):
            complain(note)
    plan, study = prepared.plan, prepared.study
    caps, name = caps.over(plan.caps), ""
    if part is not None:
        caps, name, processes = caps.shared(part.count), part.name, 1
    budget = None if plan.model == SIMULATED else plan_budget(plan, out, caps, name)
    size = study.default_concurrency if concurrency is None else concurrency
    many = worth_processes(prepared) if processes is None else processes
    many = min(many, size)
    limits = CallLimits(-(-size // many))
    with run_models(study, plan, out, budget, limits, part=name) as model_for:
        progress = make_progress("json" if as_json else "auto")
        try:
            outcome = asyncio.run(
                _run(
                    prepared,
                    out,
                    model_for,
                    progress,
                    concurrency=size,
                    processes=many,
                    shard=part,
                    store=store,
                    hours=caps.hours,
                )
            )
        finally:
            progress.close()
    for problem in outcome.problems:
        complain(f"{problem.name}: {problem.message}")
    if outcome.complete and part is not None:
        say(f"shard {shard} is done; once all are: langgraft report {out}")
    elif outcome.complete:
        report(out, as_json=as_json)
    else:
        complain("not finished; run the same command again to go on")
    return outcome.exit_code


def read_caps(
    calls: int | None, tokens: int | None, dollars: float | None, hours: float | None
) -> Caps:
    """Return caps as a command has them.

    Raises:
        InputError: One of them is 0, which would allow nothing.
    """
    with validation_as(InputError):
        return Caps(calls=calls, tokens=tokens, dollars=dollars, hours=hours)


def read_shard(text: str) -> Shard:
    """Return the shard that is written as `0/4`.

    Raises:
        InputError: It is none.
    """
    index, _, count = text.partition("/")
    if not (index.isdecimal() and count.isdecimal() and int(index) < int(count)):
        msg = f"--shard {text!r:.40}: give the number of the shard, from 0, and how many there are: 0/4"
        raise InputError(msg)
    return Shard(int(index), int(count))


def refuse_full_disk(out: Path) -> None:
    """Refuse a run directory on a disk that is full, before anything is paid for.

    Raises:
        RunDirectoryError: It is.
    """
    there = next(each for each in (out.absolute(), *out.absolute().parents) if each.exists())
    free = shutil.disk_usage(there).free
    if free < _LEAST_FREE:
        msg = f"its disk is full ({free:,} bytes are left): make room, or name another place with --out"
        raise RunDirectoryError(msg, path=out)


async def _run(
    prepared: PreparedPlan[Any],
    out: Path,
    model_for: Callable[[Any, RunSpec], BaseChatModel],
    progress: Progress,
    **choices: Any,
) -> PlanOutcome:
    stop = asyncio.Event()
    with stop_on_signals(stop, progress.close):
        return await run_plan(
            prepared, out, model_for=model_for, progress=progress, stop=stop, **choices
        )


def report(directory: Path, *, as_json: bool) -> None:
    """Verify a run directory, write its report and show its findings.

    Raises:
        RunDirectoryError: Its log is damaged; no report is written.
    """
    try:
        with sealed_report(directory) as folder:
            study, plan = read_plan(directory / "plan.yaml")
            written = study.report(plan, PlanLog(directory), folder)
    except MissingExtraError as error:
        complain(f"no report: {error}")
        return
    if as_json:
        rows: list[JSON] = [*written.json_rows()]
        write_json({"report": str(written.page), "findings": list(written.lines), "rows": rows})
        return
    show_table(written.title, written.columns, written.rows)
    for line in (*written.lines, f"report: {written.page}"):
        say(line)
