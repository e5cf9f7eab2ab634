"""Histories in which facts change, drawn by seed, with questions whose answers follow by rule.

People move, change jobs and tastes, take back what they said, get and lose pets, and are tired for a day.
What holds when is kept here on a timeline of its own, which shares nothing with any memory:

==================  =======================================================================
sentence            on the timeline
==================  =======================================================================
a new value         of `city`, `employer`, `favorite food` ends the one before
another pet, taste  stands beside the others
no longer           ends the value that it names
I was wrong         the value before never was: the right one holds since that one did
Since DAY           holds since then, and ends the one before then
today               holds for a day
until DAY           holds until then
As you know         changes nothing; nor does what is asked, or told of people whose names
                    are not asked about
==================  =======================================================================
"""

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Final, TypeVar

from langchain_core.messages import BaseMessage
from typing_extensions import override

from langgraft._core.canonical import seeded_fraction
from langgraft.benchmarks.simulated.chat import Sampling, SimulatedChatModel
from langgraft.benchmarks.simulated.conversation import harmless_reply
from langgraft.benchmarks.simulated.judging import judging_reply

T = TypeVar("T")

NAMES: Final = ("Ann", "Bo", "Carla", "Dev", "Ines")
STATE_DAYS: Final = 1
"""For how many days a mood holds."""

_PLACES = ("Oslo", "Lima", "Bergen", "Kyoto", "Porto", "Quito", "Tartu", "Hanoi", "Cork", "Accra")
_FIRMS = ("Acme", "Globex", "Initech", "Umbra", "Vandelay", "Hooli", "Stark Labs", "Wonka")
_FOODS = ("ramen", "pho", "tacos", "couscous", "dosa", "pierogi", "risotto", "ceviche")
_PETS = ("Miso", "Rex", "Luna", "Otto", "Biscuit", "Nala", "Pixel", "Moss")
_TASTES = ("jazz", "chess", "hiking", "opera", "sudoku", "sailing", "poetry", "cycling")
_MOODS = ("tired", "ill", "cheerful", "busy", "nervous")
_QUESTIONS: Final = {
    "city": ("Which city do I live in?", "Which city does {} live in?"),
    "employer": ("Which employer do I work for?", "Which employer does {} work for?"),
    "favorite food": ("What is my favorite food?", "What is {}'s favorite food?"),
    "pet": ("Which pet do I have?", "Which pet does {} have?"),
    "likes": (
        "What do I like, which likes did I tell?",
        "What does {} like, which likes were told?",
    ),
    "mood": ("What is my mood?", "What is the mood of {}?"),
    "staying in": ("Where am I staying in these days?", "Where is {} staying in these days?"),
}
_VALUES: Final = {
    "city": _PLACES,
    "employer": _FIRMS,
    "favorite food": _FOODS,
    "pet": _PETS,
    "likes": _TASTES,
    "mood": _MOODS,
    "staying in": _PLACES,
}
_CHANGES: Final = (
    *("city", "city", "employer", "employer", "favorite food", "pet", "pet", "likes", "likes"),
    *("gone", "gone", "mood", "mood", "staying in", "wrong", "wrong", "wrong", "backdated"),
    *("repeat", "talk", "talk"),
)
_TALK: Final = (
    "Is it true that people who moved to {place} like {taste}?",
    "Somebody asked whether {name} moved to {place}, I could not say.",
    "They say that {place} is where {firm} started working at dawn.",
    "The neighbor of {name} has a cat, and is called {pet} by everybody.",
)


