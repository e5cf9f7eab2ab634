"""Credit: each receipt takes effect once, and nothing else counts."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode

from langgraft.memory.controls import Placebo
from langgraft.memory.forgetting import CREDITED, Capacity, FrequencyUtility, SuccessRate
from langgraft.memory.model import Episode, MemoryDelta, Outcome, Receipt, SetState, fold
from langgraft.memory.provider import EPISODES, MemoryProvider
from langgraft.memory.providers import NoMemory, TrajectoryMemory, TrajectorySettings

ITEM = "seed/trajectory"


def crediting(**settings: Any) -> TrajectoryMemory:
    """Make a memory of one episode that counts uses."""
    chosen = TrajectorySettings.model_validate({"credit": True, "top_k": 3, **settings})
    memory = TrajectoryMemory(InMemoryStore(), settings=chosen)
    memory.file(make_episode("seed"))
    return memory


def given_to(memory: MemoryProvider[Any], episode_id: str) -> Receipt:
    """Return the receipt of a recall at the start of an episode."""
    return memory.provide("open the red door", asking(episode_id=episode_id)).receipt


def ended(identity: str, *receipts: Receipt, success: bool | None = True) -> Episode:
    """Make an episode of something else, so that later recalls find the seed alone."""
    return make_episode(identity, task="wait", outcome=Outcome(success), recalls=receipts)


def marks(memory: MemoryProvider[Any]) -> list[str]:
    """List the receipts that took effect."""
    return [key.removeprefix(CREDITED) for key in memory.content().state if CREDITED in key]


def test_uses_when_episodes_end_count_failures_too_and_successes_apart() -> None:
    """A use is a recall in an episode that somebody could judge."""
    memory = crediting()
    for number, success in enumerate([True, False, True, False, False]):
        receipt = given_to(memory, f"e{number}")
        memory.file(ended(f"e{number}", receipt, success=success))
    assert memory.content().notes == {ITEM: {"uses": 5, "successes": 2}}


def test_receipt_when_nobody_can_judge_the_episode_counts_in_one_that_is_judged() -> None:
    """An unknown outcome is neither a use nor a failure, and does not use the receipt up."""
    memory = crediting()
    receipt = given_to(memory, "branch")
    memory.file(ended("branch", receipt, success=None))
    assert memory.content().notes == {}
    assert marks(memory) == []
    memory.file(ended("its child", receipt, success=True))
    assert memory.content().notes == {ITEM: {"uses": 1, "successes": 1}}


@pytest.mark.parametrize("order", [(True, False), (False, True)])
def test_receipt_when_two_episodes_carry_it_counts_with_the_one_filed_first(
    order: tuple[bool, bool],
) -> None:
    """Branches of a search may share one recall."""
    memory = crediting()
    receipt = given_to(memory, "root")
    for number, success in enumerate(order):
        memory.file(ended(f"branch {number}", receipt, receipt, success=success))
    assert memory.content().notes == {ITEM: {"uses": 1, "successes": int(order[0])}}
    assert marks(memory) == [receipt.id]


def test_receipts_when_filed_by_sixteen_threads_at_once_count_once_each() -> None:
    """Each of 16 receipts is carried by 4 episodes, each of which is handed in twice."""
    memory = crediting()
    start = memory.content()
    receipts = [given_to(memory, f"root {number}") for number in range(16)]
    listed = [
        ended(f"e{number}", receipts[number % 16], receipts[(number + 1) % 16])
        for number in range(32)
    ]
    with ThreadPoolExecutor(16) as pool:
        deltas = [delta for delta in pool.map(memory.file, [*listed, *listed]) if delta]
    assert len(deltas) == 32
    assert memory.content().notes == {ITEM: {"uses": 16, "successes": 16}}
    assert sorted(marks(memory)) == sorted(receipt.id for receipt in receipts)
    assert fold(sorted(deltas, key=_position), start) == memory.content()


def _position(delta: MemoryDelta) -> int:
    (count,) = (
        change.value for change in delta if isinstance(change, SetState) and change.key == EPISODES
    )
    assert isinstance(count, int)
    return count


def test_receipt_when_an_item_has_gone_meanwhile_counts_for_the_others() -> None:
    """Forgetting between recall and filing leaves nothing to annotate, and breaks nothing."""
    memory = crediting(forgetting=(Capacity(limit=2),))
    memory.file(make_episode("second"))
    receipt = given_to(memory, "e")
    assert set(receipt.item_ids) == {ITEM, "second/trajectory"}
    log = [memory.file(make_episode("third"))]
    assert ITEM not in memory.content().items
    start = memory.content()
    log = [memory.file(ended("e", receipt))]
    assert fold(log, start) == memory.content()
    assert start.notes == {}
    assert log[0].to_json()[0] == {
        "op": "annotate",
        "id": "second/trajectory",
        "notes": {"uses": 1, "successes": 1},
    }


def test_receipt_when_of_another_bank_or_its_control_changes_nothing() -> None:
    """What the bank does not hold is not credited, and no mark is left."""
    memory = crediting()
    other = TrajectoryMemory(InMemoryStore())
    other.file(make_episode("elsewhere"))
    foreign = [given_to(other, "e"), given_to(Placebo(other), "e2"), given_to(NoMemory(), "e3")]
    assert [len(receipt.item_ids) for receipt in foreign] == [1, 1, 0]
    bare = crediting()
    memory.file(ended("e", *foreign))
    bare.file(ended("e"))
    assert memory.content() == bare.content()


def test_uses_when_nothing_asks_for_them_are_not_counted() -> None:
    """Credit is a setting, and off."""
    memory = crediting(credit=False)
    memory.file(ended("e", given_to(memory, "e")))
    assert memory.content().notes == {}
    assert marks(memory) == []


@pytest.mark.parametrize("policy", [FrequencyUtility(), SuccessRate()])
def test_uses_when_a_policy_goes_by_them_are_counted_by_themselves(
    policy: FrequencyUtility | SuccessRate,
) -> None:
    """Nobody has to remember a second setting."""
    memory = crediting(credit=False, forgetting=(policy,))
    memory.file(ended("e", given_to(memory, "e")))
    assert memory.content().notes == {ITEM: {"uses": 1, "successes": 1}}


receipts = st.builds(
    Receipt,
    id=st.sampled_from("abcdef"),
    query=st.just("q"),
    step=st.just(0),
    item_ids=st.lists(
        st.sampled_from([ITEM, "other/trajectory", "no such item", "\x00", ""]),
        min_size=1,
        max_size=3,
    ).map(tuple),
    scores=st.just(()),
    tokens=st.just(0),
)


@given(
    filed=st.lists(
        st.tuples(st.sampled_from([True, False, None]), st.lists(receipts, max_size=3)), max_size=6
    )
)
def test_counts_when_any_receipts_come_back_are_those_of_a_plain_count(
    filed: list[tuple[bool | None, list[Receipt]]],
) -> None:
    """The first judged episode that carries a receipt decides; the deltas fold to the bank."""
    memory = crediting()
    memory.file(ended("other"))
    start = memory.content()
    log: list[MemoryDelta] = []
    uses: Counter[str] = Counter()
    successes: Counter[str] = Counter()
    held, done = {ITEM, "other/trajectory"}, set[str]()
    for number, (success, carried) in enumerate(filed):
        log.append(memory.file(ended(f"e{number}", *carried, success=success)))
        for receipt in {each.id: each for each in carried}.values():
            names = held.intersection(receipt.item_ids)
            if success is None or receipt.id in done or not names:
                continue
            done.add(receipt.id)
            uses.update(names)
            successes.update(names if success else ())
    notes = memory.content().notes
    assert notes == {name: {"uses": uses[name], "successes": successes[name]} for name in uses}
    assert set(marks(memory)) == done
    assert fold(log, start).to_bytes() == memory.content().to_bytes()
