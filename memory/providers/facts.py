"""`FactMemory`: facts and preferences beside episodes, in time, with a profile of declared shape."""

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Annotated, Any, ClassVar, Final, cast

from pydantic import Field as SettingsField
from pydantic import SkipValidation, field_validator
from typing_extensions import override

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON, portable_text
from langgraft.memory import bank
from langgraft.memory.bank import with_free_ids
from langgraft.memory.facts import (
    BEGINNING,
    LINKS,
    OPEN,
    READ_OFF,
    UNIT,
    Attribute,
    Dated,
    Fact,
    Link,
    fact_in,
    is_fact,
    metadata_of,
    moment,
    plain,
    text_of,
    written,
)
from langgraft.memory.model import (
    Add,
    BankContent,
    Change,
    Episode,
    MemoryDelta,
    MemoryItem,
    Question,
    SetState,
    Verdict,
    fold,
)
from langgraft.memory.provenance import learned_from
from langgraft.memory.provider import (
    FILED,
    NEXT_ORDER,
    MemoryProvider,
    Need,
)
from langgraft.memory.providers.episode_items import FifoOrder, NoteSettings, note_of, places_left
from langgraft.memory.providers.fact_items import (
    SINCE,
    UNTIL,
    KeptFact,
    completed,
    dated,
    kept_fact,
    key_of,
    link_to,
    merged_in,
    merged_item,
    merging_questions,
    respanned,
    said_at,
    shown,
    spanned,
)
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.rankers.lexical import BM25
from langgraft.memory.recall import Filter, Found, Pool, RecallContext, ranked_items, searched
from langgraft.memory.stores.programs import Program

logger = logging.getLogger(__name__)

LATEST: Final = "latest"
"""Bookkeeping: the latest moment at which something was said, which is the present where nobody says."""

RELATIONS: Final = "facts"
"""Kind of the question what new facts do to those kept."""

MOST_ALWAYS: Final = 100
"""Facts looked for of one declared attribute, or of one category that is told always."""

_DAY: Final = 86_400.0
_META: Final = "item.metadata."
_FACTS: Final[Filter] = {f"{_META}unit": UNIT}
_EPISODES: Final[Filter] = {f"{_META}unit": {"$ne": UNIT}}
_STANDING: Final[Filter] = {f"{_META}ended": {"$ne": True}}

Count = Annotated[int, SettingsField(ge=0)]


