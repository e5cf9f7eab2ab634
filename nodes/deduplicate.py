"""`deduplicate`: drop the lessons that say what is known already (ReMe, arXiv:2512.10696 §3).

Two lessons say the same if their advice is alike, by the cosine of TF-IDF vectors of its words and
pairs of words, if nothing tells that it is other advice (`langgraft.nodes.opposites`), and if their
situations are not unlike: a lesson is found by its situation, so that one answer may have to be
there for several. Advice that corrects other advice has nearly the same words, and has to stay; so
in doubt a lesson is kept. The corpus is the lessons at hand and those of memory that are nearest to
them: no embedder is needed, the cost is the same in a bank of any size, and the same bank always
gives the same. Words are compared, not what they mean: in languages written without blanks little
more than the same phrases are alike.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Protocol, runtime_checkable

import numpy as np
from langchain_core.runnables import Runnable

from langgraft._core.arguments import checked
from langgraft._core.errors import SettingsError
from langgraft.memory.episodes import Episode, Lesson
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.rankers.diversity import Similarity
from langgraft.memory.rankers.selection import Floats
from langgraft.memory.rankers.tfidf import TfIdf
from langgraft.memory.rankers.tokens import tokenize
from langgraft.nodes.judging.shown import same_words
from langgraft.nodes.opposites import Stance, word_pairs
from langgraft.nodes.remember import episode_of
from langgraft.nodes.state import AgentState, DroppedLesson, Node, Update

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
