"""Forgetting: which items upkeep removes, and credit, which is what most policies go by.

=====================  ======================================================================
policy                 forgets
=====================  ======================================================================
`Capacity`             the oldest items, once there are too many
`FrequencyUtility`     items that were recalled often and rarely helped (ReMe, arXiv:2512.10696)
`Votes`                items without votes left, then those with the fewest (ExpeL)
`SuccessRate`          items whose smoothed rate of success is low (EvolveR, arXiv:2510.16079)
=====================  ======================================================================

A policy is a pure function of the bank. It goes by notes, which start afresh on import, so an
imported item is judged by what it does here. `provider.manage(dry_run=True)` says what would be
forgotten, and why, without forgetting it.

Credit is how recalled items did. An episode carries the receipts of what its agent was given; when
it is filed, each item on a receipt gets one more use, and one more success where the episode
reached its goal. A mark in the bank says that the receipt took effect, so that it counts once
however many episodes carry it: branches of a search may share one recall.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, ClassVar, Final, Literal, Protocol, TypeAlias, cast

from langgraph.store.base import GetOp, Item
from pydantic import BaseModel, ConfigDict, Field
from typing_extensions import override

from langgraft._core.canonical import JSON
from langgraft.memory import bank
from langgraft.memory.model import (
    Annotate,
    BankContent,
    Change,
    Episode,
    MemoryItem,
    Receipt,
    Remove,
    SetState,
)
from langgraft.memory.stores.programs import Namespace, Program

USES: Final = "uses"
"""Note: how often the item was recalled."""
SUCCESSES: Final = "successes"
"""Note: how often the episode it was recalled in succeeded."""
VOTES: Final = "votes"
"""Note: the votes for the item."""

Notes: TypeAlias = Mapping[str, JSON]
"""What a provider derives or counts about an item, by name."""


@dataclass(frozen=True, slots=True)
class NotedItem:
    """An item of a bank, with the notes on it."""

    item: MemoryItem
    notes: Mapping[str, JSON]

    def count(self, note: str) -> int:
        """Return a note that counts something; 0 where it is not there."""
        return cast("int", self.notes.get(note, 0))

    @property
    def age(self) -> tuple[int, str]:
        """What orders items from the oldest to the newest."""
        return self.item.order_index, self.item.id


def noted_items(content: BankContent) -> list[NotedItem]:
    """List the items of a bank with their notes, oldest first."""
    listed = [
        NotedItem(item, content.notes.get(identity, {})) for identity, item in content.items.items()
    ]
    return sorted(listed, key=lambda entry: entry.age)


class Forgetting(BaseModel, ABC):
    """Base of the policies: frozen settings that say which items go."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    counts_uses: ClassVar[bool] = False
    """Whether the policy goes by `uses` and `successes`, which are then counted."""

    @abstractmethod
    def forget(self, entries: Sequence[NotedItem]) -> list[Remove]:
        """Say which of the items go and why; they are listed oldest first."""


class Capacity(Forgetting):
    """Forget the oldest items (FIFO) once there are more than `limit` and `buffer` together."""

    policy: Literal["capacity"] = "capacity"
    limit: int = Field(ge=0)
    """Items that stay."""
    buffer: int = Field(default=0, ge=0)
    """How many more there may be before anything is forgotten."""

    @override
    def forget(self, entries: Sequence[NotedItem]) -> list[Remove]:
        if len(entries) <= self.limit + self.buffer:
            return []
        gone = entries[: len(entries) - self.limit]
        return [Remove(entry.item.id, f"over the capacity of {self.limit}") for entry in gone]


class FrequencyUtility(Forgetting):
    """Forget what was recalled often and helped rarely; the defaults are ReMe's."""

    policy: Literal["frequency_utility"] = "frequency_utility"
    counts_uses: ClassVar[bool] = True
    min_uses: int = Field(default=5, ge=1)
    """Recalls before an item is judged."""
    below: float = Field(default=0.5, gt=0, le=1)
    """Least share of recalls in episodes that succeeded."""

    @override
    def forget(self, entries: Sequence[NotedItem]) -> list[Remove]:
        return [
            Remove(entry.item.id, f"helped in {good} of {uses} uses")
            for entry in entries
            if (uses := entry.count(USES)) >= self.min_uses
            and (good := entry.count(SUCCESSES)) / uses < self.below
        ]


class Votes(Forgetting):
    """Forget voted items at or below `floor` votes, then the least voted above `limit`.

    Items nobody has voted on carry no such note and are left alone.
    """

    policy: Literal["votes"] = "votes"
    floor: int = 0
    """ExpeL drops rules that are down to 0."""
    limit: int | None = Field(default=None, ge=0)
    """Voted items that stay; `None`: all. Of equals the oldest go first: they had the longest time
    to win votes, and a list of equals would otherwise never take in another rule."""

    @override
    def forget(self, entries: Sequence[NotedItem]) -> list[Remove]:
        voted = [entry for entry in entries if VOTES in entry.notes]
        lost = [entry for entry in voted if entry.count(VOTES) <= self.floor]
        gone = [Remove(entry.item.id, f"{entry.count(VOTES)} votes left") for entry in lost]
        standing = [entry for entry in voted if entry.count(VOTES) > self.floor]
        if self.limit is not None and len(standing) > self.limit:
            standing.sort(key=lambda entry: entry.count(VOTES))
            reason = f"not among the {self.limit} with the most votes"
            fewest = standing[: len(standing) - self.limit]
            gone += [Remove(entry.item.id, reason) for entry in fewest]
        return gone


