"""Provenance: what a bank's items follow from, and taking back what a source has led to.

An item follows from its own episode and from its `sources`. Those it has from the episode, where an
application named some (`Episode.sources`), and from the items with sources that the episode
recalled: their `user:`, `tool:`, `web:` and `import:` sources, and themselves as `item:…` and
`episode:…`. So what a source led to is found however many episodes away it is, through items that have been pruned meanwhile
as well. A filed episode that follows from a source has a mark in the bank that says so (`FOLLOWS`),
whether or not it left an item.

`why` tells an item's story. `revoke` takes out of the bank all that follows from a source: items,
their notes and places, and the marks of the episodes, as if these had never been filed. Whether the
bank is then, byte for byte, one that never saw the source is worked out from the bank, and what is
not so is said (`Revocation.remains`):

==============================  =================================================================
the bank is exact where         because else
==============================  =================================================================
its provider keeps of an        votes, merged entries and attempts were moved by more than one
episode nothing but items       episode, and the bank does not tell which one did what
(`revokes_exactly`)
no item has left it yet         what upkeep removed for want of room cannot come back
no episode that goes has        uses and successes are counts
earned items credit
the source is from outside      what recalled an item without sources left no trace of that
==============================  =================================================================

With the episodes at hand nothing remains for any provider: `rederive` files those anew that do not
follow from the source, and puts what that gives in the place of what was there.
"""

import re
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Final, TypeVar, cast

from langgraph.store.memory import InMemoryStore

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON
from langgraft._core.effects import in_thread
from langgraft._core.errors import InputError
from langgraft.memory import bank
from langgraft.memory.editing import Editable
from langgraft.memory.forgetting import CREDITED, USES
from langgraft.memory.model import (
    Add,
    Annotate,
    BankContent,
    Change,
    Episode,
    MemoryDelta,
    MemoryItem,
    Receipt,
    Remove,
    SetState,
    fold,
)
from langgraft.memory.sources import ROOTS, check_source, check_sources, combined, kind_of, source
from langgraft.memory.stores.programs import Program

T = TypeVar("T")

EPISODES: Final = "episodes"
"""Bookkeeping: how many episodes were taken in."""
NEXT_ORDER: Final = "next_order_index"
"""Bookkeeping: the `order_index` of the next item."""
FILED: Final = "filed/"
"""Bookkeeping: prefix of the marks that make `file` idempotent."""
FOLLOWS: Final = "follows/"
"""Bookkeeping: prefix of the sources that filed episodes follow from, where there are any."""
FEEDBACK: Final = "feedback"
"""Metadata of items whose success is not the environment's word: `self` or `oracle`."""
REVOKED: Final = "follows from a source that was revoked"
"""Reason of a removal."""

_RENAMED: Final = re.compile(r"^(.*)~\d+$", re.DOTALL)


def learned_from(episode: Episode) -> tuple[str, ...]:
    """Return all that an episode follows from: what it was told, and what it recalled.

    Raises:
        InputError: A receipt names what is no source, or there are too many.
    """
    every = combined(episode.sources, *(receipt.sources for receipt in episode.recalls))
    return check_sources(every, f"what episode {episode.id!r:.80} follows from")


def stamped(
    changes: Sequence[Change], episode: Episode, sources: tuple[str, ...]
) -> Sequence[Change]:
    """Say in new items what they follow from, and whose word their success is, if not the world's.

    What owes something to gold answers already goes on saying so.
    """
    feedback = episode.outcome.feedback
    return [
        Add(_stamped(change.item, feedback, sources)) if isinstance(change, Add) else change
        for change in changes
    ]


def _stamped(item: MemoryItem, feedback: str, sources: tuple[str, ...]) -> MemoryItem:
    if feedback != "environment" and item.metadata.get(FEEDBACK) != "oracle":
        item = item.model_copy(update={"metadata": {**item.metadata, FEEDBACK: feedback}})
    return with_sources(item, sources)


def with_sources(item: MemoryItem, *more: Iterable[str]) -> MemoryItem:
    """Return an item that follows from more than it says so far."""
    sources = combined(item.sources, *more)
    return item if sources == item.sources else item.model_copy(update={"sources": sources})


@dataclass(frozen=True, slots=True)
class Following:
    """What of a bank follows from some sources, however many steps away."""

    items: tuple[str, ...]
    """Ids of items, in their order."""
    episodes: tuple[str, ...]
    """Ids of filed episodes, in the order they were filed."""


