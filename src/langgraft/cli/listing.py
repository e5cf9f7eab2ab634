"""Commands that only show: `plans`, `preview`, `status`, `watch`, `verify`."""

import shlex
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from langgraft._core.canonical import JSON
from langgraft._core.effects import SystemClock
from langgraft._core.errors import MissingExtraError, PlanError
from langgraft._core.files import atomic_write
from langgraft.benchmarks.harness.budget import (
    in_dollars,
    price_of,
    read_all_spent,
    shipped_prices,
)
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.progress import Spent, format_seconds, spending
from langgraft.benchmarks.harness.study import SIMULATED
from langgraft.benchmarks.harness.watching import PlanWatch, groups_of, is_held
from langgraft.cli.printing import complain, say, show_table, write_json

if TYPE_CHECKING:  # `status` is light
    from langgraft.benchmarks.harness.plans import PreparedPlan
    from langgraft.benchmarks.harness.study import Plan


_AT_MOST: Final = "items and model calls are the most there can be, as a world was not looked at"


def show_plans(*, as_json: bool) -> None:
    """List the plans that ship, and what each asks for; where its data is missing, what is missing."""
    from langgraft.benchmarks.studies import read_shipped_plans  # noqa: PLC0415

    names = ("name", "title", "runs", "items", "missing")
    rows: list[tuple[str, str, int | None, int | None, str | None]] = []
    for name, study, plan in read_shipped_plans():
        try:
            rows.append((name, plan.title, *study.size(plan), None))
        except PlanError as error:
            rows.append((name, plan.title, None, None, str(error)))
    if as_json:
        write_json([dict(zip(names, row, strict=True)) for row in rows])
        return
    told = [["-" if cell is None else cell for cell in row[:4]] for row in rows]
    show_table("Plans", names[:4], told)
    for name, *_, missing in rows:
        if missing is not None:
            say(f"{name}: {missing}")


def show_preview(prepared: "PreparedPlan[Any]", *, as_json: bool) -> None:
    """Show what a plan would run."""
    from langgraft.benchmarks.reporting.findings import registered_lines  # noqa: PLC0415  (numpy)

    runs_of_plan = [run.spec for run in prepared.outline]
    runs: Counter[tuple[str, str]] = Counter()
    items: Counter[tuple[str, str]] = Counter()
    calls: Counter[tuple[str, str]] = Counter()
    groups = groups_of(run.spec for run in prepared.outline)
    for run in prepared.outline:
        group = groups[run.name]
        runs[group] += 1
        items[group] += run.length
        calls[group] += prepared.study.most_calls(prepared.plan, run.spec)
    rows = [(*group, runs[group], items[group], calls[group]) for group in runs]
    total = (runs.total(), items.total(), calls.total())
    foreign = prepared.study.foreign_code(prepared.plan)
    notes = (
        *registered_lines(prepared.study, prepared.plan, runs_of_plan),
        *prepared.study.notes(prepared.plan, runs_of_plan),
        *(() if prepared.exact else (_AT_MOST,)),
        *(f"running it imports {name}, which was not looked at" for name in foreign),
        *_cost_lines(prepared.plan, calls.total(), prepared.study.default_concurrency),
    )
    if as_json:
        names = ("condition", "kind", "runs", "items", "most_model_calls")
        told: list[JSON] = [dict(zip(names, row, strict=True)) for row in rows]
        shown: dict[str, JSON] = {"groups": told, "total": list(total), "notes": list(notes)}
        write_json({"plan": dict(prepared.resolved), **shown})
        return
    columns = ("condition", "kind", "runs", "items", "model calls ≤")
    show_table(prepared.plan.title, columns, [*rows, ("total", "", *total)])
    for line in (f"model: {prepared.plan.model}", *notes):
        say(line)


_SENT, _REPLIED, _CALL_SECONDS = 3_000, 300, 5.0
"""Tokens and seconds of a call that money and time are told for: an agent's step in a text world."""