class SuccessRate(Forgetting):
    """Forget items whose rate of success, (successes + 1) / (uses + 2), is below a threshold.

    Laplace's rule starts every item at 1/2, so that one failure says little. An item that was
    recalled less than `min_uses` times is on probation: it stays, whatever the threshold.
    """

    policy: Literal["success_rate"] = "success_rate"
    counts_uses: ClassVar[bool] = True
    below: float = Field(default=0.3, gt=0, lt=1)
    """Least rate. MemEvolve configures its EvolveR with 0.3: two failures and no success are
    enough."""
    min_uses: int = Field(default=1, ge=1)
    """Recalls before an item is judged. Ours: above 1/2, the threshold would else forget every
    item as it comes."""

    @override
    def forget(self, entries: Sequence[NotedItem]) -> list[Remove]:
        return [
            Remove(entry.item.id, f"success rate {rate:.3f} in {uses} uses")
            for entry in entries
            if (uses := entry.count(USES)) >= self.min_uses
            and (rate := (entry.count(SUCCESSES) + 1) / (uses + 2)) < self.below
        ]


ForgettingPolicy: TypeAlias = Annotated[
    Capacity | FrequencyUtility | Votes | SuccessRate, Field(discriminator="policy")
]
"""A policy, as settings name it: `{"policy": "capacity", "limit": 100}`."""


def forgotten(policies: Sequence[Forgetting], content: BankContent) -> list[Remove]:
    """Say what policies forget of a bank, each of what the one before has left."""
    left = noted_items(content)
    gone: list[Remove] = []
    for policy in policies:
        removed = policy.forget(left)
        names = {change.id for change in removed}
        left = [entry for entry in left if entry.item.id not in names]
        gone += removed
    return gone


CREDITED: Final = "credited/"
"""Bookkeeping: prefix of the marks of receipts that took effect."""


def counted(notes: Notes, times: int, *, succeeded: bool) -> Notes:
    """Count uses and successes."""
    uses, successes = (cast("int", notes.get(name, 0)) for name in (USES, SUCCESSES))
    return {USES: uses + times, SUCCESSES: successes + (times if succeeded else 0)}


class Credited(Protocol):
    """Says which notes on an item change once so many recalls of it count."""

    def __call__(self, notes: Notes, times: int, *, succeeded: bool) -> Notes:
        """Return their new values."""


def credit(
    namespace: Namespace, episode: Episode, credited: Credited = counted
) -> Program[list[Change]]:
    """Say what an episode's receipts change.

    =====================================  ==================================================
    receipt                                counts
    =====================================  ==================================================
    of an episode that succeeded           a use and a success for each item
    of one that failed                     a use for each item
    of one that nobody could judge         nothing, so that another episode that carries it
                                           still can: a use alone would be held against what
                                           may have helped
    some of whose items have gone          for the others
    of which the bank holds no item        nothing, and leaves no mark: it is another bank's
    =====================================  ==================================================
    """
    if episode.outcome.success is None:
        return []
    receipts = yield from _fresh(namespace, episode)
    content = yield from _held(namespace, receipts)
    uses = Counter(
        name
        for receipt in receipts
        for name in dict.fromkeys(receipt.item_ids)
        if name in content.items
    )
    return [
        *(
            Annotate(name, credited(content.notes.get(name, {}), new, succeeded=episode.succeeded))
            for name, new in uses.items()
        ),
        *(
            SetState(CREDITED + receipt.id, episode.id)
            for receipt in receipts
            if not content.items.keys().isdisjoint(receipt.item_ids)
        ),
    ]


def _fresh(namespace: Namespace, episode: Episode) -> Program[list[Receipt]]:
    """List the receipts that have not taken effect, each once."""
    receipts = {receipt.id: receipt for receipt in episode.recalls if receipt.item_ids}
    if not receipts:
        return []
    marks = yield from bank.read_state(namespace, [CREDITED + name for name in receipts])
    return [receipt for receipt, mark in zip(receipts.values(), marks, strict=True) if mark is None]


def _held(namespace: Namespace, receipts: Sequence[Receipt]) -> Program[BankContent]:
    """Read those items of receipts that the bank holds, with their notes."""
    names = dict.fromkeys(name for receipt in receipts for name in receipt.item_ids)
    if not names:
        return BankContent()
    results = yield [GetOp(namespace, bank.item_key(name)) for name in names]
    return bank.loaded(cast("Sequence[Item | None]", results))
