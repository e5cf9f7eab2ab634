"""What a memory system decides, as programs, and the bookkeeping around that.

A `MemoryPolicy` touches no store: its programs yield LangGraph operations and are sent their
results (`langgraft.memory.stores.drive`). `MemoryProvider` drives them over a store, sync and
async, one writer at a time. The contract of both is in `langgraft.memory.provider`.
"""

import logging
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final, Generic, Literal, TypeAlias, TypeVar, cast

from pydantic import ValidationError

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import InputError
from langgraft._core.settings import describe_validation
from langgraft.memory import bank
from langgraft.memory.credit import credit
from langgraft.memory.deltas import (
    Add,
    Change,
    MemoryDelta,
    SetState,
    fold,
)
from langgraft.memory.episodes import Episode
from langgraft.memory.forgetting import forgotten
from langgraft.memory.importing import ImportChoices, import_changes
from langgraft.memory.item_ids import present, with_free_ids
from langgraft.memory.items import MemoryItem, Scalar
from langgraft.memory.questions import Question, Verdict
from langgraft.memory.recall import (
    SAME_TASK,
    Budget,
    Dropped,
    Found,
    Recall,
    RecallContext,
    make_recall,
)
from langgraft.memory.settings import ProviderSettings
from langgraft.memory.stores.drive import Program, program

logger = logging.getLogger(__name__)

EPISODES = "episodes"
"""Bookkeeping: how many episodes were taken in."""
NEXT_ORDER = "next_order_index"
"""Bookkeeping: the `order_index` of the next item."""
FILED = "filed/"
"""Bookkeeping: prefix of the marks that make `file` idempotent."""
FEEDBACK: Final = "feedback"
"""Metadata of items whose success is not the environment's word: `self` or `oracle`."""

Need: TypeAlias = Literal["lessons", "errors", "verdicts", "draft"]
"""What a provider asks of those around it: an episode's lessons, its errors as records, answers
to its questions about an episode, or a draft before it is asked, with answers about that."""

SettingsT = TypeVar("SettingsT", bound=ProviderSettings)


