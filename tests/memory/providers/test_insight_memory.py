"""`InsightMemory`: bundles and single lessons, and asking again."""

from collections.abc import Mapping

from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode
from table_embeddings import TableEmbeddings

from langgraft.memory.embedders import make_embedder
from langgraft.memory.model import Lesson, Outcome, Step
from langgraft.memory.providers import InsightMemory, InsightSettings
from langgraft.memory.rankers import Dense


def memory_with(**fields: object) -> InsightMemory:
    """Make a provider with settings."""
    return InsightMemory(InMemoryStore(), settings=InsightSettings.model_validate(fields))


def test_lessons_when_bundled_are_one_item_found_by_its_task() -> None:
    """One item an episode, all lessons in it."""
    memory = memory_with()
    memory.file(make_episode("e1"))
    (item,) = memory.content().items.values()
    assert item.id == "e1/lessons"
    assert item.text == "- When you must open the red door: toggle it\n- look around"
    assert item.key == "open the red door"


def test_lessons_when_single_are_items_found_by_their_situation() -> None:
    """One item a lesson, numbered on; without a situation its text is the key."""
    memory = memory_with(granularity="individual", top_k=3)
    memory.file(make_episode("e1"))
    memory.file(make_episode("e2"))
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
    memory.file(make_episode("e1", lessons=()))
    assert not memory.content().items
    assert memory.content().state["episodes"] == 1


def test_success_only_when_set_keeps_lessons_of_known_successes() -> None:
    """Failures teach nothing then."""
    memory = memory_with(success_only=True)
    for identity, success in (("yes", True), ("no", False), ("who knows", None)):
        memory.file(make_episode(identity, outcome=Outcome(success)))
    assert list(memory.content().items) == ["yes/lessons"]


def test_bundle_when_its_type_is_asked_has_that_of_its_first_lesson() -> None:
    """Types come from the lessons."""
    memory = memory_with()
    memory.file(make_episode("e1", lessons=(Lesson("a", type="error_trace"), Lesson("b"))))
    assert memory.content().items["e1/lessons"].type == "error_trace"


def test_key_and_query_fields_when_set_follow_either_reading_of_the_paper() -> None:
    """What was seen counts where both key and query include it."""
    room = (Step("", "", "you see a blue ball and a grey box"),)
    hall = (Step("", "", "you see a green key"),)
    found = {}
    for name, fields in (("instruction", ["task"]), ("first sight", ["task", "observation"])):
        memory = memory_with(key_fields=fields, query_fields=fields)
        memory.file(make_episode("room", task="open a door", steps=room))
        memory.file(make_episode("hall", task="open a door", steps=hall))
        recall = memory.provide("open a door", asking(observation="you see a grey box"))
        found[name] = [item.episode_id for item in recall.items]
    assert found == {"instruction": ["hall"], "first sight": ["room"]}


def test_query_when_asked_again_follows_what_the_agent_sees() -> None:
    """Later on, the observation is compared too, and asking stays as pure as at the start."""
    memory = memory_with(granularity="individual", requery_interval=4)
    lessons = (Lesson("toggle", "a door is locked"), Lesson("drop it", "hands are full"))
    memory.file(make_episode("e1", lessons=lessons))
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
    seen = asking(step=99, observation="the red door")
    assert not memory_with().asks_again("open the red door", seen, asking())


def test_requery_when_an_interval_is_set_counts_from_the_last_recall() -> None:
    """Cond-Step asks at 0, 4, 8 and so on."""
    memory = memory_with(requery_interval=4)
    asked = [0]
    for step in range(1, 13):
        if memory.asks_again("walk", asking(step=step), asking(step=asked[-1])):
            asked += [step]
    assert asked == [0, 4, 8, 12]


def test_requery_when_set_on_change_or_after_an_interval_takes_what_comes_first() -> None:
    """The phase of the episode, or time."""
    memory = memory_with(requery_interval=4, requery_on_change=True)
    start, found = asking(observation="a wall"), asking(step=1, observation="a red door")
    assert memory.asks_again("open the red door", found, start)
    assert not memory.asks_again("open the red door", asking(step=2, observation="red door"), found)
    assert memory.asks_again("open the red door", asking(step=5, observation="a wall"), found)


def adaptive_with(lessons: Mapping[str, tuple[Lesson, ...]], **fields: object) -> InsightMemory:
    """Make an adaptive memory of episodes with lessons, by task."""
    memory = memory_with(granularity="adaptive", top_k=2, **fields)
    for number, (task, drawn) in enumerate(lessons.items()):
        memory.file(make_episode(f"e{number}", task=task, lessons=drawn))
    return memory


ALIKE = {
    f"find the {thing}": (
        Lesson(f"the {thing} is behind a door", "something has to be found"),
        Lesson("look around", "something cannot be seen"),
    )
    for thing in ("key", "box", "ball")
}
VARIED = {
    "open a door": (Lesson("toggle", "a door is locked"), Lesson("wait", "a guard stands there")),
    "cook a meal": (Lesson("boil it", "an egg is raw"), Lesson("taste", "soup is ready")),
}


def recalled(memory: InsightMemory, query: str) -> list[str]:
    """Return the ids of what is recalled."""
    return [item.id for item in memory.provide(query, asking()).items]


def test_adaptive_when_the_query_tells_lessons_apart_recalls_them_singly() -> None:
    """Finer is better where there is something to choose."""
    memory = adaptive_with(VARIED)
    assert recalled(memory, "the door is locked") == ["e0/lesson-0", "e1/lesson-1"]
    assert recalled(memory, "is the soup ready")[0] == "e1/lesson-1"


def test_adaptive_when_too_many_answer_equally_well_recalls_the_bundle() -> None:
    """Chance does not fill the slots: the best bundle comes whole."""
    memory = adaptive_with(ALIKE)
    receipt = memory.provide("something has to be found: find the box", asking()).receipt
    assert (receipt.item_ids, receipt.tied) == (("e1/lessons",), 1)


def test_adaptive_when_scores_are_close_goes_by_its_margin() -> None:
    """How much better is better is a setting."""
    lessons = {
        "find it": (
            Lesson("a", "find the door"),
            Lesson("b", "find the door, dear"),
            Lesson("c", "find the door, dear friend"),
        )
    }
    loose, strict = adaptive_with(lessons, margin=0.5), adaptive_with(lessons, margin=0.0)
    assert recalled(loose, "find the door") == ["e0/lessons"]
    assert recalled(strict, "find the door") == ["e0/lesson-0", "e0/lesson-1"]


def test_adaptive_when_scores_are_below_zero_is_not_told_apart_by_equal_ones() -> None:
    """A ranker may give cosines; lessons that tie are no choice, however unlike the query."""
    table = TableEmbeddings(lambda text: [1.0, 1.0] if "find" in text else [0.0, -1.0])
    memory = adaptive_with(ALIKE, ranker=Dense(make_embedder(table)))
    assert recalled(memory, "find it") == ["e0/lessons"]


def test_adaptive_when_items_came_from_elsewhere_takes_them_for_single_lessons() -> None:
    """A bank that was filled otherwise can be used."""
    memory = adaptive_with({})
    single = memory_with(granularity="individual")
    single.file(make_episode("e9"))
    memory.restore(single.content())
    assert recalled(memory, "you must open the red door") == ["e9/lesson-0"]


def test_adaptive_when_no_lesson_matches_still_looks_at_the_bundles() -> None:
    """A task may be known though none of its situations is."""
    assert recalled(adaptive_with(VARIED), "meal") == ["e1/lessons"]
