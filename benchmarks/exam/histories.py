"""Histories that are made by seed, and questions to them whose answers follow by rule.

A history is what one bank sees: some eighty sessions on as many days, each of which tells one value of one
*slot*, such as the city of Ada. Half of the histories are conversations about people; the other half are
episodes in houses of a text world, where a thing is looked for, and found elsewhere than the last time.
What happens to a slot decides what may be asked of it:

==============  ===============================================  =====================================
kind            what happens                                     what is asked
==============  ===============================================  =====================================
`recall`        it is told once                                  its value
`staleness`     it changes twice                                 its value today
`contradiction` two say different things; nobody is corrected    all that is said of it
`abstention`    it is never told                                 its value: there is no answer
`as of`         it changes twice                                 its value on a day in between
`order`         it changes twice                                 its value before the last one
`forgetting`    it is told once, and then has to be forgotten    its value, before and after
==============  ===============================================  =====================================

The other slots are told once, so that there is something else to find. Each session says the same in
several ways, as an application hands an episode to memory: in the task and the steps, as a lesson a
reflector drew, as a fact an extractor found. Which of these reaches a memory, the memory says itself
(`MemoryProvider.needs`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import date, timedelta
from typing import Final, Literal, TypeAlias, TypeVar, get_args

from langgraft._core.canonical import seeded_fraction
from langgraft.memory.facts import Fact
from langgraft.memory.model import Episode, Lesson, Outcome, Step

T = TypeVar("T")

Kind: TypeAlias = Literal[
    "recall", "staleness", "contradiction", "abstention", "as of", "order", "forgetting"
]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)

QUESTIONS: Final = 4
"""Questions of each kind to a history."""
HISTORIES: Final = 12
"""Histories of an exam: 48 questions of each kind."""

PEOPLE: Final = ("Ada", "Bela", "Chidi", "Dora", "Emil", "Farah", "Goran", "Hana")
WITNESSES: Final = ("Ines", "Jonas", "Kira", "Luka")
"""Who says something of others."""
ATTRIBUTES: Final[Mapping[str, tuple[str, ...]]] = {
    "city": ("Lyon", "Porto", "Graz", "Oslo", "Turin", "Bergen", "Malmo", "Ghent"),
    "employer": ("Acme", "Borealis", "Corvus", "Delphi", "Elgin", "Fathom", "Gannet", "Helix"),
    "drink": ("coffee", "cocoa", "lemonade", "cider", "water", "milk", "tea", "juice"),
    "instrument": ("cello", "flute", "banjo", "harp", "oboe", "tuba", "viola", "drums"),
    "sport": ("rowing", "tennis", "judo", "fencing", "golf", "rugby", "curling", "archery"),
}
ASKED: Final[Mapping[str, tuple[str, str]]] = {
    "city": ("Where", "live"),
    "employer": ("Whom", "work for"),
    "drink": ("What", "have in the morning"),
    "instrument": ("What", "play in the band"),
    "sport": ("What", "do to keep fit"),
}
"""Attribute → the words it is asked for in, which are others than it is told in."""
HOUSES: Final = ("Ash", "Birch", "Cedar", "Elm", "Fir", "Larch", "Maple", "Oak")
THINGS: Final = ("red key", "blue lamp", "green book", "gold coin", "white rope")
PLACES: Final = ("drawer", "chest", "basket", "shelf", "oven", "cellar", "barrel", "cupboard")
SMALL_TALK: Final = (
    "The trains were late again.",
    "It rained until noon.",
    "Somebody painted the fence.",
    "The bakery was closed.",
    "There was a parade in the street.",
    "The elevator works again.",
)
FIRST_DAY: Final = date(2026, 1, 5)


@dataclass(frozen=True, slots=True)
class Told:
    """One value of one slot, as it was told."""

    subject: str
    attribute: str
    value: str
    day: str
    speaker: str
    sentence: str
    """In words, with the day and who said it."""


@dataclass(frozen=True, slots=True)
class Session:
    """One episode of a history."""

    episode: Episode
    told: Told


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked; nothing here tells the answer."""

    kind: Kind
    subject: str
    attribute: str
    text: str
    values: tuple[str, ...]
    """All values that the attribute could have."""
    words: tuple[str, ...]
    """Words of which a sentence about the attribute has one."""
    on: str = ""
    """The day that is asked about; empty: the last one."""
    before: str = ""
    """The value whose predecessor is asked for."""
    answers: frozenset[str] = field(default=frozenset(), repr=False)
    """What is right; empty where only silence is. No memory and no reader sees it."""
    superseded: frozenset[str] = field(default=frozenset(), repr=False)
    """Values that held once and do not on the day asked about."""


