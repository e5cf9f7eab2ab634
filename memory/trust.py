"""Trust: what of a bank an agent is shown, by where it comes from (docs/trust.md).

A source is trusted to a *level*, by its kind; an item is worth what the least of its sources is.

===========  ===================================================================================
level        its items
===========  ===================================================================================
`trusted`    are recalled
`checked`    are recalled unless a text of theirs reads like an instruction to the agent, or
             hides something (`langgraft.memory.scanning`)
`untrusted`  are kept in quarantine: nobody is shown them until they are released by name, or so
             many independent sources say the same (`corroboration`)
===========  ===================================================================================

What somebody said (`user:…`) is recalled for nobody else, whatever its level. Items without sources
are the agent's own, and trusted.

Policies hold below the providers. A provider reads its bank through a `Trusted` view that leaves out what is
withheld, so that no way of its own, a ranking, a list of rules, a comparison of attempts, shows it to an
agent or to a judge. What a search met and left out is in the receipt's `dropped`, with the reason.
An episode from an untrusted source adds items, and changes none that are trusted: it neither edits
nor removes them, nor moves their votes and uses. A user's episode edits, removes and votes on nothing
that is recalled for others.
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias, TypeVar, cast

from langgraph.store.base import GetOp, Item
from pydantic import Field, field_validator
from typing_extensions import override

from langgraft._core.arguments import Settings, checked
from langgraft._core.canonical import JSON, unseal
from langgraft.memory import bank
from langgraft.memory.editing import Editable
from langgraft.memory.importing import ImportChoices
from langgraft.memory.model import (
    Add,
    Annotate,
    BankContent,
    Change,
    Dropped,
    MemoryDelta,
    MemoryItem,
    Remove,
)
from langgraft.memory.provenance import FOLLOWS
from langgraft.memory.recall import RecallContext
from langgraft.memory.scanning import findings_in
from langgraft.memory.sources import (
    ROOTS,
    check_source,
    combined,
    host_of,
    kind_of,
    refusals_as_values,
    source,
)
from langgraft.memory.stores.programs import Namespace, Program
from langgraft.memory.views import View

T = TypeVar("T")

Level: TypeAlias = Literal["trusted", "checked", "untrusted"]
"""How far a kind of source is believed."""

RELEASED: Final = "released"
"""Note: somebody has looked at the item, and it may be recalled."""
OF_ANOTHER_USER: Final = "of another user"
"""Why an item was dropped: somebody else said it."""
QUARANTINED: Final = "in quarantine"
"""Why an item was dropped: it follows from a source that is not trusted."""

_LEVELS: Final[Sequence[Level]] = ("trusted", "checked", "untrusted")


class TrustSettings(Settings):
    """How far memory believes what it was told, by the kind of source; the defaults are strict."""

    user: Level = "trusted"
    """What users said: by default believed, and recalled for the same user only."""
    tool: Level = "untrusted"
    """What tools returned."""
    web: Level = "untrusted"
    """What pages said."""
    imports: Level = "untrusted"
    """What came from other banks; each import is stamped with a source, the name of its file."""
    across_users: bool = False
    """Whether what one user said may be recalled for another."""
    corroboration: int | None = Field(default=None, ge=2)
    """From how many independent sources on that say the same, word for word, an item counts as
    checked, itself among them. Two sources are independent where they share no name, pages where
    they are not of one host; an episode of the agent's own that succeeded is one as well. `None`:
    never."""

    names: Mapping[str, Level] = Field(default_factory=dict)
    """Levels of single sources, whatever that of their kind: `{"tool:calculator": "trusted"}`."""

    @field_validator("names")
    @classmethod
    def _sources(cls, names: Mapping[str, Level]) -> Mapping[str, Level]:
        for name in names:
            with refusals_as_values():
                check_source(name, "each of `names`")
        return names

    def level(self, sources: Iterable[str]) -> Level:
        """Return how far something is believed that follows from these sources."""
        by_kind: Mapping[str, Level] = {
            "user": self.user,
            "tool": self.tool,
            "web": self.web,
            "import": self.imports,
        }
        found = [
            self.names.get(each, by_kind[kind_of(each)])
            for each in sources
            if kind_of(each) in by_kind
        ]
        return max(found, key=_LEVELS.index, default="trusted")

    def believes(self, sources: Iterable[str]) -> bool:
        """Say whether something that follows from these sources is more than untrusted."""
        return self.level(sources) != "untrusted"

    def owners(self, sources: Iterable[str]) -> frozenset[str]:
        """Return the users that something is for alone which follows from these sources; none: for all."""
        users = () if self.across_users else (each for each in sources if kind_of(each) == "user")
        return frozenset(users)

    def reason(
        self,
        item: MemoryItem,
        notes: Mapping[str, JSON],
        users: Iterable[str],
        *,
        corroborated: bool = False,
    ) -> str:
        """Say why an item is withheld; empty: it is not.

        Args:
            item: The item.
            notes: The notes on it.
            users: Sources that stand for who asks.
            corroborated: Whether enough others say the same.
        """
        if self.owners(item.sources).difference(users):
            return OF_ANOTHER_USER
        level = self.level(item.sources)
        if level == "trusted" or notes.get(RELEASED) is True:
            return ""
        if level == "untrusted" and not corroborated:
            return QUARANTINED
        return next((each.reason for each in findings_in(item)), "")


@dataclass(kw_only=True)
class Trusted(View):
    """A bank without what is withheld.

    Args:
        namespace: The bank's records.
        reads: Whether records that are read by name are withheld as well. What writes must see
            that a name is taken.
        trust: What is believed.
        users: Sources that stand for who asks.
    """

    trust: TrustSettings
    users: Sequence[str]
    _content: BankContent | None = None

    @override
    def _withholds(self, record: Item) -> Program[bool]:
        value = unseal(record.value)
        held = value.get("item")
        if held is None:
            return (yield from self._withholds_attempt(value.get("value")))
        if not held.get("sources"):
            return False
        item, notes = MemoryItem.from_json(held), value.get("notes", {})
        reason = self.trust.reason(item, notes, self.users)
        if reason == QUARANTINED and self.trust.corroboration is not None:
            reason = _reason(self.trust, item, (yield from self._all()), self.users)
        if reason:
            self.dropped[item.id] = reason
        return bool(reason)

    def _withholds_attempt(self, held: object) -> Program[bool]:
        """Say whether bookkeeping quotes an episode whose items would be withheld."""
        name = held.get("episode_id") if isinstance(held, Mapping) else None
        if not isinstance(name, str):
            return False
        (sources,) = yield from bank.read_state(self.namespace, [FOLLOWS + name])
        told = cast("Sequence[str]", sources or ())
        others = self.trust.owners(told).difference(self.users)
        return self.trust.level(told) != "trusted" or bool(others)

    def _all(self) -> Program[BankContent]:
        if self._content is None:
            self._content = yield from bank.read_content(self.namespace)
        return self._content


def _corroborated(
    trust: TrustSettings, item: MemoryItem, content: BankContent, users: Collection[str]
) -> bool:
    """Say whether enough independent sources say what an item says, itself among them.

    What other users said counts for nobody else.
    """
    said = _words(item.text)
    known: set[str] = set(_roots(item))
    count = 1
    for other in sorted(content.items.values(), key=lambda each: (each.order_index, each.id)):
        if other.id == item.id or _words(other.text) != said:
            continue
        if trust.owners(other.sources).difference(users):
            continue
        roots = _roots(other)
        if roots and known.isdisjoint(roots):
            known |= roots
            count += 1
        elif not other.sources and other.success is True:
            count += other.episode_id not in known
            known.add(other.episode_id)
    return count >= cast("int", trust.corroboration)


def _reason(
    trust: TrustSettings, item: MemoryItem, content: BankContent, users: Collection[str]
) -> str:
    notes = content.notes.get(item.id, {})
    reason = trust.reason(item, notes, users)
    if reason != QUARANTINED or trust.corroboration is None:
        return reason
    enough = _corroborated(trust, item, content, users)
    return trust.reason(item, notes, users, corroborated=enough)


def audience(trust: TrustSettings, item: MemoryItem, content: BankContent) -> frozenset[str] | None:
    """Return the users that an item is recalled for, as sources; none: all of them; `None`: nobody."""
    owners = trust.owners(item.sources)
    return None if _reason(trust, item, content, owners) else owners


def rooted(namespace: Namespace, sources: tuple[str, ...]) -> Program[tuple[str, ...]]:
    """Add to sources what the items and episodes among them follow from, as far as the bank knows."""
    named: dict[str, list[str]] = {"item": [], "episode": []}
    for each in sources:
        kind, _, name = each.partition(":")
        if kind in named:
            named[kind].append(name)
    if not any(named.values()):
        return sources
    records = yield [GetOp(namespace, bank.item_key(name)) for name in named["item"]]
    items = bank.loaded(cast("Sequence[Item | None]", records)).items.values()
    told = yield from bank.read_state(namespace, [FOLLOWS + name for name in named["episode"]])
    found = (
        *(item.sources for item in items),
        *cast("Sequence[Sequence[str]]", filter(None, told)),
    )
    return combined(sources, *found)


def _roots(item: MemoryItem) -> set[str]:
    return {_origin(each) for each in item.sources if kind_of(each) in ROOTS}


def _origin(root: str) -> str:
    """Return what two sources share that are not independent: pages their host, however it is spelled."""
    kind, _, name = root.partition(":")
    if kind != "web":
        return root
    return f"web:{host_of(name)}"


def _words(text: str) -> str:
    return " ".join(text.split()).casefold()


def named_by_file(path: Path, choices: ImportChoices | None) -> ImportChoices:
    """Return the choices of an import, which names its source: its file, unless they name another."""
    choices = choices or ImportChoices()
    if choices.source is not None:
        return choices
    name = path.name.encode("utf-8", "replace").decode() or "a file"
    return choices.model_copy(update={"source": name})


class Trusting(Editable):
    """What providers do about trust; a base of `MemoryProvider`."""

    if TYPE_CHECKING:
        settings: Any

    @checked
    def release(self, item_id: str) -> MemoryDelta:
        """Let an item be recalled that is in quarantine, or that was found to read like an instruction.

        Raises:
            InputError: The bank holds no such item; nothing is changed.
            ReadOnlyStoreError: The bank is frozen.
            BankConflictError: As for `file`.
        """
        return self._write(self._revised(lambda content: self._releasing(content, item_id)))

    @checked
    async def arelease(self, item_id: str) -> MemoryDelta:
        """Do as `release` does, asynchronously."""
        return await self._awrite(self._revised(lambda content: self._releasing(content, item_id)))

    @checked
    def withheld(self, user: str = "") -> list[Dropped]:
        """List what of the bank a user is not shown, and why, in the order of its items."""
        trust: TrustSettings | None = self.settings.trust
        if trust is None:
            return []
        content = self._write(bank.read_content(self.namespace))
        users = _named([user] if user else [])
        listed = sorted(content.items.values(), key=lambda each: (each.order_index, each.id))
        reasons = ((item.id, _reason(trust, item, content, users)) for item in listed)
        return [Dropped(name, reason) for name, reason in reasons if reason]

    def _releasing(self, content: BankContent, item_id: str) -> MemoryDelta:
        self._held(content, item_id)
        return MemoryDelta((Annotate(item_id, {RELEASED: True}),))

    def _allowed(
        self, changes: Sequence[Change], sources: tuple[str, ...]
    ) -> Program[Sequence[Change]]:
        """Leave out what an episode may not change: what is believed, if it is not; what is for others."""
        trust: TrustSettings = self.settings.trust
        believed, owners = trust.believes(sources), trust.owners(sources)
        if believed and not owners:
            return changes
        added = {change.item.id for change in changes if isinstance(change, Add)}
        touched = list(
            dict.fromkeys(
                change.id
                for change in changes
                if isinstance(change, Remove)
                or (isinstance(change, Annotate) and change.id not in added)
            )
        )
        records = yield [GetOp(self.namespace, bank.item_key(name)) for name in touched]
        held = bank.loaded(cast("Sequence[Item | None]", records)).items
        kept = {
            name
            for name, item in held.items()
            if trust.believes(item.sources)
            and not (believed and owners <= trust.owners(item.sources))
        }
        return [change for change in changes if _names(change) not in kept]


def asker(context: RecallContext) -> Sequence[str]:
    """Return the sources that stand for who asks."""
    return _named([context.user] if context.user else [])


def _named(users: Iterable[str]) -> list[str]:
    return [source("user", name) for name in users]


def _names(change: Change) -> str:
    match change:
        case Add(item):
            return item.id
        case Remove(name, _) | Annotate(name, _):
            return name
    return ""
