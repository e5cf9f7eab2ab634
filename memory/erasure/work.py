"""An erasure from its beginning to its receipt, whatever ends it in between: every step may be done again."""

import asyncio
import json
import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, cast

from langgraph.store.base import BaseStore, Item

from langgraft._core.arguments import checked, did_you_mean
from langgraft._core.canonical import JSON, unseal
from langgraft._core.effects import Clock, SystemClock, in_thread
from langgraft._core.errors import InputError
from langgraft.memory.bank import bank_namespace
from langgraft.memory.banks import Banks, LayeredMemory, escaped
from langgraft.memory.controls import Control
from langgraft.memory.erasure.places import (
    SHORTEST,
    Place,
    Wanted,
    caches_of,
    described,
    files_of,
    follows,
    found_in,
    innermost,
    phrases_of,
    scrubbed,
    strings_in,
    texts_of,
)
from langgraft.memory.erasure.receipts import (
    ErasureReceipt,
    Kind,
    Ledger,
    Looked,
    Pending,
    digest_of,
)
from langgraft.memory.model import (
    BankContent,
    Change,
    Episode,
    MemoryDelta,
    Remove,
    SetState,
    fold,
)
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.sources import source
from langgraft.memory.stores.kept_indexes import IndexFolder, change_log
from langgraft.memory.stores.programs import Program, read_all
from langgraft.memory.stores.ranked import RankedStore

ERASED: Final = "erased on request"
"""Reason of removals."""

_ALWAYS: Final = (
    "copies made before: exports, bundles, backups, replicas, snapshots of a disk",
    "what was sent elsewhere: to models and embedders, to tracing, to logs of the application",
    "what a file system or a solid-state disk keeps of deleted and rewritten files",
)
"""What no erasure reaches."""
_LABEL_ALONE: Final = (
    "copies that tell the user's label and nothing else of them: it is short, or part of another's"
)


# Banks ---------------------------------------------------------------------------------------

Memories: TypeAlias = MemoryProvider[Any] | Banks | Sequence[MemoryProvider[Any]]
"""Banks that are looked into: one, several, or those of all users."""


@dataclass(frozen=True)
class _Subject:
    """What is asked to be erased."""

    kind: Kind
    name: str
    label: str | int | None = None
    """Of a user, as the application has it."""

    @property
    def written(self) -> str:
        """Its name as a ledger has it: the labels 7 and "7" are two users."""
        return json.dumps(self.label) if self.kind == "user" else self.name

    @property
    def wanted(self) -> Wanted:
        """What is known of it before anything was read."""
        match self.kind:
            case "item":
                return Wanted(items=(self.name,))
            case "episode":
                return Wanted(episodes=(self.name,))
            case "source":
                kind, _, name = self.name.partition(":")
                own = Wanted(episodes=(name,)) if kind == "episode" else Wanted()
                return own.and_also(Wanted(sources=(self.name,)))
            case "user":
                return Wanted(sources=(source("user", self.name),))
            case "age":
                return Wanted()


def _without(memory: MemoryProvider[Any], content: BankContent, wanted: Wanted) -> MemoryDelta:
    """Say what changes in a bank where items and episodes are erased."""
    left = fold([], content)
    changes: list[Change] = []

    def apply(*made: Change) -> None:
        for change in made:
            left.apply(change)
            changes.append(change)

    for identity in wanted.items:
        if (old := left.items.get(identity)) is not None:
            following = memory._follow(left, old, None)  # noqa: SLF001
            apply(Remove(identity, ERASED))
            apply(*_still(left, following))
    apply(*memory._withdraw(left, wanted.episodes))  # noqa: SLF001
    for name, value in list(left.state.items()):
        kept = None if _is_of(name, wanted) else _pruned(value, wanted)
        if kept != value:
            apply(SetState(name, kept))
    return MemoryDelta(tuple(changes))


def _still(left: BankContent, changes: Sequence[Change]) -> Iterator[Change]:
    """Leave out removals of what is gone already."""
    for change in changes:
        if not (isinstance(change, Remove) and change.id not in left.items):
            yield change