def _cost_lines(plan: "Plan", calls: int, concurrency: int) -> Iterator[str]:
    """Say what calls of a real model cost and how long they take, by a call of a size that is named."""
    if plan.model == SIMULATED:
        return
    hours = calls * _CALL_SECONDS / concurrency / 3600
    yield (
        f"a call that sends {_SENT:,} tokens, gets {_REPLIED} and takes {_CALL_SECONDS:g} s makes"
        f" {calls * (_SENT + _REPLIED):,} tokens and, {concurrency} at once, {hours:,.1f} h at most"
    )
    as_of, _ = shipped_prices()
    price = price_of(plan.model, plan.prices)
    if price is None:
        yield f"money: no price of {plan.model!r} is known; give the plan `prices` to have it counted"
        return
    money = in_dollars(calls * price.cost(_SENT, _REPLIED))
    worst = in_dollars(calls * price.cost(_SENT, plan.max_tokens))
    where = "the plan's prices" if plan.prices else f"prices of {as_of}"
    yield (
        f"money: about {money:,.2f} dollars then, by {where}; {worst:,.2f} if every reply had"
        f" {plan.max_tokens:,} tokens; `--max-cost` caps it"
    )


def show_checks(prepared: "PreparedPlan[Any]", *, as_json: bool) -> bool:
    """Show what was found of what a plan's runs need, a line each; say whether all is there."""
    study, good = prepared.study, True
    told: list[JSON] = []
    for each in study.try_out(prepared.plan, [run.spec for run in prepared.outline]):
        good &= each.ok
        told.append({"what": each.what, "ok": each.ok, "told": each.told})
        if not as_json:
            say(f"{'ok   ' if each.ok else 'FAILS'} {each.what}: {each.told}")
    if as_json:
        write_json({"checks": told})
    elif not told:
        say(f"check: runs of the study {study.name!r} need nothing beside the plan itself")
    return good


_MOST_ROWS: Final = 100
"""Of unfinished runs: drawing thousands takes longer than finding them."""


def show_status(directory: Path, *, as_json: bool) -> None:
    """Show how far each run of a directory is."""
    log = PlanLog(directory)
    progress = log.progress()
    spent = read_all_spent(directory)
    # A simulated model costs nothing, and thousands of logs take a second to read.
    by = () if spent is None else spending(log)
    held, complete = is_held(directory), all(run.finished for run in progress)
    if as_json:
        runs: list[JSON] = [
            {"run": run.name, "id": run.id, "done": run.done, "planned": run.planned}
            for run in progress
        ]
        parted: list[JSON] = [asdict(each) for each in by]
        write_json(
            {
                "complete": complete,
                "running": held,
                "runs": runs,
                "spent": spent,
                "spent_by": parted,
            }
        )
        return
    unfinished = [run for run in progress if not run.finished]
    begun_first = sorted(unfinished, key=lambda run: run.done == 0)
    rows = [(run.name, run.done, run.planned) for run in begun_first[:_MOST_ROWS]]
    if rows:
        show_table("Unfinished runs", ("run", "done", "planned"), rows)
    if len(unfinished) > len(rows):
        say(f"and {len(unfinished) - len(rows):,} more unfinished runs; --json lists all")
    if by:
        shown = [(s.condition, s.node or "-", s.calls, s.tokens, _dollars(s)) for s in by]
        show_table("Spent", ("condition", "node", "calls", "tokens", "dollars"), shown)
    finished = len(progress) - len(unfinished)
    done, planned = sum(run.done for run in progress), sum(run.planned for run in progress)
    say(f"{finished} of {len(progress)} runs finished, {done} of {planned} items committed")
    if not complete:
        say("somebody is running it" if held else _stopped(directory))
    if spent is not None:
        money = f", {spent['dollars']:,.2f} dollars" if spent["dollars"] else ""
        say(f"asked of real models: {spent['calls']:,} calls, {spent['tokens']:,} tokens{money}")


