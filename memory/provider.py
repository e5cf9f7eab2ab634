"""The provider contract: what a memory system is to langgraft.

A `MemoryProvider` is policy, not intelligence. It calls no language model and reads no clock:
given the same bank and the same arguments it does the same. What only a model can judge, it
*asks* (`questions`); a node answers, and the answers come back as `Verdict`s in the episode.

===================  =========================================================================
call                 promise
===================  =========================================================================
`provide`            Changes nothing. What it might count travels in the recall's receipt and
                     takes effect when an episode that carries it is filed, once.
`asks_again`         Changes nothing. Says whether a graph should call `provide` once more
                     within the episode.
`draft_questions`    Changes nothing. Lists what a judge should say, before memory is asked,
                     about a tentative answer; the verdicts come back in the context.
`questions`          Changes nothing. Lists what is still unanswered for an episode; a question
                     is named by a digest of all it shows, so an answer given before the bank
                     moved counts as none, and the question is asked again.
`file`               Files one episode with the upkeep that is due then, and returns the one
                     delta of both, written in one batch. Idempotent by episode id: a second
                     call changes nothing and returns an empty delta. Recalled blocks are taken
                     out of the episode first. Verdicts on items that have gone meanwhile are
                     ignored, and logged. Receipts are credited, once each, where settings say
                     so. An outcome by gold answers is refused unless settings declare it.
`manage`             Upkeep (pruning, merging, forgetting) as a function of the bank alone, by
                     itself: before an export, or under other settings than the episodes were
                     filed with; never when frozen. A dry run only says what would change.
`export_items`       Writes the surviving items as canonical JSONL.
`import_items`       Reads items into the bank, with the upkeep due then, all or none; derived
                     values start afresh. With `ImportChoices` also from a bundle, filtered,
                     remapped, over conflicts.
`forget`, `edit`     Change an item by hand, and what follows from it; `clear` empties the bank
                     (`langgraft.memory.editing`).
`why`, `revoke`      Tell where an item comes from; take back what a source has led to
                     (`langgraft.memory.provenance`).
`describe`           The architecture: provider and settings, as JSON.
===================  =========================================================================

Folding all returned deltas over an empty bank gives the bank, byte for byte, in whatever order
threads, tasks and provider objects called: all providers of a process over one bank share one lock,
and what one has written the others see. Other processes wait for their turn or get
`BankConflictError`, as the store allows (`langgraft.memory.bank`).

How the hardest cases fit (each is exercised in `tests/memory/test_provider_contract.py`):

*ExpeL's votes.* `questions(episode)` shows the numbered rules by id. Verdicts `agree`,
`edit`, `remove` name an item id, `add` brings a text. `file` turns them into
`Annotate(id, {"votes": n + 1})`, `Remove` + `Add` (an edited rule is a new item; its votes
move over in the same delta), `Remove` at zero votes, and `Add`.

*CodingMemory's ADD/NONE with parallel branches.* Branches of a search work at the same time
and ask about their errors against the bank as they see it. One fan-in node files the
episodes in task order. Before each filing it calls `questions` again: where an earlier filing
changed the five nearest records, the question has another id, the old verdict no longer
answers it, and the judge is asked once more. What is filed never depends on which branch
finished first.

*LightweightMemory's cadence.* "Every third episode" is a function of `RecallContext.episode_index`
or, without a stream, of the episode's id: there is no counter to lose in a crash.

*Cond-Step's re-query.* After each turn the graph asks `asks_again`, a pure function of where the
agent stands and where it stood at the last recall. Each recall replaces the one before, and the
episode carries all receipts in order.

A provider of your own subclasses `MemoryProvider` and writes the hooks `_recall` and `_learn` (and,
if it needs them, `_maintain` and `_ask`). A hook returns its value, or is a generator that yields
LangGraph store operations and is sent their results: either way sync and async come for free.
"""

import asyncio
import logging
from abc import ABC, abstractmethod
from collections.abc import Callable, Coroutine, Generator, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, Generic, Literal, ParamSpec, TypeAlias, TypeVar, cast