class MemoryPolicy(ABC, Generic[SettingsT]):
    """The part of a provider that is logic alone.

    Attributes:
        settings: The provider's settings.
        namespace: The exact namespace of the bank's records.
    """

    name: ClassVar[str]
    """The provider's name in plans and manifests."""
    settings: SettingsT
    namespace: bank.Namespace

    @property
    def needs(self) -> frozenset[Need]:
        """What a graph should have ready; each costs model calls, so ask for nothing idle."""
        return frozenset({"lessons"})

    def asks_again(self, query: str, context: RecallContext, last: RecallContext) -> bool:  # noqa: ARG002
        """Say whether memory should be asked again before the agent goes on.

        Args:
            query: The task's instruction.
            context: Where the agent stands.
            last: Where it stood when memory was last asked.
        """
        return False

    def describe(self) -> dict[str, JSON]:
        """Return the architecture: the provider's name and its settings."""
        return {"provider": self.name, "settings": self.settings.describe()}

    @property
    def architecture(self) -> str:
        """Digest of `describe()`."""
        return digest(self.describe())

    # What a provider writes ---------------------------------------------------------------

    @abstractmethod
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        """Find items with their scores, best first."""

    @abstractmethod
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        """Say what an episode changes; idempotence and bookkeeping are taken care of.

        Args:
            episode: The episode, with verdicts and receipts.
            position: How many episodes were taken in before.
            order_index: The `order_index` of the first new item; the next ones count up.
        """

    def _maintain(self) -> Program[Sequence[Change]]:
        """Say what upkeep changes; it sees the bank with what was just filed or imported."""
        return ()
        yield

    def _ask(
        self,
        episode: Episode,  # noqa: ARG002  (for subclasses)
    ) -> Program[Sequence[Question]]:
        """List all questions about an episode, answered or not."""
        return ()
        yield

    def _ask_draft(
        self,
        query: str,  # noqa: ARG002  (for subclasses)
        context: RecallContext,  # noqa: ARG002
    ) -> Program[Sequence[Question]]:
        """List all questions about a draft, answered or not."""
        return ()
        yield

    def _settle(
        self,
        items: Sequence[MemoryItem],  # noqa: ARG002  (for subclasses)
    ) -> Program[Sequence[Change]]:
        """Say what the import of items changes beside adding them, such as notes on them.

        It sees the bank as it is before them.
        """
        return ()
        yield

    # How it is put together ---------------------------------------------------------------

    def _provide(self, query: str, context: RecallContext, budget: Budget) -> Program[Recall]:
        with _told_by(f"what episode {context.episode_id!r} asks memory"):
            found = yield from program(self._recall, query, context)
            found.query.encode()  # here, and not when its receipt is logged
            if self.settings.same_task == "exclude":
                found = _of_other_tasks(found, context.task_id)
            return make_recall(query, context, budget, found)

    def _unanswered_draft(self, query: str, context: RecallContext) -> Program[list[Question]]:
        with _told_by(f"what episode {context.episode_id!r} asks memory"):
            asked = yield from program(self._ask_draft, query, context)
            return _open(asked, context.verdicts)

    def _unanswered(self, episode: Episode) -> Program[list[Question]]:
        with _told_by(f"episode {episode.id!r}"):
            asked = yield from program(self._ask, episode.without_memory())
            return _open(asked, episode.verdicts)

    def _file(self, episode: Episode) -> Program[MemoryDelta]:
        self._check_feedback(episode)
        episode = episode.without_memory()
        filed, position, order = yield from bank.read_state(
            self.namespace, [FILED + episode.id, EPISODES, NEXT_ORDER]
        )
        if filed is not None:
            return MemoryDelta()
        count, first = cast("int", position or 0), cast("int", order or 0)
        credited: Sequence[Change] = ()
        with _told_by(f"episode {episode.id!r}"):
            changes = yield from program(self._learn, episode, count, first)
            changes = yield from with_free_ids(self.namespace, _stamped(changes, episode))
            if self._counts_uses:
                credited = yield from credit(self.namespace, episode)
        taken_in = MemoryDelta(
            (
                *credited,
                *changes,
                *_renumber(changes, first),
                SetState(EPISODES, count + 1),
                SetState(FILED + episode.id, count),
            )
        )
        delta = yield from self._with_upkeep(taken_in)
        yield from bank.apply_delta(self.namespace, delta)
        return delta

    @property
    def _counts_uses(self) -> bool:
        settings = self.settings
        return settings.credit or any(policy.counts_uses for policy in settings.forgetting)

    def _check_origin(self, path: Path, items: Sequence[MemoryItem]) -> None:
        """Refuse what was learned from gold answers, unless that is declared here too."""
        marked = [item.id for item in items if item.metadata.get(FEEDBACK) == "oracle"]
        if marked and self.settings.feedback != "oracle":
            msg = (
                f"{path}: {len(marked)} items, such as {marked[0]!r:.80}, were learned from gold"
                " answers (metadata feedback 'oracle'): declare it with the setting"
                " feedback='oracle', or leave them out"
            )
            raise InputError(msg)

    def _check_feedback(self, episode: Episode) -> None:
        if episode.outcome.feedback == "oracle" and self.settings.feedback != "oracle":
            msg = (
                f"episode {episode.id!r} is judged by gold answers (feedback 'oracle'), which memory"
                f" must not see: declare it with the setting feedback='oracle', or leave it out"
            )
            raise InputError(msg)

    def _manage(self, *, dry_run: bool = False) -> Program[MemoryDelta]:
        delta = yield from self._upkeep()
        if not dry_run:
            yield from bank.apply_delta(self.namespace, delta)
        return delta

    def _upkeep(self) -> Program[MemoryDelta]:
        changes = yield from program(self._maintain)
        delta = MemoryDelta(tuple(changes))
        if self.settings.forgetting:
            content = yield from bank.read_content(self.namespace)
            left = fold([delta], content)
            delta += MemoryDelta(tuple(forgotten(self.settings.forgetting, left)))
        return delta

    def _with_upkeep(self, delta: MemoryDelta) -> Program[MemoryDelta]:
        """Add the upkeep that will be due, so that both are written at once."""
        ranker = getattr(self.settings, "ranker", None)
        upkeep = yield from bank.foreseen(self.namespace, delta, self._upkeep(), ranker)
        return delta + upkeep

    def _import(
        self, path: Path, choices: ImportChoices | None, *, dry_run: bool
    ) -> Program[MemoryDelta]:
        content = yield from bank.read_content(self.namespace)
        first = cast("int", content.state.get(NEXT_ORDER, 0))
        changes = import_changes(path, choices, content.items, first)
        added = [change.item for change in changes if isinstance(change, Add)]
        self._check_origin(path, added)
        settled = yield from program(self._settle, added)
        following = (SetState(NEXT_ORDER, added[-1].order_index + 1),) if added else ()
        delta = yield from self._with_upkeep(MemoryDelta((*changes, *settled, *following)))
        if not dry_run:
            yield from bank.apply_delta(self.namespace, delta)
        return delta

    # For subclasses -----------------------------------------------------------------------

    def _standing(self, verdicts: Sequence[Verdict]) -> Program[list[Verdict]]:
        """Keep the verdicts whose item is still there; the others are logged."""
        named = {verdict.item_id for verdict in verdicts if verdict.item_id is not None}
        gone = named.difference((yield from present(self.namespace, sorted(named))))
        for identity in sorted(gone):
            logger.info("verdict ignored: item %r is no longer in the bank", identity)
        return [verdict for verdict in verdicts if verdict.item_id not in gone]