def watch(directory: Path, *, page: Path | None, with_page: bool, every: float) -> bool:
    """Follow a plan until it ends: a line whenever something is new, and the page at every look.

    Args:
        directory: Its run directory; others write to it.
        page: The page to write; `None`: `watch.html` in the directory.
        with_page: Whether one is written.
        every: Seconds between two looks.

    Returns:
        Whether the plan is done; else nobody works on it any more.

    Raises:
        RunDirectoryError: It is no run directory, is damaged, or the page cannot be written.
    """
    clock, told, problems = SystemClock(), "", set[tuple[str, str]]()
    seen = PlanWatch(directory, clock)
    target = (page or directory / "watch.html") if with_page else None
    while True:
        seen.look()
        ended = seen.complete or seen.stopped
        if target is not None:
            target = write_watch_page(target, seen, None if ended else every)
        if not told and target is not None:
            say(f"page: {target.absolute()}")
        for run in seen.runs:
            if run.problem and (run.run.name, run.problem) not in problems:
                problems.add((run.run.name, run.problem))
                say(f"{run.run.name}: {run.problem}")
        if (line := seen.line()) != told:
            told = line
            say(f"{time.strftime('%H:%M:%S')} {line}")
        if ended:
            break
        time.sleep(every)
    rows = [
        (g.condition, g.kind, f"{g.states['done']}/{g.states.total()}",
         f"{g.counts.done}/{g.counts.planned}", g.counts.score, g.counts.spend())
        for g in seen.groups.values()
    ]  # fmt: skip
    show_table("Conditions", ("condition", "kind", "runs", "items", "successes", "spent"), rows)
    if not seen.complete:
        say(_stopped(directory))
    return seen.complete


def _stopped(directory: Path) -> str:
    """Say how a plan goes on that nobody works on."""
    command = shlex.join(
        ["langgraft", "run", str(directory / "plan.yaml"), "--out", str(directory)]
    )
    return f"stopped (nobody is running it); go on with: {command}"


def write_watch_page(target: Path, seen: PlanWatch, every: float | None) -> Path | None:
    """Write the page of a plan; return where, or `None` where that takes what is not installed.

    Args:
        target: The file.
        seen: The plan.
        every: Seconds after which a browser loads it anew; `None` for the last page.

    Raises:
        RunDirectoryError: It cannot be written.
    """
    from langgraft.benchmarks.reporting.pages import environment  # noqa: PLC0415  ([bench])

    try:
        template = environment(moment=_moment, duration=format_seconds).get_template(
            "watch.html.jinja"
        )
    except MissingExtraError as error:
        complain(f"no page: {error}")
        return None
    text = template.render(watch=seen, every=every, now=time.time(), title=seen.title)
    atomic_write(target, f"{text}\n".encode())
    return target


def _moment(seconds: float) -> str:
    """Write a moment, in seconds since the epoch, as UTC."""
    try:
        return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds))
    except (ValueError, OverflowError, OSError):  # a line of others
        return "?"


def _dollars(spent: Spent) -> str:
    return "-" if spent.dollars is None else f"{spent.dollars:,.4f}"


def show_findings(directory: Path, *, as_json: bool) -> bool:
    """Show what is wrong with a directory; say whether anything is."""
    from langgraft.benchmarks.harness.verify import INTEGRITY, verify_directory  # noqa: PLC0415

    every = verify_directory(directory)
    findings = [finding for finding in every if not finding.on_request]
    asked = [finding for finding in every if finding.on_request]
    if as_json:
        found, erased = (
            [{"path": str(each.path), "message": each.message} for each in listed]
            for listed in (findings, asked)
        )
        told: dict[str, Any] = {"erased": erased} if erased else {}
        write_json({"findings": found, **told, "scope": INTEGRITY})
    else:
        for finding in every:
            say(str(finding))
        count = f"{len(findings)} findings" if findings else "nothing wrong found"
        say(f"{count}. {INTEGRITY}")
    return bool(findings)
