"""Trees and packs: which games they list, how they deal them, and what they leave out."""

import json
import random
import re
import shutil
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from alfworld_cases import (
    game_of,
    needs_alfworld,
    one_of_each,
    pack_rows,
    trial_of,
    write_archive,
    write_pack,
    write_tree,
)
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.canonical import digest
from langgraft._core.errors import GameError, SettingsError
from langgraft.environments.alfworld.game_files import (
    PackLibrary,
    TreeLibrary,
    find_games,
    open_library,
)
from langgraft.environments.alfworld.games import FAMILIES, Game, Library
from langgraft.environments.alfworld.generated import GeneratedLibrary
from langgraft.environments.alfworld.released import ReleasedLibrary, deal

pytestmark = needs_alfworld
FAMILY = "pick_clean_then_place"
KNOWN_DRAW = "b1d3231df5175144944676fd61466251414a0a2acf890c39926999e8d78e9910"


def games_of(count: int) -> list[Game]:
    """Return generated games of one family."""
    return [game_of(FAMILY, seed) for seed in range(count)]


@pytest.fixture
def opened(tmp_path: Path) -> dict[str, ReleasedLibrary]:
    """Return one and the same nine games as a tree, as an archive of it, and as a pack."""
    write_tree(tmp_path, games_of(9))
    return {
        "tree": TreeLibrary(tmp_path),
        "archive": TreeLibrary(write_archive(tmp_path, tmp_path / "games.tar.xz")),
        "pack": PackLibrary(write_pack(tmp_path / "games.jsonl.xz", pack_rows(games_of(9)))),
    }


def test_games_when_in_a_tree_an_archive_or_a_pack_then_they_are_the_same(
    opened: dict[str, ReleasedLibrary],
) -> None:
    """Splits, games and what a fingerprint sees of them do not depend on how they are kept."""
    tree = opened["tree"]
    assert isinstance(tree, Library)
    for library in opened.values():
        assert library.splits() == ("train", "test")
        assert library.describe(FAMILY) == tree.describe(FAMILY)
        for split in library.splits():
            assert library.names(FAMILY, split) == tree.names(FAMILY, split)
            for name in library.names(FAMILY, split):
                found, same = library.find(FAMILY, name), tree.find(FAMILY, name)
                assert found.as_data() == same.as_data()
                assert found.split == split


def test_library_when_it_holds_few_games_then_two_of_three_are_for_training(
    opened: dict[str, ReleasedLibrary],
) -> None:
    """Nine games make six and three, and none is in both."""
    train, test = (opened["tree"].names(FAMILY, split) for split in ("train", "test"))
    assert (len(train), len(test)) == (6, 3)
    assert set(train) | set(test) == {trial_of(game) for game in games_of(9)}


def test_dealing_when_there_are_many_games_then_200_and_100_are_drawn_apart() -> None:
    """What is drawn is known, and is not simply the first by name."""
    names = [f"trial_{number:04d}" for number in range(400)]
    dealt = deal(names, FAMILY)
    assert {split: len(dealt[split]) for split in dealt} == {
        "train": 200,
        "test": 100,
        "spare": 100,
    }
    assert sorted(sum(dealt.values(), ())) == names
    assert digest([list(dealt["train"]), list(dealt["test"])]) == KNOWN_DRAW
    assert deal(names, "pick_two_obj") != dealt


@given(st.lists(st.text("abc_0", min_size=1, max_size=6), unique=True, max_size=40), st.randoms())
def test_dealing_when_files_come_in_another_order_then_nothing_changes(
    names: list[str], order: random.Random
) -> None:
    """The draw depends on the names alone, and no game is dealt twice."""
    shuffled = list(names)
    order.shuffle(shuffled)
    dealt = deal(names, FAMILY)
    assert deal(shuffled, FAMILY) == dealt
    assert len(dealt["train"]) == len(names) * 2 // 3
    assert sorted(sum(dealt.values(), ())) == sorted(names)


