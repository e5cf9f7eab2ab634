"""Commands that do something: `run`, `report`, `ablate`, `exam` and `export`."""

import asyncio
import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, cast, get_args

from langchain_core.language_models import BaseChatModel

from langgraft._core.arguments import validation_as
from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError, MissingExtraError, RunDirectoryError
from langgraft._core.files import atomic_write, write_whole
from langgraft.benchmarks.ablation.experiment import Experiment
from langgraft.benchmarks.ablation.running import Ablation, ablate, preview_ablation
from langgraft.benchmarks.ablation.study import load_experiment
from langgraft.benchmarks.exam import results, sitting
from langgraft.benchmarks.exam.histories import make_histories
from langgraft.benchmarks.harness.budget import Caps
from langgraft.benchmarks.harness.conversations import FORMS, Choice, Form, Split, export
from langgraft.benchmarks.harness.inspect_logs import write_inspect
from langgraft.benchmarks.harness.limits import CallLimits
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
from langgraft.benchmarks.harness.study import SIMULATED, Plan, RunSpec, Study
from langgraft.benchmarks.harness.verify import require_intact, sealed_report
from langgraft.benchmarks.reporting.pages import check_extra
from langgraft.benchmarks.studies import read_plan
from langgraft.cli.memory_moving import check_free
from langgraft.cli.printing import complain, say, show_table, write_json
from langgraft.memory.providers import provider_class

if TYPE_CHECKING:
    from langgraft.benchmarks.harness.cluster import Cluster

_LEAST_FREE: Final = 64 << 20
"""Bytes that a run directory's disk must have: even a small log needs some."""