@dataclass(frozen=True, slots=True)
class History:
    """What one bank, `name`, sees of a `domain` (`sessions`), and what it is asked (`questions`)."""

    name: str
    domain: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]

    def about(self, subject: str, attribute: str) -> tuple[Session, ...]:
        """Return the sessions that tell of a slot, the oldest first."""
        return tuple(
            session
            for session in self.sessions
            if (session.told.subject, session.told.attribute) == (subject, attribute)
        )


def make_histories(number: int = HISTORIES, *, seed: int = 0) -> tuple[History, ...]:
    """Make histories, of people and of houses in turn; the same arguments make the same ones.

    Args:
        number: How many.
        seed: What they are drawn by.
    """
    return tuple(_make(seed, each, people=each % 2 == 0) for each in range(number))


def _make(seed: int, number: int, *, people: bool) -> History:
    name = f"{'people' if people else 'house'}-{number}"
    world = _People() if people else _Houses()
    slots = _shuffled(world.slots, seed, name, "slots")
    kinds: list[Kind | None] = [kind for kind in KINDS for _ in range(QUESTIONS)]
    kinds += [None] * (len(slots) - len(kinds))
    values = {
        slot: _shuffled(world.values(slot), seed, name, *slot)[: _told_times(kind)]
        for slot, kind in zip(slots, kinds, strict=True)
    }
    # Who tells next is drawn; a slot's values keep their order, as its changes do.
    turns = _shuffled(
        [(slot, time) for slot in slots for time in range(len(values[slot]))], seed, name, "turns"
    )
    seen: dict[tuple[str, str], int] = {}
    sessions: list[Session] = []
    kind_of = dict(zip(slots, kinds, strict=True))
    for place, (slot, _) in enumerate(turns):
        time = seen.get(slot, 0)
        seen[slot] = time + 1
        speaker = world.speaker(slot, kind_of[slot], time)
        day = (FIRST_DAY + timedelta(days=place)).isoformat()
        told = world.told(slot, values[slot][time], day, speaker)
        talk = SMALL_TALK[int(seeded_fraction(seed, name, "talk", place) * len(SMALL_TALK))]
        sessions.append(Session(world.episode(f"{name}/{place:03}", told, talk), told))
    draft = History(name, world.domain, tuple(sessions), ())
    asked = [world.question(draft, slot, kind) for slot, kind in kind_of.items() if kind]
    questions = tuple(_shuffled(asked, seed, name, "questions"))
    return History(name, world.domain, tuple(sessions), questions)


def _told_times(kind: Kind | None) -> int:
    if kind in ("staleness", "as of", "order"):
        return 3
    return {"contradiction": 2, "abstention": 0}.get(kind or "", 1)


def _shuffled(values: Sequence[T], *seed: int | str) -> list[T]:
    places = sorted(range(len(values)), key=lambda place: seeded_fraction(*seed, place))
    return [values[place] for place in places]


class _People:
    """Conversations about people."""

    domain = "chat"
    slots: Sequence[tuple[str, str]] = [
        (person, attribute) for person in PEOPLE for attribute in ATTRIBUTES
    ]

    def values(self, slot: tuple[str, str]) -> tuple[str, ...]:
        return ATTRIBUTES[slot[1]]

    def words(self, slot: tuple[str, str]) -> tuple[str, ...]:
        return (slot[1],)

    def speaker(self, slot: tuple[str, str], kind: Kind | None, time: int) -> str:
        """People tell of themselves; where something is contradicted, two others do."""
        if kind != "contradiction":
            return slot[0]
        first = int(seeded_fraction("witness", *slot) * len(WITNESSES))
        return WITNESSES[(first + time) % len(WITNESSES)]

    def told(self, slot: tuple[str, str], value: str, day: str, speaker: str) -> Told:
        subject, attribute = slot
        sentence = f"On {day} {speaker} said: the {attribute} of {subject} is {value}."
        return Told(subject, attribute, value, day, speaker, sentence)

    def episode(self, name: str, told: Told, talk: str) -> Episode:
        said = f"The {told.attribute} of {told.subject} is {told.value}."
        task = f"It is {told.day}. {told.speaker} says: {talk} {said}"
        steps = (Step("", "reply: I will keep that in mind.", ""),)
        return _episode(name, self.domain, task, steps, told)

    def question(self, history: History, slot: tuple[str, str], kind: Kind) -> Question:
        word, verb = ASKED[slot[1]]
        now, then = f"{word} does {slot[0]} {verb}", f"{word} did {slot[0]} {verb}"
        return _question(history, slot, kind, (now, then), (self.values(slot), self.words(slot)))