class FactSettings(NoteSettings):
    """Settings of `FactMemory`."""

    profile: tuple[Attribute, ...] = ()
    """Attributes that are declared, with how many values each may have: told always, of the subject
    whose profile it is, whatever is asked."""
    profile_of: str = "user"
    """That subject."""
    always: tuple[str, ...] = ()
    """Categories whose facts are told always, of any subject: `allergy`."""
    always_share: float = SettingsField(default=0.5, gt=0, le=1)
    """Most of the budget that what is told always may take; what it leaves the others may use."""
    ttl_days: tuple[tuple[str, Annotated[float, SettingsField(gt=0)]], ...] = ()
    """For how many days after it was said a fact of a category holds: `{"state": 1}`; of others, until
    something ends it."""
    top_k: int = SettingsField(default=10, ge=1)
    """Most other facts per recall: the first that fit the budget."""
    max_episodes: int = SettingsField(default=200, ge=0)
    """Notes of episodes that the bank holds, the first in first out; 0 keeps facts alone."""
    top_k_episodes: Count = 1
    """Most notes of episodes per recall."""
    candidates: int = SettingsField(default=20, ge=1)
    """Facts kept of its subject that a judge is shown beside a new one: those of its attribute first,
    then the nearest. Nearness decides what is shown, never what becomes of it."""
    ranker: SkipValidation[Ranker] = BM25(ties="newest")
    """Finds facts by attribute, subject, value and the words they were drawn from."""

    @field_validator("ttl_days", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return tuple(sorted(value.items())) if isinstance(value, Mapping) else value


@dataclass(slots=True)
class _New:
    """A fact of an episode, and what the bank says near it."""

    name: str
    fact: Fact
    since: float
    until: float
    kept: dict[str, MemoryItem] = field(default_factory=dict)
    equal: MemoryItem | None = None

    def repeats(self, item: MemoryItem) -> bool:
        """Say whether an item says the same, and another time is not what is new."""
        undated = not self.fact.since or self.since == dated(item).own[0]
        return undated and self.fact.says(fact_in(item.metadata))

    def shown(self, declared: Mapping[str, bool]) -> dict[str, JSON]:
        told = {**shown(self.fact, self.since, self.until), "quote": self.fact.quote}
        several = declared.get(plain(self.fact.attribute))
        return told if several is None else {**told, "several": several}


class FactMemory(MemoryProvider[FactSettings]):
    """Keeps facts as they were said, and tells those that hold at the moment that is asked about.

    Nodes extract facts from an episode (`Episode.facts`), with who said them, in which turn, and in
    which words. A new one stands beside what is kept. That it replaces, corrects or repeats a fact is
    for a judge to say, who is shown those of its subject; likeness decides nothing. Only what repeats a
    fact word for word is not asked about. Nothing is overwritten: a fact that was replaced goes on being
    told of the time in which it held, and one that was corrected of none.

    ==============  ======================================================================================
    what            how
    ==============  ======================================================================================
    time            `RecallContext.at` is the moment asked about, the present or any other; where it is
                    empty, the latest at which something was said (`Episode.at`). No clock is read
    expiry          by category, counted from when it was said (`ttl_days`); or as was said (`Fact.until`)
    profile         declared attributes of one subject, told always, within a share of the budget
    episodes        a note of each, recalled beside the facts
    consolidation   `proposals` asks which facts could be one; `consolidate` puts what a judge says in the
                    place of those, from then on. They stay, and hold again once it is forgotten
    by hand         a fact that is forgotten takes its effects with it: what it had replaced holds again
    ==============  ======================================================================================
    """

    name: ClassVar[str] = "facts"
    settings_model = FactSettings
    needs = frozenset[Need]({"facts", "verdicts"})
    derived = READ_OFF

    # What an application asks --------------------------------------------------------------

    @checked
    def facts(
        self, *, at: str | None = None, subject: str | None = None, attribute: str | None = None
    ) -> list[KeptFact]:
        """List facts, the oldest first, whomever they are withheld from; changes nothing.

        Args:
            at: The moment at which they hold, as ISO 8601; empty: the latest that the bank knows of;
                `None`: all that were ever kept.
            subject: Whom they are about; `None`: anybody.
            attribute: What they say; `None`: anything.

        Raises:
            InputError: The moment is none.
        """
        return self._read(self._facts(at, subject, attribute))

    @checked
    async def afacts(
        self, *, at: str | None = None, subject: str | None = None, attribute: str | None = None
    ) -> list[KeptFact]:
        """Do as `facts` does, asynchronously."""
        return await self._aread(self._facts(at, subject, attribute))

    @checked
    def proposals(self, *, limit: int = 10) -> list[Question]:
        """List which facts a judge should look at, whether they could be one; changes nothing.

        Each question shows facts of one subject and attribute to which no end is known.

        Args:
            limit: Most questions; those with the most facts come first.
        """
        return self._read(self._proposals(limit))

    @checked
    async def aproposals(self, *, limit: int = 10) -> list[Question]:
        """Do as `proposals` does, asynchronously."""
        return await self._aread(self._proposals(limit))

    @checked
    def consolidate(self, verdicts: Sequence[Verdict]) -> MemoryDelta:
        """Merge facts as a judge says, and return what that changed.

        `merge` names an item in `item_id` and in `text` the value that says it; all that are given one
        text become one fact. They stay in the bank, replaced by it since the latest of them began, and
        its `sources` name them; `forget` of the merged fact undoes it. Verdicts on questions that the
        bank would ask otherwise by now, on one fact alone, or without a text change nothing.

        Raises:
            ReadOnlyStoreError: The bank is frozen.
            BankConflictError: As for `file`.
        """
        return self._write(self._consolidated(verdicts))

    @checked
    async def aconsolidate(self, verdicts: Sequence[Verdict]) -> MemoryDelta:
        """Do as `consolidate` does, asynchronously."""
        return await self._awrite(self._consolidated(verdicts))

    # Recall -------------------------------------------------------------------------------

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        now = yield from self._now(context.at)
        holding = {
            **self._task_filter(context),
            f"notes.{SINCE}": {"$lte": now},
            f"notes.{UNTIL}": {"$gt": now},
        }
        always = yield from self._always({**holding, **_FACTS, **_STANDING})
        return (yield from searched(partial(self._beside, query, holding, always)))

    def _always(self, holding: Filter) -> Program[Mapping[str, tuple[MemoryItem, float]]]:
        """Find what is told whatever is asked, in the order in which settings declare it."""
        subject = portable_text(plain(self.settings.profile_of))
        wanted: list[tuple[str, Filter]] = [
            (
                each.name,
                {f"{_META}subject": subject, f"{_META}attribute": portable_text(plain(each.name))},
            )
            for each in self.settings.profile
        ]
        wanted += [
            (name, {f"{_META}category": portable_text(plain(name))})
            for name in self.settings.always
        ]
        found: dict[str, tuple[MemoryItem, float]] = {}
        for name, where in wanted:
            each = yield from ranked_items(
                self.namespace, name, MOST_ALWAYS, where={**holding, **where}
            )
            for item, score in each.items:
                found.setdefault(item.id, (item, score))
        return found

    def _beside(
        self,
        query: str,
        holding: Filter,
        always: Mapping[str, tuple[MemoryItem, float]],
        times: int,
    ) -> Program[Found]:
        """Find facts and episodes that match, behind what is told always."""
        settings = self.settings
        facts = yield from ranked_items(
            self.namespace,
            query,
            times * settings.top_k + len(always),
            where={**holding, **_FACTS},
        )
        episodes = Found()
        if settings.top_k_episodes:
            episodes = yield from ranked_items(
                self.namespace,
                query,
                times * settings.top_k_episodes,
                where={**holding, **_EPISODES},
            )
        others = [hit for hit in facts.items if hit[0].id not in always]
        items = (*always.values(), *others, *episodes.items)
        ranked = [found for found in (facts, episodes) if found.tied]
        best = max((found.items[0][1] for found in ranked), default=0.0)
        return Found(
            items,
            query,
            sum(found.tied for found in ranked if found.items[0][1] == best),
            tuple(self._pool(item) for item, _ in items),
        )

    @override
    def _pool(self, item: MemoryItem) -> Pool:
        settings, metadata = self.settings, item.metadata
        if not is_fact(metadata):
            return Pool("episodes", 1, settings.top_k_episodes)
        declared = metadata.get("subject") == plain(settings.profile_of) and any(
            plain(each.name) == metadata.get("attribute") for each in settings.profile
        )
        told = any(plain(each) == metadata.get("category") for each in settings.always)
        if (declared or told) and metadata.get("ended") is not True:
            return Pool("always", settings.always_share)
        return Pool("facts", 1, settings.top_k)

    def _now(self, at: str) -> Program[float]:
        """Read a moment; where it is empty, the latest known."""
        if at:
            return moment(at, "`at`")
        (latest,) = yield from bank.read_state(self.namespace, [LATEST])
        return BEGINNING if latest is None else cast("float", latest)

    def _believes(self, sources: Sequence[str]) -> bool:
        """Say whether the present may be told by what follows from sources."""
        trust = self.settings.trust
        return trust is None or trust.believes(sources)

    # Learning -----------------------------------------------------------------------------

    @override
    def _ask(self, episode: Episode) -> Program[Sequence[Question]]:
        (filed,) = yield from bank.read_state(self.namespace, [FILED + episode.id])
        if filed is not None:
            return ()
        said = yield from self._now(episode.at)
        question = self._question(episode, (yield from self._new(episode, said)))
        return () if question is None else (question,)

    def _new(self, episode: Episode, said: float) -> Program[list[_New]]:
        """List what an episode says, with what the bank has beside it."""
        told: list[_New] = []
        for number, given in enumerate(episode.facts):
            if not (plain(given.subject) and plain(given.attribute) and plain(given.value)):
                continue
            if any(given.says(each.fact) for each in told):
                continue
            told.append(self._dated(f"fact-{number}", given, said))
        for place, each in enumerate(told):
            each.kept = yield from self._near(each)
            for other in told[:place]:  # "we moved to Rome, no, to Paris"
                if other.fact.slot == each.fact.slot:
                    item = self._item(episode, other, said, {}, 0)
                    each.kept[item.id] = item
            each.equal = next((item for item in each.kept.values() if each.repeats(item)), None)
        return told

    def _dated(self, name: str, fact: Fact, said: float) -> _New:
        declared = next(
            (each for each in self.settings.profile if plain(each.name) == plain(fact.attribute)),
            None,
        )
        if not fact.category and declared is not None:
            fact = replace(fact, category=declared.category)
        since = moment(fact.since, "`since`") if fact.since else said
        until = moment(fact.until, "`until`") if fact.until else OPEN
        days = {plain(each): ttl for each, ttl in self.settings.ttl_days}.get(plain(fact.category))
        if days is not None and said > BEGINNING:
            until = min(until, said + days * _DAY)
        return _New(name, fact, since, until)

    def _near(self, new: _New) -> Program[dict[str, MemoryItem]]:
        """Find the facts of a subject that hold when a new one begins, or later."""
        subject, attribute = map(portable_text, new.fact.slot)
        where: Filter = {
            **_FACTS,
            f"{_META}subject": subject,
            f"notes.{UNTIL}": {"$gt": new.since},
        }
        key = key_of(new.fact, text_of(new.fact, BEGINNING, OPEN))
        limit = self.settings.candidates
        near: dict[str, MemoryItem] = {}
        for further in ({f"{_META}attribute": attribute}, Filter()):
            found = yield from ranked_items(self.namespace, key, limit, where={**where, **further})
            near |= {item.id: item for item, _ in found.items if item.id not in near}
        return dict([*near.items()][:limit])

    def _question(self, episode: Episode, new: Sequence[_New]) -> Question | None:
        """Ask what new facts do to those kept.

        ========  ============================================================================
        shows     what it is
        ========  ============================================================================
        `facts`   name → the new fact, with the words it was drawn from; `several` says that its
                  attribute was declared to have several values
        `kept`    id → a fact of the same subject; of the same attribute also one that the episode
                  told before it
        ========  ============================================================================

        A verdict's action is `replaces`, `corrects` or `repeats`, its `item_id` the fact kept and
        its `text` the name of the new one; new facts without a verdict stand beside.
        """
        open_ones = [each for each in new if each.kept and each.equal is None]
        if not open_ones:
            return None
        declared = {plain(each.name): each.many for each in self.settings.profile}
        kept = {name: item for each in open_ones for name, item in each.kept.items()}
        shows: dict[str, JSON] = {
            "facts": {each.name: each.shown(declared) for each in open_ones},
            "kept": {
                name: shown(fact_in(item.metadata), *Dated(0, item.metadata).own)
                for name, item in kept.items()
            },
        }
        return Question(RELATIONS, episode.id, shows)

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        said = yield from self._now(episode.at)
        new = yield from self._new(episode, said)
        links = self._links(episode, new)
        content = BankContent()
        if any(links.values()):
            content = yield from bank.read_content(self.namespace)
        made: list[MemoryItem] = []
        for each in new:
            held = {**content.items, **{item.id: item for item in made}}
            given = completed(links[each.name], held)
            corrected = given.get("corrects", ())
            if corrected and not each.fact.since:
                own = (dated(held[name]).own[0] for name in corrected if name in held)
                each.since = min(own, default=each.since)
            made.append(self._item(episode, each, said, given, order_index + len(made)))
        added: list[Change] = yield from self._unnamed(made)
        if self.settings.max_episodes:
            note = note_of(
                episode,
                order_index + len(made),
                part_characters=self.settings.part_characters,
            )
            if written(said):
                note = note.model_copy(
                    update={"metadata": {**note.metadata, "said": written(said)}}
                )
            added += yield from self._fifo.add(note)
        items = [change.item for change in added if isinstance(change, Add)]
        latest = yield from self._now("")
        moved = said > latest and self._believes(learned_from(episode))
        told = (SetState(LATEST, said),) if moved else ()
        # Of what is withheld from whom the episode is of this sees nothing, and `_allowed` keeps the rest.
        return [*added, *respanned(content, items, None), *told]

    def _unnamed(self, made: Sequence[MemoryItem]) -> Program[list[Change]]:
        changes = yield from with_free_ids(self.namespace, [Add(item) for item in made])
        return [*changes]

    def _links(self, episode: Episode, new: Sequence[_New]) -> dict[str, dict[Link, list[str]]]:
        """Read off the verdicts what new facts do to those kept."""
        links: dict[str, dict[Link, list[str]]] = {each.name: {} for each in new}
        by_name = {each.name: each for each in new}
        for each in new:
            if each.equal is not None:
                link_to(links[each.name], "repeats", each.until, each.equal)
        question = self._question(episode, new)
        kept = {name: item for each in new for name, item in each.kept.items()}
        answered: set[tuple[str, str]] = set()
        for verdict in episode.verdicts:
            told, about = verdict.text, verdict.item_id or ""
            if (
                question is None
                or verdict.question_id != question.id
                or verdict.action not in LINKS
                or told not in cast("Mapping[str, JSON]", question.shows["facts"])
                or about not in by_name[told].kept  # of another subject, or itself
                or (told, about) in answered
            ):
                logger.info("verdict ignored: %r on %r", verdict.action, verdict.item_id)
                continue
            answered.add((told, about))
            link_to(links[told], verdict.action, by_name[told].until, kept[about])
        return links

    def _item(
        self,
        episode: Episode,
        new: _New,
        said: float,
        links: Mapping[Link, Sequence[str]],
        order_index: int,
    ) -> MemoryItem:
        text = text_of(new.fact, new.since, new.until)
        return MemoryItem(
            id=f"{episode.id}/{new.name}",
            text=text,
            type="other",
            source_domain=episode.domain,
            episode_id=episode.id,
            success=episode.outcome.success,
            order_index=order_index,
            task_id=episode.task_id,
            key=key_of(new.fact, text),
            metadata=metadata_of(new.fact, new.since, new.until, said, links),
        )

    # Upkeep -------------------------------------------------------------------------------

    @property
    def _fifo(self) -> FifoOrder:
        return FifoOrder(self.namespace, "episodes")

    @override
    def _maintain(self) -> Program[Sequence[Change]]:
        return self._fifo.overflow(self.settings.max_episodes)

    @override
    def _settle(self, items: Sequence[MemoryItem]) -> Program[Sequence[Change]]:
        content = yield from bank.read_content(self.namespace)
        joined = yield from self._fifo.join([i for i in items if not is_fact(i.metadata)])
        said = [
            moment(at, "`said`")
            for item in items
            if (at := said_at(item)) and self._believes(item.sources)
        ]
        latest = max(said, default=BEGINNING)
        told = (SetState(LATEST, latest),) if latest > (yield from self._now("")) else ()
        return [*respanned(content, items, self.settings.trust), *joined, *told]

    @override
    def _edited(self, old: MemoryItem, new: MemoryItem) -> MemoryItem:
        """Read the value off the text; the words that the old one was drawn from go with it."""
        if not is_fact(old.metadata):
            return new
        fact = fact_in(old.metadata)
        value, _, behind = old.text.rpartition(" (since ")
        begun = old.text.partition(": ")[0] + ": "
        value = new.text.removeprefix(begun if fact.holds else f"{begun}no longer ")
        if behind:
            value = value.removesuffix(f" (since {behind}")
        kept = {name: each for name, each in new.metadata.items() if name != "quote"}
        metadata = {**kept, "value": value.strip()}
        return new.model_copy(
            update={"key": key_of(replace(fact, quote=""), new.text), "metadata": metadata}
        )

    @override
    def _follow(
        self, content: BankContent, old: MemoryItem, new: MemoryItem | None
    ) -> Sequence[Change]:
        if new is not None:
            return ()
        items = {name: item for name, item in content.items.items() if name != old.id}
        left = BankContent(items, content.notes)
        return [*respanned(left, (), self.settings.trust), *places_left(content, old)]

    @override
    def _releasing(self, content: BankContent, item_id: str) -> MemoryDelta:
        """Have a fact that is believed from now on end what it said that it ends."""
        delta = super()._releasing(content, item_id)
        after = respanned(fold([delta], content), (), self.settings.trust)
        return delta + MemoryDelta(tuple(after))

    # Facts, and which could be one ---------------------------------------------------------

    def _facts(
        self, at: str | None, subject: str | None, attribute: str | None
    ) -> Program[list[KeptFact]]:
        now = None if at is None else (yield from self._now(at))
        content = yield from bank.read_content(self.namespace)
        return [
            kept_fact(item, since, until)
            for item, since, until in spanned(content, self.settings.trust)
            if now is None or since <= now < until
            if subject is None or item.metadata.get("subject") == plain(subject)
            if attribute is None or item.metadata.get("attribute") == plain(attribute)
        ]

    def _proposals(self, limit: int) -> Program[list[Question]]:
        content = yield from bank.read_content(self.namespace)
        return merging_questions(content, self.settings.trust)[:limit]

    def _consolidated(self, verdicts: Sequence[Verdict]) -> Program[MemoryDelta]:
        content = yield from bank.read_content(self.namespace)
        order = cast("int", content.state.get(NEXT_ORDER, 0))
        made: list[MemoryItem] = []
        for question in merging_questions(content, self.settings.trust):
            for text, names in merged_in(question, verdicts).items():
                sources = [content.items[name] for name in names]
                made.append(merged_item(text, sources, order + len(made)))
        if not made:
            return MemoryDelta()
        changes = yield from self._unnamed(made)
        added = [change.item for change in changes if isinstance(change, Add)]
        changes += respanned(content, added, self.settings.trust)
        changes.append(SetState(NEXT_ORDER, order + len(made)))
        delta = yield from self._with_upkeep(MemoryDelta(tuple(changes)))
        yield from bank.apply_delta(self.namespace, delta)
        return delta
