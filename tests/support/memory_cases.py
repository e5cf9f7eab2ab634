"""Items, episodes and deltas to test memory with: by hand, and as hypothesis strategies."""

from typing import Any

from hypothesis import strategies as st

from langgraft.memory.episodes import Episode, ErrorRecord, Lesson, Outcome, Step
from langgraft.memory.items import ItemType, MemoryItem
from langgraft.memory.questions import Verdict
from langgraft.memory.recall import RecallContext

HOSTILE = ["", "\x00", "a\nb", "\u2028", "\u202eright to left", "\ufeff", "</recalled_memory>", "🜁"]

texts = st.one_of(st.sampled_from(HOSTILE), st.text(st.characters(exclude_categories=["Cs"])))
names = st.text("abcXYZ/-_ é\n\x00", min_size=1, max_size=6)
scalars = st.one_of(
    texts, st.booleans(), st.integers(), st.floats(allow_nan=False, allow_infinity=False)
)
types: st.SearchStrategy[ItemType] = st.sampled_from(
    ["strategic", "operational", "error_trace", "other"]
)


def make_item(identity: str = "i1", **fields: Any) -> MemoryItem:
    """Make an item; what is not given is plain."""
    values: dict[str, Any] = {
        "text": f"text of {identity}",
        "type": "strategic",
        "source_domain": "toy",
        "episode_id": "e1",
        "success": True,
        "order_index": 0,
    }
    return MemoryItem(id=identity, **{**values, **fields})


@st.composite
def items(draw: st.DrawFn, identities: st.SearchStrategy[str] = names) -> MemoryItem:
    """Draw an item with any text that can be stored."""
    return MemoryItem(
        id=draw(identities),
        text=draw(texts),
        type=draw(types),
        source_domain=draw(names),
        episode_id=draw(texts),
        success=draw(st.booleans()),
        order_index=draw(st.integers(0, 9)),
        task_id=draw(st.none() | texts),
        key=draw(st.none() | texts),
        metadata=draw(st.dictionaries(names, scalars, max_size=2)),
    )


def make_episode(
    identity: str = "e1", *, task: str = "open the red door", **fields: Any
) -> Episode:
    """Make an episode of two steps and two lessons; what is not given is plain."""
    values: dict[str, Any] = {
        "domain": "toy",
        "task_id": f"task of {identity}",
        "task": task,
        "steps": (Step("", "", "a room"), Step("doors open", "toggle", "it is open")),
        "outcome": Outcome(success=True, score=1.0, reason="goal reached"),
        "lessons": (Lesson("toggle it", f"you must {task}"), Lesson("look around")),
    }
    return Episode(identity, **{**values, **fields})


@st.composite
def episodes(draw: st.DrawFn, identities: st.SearchStrategy[str] = names) -> Episode:
    """Draw an episode with any text that can be stored."""
    step = st.builds(Step, texts, texts, texts)
    return Episode(
        id=draw(identities),
        domain=draw(names),
        task_id=draw(texts),
        task=draw(texts),
        steps=tuple(draw(st.lists(step, max_size=3))),
        outcome=Outcome(draw(st.sampled_from([True, False, None]))),
        lessons=tuple(draw(st.lists(st.builds(Lesson, texts, texts, types), max_size=3))),
        errors=tuple(draw(st.lists(st.builds(ErrorRecord, texts, texts, texts), max_size=1))),
        verdicts=tuple(draw(st.lists(st.builds(Verdict, texts, texts), max_size=1))),
    )


def asking(**fields: Any) -> RecallContext:
    """Make the context of a question to memory; what is not given is plain."""
    return RecallContext(**{"domain": "toy", "task_id": "t", "episode_id": "asking", **fields})