@contextmanager
def _told_by(what: str) -> Iterator[None]:
    """Refuse in one line what no item, question or log can hold."""
    try:
        yield
    except ValidationError as error:
        msg = f"{what} makes no memory: {describe_validation(error)}"
        raise InputError(msg) from error
    except UnicodeEncodeError as error:
        msg = f"{what} holds a lone surrogate, which no log can hold"
        raise InputError(msg) from error


def _open(asked: Sequence[Question], verdicts: Sequence[Verdict]) -> list[Question]:
    answered = {verdict.question_id for verdict in verdicts}
    return [question for question in asked if question.id not in answered]


def _of_other_tasks(found: Found, task_id: str) -> Found:
    """Drop what was learned on the task that asks."""
    kept = [n for n, (item, _) in enumerate(found.items) if item.task_id != task_id]
    dropped = [Dropped(item.id, SAME_TASK) for item, _ in found.items if item.task_id == task_id]
    return replace(
        found,
        items=tuple(found.items[n] for n in kept),
        pools=tuple(found.pools[n] for n in kept) if found.pools else (),
        dropped=(*found.dropped, *dropped),
    )


def _stamped(changes: Sequence[Change], episode: Episode) -> Sequence[Change]:
    """Say in new items whose word their success is, where it is not the environment's.

    What owes something to gold answers already goes on saying so.
    """
    feedback = episode.outcome.feedback
    if feedback == "environment":
        return changes
    return [
        Add(with_feedback(change.item, feedback))
        if isinstance(change, Add) and change.item.metadata.get(FEEDBACK) != "oracle"
        else change
        for change in changes
    ]


def with_feedback(item: MemoryItem, feedback: Scalar) -> MemoryItem:
    """Return an item that says in its metadata whose word its success is."""
    return item.model_copy(update={"metadata": {**item.metadata, FEEDBACK: feedback}})


def _renumber(changes: Sequence[Change], first: int) -> Sequence[SetState]:
    added = sum(isinstance(change, Add) for change in changes)
    return (SetState(NEXT_ORDER, first + added),) if added else ()