def run(
    prepared: PreparedPlan[Any],
    out: Path,
    *,
    concurrency: int | None,
    processes: int | None,
    shard: str | None,
    ray: str | None,
    store: str | None,
    replay: Path | None,
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
        ray: Address of a Ray cluster whose nodes have the processes; `None`: this machine has.
        store: Where banks lie meanwhile; `None`: as the study has it.
        replay: Kept replies that alone answer; `None`: as the plan has it.
        as_json: Whether progress and findings are written as JSON.
        caps: Caps that come before the plan's.
    """
    part = None if shard is None else read_shard(shard)
    if part is not None and ray is not None:
        msg = "--shard and --ray: a shard is carried out by one process; a cluster has all of them"
        raise InputError(msg)
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
    replay = replay or plan.replay
    free = plan.model == SIMULATED or replay is not None
    budget = None if free else plan_budget(plan, out, caps, name)
    size = study.default_concurrency if concurrency is None else concurrency
    with ExitStack() as opened:
        cluster = None if ray is None else opened.enter_context(_connected(ray))
        if processes is None:
            processes = worth_processes(prepared, None if cluster is None else cluster.cores)
        many = min(processes, size)
        limits = CallLimits(size)
        models = opened.enter_context(
            run_models(study, plan, out, budget, limits, part=name, replay=replay)
        )
        if cluster is not None and not free:
            models = cluster.keeping(models)
        progress = make_progress("json" if as_json else "auto")
        opened.callback(progress.close)
        outcome = asyncio.run(
            _run(
                prepared,
                out,
                models,
                progress,
                concurrency=size,
                processes=many,
                start=None if cluster is None else cluster.start,
                shard=part,
                store=store,
                hours=caps.hours,
            )
        )
    _conclude(outcome, out, shard, as_json=as_json)
    return outcome.exit_code


def _conclude(outcome: PlanOutcome, out: Path, shard: str | None, *, as_json: bool) -> None:
    """Say what is missing, or write the report where nothing is."""
    for reason in outcome.reasons:
        complain(reason)
    if outcome.complete and shard is not None:
        say(f"shard {shard} is done; once all are: langgraft report {out}")
    elif outcome.complete:
        report(out, as_json=as_json)
    else:
        complain("not finished; run the same command again to go on")


def _connected(address: str) -> "AbstractContextManager[Cluster]":
    """Connect to a Ray cluster; Ray is imported by whoever asks for it alone.

    Raises:
        MissingExtraError: Ray is not installed.
        SettingsError: There is no such cluster.
    """
    from langgraft.benchmarks.harness.cluster import connected  # noqa: PLC0415

    return connected(address)


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


# Export ----------------------------------------------------------------------------------


INSPECT: Final = "inspect"


def form_named(name: str) -> Form:
    """Return a form by name.

    Raises:
        InputError: There is no such form.
    """
    for form in FORMS:
        if form == name:
            return form
    msg = f"--format is {', '.join(FORMS)} or {INSPECT}, got {name!r:.80}"
    raise InputError(msg)


def chosen_episodes(
    *,
    success: bool,
    split: str | None,
    conditions: Sequence[str] | None,
    domains: Sequence[str] | None,
    tasks: Sequence[str] | None,
) -> Choice:
    """Return which episodes to export, of the options as they were typed.

    Raises:
        InputError: There is no such split.
    """
    if split not in {None, *get_args(Split)}:
        msg = f"--split is {' or '.join(get_args(Split))}, got {split!r:.80}"
        raise InputError(msg)
    return Choice(
        success=success,
        split=cast("Split | None", split),
        conditions=tuple(conditions or ()),
        domains=tuple(domains or ()),
        tasks=tuple(tasks or ()),
    )


def write_episodes(
    directory: Path,
    form: Form,
    chosen: Choice,
    *,
    with_memory: bool,
    trust_modules: bool,
    out: Path | None,
    force: bool,
) -> None:
    """Verify a log, and write the episodes that are chosen to a file or to standard output: all or none.

    Raises:
        InputError: The log is damaged, its study cannot be exported, nothing is chosen, what an agent
            saw cannot be made again exactly, or the file is there already or cannot be written.
    """
    if out is not None:
        check_free(out, force=force)
    study, plan = _read_intact(directory, trust_modules=trust_modules)
    made = export(study.episodes(plan, PlanLog(directory)), form, chosen, with_memory=with_memory)
    if made.empty:
        complain(f"{made.empty} of {made.episodes} episodes hold no reply to learn from")
    text = "".join(made.lines)
    if out is None:
        sys.stdout.write(text)
        return
    try:
        write_whole(out, text.encode("ascii"))
    except OSError as error:
        msg = f"--out {out}: cannot be written: {error.strerror or error}"
        raise InputError(msg) from error
    say(f"{out}: {len(made.lines)} lines of {made.episodes} episodes")


def write_inspect_logs(
    directory: Path,
    chosen: Choice,
    *,
    with_memory: bool,
    trust_modules: bool,
    out: Path | None,
    force: bool,
) -> None:
    """Verify a log, and write it for Inspect's viewer: a folder with a file a run.

    Raises:
        InputError: The log is damaged, nothing is chosen, no folder is named, or it is not empty.
    """
    if out is None:
        raise InputError("--format inspect writes a log for each run: name a folder with --out")
    if out.exists() and not (out.is_dir() and (force or not any(out.iterdir()))):
        raise InputError(
            f"--out {out}: is there and not empty; --force writes into a folder that is"
        )
    study, plan = _read_intact(directory, trust_modules=trust_modules)
    made = write_inspect(study, plan, PlanLog(directory), out, chosen, with_memory=with_memory)
    for why, samples in made.unshown.most_common(5):
        complain(f"{samples} samples show steps, not prompts:{why}")
    say(f"{out}: {made.logs} logs of {made.samples} samples; inspect view start --log-dir {out}")


def _read_intact(directory: Path, *, trust_modules: bool) -> tuple[Study[Any], Plan]:
    """Verify a log that is to be exported; return its study and plan.

    Raises:
        InputError: The log is damaged, or its plan names code that is not trusted.
    """
    require_intact(directory, "nothing is exported")
    study, plan = read_plan(directory / "plan.yaml")
    foreign = study.foreign_code(plan)
    if foreign and not trust_modules:
        msg = (
            f"{directory}: to show what agents saw, {', '.join(foreign)} would be imported, which its"
            " plan names; give --trust-modules if you trust it"
        )
        raise InputError(msg)
    if foreign:
        look_here()
    for name in foreign:
        complain(f"importing {name}, which the plan names")
    return study, plan


# Does memory help an agent of one's own? -------------------------------------------------


def _experiment(name: str, model: str | None, base_url: str | None) -> Experiment:
    """Import an experiment, with another model where one is named.

    Raises:
        InputError: It cannot be imported, or the model would not be asked.
    """
    complain(f"importing {name}")
    found = load_experiment(name)
    if model is not None:
        found = replace(found, model=model)
        if not found.wants_model:
            msg = f"--model {model!r}: `build` of {name} takes no model: give it a second parameter, `model`"
            raise InputError(msg)
    if base_url is not None:
        if not isinstance(found.model, str):
            msg = f"--base-url {base_url!r}: {name} has no model by name: add --model, such as openai:qwen3"
            raise InputError(msg)
        found = replace(found, base_url=base_url)
    return found


def preview_experiment(
    experiment: str, *, model: str | None, base_url: str | None, as_json: bool, **choices: Any
) -> None:
    """Show what an experiment takes, and what it could find.

    Args:
        experiment: `package.module:object`.
        model: Another model, by name.
        base_url: Another server.
        as_json: Whether it is written as JSON.
        **choices: As `preview_ablation` takes them.

    Raises:
        InputError: It cannot be imported, or asks for something impossible.
    """
    found = preview_ablation(_experiment(experiment, model, base_url), **choices)
    if as_json:
        told: dict[str, JSON] = {
            "attempts": found.attempts,
            "most_dollars": found.cost,
            "calls": found.calls,
            "most_prompt_tokens": found.prompt_tokens,
            "most_completion_tokens": found.completion_tokens,
            "notes": list(found.notes),
        }
        write_json(told)
        return
    for line in str(found).splitlines():
        say(line)


def run_experiment(
    experiment: str,
    *,
    model: str | None,
    base_url: str | None,
    out: Path,
    summary: Path | None,
    as_json: bool,
    **choices: Any,
) -> int:
    """Run an experiment, or go on where it was stopped; return the exit code.

    Args:
        experiment: `package.module:object`.
        model: Another model, by name.
        base_url: Another server.
        out: The run directory.
        summary: File that the verdict is written to as Markdown.
        as_json: Whether the verdict is written as JSON, one document; progress goes to standard error.
        **choices: As `ablate` takes them.

    Raises:
        InputError: It cannot be imported, or something given is wrong.
        LanggraftError: It was stopped.
    """
    loaded = _experiment(experiment, model, base_url)
    progress = make_progress()
    try:
        found = ablate(loaded, out=out, name=experiment, progress=progress, **choices)
    finally:
        progress.close()
    if summary is not None:
        atomic_write(summary, found.summary().encode())
    _show_verdict(found, as_json=as_json)
    return found.exit_code


def _show_verdict(found: Ablation, *, as_json: bool) -> None:
    if as_json:
        write_json(found.to_json())
        return
    if found.analysis.arms:
        seconds = found.latency
        rows = [(*row, f"{seconds.get(row[0], 0.0):.2f}") for row in found.rows()]
        show_table(found.title, (*found.columns, "seconds"), rows)
    for line in (*found.lines(), f"page: {found.page}"):
        say(line)


def sit_exam(
    names: Sequence[str], *, out: Path | None, summary: Path | None, as_json: bool
) -> None:
    """Have memory systems take the exam, and show the table.

    Args:
        names: Providers by name or as `package.module:Class`; none: all there are. The references
            are always among them.
        out: Folder of the page and the tables.
        summary: File that the table is written to as Markdown.
        as_json: Whether to print JSON in place of the table.

    Raises:
        SettingsError: There is no such provider.
        RunDirectoryError: A file cannot be written.
    """
    check_extra()
    look_here()
    chosen = [*sitting.REFERENCES, *dict.fromkeys(names)] if names else sitting.everybody()
    for name in names:
        provider_class(name)  # before anybody sits down
    histories = make_histories()
    marks = [sitting.take_exam(name, histories) for name in chosen]
    if summary is not None:
        atomic_write(summary, results.markdown(marks).encode())
    if as_json:
        write_json([sitting.outcome(each) for each in marks])
        if out is not None:
            results.write_report(out, marks)
        return
    say("Questions answered right, in percent; docs/memory-exam.md says what the columns are.")
    for line in results.markdown(marks).splitlines():
        say(line)
    if out is not None:
        say(f"{results.write_report(out, marks)}")
