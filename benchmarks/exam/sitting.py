"""A memory takes the exam: it files a history, is asked, has to forget, and is marked by a reader by rules.

The reader stands where a model would, so that a mark is one of the memory. It takes as evidence every sentence
that names the subject, has a word of the attribute and one of the values the attribute can have, and
dates it by the day in the sentence, or else by the last one named above it in the same item. It then
answers as somebody would who believes all of it: the latest value, the latest up to a day, the one
before another, or all that is said. Where evidence disagrees and nothing dates it, it says nothing.

What it cannot do: it knows no synonyms and no pronouns, follows nothing over two sentences, does not
read dates in words, and takes "not in Lyon" for Lyon. A memory that words things anew may know more
than it is given marks for.

Beside memories stand two references that keep nothing: the *oracle* is handed exactly the sentences
that tell of the slot asked about, and scores 100 % where questions and reader are sound; *shuffled*
is handed those of another subject under the name of the one asked about, and scores *chance*, which is
what it scores in the mean over all other subjects.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import Any, Final, Protocol, TypeAlias

from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import JSON, seeded_fraction
from langgraft.benchmarks.exam.histories import KINDS, History, Kind, Question, Session
from langgraft.memory.facts import plain
from langgraft.memory.model import BLOCK_END, BLOCK_START, Episode, Verdict
from langgraft.memory.model import Question as MemoryQuestion
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import PROVIDERS, make_provider
from langgraft.memory.recall import Budget, RecallContext, count_tokens_approximately, render_block

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n")
_DAY: Final = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_UNTIL: Final = re.compile(r"\buntil (\d{4}-\d\d-\d\d)\b")
_WORD: Final = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one sentence says of a slot."""

    value: str
    day: str
    """Since when; empty where nothing says so."""
    until: str


def read(block: str, question: Question) -> frozenset[str]:
    """Answer a question from a recalled block; nothing where it does not say, or one cannot tell."""
    found = list(evidence(block, question))
    if question.kind == "contradiction":
        return frozenset(each.value for each in found)
    if question.before:
        return _before(found, question.before)
    if question.on:
        found = [each for each in found if each.day and each.day <= question.on]
    found = [each for each in found if not each.until or each.until > (question.on or "9999")]
    latest = max((each.day for each in found), default="")
    values = frozenset(each.value for each in found if each.day == latest)
    return values if len(values) == 1 else frozenset()


def evidence(block: str, question: Question) -> Iterator[Evidence]:
    """Find what a block says of the slot that is asked about."""
    subject = set(_WORD.findall(question.subject.lower()))
    values = {value.lower(): value for value in question.values}
    text = block.replace(BLOCK_START, "").replace(BLOCK_END, "")
    for item in text.split("\n\n"):
        day = ""
        for sentence in _SENTENCE.split(item):
            ended = _UNTIL.search(sentence)
            days = [each for each in _DAY.findall(sentence) if not ended or each != ended[1]]
            day = days[0] if days else day
            words = _WORD.findall(sentence.lower())
            named = [values[word] for word in words if word in values]
            if subject <= set(words) and set(question.words) & set(words) and len(named) == 1:
                yield Evidence(named[0], day, ended[1] if ended else "")


def _before(found: list[Evidence], value: str) -> frozenset[str]:
    """Return the value that was dated last before another began."""
    begins = min((each.day for each in found if each.value == value and each.day), default="")
    earlier = [each for each in found if each.value != value and each.day and each.day < begins]
    latest = max((each.day for each in earlier), default="")
    return frozenset(each.value for each in earlier if each.day == latest)


BUDGET: Final = 800
"""Most tokens of a block: about a quarter of what the sessions of a history say."""
ORACLE: Final = "oracle"
SHUFFLED: Final = "shuffled"
REFERENCES: Final = (ORACLE, SHUFFLED)


class Candidate(Protocol):
    """Whatever takes the exam, over one history."""

    def file(self, session: Session) -> None:
        """Take in a session."""

    def recall(self, question: Question, number: int) -> str:
        """Return the block for a question, the `number`th of its history."""

    def forget(self, session: Session) -> None:
        """Forget all that a session left."""


Seat: TypeAlias = Callable[[History], Candidate]


@dataclass(frozen=True, slots=True)
class Answer:
    """What came of one question."""

    history: str
    kind: Kind
    right: bool
    stale: bool
    """Whether a superseded value was given as the one that holds."""
    tokens: int
    reused: float | None
    """Share of the prompt's block and question that begins as at the question before; `None` for
    the first question of a history, and where nothing is recalled."""


