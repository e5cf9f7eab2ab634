"""When an episode enters another phase, by what its texts say."""

import pytest
from hypothesis import given
from memory_cases import texts

from langgraft.memory.providers.insight import in_sight, phase_changed

BABYAI = "pick up the key"
BABYAI_SEEN = [
    (
        f"Your goal: {BABYAI}\nIn front of you in this room, you can see several objects: There is a"
        " red closed door 1 2 steps in front of you and 1 steps to your left. You are not carrying"
        ' anything.\nAvailable actions: ["turn left", "go to red closed door 1"]'
    ),
    (
        "In front of you in this room, you can see several objects: There is a grey box 1 3 steps in"
        ' front of you. You are facing a wall 2 steps away.\nAvailable actions: ["turn left"]'
    ),
    (
        "In front of you in this room, you can see several objects: There is a blue key 1 3 steps in"
        ' front of you.\nAvailable actions: ["turn left", "pickup blue key 1"]'
    ),
    (
        "In front of you in this room, you can see several objects: There is a blue key 1 2 steps in"
        ' front of you.\nAvailable actions: ["turn left", "pickup blue key 1"]'
    ),
]

ALFWORLD = "put a clean bowl in fridge"
ALFWORLD_SEEN = [
    (
        "You are in the middle of a room. Looking quickly around you, you see a cabinet 1, a"
        f" countertop 1, and a sinkbasin 1.\nYour task is to: {ALFWORLD}."
    ),
    "On the cabinet 1, you see a cup 2, and a plate 1.",
    "On the countertop 1, you see nothing.",
    "On the countertop 1, you see a bowl 2, and a knife 1.",
    "You pick up the bowl 2 from the countertop 1.",
    "Nothing happens.",
    "You clean the bowl 2 using the sinkbasin 1.",
    "The fridge 1 is closed.",
]


def asked_at(instruction: str, seen: list[str]) -> list[int]:
    """Return the turns at which memory is asked."""
    asked = [0]
    for turn in range(1, len(seen)):
        if phase_changed(instruction, seen[turn], seen[asked[-1]]):
            asked.append(turn)
    return asked


@pytest.mark.parametrize(
    ("instruction", "seen", "turns"),
    [(BABYAI, BABYAI_SEEN, [0, 2]), (ALFWORLD, ALFWORLD_SEEN, [0, 3, 6, 7])],
)
def test_phase_when_a_thing_of_the_goal_appears_is_another_one(
    instruction: str, seen: list[str], turns: list[int]
) -> None:
    """Found, cleaned, at the fridge; not while the search goes on, room after room."""
    assert asked_at(instruction, seen) == turns


def test_sight_when_the_world_repeats_the_instruction_does_not_hold_its_things() -> None:
    """To be told of a key is not to see one; small words and numbers are no things."""
    assert in_sight(BABYAI, BABYAI_SEEN[0]) == frozenset()
    assert in_sight(BABYAI, BABYAI_SEEN[2]) == {"key"}
    assert in_sight("put it on the shelf 2", "On the desk 2, you see a Shelf 1.") == {"shelf"}


@given(texts, texts, texts)
def test_phase_when_nothing_appears_is_the_same(instruction: str, now: str, before: str) -> None:
    """What is seen now and was seen before is no change, and forgetting is none either."""
    assert not phase_changed(instruction, now, now)
    assert not phase_changed(instruction, "", before)
    assert not phase_changed("", now, before)