def _is_of(name: str, wanted: Wanted) -> bool:
    """Say whether a bookkeeping value is kept under the name of an episode or item."""
    _, found, rest = name.partition("/")
    return bool(found) and (rest in wanted.episodes or rest in wanted.items)


def _pruned(value: JSON, wanted: Wanted) -> JSON:
    """Return a bookkeeping value without what speaks of what is erased; `None`: nothing is left."""
    match value:
        case str() if value in wanted.episodes or value in wanted.items or wanted.in_text(value):
            return None
        case Mapping():
            if any(isinstance(v, str) and _pruned(v, wanted) is None for v in value.values()):
                return None
            parts = {k: _pruned(v, wanted) for k, v in value.items() if not _names(k, wanted)}
            return {k: v for k, v in parts.items() if v is not None or value[k] is None}
        case list() | tuple():
            each = [_pruned(part, wanted) for part in value]
            return [v for v, old in zip(each, value, strict=True) if v is not None or old is None]
    return value


def _names(key: str, wanted: Wanted) -> bool:
    return key in wanted.episodes or key in wanted.items or wanted.in_text(key)


@dataclass(frozen=True)
class _Bank:
    """A bank, as an erasure has it."""

    memory: MemoryProvider[Any]

    @property
    def name(self) -> str:
        where = "/".join(bank_namespace(self.memory.namespace))
        return f"bank {where} in {described(innermost(self.memory.store))}"

    def found(self, subject: _Subject) -> tuple[Wanted, BankContent]:
        """Return what is to be erased here, and what will be left."""
        content = self.memory.content()
        found = follows(content, subject.wanted)
        wanted = subject.wanted
        if subject.kind == "age":
            ids = _older(self.memory, subject.name)
            episodes = dict.fromkeys(content.items[each].episode_id for each in ids)
            wanted = Wanted(items=tuple(ids), episodes=tuple(filter(None, episodes)))
        else:
            wanted = replace(wanted, items=found.items)
            wanted = wanted.and_also(Wanted(episodes=found.episodes))
        delta = _without(self.memory, content, wanted)
        texts: list[str] = []
        for change in delta:
            if isinstance(change, Remove) and change.id in content.items:
                texts += texts_of(content.items[change.id])
            elif isinstance(change, SetState):
                texts += strings_in(content.state.get(change.key))
        return replace(wanted, texts=tuple(dict.fromkeys(texts))), fold([delta], content)

    def erase(self, subject: _Subject, wanted: Wanted) -> Looked:
        """Take it out of the bank, in one step, and its indexes with it."""
        memory = self.memory
        if subject.kind not in ("item", "episode"):  # of other banks, ids are other items here
            wanted = replace(self.found(subject)[0], phrases=wanted.phrases)
        delta = memory._write(self._erasing(wanted))  # noqa: SLF001
        removed = sum(isinstance(change, Remove) for change in delta)
        return Looked(place=self.name, removed=removed)

    def _erasing(self, wanted: Wanted) -> Program[MemoryDelta]:
        memory = self.memory
        delta: MemoryDelta = yield from memory._revised(  # noqa: SLF001
            lambda content: _without(memory, content, wanted)
        )
        yield in_thread(self._forget_traces)  # also where a crash came after the change
        return delta

    def _forget_traces(self) -> None:
        self.memory.refresh()
        store = self.memory.store
        log = change_log(store)
        if log is not None:  # first: who saves an index from now on learns that it is out of date
            log.forget_deleted(self.memory.namespace)
            log.indexes.drop(self.memory.namespace)
        while isinstance(store, RankedStore):
            store.refresh()  # one of the application's own has indexes of its own
            if (kept := store.corpora.kept_in) is not None:  # and older ones, of other settings
                IndexFolder(kept).drop(self.memory.namespace)
            store = store.store

    def left(self, subject: _Subject, wanted: Wanted) -> list[str]:
        """Say what of it is in the bank still."""
        ids = [] if subject.kind == "age" else self.found(subject)[0].items
        content = self.memory.content()
        found = [f"item {wanted.blanked(each)!r} was filed meanwhile" for each in ids]
        for identity, item in content.items.items():
            if identity not in ids and wanted.in_json(item.to_json()):
                found.append(f"item {wanted.blanked(identity)!r} says it too, and was not erased")
        if wanted.in_json(dict(content.state)):
            found.append("the provider's bookkeeping says it too")
        return found


