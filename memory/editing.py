"""Changes by hand: an item is forgotten or edited, a bank cleared, and what follows from an item follows it.

Each is one step under the bank's write lock, and returns the delta that was applied; the fold of all
deltas goes on being the bank. What follows an item:

=========================================  ======================================================
what                                       by
=========================================  ======================================================
its notes, its place in every index        every provider; counted uses start afresh where another
                                           text earned them
its key, where that is of its text         every provider
queues, bundles, attempts, proofs          the provider that keeps them: `_edited`, `_follow`
=========================================  ======================================================

What stays: other items, those of the same episode included, each of which has an id of its own; and
the mark that the episode was filed, so that handing it in again does not bring back what was forgotten.
What was copied out of the bank before (exports, logs of deltas, checkpoints) is not reached from here.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final, TypeVar

from langgraph.store.base import BaseStore, SearchOp

from langgraft._core.arguments import checked, did_you_mean, validation_as
from langgraft._core.effects import in_thread
from langgraft._core.errors import InputError
from langgraft.memory import bank
from langgraft.memory.forgetting import SUCCESSES, USES
from langgraft.memory.generations import next_generation
from langgraft.memory.model import (
    Add,
    Annotate,
    BankContent,
    Change,
    MemoryDelta,
    MemoryItem,
    Remove,
    Scalar,
    SetState,
)
from langgraft.memory.stores.kept_indexes import change_log
from langgraft.memory.stores.programs import Namespace, Program

T = TypeVar("T")

FORGOTTEN: Final = "forgotten by hand"
EDITED: Final = "edited by hand"
CLEARED: Final = "the bank was cleared"
"""Reasons of removals."""

_FEEDBACK: Final = "feedback"
"""Metadata that guards against gold answers."""
_BEGINNING: Final = 40
"""Characters of a key by which a text is known to quote it: notes leave out the middle of long ones."""


class Editable:
    """What providers can be asked to change by hand; a base of `MemoryProvider`."""

    namespace: Namespace
    store: BaseStore
    _keeps_index: bool
    derived: frozenset[str] = frozenset()
    """`key`, or names of metadata, that are read off an item's text, so that nobody edits them."""

    if TYPE_CHECKING:

        def _write(self, program: Program[T]) -> T: ...
        async def _awrite(self, program: Program[T]) -> T: ...

    @checked
    def forget(self, item_id: str) -> MemoryDelta:
        """Take an item out of the bank, with all that follows from it, and return what that changed.

        Args:
            item_id: The id of the item, as recalls and `content()` have it.

        Raises:
            InputError: The bank holds no such item; nothing is changed.
            ReadOnlyStoreError: The bank is frozen.
            BankConflictError: As for `file`.
        """
        return self._write(self._revised(lambda content: self._forgetting(content, item_id)))

    @checked
    async def aforget(self, item_id: str) -> MemoryDelta:
        """Do as `forget` does, asynchronously."""
        return await self._awrite(self._revised(lambda content: self._forgetting(content, item_id)))

    @checked
    def edit(
        self,
        item_id: str,
        *,
        text: str | None = None,
        key: str | None = None,
        metadata: Mapping[str, Scalar | None] | None = None,
    ) -> MemoryDelta:
        """Change what an item says, or what it is found by, and return what that changed.

        The item keeps its id and its age, and its votes where it has any. Where and when it was
        learned (type, domain, task, episode, success) is not for editing, nor is what a provider
        reads off the text, such as an error's fix: edit the text. An edit that changes nothing
        returns an empty delta.

        Args:
            item_id: The id of the item, as recalls and `content()` have it.
            text: The new text; `None` leaves it as it is.
            key: What the item is found by from now on. `None` leaves it as it is, except where it
                stood in the old text and does not in the new: then the new text takes its place.
            metadata: Fields to set, or with `None` to erase; the others stay.

        Raises:
            InputError: The bank holds no such item, there is nothing to change, or a value is not
                possible; nothing is changed.
            ReadOnlyStoreError: The bank is frozen.
            BankConflictError: As for `file`.
        """
        return self._write(
            self._revised(lambda content: self._editing(content, item_id, text, key, metadata))
        )

    @checked
    async def aedit(
        self,
        item_id: str,
        *,
        text: str | None = None,
        key: str | None = None,
        metadata: Mapping[str, Scalar | None] | None = None,
    ) -> MemoryDelta:
        """Do as `edit` does, asynchronously."""
        return await self._awrite(
            self._revised(lambda content: self._editing(content, item_id, text, key, metadata))
        )

    def clear(self) -> MemoryDelta:
        """Empty the bank, bookkeeping and all, and return what that changed: it is as new then.

        It no longer knows what was filed, so an episode that is handed in again is learned again. What
        began before, and is filed with its `generation`, is refused.

        Raises:
            ReadOnlyStoreError: The bank is frozen.
            BankConflictError: As for `file`.
        """
        return self._write(self._cleared())

    async def aclear(self) -> MemoryDelta:
        """Do as `clear` does, asynchronously."""
        return await self._awrite(self._cleared())

    # What a provider writes ---------------------------------------------------------------

    def _edited(self, old: MemoryItem, new: MemoryItem) -> MemoryItem:  # noqa: ARG002
        """Return an item whose text was edited, with what is read off that text."""
        return new

    def _follow(
        self,
        content: BankContent,  # noqa: ARG002  (for subclasses)
        old: MemoryItem,  # noqa: ARG002
        new: MemoryItem | None,  # noqa: ARG002
    ) -> Sequence[Change]:
        """Say what else changes where an item is forgotten or edited; `reworded` edits other items.

        Args:
            content: The bank as it was.
            old: The item as it was.
            new: The item as it is now; `None` where it is forgotten.

        Raises:
            InputError: It cannot be changed by itself.
        """
        return ()

    # How it is put together ---------------------------------------------------------------

    def _cleared(self) -> Program[MemoryDelta]:
        yield from next_generation(self.namespace)
        return (yield from self._revised(_clearing))

    def _revised(self, revision: Callable[[BankContent], MemoryDelta]) -> Program[MemoryDelta]:
        content = yield from bank.read_content(self.namespace)
        delta = revision(content)
        yield from bank.apply_delta(self.namespace, delta)
        log = change_log(self.store)
        if delta and log is not None:  # an index kept beside the store holds words that are gone
            yield in_thread(log.indexes.drop, self.namespace)
        if self._keeps_index and delta:
            # An index on disk takes in what was written when it is next asked, and is saved then.
            yield [SearchOp(self.namespace, query="forgotten", limit=1)]
        return delta

    def _forgetting(self, content: BankContent, item_id: str) -> MemoryDelta:
        old = self._held(content, item_id)
        return MemoryDelta((Remove(item_id, FORGOTTEN), *self._follow(content, old, None)))

    def _editing(
        self,
        content: BankContent,
        item_id: str,
        text: str | None,
        key: str | None,
        metadata: Mapping[str, Scalar | None] | None,
    ) -> MemoryDelta:
        old = self._held(content, item_id)
        given = {*(metadata or ()), *(("key",) if key is not None else ())}
        if refused := sorted(given & (self.derived | {_FEEDBACK})):
            msg = (
                f"`{refused[0]}` of item {item_id!r} cannot be edited: it is derived, from the text"
                " or from how the episode was judged"
            )
            raise InputError(msg)
        if text is None and not given:
            msg = f"nothing to edit of item {item_id!r}: give `text`, `key` or `metadata`"
            raise InputError(msg)
        if text is not None and not text.strip():
            msg = f"the text of item {item_id!r} would be empty: forget the item instead"
            raise InputError(msg)
        fields: dict[str, Any] = {**old.metadata, **(metadata or {})}
        new = _valid(
            old,
            text=old.text if text is None else text,
            key=key if key is not None else _standing_key(old, text),
            metadata={name: value for name, value in fields.items() if value is not None},
        )
        if new.text != old.text:
            new = self._edited(old, new)
        if new == old:
            return MemoryDelta()
        follow = self._follow(content, old, new)
        return MemoryDelta((*reworded(content, old, new, EDITED), *follow))

    def _held(self, content: BankContent, item_id: str) -> MemoryItem:
        if item_id not in content.items:
            where = "/".join(bank.bank_namespace(self.namespace))
            near = did_you_mean(item_id, content.items, f"it holds {len(content.items):,} items")
            msg = f"no item {item_id!r:.80} in the bank {where!r}: {near}"
            raise InputError(msg)
        return content.items[item_id]


def reworded(
    content: BankContent, old: MemoryItem, new: MemoryItem, reason: str
) -> Sequence[Change]:
    """Put an item in the place of another of the same id; notes stay, but uses of another text."""
    notes = dict(content.notes.get(old.id, {}))
    if new.text != old.text:
        notes = {name: note for name, note in notes.items() if name not in (USES, SUCCESSES)}
    kept = (Annotate(new.id, notes),) if notes else ()
    return (Remove(old.id, reason), Add(new), *kept)


def _valid(old: MemoryItem, **update: Any) -> MemoryItem:
    with validation_as(InputError, f"item {old.id!r} cannot be edited: "):
        return MemoryItem.model_validate({**dict(old), **update})


def _standing_key(old: MemoryItem, text: str | None) -> str | None:
    """Return the key that an item has after an edit of its text."""
    key = old.key
    if key is None or text in (None, old.text):
        return key
    return key if key in text or key[:_BEGINNING] not in old.text else None


def _clearing(content: BankContent) -> MemoryDelta:
    return MemoryDelta(
        (
            *(Remove(identity, CLEARED) for identity in content.items),
            *(SetState(name, None) for name in content.state),
        )
    )
