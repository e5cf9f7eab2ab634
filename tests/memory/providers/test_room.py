"""Items that are too long for the budget take no place among the best."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode

from langgraft.memory import MemoryProvider
from langgraft.memory.banks import Banks
from langgraft.memory.controls import Frozen, Placebo, RandomRetrieval, Shuffled
from langgraft.memory.model import Lesson, Outcome, Step
from langgraft.memory.providers import make_provider
from langgraft.memory.recall import OVER_BUDGET, OVER_SHARE, Budget
from langgraft.memory.trust import TrustSettings

LONG = "wifi office down " * 200
BUDGET = Budget(400)
QUERY = "the office wifi is down"
PROVIDERS = (
    *("trajectory", "simple_rag", "self_examples", "recency", "memrl", "lightweight", "expel"),
    *("insight", "reasoning_bank", "agent_kb", "facts", "full_history"),
)


def file(memory: MemoryProvider[Any], identity: str, said: str, success: bool = True) -> None:
    """File an episode whose trajectory and lessons are of a length."""
    memory.file(
        make_episode(
            identity,
            task=QUERY,
            steps=(Step("", "", said), Step("", "restart", "it is up")),
            lessons=(Lesson(said, QUERY),),
            outcome=Outcome(success=success),
        )
    )


def silenced(name: str, long: int = 1, **settings: Any) -> MemoryProvider[Any]:
    """Return a memory of two usual episodes and a few long ones, which come first."""
    memory = make_provider(name, InMemoryStore(), settings=settings)
    file(memory, "old", "restart the router")
    for number in range(long):
        file(memory, f"long{number}", LONG)
    return memory


@pytest.mark.parametrize("long", [1, 40])
@pytest.mark.parametrize("name", PROVIDERS)
def test_recall_when_the_best_items_are_too_long_then_gives_the_next(name: str, long: int) -> None:
    """However many there are, and whatever provider; the receipt lists them as dropped."""
    settings: dict[str, Any] = (
        {"top_k": 1} if name in ("trajectory", "insight", "simple_rag") else {}
    )
    recall = silenced(name, long, **settings).provide(QUERY, asking(episode_index=0), BUDGET)
    assert {item.episode_id for item in recall.items} == {"old"}
    reasons = {drop.reason for drop in recall.receipt.dropped}
    assert reasons
    assert reasons <= {OVER_BUDGET, OVER_SHARE}
    assert all(drop.id.startswith("long") for drop in recall.receipt.dropped)


def test_recall_when_items_have_room_then_is_what_it_was() -> None:
    """A long item below the best is not looked for, and one that fits keeps its place."""
    memory = silenced("trajectory", 1, top_k=1)
    file(memory, "new", "restart the router")
    recall = memory.provide(QUERY, asking(episode_index=0), BUDGET)
    assert [item.episode_id for item in recall.items] == ["new"]
    assert recall.dropped == ()
    everything = memory.provide(QUERY, asking(), Budget(None))
    assert [item.episode_id for item in everything.items] == ["new"]


def test_recall_when_no_item_has_room_then_is_empty() -> None:
    """All of them are listed as dropped, with the reason."""
    memory = silenced("trajectory", 3, top_k=1)
    recall = memory.provide(QUERY, asking(), Budget(1))
    assert not recall
    assert {drop.reason for drop in recall.dropped} == {OVER_BUDGET}


@pytest.mark.parametrize("control", [Frozen, Placebo, RandomRetrieval, Shuffled])
def test_control_when_the_best_item_is_too_long_then_recalls_as_much_as_memory(
    control: Any,
) -> None:
    """Controls go by what the wrapped provider really recalls."""
    recall = control(silenced("trajectory")).provide(QUERY, asking(episode_index=0), BUDGET)
    assert len(recall.items) == 1


def test_layers_when_the_best_item_of_one_is_too_long_then_its_next_is_recalled() -> None:
    """Each bank of a layered memory is asked alone."""
    banks = Banks(InMemoryStore())
    file(banks["team"], "old", "restart the router")
    file(banks["team"], "long", LONG)
    recall = banks.layered("ada", "team").provide(QUERY, asking(episode_index=0), BUDGET)
    assert [item.episode_id for item in recall.items] == ["old"]


def test_recall_when_trust_withholds_items_then_too_long_ones_take_no_place_either() -> None:
    """Both kinds are passed over together, each dropped with its reason."""
    memory = silenced("trajectory", trust=TrustSettings())
    memory.file(make_episode("page", task=QUERY, sources=("web:https://example.org",), lessons=()))
    recall = memory.provide(QUERY, asking(episode_index=0), BUDGET)
    assert [item.episode_id for item in recall.items] == ["old"]
    reasons = {drop.id.partition("/")[0]: drop.reason for drop in recall.dropped}
    assert reasons == {"page": "in quarantine", "long0": OVER_BUDGET}


async def test_recall_when_asynchronous_passes_over_long_items_too() -> None:
    """The same items and receipt."""
    memory = silenced("trajectory", 5)
    assert await memory.aprovide(QUERY, asking(episode_index=0), BUDGET) == memory.provide(
        QUERY, asking(episode_index=0), BUDGET
    )