def _older(memory: MemoryProvider[Any], moment: str) -> list[str]:
    """Return the ids of items that were written before a moment and not changed since."""
    before = datetime.fromisoformat(moment)
    listed = memory._read(_records(memory))  # noqa: SLF001
    return [
        str(value["item"]["id"])
        for record in listed
        if record.created_at < before and "item" in (value := unseal(record.value))
    ]


def _records(memory: MemoryProvider[Any]) -> Program[list[Item]]:
    found = yield from read_all(memory.namespace)
    return [record for address, record in found.items() if address[0] == memory.namespace]


def _opened(memory: Memories, user: str | int | None) -> list[_Bank]:
    """Return the banks to look into, but for that of a user who is deleted."""
    if isinstance(memory, Banks):
        labels = [label for label in memory.users() if label != user]
        return [_Bank(memory[label]) for label in labels]
    if isinstance(memory, MemoryProvider):
        memory = [memory]
    layers = [each for one in memory for each in _layers(one)]
    return [_Bank(each) for each in {each.namespace: each for each in layers}.values()]


def _layers(memory: MemoryProvider[Any]) -> list[MemoryProvider[Any]]:
    if isinstance(memory, Control):
        return _layers(memory.inner)
    if isinstance(memory, LayeredMemory):
        return [each for layer in (memory.own, *memory.shared) for each in _layers(layer)]
    return [memory]


# All of it -----------------------------------------------------------------------------------


@checked
def erase(
    memory: Memories,
    *,
    ledger: Ledger,
    item: str | None = None,
    episode: str | Episode | None = None,
    source: str | None = None,
    user: str | int | None = None,
    before: datetime | None = None,
    mentions: Sequence[str] = (),
    places: Sequence[Place] = (),
    clock: Clock | None = None,
) -> ErasureReceipt:
    """Erase one item, episode, source or user, or all that is older than a moment, everywhere given.

    Others may recall and file meanwhile. An erasure that a crash left under way in the ledger is ended
    first; where it is the one that is asked for, its receipt is returned. Done again, it changes nothing
    and issues another receipt.

    Args:
        memory: The bank, several, or those of all users. What follows from what is erased is looked
            for in each of them.
        ledger: Where it is written down.
        item: The id of an item.
        episode: The id of an episode, whose items and mark go: handed in again, it is learned again. The
            episode itself has more that copies are found by.
        source: As items name it, `tool:search` or `web:example.org`; or `item:ID`, `episode:ID`.
        user: A label of `Banks`: all of that bank, and what follows from `user:LABEL` in the others.
        before: A time with a zone: items that were written before it, and their episodes' marks.
        mentions: Phrases that give it away, beside what it said itself. They delete no item of a bank.
        places: Where else copies may be.
        clock: Says when it was; `None`: the machine's.

    Returns:
        What was erased and where, and what was not reached; `complete` says whether all was found.

    Raises:
        InputError: It is not one thing that is asked for, there is no such item or user, or it is too
            short to be looked for; nothing was changed.
        ReadOnlyStoreError: A bank is frozen.
        BankConflictError: As for `file`; go on by erasing again.
        InfrastructureError: A place cannot be written now, or another process is erasing; go on by
            erasing again.
    """
    subject = _subject(item, episode, source, user, before)
    said = list(strings_in(episode.to_json())) if isinstance(episode, Episode) else []
    if user is not None and not isinstance(memory, Banks):
        raise InputError(
            "a user is erased from `Banks`; from one bank, erase what names the source"
        )
    short = [each for each in mentions if len(each.strip()) < _LEAST]
    if short:
        msg = f"{short[0]!r} is too short to be looked for: it stands in other texts too"
        raise InputError(msg)
    work = _Work(memory, places, ledger, clock or SystemClock())
    with ledger.held():
        if (pending := ledger.pending) is not None:
            ended = work.go_on(pending)
            if work.covered(pending, subject, said, mentions):
                return ended
        return work.begin(subject, said, mentions)