def following(content: BankContent, sources: Iterable[str]) -> Following:
    """Find what follows from sources, such as `user:eve`, `episode:e7` or `item:e7/note`."""
    steps: dict[str, list[str]] = defaultdict(list)
    items = {source("item", name): item for name, item in content.items.items()}
    episodes = {
        source("episode", key.removeprefix(FILED)): key.removeprefix(FILED)
        for key in content.state
        if key.startswith(FILED)
    }
    for name, item in items.items():
        for each in item.sources:
            steps[each].append(name)
        if item.episode_id:
            steps[source("episode", item.episode_id)].append(name)
    for key, held in content.state.items():
        if key.startswith(FOLLOWS):
            for each in cast("Sequence[str]", held):
                steps[each].append(source("episode", key.removeprefix(FOLLOWS)))
    open_ = list(dict.fromkeys(sources))
    reached = set(open_)
    while open_:
        new = [each for each in steps.get(open_.pop(), ()) if each not in reached]
        reached.update(new)
        open_ += new
    found = [item for name, item in items.items() if name in reached]
    filed = [name for each, name in episodes.items() if each in reached]
    return Following(
        tuple(item.id for item in sorted(found, key=_age)),
        tuple(sorted(filed, key=lambda name: cast("int", content.state[FILED + name]))),
    )


@dataclass(frozen=True, slots=True)
class Why:
    """Why an item is in a bank: what it was learned from, when it was recalled, what followed."""

    item: MemoryItem
    sources: tuple[str, ...]
    """What it follows from, its own episode included."""
    parents: tuple[MemoryItem, ...]
    """The items it follows from that are still there."""
    uses: int | None
    """How often it was recalled in episodes that were filed, where the bank counts that."""
    recalled: tuple[Receipt, ...]
    """The recalls that gave it to an agent, of those at hand."""
    followed: Following
    """What follows from it."""

    def to_json(self) -> dict[str, JSON]:
        """Return the story as JSON."""
        return {
            "item": self.item.to_json(),
            "learned_from": list(self.sources),
            "parents": [item.id for item in self.parents],
            "uses": self.uses,
            "recalled": [receipt.to_json() for receipt in self.recalled],
            "followed": {
                "items": list(self.followed.items),
                "episodes": list(self.followed.episodes),
            },
        }


def why(content: BankContent, item_id: str, receipts: Iterable[Receipt] = ()) -> Why:
    """Tell an item's story from a bank, and from the receipts of recalls where some are at hand.

    Raises:
        InputError: The bank holds no such item.
    """
    item = content.items.get(item_id)
    if item is None:
        msg = f"no item {item_id!r:.80} in the bank, which holds {len(content.items):,} items"
        raise InputError(msg)
    own = (source("episode", item.episode_id),) if item.episode_id else ()
    sources = combined(item.sources, own)
    parents = [each for each in content.items.values() if source("item", each.id) in sources]
    found = following(content, [source("item", item_id)])
    return Why(
        item,
        sources,
        tuple(sorted(parents, key=_age)),
        cast("int | None", content.notes.get(item_id, {}).get(USES)),
        tuple(receipt for receipt in receipts if item_id in receipt.item_ids),
        Following(tuple(name for name in found.items if name != item_id), found.episodes),
    )


@dataclass(frozen=True, slots=True)
class Revocation:
    """What taking back a source changes, or has changed, in a bank."""

    source: str
    items: tuple[str, ...]
    """Items that go, in their order."""
    episodes: tuple[str, ...]
    """Episodes that count as never filed, in the order they were filed."""
    delta: MemoryDelta
    """All that changes, numbers and bookkeeping included."""
    remains: tuple[str, ...]
    """Why the bank may differ from one that never saw the source; empty: it does not, in any byte."""

    @property
    def exact(self) -> bool:
        """Whether the bank is, byte for byte, one that never saw the source."""
        return not self.remains


