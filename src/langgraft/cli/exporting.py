"""`langgraft export`: episodes of a run directory as data to train a model on."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import cast, get_args

from langgraft._core.errors import InputError
from langgraft._core.files import write_whole
from langgraft.benchmarks.harness.conversations import FORMS, Choice, Form, Split, export
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.plans import look_here
from langgraft.benchmarks.harness.verify import require_intact
from langgraft.benchmarks.studies import read_plan
from langgraft.cli.memory_moving import check_free
from langgraft.cli.printing import complain, say


def form_named(name: str) -> Form:
    """Return a form by name.

    Raises:
        InputError: There is no such form.
    """
    for form in FORMS:
        if form == name:
            return form
    msg = f"--format is {', '.join(FORMS[:-1])} or {FORMS[-1]}, got {name!r:.80}"
    raise InputError(msg)


def choice(
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


def write(
    directory: Path, form: Form, chosen: Choice, *, with_memory: bool, out: Path | None, force: bool
) -> None:
    """Verify a log, and write the episodes that are chosen to a file or to standard output: all or none.

    Raises:
        InputError: The log is damaged, its study cannot be exported, nothing is chosen, what an agent
            saw cannot be made again exactly, or the file is there already or cannot be written.
    """
    if out is not None:
        check_free(out, force=force)
    require_intact(directory, "nothing is exported")
    study, plan = read_plan(directory / "plan.yaml")
    look_here()
    for name in study.foreign_code(plan) if with_memory else ():
        complain(f"importing {name}, which the plan names")
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