async def aerase(memory: Memories, *, ledger: Ledger, **asked: Any) -> ErasureReceipt:
    """Do as `erase` does, in a thread."""
    return await asyncio.to_thread(erase, memory, ledger=ledger, **asked)


@checked
def resume(
    memory: Memories, *, ledger: Ledger, places: Sequence[Place] = (), clock: Clock | None = None
) -> ErasureReceipt | None:
    """End the erasure that a crash left under way; `None`: there is none.

    Raises:
        InputError: It also looked into places that are not given; nothing was changed.
    """
    with ledger.held():
        pending = ledger.pending
        work = _Work(memory, places, ledger, clock or SystemClock())
        return None if pending is None else work.go_on(pending)


_LEAST: Final = 4
"""Characters of a phrase that is given."""
_ANYBODY: Final = "langgraft"
"""A label: what is only read of its bank is not kept."""
_ROUNDS: Final = 8
"""How often a bank is looked through for what was filed meanwhile."""


def _subject(
    item: str | None,
    episode: str | Episode | None,
    source: str | None,
    user: str | int | None,
    before: datetime | None,
) -> _Subject:
    given: dict[Kind, Any] = {
        "item": item,
        "episode": episode.id if isinstance(episode, Episode) else episode,
        "source": source,
        "user": user,
        "age": before,
    }
    asked = {kind: name for kind, name in given.items() if name is not None}
    if len(asked) != 1 or "" in asked.values():
        msg = "erase one thing: `item`, `episode`, `source`, `user` or `before`"
        raise InputError(msg)
    ((kind, name),) = asked.items()
    if isinstance(name, datetime):
        if name.tzinfo is None:
            msg = f"`before` is a time with a zone, got {name.isoformat()}"
            raise InputError(msg)
        name = name.astimezone(UTC).isoformat()
    if kind == "source" and not all(str(name).partition(":")[::2]):
        msg = f"a source is written `kind:name`, got {name!r:.80}"
        raise InputError(msg)
    return _Subject(kind, str(name), user)


