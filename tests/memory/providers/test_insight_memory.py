"""`InsightMemory`: bundles and single lessons, and asking again."""

from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode

from langgraft.memory.episodes import Lesson, Outcome, Step
from langgraft.memory.providers import InsightMemory, InsightSettings


def memory_with(**fields: object) -> InsightMemory:
    """Make a provider with settings."""
    return InsightMemory(InMemoryStore(), settings=InsightSettings.model_validate(fields))


def test_lessons_when_bundled_are_one_item_found_by_its_task() -> None:
    """One item an episode, all lessons in it."""
    memory = memory_with()
    memory.take_in(make_episode("e1"))
    (item,) = memory.content().items.values()
    assert item.id == "e1/lessons"
    assert item.text == "- When you must open the red door: toggle it\n- look around"
    assert item.key == "open the red door"


def test_lessons_when_single_are_items_found_by_their_situation() -> None:
    """One item a lesson, numbered on; without a situation its text is the key."""
    memory = memory_with(granularity="individual", top_k=3)
    memory.take_in(make_episode("e1"))
    memory.take_in(make_episode("e2"))
    items = sorted(memory.content().items.values(), key=lambda item: item.order_index)
    assert [(item.id, item.key, item.order_index) for item in items] == [
        ("e1/lesson-0", "you must open the red door", 0),
        ("e1/lesson-1", "look around", 1),
        ("e2/lesson-0", "you must open the red door", 2),
        ("e2/lesson-1", "look around", 3),
    ]


def test_lessons_when_there_are_none_leave_no_item_and_the_episode_counts() -> None:
    """An episode without lessons is filed all the same."""
    memory = memory_with()
    memory.take_in(make_episode("e1", lessons=()))
    assert not memory.content().items
    assert memory.content().state["episodes"] == 1


def test_success_only_when_set_keeps_lessons_of_known_successes() -> None:
    """Failures teach nothing then."""
    memory = memory_with(success_only=True)
    for identity, success in (("yes", True), ("no", False), ("who knows", None)):
        memory.take_in(make_episode(identity, outcome=Outcome(success)))
    assert list(memory.content().items) == ["yes/lessons"]


def test_bundle_when_its_type_is_asked_has_that_of_its_first_lesson() -> None:
    """Types come from the lessons."""
    memory = memory_with()
    memory.take_in(make_episode("e1", lessons=(Lesson("a", type="error_trace"), Lesson("b"))))
    assert memory.content().items["e1/lessons"].type == "error_trace"


def test_key_and_query_fields_when_set_follow_either_reading_of_the_paper() -> None:
    """What was seen counts where both key and query include it."""
    room = (Step("", "", "you see a blue ball and a grey box"),)
    hall = (Step("", "", "you see a green key"),)
    found = {}
    for name, fields in (("instruction", ["task"]), ("first sight", ["task", "observation"])):
        memory = memory_with(key_fields=fields, query_fields=fields)
        memory.take_in(make_episode("room", task="open a door", steps=room))
        memory.take_in(make_episode("hall", task="open a door", steps=hall))
        recall = memory.provide("open a door", asking(observation="you see a grey box"))
        found[name] = [item.episode_id for item in recall.items]
    assert found == {"instruction": ["hall"], "first sight": ["room"]}


def test_query_when_asked_again_follows_what_the_agent_sees() -> None:
    """Later on, the observation is compared too, and asking stays as pure as at the start."""
    memory = memory_with(granularity="individual", requery_interval=4)
    lessons = (Lesson("toggle", "a door is locked"), Lesson("drop it", "hands are full"))
    memory.take_in(make_episode("e1", lessons=lessons))
    assert memory.requery_every == 4
    before = memory.content().digest
    start = memory.provide("fetch the box", asking(observation="the door is locked"))
    later = memory.provide("fetch the box", asking(step=4, observation="the door is locked"))
    again = memory.provide("fetch the box", asking(step=4, observation="the door is locked"))
    assert start.items == ()
    assert [item.id for item in later.items] == ["e1/lesson-0"]
    assert later == again
    assert memory.content().digest == before


def test_requery_when_not_set_is_never() -> None:
    """Bundles are asked for at the start only."""
    assert memory_with().requery_every is None