from langgraph.store.base import BaseStore, Op, Result, SearchOp

from langgraft._core.arguments import check_argument, checked, validation_as
from langgraft._core.canonical import JSON, digest, portable_text
from langgraft._core.effects import Closing, adrive, drive, relay
from langgraft._core.errors import InputError, SettingsError
from langgraft.memory import bank
from langgraft.memory.bank import open_bank, present, with_free_ids
from langgraft.memory.bank_format import write_items
from langgraft.memory.facts import Attribute
from langgraft.memory.forgetting import Notes, counted, credit, forgotten
from langgraft.memory.generations import check_generation, read_generation
from langgraft.memory.importing import ImportChoices, import_changes, refuse_gold
from langgraft.memory.model import (
    Add,
    BankContent,
    Change,
    Episode,
    MemoryDelta,
    MemoryItem,
    Question,
    Scalar,
    SetState,
    Verdict,
    fold,
)
from langgraft.memory.provenance import EPISODES as EPISODES  # noqa: PLC0414  (told here too)
from langgraft.memory.provenance import FILED as FILED  # noqa: PLC0414
from langgraft.memory.provenance import FOLLOWS, Revocable, learned_from, stamped
from langgraft.memory.provenance import NEXT_ORDER as NEXT_ORDER  # noqa: PLC0414
from langgraft.memory.recall import (
    BLANK,
    IN_CONVERSATION,
    IS_BLANK,
    SAME_TASK,
    Budget,
    Filter,
    Found,
    Pool,
    Recall,
    RecallContext,
    is_blank,
    lack_of_room,
    make_recall,
    of_other_tasks,
)
from langgraft.memory.settings import ProviderSettings
from langgraft.memory.sources import FEEDBACK as FEEDBACK  # noqa: PLC0414
from langgraft.memory.stores.programs import Namespace, Program, Step
from langgraft.memory.stores.ranked import RankedStore
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.memory.trust import Trusted, Trusting, asker, named_by_file, rooted
from langgraft.memory.views import Fitting

logger = logging.getLogger(__name__)

P = ParamSpec("P")
T = TypeVar("T")

Need: TypeAlias = Literal["lessons", "errors", "facts", "verdicts", "draft"]
"""What a provider asks of those around it: an episode's lessons, errors or facts, answers to its
questions about an episode, or a draft before it is asked, with answers about that."""

Hooked: TypeAlias = Program[T] | T
"""What a hook returns: its value, or, where it needs the store, a program that comes to it."""

Changes: TypeAlias = Sequence[Change] | MemoryDelta
"""What a hook says is to change: a list of changes, or a delta."""

SettingsT = TypeVar("SettingsT", bound=ProviderSettings)