@dataclass(frozen=True)
class _Work:
    """One call: where to look, and what was found."""

    memory: Memories
    places: Sequence[Place]
    ledger: Ledger
    clock: Clock

    def begin(
        self, subject: _Subject, said: Sequence[str], mentions: Sequence[str]
    ) -> ErasureReceipt:
        banks = _opened(self.memory, subject.label)
        wanted = self._looked_up(subject, banks, said, mentions)
        pending = Pending(
            kind=subject.kind,
            name=subject.written,
            salt=secrets.token_hex(16),
            began=self._now(),
            wanted={**wanted.to_json(), "places": [place.name for place in self.places]},
        )
        self.ledger.begin(pending)
        return self._carried_out(subject, wanted, pending, banks)

    def covered(
        self, pending: Pending, subject: _Subject, said: Sequence[str], mentions: Sequence[str]
    ) -> bool:
        """Say whether an erasure that was under way is all of the one that is asked for."""
        fields = cast("Mapping[str, Sequence[str]]", pending.wanted)
        return (
            (pending.kind, pending.name) == (subject.kind, subject.written)
            and {*said} <= {*fields["texts"]}
            and {*mentions} <= {*fields["phrases"]}
            and {place.name for place in self.places} <= {*fields["places"]}
        )

    def go_on(self, pending: Pending) -> ErasureReceipt:
        """End what was begun, from whatever step it came to."""
        fields = dict(pending.wanted)
        named = cast("list[str]", fields.pop("places"))
        if missing := sorted(set(named) - {place.name for place in self.places}):
            msg = (
                f"{self.ledger.path}: an erasure is under way that also looks into {missing[0]}:"
                " give the same places, and it is ended first"
            )
            raise InputError(msg)
        label = json.loads(pending.name) if pending.kind == "user" else None
        subject = _Subject(pending.kind, pending.name if label is None else str(label), label)
        banks = _opened(self.memory, label)
        return self._carried_out(subject, Wanted.from_json(fields), pending, banks)

    def _looked_up(
        self,
        subject: _Subject,
        banks: Sequence[_Bank],
        said: Sequence[str],
        mentions: Sequence[str],
    ) -> Wanted:
        found, kept = Wanted(texts=tuple(said)), [""]
        for bank in banks:
            more, left = bank.found(subject)
            found = found.and_also(more)
            kept += strings_in(left.to_json())
        if subject.kind == "user":
            found = found.and_also(self._of_user(cast("str | int", subject.label)))
            mentions = [*mentions, *self._spelled(subject)]
        if not banks:
            found = found.and_also(subject.wanted)
        elif subject.kind == "item" and not self._holds(banks, subject.name):
            ids = [each for bank in banks for each in bank.memory.content().items]
            msg = f"no item {subject.name!r:.80} to erase: {did_you_mean(subject.name, ids)}"
            raise InputError(msg)
        # In logs, ids stay: changes that come later refer to them.
        whole = "\n".join([*kept, *found.items, *found.episodes])
        phrases = phrases_of(found.texts, lambda phrase: phrase in whole)
        found = replace(found, phrases=tuple(dict.fromkeys([*mentions, *phrases])))
        for place in self.places:
            found = found.and_also(place.harvest(found))
        return found

    def _holds(self, banks: Sequence[_Bank], item: str) -> bool:
        return any(item in bank.memory.content().items for bank in banks)

    def _spelled(self, subject: _Subject) -> list[str]:
        """Return a label as it stands in namespaces, unless it is short, or part of another user's."""
        assert isinstance(self.memory, Banks)
        labels = [each for each in self.memory.users() if each != subject.label]
        others = "\n".join(form for each in labels for form in (str(each), escaped(each)))
        forms = dict.fromkeys((subject.name, escaped(cast("str | int", subject.label))))
        return [form for form in forms if len(form) >= SHORTEST and form not in others]

    def _of_user(self, label: str | int) -> Wanted:
        assert isinstance(self.memory, Banks)
        content = self.memory[label].content()
        if not content.items and not content.state:
            msg = f"no user {label!r:.80} has a bank here: {did_you_mean(str(label), map(str, self.memory))}"
            raise InputError(msg)
        texts = [text for item in content.items.values() for text in texts_of(item)]
        return Wanted(texts=tuple(dict.fromkeys([*texts, *strings_in(dict(content.state))])))

    def _carried_out(
        self, subject: _Subject, wanted: Wanted, pending: Pending, banks: Sequence[_Bank]
    ) -> ErasureReceipt:
        told = _Told(self.ledger, pending, {each.place: each for each in pending.told})
        number = 1 + sum(each.salt != pending.salt for each in self.ledger.receipts())
        wanted = self._out_of_banks(subject, wanted, told, banks)
        self._out_of_places(wanted, number, told, banks)
        unreached = self._rewritten(wanted, told, banks)
        if subject.kind == "user" and not self._spelled(subject):
            unreached.append(_LABEL_ALONE)
        for bank in banks:
            told.note(wanted, Looked(place=bank.name, left=tuple(bank.left(subject, wanted))))
        return self._signed(pending, wanted, tuple(told.places.values()), unreached)

    def _out_of_banks(
        self, subject: _Subject, wanted: Wanted, told: "_Told", banks: Sequence[_Bank]
    ) -> Wanted:
        """Take all out of the banks, what was filed meanwhile too; return all that is wanted then."""
        if subject.kind == "user" and isinstance(self.memory, Banks):
            count = self.memory.delete(cast("str | int", subject.label))
            told.note(wanted, Looked(place="bank of the user", removed=count))
        for _ in range(_ROUNDS):
            for bank in banks:
                told.note(wanted, bank.erase(subject, wanted))
            more = self._filed_meanwhile(subject, banks, wanted)
            if more is None:
                break
            wanted = more
        return wanted

    def _out_of_places(
        self, wanted: Wanted, number: int, told: "_Told", banks: Sequence[_Bank]
    ) -> None:
        memories = [bank.memory for bank in banks]
        if isinstance(self.memory, Banks):  # all of them rank alike, that of the user too
            memories = [self.memory[_ANYBODY]]
        # Two in memory have one name, and so may two of somebody else's.
        caches = {id(place.cache): place for memory in memories for place in caches_of(memory)}
        left: dict[str, tuple[str, ...]] = {}
        for place in (*caches.values(), *self.places):
            looked = place.erase(wanted, number)
            left[looked.place] = (*left.get(looked.place, ()), *looked.left)
            told.note(wanted, looked.model_copy(update={"left": left[looked.place]}))

    def _rewritten(self, wanted: Wanted, told: "_Told", banks: Sequence[_Bank]) -> list[str]:
        """Have each store keep nothing of what was deleted; return what cannot be reached."""
        unreached: list[str] = []
        found: dict[str, tuple[str, ...]] = {}
        for store in {id(store): store for store in self._stores(banks)}.values():
            left, beyond = scrubbed(store)
            seen = [f"{path}: it says it still" for path in found_in(files_of(store), wanted)]
            name = f"file of {described(store)}"
            found[name] = (*found.get(name, ()), *left, *seen)
            told.note(wanted, Looked(place=name, left=found[name]))
            unreached += map(wanted.blanked, beyond)
        return unreached

    def _filed_meanwhile(
        self, subject: _Subject, banks: Sequence[_Bank], wanted: Wanted
    ) -> Wanted | None:
        """Return what is wanted with what was filed since, if anything was."""
        found = Wanted()
        for bank in banks if subject.kind != "age" else ():
            found = found.and_also(bank.found(subject)[0])
        if not found.items:
            return None
        return wanted.and_also(replace(found, phrases=tuple(phrases_of(found.texts))))

    def _stores(self, banks: Sequence[_Bank]) -> Iterator[BaseStore]:
        if isinstance(self.memory, Banks):
            yield innermost(self.memory.store)
        for bank in banks:
            yield innermost(bank.memory.store)

    def _signed(
        self,
        pending: Pending,
        wanted: Wanted,
        places: tuple[Looked, ...],
        unreached: Sequence[str],
    ) -> ErasureReceipt:
        salt = pending.salt
        erased = dict.fromkeys((*wanted.items, *wanted.episodes, *wanted.texts))
        subject = json.loads(pending.name) if pending.kind == "user" else pending.name
        return self.ledger.end(
            ErasureReceipt(
                number=1,
                previous="",
                kind=pending.kind,
                salt=salt,
                subject=digest_of(salt, str(subject)),
                erased=tuple(digest_of(salt, each) for each in erased),
                began=pending.began,
                ended=self._now(),
                places=places,
                not_reached=(*unreached, *_ALWAYS),
            )
        )

    def _now(self) -> str:
        return datetime.fromtimestamp(self.clock.time(), UTC).isoformat(timespec="seconds")


@dataclass
class _Told:
    """What came of each place so far; what was removed is written down as it comes."""

    ledger: Ledger
    pending: Pending
    places: dict[str, Looked]

    def note(self, wanted: Wanted, looked: Looked) -> None:
        """Add what came of a place, under a name that gives nothing away."""
        name = wanted.blanked(looked.place)
        before = self.places.get(name, Looked(place=name))
        self.places[name] = Looked(
            place=name,
            removed=before.removed + looked.removed,
            left=tuple(map(wanted.blanked, looked.left)),
        )
        fields: Mapping[str, JSON] = {**self.pending.wanted, **wanted.to_json()}
        # All else is looked at again after a crash: of many banks, few have something of it.
        if looked.removed or fields != self.pending.wanted:
            told = tuple(self.places.values())
            self.pending = replace(self.pending, wanted=fields, told=told)
            self.ledger.begin(self.pending)