class Revocable(Editable):
    """What providers can be asked about where items come from; a base of `MemoryProvider`."""

    if TYPE_CHECKING:
        name: ClassVar[str]
        settings: Any

    @property
    def revokes_exactly(self) -> bool:
        """Whether the bank keeps of an episode nothing but the items it adds, and counts of others.

        Then a bank that no item has left can be made, byte for byte, one that never saw a source.
        """
        return False

    @checked
    def why(self, item_id: str, receipts: Sequence[Receipt] = ()) -> Why:
        """Tell what an item was learned from, when it was recalled, and what followed from it.

        Args:
            item_id: The id of the item.
            receipts: Receipts of recalls, such as those of episodes at hand.

        Raises:
            InputError: The bank holds no such item.
        """
        return why(self._write(bank.read_content(self.namespace)), item_id, receipts)

    @checked
    async def awhy(self, item_id: str, receipts: Sequence[Receipt] = ()) -> Why:
        """Do as `why` does, asynchronously."""
        content = await self._awrite(bank.read_content(self.namespace))
        return why(content, item_id, receipts)

    @checked
    def revoke(self, source: str, *, dry_run: bool = False) -> Revocation:
        """Take out of the bank all that follows from a source, and say what is not as if it had never been.

        The marks of the episodes go too, so that one that is handed in again is learned again.

        Args:
            source: Such as `user:eve`, `web:example.org`, `import:office`, `episode:e7`.
            dry_run: Change nothing; only say what would.

        Raises:
            InputError: It is no source; nothing is changed. One that nothing follows from is none.
            ReadOnlyStoreError: The bank is frozen.
            BankConflictError: As for `file`.
        """
        return self._write(self._revoked(source, dry_run=dry_run))

    @checked
    async def arevoke(self, source: str, *, dry_run: bool = False) -> Revocation:
        """Do as `revoke` does, asynchronously."""
        return await self._awrite(self._revoked(source, dry_run=dry_run))

    @checked
    def rederive(self, episodes: Sequence[Episode], *, without: str) -> MemoryDelta:
        """Make the bank what it is without a source, by filing the other episodes anew.

        What was imported and does not follow from the source comes first, in its order. Verdicts
        that answer questions about what is no longer there count as none.

        Args:
            episodes: All episodes that were filed in the bank, in their order.
            without: The source.

        Returns:
            What that changed.

        Raises:
            InputError: It is no source, or an episode that the bank has filed is not among them;
                nothing is changed.
            ReadOnlyStoreError: The bank is frozen.
            BankConflictError: As for `file`.
        """
        return self._write(self._rederived(episodes, without))

    @checked
    async def arederive(self, episodes: Sequence[Episode], *, without: str) -> MemoryDelta:
        """Do as `rederive` does, asynchronously."""
        return await self._awrite(self._rederived(episodes, without))

    # What a provider writes ---------------------------------------------------------------

    def _withdraw(
        self,
        left: BankContent,  # noqa: ARG002  (for subclasses)
        episodes: Collection[str],  # noqa: ARG002
    ) -> Sequence[Change]:
        """Say what else goes with episodes that count as never filed, such as attempts kept.

        Args:
            left: The bank without their items, each of which was followed by `_follow`.
            episodes: Their ids.
        """
        return ()

    # How it is put together ---------------------------------------------------------------

    def _revoked(self, source: str, *, dry_run: bool) -> Program[Revocation]:
        check_source(source, "what is revoked")
        content = yield from bank.read_content(self.namespace)
        found = self._revocation(content, source)
        if not dry_run and found.delta:
            yield from self._revised(lambda _: found.delta)
        return found

    def _revocation(self, content: BankContent, revoked: str) -> Revocation:
        found = following(content, [revoked])
        if not (found.items or found.episodes):
            return Revocation(revoked, (), (), MemoryDelta(), ())
        left = fold([], content)
        for name in found.items:
            if name in left.items:  # another one may have taken it along
                old = left.items[name]
                follow = self._follow(left, old, None)
                _apply(left, [Remove(name, REVOKED), *follow])
        _without_marks(left, found.episodes)
        remains = self._remains(content, found, revoked)
        if not remains:
            _renumber(left)
        _apply(left, self._withdraw(left, found.episodes))
        delta = difference(content, left)
        return Revocation(revoked, found.items, found.episodes, delta, remains)

    def _remains(self, content: BankContent, found: Following, revoked: str) -> tuple[str, ...]:
        """Say why a bank cannot be made one that never saw a source."""
        gone, filed = set(found.items), set(found.episodes)
        numbers = sorted(item.order_index for item in content.items.values())
        earned = [key for key, held in content.state.items() if key.startswith(CREDITED)]
        others = (name for name in content.items if name not in gone)
        renamed = (match[1] for name in others if (match := _RENAMED.match(name)))
        reasons = {
            f"{self.name} keeps more of an episode than its items: what {len(filed)} episodes"
            " changed of others stays": not self.revokes_exactly,
            "items had left the bank: what was removed stays so, and numbers have gaps": numbers
            != list(range(cast("int", content.state.get(NEXT_ORDER, 0)))),
            "uses and successes that these episodes earned other items are counts, and stay": any(
                content.state[key] in filed for key in earned
            ),
            "items that were renamed beside what goes keep their new names": not gone.isdisjoint(
                renamed
            ),
            "what recalled it without a source of its own is not known": kind_of(revoked)
            not in ROOTS,
        }
        return tuple(reason for reason, holds in reasons.items() if holds)

    def _rederived(self, episodes: Sequence[Episode], without: str) -> Program[MemoryDelta]:
        check_source(without, "what memory is to be without")
        content = yield from bank.read_content(self.namespace)
        names = {episode.id for episode in episodes}
        filed = [key.removeprefix(FILED) for key in content.state if key.startswith(FILED)]
        if missing := sorted(set(filed) - names):
            msg = (
                f"the bank has filed episode {missing[0]!r:.80}, and {len(missing) - 1:,} more, which"
                " are not among those given: without them they would be forgotten"
            )
            raise InputError(msg)
        gone = following(content, [without])
        told = _tainted(episodes, {without, *(source("episode", name) for name in gone.episodes)})
        kept = [each for each in episodes if each.id in set(filed) and each.id not in told]
        imported = [
            item
            for item in sorted(content.items.values(), key=_age)
            if item.episode_id not in names and item.id not in gone.items
        ]
        target = yield in_thread(self._filed_anew, imported, kept)
        delta = difference(content, cast("BankContent", target))
        yield from self._revised(lambda _: delta)
        return delta

    def _filed_anew(self, imported: Sequence[MemoryItem], kept: Sequence[Episode]) -> BankContent:
        make: Any = type(self)
        fresh = make(InMemoryStore(), settings=self.settings)
        if imported:
            fresh._write(fresh._taken_in([Add(item) for item in imported]))  # noqa: SLF001
        for episode in kept:
            fresh.file(episode)
        return cast("BankContent", fresh.content())


