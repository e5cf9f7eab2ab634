"""A `CodingMemory` from journals: one episode a program, its error as diagnosed.

    journals = [read_journal(path) for path in paths]  # AIDE's, and those of our own searches
    with open_store("chroma:memory") as store:
        memory = build_memory(journals, store=store)

A program of ours has its diagnosis in the journal; a program of AIDE's is diagnosed by rules.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, cast

from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore

from langgraft._core.errors import InputError
from langgraft.memory.model import Episode, ErrorRecord, MemoryItem, Outcome, Step
from langgraft.memory.providers.coding import CodingMemory
from langgraft.memory.providers.coding.provider import CodingSettings
from langgraft.nodes.diagnose import Failure, diagnose_by_rules
from langgraft.nodes.replies import first_sentences
from langgraft.nodes.search.journal import Journal, JournalNode


def journal_episodes(journal: Journal) -> list[Episode]:
    """Turn a run into episodes, one a program, in the order of the steps.

    A program that failed has an error record. Its fix is what the first child that ran set out
    to do, and that child `resolves` it; without such a child, the fix of the diagnosis, if it
    has any, and that stays unverified. The journal is read when the run is over: a fix stands, as
    verified, in the record of a failure that came before it.
    """
    mended = _mended(journal)
    return [_episode(journal, node, mended) for node in journal.nodes]


def _mended(journal: Journal) -> Mapping[str, JournalNode]:
    """Return, by the id of a program that failed, its first child that ran."""
    failed = {node.id for node in journal.buggy}
    first: dict[str, JournalNode] = {}
    for node in journal.nodes:
        if not node.is_buggy and node.parent_id in failed:
            first.setdefault(node.parent_id or "", node)
    return first


def _episode(journal: Journal, node: JournalNode, mended: Mapping[str, JournalNode]) -> Episode:
    record = _record(node, mended.get(node.id)) if node.is_buggy else None
    # A second child that ran may have gone another way than the fix that is kept.
    resolved = node.parent_id if mended.get(node.parent_id or "") == node else None
    return Episode(
        id=f"{journal.run}/{node.id}",
        domain=f"mle/{journal.task}",
        task_id=journal.task,
        task=journal.task,
        steps=(Step(node.plan, node.code, node.output or node.analysis),),
        outcome=Outcome(
            success=not node.is_buggy,
            score=node.metric,
            reason=(node.exc_type or "no valid result") if node.is_buggy else "ran",
        ),
        errors=() if record is None else (record,),
        resolves=() if resolved is None else (f"{journal.run}/{resolved}",),
    )


def _record(node: JournalNode, child: JournalNode | None) -> ErrorRecord | None:
    record = _diagnosed(node)
    if record is None or child is None:
        return record
    fix = first_sentences(child.plan)
    return replace(record, fix=fix, verified=bool(fix))


def _diagnosed(node: JournalNode) -> ErrorRecord | None:
    """Return the diagnosis that the journal has, or else what rules make of it."""
    if node.error:
        try:
            return ErrorRecord(**cast("dict[str, Any]", node.error))
        except (TypeError, InputError) as error:
            msg = f"program {node.id!r:.80} (step {node.step}): `error` is no error record: {error}"
            raise InputError(msg) from error
    failure = Failure(
        output=node.output,
        code=node.code,
        analysis=node.analysis,
        exception=node.exc_type or "",
        message=node.exc_value or "",
    )
    return diagnose_by_rules(failure)


def build_memory(
    journals: Iterable[Journal],
    *,
    store: BaseStore | None = None,
    settings: CodingSettings | None = None,
) -> CodingMemory:
    """File the episodes of some runs, one run after the other; nobody is asked what is new.

    A run that the store's bank holds already, by its name, changes nothing, so that new runs are
    added by naming all of them again.

    Args:
        journals: The runs.
        store: Where to; `None` takes one in memory.
        settings: The memory's settings.

    Raises:
        InputError: A journal's error record is none; nothing is filed then.
    """
    episodes = [episode for journal in journals for episode in journal_episodes(journal)]
    memory = CodingMemory(InMemoryStore() if store is None else store, settings=settings)
    for episode in episodes:
        memory.file(episode)
    return memory


def journal_items(journals: Iterable[Journal]) -> list[MemoryItem]:
    """Return the entries of some runs as items, in order: what `build_memory` would keep of them."""
    items = build_memory(journals).content().items.values()
    return sorted(items, key=lambda item: item.order_index)


@dataclass(frozen=True, slots=True)
class Row:
    """An entry as the paper's Table 4 lists it, and what it does not tell."""

    task: str
    package: str
    error: str
    fix: str
    kind: str
    verified: bool
    seen: int
    """How many failures the entry stands for."""


def entry_table(memory: CodingMemory) -> list[Row]:
    """List the entries of a memory in the order in which they came (Table 4)."""
    content = memory.content()
    rows: list[Row] = []
    for item in sorted(content.items.values(), key=lambda item: item.order_index):
        told = {name: str(item.metadata.get(name, "")) for name in ("package", "error", "fix")}
        notes = content.notes.get(item.id, {})
        seen = notes.get("seen", 1)
        rows.append(
            Row(
                task=item.task_id or "",
                kind=str(item.metadata.get("kind", "")),
                verified=notes.get("verified") is True,
                seen=seen if isinstance(seen, int) else 1,
                **told,
            )
        )
    return rows


def write_table(rows: Iterable[Row]) -> str:
    """Write entries as a Markdown table."""
    lines = [
        "| task | package | error | fix | kind | verified | seen |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in rows:
        verified = "yes" if row.verified else "no"
        cells = (row.task, row.package, row.error, row.fix, row.kind, verified, str(row.seen))
        lines.append("| " + " | ".join(map(_cell, cells)) + " |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
