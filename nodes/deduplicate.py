"""`deduplicate`: drop the lessons that say what is known already (ReMe, arXiv:2512.10696 §3).

Two lessons say the same if the TF-IDF vectors of their texts, situation and advice together, are
alike enough; or if they are the same words. The corpus of the vectors is the lessons at hand and
what memory keeps that is nearest to them, so it takes no embedder, costs the same in a bank of any
size, and comes out the same every time.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from langchain_core.runnables import Runnable

from langgraft._core.errors import SettingsError
from langgraft.memory.episodes import Episode, Lesson
from langgraft.memory.providers.insight import advice_of, render_lesson
from langgraft.memory.rankers.tfidf import TfIdf
from langgraft.nodes.judging.shown import same_words
from langgraft.nodes.remember import episode_of
from langgraft.nodes.state import AgentState, DroppedLesson, Node, Update

ALIKE: Final = 0.45
"""From which cosine on two lessons say the same."""
CANDIDATES: Final = 50
"""How many items of a bank are looked at for each lesson, nearest first."""

SAID_TWICE: Final = "says what another lesson of this episode says"
KNOWN: Final = "says what memory already says"


@runtime_checkable
class KeepsLessons(Protocol):
    """Memory that keeps lessons one can compare new ones with, such as `InsightMemory`."""

    def lessons_like(self, episode: Episode, k: int) -> list[str]:
        """Return kept lessons near those of an episode, from `k` items a lesson."""

    async def alessons_like(self, episode: Episode, k: int) -> list[str]:
        """Do as `lessons_like` does, asynchronously."""


def deduplicate_node(
    memory: object = None, *, above: float = ALIKE
) -> Runnable[AgentState, Update]:
    """Make the node that drops lessons which say what memory, or a lesson before them, says.

    Its update holds the `lessons` that are kept, and what was dropped is added to `dropped`.

    Args:
        memory: Where the lessons are to be kept. A provider that keeps no lessons to compare with
            (`KeepsLessons`), or `None`: only the lessons of the episode are compared.
        above: From which likeness on two lessons say the same, above 0 and at most 1.

    Raises:
        SettingsError: `above` is not in that range.
    """
    if not 0 < above <= 1:
        msg = f"`above` is a cosine above 0 and at most 1, got {above!r:.80}"
        raise SettingsError(msg)
    bank = memory if isinstance(memory, KeepsLessons) else None

    def deduplicate(state: AgentState) -> Update:
        if bank is None or not state["lessons"]:
            return _update(state, (), above)
        return _update(state, bank.lessons_like(episode_of(state), CANDIDATES), above)

    async def adeduplicate(state: AgentState) -> Update:
        if bank is None or not state["lessons"]:
            return _update(state, (), above)
        return _update(state, await bank.alessons_like(episode_of(state), CANDIDATES), above)

    return Node("deduplicate", deduplicate, adeduplicate)


@dataclass(frozen=True, slots=True)
class Repetition:
    """A lesson that says nothing new."""

    position: int
    """Which one."""
    known: bool
    """Whether memory says it, or else another lesson of the episode."""
    score: float
    """How like it is to what it repeats; 1: the same words."""


def repetitions(
    lessons: Sequence[str], known: Sequence[str] = (), *, above: float = ALIKE
) -> list[Repetition]:
    """List the lessons that say what is known, or what one before them says, in their order.

    What is left says nothing twice: it is looked at again until nothing more is dropped, as what
    goes takes its words out of the corpus.

    Args:
        lessons: In the order in which they were drawn; of two alike the first one stays.
        known: What memory says.
        above: From which cosine on two say the same.
    """
    left = list(range(len(lessons)))
    found: list[Repetition] = []
    while again := _pass([lessons[i] for i in left], known, above):
        found += [Repetition(left[r.position], r.known, r.score) for r in again]
        gone = {left[r.position] for r in again}
        left = [i for i in left if i not in gone]
    return sorted(found, key=lambda repetition: repetition.position)


def _pass(lessons: Sequence[str], known: Sequence[str], above: float) -> list[Repetition]:
    texts = [*known, *lessons]
    words = [same_words(text) for text in texts]
    whole, advice = TfIdf.of(texts), TfIdf.of([advice_of(text) for text in texts])
    kept = list(range(len(known)))
    repeated: list[Repetition] = []
    for position in range(len(known), len(texts)):
        likeness = np.minimum(whole.similarities(position), advice.similarities(position))
        # Texts without words have no direction, and are alike all the same.
        likeness[[words[i] == words[position] for i in range(len(texts))]] = 1.0
        before = likeness[kept]
        nearest = int(np.argmax(before)) if kept else 0
        if kept and before[nearest] >= above:
            number = position - len(known)
            repeated.append(Repetition(number, kept[nearest] < len(known), float(before[nearest])))
        else:
            kept.append(position)
    return repeated


def _update(state: AgentState, known: Sequence[str], above: float) -> Update:
    lessons = state["lessons"]
    texts = [_text(lesson) for lesson in lessons]
    repeated = {each.position: each for each in repetitions(texts, known, above=above)}
    dropped = [
        DroppedLesson(
            text=str(lessons[position]["text"]),
            node="deduplicate",
            reason=KNOWN if each.known else SAID_TWICE,
            score=each.score,
        )
        for position, each in repeated.items()
    ]
    kept = [lesson for i, lesson in enumerate(lessons) if i not in repeated]
    return {"lessons": kept, "dropped": [*state.get("dropped", ()), *dropped]}


def _text(lesson: Mapping[str, Any]) -> str:
    return render_lesson(Lesson(str(lesson["text"]), str(lesson.get("when_to_use", ""))))
