"""Banks that an application opens: one at a path, or one for each of its users over one store.

    with open_memory("memory.sqlite") as memory: ...

    banks = Banks(store, "insight", max_open=500)
    memory = banks["ada@example.org"]  # a provider over that user's bank, and nobody else's
    both = banks.layered("ada@example.org", "team:red")  # recalls of both, files in the first
    banks.delete("ada@example.org")

Users, agents and teams are all labels; what a label stands for is the application's to say.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack
from itertools import chain
from pathlib import Path
from threading import Lock
from types import MappingProxyType
from typing import Any, ClassVar, Final, TypeAlias, cast
from urllib.parse import unquote
from weakref import WeakValueDictionary

from langgraph.store.base import BaseStore, ListNamespacesOp, MatchCondition, SearchOp
from langgraph.store.memory import InMemoryStore
from typing_extensions import override

from langgraft._core.arguments import check_argument, checked
from langgraft._core.canonical import JSON
from langgraft._core.effects import Closing, adrive, drive, in_thread
from langgraft._core.errors import InfrastructureError, InputError, SettingsError
from langgraft._core.forks import at_fork, renewed
from langgraft.memory.bank import (
    RECORDS,
    OpenBank,
    bank_namespace,
    banks_under,
    let_go,
    open_bank,
    records_namespace,
)
from langgraft.memory.generations import next_generation
from langgraft.memory.importing import ImportChoices
from langgraft.memory.model import (
    BankContent,
    Change,
    Episode,
    MemoryDelta,
    MemoryItem,
    Question,
)
from langgraft.memory.provider import MemoryProvider, Need, program
from langgraft.memory.providers import provider_class, provider_settings
from langgraft.memory.recall import Budget, Found, Recall, RecallContext
from langgraft.memory.settings import ProviderSettings
from langgraft.memory.stores.kept_indexes import change_log
from langgraft.memory.stores.named import open_store
from langgraft.memory.stores.programs import Namespace, Program, erase, read_all
from langgraft.memory.stores.put_indexes import INDEX

Label: TypeAlias = str | int
"""Who a bank is of: any text, or an integer. `1` and `"1"` are two, and so are `"Ada"` and `"ada"`."""

MOST_OPEN: Final = 1_000
"""Banks kept open where nothing else is said."""

_LISTED: Final = 1_000_000
_CHROMA: Final = "chroma.sqlite3"
_NUMBER: Final = "#"
_ESCAPED: Final = re.compile(r"[^\w@+-]|^langgraft", re.UNICODE)


@checked
def open_memory(
    path: Path | str,
    provider: str | type[MemoryProvider[Any]] = "trajectory",
    *,
    settings: Mapping[str, Any] | ProviderSettings = MappingProxyType({}),
    namespace: Namespace | None = None,
) -> MemoryProvider[Any]:
    """Open a durable bank, or make it where there is none, and return a provider over it.

    ```python
    with open_memory("memory.sqlite", "insight", settings={"top_k": 3}) as memory:
        memory.provide("open the red door", context)
    ```

    What was filed survives `kill -9` and a power loss. The index of a large bank is kept beside it.
    `close` the provider, or use it as a context manager, also asynchronous, to save the latest
    index and close the file.

    Args:
        path: A SQLite file, as the store `sqlite:PATH` has it, which other processes may have open
            too; a folder stands for `memory.sqlite` in it, or for the Chroma database that it is. A
            store's name is taken as well: `chroma:PATH`, `postgresql://…`.
        provider: Its name in plans, `package.module:Class`, or the class.
        settings: The provider's settings, as plans have them or as an object.
        namespace: Where the bank is; `None`: `("langgraft", <the provider's name>)`.

    Raises:
        SettingsError: There is no such provider or setting, the namespace is not possible, or the
            store cannot be opened.
        InputError: The file is damaged or another program's.
    """
    make = _maker(provider, settings)
    if namespace is not None:
        records_namespace(namespace)  # before anything is made
    with ExitStack() as opened:
        memory = make(opened.enter_context(open_store(_store_name(path))), namespace)
        memory.also_close(opened.pop_all())
        return memory


def _store_name(path: Path | str) -> str:
    text = str(path)
    if isinstance(path, str) and ("://" in text or text.partition(":")[0] in ("chroma", "sqlite")):
        return text
    chroma = (Path(text).expanduser() / _CHROMA).exists()
    return f"{'chroma' if chroma else 'sqlite'}:{text}"


_Maker: TypeAlias = Callable[[BaseStore, Namespace | None], MemoryProvider[Any]]


def _maker(
    provider: str | type[MemoryProvider[Any]], settings: Mapping[str, Any] | ProviderSettings
) -> _Maker:
    """Return what makes providers, once their class and settings are checked."""
    kind = provider_class(provider)
    if isinstance(settings, ProviderSettings):
        check_argument(f"`settings` of {kind.__name__}", settings, kind.settings_model)
        made: ProviderSettings = settings
    elif isinstance(provider, str):
        made = provider_settings(provider, settings)
    else:
        made = kind.settings_model(**settings)
    return lambda store, namespace: kind(store, namespace=namespace, settings=made)


class Banks(Closing):
    """The banks of many users over one store, each opened when it is asked for.

    A bank is known by its label and is in a namespace of its own, so that no recall, index or
    statistic of one user holds anything of another. Threads and tasks may use it together.

    A provider that somebody holds goes on working, however many others are opened, and is the same
    object when its label is asked for again.

    Args:
        store: Any LangGraph store, or a path or name as `open_memory` takes it, which `close` closes.
        provider: Its name in plans, `package.module:Class`, or the class.
        settings: Those of all banks, as plans have them or as an object.
        namespace: What the banks' namespaces begin with; `None`: `("langgraft-users", <the
            provider's name>)`.
        max_open: Banks kept open with their indexes; the least recently used is closed, and opened
            again when it is asked for.

    Raises:
        SettingsError: There is no such provider or setting, or one of the arguments is not possible.
    """

    @checked
    def __init__(
        self,
        store: BaseStore | Path | str,
        provider: str | type[MemoryProvider[Any]] = "trajectory",
        settings: Mapping[str, Any] | ProviderSettings = MappingProxyType({}),
        *,
        namespace: Namespace | None = None,
        max_open: int = MOST_OPEN,
    ) -> None:
        if max_open < 1:
            msg = f"max_open must be at least 1, got {max_open}"
            raise SettingsError(msg)
        self._make = _maker(provider, settings)
        kind = provider_class(provider)
        self.namespace = ("langgraft-users", kind.name) if namespace is None else namespace
        records_namespace(self.namespace)
        self._opening: AbstractContextManager[BaseStore] | None = None
        if not isinstance(store, BaseStore):
            self._opening = open_store(_store_name(store))
            store = self._opening.__enter__()
            self.also_close(self._opening)
        self.store: BaseStore = store
        self.max_open = max_open
        self._lock = renewed(Lock())
        self._latest: OrderedDict[str, MemoryProvider[Any]] = OrderedDict()
        self._held: WeakValueDictionary[str, MemoryProvider[Any]] = WeakValueDictionary()
        self._in_child()
        at_fork("in_child", self._in_child)
        self._closed = False

    def _in_child(self) -> None:
        # Closing may write an index to disk, for which no event loop should wait.
        self._closing = ThreadPoolExecutor(1, thread_name_prefix="langgraft-banks")

    def __getitem__(self, label: Label) -> MemoryProvider[Any]:
        """Return the provider of a label; its bank is made when something is filed.

        Raises:
            InputError: It cannot be a label, or the banks are closed.
        """
        name = escaped(label)
        with self._lock:
            if self._closed:
                msg = "these banks are closed; open them again"
                raise InputError(msg)
            memory = self._held.get(name)
            if memory is None:
                memory = self._make(self.store, (*self.namespace, name))
                # The store stays open as long as somebody holds a bank in it: Banks(path)["ada"].
                vars(memory)["_opening"] = self._opening
                self._held[name] = memory
            self._latest[name] = memory
            self._latest.move_to_end(name)
            if len(self._latest) > self.max_open:
                _, oldest = self._latest.popitem(last=False)
                self._closing.submit(self._let_go, oldest)
            return memory

    def layered(self, own: Label, *shared: Label) -> "LayeredMemory":
        """Return a provider that recalls from several banks, and files in the first.

        What the first recalls comes first; the others, in their order, have the room it leaves.
        """
        return LayeredMemory(self[own], [self[label] for label in shared])

    def users(self) -> list[Label]:
        """List the labels whose banks hold anything, as they were given."""
        return drive(self._users(), self.store)

    async def ausers(self) -> list[Label]:
        """Do as `users` does, asynchronously."""
        return await adrive(self._users(), self.store)

    def __iter__(self) -> Iterator[Label]:
        return iter(self.users())

    def delete(self, label: Label) -> int:
        """Delete all that is kept of a label, and return how many records that were.

        Its indexes go too, those kept on disk included; that nothing is left is looked up. A provider
        of it that somebody holds has an empty bank then. What began before, and is filed with its
        `generation` in this process or another, is refused.

        Raises:
            InputError: It cannot be a label.
            InfrastructureError: Something is left: the store fails, or somebody writes to it.
        """
        bank, erasing = self._deletion(label)
        with bank.lock.held():
            return drive(erasing, self.store)

    async def adelete(self, label: Label) -> int:
        """Do as `delete` does, asynchronously."""
        bank, erasing = self._deletion(label)
        async with bank.lock.aheld():
            return await adrive(erasing, self.store)

    def close(self) -> None:
        """Close all banks, and the store if it was opened here."""
        with self._lock:
            self._closed = True
            open_ones, self._latest = list(self._latest.values()), OrderedDict()
        for memory in open_ones:
            self._closing.submit(self._let_go, memory)
        self._closing.shutdown()
        super().close()

    def _let_go(self, memory: MemoryProvider[Any]) -> None:
        memory.close()
        let_go(self.store, memory.namespace)

    def _deletion(self, label: Label) -> tuple[OpenBank, Program[int]]:
        name = escaped(label)
        with self._lock:
            self._latest.pop(name, None)
        namespace = (*self.namespace, name)
        records = records_namespace(namespace)
        bank = open_bank(self.store, records)
        return bank, self._erasing(label, records, bank)

    def _erasing(self, label: Label, records: Namespace, bank: OpenBank) -> Program[int]:
        prefix = banks_under(bank_namespace(records))
        yield from next_generation(records)
        count = yield from erase(prefix)
        yield from erase((INDEX, *prefix))
        yield in_thread(bank.refresh)
        log = change_log(self.store)
        if log is not None:
            yield in_thread(log.forget_deleted, prefix)
            yield in_thread(log.indexes.drop, (*prefix, RECORDS))
        left = yield from read_all(prefix)
        if left:
            msg = (
                f"{len(left)} records of {label!r:.80} are still there: somebody writes to its bank"
            )
            raise InfrastructureError(msg)
        return count

    def _users(self) -> Program[list[Label]]:
        prefix = banks_under(self.namespace)
        depth = len(prefix) + 1
        under = (MatchCondition("prefix", prefix),)
        found = yield [ListNamespacesOp(under, max_depth=depth, limit=_LISTED)]
        places = sorted({tuple(each) for each in cast("list[Namespace]", found[0])})
        places = [each for each in places if len(each) == depth]
        if isinstance(self.store, InMemoryStore) and places:  # it lists empty ones as well
            first = yield [SearchOp(each, limit=1) for each in places]
            places = [each for each, some in zip(places, first, strict=True) if some]
        return [unescaped(each[-1]) for each in places]


def escaped(label: Label) -> str:
    """Return a label as a label of a namespace; no two have the same.

    Raises:
        InputError: It is empty, or neither a text nor an integer.
    """
    if isinstance(label, int) and not isinstance(label, bool):
        return f"{_NUMBER}{label}"
    if not isinstance(label, str) or not label:
        msg = f"a bank is named by a text that is not empty, or an integer; got {label!r:.80}"
        raise InputError(msg)
    return _ESCAPED.sub(_percent, label)


def _percent(match: re.Match[str]) -> str:
    first, rest = match[0][0], match[0][1:]
    return "".join(f"%{byte:02X}" for byte in first.encode("utf-8", "surrogatepass")) + rest


def unescaped(name: str) -> Label:
    """Return the label that `escaped` was given."""
    if name.startswith(_NUMBER):
        return int(name.removeprefix(_NUMBER))
    return unquote(name, errors="surrogatepass")


class LayeredMemory(MemoryProvider[ProviderSettings]):
    """Recalls from a bank of its own, then from others, within one budget; files in its own.

    An item that several banks hold is taken from the first. Items of other banks earn no credit, since
    nothing is written there. Everything else (`content`, imports, questions) is of its own bank.

    Args:
        own: The provider that is asked first, and files.
        shared: Those that are asked after it, over the same store.

    Raises:
        SettingsError: The providers are over several stores.
    """

    name: ClassVar[str] = "layered"

    @checked
    def __init__(self, own: MemoryProvider[Any], shared: Sequence[MemoryProvider[Any]]) -> None:
        same = own.settings
        super().__init__(
            own.store,
            settings=ProviderSettings(
                feedback=same.feedback, same_task=same.same_task, trust=same.trust
            ),
        )
        self.own, self.shared = own, tuple(shared)
        if any(each._kept is not own._kept for each in shared):  # noqa: SLF001
            msg = "the layers of a memory are banks in one store, got several stores"
            raise SettingsError(msg)
        self.namespace = own.namespace
        self.store = own._kept  # noqa: SLF001 - each layer ranks by itself
        self._bank = own._bank  # noqa: SLF001 - one lock, whichever of the two is called
        self._frozen = own._frozen  # noqa: SLF001
        self.derived, self.attributes = own.derived, own.attributes

    @property
    @override
    def needs(self) -> frozenset[Need]:
        return self.own.needs

    @override
    def refresh(self) -> None:
        for layer in (self.own, *self.shared):
            layer.refresh()

    @override
    def close(self) -> None:
        for layer in (self.own, *self.shared):
            layer.close()

    @override
    def asks_again(self, query: str, context: RecallContext, last: RecallContext) -> bool:
        return any(each.asks_again(query, context, last) for each in (self.own, *self.shared))

    @override
    def describe(self) -> dict[str, JSON]:
        return {
            **super().describe(),
            "layers": [each.describe() for each in (self.own, *self.shared)],
        }

    @override
    def _provide(self, query: str, context: RecallContext, budget: Budget) -> Program[Recall]:
        """Ask each layer as if it were alone, and fit all that they recall into one budget."""
        recalls: list[Recall] = []
        for layer in (self.own, *self.shared):
            asked = layer._provide(query, context, budget)  # noqa: SLF001
            recalls.append((yield from layer._up_to_date(asked)))  # noqa: SLF001
        found: dict[str, tuple[MemoryItem, float]] = {}
        for recall in recalls:
            for item, score in zip(recall.items, recall.scores, strict=True):
                found.setdefault(item.id, (item, score))
        merged = Found(
            items=tuple(found.values()),
            query=recalls[0].receipt.searched,
            tied=recalls[0].receipt.tied,
            best_last=recalls[0].best_last,
            dropped=tuple(chain.from_iterable(each.dropped for each in recalls)),
        )
        return self._fitted(query, context, budget, merged)

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        return program(self.own._recall(query, context))  # noqa: SLF001

    @override
    def _ask_draft(self, query: str, context: RecallContext) -> Program[Sequence[Question]]:
        asked = program(self.own._ask_draft(query, context))  # noqa: SLF001
        return self.own._with_ranking(asked)  # noqa: SLF001

    @override
    def _ask(self, episode: Episode) -> Program[Sequence[Question]]:
        return self.own._with_ranking(program(self.own._ask(episode)))  # noqa: SLF001

    @override
    def _file(self, episode: Episode) -> Program[MemoryDelta]:
        return self.own._with_ranking(self.own._file(episode))  # noqa: SLF001

    @override
    def _manage(self, *, dry_run: bool = False) -> Program[MemoryDelta]:
        return self.own._with_ranking(self.own._manage(dry_run=dry_run))  # noqa: SLF001

    @override
    def _import(
        self, path: Path, choices: ImportChoices | None, *, dry_run: bool
    ) -> Program[MemoryDelta]:
        asked = self.own._import(path, choices, dry_run=dry_run)  # noqa: SLF001
        return self.own._with_ranking(asked)  # noqa: SLF001

    @override
    def _learn(self, episode: Episode, position: int, order_index: int) -> Sequence[Change]:
        return ()

    @property
    @override
    def revokes_exactly(self) -> bool:
        return self.own.revokes_exactly

    @override
    def _withdraw(self, left: BankContent, episodes: Collection[str]) -> Sequence[Change]:
        return self.own._withdraw(left, episodes)  # noqa: SLF001

    @override
    def _filed_anew(self, imported: Sequence[MemoryItem], kept: Sequence[Episode]) -> BankContent:
        return self.own._filed_anew(imported, kept)  # noqa: SLF001

    @override
    def _edited(self, old: MemoryItem, new: MemoryItem) -> MemoryItem:
        return self.own._edited(old, new)  # noqa: SLF001

    @override
    def _releasing(self, content: BankContent, item_id: str) -> MemoryDelta:
        return self.own._releasing(content, item_id)  # noqa: SLF001

    @override
    def _follow(
        self, content: BankContent, old: MemoryItem, new: MemoryItem | None
    ) -> Sequence[Change]:
        return self.own._follow(content, old, new)  # noqa: SLF001
