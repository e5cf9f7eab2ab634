"""`InsightMemory`: distilled lessons, bundled or one by one (continual-memory §4)."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, Final, Literal, TypeAlias, cast

from pydantic import Field as SettingsField
from pydantic import SkipValidation
from typing_extensions import override

from langgraft._core.canonical import JSON
from langgraft._core.effects import adrive, drive
from langgraft._core.errors import InputError
from langgraft.memory import bank
from langgraft.memory.editing import reworded
from langgraft.memory.model import (
    Add,
    Attempt,
    BankContent,
    Change,
    Episode,
    Lesson,
    MemoryItem,
    Outcome,
    Remove,
    SetState,
    Step,
)
from langgraft.memory.provenance import FOLLOWS
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers.episode_items import authors, render_lesson
from langgraft.memory.providers.retrieval import (
    Fields,
    RetrievalSettings,
    key_text,
    query_text,
    retrieve,
)
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.rankers.diversity import TfIdf
from langgraft.memory.rankers.lexical import BM25
from langgraft.memory.recall import Filter, Found, RecallContext, ranked_items
from langgraft.memory.stores.programs import Namespace, Program
from langgraft.memory.words import tokenize

Granularity: TypeAlias = Literal["aggregate", "individual", "adaptive"]

_UNIT: Final = "item.metadata.unit"
_BUNDLES: Final[Filter] = {_UNIT: "bundle"}
_LESSONS: Final[Filter] = {_UNIT: {"$ne": "bundle"}}

_FUNCTION_WORDS: Final = frozenset(
    tokenize(
        "a an and any are as at be by do for from in into is it its no not of on onto or out "
        "some that the their them then there this to under up using was were with you your"
    )
)
"""Words of an instruction that come and go without a change of phase."""


class InsightSettings(RetrievalSettings):
    """Settings of `InsightMemory`; the defaults are Cond-Agg of continual-memory Table 8.

    ==============  ===============  ========  ==================
    condition       `granularity`    `top_k`   `requery_interval`
    ==============  ===============  ========  ==================
    Cond-Agg        `aggregate`      1         `None`
    Cond-Ind        `individual`     3         `None`
    Cond-Step       `individual`     3         4
    adaptive, ours  `adaptive`       3         `None`
    ==============  ===============  ========  ==================
    """

    granularity: Granularity = "aggregate"
    """One item per episode with all its lessons, or one item per lesson (§A.1.5); `adaptive`
    keeps both and decides at each recall.

    Single lessons help where a query tells them apart, and hurt where many answer it equally
    well (§4.1). The paper finds that nothing on the side of the store shows which it is: the
    keys of a collapsed pool are as varied as any, and it is the queries that cannot choose among
    them (§D). So the choice is the query's. Lessons come singly while the first one without a
    slot scores clearly less than the best (`margin`); where it does not, chance would fill the
    slots, and the bundle whose key matches best comes whole, as the coherent strategy of one
    episode (§4.1, *Overall*). Each text is kept twice, and bundles and lessons share the
    statistics of one corpus."""
    top_k: int = SettingsField(default=1, ge=1)
    """Items per recall (Table 8: 1 for bundles, 3 for single lessons). An adaptive recall has as
    many lessons, or one bundle."""
    margin: float = SettingsField(default=0.1, ge=0, lt=1)
    """For `adaptive`: lessons within this share of the best score count as equally good."""
    requery_interval: int | None = SettingsField(default=None, ge=1)
    """Ask again after this many steps (Table 8: 4 for Cond-Step); `None`: never."""
    requery_on_change: bool = False
    """Ask again when something that the instruction names comes into sight that was not when
    memory was last asked. §4.2: asking again helps where an episode has phases, and adds noise
    where it goes on as it began. With an interval too, whichever comes first."""
    success_only: bool = False
    """Keep lessons of successful episodes only (Table 8: false)."""
    key_fields: Fields = ("task",)
    """What a bundle is retrieved by. §A.1.5 says the instruction; the example of §B.2 adds
    the first observation. Single lessons are always retrieved by their `when_to_use`."""
    query_fields: Fields = ("task",)
    """What is compared with the keys at the start of an episode."""
    requery_fields: Fields = ("task", "observation")
    """What is compared with them later on, so that guidance can follow the episode."""
    attempts: int = SettingsField(default=0, ge=0)
    """How many attempts are kept per domain and outcome, so that a success can be compared with a
    failure (ReMe, arXiv:2512.10696 §3, compares those of one task). They are never recalled, and
    change nothing in what is (`langgraft.memory.providers.insight`); 0 keeps none."""
    ranker: SkipValidation[Ranker] = BM25(ties="newest")
    """BM25 (§A.1.3). The paper does not say how equal scores are ordered; the latest
    experience comes first here."""


class InsightMemory(MemoryProvider[InsightSettings]):
    """Keeps the lessons distilled from episodes; episodes without lessons leave no item."""

    name: ClassVar[str] = "insight"
    settings_model = InsightSettings
    derived = frozenset({"unit"})

    @property
    @override
    def revokes_exactly(self) -> bool:
        return not self.settings.attempts

    @override
    def asks_again(self, query: str, context: RecallContext, last: RecallContext) -> bool:
        """Ask again after an interval, or when the phase of the episode changes."""
        interval = self.settings.requery_interval
        if interval is not None and context.step - last.step >= interval:
            return True
        changes = self.settings.requery_on_change
        return changes and phase_changed(query, context.observation, last.observation)

    # What distilling asks ------------------------------------------------------------------

    def counterpart(self, episode: Episode) -> Attempt | None:
        """Return the attempt most like an episode that ended the other way; changes nothing.

        It is of the same domain, at the same task if there is one, and the newest of equals.
        `None` where `attempts` is 0 or none is like it.
        """
        return drive(self._counterpart(episode), self.store)

    async def acounterpart(self, episode: Episode) -> Attempt | None:
        """Do as `counterpart` does, asynchronously."""
        return await adrive(self._counterpart(episode), self.store)

    def lessons_like(self, episode: Episode, k: int) -> list[Lesson]:
        """Return the lessons kept that may say what an episode's lessons say; changes nothing.

        For each they are the `k` whose situations match its own best. There are none where lessons
        are kept in bundles: what one episode taught is found together, by its task, and would be
        torn apart by leaving out what another bundle says.

        Args:
            episode: An episode with lessons.
            k: How many to return for each lesson.
        """
        return drive(self._lessons_like(episode, k), self.store)

    async def alessons_like(self, episode: Episode, k: int) -> list[Lesson]:
        """Do as `lessons_like` does, asynchronously."""
        return await adrive(self._lessons_like(episode, k), self.store)

    def _counterpart(self, episode: Episode) -> Program[Attempt | None]:
        episode = episode.without_memory()
        key = key_text(self.settings.key_fields, episode)
        finding = find_counterpart(self.namespace, episode, key, self.settings.attempts)
        return self._viewed(finding, episode.sources)

    def _lessons_like(self, episode: Episode, k: int) -> Program[list[Lesson]]:
        return self._viewed(self._nearest_lessons(episode, k), episode.sources)

    def _nearest_lessons(self, episode: Episode, k: int) -> Program[list[Lesson]]:
        if self.settings.granularity != "individual":
            return []
        items: dict[str, MemoryItem] = {}
        for key in dict.fromkeys(map(_key, episode.without_memory().lessons)):
            found = yield from ranked_items(self.namespace, key, k)
            items |= {item.id: item for item, _ in found.items}
        return [_lesson_in(item) for item in items.values()]

    # What a provider does ------------------------------------------------------------------

    @override
    def _recall(self, query: str, context: RecallContext) -> Program[Found]:
        settings = self.settings
        fields = settings.requery_fields if context.step else settings.query_fields
        text = query_text(fields, query, context)
        where = self._task_filter(context)
        limit = settings.top_k
        if settings.granularity == "adaptive":
            tells_apart = yield from self._tells_apart(text, where)
            unit, limit = (_LESSONS, limit) if tells_apart else (_BUNDLES, 1)
            where = {**where, **unit}
        return (
            yield from retrieve(
                self.namespace, text, settings, domain=context.domain, limit=limit, where=where
            )
        )

    def _tells_apart(self, text: str, where: Filter) -> Program[bool]:
        """Say whether `text` prefers some lessons over others, or few match it at all."""
        slots = self.settings.top_k
        found = yield from ranked_items(
            self.namespace, text, slots + 1, where={**where, **_LESSONS}
        )
        scores = [score for _, score in found.items]
        if len(scores) <= slots:
            return bool(scores)
        # Cosines may be negative.
        return scores[slots] < scores[0] - self.settings.margin * abs(scores[0])

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        settings = self.settings
        key = key_text(settings.key_fields, episode)
        made = self._made(episode, key)
        kept = yield from keep_attempt(self.namespace, episode, key, position, settings.attempts)
        return [
            *(
                Add(item.model_copy(update={"order_index": order_index + number}))
                for number, item in enumerate(made)
            ),
            *kept,
        ]

    def _made(self, episode: Episode, key: str) -> Sequence[MemoryItem]:
        lessons = episode.lessons
        if not lessons or (self.settings.success_only and not episode.succeeded):
            return ()
        bundle = _bundle(episode, key)
        match self.settings.granularity:
            case "aggregate":
                return [bundle]
            case "individual":
                return _singles(episode)
            case "adaptive":
                marked = {**bundle.metadata, "unit": "bundle"}
                return [bundle.model_copy(update={"metadata": marked}), *_singles(episode)]

    # Changes by hand -----------------------------------------------------------------------

    @override
    def _follow(
        self, content: BankContent, old: MemoryItem, new: MemoryItem | None
    ) -> Sequence[Change]:
        """Keep bundles and their lessons alike; what a lesson was drawn from goes with its text."""
        if new is not None and new.text == old.text:
            return ()
        # What an import calls its episode is its own word: what is of one episode has one story.
        told = (old.episode_id, old.sources)
        own = [i for i in content.items.values() if (i.episode_id, i.sources) == told and i != old]
        filed = cast("Sequence[str]", content.state.get(FOLLOWS + old.episode_id, ()))
        attempts = attempts_left(content, old.episode_id) if tuple(filed) == old.sources else ()
        if not _is_bundle(old):
            bundles = [item for item in own if _is_bundle(item) and _holds(item, old)]
            changed = (_with_lesson(content, bundle, old, new) for bundle in bundles)
            return [*(change for changes in changed for change in changes), *attempts]
        lessons = [item for item in own if not _is_bundle(item) and _holds(old, item)]
        if lessons and new is not None:
            names = ", ".join(repr(item.id) for item in lessons)
            msg = f"item {old.id!r} is made of the lessons {names}: edit those, and it follows"
            raise InputError(msg)
        return [*(Remove(item.id, f"forgotten with {old.id}") for item in lessons), *attempts]

    @override
    def _withdraw(self, left: BankContent, episodes: Collection[str]) -> Sequence[Change]:
        return [change for name in episodes for change in attempts_left(left, name)]


def _is_bundle(item: MemoryItem) -> bool:
    """Say whether an item holds the texts of others."""
    return item.metadata.get("unit") == "bundle"


def _holds(bundle: MemoryItem, lesson: MemoryItem) -> bool:
    return f"\n{lesson.text}\n" in f"\n{bundle.text}\n"


def _with_lesson(
    content: BankContent, bundle: MemoryItem, old: MemoryItem, new: MemoryItem | None
) -> Sequence[Change]:
    """Say what changes in a bundle where one of its lessons is forgotten or edited."""
    line = "" if new is None else f"{new.text}\n"
    text = f"\n{bundle.text}\n".replace(f"\n{old.text}\n", f"\n{line}", 1)[1:-1]
    if not text:
        return [Remove(bundle.id, f"its last lesson, {old.id}, was forgotten")]
    changed = bundle.model_copy(update={"text": text})
    return reworded(content, bundle, changed, f"follows {old.id}")


def _bundle(episode: Episode, key: str) -> MemoryItem:
    return _item(episode, "lessons", episode.lessons, key)


def _singles(episode: Episode) -> list[MemoryItem]:
    return [
        _item(episode, f"lesson-{number}", [lesson], _key(lesson))
        for number, lesson in enumerate(episode.lessons)
    ]


def _key(lesson: Lesson) -> str:
    return lesson.when_to_use or lesson.text


def _lesson_in(item: MemoryItem) -> Lesson:
    """Return the single lesson that `render_lesson` wrote into an item."""
    situation = f"- When {item.key}: "
    if item.key and item.text.startswith(situation):
        return Lesson(item.text.removeprefix(situation), item.key)
    return Lesson(item.text.removeprefix("- "))


def _item(episode: Episode, name: str, lessons: Sequence[Lesson], key: str) -> MemoryItem:
    return MemoryItem(
        id=f"{episode.id}/{name}",
        text="\n".join(render_lesson(lesson) for lesson in lessons),
        type=lessons[0].type,
        source_domain=episode.domain,
        episode_id=episode.id,
        success=episode.outcome.success,
        order_index=0,
        task_id=episode.task_id,
        key=key,
        metadata=authors(lessons),
    )


def in_sight(instruction: str, observation: str) -> frozenset[str]:
    """Return what the instruction names that the agent now sees.

    Worlds that repeat the instruction in what they show do not show its things by that.
    """
    words = {word for word in tokenize(instruction) if not word.isdigit()} - _FUNCTION_WORDS
    rest = observation.replace(instruction, " ") if instruction else observation
    return frozenset(words.intersection(tokenize(rest)))


def phase_changed(instruction: str, observation: str, before: str) -> bool:
    """Say whether something that the instruction names has come into sight since `before`.

    Searching turns into approaching, carrying into placing, when a thing or a deed of the goal
    first appears in what the world says. While an episode goes on as it did, room after room
    of the same search, nothing of the goal appears, and asking again would bring only the same
    (continual-memory §4.2).
    """
    return bool(in_sight(instruction, observation) - in_sight(instruction, before))


# Attempts kept for comparison ------------------------------------------------------------

ATTEMPTS: Final = "attempts/"
"""Bookkeeping: prefix of the attempts kept, and of how many there were."""
LONGEST_TEXT: Final = 1_000
"""Most characters kept of one thought, action or observation."""
LONGEST_ATTEMPT: Final = 8_000
"""Most characters kept of one attempt: about 2,000 tokens of a prompt that compares two."""
LEAST_LIKE: Final = 0.5
"""Least cosine of the keys of two attempts at different tasks that are compared."""

_OPENING = 0.4
"""Part of the room that the first turns have; the last ones, where things are decided, have more."""


def keep_attempt(
    namespace: Namespace, episode: Episode, key: str, position: int, slots: int
) -> Program[Sequence[Change]]:
    """Say what keeping an episode for comparison changes.

    Nothing is kept of one whose outcome nobody can tell, or is told by gold answers: lessons that
    come of a comparison say nothing of where the other attempt's outcome is from.

    Args:
        namespace: The bank.
        episode: The attempt.
        key: What it is compared by.
        position: How many episodes were taken in before.
        slots: How many are kept per domain and outcome.
    """
    success, feedback = episode.outcome.success, episode.outcome.feedback
    if not slots or success is None or feedback == "oracle":
        return ()
    shelf = _shelf(episode.domain, success=success)
    (held,) = yield from bank.read_state(namespace, [shelf])
    count = cast("int", held or 0)
    kept: dict[str, JSON] = {
        "episode_id": episode.id,
        "task_id": episode.task_id,
        "task": _encodable(episode.task)[:LONGEST_TEXT],
        "key": _encodable(key)[:LONGEST_TEXT],
        "position": position,
        "reason": _encodable(episode.outcome.reason)[:LONGEST_TEXT],
        "steps": [[s.thought, s.action, s.observation] for s in shortened(episode.steps)],
    }
    return [SetState(f"{shelf}/{count % slots}", kept), SetState(shelf, count + 1)]


def attempts_left(content: BankContent, episode_id: str) -> list[Change]:
    """Say what drops the attempts kept of an episode: they are no items, and have no ids to name."""
    return [
        SetState(key, None)
        for key, held in content.state.items()
        if key.startswith(ATTEMPTS) and isinstance(held, dict) and held["episode_id"] == episode_id
    ]


def find_counterpart(
    namespace: Namespace, episode: Episode, key: str, slots: int
) -> Program[Attempt | None]:
    """Find the attempt of the same domain that ended the other way, and is most like this one.

    One at the same task comes first; of several the newest. `None` where none is like it enough.
    """
    success = episode.outcome.success
    if not slots or success is None:
        return None
    shelf = _shelf(episode.domain, success=not success)
    held = yield from bank.read_state(namespace, [f"{shelf}/{slot}" for slot in range(slots)])
    found = [cast("Mapping[str, Any]", each) for each in held if each is not None]
    likeness = TfIdf.of([_encodable(key), *(each["key"] for each in found)]).similarities(0)[1:]
    ranked = [
        (each["task_id"] == episode.task_id, float(like), each["position"], slot)
        for slot, (each, like) in enumerate(zip(found, likeness, strict=True))
    ]
    same, like, _, slot = max(ranked, default=(False, 0.0, 0, 0))
    return _attempt(found[slot], success=not success) if same or like >= LEAST_LIKE else None


def shortened(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return steps cut to the room there is: each text, and the turns in the middle."""
    cut = [Step(_cut(s.thought), _cut(s.action), _cut(s.observation)) for s in steps]
    if sum(map(_size, cut)) <= LONGEST_ATTEMPT:
        return tuple(cut)
    head = _fitting(cut, round(LONGEST_ATTEMPT * _OPENING))
    tail = _fitting(cut[:head:-1], LONGEST_ATTEMPT - sum(map(_size, cut[:head])))
    gap = Step("", "", f"({len(cut) - head - tail} turns are left out here)")
    return (*cut[:head], gap, *cut[len(cut) - tail :])


def _shelf(domain: str, *, success: bool) -> str:
    return f"{ATTEMPTS}{domain}/{'success' if success else 'failure'}"


def _attempt(held: Mapping[str, Any], *, success: bool) -> Attempt:
    return Attempt(
        tuple(Step(*step) for step in held["steps"]),
        Outcome(success, reason=held["reason"]),
        task=held["task"],
        episode_id=held["episode_id"],
    )


def _fitting(steps: Sequence[Step], room: int) -> int:
    """Return how many of the first steps fit."""
    for number, step in enumerate(steps):
        room -= _size(step)
        if room < 0:
            return number
    return len(steps)


def _size(step: Step) -> int:
    return len(step.thought) + len(step.action) + len(step.observation)


def _cut(text: str) -> str:
    text = _encodable(text)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _encodable(text: str) -> str:
    """Return a text without lone surrogates, which no log can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
