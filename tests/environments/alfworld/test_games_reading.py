"""Game files come from elsewhere: a good one is read whole, a bad one refused with its reason."""

import json
from typing import Any

import pytest
from alfworld_cases import DAMAGES, game_of, needs_alfworld, one_of_each
from hypothesis import example, given
from hypothesis import strategies as st

from langgraft._core.errors import GameError
from langgraft.environments.alfworld.games import FAMILIES, Game
from langgraft.environments.alfworld.reading import (
    GOALS,
    UnusableProblemError,
    check_problem,
    parse_game,
    read_game,
)

pytestmark = needs_alfworld
FAMILY = "pick_clean_then_place"


def read(data: dict[str, Any], family: str = FAMILY) -> Game:
    """Read a game under a fixed name."""
    return read_game(data, name="0", family=family, split="train", source="here/game.tw-pddl")


@pytest.mark.parametrize("family", FAMILIES)
def test_game_when_written_down_and_read_then_it_is_the_same(family: str) -> None:
    """Goal, dialect, walkthrough and texts of a file are what the game was made of."""
    game = game_of(family)
    found = read(parse_game(json.dumps(game.as_data()).encode(), "here"), family)
    assert found.as_data() == game.as_data()
    assert (found.goal, found.dialect, found.family) == (game.goal, "move", family)


def test_game_when_it_has_no_walkthrough_then_it_is_read_without_one() -> None:
    """The games of json_2.1.1 know no key `walkthrough`."""
    data = game_of().as_data()
    del data["walkthrough"]
    assert read(dict(data)).walkthrough == ()


@pytest.mark.parametrize("damage", DAMAGES)
def test_game_when_damaged_then_one_sentence_names_the_file_and_what_is_wrong(damage: str) -> None:
    """Every kind of damage is refused before the engine sees it, for its own reason."""
    spoil, reason = DAMAGES[damage]
    data = dict(game_of(FAMILY).as_data())
    with pytest.raises(GameError) as caught:
        read(spoil(data))
    message = str(caught.value)
    assert message.startswith("here/game.tw-pddl: ")
    assert reason in message
    assert caught.value.source == "here/game.tw-pddl"
    assert len(message) < 400
    assert "\n" not in message


def test_game_when_its_goal_holds_at_the_start_then_it_is_refused() -> None:
    """A game that is won before the first command would be a success of nobody."""
    for game in one_of_each():
        kinds = GOALS[game.family].named_in(game.goal)
        if game.family == "look_at_obj" or kinds is None:
            continue
        solved = _solved(game, *kinds)
        with pytest.raises(UnusableProblemError, match="solved before the first command"):
            check_problem(solved, game.family, game.goal)


def test_file_when_it_is_no_json_object_then_it_is_refused() -> None:
    """Bytes of any other kind are called what they are."""
    for data in (b"", b"{", b"[1]", b"\xff\xfe", b"[" * 100_000, b'{"a": 1e999999', b"null"):
        with pytest.raises(GameError, match="here: "):
            parse_game(data, "here")
    with pytest.raises(GameError, match="more than 2000000 bytes"):
        parse_game(b" " * 2_000_001, "here")


@given(
    at=st.floats(0, 1, exclude_max=True),
    length=st.integers(0, 40),
    put=st.one_of(st.binary(max_size=12), st.sampled_from([b"(", b")", b'"', b"{", b"\\", b"#"])),
)
@example(at=0.0, length=40, put=b"")
def test_file_when_any_bytes_are_changed_then_it_is_read_or_refused(
    at: float, length: int, put: bytes
) -> None:
    """A flip anywhere in a file never surfaces as anything but the one error."""
    data = json.dumps(game_of().as_data()).encode()
    start = int(at * len(data))
    try:
        game = read(parse_game(data[:start] + put + data[start + length :], "here"))
    except GameError:
        return
    assert (game.goal, game.domain) == (game_of().goal, game_of().domain)
    assert game.grammar == game_of().grammar


@given(
    at=st.floats(0, 1, exclude_max=True),
    length=st.integers(0, 60),
    put=st.text("()-?:= \nabAB_019", max_size=12),
)
def test_problem_when_any_words_are_changed_then_it_is_checked_or_refused(
    at: float, length: int, put: str
) -> None:
    """A problem that passes is balanced and of this domain, whatever was done to it."""
    problem = game_of().problem
    start = int(at * len(problem))
    changed = problem[:start] + put + problem[start + length :]
    try:
        check_problem(changed, FAMILY, game_of().goal)
    except UnusableProblemError:
        return
    assert changed.count("(") == changed.count(")")
    assert "".join(changed.split()).startswith("(define(problem")


@given(st.recursive(st.none() | st.booleans() | st.text(max_size=5), st.lists, max_leaves=4))
def test_game_when_a_key_holds_anything_then_it_is_read_or_refused(value: object) -> None:
    """Values of any type under any key are refused, not tripped over."""
    data = dict(game_of().as_data())
    for key in data:
        try:
            read(data | {key: value})
        except GameError:
            continue
        assert key in {"solvable", "walkthrough"}


def test_texts_when_they_hold_lone_surrogates_then_they_are_refused() -> None:
    """JSON can spell what no file can be written in."""
    data = dict(game_of().as_data())
    for key in ("pddl_domain", "grammar", "pddl_problem"):
        with pytest.raises(GameError):
            read(data | {key: f"{data[key]}\ud800"})


def _solved(game: Game, thing: str, receptacle: str) -> str:
    """Return a game's problem with all of the things sought in the first fitting receptacle."""
    lines = [line.strip() for line in game.problem.splitlines() if "?" not in line]
    things = [
        line.split()[1]
        for line in lines
        if line.startswith("(objectType") and line.lower().endswith(f" {thing}type)")
    ]
    place = next(
        line.split()[1]
        for line in lines
        if line.startswith("(receptacleType") and line.lower().endswith(f" {receptacle}type)")
    )
    facts = [f"(inReceptacle {name} {place})" for name in things]
    facts += [f"({state} {name})" for name in things for state in GOALS[game.family].states]
    return game.problem.replace("(:init", "(:init " + " ".join(facts), 1)
