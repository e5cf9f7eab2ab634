"""ALFWorld's tasks by id: what is built, what is listed, when games are looked for."""

import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alfworld_cases import needs_alfworld

from langgraft._core.errors import MissingExtraError, SettingsError
from langgraft.environments.alfworld import (
    FAMILIES,
    ALFWorld,
    GeneratedALFWorld,
    GeneratedLibrary,
    Library,
    installed,
)
from langgraft.environments.text import TextEnvironment, TextTask

pytestmark = needs_alfworld

DOMAIN = "alfworld-generated/pick_heat_then_place"


def test_factory_when_given_a_listed_task_builds_that_game() -> None:
    """Every family and split has its tasks, and a task id leads to its game."""
    worlds = GeneratedALFWorld(semantics="react", max_rounds=7)
    for family in FAMILIES:
        domain = f"alfworld-generated/{family}"
        train, test = worlds.tasks(domain, "train"), worlds.tasks(domain, "test")
        assert (len(train), len(test)) == (200, 100)
        assert not set(train) & set(test)
    task = worlds.tasks(DOMAIN, "test")[3]
    episode = worlds(task.id)
    assert isinstance(episode, TextEnvironment)
    assert episode.task == task == TextTask(f"{DOMAIN}/203", DOMAIN, "test")
    assert (episode.semantics, episode.max_rounds, episode.game.name) == ("react", 7, "203")


def test_library_when_given_is_the_one_that_is_asked() -> None:
    """Any library will do; the factories differ only in the one they open by themselves."""
    library = GeneratedLibrary()
    worlds = ALFWorld(library)
    assert worlds.games() is library
    assert worlds(f"{DOMAIN}/0").reset() == GeneratedALFWorld()(f"{DOMAIN}/0").reset()


class Counted(GeneratedALFWorld):
    """Counts how often games are looked for."""

    opened = 0

    def _open(self) -> Library:
        type(self).opened += 1
        return super()._open()


def test_games_when_needed_are_looked_for_once_and_not_before() -> None:
    """Threads that need them at the same time share one library."""
    worlds = Counted()
    assert Counted.opened == 0
    with ThreadPoolExecutor(8) as pool:
        found = set(map(id, pool.map(lambda _: worlds.games(), range(32))))
    assert (len(found), Counted.opened) == (1, 1)


def test_released_games_when_there_are_none_are_missed_at_the_first_task(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A factory can be made anywhere; what it says then tells how to get games."""
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    monkeypatch.setenv("LANGGRAFT_DATA", str(tmp_path))
    worlds = ALFWorld()
    with pytest.raises(SettingsError, match="alfworld-download"):
        worlds("alfworld/pick_and_place/trial_T1")
    with pytest.raises(SettingsError, match="alfworld-generated"):
        worlds.tasks("alfworld/pick_and_place", "test")


@pytest.mark.parametrize(
    ("task_id", "named"),
    [
        ("", "''"),
        ("alfworld-generated/pick_heat/0", "pick_heat/0"),
        ("alfworld-generated/pick_two_obj/300", "300"),
        ("alfworld-generated/pick_two_obj/007", "007"),
        ("alfworld-generated/pick_two_obj/-1", "-1"),
        ("alfworld/pick_two_obj/trial_T1", "alfworld-generated"),
        ("babyai/find_obj/0", "babyai"),
        ("alfworld-generated/pick_two_obj/0/../0", "pick_two_obj/0/../0"),
    ],
)
def test_task_when_there_is_none_of_that_id_is_refused(task_id: str, named: str) -> None:
    """Unknown worlds, families, seeds and paths are refused by name, in one line."""
    with pytest.raises(SettingsError) as caught:
        GeneratedALFWorld()(task_id)
    assert named in str(caught.value)
    assert "\n" not in str(caught.value)


def test_domain_or_split_when_there_is_none_is_refused() -> None:
    """Listing is as strict as building."""
    worlds = GeneratedALFWorld()
    for domain, split in ((DOMAIN, "valid_seen"), ("alfworld-generated/heat", "train"),
                          ("alfworld/pick_two_obj", "train")):  # fmt: skip
        with pytest.raises(SettingsError):
            worlds.tasks(domain, split)


def test_settings_when_not_usable_are_refused_before_games_are_looked_for() -> None:
    """Another world's semantics, or no rounds."""
    with pytest.raises(SettingsError, match="semantics 'fixed' is not one of compat"):
        ALFWorld(semantics="fixed")  # type: ignore[arg-type]
    with pytest.raises(
        SettingsError, match="max_rounds must be a whole number of at least 1, got 0"
    ):
        ALFWorld(max_rounds=0)


def test_extra_when_the_engine_is_missing_is_named_with_its_pip_line(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Making and listing need nothing; playing says what to install."""
    worlds = GeneratedALFWorld()
    episode = worlds(f"{DOMAIN}/1")
    installed.installed.cache_clear()
    for module in [name for name in sys.modules if name.split(".")[0] == "textworld"]:
        monkeypatch.setitem(sys.modules, module, None)
    try:
        with pytest.raises(MissingExtraError, match=r"pip install 'langgraft\[alfworld\]'"):
            episode.reset()
    finally:
        installed.installed.cache_clear()
