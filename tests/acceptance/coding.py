"""The coding memory on real runs of AIDE: what it keeps, and what it finds for unseen runs."""

import os
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from coding_hits import (
    Asked,
    Comparison,
    compare,
    leave_one_run_out,
    likeness,
)
from langgraph.store.memory import InMemoryStore

from acceptance.figure import Figure, Setting, share
from langgraft.benchmarks.mle.coding_memory import (
    build_memory,
    entry_table,
    journal_episodes,
    write_table,
)
from langgraft.benchmarks.mle.journals import read_journals
from langgraft.memory.model import fold
from langgraft.memory.providers.coding import CodingMemory
from langgraft.memory.recall import RecallContext
from langgraft.nodes.search.journal import Journal

NEAREST: Final = 3
FEWEST_RUNS: Final = 3
"""Fewest runs whose interval is judged; only entries of all tasks are, as few tasks have two."""


def measure(setting: Setting) -> list[Figure]:
    """Build memories from the runs in `LANGGRAFT_DATA`; both sizes are the same, as it is small."""
    data = Path(os.environ.get("LANGGRAFT_DATA", setting.checkout.parent / "shared" / "data"))
    folder = data / "aide"
    if not folder.is_dir():
        absent = "not measured: LANGGRAFT_DATA has no folder `aide`"
        return [Figure("CodingMemory on real runs of AIDE", "", absent, "", passed=None)]
    journals = read_journals(folder)
    setting.say(f"a coding memory from {len(journals)} runs of AIDE")
    memory, folded = _filed(journals)
    nodes = sum(len(journal.nodes) for journal in journals)
    how = f"{len(journals)} runs of {len({j.task for j in journals})} tasks, {nodes} programs; errors diagnosed by rules"
    return [
        *_entries(setting, memory, journals, how, folded=folded),
        _kinds(memory, how),
        _apart(memory, journals, how),
        *_hits(journals, "all"),
        *_hits(journals, "same"),
        *(_likeness(memory, nearest) for nearest in (None, NEAREST)),
    ]


def _filed(journals: Sequence[Journal]) -> tuple[CodingMemory, bool]:
    """File all runs; say whether the fold of the deltas is the bank."""
    memory = CodingMemory(InMemoryStore())
    deltas = [memory.file(episode) for journal in journals for episode in journal_episodes(journal)]
    return memory, fold(deltas).to_bytes() == memory.content().to_bytes()


def _entries(
    setting: Setting, memory: CodingMemory, journals: Sequence[Journal], how: str, *, folded: bool
) -> list[Figure]:
    rows = entry_table(memory)
    path = setting.work / "coding-entries.md"
    path.write_text(write_table(rows), encoding="utf-8")
    failures = sum(len(journal.buggy) for journal in journals)
    seen, verified = sum(row.seen for row in rows), sum(row.verified for row in rows)
    again = build_memory(journals).content() == memory.content()
    return [
        Figure(
            "Every failure of a real run stands in the memory, listed by task, package, error and"
            " fix (mle-agent-memory Table 4)",
            how,
            f"{failures} failures, {seen} in {len(rows)} entries; {verified} with a fix that a child"
            f" program ran with; list in {path.name}",
            "all failures",
            passed=seen == failures,
        ),
        Figure(
            "Its deltas fold to its bank, and filing anew gives the same",
            how,
            share(folded + again, 2),
            "2 of 2",
            passed=folded and again,
        ),
    ]


def _kinds(memory: CodingMemory, how: str) -> Figure:
    counts = Counter(row.kind for row in entry_table(memory))
    total = sum(counts.values())
    listed = ", ".join(
        f"{kind} {counts[kind]} ({counts[kind] / total:.1%})"
        for kind in ("code", "environment", "resource")
    )
    return Figure(
        "Kinds of entries; timeouts are among those of resources",
        how,
        f"{listed}; n = {total}",
        "in the paper's dog-breed memory 40.7 % were timeouts (§4.6)",
        None,
    )


