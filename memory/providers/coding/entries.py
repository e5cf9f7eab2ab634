"""Entries of the coding memory: error records in the form in which they are kept.

The published system asks its summarizer to leave out fixes that need new packages or internet
access (mle-agent-memory Fig. 5). Here a rule checks it again at filing, whoever wrote the fix.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft.memory.bank import Filter, portable_text
from langgraft.memory.episodes import Episode, ErrorKind, ErrorRecord
from langgraft.memory.items import MemoryItem, Scalar
from langgraft.memory.providers.coding.tracebacks import canonical_error
from langgraft.memory.questions import By

Need: TypeAlias = Literal["", "a new package", "the network"]
"""What a fix needs that is not there."""

_PACKAGES = re.compile(
    r"\b(?:pip3?|conda|mamba|apt(?:-get)?|yum|brew|uv|poetry)\s+(?:pip\s+)?(?:install|add|update|upgrade)\b"
    r"|\b(?:re-?)?install(?:ing)?\b(?!\s*(?:ed|ation))"
    r"|\b(?:up|down)grad(?:e|ing)\b"
    r"|\bupdat(?:e|ing)\s+(?:the\s+)?(?:\S+\s+)?(?:package|library|version|dependenc\w+)\b"
    r"|\bpin(?:ning)?\s+(?:the\s+)?\S+\s+(?:to\s+)?(?:version\b|[<>=]=)",
    re.IGNORECASE,
)
_NETWORK = re.compile(
    r"\b(?:https?|ftp)://"
    r"|\b(?:wget|curl|gdown)\s"
    r"|\bgit\s+clone\b"
    r"|\bdownload(?:ing|s)?\b"
    r"|\b(?:internet|online|network)\s+(?:access|connection|connectivity)\b"
    r"|\b(?:from|over|via|connect\w*\s+to)\s+the\s+(?:internet|web|network)\b"
    r"|\bfrom\s+(?:the\s+)?hugging\s?face\b",
    re.IGNORECASE,
)
_NEGATED = re.compile(
    r"\b(?:not|n't|never|no|without|avoid\w*|instead\s+of|rather\s+than|offline|disabl\w+|prevent\w*"
    r"|skip\w*|remov\w+|turn\w*\s+off|cannot|can't|don't|doesn't|already|fail\w*|lack\w*)"
    r"(?:\W+\w+){0,4}\W*$",
    re.IGNORECASE,
)
"""Words shortly before a match that take it back: `avoid downloading weights`."""
_CLAUSE: Final = re.compile(r"[.;\n](?:\s|$)|,\s+(?:and|then|or)\s|\s-\s")

GENERAL: Final = "general"
"""The package of errors that no package owns (mle-agent-memory §3.3)."""
LONGEST_FIX: Final = 2000
"""Most characters of a fix; the published summaries have one or two sentences (Fig. 5)."""

TASK: Final = "item.task_id"
PACKAGE: Final = "item.metadata.package"
KIND: Final = "item.metadata.kind"

PROVEN: Final = "verified"
"""In an item's metadata: it came with proof that its fix works, which travels with it."""


@dataclass(frozen=True, slots=True)
class CodingEntry:
    """An error and its fix, as they are kept (mle-agent-memory Eq. 3, without the task)."""

    package: str
    error: str
    """Canonical: class and message, without what changes from run to run."""
    fix: str
    """Empty where none is known, or the one known was left out."""
    kind: ErrorKind
    by: By
    verified: bool
    """The record came with a fix, which is kept, and with proof that it works."""
    left_out: Need
    """What the fix that was left out would have needed."""

    @property
    def key(self) -> str:
        """What the entry is embedded as: the error and its fix, put together (§3.3)."""
        return f"{self.error}\n{self.fix}" if self.fix else self.error

    @property
    def text(self) -> str:
        """The entry as an agent reads it."""
        fix = f"Fix: {self.fix}" if self.fix else "Fix: none known yet"
        return f"Package: {self.package}\nError: {self.error}\n{fix}"

    def shown(self) -> dict[str, JSON]:
        """Return what a judge sees of the entry."""
        return {
            "package": self.package,
            "error": self.error,
            "fix": self.fix,
            "kind": self.kind,
        }

    def item(self, episode: Episode, name: str, order_index: int) -> MemoryItem:
        """Make the item of the entry."""
        metadata: dict[str, Scalar] = {"package": self.package, "error": self.error}
        metadata |= {"fix": self.fix, "kind": self.kind, "by": self.by}
        if self.verified:
            metadata[PROVEN] = True
        if self.left_out:
            metadata["fix_left_out"] = f"it needs {self.left_out}"
        return MemoryItem(
            id=f"{episode.id}/{name}",
            text=self.text,
            type="error_trace",
            source_domain=episode.domain,
            episode_id=episode.id,
            success=episode.outcome.success,
            order_index=order_index,
            task_id=episode.task_id,
            key=self.key,
            metadata=metadata,
        )