def _age(item: MemoryItem) -> tuple[int, str]:
    return item.order_index, item.id


def _apply(content: BankContent, changes: Iterable[Change]) -> None:
    for change in changes:
        content.apply(change)


def _tainted(episodes: Sequence[Episode], sources: set[str]) -> set[str]:
    """Return the ids of episodes that follow from sources, in one pass: each recalls earlier ones."""
    reached, found = set(sources), set[str]()
    for episode in episodes:
        own = source("episode", episode.id)
        recalled = {source("item", n) for receipt in episode.recalls for n in receipt.item_ids}
        if own in reached or not reached.isdisjoint({*learned_from(episode), *recalled}):
            reached.add(own)
            found.add(episode.id)
    return found


def _without_marks(left: BankContent, episodes: Collection[str]) -> None:
    """Take out the bookkeeping of filed episodes, and count the others anew."""
    if not episodes:
        return
    gone = set(episodes)
    filed = {key: cast("int", held) for key, held in left.state.items() if key.startswith(FILED)}
    ours = sorted(filed.pop(FILED + name) for name in gone)
    for name in gone:
        left.apply(SetState(FILED + name, None))
        left.apply(SetState(FOLLOWS + name, None))
    marks = [k for k, held in left.state.items() if k.startswith(CREDITED) and held in gone]
    for key in marks:
        left.apply(SetState(key, None))
    for key, position in filed.items():
        before = sum(each < position for each in ours)
        if before:
            left.apply(SetState(key, position - before))
    count = cast("int", left.state[EPISODES]) - len(gone)
    left.apply(SetState(EPISODES, count or None))


def _renumber(left: BankContent) -> None:
    """Number the items without gaps, in their order, and wherever bookkeeping names one with its number."""
    numbers: dict[tuple[str, int], int] = {}
    for number, item in enumerate(sorted(left.items.values(), key=_age)):
        numbers[item.id, item.order_index] = number
        if item.order_index != number:
            left.items[item.id] = item.model_copy(update={"order_index": number})
    for key, held in left.state.items():
        if isinstance(held, list):
            left.state[key] = _renumbered(held, numbers)
    left.apply(SetState(NEXT_ORDER, len(left.items) or None))


def _renumbered(value: JSON, numbers: Mapping[tuple[str, int], int]) -> JSON:
    match value:
        case [str(name), int(number)]:
            return [name, numbers.get((name, number), number)]
        case list():
            return [_renumbered(each, numbers) for each in value]
    return value


def difference(old: BankContent, new: BankContent) -> MemoryDelta:
    """Return what makes one bank another."""
    changes: list[Change] = [
        Remove(name, REVOKED) for name, item in old.items.items() if new.items.get(name) != item
    ]
    for name, item in new.items.items():
        notes: Mapping[str, JSON] = new.notes.get(name, {})
        held: Mapping[str, JSON] = old.notes.get(name, {})
        if old.items.get(name) != item:
            changes.append(Add(item))
            held = {}
        changed = {note: None for note in held if note not in notes} | {
            note: value for note, value in notes.items() if note not in held or held[note] != value
        }
        if changed:
            changes.append(Annotate(name, changed))
    changes += [SetState(key, None) for key in old.state if key not in new.state]
    changes += [
        SetState(key, value)
        for key, value in new.state.items()
        if key not in old.state or old.state[key] != value
    ]
    return MemoryDelta(tuple(changes))