class MemoryProvider(Revocable, Trusting, Closing, ABC, Generic[SettingsT]):
    """Base of all providers; see the module's documentation for the contract.

    Args:
        store: Any LangGraph store. Providers over one bank of it see one another's writes.
        namespace: Where the bank is; `None` takes `("langgraft", <the provider's name>)`, so
            that different providers share a store. Other banks and records may lie in, above
            or below it.
        settings: The provider's settings; `None` takes the defaults.
        index_directory: A directory of this bank's own, where the index is kept that finding
            items needs, so that a large bank opens at once; then `close` the provider. It is
            not part of the architecture: what is recalled does not depend on it.

    Attributes:
        settings: The provider's settings, of the class `settings_model`.
        namespace: The exact namespace of the bank's records, right below the one given.
        store: The store, with ranked search where the settings name a ranker.

    Raises:
        SettingsError: There is no store, the namespace is not possible, the settings are another
            provider's, or there is no index to keep.
        StorePathError: The directory cannot be used, or another open store has it.
    """

    name: ClassVar[str]
    """The provider's name in plans and manifests."""
    settings: SettingsT
    settings_model: ClassVar[type[ProviderSettings]] = ProviderSettings
    attributes: tuple[Attribute, ...] = ()
    """Attributes of facts that it declares, which whoever extracts facts is told."""

    @checked
    def __init__(
        self,
        store: BaseStore,
        *,
        namespace: Namespace | None = None,
        settings: SettingsT | None = None,
        index_directory: Path | str | None = None,
    ) -> None:
        if settings is not None:
            what = f"`settings` of {type(self).__name__}"
            check_argument(what, settings, self.settings_model)
        self.settings = cast("SettingsT", settings or self.settings_model())
        self.namespace = bank.records_namespace(
            ("langgraft", self.name) if namespace is None else namespace
        )
        ranker = getattr(self.settings, "ranker", None)
        if ranker is None and index_directory is not None:
            msg = f"{type(self).__name__} has no ranker, so that there is no index to keep"
            raise SettingsError(msg)
        self.attributes = getattr(self.settings, "profile", ())
        self._bank = open_bank(store, self.namespace)
        self._frozen = isinstance(store, ReadOnlyStore)
        self._ranked: RankedStore | None = None
        self._keeps_index = index_directory is not None
        if ranker is not None:
            self._ranked = bank.ranked_store(
                store, ranker, directory=index_directory, indexes=self._bank.indexes
            )
        self.store = self._ranked or store

    def refresh(self) -> None:
        """Read the bank anew, also where somebody else writes to it or wrote past all providers."""
        self._bank.refresh()

    def close(self) -> None:
        """Save the index and leave its directory, if there is one; close what was opened for this."""
        if self._ranked is not None:
            self._ranked.close()
        super().close()

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

    # What an agent calls ------------------------------------------------------------------

    @checked
    def provide(self, query: str, context: RecallContext, budget: Budget | None = None) -> Recall:
        """Return what memory has to say; changes nothing.

        Args:
            query: The task's instruction.
            context: Where the agent stands.
            budget: How much room there is; `None`: that of `Budget()`.

        Raises:
            InputError: The query or what is compared with the bank holds a lone surrogate.
        """
        return self._read(self._provide(query, context, budget or Budget()))

    @checked
    async def aprovide(
        self, query: str, context: RecallContext, budget: Budget | None = None
    ) -> Recall:
        """Do as `provide` does, asynchronously."""
        return await self._aread(self._provide(query, context, budget or Budget()))

    @checked
    def draft_questions(self, query: str, context: RecallContext) -> list[Question]:
        """List what a judge should say about `context.draft` and has not; changes nothing."""
        return self._read(self._unanswered_draft(query, context))

    @checked
    async def adraft_questions(self, query: str, context: RecallContext) -> list[Question]:
        """Do as `draft_questions` does, asynchronously."""
        return await self._aread(self._unanswered_draft(query, context))

    @checked
    def questions(self, episode: Episode) -> list[Question]:
        """List what a judge should answer about `episode` and has not; changes nothing."""
        return self._read(self._unanswered(episode))

    @checked
    async def aquestions(self, episode: Episode) -> list[Question]:
        """Do as `questions` does, asynchronously."""
        return await self._aread(self._unanswered(episode))

    @property
    def filings(self) -> bank.FilingStatus:
        """How the filings of this bank go in this process: how many are pending, how many failed, and why."""
        return self._bank.filings

    def generation(self) -> str:
        """Return the name of the bank's generation: another one after each `clear` or deletion.

        Read it when a turn begins, and give it to `file` when the turn is filed.
        """
        return drive(read_generation(self.namespace), self._kept)

    async def ageneration(self) -> str:
        """Do as `generation` does, asynchronously."""
        return await adrive(read_generation(self.namespace), self._kept)

    @checked
    def file(self, episode: Episode, *, generation: str | None = None) -> MemoryDelta:
        """File an episode and do the upkeep that is due then, in one step.

        Filing it again changes nothing and returns an empty delta.

        Args:
            episode: The episode.
            generation: What `generation()` returned when the episode began; `None`: file it also if
                the bank was cleared since.

        Raises:
            BankClearedError: The bank was cleared or deleted after the episode began. Nothing was
                filed; do not try again.
            InputError: The episode holds what no memory can hold, such as a lone surrogate, or
                its outcome is by gold answers and the settings do not declare that.
            ReadOnlyStoreError: The bank is frozen.
            BankConflictError: Another process writes to the bank, and the store cannot make it
                wait.
        """
        return self._write(self._filing(episode, generation))

    @checked
    async def afile(self, episode: Episode, *, generation: str | None = None) -> MemoryDelta:
        """Do as `file` does, asynchronously."""
        return await self._awrite(self._filing(episode, generation))

    def manage(self, *, dry_run: bool = False) -> MemoryDelta:
        """Do the upkeep that is due; a dry run only says what would change."""
        return self._write(self._manage(dry_run=dry_run))

    async def amanage(self, *, dry_run: bool = False) -> MemoryDelta:
        """Do as `manage` does, asynchronously."""
        return await self._awrite(self._manage(dry_run=dry_run))

    # Content ------------------------------------------------------------------------------

    def content(self) -> BankContent:
        """Read all that the bank holds, as it is between two writes."""
        return self._write(bank.read_content(self.namespace))

    async def acontent(self) -> BankContent:
        """Do as `content` does, asynchronously."""
        return await self._awrite(bank.read_content(self.namespace))

    def restore(self, content: BankContent) -> None:
        """Make the store hold exactly `content`, such as the fold of a log."""
        self._write(bank.replace_content(self.namespace, content))

    async def arestore(self, content: BankContent) -> None:
        """Do as `restore` does, asynchronously."""
        await self._awrite(bank.replace_content(self.namespace, content))

    def export_items(self, path: Path | str) -> int:
        """Write the items as canonical JSONL, in order, and return how many.

        Due upkeep must have been done (`manage`); an export itself changes nothing.

        Raises:
            InputError: The path cannot be written.
        """
        return _write(Path(path), self.content())

    async def aexport_items(self, path: Path | str) -> int:
        """Do as `export_items` does, asynchronously."""
        return await asyncio.to_thread(_write, Path(path), await self.acontent())

    def import_items(
        self, path: Path | str, choices: ImportChoices | None = None, *, dry_run: bool = False
    ) -> MemoryDelta:
        """Read items from a file into the bank, all or none; no model is called.

        Texts, keys, ids and the order among the items stay as they are, and notes start afresh.
        `order_index` stays as it is in a bank that never held an item, and is renumbered after
        the bank's last in any other (see `langgraft.memory.importing`).

        Args:
            path: Bare canonical JSONL or, where there are choices, also a bundle.
            choices: What to take, under which domain and task, and what happens where an id is
                taken; `None`, as in a transplant, takes all of it as it is.
            dry_run: Write nothing; only say what would change.

        Returns:
            What was added, what it replaced, and what upkeep then removed.

        Raises:
            BankFormatError: The file cannot be read, is a bundle where no choices are made, or
                holds an id that is already taken and may not be.
            InputError: It holds what was learned from gold answers, and the settings do not
                declare that.
        """
        return self._write(self._import(Path(path), choices, dry_run=dry_run))

    async def aimport_items(
        self, path: Path | str, choices: ImportChoices | None = None, *, dry_run: bool = False
    ) -> MemoryDelta:
        """Do as `import_items` does; the store is asked asynchronously, the file is read at once."""
        return await self._awrite(self._import(Path(path), choices, dry_run=dry_run))

    # What a provider writes ---------------------------------------------------------------

    @abstractmethod
    def _recall(self, query: str, context: RecallContext) -> Hooked[Found]:
        """Find items with their scores, best first."""

    @abstractmethod
    def _learn(self, episode: Episode, position: int, order_index: int) -> Hooked[Changes]:
        """Say what an episode changes; idempotence and bookkeeping are taken care of.

        Args:
            episode: The episode, with verdicts and receipts.
            position: How many episodes were taken in before.
            order_index: The `order_index` of the first new item; the next ones count up.
        """

    def _maintain(self) -> Hooked[Changes]:
        """Say what upkeep changes; it sees the bank with what was just filed or imported."""
        return ()

    def _ask(
        self,
        episode: Episode,  # noqa: ARG002  (for subclasses)
    ) -> Hooked[Sequence[Question]]:
        """List all questions about an episode, answered or not."""
        return ()

    def _ask_draft(
        self,
        query: str,  # noqa: ARG002  (for subclasses)
        context: RecallContext,  # noqa: ARG002
    ) -> Hooked[Sequence[Question]]:
        """List all questions about a draft, answered or not."""
        return ()

    def _settle(
        self,
        items: Sequence[MemoryItem],  # noqa: ARG002  (for subclasses)
    ) -> Hooked[Changes]:
        """Say what the import of items changes beside adding them, such as notes on them.

        It sees the bank as it is before them.
        """
        return ()

    def _pool(self, item: MemoryItem) -> Pool | None:  # noqa: ARG002  (for subclasses)
        """Return the part of the budget that an item draws on; `None`: the whole of it."""
        return None

    # How it is put together ---------------------------------------------------------------

    def _provide(self, query: str, context: RecallContext, budget: Budget) -> Program[Recall]:
        with _refusals_about(f"what episode {context.episode_id!r} asks memory"):
            found, recall = yield from self._found(query, context, budget, lambda asked: asked)
            lacking = recall.without_room
            unfit = partial(self._unfit, budget=budget)
            if not any(
                is_blank(item) or (item.id in lacking and unfit(item)) for item, _ in found.items
            ):
                return recall
            # An item that cannot be given to the agent takes no place among the best.
            view = Fitting(namespace=self.namespace, unfit=unfit)
            _, again = yield from self._found(query, context, budget, view)
            return recall if again.items == recall.items else again

    def _unfit(self, item: MemoryItem, budget: Budget) -> str:
        """Return why an item cannot be given to the agent even alone; empty: it can."""
        return BLANK if is_blank(item) else lack_of_room(item, self._pool(item), budget)

    def _found(
        self,
        query: str,
        context: RecallContext,
        budget: Budget,
        view: Callable[[Program[Found]], Program[Found]],
    ) -> Program[tuple[Found, Recall]]:
        """Search the bank through a view, and further down the ranking where something lacks room."""
        asked = view(_called(Found, self._recall, query, context))
        found: Found = yield from self._viewed(asked, context)
        recall = self._fitted(query, context, budget, found)
        if recall.without_room and found.further is not None:
            further = view(_called(Found, found.further))
            found = yield from self._viewed(further, context)
            recall = self._fitted(query, context, budget, found)
        return found, recall

    def _fitted(self, query: str, context: RecallContext, budget: Budget, found: Found) -> Recall:
        found.query.encode()  # here, and not when its receipt is logged
        if self.settings.same_task == "exclude":
            found = of_other_tasks(found, {context.task_id}, SAME_TASK)
        if context.in_conversation:
            found = of_other_tasks(found, {*context.in_conversation}, IN_CONVERSATION)
        return make_recall(query, context, budget, found)

    def _unanswered_draft(self, query: str, context: RecallContext) -> Program[list[Question]]:
        with _refusals_about(f"what episode {context.episode_id!r} asks memory"):
            called = _called(Sequence, self._ask_draft, query, context)
            asked = yield from self._viewed(called, context)
            return _open(asked, context.verdicts)

    def _unanswered(self, episode: Episode) -> Program[list[Question]]:
        with _refusals_about(f"episode {episode.id!r}"):
            called = _called(Sequence, self._ask, episode.without_memory())
            asked = yield from self._viewed(called, episode.sources)
            return _open(asked, episode.verdicts)

    def _filing(self, episode: Episode, began: str | None) -> Program[MemoryDelta]:
        if began is not None:
            yield from check_generation(self.namespace, began)
        return (yield from self._file(episode))

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
        traced = episode.sources or any(receipt.sources for receipt in episode.recalls)
        sources = learned_from(episode) if traced else ()
        trust = self.settings.trust
        if trust is not None:
            sources = yield from rooted(self.namespace, sources)
        believed = trust is None or trust.believes(sources)
        with _refusals_about(f"episode {episode.id!r}"):
            called = _called(Changes, self._learn, episode, count, first)
            learned: Changes = yield from self._viewed(called, episode.sources, reads=False)
            made: Sequence[Change] = tuple(learned)
            if episode.is_blank:
                made = [_marked_blank(change) for change in made]
            if sources or episode.outcome.feedback != "environment":
                made = stamped(made, episode, sources)
            if trust is not None:
                made = yield from self._allowed(made, sources)
            changes = yield from with_free_ids(self.namespace, made)
            if self._counts_uses and believed:
                credited = yield from credit(self.namespace, episode, self._credited)
        taken_in = MemoryDelta(
            (
                *credited,
                *changes,
                *_renumber(changes, first),
                *((SetState(FOLLOWS + episode.id, list(sources)),) if sources else ()),
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

    def _credited(self, notes: Notes, times: int, *, succeeded: bool) -> Notes:
        """Return the notes on an item that change once so many recalls of it count."""
        return counted(notes, times, succeeded=succeeded)

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
        changes: Changes = yield from _called(Changes, self._maintain)
        delta = MemoryDelta(tuple(changes))
        if self.settings.forgetting:
            content = yield from bank.read_content(self.namespace)
            left = fold([delta], content)
            delta += MemoryDelta(tuple(forgotten(self.settings.forgetting, left)))
        return delta

    def _with_upkeep(self, delta: MemoryDelta) -> Program[MemoryDelta]:
        """Add the upkeep that will be due, so that both are written at once."""
        ranker = getattr(self.settings, "ranker", None)
        upkeep = yield from bank.as_if_applied(self.namespace, delta, self._upkeep(), ranker)
        return delta + upkeep

    def _import(
        self, path: Path, choices: ImportChoices | None, *, dry_run: bool
    ) -> Program[MemoryDelta]:
        content = yield from bank.read_content(self.namespace)
        first = cast("int", content.state.get(NEXT_ORDER, 0))
        if self.settings.trust is not None:
            choices = named_by_file(path, choices)
        changes = import_changes(path, choices, content.items, first)
        if self.settings.feedback != "oracle":
            refuse_gold(path, changes)
        return (yield from self._taken_in(changes, dry_run=dry_run))

    def _taken_in(
        self, changes: Sequence[Change], *, dry_run: bool = False
    ) -> Program[MemoryDelta]:
        added = [change.item for change in changes if isinstance(change, Add)]
        settled: Changes = yield from _called(Changes, self._settle, added)
        following = (SetState(NEXT_ORDER, added[-1].order_index + 1),) if added else ()
        delta = yield from self._with_upkeep(MemoryDelta((*changes, *settled, *following)))
        if not dry_run:
            yield from bank.apply_delta(self.namespace, delta)
        return delta

    def _viewed(
        self, program: Program[T], who: Sequence[str] | RecallContext, *, reads: bool = True
    ) -> Program[T]:
        """Run a program that sees of the bank what trust settings let who asks, or these users, see."""
        if isinstance(who, RecallContext) and who.in_conversation:
            tasks = {*who.in_conversation}
            program = Fitting(
                namespace=self.namespace,
                unfit=lambda item: IN_CONVERSATION if item.task_id in tasks else "",
            )(program)
        trust = self.settings.trust
        if trust is None:
            return program
        users = asker(who) if isinstance(who, RecallContext) else who
        return Trusted(namespace=self.namespace, trust=trust, users=users, reads=reads)(program)

    # For subclasses -----------------------------------------------------------------------

    def _task_filter(self, context: RecallContext) -> Filter:
        """Return the filter of items that may be recalled for the task that asks: all, by default."""
        if self.settings.same_task == "allow":
            return {}
        return {bank.TASK_FIELD: {"$ne": portable_text(context.task_id)}}

    def _standing(self, verdicts: Sequence[Verdict]) -> Program[list[Verdict]]:
        """Keep the verdicts whose item is still there; the others are logged."""
        named = {verdict.item_id for verdict in verdicts if verdict.item_id is not None}
        gone = named.difference((yield from present(self.namespace, sorted(named))))
        for identity in sorted(gone):
            logger.info("verdict ignored: item %r is no longer in the bank", identity)
        return [verdict for verdict in verdicts if verdict.item_id not in gone]

    # How programs are run -----------------------------------------------------------------

    @property
    def _kept(self) -> BaseStore:
        """The store that programs go to."""
        return self.store if self._ranked is None else self._ranked.store

    def _read(self, program: Program[T]) -> T:
        return drive(self._up_to_date(program), self._kept)

    async def _aread(self, program: Program[T]) -> T:
        return await adrive(self._up_to_date(program), self._kept)

    def _up_to_date(self, program: Program[T]) -> Program[T]:
        ranked = self._with_ranking(program)
        return ranked if self._bank.alone else self._bank.reading(ranked)

    def _writing(self, program: Program[T]) -> Program[T]:
        corpora = None if self._ranked is None else self._ranked.corpora
        return self._bank.writing(self._with_ranking(program), corpora, frozen=self._frozen)

    def _with_ranking(self, program: Program[T]) -> Program[T]:
        """Have searches answered by rank; all else goes to the store as it is."""
        ranked = self._ranked
        if ranked is None:
            return program

        def answer(step: Step) -> Program[list[Result]]:
            if isinstance(step, Sequence) and any(map(_asks, step)):
                return (yield from ranked.program(step))
            return (yield step)

        return relay(program, answer)

    def _write(self, program: Program[T]) -> T:
        with self._bank.lock.held(here=self._frozen):
            return drive(self._writing(program), self._kept)

    async def _awrite(self, program: Program[T]) -> T:
        async with self._bank.lock.aheld(here=self._frozen):
            return await adrive(self._writing(program), self._kept)


def _asks(op: Op) -> bool:
    return isinstance(op, SearchOp) and bool(op.query)


def _write(path: Path, content: BankContent) -> int:
    items = sorted(content.items.values(), key=lambda item: (item.order_index, item.id))
    write_items(path, items)
    return len(items)


def program(made: Hooked[T]) -> Program[T]:
    """Return what a hook somebody wrote made as a program.

    Raises:
        SettingsError: The hook is `async`.
    """
    if isinstance(made, Generator):
        return made
    if isinstance(made, Coroutine):
        made.close()
        name = getattr(made, "__qualname__", made)
        msg = f"`{name}` is async: make it a plain function, or a generator that yields operations"
        raise SettingsError(msg)
    return _returned(made)


def _returned(value: T) -> Program[T]:
    yield from ()
    return value


def _called(
    kind: object, hook: Callable[P, Hooked[Any]], *args: P.args, **kwargs: P.kwargs
) -> Program[Any]:
    """Call a hook that somebody wrote.

    Raises:
        SettingsError: It is `async`, or what it comes to is not of its kind.
    """
    returned: object = yield from program(hook(*args, **kwargs))
    name = getattr(hook, "__qualname__", hook)
    check_argument(f"what `{name}` returns", returned, kind)
    return returned


@contextmanager
def _refusals_about(what: str) -> Iterator[None]:
    """Refuse in one line what no item, question or log can hold."""
    try:
        with validation_as(InputError, f"{what} cannot be remembered: "):
            yield
    except UnicodeEncodeError as error:
        msg = f"{what} holds a lone surrogate, which no log can hold"
        raise InputError(msg) from error


def _open(asked: Sequence[Question], verdicts: Sequence[Verdict]) -> list[Question]:
    answered = {verdict.question_id for verdict in verdicts}
    return [question for question in asked if question.id not in answered]


def with_feedback(item: MemoryItem, feedback: Scalar) -> MemoryItem:
    """Return an item that says in its metadata whose word its success is."""
    return item.model_copy(update={"metadata": {**item.metadata, FEEDBACK: feedback}})


def _marked_blank(change: Change) -> Change:
    if not isinstance(change, Add):
        return change
    metadata = {**change.item.metadata, IS_BLANK: True}
    return Add(change.item.model_copy(update={"metadata": metadata}))


def _renumber(changes: Sequence[Change], first: int) -> Sequence[SetState]:
    added = sum(isinstance(change, Add) for change in changes)
    return (SetState(NEXT_ORDER, first + added),) if added else ()