def entry_of(record: ErrorRecord) -> CodingEntry | None:
    """Put a record into the form in which it is kept.

    Returns:
        The entry, or `None` for a record that tells of no error.

    Raises:
        InputError: The record holds a lone surrogate, which no log can hold.
    """
    for text in (record.package, record.error, record.fix):
        try:
            text.encode("utf-8")
        except UnicodeEncodeError as error:
            msg = f"error record {text!r:.80} holds a lone surrogate, which no log can hold"
            raise InputError(msg) from error
    error_text = canonical_error(record.error)
    if not error_text:
        return None
    fix = record.fix.strip()
    needs = fix_needs(fix)
    fix = "" if needs else _cut(fix)
    return CodingEntry(
        package=record.package.strip() or GENERAL,
        error=error_text,
        fix=fix,
        kind=record.kind,
        by=record.by,
        verified=record.verified and bool(fix),
        left_out=needs,
    )


def _cut(fix: str) -> str:
    return fix if len(fix) <= LONGEST_FIX else fix[: LONGEST_FIX - 1].rstrip() + "…"


def entries_of(episode: Episode) -> list[CodingEntry]:
    """Put the errors of an episode into the form in which they are kept.

    Raises:
        InputError: One of them holds a lone surrogate.
    """
    try:
        entries = [entry_of(record) for record in episode.errors]
    except InputError as error:
        msg = f"episode {episode.id!r} cannot be remembered: {error}"
        raise InputError(msg) from error
    return [entry for entry in entries if entry is not None]


def shown_neighbours(items: Sequence[MemoryItem]) -> dict[str, JSON]:
    """Return what a judge sees of the entries that a new one is compared with, by their ids."""
    return {
        item.id: {
            "package": item.metadata.get("package", GENERAL),
            "error": item.metadata.get("error", item.text),
            "fix": item.metadata.get("fix", ""),
            "kind": item.metadata.get("kind", ""),
        }
        for item in items
    }


def same_place(package: str, task_id: str | None) -> Filter:
    """Return the filter of entries of one package, and of one task unless that is `None`."""
    where: Filter = {PACKAGE: portable_text(package)}
    return where if task_id is None else where | {TASK: portable_text(task_id)}


def in_place(item: MemoryItem, package: str, task_id: str | None) -> bool:
    """Say what `same_place` says, exactly: a filter takes NUL for the character it is shown as."""
    task = task_id is None or item.task_id == task_id
    return task and item.metadata.get("package") == package


def has_words(text: str) -> bool:
    """Say whether there is anything in a text that an embedder of words can see."""
    return re.search(r"\w", text) is not None


def fix_needs(fix: str) -> Need:
    """Say what a fix needs that an offline run does not have; an empty text: nothing.

    The rule reads words, not intentions. It errs on the side of leaving a fix out; the error
    itself is always kept.
    """
    for clause in _CLAUSE.split(fix):
        if _asks(_PACKAGES, clause):
            return "a new package"
        if _asks(_NETWORK, clause):
            return "the network"
    return ""


def _asks(pattern: re.Pattern[str], clause: str) -> bool:
    found = pattern.finditer(clause)
    return any(not _NEGATED.search(clause[: match.start()]) for match in found)