def test_own_splits_when_there_are_any_then_they_are_listed_by_name(tmp_path: Path) -> None:
    """The release's validation games keep their split."""
    write_tree(tmp_path, games_of(3), "valid_seen")
    write_tree(tmp_path, [game_of(FAMILY, 7)], "valid_unseen")
    library = TreeLibrary(tmp_path)
    assert library.splits() == ("valid_seen", "valid_unseen")
    assert library.names(FAMILY, "valid_seen") == tuple(sorted(map(trial_of, games_of(3))))
    assert library.find(FAMILY, trial_of(game_of(FAMILY, 7))).split == "valid_unseen"


def test_training_split_when_the_release_has_no_training_games_then_it_says_which_there_are(
    tmp_path: Path,
) -> None:
    """The games of json_2.1.1 that are at hand are for validation only."""
    write_tree(tmp_path, games_of(1), "valid_train")
    with pytest.raises(SettingsError, match="no split 'train'; there are valid_train"):
        TreeLibrary(tmp_path).names(FAMILY, "train")


def test_tree_when_it_holds_what_alfworld_leaves_out_then_it_is_counted_by_reason(
    tmp_path: Path,
) -> None:
    """Movable, sliced, unsolvable and missing games are not listed, and neither are damaged ones."""
    write_tree(tmp_path, games_of(4))
    split = tmp_path / "json_2.1.1" / "train"
    _spoil(write_tree(tmp_path, [game_of(FAMILY, 10)]), lambda data: data | {"solvable": False})
    _spoil(write_tree(tmp_path, [game_of(FAMILY, 11)]), lambda data: {"x": data})
    (write_tree(tmp_path, [game_of(FAMILY, 12)]) / "game.tw-pddl").unlink()
    (write_tree(tmp_path, [game_of(FAMILY, 13)]) / "game.tw-pddl").write_bytes(b'{"pddl')
    good = write_tree(tmp_path, [game_of(FAMILY, 14)])
    shutil.copytree(good, split / f"{FAMILIES[FAMILY]}-AppleSliced-None-Bed-1" / "trial_sliced")
    shutil.copytree(good, split / "pick_and_place_with_movable_recep-Pen-Mug-Bed-1" / "trial_m")
    shutil.copytree(good, split / "juggle-Pen-None-Bed-1" / "trial_j")
    shutil.copytree(good, good.with_name("trial with blanks"))
    library = TreeLibrary(tmp_path)
    assert library.left_out(FAMILY) == {
        "cannot be solved": 1,
        "has a name that no task id can hold": 1,
        "has no game file": 1,
        "is about a sliced thing": 1,
        "is damaged": 1,
        "is not known solvable": 1,
    }
    assert library.left_out()["needs a movable receptacle"] == 1
    assert library.left_out()["is of no known task type"] == 1
    assert len(library.names(FAMILY, "train") + library.names(FAMILY, "test")) == 5
    assert library.left_out("pick_two_obj") == {}


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        (lambda _: b'{"pddl', "game.tw-pddl: is not JSON"),
        (lambda data: data.replace(b'"solvable": true', b'"solvable": false'), "cannot be solved"),
        (None, "has no game file"),
    ],
)
def test_game_when_it_was_left_out_then_asking_for_it_says_why(
    tmp_path: Path, spoil: Callable[[bytes], bytes] | None, reason: str
) -> None:
    """A listing passes over it; whoever names it is told the file and the reason."""
    file = write_tree(tmp_path, games_of(1)) / "game.tw-pddl"
    if spoil is None:
        file.unlink()
    else:
        file.write_bytes(spoil(file.read_bytes()))
    with pytest.raises(GameError, match=reason) as caught:
        TreeLibrary(tmp_path).find(FAMILY, trial_of(game_of()))
    assert str(file) in str(caught.value)