@dataclass(frozen=True, slots=True)
class Marks:
    """What one memory, `name`, came to in all its `answers`."""

    name: str
    needs: tuple[str, ...]
    """What a model has to give it with each episode."""
    answers: tuple[Answer, ...]
    chance: tuple[tuple[Kind, float], ...] = ()
    """By kind of question, what chance comes to; of `shuffled` only."""

    def of(self, kind: Kind | None) -> tuple[int, int]:
        """Return how many questions of a kind were answered right, and how many there were."""
        asked = [each for each in self.answers if kind is None or each.kind == kind]
        return sum(each.right for each in asked), len(asked)

    @property
    def stale(self) -> tuple[int, int]:
        """How often a superseded value was given as current, of how many questions."""
        asked = [each for each in self.answers if each.kind == "staleness"]
        return sum(each.stale for each in asked), len(asked)

    @property
    def tokens(self) -> float:
        """Tokens of a block, in the mean over all questions."""
        return sum(each.tokens for each in self.answers) / len(self.answers)

    @property
    def reused(self) -> float | None:
        """Share of a prompt that a cache of prefixes has from the question before, in the mean."""
        known = [each.reused for each in self.answers if each.reused is not None]
        return sum(known) / len(known) if known else None


def take_exam(name: str, histories: Sequence[History]) -> Marks:
    """Have a memory take the exam.

    Args:
        name: A provider of `PROVIDERS`, `package.module:Class`, or one of `REFERENCES`.
        histories: Each is another bank's.

    Raises:
        SettingsError: There is no such provider.
    """
    if name in REFERENCES:
        chance = _chance(histories) if name == SHUFFLED else ()
        answers = _answers(lambda history: Reference(history, shuffled=name == SHUFFLED), histories)
        return Marks(name, (), tuple(answers), chance)
    needs = tuple(sorted(make_provider(name, InMemoryStore(), settings={}).needs))
    return Marks(name, needs, tuple(_answers(lambda _: Seated(name), histories)))


def everybody() -> tuple[str, ...]:
    """Return the references and all memory systems there are, in the order of the table."""
    return (*REFERENCES, *PROVIDERS)


def _answers(seat: Seat, histories: Sequence[History]) -> Iterator[Answer]:
    for history in histories:
        candidate = seat(history)
        for session in history.sessions:
            candidate.file(session)
        before = ""
        for number, question in enumerate(_in_order(history.questions)):
            block = candidate.recall(question, number)
            given = read(block, question)
            right = given == question.answers
            if question.kind == "forgetting":  # known before, and not afterwards
                for session in history.about(question.subject, question.attribute):
                    candidate.forget(session)
                right = right and not read(candidate.recall(question, number), question)
            elif question.kind == "abstention":
                right = not given
            prompt = f"{block}\n{question.text}"
            alike = takewhile(lambda pair: pair[0] == pair[1], zip(prompt, before, strict=False))
            shared = sum(1 for _ in alike) / len(prompt)
            yield Answer(
                history.name,
                question.kind,
                right,
                bool(given) and given <= question.superseded,
                count_tokens_approximately(block),
                shared if block and before else None,
            )
            before = prompt


def _in_order(questions: Sequence[Question]) -> list[Question]:
    """Ask before anything is forgotten; else in the order drawn."""
    return sorted(questions, key=lambda question: question.kind == "forgetting")


class Seated:
    """A memory system, handed what an application would hand it.

    Args:
        name: Of the provider.
    """

    def __init__(self, name: str) -> None:
        self.memory: MemoryProvider[Any] = make_provider(name, InMemoryStore(), settings={})

    def file(self, session: Session) -> None:
        """File an episode with what the provider needs of it, its questions answered by rule."""
        episode = session.episode
        parts: dict[str, Any] = {
            name: () for name in ("lessons", "facts") if name not in self.memory.needs
        }
        episode = Episode(**{**_fields(episode), **parts})
        if "verdicts" in self.memory.needs:
            ruled = [v for asked in self.memory.questions(episode) for v in verdicts(asked)]
            episode = Episode(**{**_fields(episode), "verdicts": tuple(ruled)})
        self.memory.file(episode)

    def recall(self, question: Question, number: int) -> str:
        """Ask memory as a graph does at the beginning of an episode."""
        asked = f"question-{number}"
        context = RecallContext(
            domain=self._domain(),
            task_id=asked,
            episode_id=asked,
            episode_index=number,
            at=question.on,
        )
        return self.memory.provide(question.text, context, Budget(BUDGET)).text

    def forget(self, session: Session) -> None:
        """Take out every item that the session left."""
        for item in self.memory.content().items.values():
            if item.episode_id == session.episode.id and item.id in self.memory.content().items:
                self.memory.forget(item.id)

    def _domain(self) -> str:
        items = self.memory.content().items.values()
        return next((item.source_domain for item in items), "chat")


