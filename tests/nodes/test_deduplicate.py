"""Dropping the lessons that say what is known already."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import make_episode

from langgraft._core.errors import SettingsError
from langgraft.memory.model import Lesson
from langgraft.memory.providers import InsightMemory, InsightSettings, SimpleRAG
from langgraft.nodes import deduplicate_node
from langgraft.nodes.screening import ALIKE, CANDIDATES, KNOWN, SAID_TWICE, repetitions
from langgraft.nodes.state import AgentState

DOORS = "you have to open a door"
TOGGLE = "Walk up to the door and use the plain action 'toggle'; going through does not count."
REWORDED = "Walk up to the door and use plain 'toggle', as going through it does not count."
OTHER = "Turn around first if nothing of that color is in sight."

TURNED = [
    ("Use 'toggle and go through' at once.", "Use 'toggle' instead of 'toggle and go through'."),
    ("Use 'go to' and then 'toggle'.", "Use 'toggle' and then 'go to'."),
    ("Go to the door and stop there.", "Do not go to the door and stop there."),
    ("Turn left rather than opening the door.", "Open the door rather than turning left."),
    (
        "Turning around helps to find the key.",
        "Turning around doesn\N{RIGHT SINGLE QUOTATION MARK}t help to find the key.",
    ),
    ("Open the box with 'toggle'.", "Open the box with 'pickup'."),
    (
        "Lock the doors and press `pressBrakePedal`.",
        "Lock the doors and press `releaseBrakePedal`.",
    ),
    ("Call fetch_page before you log in.", "Call fetch_book before you log in."),
    ("離開房間之前要把紅色的門關上並且鎖好", "離開房間之前不要把紅色的門關上並且鎖好"),
    ("部屋を出る前に赤いドアを開けて鍵をかける", "部屋を出る前に赤いドアを開けないで鍵をかける"),
]
"""Advice, and other advice in much the same words."""

VERBS = st.lists(
    st.sampled_from(["look", "turn", "open", "lift", "push", "wait", "call"]),
    min_size=2,
    max_size=7,
    unique=True,
)

WORDS = st.text(st.sampled_from("ab :-\n€"), max_size=12)
LESSONS = st.lists(st.builds(Lesson, WORDS, WORDS), max_size=6)


def state(*lessons: tuple[str, str], **fields: Any) -> AgentState:
    """Make the part of a state that deduplicating reads; lessons as (situation, advice)."""
    step = {"thought": "", "action": "", "observation": "At 0.", "valid": True}
    drawn = [{"text": text, "when_to_use": when, "by": "model"} for when, text in lessons]
    plain = {"episode_id": "e9", "domain": "toy", "task_id": "t9", "instruction": "open a door"}
    ended = {"steps": [step], "success": True, "score": 1.0, "reason": "", "dropped": []}
    return cast("AgentState", {**plain, **ended, "lessons": drawn, **fields})


def bank(granularity: str, *lessons: Lesson, **fields: Any) -> InsightMemory:
    """Make a memory that has these lessons from one episode."""
    settings = InsightSettings.model_validate({"granularity": granularity, **fields})
    memory = InsightMemory(InMemoryStore(), settings=settings)
    memory.file(make_episode("e1", task="open a door", lessons=lessons))
    return memory


def test_lessons_when_one_says_what_another_says_then_the_first_stays() -> None:
    """What was dropped is noted beside what other nodes dropped, with how alike the two are."""
    before = {"text": "x", "node": "validate", "reason": "y", "score": 0.1}
    given_ = state((DOORS, TOGGLE), (DOORS, OTHER), (DOORS, REWORDED), dropped=[before])
    update = deduplicate_node().invoke(given_)
    assert [lesson["text"] for lesson in update["lessons"]] == [TOGGLE, OTHER]
    first, dropped = update["dropped"]
    assert first == before
    assert {k: v for k, v in dropped.items() if k != "score"} == {
        "text": REWORDED,
        "node": "deduplicate",
        "reason": SAID_TWICE,
    }
    assert ALIKE <= dropped["score"] < 1


async def test_lessons_when_memory_says_them_are_dropped_sync_and_async() -> None:
    """The same answer to the same situation is there already; asking changes nothing."""
    memory = bank("individual", Lesson("Count your steps.", "lost"), Lesson(TOGGLE, DOORS))
    before = memory.content().digest
    node = deduplicate_node(memory)
    update = node.invoke(state((DOORS, REWORDED), (DOORS, OTHER)))
    assert update == await node.ainvoke(state((DOORS, REWORDED), (DOORS, OTHER)))
    assert [lesson["text"] for lesson in update["lessons"]] == [OTHER]
    assert [each["reason"] for each in update["dropped"]] == [KNOWN]
    assert memory.content().digest == before


@pytest.mark.parametrize("granularity", ["aggregate", "adaptive"])
def test_lessons_when_memory_keeps_bundles_are_compared_with_each_other_alone(
    granularity: str,
) -> None:
    """What one episode taught is found together, and stays together."""
    node = deduplicate_node(bank(granularity, Lesson(TOGGLE, DOORS)))
    update = node.invoke(state((DOORS, TOGGLE), (DOORS, OTHER), (DOORS, REWORDED)))
    assert [lesson["text"] for lesson in update["lessons"]] == [TOGGLE, OTHER]


@pytest.mark.parametrize("memory", [None, SimpleRAG(InMemoryStore())])
def test_lessons_when_memory_keeps_none_to_compare_with_are_compared_with_each_other(
    memory: Any,
) -> None:
    """Any provider, or none, will do."""
    update = deduplicate_node(memory).invoke(state((DOORS, TOGGLE), (DOORS, TOGGLE)))
    assert len(update["lessons"]) == 1
    assert update["dropped"][0]["score"] == 1.0
    assert deduplicate_node(memory).invoke(state()) == {"lessons": [], "dropped": []}


def test_lessons_when_only_situation_or_only_advice_is_shared_stay() -> None:
    """Both have to be alike: one situation knows several answers, and one answer several."""
    keys = "the goal is to pick up a key that cannot be seen yet"
    update = deduplicate_node().invoke(state((DOORS, TOGGLE), (DOORS, OTHER), (keys, OTHER)))
    assert update["dropped"] == []


@pytest.mark.parametrize(("advice", "turned"), TURNED)
def test_lessons_when_one_corrects_another_in_its_words_both_stay(advice: str, turned: str) -> None:
    """Whichever came first: what corrects advice is not told from it by its words alone."""
    for first, second in ((advice, turned), (turned, advice)):
        assert repetitions([Lesson(second, DOORS)], [Lesson(first, DOORS)]) == []


@given(VERBS, st.sampled_from(["do not", "never", "don't", "avoid to"]), st.booleans())
def test_advice_when_it_is_negated_or_reversed_is_no_repetition_and_a_copy_is(
    verbs: list[str], negation: str, known: bool
) -> None:
    """Holds for plain advice of any verbs, in memory or in the same episode."""
    advice = Lesson(" and then ".join(verbs), DOORS)
    turned = Lesson(" and then ".join(reversed(verbs)), DOORS)
    negated = Lesson(f"{negation} {advice.text}", DOORS)
    copy = Lesson(f"{advice.text.capitalize()}.", DOORS)
    drawn = [turned, negated, copy]
    found = repetitions(drawn, [advice]) if known else repetitions([advice, *drawn])
    assert [(each.position, each.score) for each in found] == [(2 if known else 3, 1.0)]


def test_candidates_when_the_bank_is_large_are_no_more_than_asked_for() -> None:
    """What is compared does not grow with the bank."""
    many = tuple(Lesson(f"advice {number}", DOORS) for number in range(2 * CANDIDATES))
    memory = bank("individual", *many)
    near = memory.lessons_like(make_episode("e2", lessons=(Lesson(TOGGLE, DOORS),)), CANDIDATES)
    assert len(near) == CANDIDATES


@pytest.mark.parametrize("above", [0, -1, 1.01, float("nan")])
def test_threshold_when_it_is_no_cosine_is_refused(above: float) -> None:
    """Nothing is built with it."""
    with pytest.raises(SettingsError, match="above 0 and at most 1"):
        deduplicate_node(above=above)


@given(LESSONS, LESSONS)
def test_repetitions_when_taken_out_leave_none_and_never_the_first_of_a_kind(
    lessons: list[Lesson], known: list[Lesson]
) -> None:
    """Order is kept, exact copies always go, and a second look finds nothing more."""
    gone = {each.position for each in repetitions(lessons, known)}
    left = [lesson for i, lesson in enumerate(lessons) if i not in gone]
    assert repetitions(left, known) == []
    assert len(set(left)) == len(left)
    assert not set(left) & set(known)
    if lessons and not known:
        assert 0 not in gone
    for each in repetitions(lessons, known):
        assert ALIKE <= each.score <= 1
        assert known if each.known else each.position > 0