def test_game_when_its_file_is_damaged_but_listed_then_it_is_refused_when_found(
    tmp_path: Path,
) -> None:
    """A tree lists by what is solvable; the rules are checked before a game is handed out."""
    file = write_tree(tmp_path, games_of(1)) / "game.tw-pddl"
    file.write_text(file.read_text().replace("(:domain alfred)", "(:domain cars)"))
    library = TreeLibrary(tmp_path)
    with pytest.raises(GameError, match="not of the domain `alfred`"):
        library.find(FAMILY, trial_of(game_of()))


def test_description_when_a_game_changes_then_it_does(tmp_path: Path) -> None:
    """A study's fingerprint changes with the games in use, and not with others or with the place."""
    write_tree(tmp_path / "a", one_of_each())
    shutil.copytree(tmp_path / "a", tmp_path / "b")
    before, same = TreeLibrary(tmp_path / "a").describe(), TreeLibrary(tmp_path / "b").describe()
    assert before == same
    assert str(tmp_path) not in json.dumps(before)
    file = next((tmp_path / "b").rglob(f"{FAMILIES[FAMILY]}*/*/game.tw-pddl"))
    file.write_text(file.read_text().replace("loc_bar_01", "loc_bar_91"))
    changed = TreeLibrary(tmp_path / "b")
    assert changed.describe(FAMILY) != TreeLibrary(tmp_path / "a").describe(FAMILY)
    assert changed.describe("pick_two_obj") == TreeLibrary(tmp_path / "a").describe("pick_two_obj")


def test_library_when_asked_for_what_it_has_not_then_the_error_says_what_there_is(
    opened: dict[str, ReleasedLibrary],
) -> None:
    """Families, splits and names that are not there are settings to put right."""
    for library in opened.values():
        with pytest.raises(SettingsError, match="no ALFWorld task family 'wash'"):
            library.names("wash", "train")
        with pytest.raises(SettingsError, match="no split 'valid'; there are train, test"):
            library.names(FAMILY, "valid")
        with pytest.raises(SettingsError, match="no game of pick_two_obj in train"):
            library.names("pick_two_obj", "train")
        with pytest.raises(SettingsError, match=f"no game 'trial_x' of {FAMILY}"):
            library.find(FAMILY, "trial_x")
        with pytest.raises(SettingsError, match="no ALFWorld task family"):
            library.describe("wash")


def test_library_when_used_from_many_threads_then_each_gets_its_games(
    opened: dict[str, ReleasedLibrary],
) -> None:
    """Runs of a study share one library."""
    names = [trial_of(game) for game in games_of(9)]
    for library in opened.values():
        with ThreadPoolExecutor(8) as pool:
            found = list(pool.map(library.find, [FAMILY] * 36, names * 4))
        assert [game.goal for game in found] == [game.goal for game in games_of(9)] * 4


def test_release_when_several_lie_side_by_side_then_the_newest_or_the_named_is_taken(
    tmp_path: Path,
) -> None:
    """Version numbers are compared as numbers."""
    for version, seed in (("2.1.2", 1), ("2.1.10", 2)):
        write_tree(tmp_path, [game_of(FAMILY, seed)], "valid_seen")
        (tmp_path / "json_2.1.1").rename(tmp_path / f"json_{version}")
    names = TreeLibrary(tmp_path).names(FAMILY, "valid_seen")
    assert names == (trial_of(game_of(FAMILY, 2)),)
    older = TreeLibrary(tmp_path, "json_2.1.2")
    assert older.names(FAMILY, "valid_seen") == (trial_of(game_of(FAMILY, 1)),)
    with pytest.raises(SettingsError, match=r"holds no folder json_2\.1\.1"):
        TreeLibrary(tmp_path, "json_2.1.1")


