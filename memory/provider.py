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
`describe`           The architecture: provider and settings, as JSON.
===================  =========================================================================

Folding all returned deltas over an empty bank gives the bank, byte for byte, in whatever order
threads, tasks and provider objects called: all providers of a process over one bank share one lock,
and what one has written the others see. Other processes wait for their turn or are told, as the
store allows (`langgraft.memory.writers`).

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

*LightweightMemory's cadence.* "Every third episode" is `index % 3 == 0` with `index` taken
from `RecallContext.episode_index` or, where an application has no stream, from the number of
episodes in the bank. Both are functions of the log; there is no counter to lose in a crash.

*Cond-Step's re-query.* After each turn the graph asks `asks_again`, a pure function of where the
agent stands and where it stood at the last recall: after so many steps, or when what it sees has
changed in kind. Each `provide` gets the step and the present observation in its context and is
as pure as the first; its recall replaces the one before, and the episode carries all receipts in
order.

A provider of your own subclasses `MemoryProvider` and writes the programs `_recall` and
`_learn` (and, if it needs them, `_maintain` and `_ask`). A program is a generator that yields
LangGraph store operations and is sent their results, so sync and async come for free.
"""

import asyncio
from pathlib import Path
from typing import ClassVar, TypeVar, cast

from langgraph.store.base import BaseStore

from langgraft._core.arguments import check_argument, checked
from langgraft._core.errors import SettingsError
from langgraft.memory import bank
from langgraft.memory.bank_format import write_items
from langgraft.memory.deltas import (
    BankContent,
    MemoryDelta,
)
from langgraft.memory.episodes import Episode
from langgraft.memory.importing import ImportChoices
from langgraft.memory.items import MemoryItem
from langgraft.memory.open_banks import open_bank
from langgraft.memory.policy import MemoryPolicy, SettingsT
from langgraft.memory.questions import Question
from langgraft.memory.recall import (
    Budget,
    Recall,
    RecallContext,
)
from langgraft.memory.settings import ProviderSettings
from langgraft.memory.stores.drive import Program, adrive, drive
from langgraft.memory.stores.ranked import RankedStore
from langgraft.memory.stores.read_only import ReadOnlyStore

T = TypeVar("T")


class MemoryProvider(MemoryPolicy[SettingsT]):
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
        namespace: The exact namespace of the bank's records, right below the one given.
        store: The store, with ranked search where the settings name a ranker.

    Raises:
        SettingsError: There is no store, the namespace is not possible, the settings are another
            provider's, or there is no index to keep.
        StorePathError: The directory cannot be used, or another open store has it.
    """

    settings_model: ClassVar[type[ProviderSettings]] = ProviderSettings

    @checked
    def __init__(
        self,
        store: BaseStore,
        *,
        namespace: bank.Namespace | None = None,
        settings: SettingsT | None = None,
        index_directory: Path | str | None = None,
    ) -> None:
        if settings is not None:
            what = f"`settings` of {type(self).__name__}"
            check_argument(what, settings, self.settings_model)
        self.settings = cast("SettingsT", settings or self.settings_model())
        self.namespace = bank.place(("langgraft", self.name) if namespace is None else namespace)
        ranker = getattr(self.settings, "ranker", None)
        if ranker is None and index_directory is not None:
            msg = f"{type(self).__name__} has no ranker, so that there is no index to keep"
            raise SettingsError(msg)
        self._bank = open_bank(store, self.namespace)
        self._frozen = isinstance(store, ReadOnlyStore)
        self._ranked: RankedStore | None = None
        if ranker is not None:
            self._ranked = bank.ranked_items(
                store, ranker, directory=index_directory, indexes=self._bank.indexes
            )
        self.store = self._ranked or store

    def refresh(self) -> None:
        """Read the bank anew, also where somebody else writes to it or wrote past all providers."""
        self._bank.refresh()

    def close(self) -> None:
        """Save the index and leave its directory, if there is one; nothing is taken in then."""
        if self._ranked is not None:
            self._ranked.close()

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

    @checked
    def file(self, episode: Episode) -> MemoryDelta:
        """File an episode and do the upkeep that is due then, in one step.

        Filing it again changes nothing and returns an empty delta.

        Raises:
            InputError: The episode holds what no memory can hold, such as a lone surrogate, or
                its outcome is by gold answers and the settings do not declare that.
            ReadOnlyStoreError: The bank is frozen.
            BankConflictError: Another process writes to the bank, and the store cannot make it
                wait.
        """
        return self._write(self._file(episode))

    @checked
    async def afile(self, episode: Episode) -> MemoryDelta:
        """Do as `file` does, asynchronously."""
        return await self._awrite(self._file(episode))

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

    # How programs are run -----------------------------------------------------------------

    def _read(self, program: Program[T]) -> T:
        return drive(self._bank.reading(program), self.store)

    async def _aread(self, program: Program[T]) -> T:
        return await adrive(self._bank.reading(program), self.store)

    def _write(self, program: Program[T]) -> T:
        with self._bank.lock.held(here=self._frozen):
            return drive(self._bank.writing(program), self.store)

    async def _awrite(self, program: Program[T]) -> T:
        async with self._bank.lock.aheld(here=self._frozen):
            return await adrive(self._bank.writing(program), self.store)


def _write(path: Path, content: BankContent) -> int:
    items = sorted(content.items.values(), key=_order)
    write_items(path, items)
    return len(items)


def _order(item: MemoryItem) -> tuple[int, str]:
    return item.order_index, item.id
