"""Controls: providers that wrap another one and take away what should matter.

=============  ==========================================  ======================================
name           takes away                                  keeps (memory-transplants §4.5)
=============  ==========================================  ======================================
`random`       relevance: random items of the same bank    how many items, and about how many
                                                           tokens
`random-own`   relevance, and what other domains left:     how many items, while the bank has
               random items of the domain that asks        them, and about how many tokens
`placebo`      meaning: neutral filler                     how many items, and how many tokens
`shuffled`     relevance: the items least like the query   how many items
`framing`      every item                                  that there are said to be notes
`write_only`   retrieval: nothing is recalled              reflection, filing and upkeep
`frozen`       learning; recall too, if asked              the bank, as it is
=============  ==========================================  ======================================

The first five recall in place of the provider they wrap. A difference to that provider
is then due to *what* is recalled. They file nothing, for evaluation on a bank that is there, or
with `learn=True` what the wrapped provider would: then a study in which memory learns has its
controls too.
"""

from abc import abstractmethod
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, islice
from pathlib import Path
from typing import Any, ClassVar, Final

from typing_extensions import override

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON, seeded_fraction
from langgraft.memory import bank
from langgraft.memory.importing import ImportChoices
from langgraft.memory.model import BankContent, Change, Episode, MemoryDelta, MemoryItem, Question
from langgraft.memory.provider import MemoryProvider, Need, program
from langgraft.memory.recall import (
    Budget,
    Found,
    Pool,
    Recall,
    RecallContext,
    fits,
    is_blank,
    make_recall,
    render_block,
)
from langgraft.memory.settings import ProviderSettings
from langgraft.memory.sources import combined
from langgraft.memory.stores.programs import Program
from langgraft.memory.stores.read_only import ReadOnlyStore
from langgraft.memory.words import tokenize


