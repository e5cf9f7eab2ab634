"""Names of tasks: taken apart, put together, and refused."""

from pathlib import Path

import pytest
from alfworld_cases import game_of, needs_alfworld
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import GameError, SettingsError
from langgraft.environments.alfworld.game_files import agentgym_tasks
from langgraft.environments.alfworld.games import (
    FAMILIES,
    parse_domain,
    parse_task_id,
    task_of,
    tasks_of,
)
from langgraft.environments.alfworld.generated import GeneratedLibrary
from langgraft.environments.text import TextTask

TRIAL = "trial_T20190907_174127_043461"


def test_task_id_when_taken_apart_then_it_names_world_family_and_game() -> None:
    """Released games are named by their trial, generated ones by a seed."""
    assert parse_task_id(f"alfworld/look_at_obj/{TRIAL}") == ("alfworld", "look_at_obj", TRIAL)
    assert parse_task_id("alfworld-generated/pick_two_obj/17").name == "17"
    assert parse_domain("alfworld/pick_and_place") == ("alfworld", "pick_and_place")


@pytest.mark.parametrize(
    "task_id",
    [
        "",
        "alfworld",
        "alfworld/pick_and_place",
        "alfworld/pick_and_place/",
        "alfworld/wash/1",
        "babyai/find_obj/1",
        "alfworld/pick_and_place/../1",
        "alfworld/pick_and_place/trial 1",
        "alfworld/pick_and_place/1\n",
        "alfworld/pick_and_place_simple/1",
        f"alfworld/pick_and_place/{'x' * 81}",
    ],
)
def test_task_id_when_it_is_none_then_the_error_says_what_one_looks_like(task_id: str) -> None:
    """Whatever is wrong with it, the families are listed."""
    with pytest.raises(SettingsError, match="tasks are <world>/<family>/<name>"):
        parse_task_id(task_id)


@given(st.text(max_size=60))
def test_task_id_when_it_is_any_text_then_it_is_taken_apart_or_refused(text: str) -> None:
    """No text does anything else."""
    for task_id in (text, f"alfworld/look_at_obj/{text}"):
        try:
            assert "/".join(parse_task_id(task_id)) == task_id
        except SettingsError:
            continue


def test_domain_when_there_is_no_such_then_the_error_lists_worlds_and_families() -> None:
    """A typo is answered with what there is."""
    for domain in ("alfworld", "alfworld/wash", "babyai/find_obj", "alfworld/look_at_obj/1"):
        with pytest.raises(SettingsError, match=r"alfworld and alfworld-generated.*pick_two_obj"):
            parse_domain(domain)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[", "is not JSON"),
        ("{}", "not a list of items"),
        ("[3]", "item 1: is not an item"),
        ('[{"item_id": "1", "task_type": "x", "task_id": "y"}]', "item 1: is not an item"),
        ('[{"item_id": 1, "task_type": "x-1", "task_id": "y"}]', "no known task type"),
    ],
)
def test_agentgym_mapping_when_it_is_none_then_the_error_says_so(
    tmp_path: Path, text: str, reason: str
) -> None:
    """The file is named, and the item."""
    path = tmp_path / "mappings.json"
    path.write_text(text)
    with pytest.raises(GameError, match=reason):
        agentgym_tasks(path)
    with pytest.raises(SettingsError, match="no mapping of AgentGym's items"):
        agentgym_tasks(tmp_path / "absent.json")


@needs_alfworld
def test_tasks_when_listed_then_they_are_the_librarys_games_in_its_order() -> None:
    """Ids, domains and splits are those of the games."""
    library = GeneratedLibrary()
    for family in FAMILIES:
        domain = f"alfworld-generated/{family}"
        train, test = (tasks_of(library, domain, split) for split in ("train", "test"))
        assert (len(train), len(test)) == (200, 100)
        assert train[17] == TextTask(f"{domain}/17", domain, "train")
        assert task_of(library.find(family, "200")) == test[0]
    with pytest.raises(SettingsError, match="is not of 'alfworld-generated'"):
        tasks_of(library, "alfworld/look_at_obj", "train")
    with pytest.raises(SettingsError, match="no split 'valid_seen'"):
        tasks_of(library, "alfworld-generated/look_at_obj", "valid_seen")


@needs_alfworld
def test_task_when_made_of_a_game_then_it_carries_its_world_family_and_split() -> None:
    """The id leads back to the game."""
    game = game_of("pick_two_obj", 3)
    task = task_of(game)
    assert task == TextTask(
        "alfworld-generated/pick_two_obj/3", "alfworld-generated/pick_two_obj", "train"
    )
    assert parse_task_id(task.id) == (game.world, game.family, game.name)
