"""Entries of the coding memory: error records as they are kept, and what filing an episode changes.

The published system asks its summarizer to leave out fixes that need new packages or internet
access (mle-agent-memory Fig. 5). Here a rule checks it again at filing, whoever wrote the fix.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias, cast

from langgraph.store.base import GetOp, Item

from langgraft._core.canonical import JSON, portable_text
from langgraft._core.errors import InputError
from langgraft.memory import bank
from langgraft.memory.bank import with_free_ids
from langgraft.memory.model import (
    Add,
    Annotate,
    BankContent,
    By,
    Change,
    Episode,
    ErrorKind,
    ErrorRecord,
    MemoryItem,
    Remove,
    Scalar,
    SetState,
)
from langgraft.memory.providers.coding.tracebacks import canonical_error
from langgraft.memory.recall import Filter
from langgraft.memory.stores.programs import Namespace, Program

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
_SHORTLY: Final = 300
"""Characters before a match that are searched for them."""
_CLAUSE: Final = re.compile(r"[.;\n](?:\s|$)|,\s+(?:and|then|or)\s|\s-\s")

GENERAL: Final = "general"
"""The package of errors that no package owns (mle-agent-memory §3.3)."""
LONGEST_FIX: Final = 2000
"""Most characters of a fix; the published summaries have one or two sentences (Fig. 5)."""

NO_FIX: Final = "none known yet"
"""What a text says where no fix is known."""
_TEXT = re.compile(
    r"Package: (?P<package>[^\n]+)\nError: (?P<error>.+?)\nFix: (?P<fix>.+)", re.DOTALL
)

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
        return f"Package: {self.package}\nError: {self.error}\nFix: {self.fix or NO_FIX}"

    @classmethod
    def told_by(cls, item: MemoryItem) -> "CodingEntry | None":
        """Read the text of an entry that was edited; `None` where it is in words of its own."""
        found = _TEXT.fullmatch(item.text)
        if found is None:
            return None
        fix = "" if found["fix"] == NO_FIX else found["fix"]
        kind = cast("ErrorKind", item.metadata.get("kind", "code"))
        by = cast("By", item.metadata.get("by", "model"))
        return cls(found["package"], found["error"], fix, kind, by, verified=False, left_out="")

    def shown(self) -> dict[str, JSON]:
        """Return what a judge sees of the entry."""
        return {
            "package": self.package,
            "error": self.error,
            "fix": self.fix,
            "kind": self.kind,
        }

    @property
    def metadata(self) -> dict[str, Scalar]:
        """What the item of the entry says of it in fields."""
        metadata: dict[str, Scalar] = {"package": self.package, "error": self.error}
        metadata |= {"fix": self.fix, "kind": self.kind, "by": self.by}
        if self.verified:
            metadata[PROVEN] = True
        if self.left_out:
            metadata["fix_left_out"] = f"it needs {self.left_out}"
        return metadata

    def item(self, episode: Episode, name: str, order_index: int) -> MemoryItem:
        """Make the item of the entry."""
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
            metadata=self.metadata,
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
    found = (match.start() for match in pattern.finditer(clause))
    return any(not _NEGATED.search(clause[max(0, at - _SHORTLY) : at]) for at in found)


_ENTRIES: Final = "entries/"
REPLACED: Final = "a better fix of its error is known:"
"""Why an entry was removed; the id of the one in its place follows."""


def entries_key(episode_id: str) -> str:
    """Name the bookkeeping that lists the entries which hold an episode's errors and fixes."""
    return _ENTRIES + episode_id


READ_OFF: Final = frozenset(
    {"key", "package", "error", "fix", "kind", "by", PROVEN, "fix_left_out"}
)
"""What an entry's item says beside its text, and is read off it."""


def edited_entry(old: MemoryItem, new: MemoryItem) -> MemoryItem:
    """Return an entry whose text was edited with what its text says now; nothing proves it yet.

    One in words of its own is an entry without an error or a fix in fields, as an imported one may be.
    """
    entry = CodingEntry.told_by(new)
    gone = {"error", "fix", PROVEN, "fix_left_out"}
    rest = {name: value for name, value in new.metadata.items() if name not in gone}
    if entry is not None:
        told: dict[str, Scalar] = {"package": entry.package, "error": entry.error, "fix": entry.fix}
        return new.model_copy(update={"metadata": {**rest, **told}, "key": entry.key})
    key = None if "error" in old.metadata else new.key
    return new.model_copy(update={"metadata": rest, "key": key})