class Control(MemoryProvider[ProviderSettings]):
    """Base of the controls: asked as the wrapped provider is; files as it does, or nothing.

    Where nothing is filed, episodes pass by, and an import is refused. Where it learns, questions and
    needs are the wrapped provider's, so that the agent does all else that it would do, drafts
    included; receipts are taken off, so that no item earns credit for what it was not.

    Args:
        inner: The provider to imitate; its bank is read, and written where it learns.
        learn: Whether it files and manages as the wrapped provider does.

    Attributes:
        inner: The wrapped provider.
        learns: Whether it files.
    """

    @checked
    def __init__(self, inner: MemoryProvider[Any], *, learn: bool = False) -> None:
        settings = ProviderSettings(same_task=inner.settings.same_task, trust=inner.settings.trust)
        super().__init__(ReadOnlyStore(inner.store), settings=settings)
        self.namespace = inner.namespace
        self._bank = inner._bank  # noqa: SLF001 - one lock, whichever of the two is called
        self.inner = inner
        self.learns = learn
        self.derived, self.attributes = inner.derived, inner.attributes
        if learn:
            self.store = inner.store
            self._frozen = inner._frozen  # noqa: SLF001 - written, unless the inner one is not
            self._keeps_index = inner._keeps_index  # noqa: SLF001

    @property
    @override
    def needs(self) -> frozenset[Need]:
        """What the wrapped provider needs; where nothing is filed, only a draft to recall by."""
        return self.inner.needs if self.learns else self.inner.needs & {"draft"}

    @override
    def refresh(self) -> None:
        self.inner.refresh()

    @override
    def close(self) -> None:
        self.inner.close()

    @override
    def asks_again(self, query: str, context: RecallContext, last: RecallContext) -> bool:
        """Ask again when the wrapped provider does."""
        return self.inner.asks_again(query, context, last)

    @override
    def describe(self) -> dict[str, JSON]:
        """Return the control and the architecture it wraps."""
        return {"control": self.name, "of": self.inner.describe()}

    @override
    def _pool(self, item: MemoryItem) -> Pool | None:
        return self.inner._pool(item)  # noqa: SLF001

    @override
    def _ask_draft(self, query: str, context: RecallContext) -> Program[Sequence[Question]]:
        return program(self.inner._ask_draft(query, context))  # noqa: SLF001

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        return program(self.inner._recall(query, context))  # noqa: SLF001

    def _real(self, query: str, context: RecallContext, budget: Budget) -> Program[Recall]:
        """Recall what the wrapped provider delivers under this budget."""
        return self.inner._provide(query, context, budget)  # noqa: SLF001

    @override
    def _ask(self, episode: Episode) -> Program[Sequence[Question]]:
        return program(self.inner._ask(episode) if self.learns else ())  # noqa: SLF001

    @override
    def _file(self, episode: Episode) -> Program[MemoryDelta]:
        if not self.learns:
            return program(MemoryDelta())
        recalled = combined(*(receipt.sources for receipt in episode.recalls))
        told = combined(episode.sources, recalled)  # what it was shown it goes on following from
        return self.inner._file(replace(episode, recalls=(), sources=told))  # noqa: SLF001

    @override
    def _manage(self, *, dry_run: bool = False) -> Program[MemoryDelta]:
        if self.learns:
            return self.inner._manage(dry_run=dry_run)  # noqa: SLF001
        return super()._manage(dry_run=dry_run)

    @override
    def _import(
        self, path: Path, choices: ImportChoices | None, *, dry_run: bool
    ) -> Program[MemoryDelta]:
        if self.learns:
            return self.inner._import(path, choices, dry_run=dry_run)  # noqa: SLF001
        return super()._import(path, choices, dry_run=dry_run)

    @property
    @override
    def revokes_exactly(self) -> bool:
        return self.inner.revokes_exactly

    @override
    def _withdraw(self, left: BankContent, episodes: Collection[str]) -> Sequence[Change]:
        return self.inner._withdraw(left, episodes)  # noqa: SLF001

    @override
    def _filed_anew(self, imported: Sequence[MemoryItem], kept: Sequence[Episode]) -> BankContent:
        return self.inner._filed_anew(imported, kept)  # noqa: SLF001

    @override
    def _releasing(self, content: BankContent, item_id: str) -> MemoryDelta:
        return self.inner._releasing(content, item_id)  # noqa: SLF001

    @override
    def _edited(self, old: MemoryItem, new: MemoryItem) -> MemoryItem:
        return self.inner._edited(old, new)  # noqa: SLF001

    @override
    def _follow(
        self, content: BankContent, old: MemoryItem, new: MemoryItem | None
    ) -> Sequence[Change]:
        return self.inner._follow(content, old, new)  # noqa: SLF001

    @override
    def _learn(self, episode: Episode, position: int, order_index: int) -> Sequence[Change]:
        return ()


def empty_recall(query: str, context: RecallContext, budget: Budget) -> Recall:
    """Return an empty recall, whose receipt gives no item credit."""
    return make_recall(query, context, budget, Found())


class Frozen(Control):
    """Files and manages nothing; recalls what the wrapped provider does, or nothing.

    `recalls` is whether anything is recalled.

    The two arms of the marginal utility of retrieval (memory-transplants §4.5, gate G6): the same
    bank, with and without recall, and its digest the same after both.

    Args:
        inner: The provider whose bank is frozen.
        provide: Whether anything is recalled.
    """

    name: ClassVar[str] = "frozen"

    @checked
    def __init__(self, inner: MemoryProvider[Any], *, provide: bool = True) -> None:
        super().__init__(inner)
        self.recalls = provide

    @property
    @override
    def needs(self) -> frozenset[Need]:
        """A draft, where one is wanted to recall."""
        return super().needs if self.recalls else frozenset()

    @override
    def asks_again(self, query: str, context: RecallContext, last: RecallContext) -> bool:
        """Ask again when the wrapped provider does, if anything is recalled."""
        return self.recalls and super().asks_again(query, context, last)

    @override
    def describe(self) -> dict[str, JSON]:
        """Return the arm and the architecture it wraps."""
        return {**super().describe(), "provide": self.recalls}

    @override
    def _ask_draft(self, query: str, context: RecallContext) -> Program[Sequence[Question]]:
        return (yield from super()._ask_draft(query, context)) if self.recalls else ()

    @override
    def _provide(self, query: str, context: RecallContext, budget: Budget) -> Program[Recall]:
        if self.recalls:
            return (yield from self._real(query, context, budget))
        return empty_recall(query, context, budget)