class _Houses:
    """Episodes in houses of a text world: a thing is looked for and found."""

    domain = "house"
    slots: Sequence[tuple[str, str]] = [
        (f"{thing} of {house} House", "place") for house in HOUSES for thing in THINGS
    ]

    def values(self, slot: tuple[str, str]) -> tuple[str, ...]:  # noqa: ARG002
        return PLACES

    def words(self, slot: tuple[str, str]) -> tuple[str, ...]:  # noqa: ARG002
        return ("place", "lies")

    def speaker(self, slot: tuple[str, str], kind: Kind | None, time: int) -> str:  # noqa: ARG002
        """What is found is seen; where something is contradicted, two say so on the way."""
        return ("the cook", "the gardener")[time] if kind == "contradiction" else "user"

    def told(self, slot: tuple[str, str], value: str, day: str, speaker: str) -> Told:
        said = "" if speaker == "user" else f" {speaker} said:"
        sentence = f"On {day}{said} in the {value} lies the {slot[0]}."
        return Told(*slot, value, day, speaker, sentence)

    def episode(self, name: str, told: Told, talk: str) -> Episode:
        thing, house = told.subject.split(" of ")
        found = f"In the {told.value} lies the {told.subject}."
        empty = PLACES[(PLACES.index(told.value) + 3) % len(PLACES)]
        if told.speaker == "user":
            task = f"It is {told.day}. Find the {told.subject}."
            last = Step("", f"take {thing}", "Taken.")
        else:
            task = f"It is {told.day}. Ask about the {told.subject}."
            found = f"{told.speaker.capitalize()} says: {found[0].lower()}{found[1:]}"
            last = Step("", "look around", talk)
        steps = (
            Step("", "", f"You stand in the hall of {house}. {talk}"),
            Step("", f"open {empty}", "There is nothing but dust."),
            Step("", f"open {told.value}" if told.speaker == "user" else "listen", found),
            last,
        )
        return _episode(name, self.domain, task, steps, told)

    def question(self, history: History, slot: tuple[str, str], kind: Kind) -> Question:
        now, then = f"Where is the {slot[0]} kept", f"Where was the {slot[0]} kept"
        return _question(history, slot, kind, (now, then), (self.values(slot), self.words(slot)))


def _episode(name: str, domain: str, task: str, steps: tuple[Step, ...], told: Told) -> Episode:
    asked = f"somebody asks about the {told.attribute} of {told.subject}"
    fact = Fact(
        told.subject,
        told.attribute,
        told.value,
        said_by=told.speaker,
        since=told.day,
        quote=told.sentence,
        by="rules",
    )
    return Episode(
        id=name,
        domain=domain,
        task_id=name,
        task=task,
        steps=steps,
        outcome=Outcome(success=True),
        lessons=(Lesson(told.sentence, asked, by="rules"),),
        facts=(fact,),
        at=told.day,
    )


def _between(day: str, later: str) -> str:
    """Return the day in the middle of two, or the first where none is between them."""
    first, last = date.fromisoformat(day), date.fromisoformat(later)
    return (first + (last - first) // 2).isoformat()


def _question(
    history: History,
    slot: tuple[str, str],
    kind: Kind,
    asked: tuple[str, str],
    vocabulary: tuple[tuple[str, ...], tuple[str, ...]],
) -> Question:
    told = [session.told for session in history.about(*slot)]
    every = [each.value for each in told]
    on = before = ""
    now, then = asked
    text, answers = f"{now}?", every[-1:]
    match kind:
        case "staleness":
            text = f"{now} today?"
        case "contradiction":
            text, answers = f"People do not agree: {now[0].lower()}{now[1:]}?", every
        case "as of":
            on = _between(told[1].day, told[2].day)
            text, answers = f"{then} on {on}?", every[1:2]
        case "order":
            before = every[2]
            text, answers = f"{then} before {before}?", every[1:2]
    gone = frozenset(every) - frozenset(answers) if kind == "staleness" else frozenset[str]()
    return Question(kind, *slot, text, *vocabulary, on, before, frozenset(answers), gone)