def _apart(memory: CodingMemory, journals: Sequence[Journal], how: str) -> Figure:
    """Ask for each task about every error of all tasks."""
    episodes = [episode for journal in journals for episode in journal_episodes(journal)]
    errors = sorted({record.error for episode in episodes for record in episode.errors})[::5]
    asked = own = 0
    for task in sorted({journal.task for journal in journals}):
        for error in errors:
            context = RecallContext(
                domain=f"mle/{task}",
                task_id=task,
                episode_id="asking",
                stage="debug",
                observation=error,
            )
            items = memory.provide(task, context).items
            asked += len(items)
            own += sum(item.task_id == task for item in items)
    return Figure(
        "With `tasks='same'` no entry of another task is recalled",
        f"{how}; {len(errors)} errors asked about under each task",
        share(own, asked),
        "all",
        passed=own == asked > 0,
    )


def _hits(journals: Sequence[Journal], tasks: Literal["all", "same"]) -> list[Figure]:
    """Tell of all errors first: those that name nothing cannot be hit, and count as missed."""
    asked = leave_one_run_out(journals, tasks=tasks)
    scope = "memory of all tasks" if tasks == "all" else "memory of the same task"
    if not asked:
        what = f"Leave one run out, {scope}"
        return [Figure(what, "", "no error to ask about", "", passed=None)]
    found = compare(asked)
    named = [each for each in asked if each.telling]
    judged = tasks == "all" and found.runs >= FEWEST_RUNS
    return [
        Figure(
            f"Leave one run out, {scope}: hits (same exception class and package, or same API"
            " symbol) beyond chance",
            _how(found, asked),
            f"{_told(found)}. {_of_named(named)}",
            "lower end by runs > 0" if judged else "reported, not judged: too few runs",
            passed=found.low > 0 if judged else None,
        )
    ]


def _how(found: Comparison, asked: Sequence[Asked]) -> str:
    recalled = max(each.recalled for each in asked)
    return (
        f"all {found.n} errors of {found.runs} runs; {recalled} entries recalled; chance is exact"
    )


def _of_named(named: Sequence[Asked]) -> str:
    if not named:
        return "None of them names a class or a symbol"
    found = compare(named)
    return (
        f"Of the {found.n} that name a class or a symbol, hits {found.rate:.1%}, chance"
        f" {found.chance:.1%}"
    )


def _told(found: Comparison) -> str:
    errors = found.by_error
    return (
        f"hits {found.rate:.1%}, chance {found.chance:.1%}, reachable {found.reachable:.1%};"
        f" difference {found.difference:+.1%}, 95 % by runs (bootstrap) {found.low:+.1%} to"
        f" {found.high:+.1%}, by errors (paired, too narrow) {errors.low:+.1%} to"
        f" {errors.high:+.1%}; sign-flip p over {found.runs} runs {found.p:.3f}, which cannot be"
        f" below {2 / 2**found.runs:.3f}"
    )


def _likeness(memory: CodingMemory, nearest: int | None) -> Figure:
    against = "all other entries" if nearest is None else f"the {nearest} nearest entries"
    what = f"Similarity of an error to {against} of its task, and of other tasks (App. B)"
    try:
        found = likeness(memory, nearest=nearest)
    except ValueError as error:  # too few tasks in this folder
        return Figure(what, "", f"not measured: {error}", "", passed=None)
    difference = found.difference
    return Figure(
        what,
        f"cosine of hashed words, {found.errors} errors, means by task, paired over"
        f" {found.tasks} tasks",
        f"{found.within:.3f} within, {found.across:.3f} across, ratio {found.ratio:.2f};"
        f" difference {difference.value:+.3f}, 95 % {difference.low:+.3f} to"
        f" {difference.high:+.3f}, t = {found.t:.2f}, n = {found.tasks} tasks",
        "the paper: 0.032 and 0.013, ratio 2.0 to 4.9, t = 10.69, n = 22 tasks, scale not given",
        None,
    )