class WriteOnly(Control):
    """Files and manages as the wrapped provider does, and recalls nothing (§4.5, *write-only*).

    Tells what reflection and filing do to an agent without retrieval (memory-transplants §4.5,
    H4).

    Args:
        inner: The provider that learns; its bank is written through it.
    """

    name: ClassVar[str] = "write_only"

    @checked
    def __init__(self, inner: MemoryProvider[Any]) -> None:
        super().__init__(inner, learn=True)

    @override
    def _provide(self, query: str, context: RecallContext, budget: Budget) -> Program[Recall]:
        return program(empty_recall(query, context, budget))


class Framing(Control):
    """Recalls the frame of a block and its introduction around no item.

    Tells what being told that there are notes does to an agent. Where the wrapped provider recalls
    nothing, there is no frame either; receipts are of nothing.
    """

    name: ClassVar[str] = "framing"

    @override
    def describe(self) -> dict[str, JSON]:
        """Return the control and the architecture it wraps; `learn` where it learns."""
        learn: dict[str, JSON] = {"learn": True} if self.learns else {}
        return {**super().describe(), **learn}

    @override
    def _provide(self, query: str, context: RecallContext, budget: Budget) -> Program[Recall]:
        empty = empty_recall(query, context, budget)
        if not (yield from self._real(query, context, budget)):
            return empty
        text = render_block([""])
        tokens = budget.count(text)
        receipt = replace(empty.receipt, tokens=tokens)
        return replace(empty, text=text, tokens=tokens, receipt=receipt)


class Replacement(Control):
    """Base of the controls that put other items in the place of those delivered.

    Its receipts tell what the wrapped provider searched for, and how many items tied there. Where
    that provider recalls nothing, so does the control.

    Args:
        inner: The provider to imitate; its bank is read, and written where it learns.
        seed: Decides between equals.
        learn: Whether it files and manages as the wrapped provider does.
    """

    @checked
    def __init__(self, inner: MemoryProvider[Any], *, seed: int = 0, learn: bool = False) -> None:
        super().__init__(inner, learn=learn)
        self.seed = seed

    @override
    def describe(self) -> dict[str, JSON]:
        """Return the control, its seed and the architecture it wraps; `learn` where it learns."""
        learn: dict[str, JSON] = {"learn": True} if self.learns else {}
        return {"control": self.name, "seed": self.seed, **learn, "of": self.inner.describe()}

    @override
    def _provide(self, query: str, context: RecallContext, budget: Budget) -> Program[Recall]:
        real = yield from self._real(query, context, budget)
        if not real:
            return real
        found = yield from self._replace(real, query, context, budget)
        return make_recall(query, context, budget, found)

    @abstractmethod
    def _replace(
        self, real: Recall, query: str, context: RecallContext, budget: Budget
    ) -> Program[Found]:
        """Find what to recall in the place of what was really delivered."""

    def _others(self, context: RecallContext) -> Program[list[MemoryItem]]:
        """List the items of the bank that may be recalled for the task that asks, oldest first."""
        reading = bank.read_content(self.namespace)
        content: BankContent = yield from self._viewed(reading, context)
        said = (item for item in content.items.values() if not is_blank(item))
        items = sorted(said, key=lambda item: (item.order_index, item.id))
        left_out = {*context.in_conversation}
        if self.settings.same_task == "exclude":
            left_out.add(context.task_id)
        return [item for item in items if item.task_id not in left_out]

    def _instead(self, items: Iterable[MemoryItem], real: Recall) -> Found:
        """Return items as what was found in the place of a real recall; they have no scores."""
        scored = tuple((item, 0.0) for item in items)
        pools = tuple(pool for item, _ in scored if (pool := self._pool(item)) is not None)
        return Found(scored, real.receipt.searched, real.receipt.tied, pools)