def test_place_when_it_holds_no_games_then_the_error_says_how_to_get_them(tmp_path: Path) -> None:
    """Empty folders, absent files and trees without games are told apart."""
    with pytest.raises(SettingsError, match=r"no folder json_2\.1\.x of ALFWorld games"):
        TreeLibrary(tmp_path)
    (tmp_path / "json_2.1.1" / "train").mkdir(parents=True)
    with pytest.raises(
        SettingsError, match=r"json_2\.1\.1 holds no ALFWorld games in train, valid"
    ):
        TreeLibrary(tmp_path)
    for inside in ("json_2.1.1", "json_2.1.1/train"):
        with pytest.raises(SettingsError, match=f"give {re.escape(str(tmp_path))} in its place"):
            TreeLibrary(tmp_path / inside)
    with pytest.raises(GameError, match="cannot be read"):
        TreeLibrary(tmp_path / ("x" * 300))
    with pytest.raises(SettingsError, match="no tree of ALFWorld games at"):
        TreeLibrary(tmp_path / "absent.tar.xz")
    with pytest.raises(SettingsError, match="no pack of ALFWorld games at"):
        PackLibrary(tmp_path / "absent.jsonl.xz")


@given(keep=st.floats(0, 1, exclude_max=True), put=st.binary(max_size=8))
def test_packed_file_when_cut_or_changed_then_it_is_refused_or_whole(
    damaged_files: tuple[Path, Path, Path], keep: float, put: bytes
) -> None:
    """No damage to a compressed file shows as another error than the one."""
    pack, archive, spoiled = damaged_files
    for path, library in ((pack, PackLibrary), (archive, TreeLibrary)):
        data = path.read_bytes()
        start = int(keep * len(data))
        spoiled.write_bytes(data[:start] + put)
        with pytest.raises((GameError, SettingsError)):
            library(spoiled)
        spoiled.write_bytes(data[:start] + put + data[start + len(put) :])
        try:
            assert library(spoiled).names(FAMILY, "train")
        except (GameError, SettingsError):
            continue