def without_entry(content: BankContent, item: MemoryItem) -> list[Change]:
    """Say what takes an entry off the lists of what holds an episode's errors and fixes."""
    pair = [item.id, item.order_index]
    lists = {
        key: cast("list[JSON]", held)
        for key, held in content.state.items()
        if key.startswith(_ENTRIES) and isinstance(held, list) and pair in held
    }
    left = {key: [each for each in held if each != pair] for key, held in lists.items()}
    return [SetState(key, cast("JSON", held) or None) for key, held in left.items()]


class Filing:
    """Gathers the changes of one episode.

    Args:
        namespace: The bank.
        episode: The episode.
        order_index: The number of its first new item.
    """

    def __init__(self, namespace: Namespace, episode: Episode, order_index: int) -> None:
        self._namespace = namespace
        self._episode = episode
        self._order_index = order_index
        self._added: list[MemoryItem] = []
        self._gone: dict[str, MemoryItem] = {}
        """Entries whose place another one has taken, by their ids."""
        self._notes: dict[str, dict[str, JSON]] = {}
        """Notes that change, as they will be; others on the same items, such as uses, do not."""
        self._standing: dict[str, int] = {}
        """What stands for the episode's errors with the same fixes: ids with `order_index`."""

    def equal(self, entry: CodingEntry) -> MemoryItem | None:
        """Return an equal entry that this episode itself has added."""
        return next(
            (
                item
                for item in self._added
                if (item.retrieval_key, item.metadata["package"]) == (entry.key, entry.package)
            ),
            None,
        )

    def add(self, entry: CodingEntry) -> Program[None]:
        """Add an entry."""
        number = len(self._added)
        item = entry.item(self._episode, f"error-{number}", self._order_index + number)
        # Now: the bookkeeping has to name it as the bank will.
        (change,) = yield from with_free_ids(self._namespace, [Add(item)])
        item = cast("Add", change).item
        self._added.append(item)
        self._standing[item.id] = item.order_index
        if entry.verified:
            self.verify([item])

    def current(self, item: MemoryItem) -> MemoryItem:
        """Return an entry, or the last of those that took its place in this episode."""
        while item.id in self._gone:
            item = self._gone[item.id]
        return item

    def replace(self, item: MemoryItem, entry: CodingEntry) -> Program[None]:
        """Let an entry take another one's place, and stand for all that it stood for."""
        seen = yield from self._seen(item)
        self._notes.pop(item.id, None)
        yield from self.add(entry)
        new = self._added[-1]
        self._gone[item.id] = new
        self._notes.setdefault(new.id, {})["seen"] = seen + 1

    def count(self, item: MemoryItem, entry: CodingEntry) -> Program[None]:
        """Count a record for an entry that already stands for it.

        A judge may merge records with different fixes: what proves the record's, now or when a
        later episode resolves this one, says nothing about the entry's.
        """
        notes = self._notes.setdefault(item.id, {})
        if "seen" not in notes:
            notes["seen"] = yield from self._seen(item)
        notes["seen"] = cast("int", notes["seen"]) + 1
        if item.metadata.get("fix") == entry.fix:
            self._standing[item.id] = item.order_index
            if entry.verified:
                self.verify([item])

    def verify(self, items: Iterable[MemoryItem]) -> None:
        """Note that fixes work; an entry without a fix, or that is gone, has nothing to verify."""
        for item in items:
            if item.metadata.get("fix") and item.id not in self._gone:
                self._notes.setdefault(item.id, {})["verified"] = True

    def changes(self) -> list[Change]:
        """Return what changes, in order."""
        listed: list[JSON] = [[name, order] for name, order in self._standing.items()]
        return [
            *(Add(item) for item in self._added),
            *(Remove(old, f"{REPLACED} {new.id}") for old, new in self._gone.items()),
            *(Annotate(name, notes) for name, notes in self._notes.items()),
            *([SetState(entries_key(self._episode.id), listed)] if listed else ()),
        ]

    def _seen(self, item: MemoryItem) -> Program[int]:
        """Return how many records an entry stands for, as the bank has it."""
        notes = yield from self.notes(item)
        return cast("int", notes.get("seen", 1))

    def notes(self, item: MemoryItem) -> Program[Mapping[str, JSON]]:
        """Return the notes on an entry, with what this episode changes of them."""
        (record,) = yield [GetOp(self._namespace, bank.item_key(item.id))]
        kept = bank.loaded([cast("Item | None", record)]).notes.get(item.id, {})
        return {**kept, **self._notes.get(item.id, {})}
