"""`MemRL`: what helped is recalled before what is merely alike."""

from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode

from langgraft.memory.model import Outcome, Receipt
from langgraft.memory.providers import MemRL, MemRLSettings

DOOR = "open the red door"


def filled(**settings: float) -> MemRL:
    """Make a memory of three episodes, the first most like the query."""
    chosen = MemRLSettings.model_validate({"explore": 0, "top_k": 1, **settings})
    memory = MemRL(InMemoryStore(), settings=chosen)
    for name, task in (("alike", DOOR), ("near", "open the red box"), ("far", "sing")):
        memory.file(make_episode(name, task=task))
    return memory


def recalled(memory: MemRL, episode_id: str = "now") -> list[str]:
    """Return the episodes whose trajectories are recalled, best first."""
    recall = memory.provide(DOOR, asking(episode_id=episode_id))
    return [item.episode_id for item in recall.items]


def ended(memory: MemRL, name: str, of: str, *, success: bool | None) -> Receipt:
    """File an episode that recalled one item; return its receipt."""
    receipt = Receipt(name, DOOR, 0, (f"{of}/trajectory",), (1.0,), 10)
    memory.file(make_episode(name, task="z", outcome=Outcome(success), recalls=(receipt,)))
    return receipt


def utilities(memory: MemRL) -> dict[str, object]:
    """Return the utilities that were noted."""
    return {name: notes["utility"] for name, notes in memory.content().notes.items()}


def test_recall_when_nothing_was_judged_goes_by_similarity() -> None:
    """All utilities are equal, and decide nothing."""
    memory = filled(top_k=3)
    assert recalled(memory)[0] == "alike"
    assert len(recalled(memory)) <= 3


def test_recall_when_the_likest_item_misled_takes_the_next() -> None:
    """And when that one misleads more often, the first again."""
    memory = filled(utility_weight=0.9)
    ended(memory, "e1", "alike", success=False)
    assert recalled(memory) == ["near"]
    ended(memory, "e2", "near", success=False)
    ended(memory, "e3", "near", success=False)
    assert recalled(memory) == ["alike"]


def test_utility_when_weightless_changes_no_recall() -> None:
    """What is left is the ranker."""
    memory = filled(utility_weight=0)
    for number in range(4):
        ended(memory, f"e{number}", "alike", success=False)
    assert recalled(memory) == ["alike"]


@given(outcomes=st.lists(st.sampled_from([True, False, None]), max_size=6))
def test_utility_is_the_running_mean_of_judged_outcomes(outcomes: list[bool | None]) -> None:
    """Each judged outcome moves it by the rate; one that nobody judged does not."""
    memory = filled(learning_rate=0.25)
    expected = 0.5
    for number, success in enumerate(outcomes):
        ended(memory, f"e{number}", "near", success=success)
        if success is not None:
            expected += 0.25 * (success - expected)
    noted = utilities(memory).get("near/trajectory", 0.5)
    assert isinstance(noted, float)
    assert abs(noted - expected) < 1e-8


def test_receipt_when_several_episodes_carry_it_counts_once() -> None:
    """Branches of a search share a recall."""
    memory = filled()
    receipt = ended(memory, "e1", "near", success=True)
    memory.file(make_episode("e2", task="z", outcome=Outcome(success=True), recalls=(receipt,)))
    assert utilities(memory) == {"near/trajectory": 0.65}


def test_candidate_when_too_unlike_is_never_recalled() -> None:
    """However well it did."""
    memory = filled(utility_weight=1, least_similarity=0.9)
    for number in range(3):
        ended(memory, f"e{number}", "far", success=True)
    assert recalled(memory) == ["alike"]
    assert recalled(filled(least_similarity=1.0)) == []


def test_recall_when_exploring_meets_every_candidate_and_the_same_again() -> None:
    """Lots are drawn from the episode, not from a clock."""
    memory = filled(explore=1)
    drawn = [recalled(memory, f"e{number}") for number in range(40)]
    assert {name for (name,) in drawn} >= {"alike", "near"}
    assert drawn == [recalled(memory, f"e{number}") for number in range(40)]