@dataclass(frozen=True, slots=True)
class Said:
    """What a user said in one turn."""

    at: str
    text: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A question about a history."""

    text: str
    subject: str
    attribute: str
    at: str
    """The moment that is asked about."""
    past: bool
    """Whether that is before the last turn."""
    values: frozenset[str]
    """The right answer; empty: nothing is known of it."""


@dataclass(frozen=True, slots=True)
class FactHistory:
    """Turns in order, and questions to ask behind the last."""

    turns: tuple[Said, ...]
    questions: tuple[Asked, ...]


@dataclass(slots=True)
class _Held:
    value: str
    since: datetime
    until: datetime | None = None

    def holds(self, at: datetime) -> bool:
        return self.since <= at and (self.until is None or at < self.until)


@dataclass(slots=True)
class _Writer:
    """Draws sentences, and keeps the timeline."""

    seed: int
    now: datetime
    draws: int = 0
    line: dict[tuple[str, str], list[_Held]] = field(default_factory=dict)

    def fraction(self) -> float:
        self.draws += 1
        return seeded_fraction("fact history", self.seed, self.draws)

    def pick(self, options: Sequence[T]) -> T:
        return options[int(self.fraction() * len(options))]

    def current(self, subject: str, attribute: str) -> list[_Held]:
        return [each for each in self.line.get((subject, attribute), []) if each.holds(self.now)]

    def other_value(self, subject: str, attribute: str) -> str:
        """Draw a value that does not hold."""
        held = {each.value for each in self.current(subject, attribute)}
        return self.pick([value for value in _VALUES[attribute] if value not in held])

    def hold(self, subject: str, attribute: str, held: _Held, *, alone: bool) -> None:
        """Put a value on the timeline; `alone` ends the ones before."""
        before = self.current(subject, attribute)
        for each in before if alone else ():
            each.until = min(held.since, each.until or held.since)
        self.line.setdefault((subject, attribute), []).append(held)

    def sentence(self, subject: str) -> str:
        """Draw one sentence about a subject, or about nothing in particular."""
        change = self.pick(_CHANGES)
        if change == "talk":
            return self.pick(_TALK).format(
                place=self.pick(_PLACES),
                taste=self.pick(_TASTES),
                name=self.pick(NAMES),
                firm=self.pick(_FIRMS),
                pet=self.pick(_PETS),
            )
        who, mine = ("I", "My") if subject == "user" else (subject, f"{subject}'s")
        told = {
            "gone": self._gone,
            "wrong": self._wrong,
            "backdated": self._backdated,
            "repeat": self._repeat,
        }
        if change in told:
            return told[change](subject, who, mine)
        value, be = self.other_value(subject, change), "am" if who == "I" else "is"
        held = _Held(value, self.now)
        text = {
            "city": f"{who} moved to {value}.",
            "employer": f"{who} started working at {value}.",
            "favorite food": f"{mine} favorite food is {value} now.",
            "pet": f"{who} got a {self.pick(('cat', 'dog', 'rabbit'))} called {value}.",
            "likes": f"{who} like{'' if who == 'I' else 's'} {value}.",
            "mood": f"{who} {be} {value} today.",
        }.get(change, "")
        if change == "mood":
            held.until = self.now + timedelta(days=STATE_DAYS)
        if change == "staying in":
            last = (self.now + timedelta(days=2 + int(self.fraction() * 20))).date()
            held.until = datetime(last.year, last.month, last.day, tzinfo=UTC)
            text = f"{who} {be} staying in {value} until {last.isoformat()}."
        self.hold(subject, change, held, alone=change not in ("pet", "likes"))
        return text

    def _gone(self, subject: str, who: str, mine: str) -> str:  # noqa: ARG002
        attribute = self.pick(("pet", "likes"))
        held = self.current(subject, attribute)
        if not held:
            return self.sentence(subject)
        ended = self.pick(held)
        ended.until = self.now
        verbs = {"pet": ("have", "has"), "likes": ("like", "likes")}[attribute]
        return f"{who} no longer {verbs[who != 'I']} {ended.value}."

    def _wrong(self, subject: str, who: str, mine: str) -> str:
        attribute = self.pick(("city", "employer", "favorite food"))
        held = self.current(subject, attribute)
        if not held or held[-1].since == self.now:
            return self.sentence(subject)
        before, held[-1].value = held[-1].value, self.other_value(subject, attribute)
        right = held[-1].value
        if attribute == "favorite food":
            whose = "my" if who == "I" else mine
            return f"I was wrong: it is {right} that is {whose} favorite food, not {before}."
        did = {"city": "moved to", "employer": "started working at"}[attribute]
        return f"I was wrong: it is {right} that {who} {did}, not {before}."

    def _backdated(self, subject: str, who: str, mine: str) -> str:  # noqa: ARG002
        held = self.current(subject, "employer")
        first = held[-1].since if held else self.now - timedelta(days=60)
        days = (self.now.date() - first.date()).days
        if days < 2:  # noqa: PLR2004
            return self.sentence(subject)
        day = first.date() + timedelta(days=1 + int(self.fraction() * (days - 1)))
        since = datetime(day.year, day.month, day.day, tzinfo=UTC)
        value = self.other_value(subject, "employer")
        self.hold(subject, "employer", _Held(value, since), alone=True)
        have = "have" if who == "I" else "has"
        return f"Since {day.isoformat()} {who} {have} been working at {value}."

    def _repeat(self, subject: str, who: str, mine: str) -> str:  # noqa: ARG002
        held = self.current(subject, "city")
        if not held:
            return self.sentence(subject)
        return f"As you know, {who} live{'' if who == 'I' else 's'} in {held[-1].value}."

    def question(self, subject: str, attribute: str, at: datetime, *, past: bool) -> Asked:
        mine, other = _QUESTIONS[attribute]
        values = {e.value for e in self.line[subject, attribute] if e.holds(at)}
        text = mine if subject == "user" else other.format(subject)
        return Asked(text, subject, attribute, at.isoformat(), past, frozenset(values))


def fact_history(seed: int, *, turns: int = 40, subjects: int = 3) -> FactHistory:
    """Draw a history.

    Args:
        seed: Picks the draws.
        turns: How many.
        subjects: How many people are told of, the user among them; some of the talk is about others.
    """
    writer = _Writer(seed, datetime(2026, 1, 1, 9, tzinfo=UTC))
    people = ("user", *NAMES[: subjects - 1])
    said: list[Said] = []
    for _ in range(turns):
        writer.now += timedelta(days=1 + int(writer.fraction() * 12), minutes=7)
        at = writer.now.isoformat()
        told = [writer.sentence(writer.pick(people))]
        if writer.fraction() < 0.3:  # noqa: PLR2004 - some turns say two things, of two people
            other = writer.pick([each for each in people if each not in told[0]])
            told.append(writer.sentence(other))
        said.append(Said(at, " ".join(told)))
    first, last = datetime.fromisoformat(said[0].at), writer.now
    writer.now += timedelta(hours=int(writer.fraction() * 48))
    questions: list[Asked] = []
    for subject, attribute in sorted(writer.line):
        questions.append(writer.question(subject, attribute, writer.now, past=False))
        for _ in range(2):
            span = (last - first).days
            day = first.replace(hour=0, minute=30) + timedelta(days=int(writer.fraction() * span))
            questions.append(writer.question(subject, attribute, day, past=True))
    return FactHistory(tuple(said), tuple(questions))


class SimulatedNotary(SimulatedChatModel):
    """Notes down facts and judges them, by the rules of `facts`; at a loss with anything else."""

    model_name: str = "simulated-notary"

    @override
    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str:
        """Answer a prompt of extracting or judging."""
        text = messages[0].text if messages else ""
        return judging_reply(text) or harmless_reply(text, "wait", "Noted.")
