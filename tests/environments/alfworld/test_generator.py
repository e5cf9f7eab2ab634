"""Generated games: of all families, the same everywhere, and won by their walkthrough."""

import os
import random
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest
from alfworld_cases import needs_alfworld, one_of_each
from hypothesis import given, settings
from hypothesis import strategies as st

from langgraft._core.canonical import digest
from langgraft.environments.alfworld.environment import open_engine
from langgraft.environments.alfworld.games import FAMILIES, Game
from langgraft.environments.alfworld.generated import SIZES, Household, draw_household, make_game
from langgraft.environments.alfworld.installed import installed_package
from langgraft.environments.alfworld.reading import GOALS, check_problem, read_game

pytestmark = needs_alfworld

FAMILY_NAMES = tuple(FAMILIES)
KNOWN_GAMES = "6f19dc9c001195b622bd7eed2b54a9c30550e6968d487f4ea42d9d4a9cbc655c"
"""Digest of some games of every family, as drawn by alfworld 0.4.2's constants."""


def play(game: Game) -> None:
    """Play a walkthrough: every command is on offer, and the last one wins."""
    engine = open_engine(game)
    try:
        frame = engine.reset()
        for command in game.walkthrough:
            assert not frame.won
            assert command in frame.commands
            frame = engine.step(command)
        assert frame.won
        assert frame.done
    finally:
        engine.close()


def kinds_of(game: Game) -> tuple[str, str]:
    """Return what is sought and where it goes."""
    kinds = GOALS[game.family].named_in(game.goal)
    assert kinds is not None
    return kinds


@pytest.mark.parametrize("family", FAMILIES)
def test_walkthrough_when_played_then_its_last_command_wins(family: str) -> None:
    """The real engine agrees, on games of every family."""
    for seed in (0, 250):
        play(make_game(family, seed))


@settings(max_examples=6)
@given(family=st.sampled_from(FAMILY_NAMES), seed=st.integers(0, 10**6))
def test_walkthrough_when_any_game_is_drawn_then_it_wins(family: str, seed: int) -> None:
    """Whatever the seed: not won at the start, and won by its walkthrough."""
    play(make_game(family, seed))


@given(family=st.sampled_from(FAMILY_NAMES), seed=st.integers(0, 10**6))
def test_game_when_any_seed_is_drawn_then_it_is_one_that_may_be_read(
    family: str, seed: int
) -> None:
    """It passes all that a released game is asked for, and nothing is in its place already."""
    game = make_game(family, seed)
    read = read_game(game.as_data(), name="0", family=family, split="train", source="here")
    assert (read.goal, read.dialect, read.as_data()) == (game.goal, game.dialect, game.as_data())
    check_problem(game.problem, family, game.goal)
    assert game == make_game(family, seed)


def test_games_when_drawn_again_then_they_are_the_ones_recorded() -> None:
    """Games are the same on every machine and version of Python."""
    games = [make_game(family, seed) for family in FAMILIES for seed in (0, 17, 299)]
    assert digest([[game.goal, game.problem, list(game.walkthrough)] for game in games]) == (
        KNOWN_GAMES
    )


def test_games_when_drawn_in_another_process_then_they_are_the_same() -> None:
    """Neither the order of sets nor anything else of a process matters."""
    script = (
        "from langgraft.environments.alfworld.generated import GeneratedLibrary;"
        "print(sorted(GeneratedLibrary().describe().items()))"
    )
    said = {
        subprocess.run(
            [sys.executable, "-c", script],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert len(said) == 1


def test_families_when_compared_then_placing_is_about_what_cleaning_is_about() -> None:
    """All things and receptacles of cleaning occur in placing: memories of one can mislead."""
    drawn = {
        family: [kinds_of(make_game(family, seed)) for seed in range(300)]
        for family in ("pick_and_place", "pick_clean_then_place")
    }
    place, clean = drawn["pick_and_place"], drawn["pick_clean_then_place"]
    assert {thing for thing, _ in clean} <= {thing for thing, _ in place}
    assert {receptacle for _, receptacle in clean} <= {receptacle for _, receptacle in place}
    assert len(set(clean) & set(place)) >= 40


def test_games_when_many_are_drawn_then_they_differ_in_size_words_and_hiding() -> None:
    """Rooms of 8 to 25 receptacles, both sentences, and things in the open and behind doors."""
    sizes: Counter[int] = Counter()
    for family in FAMILIES:
        games = [make_game(family, seed) for seed in range(100)]
        sizes.update(game.problem.count("(receptacleAtLocation ") - 1 for game in games)
        hidden = sum(game.walkthrough[1].startswith("open") for game in games)
        assert 5 <= hidden <= 50
        openings = Counter(" ".join(game.goal.split()[:2]) for game in games)
        assert len(openings) >= 2
        assert len({game.problem for game in games}) == 100
    assert len(sizes) >= 12


def household_of(game: Game) -> Household:
    """Draw the household of a game once more."""
    rng = random.Random(f"{FAMILIES[game.family]}/{game.name}")
    return draw_household(game.family, rng, installed_package())


def test_households_when_drawn_then_things_lie_where_they_may() -> None:
    """Sizes hold, nothing lies where its kind does not belong, and what is sought comes first."""
    package = installed_package()
    for game in one_of_each():
        household = household_of(game)
        assert len(household.receptacles) in SIZES
        assert {thing.kind for thing in household.things[: household.wanted]} == {household.sought}
        for thing in household.things:
            assert thing.kind in package.holds[thing.place.kind]
            assert not (thing.kind == household.sought and thing.place.kind == household.target)


def test_package_when_read_then_no_folder_is_made_and_no_variable_set(tmp_path: Path) -> None:
    """Importing alfworld does both: it is undone."""
    script = (
        "import os; from langgraft.environments.alfworld.generated import GeneratedLibrary;"
        "GeneratedLibrary().find('look_at_obj', '0'); print(os.environ.get('ALFWORLD_DATA'))"
    )
    environment = {key: value for key, value in os.environ.items() if key != "ALFWORLD_DATA"}
    said = subprocess.run(
        [sys.executable, "-c", script],
        env=environment | {"HOME": str(tmp_path)},
        capture_output=True,
        check=True,
        text=True,
    )
    assert said.stdout.strip() == "None"
    assert not list(tmp_path.iterdir())