@pytest.fixture(scope="module")
def damaged_files(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """Return a small pack, a small archive, and where to write a spoiled one."""
    folder = tmp_path_factory.mktemp("files")
    write_tree(folder, games_of(2))
    pack = write_pack(folder / "games.jsonl.xz", pack_rows(games_of(2)))
    return pack, write_archive(folder, folder / "games.tar.xz"), folder / "spoiled.xz"


@pytest.mark.parametrize(
    ("row", "change", "reason"),
    [
        (0, {"n": 4}, "holds 3 of 4 games"),
        (0, {"n": "3"}, "row 1: does not begin with"),
        (0, {"grammar": None}, "row 1: does not begin with"),
        (2, {"split": "tests"}, "row 3: the game's split is 'tests'"),
        (2, {"problem": 1}, "row 3: the game has no text under 'problem'"),
    ],
)
def test_pack_when_a_line_is_wrong_then_the_error_names_the_row(
    tmp_path: Path, row: int, change: dict[str, object], reason: str
) -> None:
    """A pack is one file: damage anywhere in it stops the reading."""
    rows = pack_rows(games_of(3))
    rows[row] |= change
    with pytest.raises(GameError, match=reason):
        PackLibrary(write_pack(tmp_path / "games.jsonl.xz", rows))


def test_pack_when_a_goal_holds_code_then_the_game_is_refused(tmp_path: Path) -> None:
    """A pack's sentences are put into the grammar: they are checked like a file's own."""
    rows = pack_rows(games_of(3))
    for row in rows[1:]:
        row["desc"] = "put {__import__('os').abort()} in bed"
    library = PackLibrary(write_pack(tmp_path / "games.jsonl.xz", rows))
    with pytest.raises(GameError, match="row 2: its grammar does not say"):
        library.find(FAMILY, trial_of(game_of()))


def test_opening_when_alfworld_data_is_set_then_it_comes_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Then the folder `alfworld` of the shared data: a pack, else a tree, else an archive."""
    own, shared = tmp_path / "own", tmp_path / "shared"
    (shared / "alfworld").mkdir(parents=True)
    write_tree(own, games_of(1), "valid_seen")
    monkeypatch.setenv("LANGGRAFT_DATA", str(shared))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    with pytest.raises(SettingsError, match=r"alfworld-download.*generated games"):
        open_library()
    write_archive(own, shared / "alfworld" / "games-2.1.1.tar.xz")
    assert open_library().splits() == ("valid_seen",)
    assert find_games() == shared / "alfworld" / "games-2.1.1.tar.xz"
    write_tree(shared / "alfworld", games_of(1), "valid_unseen")
    assert open_library().splits() == ("valid_unseen",)
    assert find_games() == shared / "alfworld"
    write_pack(shared / "alfworld" / "games-2.1.2.jsonl.xz", pack_rows(games_of(1)))
    assert open_library().splits() == ("train", "test")
    assert find_games() == shared / "alfworld" / "games-2.1.2.jsonl.xz"
    monkeypatch.setenv("ALFWORLD_DATA", str(own))
    assert open_library().splits() == ("valid_seen",)
    assert find_games() == own
    monkeypatch.setenv("ALFWORLD_DATA", str(shared / "alfworld" / "games-2.1.2.jsonl.xz"))
    assert open_library().splits() == ("train", "test")
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / "absent"))
    (tmp_path / "empty").mkdir()
    for name in ("absent", "empty"):
        monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / name))
        for look in (open_library, find_games):
            with pytest.raises(SettingsError, match=rf"ALFWORLD_DATA leads to no games: .*{name}"):
                look()


def test_finding_when_games_are_damaged_or_at_home_then_says_where_they_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No game is read, and `~` is the home folder."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ALFWORLD_DATA", "~/games.jsonl.xz")
    (tmp_path / "games.jsonl.xz").write_bytes(b"no pack")
    assert find_games() == tmp_path / "games.jsonl.xz"
    with pytest.raises(GameError, match="cannot be read"):
        open_library()


def test_opening_when_alfworld_itself_set_its_cache_then_an_empty_one_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Importing alfworld sets ALFWORLD_DATA to a folder that nobody may have filled."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path / ".cache" / "alfworld"))
    monkeypatch.setenv("LANGGRAFT_DATA", str(tmp_path))
    with pytest.raises(SettingsError, match="there are no ALFWorld games"):
        open_library()
    write_tree(tmp_path / "alfworld", games_of(1), "valid_seen")
    assert open_library().splits() == ("valid_seen",)


def test_generated_library_when_asked_then_it_speaks_the_same_protocol() -> None:
    """Seeds 0-199 train and 200-299 test, each a game of its family and split."""
    library = GeneratedLibrary()
    assert isinstance(library, Library)
    assert library.names(FAMILY, "train") == tuple(map(str, range(200)))
    assert library.names(FAMILY, "test") == tuple(map(str, range(200, 300)))
    game = library.find(FAMILY, "200")
    assert (game.world, game.family, game.split) == ("alfworld-generated", FAMILY, "test")
    assert library.describe(FAMILY) == library.describe(FAMILY) != library.describe("look_at_obj")
    for name in ("300", "-1", "01", "", "x", "\N{ARABIC-INDIC DIGIT ONE}"):
        with pytest.raises(SettingsError, match="named by a seed from 0 to 299"):
            library.find(FAMILY, name)
    with pytest.raises(SettingsError, match="no split 'valid_seen'"):
        library.names(FAMILY, "valid_seen")
    with pytest.raises(SettingsError, match="no ALFWorld task family"):
        library.find("wash", "1")


def _spoil(folder: Path, change: Callable[[dict[str, object]], dict[str, object]]) -> None:
    file = folder / "game.tw-pddl"
    file.write_text(json.dumps(change(json.loads(file.read_text()))))
