"""Views of a bank: a program that reads through one does not see the items that it leaves out."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final, TypeVar, cast

from langgraph.store.base import GetOp, Item, Result, SearchItem, SearchOp
from typing_extensions import override

from langgraft._core.canonical import unseal
from langgraft._core.effects import relay
from langgraft.memory import bank
from langgraft.memory.model import Dropped, MemoryItem
from langgraft.memory.recall import Found
from langgraft.memory.stores.programs import Namespace, Program, Step

T = TypeVar("T")


@dataclass(kw_only=True)
class View(ABC):
    """A bank without some of its records.

    Args:
        namespace: The bank's records.
        reads: Whether records that are read by name are left out as well.
    """

    namespace: Namespace
    reads: bool = True
    dropped: dict[str, str] = field(default_factory=dict)
    """What was met and left out, with the reasons."""

    @abstractmethod
    def _withholds(self, record: Item) -> Program[bool]:
        """Say whether a record is left out, and note why in `dropped`."""

    def __call__(self, program: Program[T]) -> Program[T]:
        """Run a program that sees what may be seen; what it finds says what was left out."""
        found: Any = yield from relay(program, self._answer)
        if isinstance(found, Found):
            left_out = (Dropped(name, reason) for name, reason in self.dropped.items())
            found = replace(found, dropped=(*found.dropped, *left_out))
        return cast("T", found)

    def _answer(self, step: Step) -> Program[list[Result]]:
        results = yield step
        if not isinstance(step, Sequence):
            return results
        answers: list[Result] = list(results)
        for number, op in enumerate(step):
            if isinstance(op, GetOp) and self.reads and tuple(op.namespace) == self.namespace:
                record = cast("Item | None", answers[number])
                if record is not None and (yield from self._withholds(record)):
                    answers[number] = None
            elif isinstance(op, SearchOp) and self._searches(op):
                hits = cast("Sequence[SearchItem]", answers[number])
                answers[number] = yield from self._filled(op, hits)
        return answers

    def _searches(self, op: SearchOp) -> bool:
        prefix = tuple(op.namespace_prefix)
        return prefix == self.namespace[: len(prefix)]

    def _filled(self, op: SearchOp, hits: Sequence[SearchItem]) -> Program[list[SearchItem]]:
        """Look further down where something is withheld, so that it takes nobody's place."""
        if not op.query:  # who reads all there is counts what is there
            seen = list(hits)
            for number, hit in enumerate(hits):
                if (yield from self._withholds(hit)):
                    seen[number] = _covered(hit)
            return seen
        limit = op.limit
        while True:
            kept: list[SearchItem] = []
            for hit in hits:
                if len(kept) == op.limit:
                    break
                if not (yield from self._withholds(hit)):
                    kept.append(hit)
            if len(kept) == op.limit or len(hits) < limit:
                return kept
            limit *= 2
            (found,) = yield [op._replace(limit=limit)]
            hits = cast("Sequence[SearchItem]", found)


def _covered(hit: SearchItem) -> SearchItem:
    times = {"created_at": hit.created_at, "updated_at": hit.updated_at}
    return SearchItem(hit.namespace, f"{bank.WITHHELD}{hit.key}", {}, score=None, **times)


MOST_PASSED: Final = 1_000
"""Items that one recall passes over; in a bank with many more, all may be too long."""


@dataclass(kw_only=True)
class Fitting(View):
    """A bank without items that cannot be given to an agent, such as those too long for its budget.

    So they take no place among the best that a provider recalls.

    Args:
        namespace: The bank's records.
        unfit: Says why an item cannot be given; empty: it can.
    """

    unfit: Callable[[MemoryItem], str]

    @override
    def _withholds(self, record: Item) -> Program[bool]:
        yield from ()
        held = unseal(record.value).get("item")
        if held is None:
            return False
        item = MemoryItem.from_json(held)
        if item.id not in self.dropped and len(self.dropped) < MOST_PASSED:
            reason = self.unfit(item)
            self.dropped |= {item.id: reason} if reason else {}
        return item.id in self.dropped
