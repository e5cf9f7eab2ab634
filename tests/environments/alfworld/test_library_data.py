"""The released games themselves: their numbers, their splits, and that all can be read."""

import random
from pathlib import Path

import pytest
from alfworld_cases import needs_alfworld

from langgraft._core.canonical import digest
from langgraft._core.errors import SettingsError
from langgraft.environments.alfworld.environment import open_engine
from langgraft.environments.alfworld.game_files import TreeLibrary, agentgym_tasks, open_library
from langgraft.environments.alfworld.games import FAMILIES, parse_task_id
from langgraft.environments.alfworld.reading import GOALS
from langgraft.environments.alfworld.released import ReleasedLibrary

pytestmark = pytest.mark.matrix  # games of the library

VALID_SEEN = {
    "pick_and_place": 35,
    "look_at_obj": 13,
    "pick_clean_then_place": 27,
    "pick_heat_then_place": 16,
    "pick_cool_then_place": 25,
    "pick_two_obj": 24,
}
SMALLEST = "trial_T20190908_122858_883968"
"""The shortest problem of `pick_and_place` in `valid_seen`, of either release."""
KNOWN_SPLITS = "90dd884047ba9189306de23e71f28778e812e3be3fb1b7a9a5425f121c6b2cd4"
"""Digest of the names of all games dealt to `train` and `test` from json_2.1.2."""


@pytest.fixture(scope="module")
def moving(data_dir: Path) -> ReleasedLibrary:
    """Return the games of json_2.1.2, as the shared data is opened."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("ALFWORLD_DATA", raising=False)
        patch.setenv("LANGGRAFT_DATA", str(data_dir))
        return open_library()


@pytest.fixture(scope="module")
def putting(data_dir: Path) -> ReleasedLibrary:
    """Return the games of json_2.1.1."""
    return TreeLibrary(data_dir / "alfworld" / "games-2.1.1-put.tar.xz")


def test_splits_when_dealt_from_json_2_1_2_then_they_are_the_ones_recorded(
    moving: ReleasedLibrary,
) -> None:
    """200 and 100 training games of every family, and the 140 of valid_seen."""
    assert moving.splits() == ("train", "test", "valid_seen")
    sizes = {family: len(moving.names(family, "valid_seen")) for family in FAMILIES}
    assert sizes == VALID_SEEN
    dealt = [
        [list(moving.names(family, split)) for split in ("train", "test")] for family in FAMILIES
    ]
    assert {tuple(map(len, pair)) for pair in dealt} == {(200, 100)}
    assert all(not set(train) & set(test) for train, test in dealt)
    assert digest(dealt) == KNOWN_SPLITS
    assert moving.left_out() == {}


def test_games_when_of_json_2_1_1_then_training_is_refused_and_agentgyms_items_are_there(
    putting: ReleasedLibrary, moving: ReleasedLibrary
) -> None:
    """Its valid_train are the 200 held-out items of AgentGym, 2420 to 2619."""
    assert putting.splits() == ("valid_seen", "valid_train")
    assert sum(len(putting.names(family, "valid_train")) for family in FAMILIES) == 200
    with pytest.raises(SettingsError, match="no split 'train'; there are valid_seen, valid_train"):
        putting.names("look_at_obj", "train")
    for family in FAMILIES:
        assert putting.names(family, "valid_seen") == moving.names(family, "valid_seen")


def test_games_when_read_then_the_checks_refuse_none(
    moving: ReleasedLibrary, putting: ReleasedLibrary
) -> None:
    """Every split of both releases has games in its own dialect and with a known goal."""
    for library, dialect in ((moving, "move"), (putting, "put")):
        for family in FAMILIES:
            for split in library.splits():
                for name in library.names(family, split)[::25]:
                    game = library.find(family, name)
                    assert (game.family, game.split, game.dialect) == (family, split, dialect)
                    assert GOALS[family].named_in(game.goal)


@needs_alfworld
def test_released_game_when_its_walkthrough_is_played_then_it_is_won(
    moving: ReleasedLibrary,
) -> None:
    """What is read here is what the real engine plays."""
    family = "pick_and_place"
    game = moving.find(family, moving.names(family, "test")[0])
    engine = open_engine(game)
    frame = engine.reset()
    for command in game.walkthrough:
        assert not frame.won
        frame = engine.step(command)
    assert frame.won
    engine.close()


@needs_alfworld
def test_engine_when_a_released_game_is_played_shows_what_textworld_shows(
    moving: ReleasedLibrary, putting: ReleasedLibrary
) -> None:
    """In the words of either release."""
    for library in (moving, putting):
        game = library.find("pick_and_place", SMALLEST)
        engine, plain = open_engine(game), open_engine(game, fast=False)
        chance = random.Random(1)
        ours, theirs = engine.reset(), plain.reset()
        for _ in range(6):
            assert ours == theirs
            command = chance.choice([*ours.commands, *game.walkthrough])
            ours, theirs = engine.step(command), plain.step(command)
        assert ours == theirs
        engine.close()
        plain.close()


def test_agentgym_items_when_looked_up_then_they_are_the_games_of_valid_train(
    putting: ReleasedLibrary, data_dir: Path
) -> None:
    """Items 2420 to 2619 are 200 tasks, each of them a game of json_2.1.1."""
    tasks = agentgym_tasks(data_dir / "alfworld" / "agentgym_mappings_test.json")
    assert sorted(tasks) == list(range(2420, 2620))
    named = {parse_task_id(task)[1:] for task in tasks.values()}
    assert named == {
        (family, name) for family in FAMILIES for name in putting.names(family, "valid_train")
    }