def _fields(episode: Episode) -> dict[str, Any]:
    return {name: getattr(episode, name) for name in episode.__dataclass_fields__}


_SAME_VOICE: Final = ("subject", "attribute", "said_by")


def verdicts(question: MemoryQuestion) -> Iterator[Verdict]:
    """Answer what a memory asks about new facts; of anything else nothing is said.

    What somebody says replaces what the same one said of the same slot; what others said stands.
    """
    new, kept = question.shows.get("facts"), question.shows.get("kept")
    if question.kind != "facts" or not isinstance(new, dict) or not isinstance(kept, dict):
        return
    for name, fact in new.items():
        for identity, old in kept.items():
            if all(plain(fact[each]) == plain(old[each]) for each in _SAME_VOICE):
                action = "repeats" if fact["value"] == old["value"] else "replaces"
                yield Verdict(question.id, action, identity, name, by="rules")


class Reference:
    """A memory that is handed the evidence, of the right subject or of another one.

    Args:
        history: What there is to tell.
        shuffled: Whether it is another's.
    """

    def __init__(self, history: History, *, shuffled: bool) -> None:
        self.history = history
        self.shuffled = shuffled
        self.forgotten: set[str] = set()

    def file(self, session: Session) -> None:
        """Keep nothing: the history is there."""

    def forget(self, session: Session) -> None:
        """Hand out no more what a session told."""
        self.forgotten.add(session.episode.id)

    def recall(self, question: Question, number: int) -> str:  # noqa: ARG002
        """Return the evidence."""
        subject = question.subject
        if self.shuffled:
            others = subjects_beside(self.history, question)
            subject = others[int(seeded_fraction(self.history.name, question.text) * len(others))]
        return retold(self.history, question, subject, self.forgotten)


def subjects_beside(history: History, question: Question) -> list[str]:
    """Return the other subjects of a history of which the attribute is told at all."""
    told = (session.told for session in history.sessions)
    subjects = dict.fromkeys(t.subject for t in told if t.attribute == question.attribute)
    return [each for each in subjects if each != question.subject]


def retold(
    history: History, question: Question, subject: str, forgotten: frozenset[str] | set[str]
) -> str:
    """Return what is told of a subject as a block about the one asked about."""
    return render_block(
        [
            session.told.sentence.replace(subject, question.subject)
            for session in history.about(subject, question.attribute)
            if session.episode.id not in forgotten
        ]
    )


def _chance(histories: Sequence[History]) -> tuple[tuple[Kind, float], ...]:
    """Return by kind what `shuffled` scores in the mean over all other subjects.

    Another's evidence is not forgotten with one's own, so that nothing is ever right of that kind,
    and where something is never told of one it is told of the others.
    """
    scores: dict[Kind, list[float]] = {kind: [] for kind in KINDS}
    for history in histories:
        for question in history.questions:
            others = subjects_beside(history, question)
            given = [
                read(retold(history, question, each, frozenset()), question) for each in others
            ]
            if question.kind in ("abstention", "forgetting"):
                right = sum(not each for each in given) * (question.kind == "abstention")
            else:
                right = sum(each == question.answers for each in given)
            scores[question.kind].append(right / len(others))
    return tuple((kind, sum(each) / len(each)) for kind, each in scores.items())


def outcome(marks: Marks) -> dict[str, JSON]:
    """Return marks as JSON."""
    right, asked = marks.of(None)
    stale, _ = marks.stale
    kinds: dict[str, JSON] = {}
    for kind in KINDS:
        kinds[kind] = list(marks.of(kind))
    return {
        "memory": marks.name,
        "right": right,
        "asked": asked,
        "kinds": kinds,
        "stale": stale,
        "tokens": round(marks.tokens, 3),
        "reused": None if marks.reused is None else round(marks.reused, 6),
        "needs": list(marks.needs),
        "chance": {kind: round(value, 6) for kind, value in marks.chance},
    }
