"""`validate` and `deduplicate`: of the lessons drawn, keep those that hold and are new (ReMe, arXiv:2512.10696 §3).

`validate` keeps a lesson if it is valid and its score is at least one half. ReMe's code has the same rule,
while its prompt calls a lesson invalid below 0.3: here the model is not given the limit. All lessons
of an episode are judged in one call, where ReMe makes one for each.

For `deduplicate` two lessons say the same if their advice is alike, by the cosine of TF-IDF vectors of its words and
pairs of words, if nothing tells that it is other advice (`Stance`), and if their
situations are not unlike: a lesson is found by its situation, so that one answer may have to be
there for several. Advice that corrects other advice has nearly the same words, and has to stay; so
in doubt a lesson is kept. The corpus is the lessons at hand and those of memory that are nearest to
them: no embedder is needed, the cost is the same in a bank of any size, and the same bank always
gives the same. Words are compared, not what they mean: in languages written without blanks little
more than the same phrases are alike.

What makes advice another is told by rules of words too, cheap, always the same, and made to err on
one side: where they see a difference that is none, a lesson is kept that might have gone. They know
the words that negate in English, and none for being wrong or useless; names and the order of words
they see in any language that is written with blanks.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any, Final, Protocol, Self, runtime_checkable

import numpy as np
from langchain_core.messages import HumanMessage
from langchain_core.runnables import Runnable
from pydantic import BaseModel, Field

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program
from langgraft._core.errors import SettingsError
from langgraft._core.texts import Prompt
from langgraft.memory.model import By, Episode, Lesson, Outcome, Step
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers.episode_items import render_trajectory
from langgraft.memory.rankers.diversity import Similarity, TfIdf
from langgraft.memory.rankers.documents import Floats
from langgraft.memory.words import SPACED, tokenize
from langgraft.nodes.dialogue import ChatModel, Dialogue, Node, Update, dialogue_node
from langgraft.nodes.judging import by_line, same_words
from langgraft.nodes.memory import episode_of
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.reflect import describe_outcome, episode_steps
from langgraft.nodes.state import AgentState, DroppedLesson
from langgraft.nodes.structured import Read, Reader, asking, listed

MIN_SCORE = 0.5
"""Least score of a lesson that is kept (ReMe 0.1.10.8)."""
NOT_VALID = "not valid"
TOO_LOW = f"scored below {MIN_SCORE:g}"
SHORTEST = 20
"""Characters below which a lesson says too little, by rules (MemEvolve's lightweight memory)."""
LONGEST = 1000
"""Characters above which it is no lesson any more but a report, by rules; a choice of ours."""


@dataclass(frozen=True, slots=True)
class Validation:
    """What is thought of one lesson."""

    text: str
    kept: bool
    score: float
    """From 0 to 1."""
    reason: str
    """Why it was kept or dropped, as far as anybody said."""
    by: By
    why: str
    """`ok`, or what was wrong with a model's reply, or why rules decided."""

    def to_json(self) -> dict[str, Any]:
        """Return what a graph's state holds of it."""
        return {
            "text": self.text,
            "kept": self.kept,
            "score": self.score,
            "reason": self.reason,
            "by": self.by,
            "why": self.why,
        }

    def dropped(self) -> DroppedLesson:
        """Return what a graph's state holds of a lesson that is not kept."""
        reason = self.reason
        if self.by == "model":
            fault = TOO_LOW if self.score < MIN_SCORE else NOT_VALID
            reason = f"{fault}: {reason}"
        return DroppedLesson(text=self.text, node="validate", reason=reason, score=self.score)


@checked
def validate_node(
    model: ChatModel | None, *, prompt: Prompt | None = None
) -> Runnable[AgentState, Update]:
    """Make the node that drops lessons which do not hold.

    Its update holds the `lessons` that are kept, in `validation` an entry for each that was drawn,
    and what was dropped is added to `dropped`. Lessons that no reply can be used for are judged by
    rules, and say so.

    Args:
        model: Any chat model, or the name of one; `None` leaves it to the rules.
        prompt: Prompt with `$task`, `$outcome`, `$lessons` and `$trajectory`.
    """

    def begin(state: AgentState) -> Dialogue[Update]:
        lessons = state["lessons"]
        judged = yield from validating(
            lessons,
            state["instruction"],
            episode_steps(state["steps"]),
            Outcome(state["success"], state["score"], state["reason"]),
            prompt=prompt,
        )
        kept = [each for each, found in zip(lessons, judged, strict=True) if found.kept]
        dropped = [found.dropped() for found in judged if not found.kept]
        return {
            "lessons": kept,
            "validation": [each.to_json() for each in judged],
            "dropped": [*state.get("dropped", ()), *dropped],
        }

    return dialogue_node("validate", model, begin)


def validating(
    lessons: Sequence[Mapping[str, Any]],
    task: str,
    steps: Sequence[Step],
    outcome: Outcome,
    *,
    prompt: Prompt | None = None,
) -> Dialogue[list[Validation]]:
    """Ask what lessons are worth; returns one validation for each, in their order.

    Args:
        lessons: As a graph's state holds them: `text` and `when_to_use`.
        task: The task of the attempt.
        steps: What was done.
        outcome: How it ended.
        prompt: In place of the one that ships.
    """
    if not lessons:
        return []
    by_rules = validate_by_rules([str(lesson["text"]) for lesson in lessons], task)
    text = (prompt or shipped("validate")).render(
        task=task,
        outcome=describe_outcome(outcome),
        lessons=by_line(_numbered(lessons)),
        trajectory=render_trajectory(steps, result=""),
    )
    answer = yield from asking([HumanMessage(text)], _reader(len(lessons)), what="validate")
    scores = {score.lesson: score for score in answer.value or ()}
    return [
        _validation(rules, scores.get(number), answer.why)
        for number, rules in enumerate(by_rules, start=1)
    ]


def validate_by_rules(lessons: Sequence[str], task: str) -> list[Validation]:
    """Judge lessons by length, repetition, and whether they only say the task again."""
    seen: set[str] = set()
    judged = []
    for text in lessons:
        reason = _fault(text, task, seen)
        seen.add(same_words(text))
        score = 0.0 if reason else 1.0
        judged.append(Validation(text, not reason, score, reason, "rules", "ok"))
    return judged


def _fault(text: str, task: str, seen: set[str]) -> str:
    words = same_words(text)
    if len(words) < SHORTEST:
        return f"shorter than {SHORTEST} characters"
    if len(words) > LONGEST:
        return f"longer than {LONGEST} characters"
    if words in seen:
        return "says what another lesson says"
    return "repeats the task" if words in same_words(task) else ""


class _Score(BaseModel):
    lesson: int
    valid: bool
    score: float = Field(ge=0, le=1)
    reason: str = ""


def _reader(count: int) -> Reader[list[_Score]]:
    def objection(score: _Score, kept: Sequence[_Score]) -> str:
        if not 1 <= score.lesson <= count:
            return f"there is no lesson {score.lesson}"
        if any(score.lesson == other.lesson for other in kept):
            return f"there is another entry for lesson {score.lesson}"
        return ""

    read_scores = listed(_Score, objection)

    def read(value: Any) -> Read[list[_Score]]:
        found = read_scores(value)
        given = {score.lesson for score in found.value}
        missing = [str(number) for number in range(1, count + 1) if number not in given]
        lacking = (f"there is no entry for lesson {', '.join(missing)}",) if missing else ()
        return Read(found.value, (*found.problems, *lacking))

    return read


def _validation(rules: Validation, score: _Score | None, why: str) -> Validation:
    if score is None:
        return Validation(rules.text, rules.kept, rules.score, rules.reason, "rules", why)
    kept = score.valid and score.score >= MIN_SCORE
    reason = score.reason or ("not valid" if not score.valid else f"score {score.score:g}")
    return Validation(rules.text, kept, score.score, reason, "model", why)


def _numbered(lessons: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    return [
        {"lesson": number, "when_to_use": lesson.get("when_to_use", ""), "text": lesson["text"]}
        for number, lesson in enumerate(lessons, start=1)
    ]


ALIKE: Final = 0.35
"""From which cosine of their advice on two lessons may say the same. Measured on two libraries that
ReMe ships, of which no two entries are equal: streamed in threes, it takes 4 of 193 out of
`appworld` and 5 of 474 out of `bfcl_v3`, and all 9, read one by one, do say what another entry says.
At 0.3 it would be 13, of which 12 do; below, different advice of much the same words comes in. ReMe
itself has 0.5, on embeddings."""
UNLIKE: Final = 0.2
"""Below which cosine of their situations they are for different ones."""
CANDIDATES: Final = 50
"""How many lessons of a bank are looked at for each new one, nearest first."""

SAID_TWICE: Final = "says what another lesson of this episode says"
KNOWN: Final = "says what memory already says"


@runtime_checkable
class KeepsLessons(Protocol):
    """Memory that keeps lessons one can compare new ones with, such as `InsightMemory`."""

    def lessons_like(self, episode: Episode, k: int) -> list[Lesson]:
        """Return lessons kept that are near those of an episode, `k` for each."""

    async def alessons_like(self, episode: Episode, k: int) -> list[Lesson]:
        """Do as `lessons_like` does, asynchronously."""


@checked
def deduplicate_node(
    memory: MemoryProvider[Any] | KeepsLessons | None = None, *, above: float = ALIKE
) -> Runnable[AgentState, Update]:
    """Make the node that drops lessons which say what memory, or a lesson before them, says.

    Its update holds the `lessons` that are kept, and what was dropped is added to `dropped`.

    Args:
        memory: Where the lessons are to be kept. A provider that keeps no lessons to compare with
            (`KeepsLessons`), or `None`: only the lessons of the episode are compared.
        above: From which cosine of their advice on two lessons may say the same, above 0, at most 1.

    Raises:
        SettingsError: `above` is not in that range.
    """
    if not 0 < above <= 1:
        msg = f"`above` is a cosine above 0 and at most 1, got {above!r:.80}"
        raise SettingsError(msg)
    bank = memory if isinstance(memory, KeepsLessons) else None

    def deduplicate(state: AgentState) -> Program[Call, Update]:
        known: Sequence[Lesson] = ()
        if bank is not None and state["lessons"]:
            episode = episode_of(state)
            known = yield Call(bank.lessons_like, bank.alessons_like, episode, CANDIDATES)
        return _update(state, known, above)

    return Node.running("deduplicate", deduplicate)


@dataclass(frozen=True, slots=True)
class Repetition:
    """A lesson that says nothing new."""

    position: int
    """Which one."""
    known: bool
    """Whether memory says it, or else another lesson of the episode."""
    score: float
    """How like its advice is to what it repeats; 1: the same words."""


def repetitions(
    lessons: Sequence[Lesson], known: Sequence[Lesson] = (), *, above: float = ALIKE
) -> list[Repetition]:
    """List the lessons that say what is known, or what one before them says, in their order.

    What is left says nothing twice: it is looked at again until nothing more is dropped, as what
    goes takes its words out of the corpus.

    Args:
        lessons: In the order in which they were drawn; of two alike the first one stays.
        known: What memory says.
        above: From which cosine of their advice on two may say the same.
    """
    left = list(range(len(lessons)))
    found: list[Repetition] = []
    while again := _pass([lessons[i] for i in left], known, above):
        found += [replace(each, position=left[each.position]) for each in again]
        gone = {left[each.position] for each in again}
        left = [i for i in left if i not in gone]
    return sorted(found, key=lambda repetition: repetition.position)


def _pass(lessons: Sequence[Lesson], known: Sequence[Lesson], above: float) -> list[Repetition]:
    every = [*known, *lessons]
    situations = _likeness([lesson.when_to_use for lesson in every])
    advice = _likeness([lesson.text for lesson in every], in_pairs=True)
    kept = list(range(len(known)))
    repeated: list[Repetition] = []
    for position in range(len(known), len(every)):
        likeness = np.where(situations(position) >= UNLIKE, advice(position), 0.0)[kept]
        for i in np.flatnonzero(likeness >= above):
            if _differ(every[position].text, every[kept[i]].text):
                likeness[i] = 0.0
        nearest = int(np.argmax(likeness)) if kept else 0
        if kept and likeness[nearest] >= above:
            is_known = kept[nearest] < len(known)
            number = position - len(known)
            repeated.append(Repetition(number, is_known, float(likeness[nearest])))
        else:
            kept.append(position)
    return repeated


def _differ(text: str, other: str) -> bool:
    if same_words(text) == same_words(other):
        return False
    return Stance.of(text).differs_from(Stance.of(other))


def _likeness(texts: Sequence[str], *, in_pairs: bool = False) -> Similarity:
    """Return how alike texts are; the same words are, also where TF-IDF knows no direction.

    Args:
        texts: The corpus.
        in_pairs: Whether pairs of words count as well, and not words alone.
    """
    counted = [tokenize(text) for text in texts]
    if in_pairs:
        counted = [[*each, *word_pairs(each)] for each in counted]
    vectors = TfIdf.of_words(counted)
    words = [same_words(text) for text in texts]

    def similarities(position: int) -> Floats:
        cosines = vectors.similarities(position)
        cosines[[each == words[position] for each in words]] = 1.0
        return cosines

    return similarities


def _update(state: AgentState, known: Sequence[Lesson], above: float) -> Update:
    lessons = state["lessons"]
    drawn = [Lesson(str(each["text"]), str(each.get("when_to_use", ""))) for each in lessons]
    repeated = {each.position: each for each in repetitions(drawn, known, above=above)}
    dropped = [
        DroppedLesson(
            text=drawn[position].text,
            node="deduplicate",
            reason=KNOWN if each.known else SAID_TWICE,
            score=each.score,
        )
        for position, each in repeated.items()
    ]
    kept = [lesson for i, lesson in enumerate(lessons) if i not in repeated]
    return {"lessons": kept, "dropped": [*state.get("dropped", ()), *dropped]}


SAME_WORDS: Final = 0.95
"""From which share of their words in common on two texts are of the same words."""
SAME_ORDER: Final = 0.85
"""Below which share of their word pairs in common such two are in another order."""

# What these negate is what follows them; `not` and its like negate their clause.
_AGAINST: Final = r"instead of|rather than|without|avoid\w*|no|nor|neither"
_NEGATES: Final = re.compile(
    rf"\b(?:not|never|cannot|\w+n't|{_AGAINST})\b"
    "|[不没沒别別勿未无無非]|ない|なく|ません|않|못|없|지 ?마|ไม่|อย่า|ห้าม"  # scripts without spaces
)
_CLAUSE_ENDS: Final = re.compile(
    rf"[.,;:!?()\n\u3001\u3002\uff0c\uff1b\uff1a\uff01\uff1f]|\bbut\b|(?=\b(?:{_AGAINST})\b)"
)

_STRAIGHT: Final = str.maketrans("‘’“”", "''\"\"")  # noqa: RUF001
_QUOTED: Final = re.compile(r"(?<!\w)(['\"`])([^'\"`\n]+)\1(?!\w)")
_CODE: Final = re.compile(r"_|[a-z][A-Z]")


@dataclass(frozen=True, slots=True)
class Stance:
    """What a text says beyond its choice of words."""

    asserted: frozenset[str]
    """Words that stand in no negated clause."""
    negated: frozenset[str]
    """Words that stand in no other."""
    named: frozenset[str]
    """What is in quotes, or written as code is: commands, tools, fields."""
    words: frozenset[str]
    pairs: frozenset[str]

    @classmethod
    def of(cls, text: str) -> Self:
        """Read a text."""
        text = text.translate(_STRAIGHT)
        plain: set[str] = set()
        denied: set[str] = set()
        for clause in _CLAUSE_ENDS.split(text.lower()):
            (denied if _NEGATES.search(clause) else plain).update(tokenize(clause))
        words = tokenize(text)
        return cls(
            asserted=frozenset(plain - denied),
            negated=frozenset(denied - plain),
            named=_named(text),
            words=frozenset(words),
            pairs=frozenset(word_pairs(words)),
        )

    def differs_from(self, other: Self) -> bool:
        """Say whether two say different things, however alike their words are.

        They do where they name different things, where one negates what the other asserts, and
        where they put the same words in another order.
        """
        if self.named != other.named:
            return True
        if self.asserted & other.negated or self.negated & other.asserted:
            return True
        same_words = _shared(self.words, other.words) >= SAME_WORDS
        return same_words and _shared(self.pairs, other.pairs) < SAME_ORDER


def word_pairs(words: Sequence[str]) -> list[str]:
    """Return each word with the one that follows it."""
    return [" ".join(pair) for pair in pairwise(words)]


def _named(text: str) -> frozenset[str]:
    quoted = (" ".join(tokenize(found[2])) for found in _QUOTED.finditer(text))
    code = (word.lower() for word in re.findall(f"{SPACED}+", text) if _CODE.search(word))
    return frozenset((*quoted, *code)) - {""}


def _shared(some: frozenset[str], others: frozenset[str]) -> float:
    """Return the share of all that are in both; 1 where there are none."""
    every = some | others
    return len(some & others) / len(every) if every else 1.0
