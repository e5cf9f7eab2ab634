"""Setting things down in the words of either dialect."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft.environments.alfworld.semantics import (
    PREPOSITIONS,
    VERBS,
    in_words_of_the_game,
    spellings,
)

NAMES = st.from_regex(r"[a-z]{2,12} [1-9][0-9]?", fullmatch=True)
PUT = ("close drawer 1", "look", "put mug 1 in/on drawer 1", "put mug 1 in/on drawer 11")
MOVE = ("close drawer 1", "look", "move mug 1 to drawer 1", "move mug 1 to drawer 11")


@given(NAMES, NAMES, st.sampled_from(VERBS), st.sampled_from(PREPOSITIONS))
def test_command_when_it_is_spelled_in_any_way_is_the_one_the_game_admits(
    thing: str, place: str, verb: str, preposition: str
) -> None:
    """Either dialect is taken for the other, and every spelling for both."""
    action = f"{verb} {thing} {preposition} {place}"
    for command in (f"put {thing} in/on {place}", f"move {thing} to {place}"):
        assert in_words_of_the_game(action, ("look", command, "inventory")) == command


@given(st.text(max_size=60), st.sampled_from([PUT, MOVE]))
def test_action_when_it_is_anything_else_is_passed_on_as_it_is(
    action: str, commands: tuple[str, ...]
) -> None:
    """Nothing is guessed: what is no spelling of an admissible command stays what it was."""
    told = in_words_of_the_game(action, commands)
    assert told == action or action in set(spellings(told))


@pytest.mark.parametrize("commands", [PUT, MOVE])
@pytest.mark.parametrize(
    "action",
    [
        "put mug 2 in/on drawer 1",
        "put mug 1 in/on drawer",
        "put mug in/on drawer 1",
        "put  mug 1 in drawer 1",
        "put mug 1 in drawer 1.",
        "Put mug 1 in drawer 1",
        "put mug 1 under drawer 1",
        "put the mug 1 in drawer 1",
        "put mug 1",
        "put",
        "place",
        "",
        pytest.param("put " + "mug 1 in " * 100_000, id="overlong"),
    ],
)
def test_action_when_its_words_are_not_those_of_a_command_is_not_rewritten(
    action: str, commands: tuple[str, ...]
) -> None:
    """Another thing or place, an article, another case, blank or period: all stay."""
    assert in_words_of_the_game(action, commands) == action


def test_command_when_several_can_be_set_down_is_the_one_that_is_named() -> None:
    """Drawer 1 is not drawer 11."""
    assert in_words_of_the_game("place mug 1 into drawer 11", MOVE) == MOVE[-1]
    assert in_words_of_the_game("place mug 1 into drawer 1", PUT) == PUT[-2]


def test_command_when_it_sets_nothing_down_has_no_spellings() -> None:
    """Only setting down differs between the dialects."""
    for command in ("take mug 1 from desk 1", "go to desk 1", "put mug 1 into bowl 1", "look"):
        assert not set(spellings(command))