FILLER: Final = (
    "The weather was calm on that day.",
    "Rivers run down to the sea.",
    "Bread is baked early in the morning.",
    "A year has twelve months.",
    "Snow is cold and summers are warm.",
    "Some clouds looked like sheep.",
    "Libraries lend books to many people.",
    "Trains leave on the hour.",
)
"""Sentences about nothing an agent does."""

_NEAR: Final = 24
"""How far around the right length an exact one is looked for: tokenizers that join characters
may take back a token when a word is completed."""


class Placebo(Replacement):
    """Recalls neutral filler at the same token count (memory-transplants §4.5, *placebo context*).

    Item by item, filler takes the place of the text, of such a length that the block has as many
    tokens as the real one has so far, by the budget's own counter. Where no length gives that
    number, it is the nearest below, as long as the counter grows with the text. Filler of as many
    characters is preferred where it also has as many tokens.
    """

    name: ClassVar[str] = "placebo"

    @override
    def _replace(
        self, real: Recall, query: str, context: RecallContext, budget: Budget
    ) -> Program[Found]:
        texts: list[str] = []

        def whole(last: str) -> int:
            return budget.count(render_block([*texts, last]))

        for number, item in enumerate(real.items, start=1):
            before = [each.text for each in real.items[:number]]
            last = number == len(real.items)
            tokens = real.tokens if last else budget.count(render_block(before))
            texts.append(self._filler(item, whole, tokens))
        items = [
            (item.model_copy(update={"text": text}), score)
            for item, score, text in zip(real.items, real.scores, texts, strict=True)
        ]
        receipt = real.receipt
        return program(
            Found(tuple(items), query=receipt.searched, tied=receipt.tied, dropped=real.dropped)
        )

    def _filler(self, item: MemoryItem, size: Callable[[str], int], tokens: int) -> str:
        start = int(seeded_fraction("placebo", self.seed, item.id) * len(FILLER))
        period = " ".join(FILLER[start:] + FILLER[:start]) + " "

        def cut(length: int) -> str:
            text = (period * (length // len(period) + 1))[:length]
            return text.rstrip().ljust(length, ".")

        return cut(_length(lambda length: size(cut(length)), tokens, len(item.text)))


def _length(size: Callable[[int], int], wanted: int, guess: int) -> int:
    """Return the length at which `size` is `wanted`, or the nearest below, if it grows with it."""
    if size(guess) == wanted:
        return guess
    low, high = 0, max(guess, 1)
    while size(high) <= wanted and high < 16 * (guess + wanted + 1):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if size(middle) <= wanted else (low, middle)
    around = range(max(low - _NEAR, 0), low + _NEAR + 1)
    exact = (length for length in around if size(length) == wanted)
    return next(exact, low)


DRAWS: Final = 8
"""Items drawn for each slot, of which the one nearest in length fills it; in a small bank, a
quarter of those there are. More would match better and be less random: what is of one length tends
to be about one thing."""


class RandomRetrieval(Replacement):
    """Recalls random items of the same bank, matched in count and roughly in tokens (§4.5).

    It is the control of memory-transplants §4.5 for relevance. For each item that was delivered,
    `DRAWS` are drawn from the bank, by the seed, the query, the task and the step, and the one
    nearest in tokens is taken, by the budget's own counter; what one slot is too long or too short,
    the next makes good. Where the wrapped provider keeps tiers with shares of the budget, an item is
    replaced by one of its own tier. Items that were delivered come as often as chance has it: were
    they left out, those of a small bank would be worse than random. The budget and its shares are
    never exceeded: an item without room is passed over, and where none has room, fewer are recalled.

    How close it comes, on ReMe's four libraries (30 to 1,392 items), three items a recall, by a
    budget of 400 or 800 tokens or none: library by library, the block differs from the real one
    by 1 to 3 % of its tokens in the median, and by at most 6 to 27 % in 19 of 20 recalls.
    """

    name: ClassVar[str] = "random"

    @override
    def _replace(
        self, real: Recall, query: str, context: RecallContext, budget: Budget
    ) -> Program[Found]:
        items = yield from self._others(context)
        asked: list[JSON] = [self.seed, query, context.task_id, context.step]

        @cache
        def size(position: int) -> int:
            return budget.count(items[position].text)

        delivered = {item.id for item in real.items}
        chosen: list[int] = []
        missing = 0  # tokens
        for slot, item in enumerate(real.items):
            wanted = budget.count(item.text) + missing
            pool = self._pool(item)
            tier = [n for n, each in enumerate(items) if self._pool(each) == pool]
            drawn = _drawn([n for n in tier if n not in chosen], [*asked, slot])
            some = list(islice(drawn, max(1, min(DRAWS, len(tier) // 4))))
            # Its length is just right: chosen by length, what was delivered would come too often.
            if some and items[some[0]].id not in delivered:
                fresh = [n for n in some if items[n].id not in delivered]
                some = sorted(fresh, key=lambda n: abs(size(n) - wanted))
            rooms = (
                n
                for n in chain(some, drawn)
                if fits(self._instead([items[each] for each in (*chosen, n)], real), budget)
            )
            position = next(rooms, None)
            if position is not None:
                chosen.append(position)
                missing = wanted - size(position)
        return self._instead([items[n] for n in chosen], real)


def _drawn(positions: Sequence[int], seed: Sequence[JSON]) -> Iterator[int]:
    """Yield all positions, each once, in an order that the seed decides."""
    rest = list(positions)
    while rest:
        at = int(seeded_fraction("random", *seed, len(rest)) * len(rest))
        rest[at], rest[-1] = rest[-1], rest[at]
        yield rest.pop()


class RandomOwn(RandomRetrieval):
    """Recalls random items of the bank that were learned in the domain that asks.

    It takes relevance away as `RandomRetrieval` does, and with it what other task families left:
    where their items are what harms (continual-memory §4), the harm is gone. Of a bank without
    items of the domain nothing is recalled; of one with fewer than were delivered, those it has.
    """

    name: ClassVar[str] = "random-own"

    @override
    def _others(self, context: RecallContext) -> Program[list[MemoryItem]]:
        items = yield from super()._others(context)
        return [item for item in items if item.source_domain == context.domain]


class Shuffled(Replacement):
    """Recalls real items of other tasks: as many, but those least like the query.

    Items are taken from the same bank: those whose key shares the fewest distinct words with
    the query, and none that the wrapped provider delivered while there are others. Among equals
    the seed decides. One that has no room left in the budget is passed over.
    """

    name: ClassVar[str] = "shuffled"

    @override
    def _replace(
        self, real: Recall, query: str, context: RecallContext, budget: Budget
    ) -> Program[Found]:
        words = frozenset(tokenize(query))
        same = frozenset(item.id for item in real.items)

        def unlikeness(item: MemoryItem) -> tuple[bool, int, float]:
            shared = len(words.intersection(tokenize(item.retrieval_key)))
            chance = seeded_fraction("shuffled", self.seed, query, item.id)
            return item.id in same, shared, chance

        chosen: list[MemoryItem] = []
        for item in sorted((yield from self._others(context)), key=unlikeness):
            if len(chosen) == len(real.items):
                break
            if fits(self._instead([*chosen, item], real), budget):
                chosen.append(item)
        return self._instead(chosen, real)


__all__ = [
    "CONTROLS",
    "FILLER",
    "REPLACEMENTS",
    "Control",
    "Framing",
    "Frozen",
    "Placebo",
    "RandomOwn",
    "RandomRetrieval",
    "Replacement",
    "Shuffled",
    "WriteOnly",
]

REPLACEMENTS: Final[Mapping[str, type[Replacement]]] = {
    control.name: control for control in (RandomRetrieval, RandomOwn, Placebo, Shuffled)
}
"""The controls that recall something else, by name; each is made with a seed."""

CONTROLS: Final[Mapping[str, type[Control]]] = {
    **REPLACEMENTS,
    Framing.name: Framing,
    WriteOnly.name: WriteOnly,
    Frozen.name: Frozen,
}
"""All controls by name."""
