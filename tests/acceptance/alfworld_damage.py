"""ALFWorld games whose files are damaged, cannot be won, or are of no release."""

import json
import lzma
import re
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, Final

from acceptance.figure import Figure, Setting, share
from langgraft._core.errors import GameError
from langgraft.environments.alfworld import ALFWorld, AlfworldEnvironment, GeneratedALFWorld, plan
from langgraft.environments.alfworld.game_files import PackLibrary, TreeLibrary
from langgraft.environments.alfworld.games import FAMILIES

FAMILY: Final = "pick_clean_then_place"
TRIAL: Final = "trial_T1"
_CODE: Final = "{__import__('os').abort()}"

Content = dict[str, Any]
Spoil = Callable[[Content], Content | bytes]


def _set(**fields: object) -> Spoil:
    return lambda game: {**game, **fields}


def _without(key: str) -> Spoil:
    return lambda game: {name: value for name, value in game.items() if name != key}


def _replaced(key: str, old: str, new: str) -> Spoil:
    """Change one text of a game; what is to go has to be there."""

    def spoil(game: Content) -> Content:
        changed, count = re.subn(old, lambda _: new, game[key], count=1)
        assert count, old
        return {**game, key: changed}

    return spoil


def _cut(game: Content) -> bytes:
    return json.dumps(game).encode()[:-2000]


DAMAGED: Final[Mapping[str, tuple[str, Spoil]]] = {
    "a file that ends early": ("not JSON", _cut),
    "an empty file": ("not JSON", lambda _: b""),
    "bytes that are no text": ("not JSON", lambda _: bytes(range(256))),
    "a list": ("not a JSON object", lambda _: b"[]"),
    "brackets 100,000 deep": ("not JSON", lambda _: b"[" * 100_000),
    "a file of 3 MB": ("bytes", lambda _: b" " * 3_000_000),
    "no problem": ("pddl_problem", _without("pddl_problem")),
    "a problem that is a number": ("pddl_problem", _set(pddl_problem=7)),
    "`solvable` false": ("cannot be solved", _set(solvable=False)),
    "no word on whether it is solvable": ("not known solvable", _without("solvable")),
    "a grammar of its own": ("grammar", _replaced("grammar", "You open the", f"{_CODE} You open")),
    "code in the goal sentence": ("plain words", _replaced("grammar", "task is to: ", f"task is to: {_CODE}")),
    "rules of its own": ("domain", _replaced("pddl_domain", ":precondition", ":precondition ")),
    "another goal than it says": ("goal", _replaced("pddl_problem", "isClean", "isCool")),
    "brackets that do not match": ("", lambda game: {**game, "pddl_problem": game["pddl_problem"] + "("}),
    "a fact of no known kind": ("", _replaced("pddl_problem", r"\(openable ", "(openables ")),
    "a thing that is not declared": ("", _replaced("pddl_problem", r"\(openable \w+", "(openable x")),
    "odd characters": ("character", lambda game: {**game, "pddl_problem": game["pddl_problem"] + "\x00"}),
    "a walkthrough that is no list": ("walkthrough", _set(walkthrough="look")),
}  # fmt: skip
"""What is wrong with a game's file → a word of what is said, and how to spoil a good one."""

LEFT_OUT: Final = {"a movable receptacle": "Mug-movable-Desk-1", "a sliced thing": "AppleSliced-None-Desk-1"}  # fmt: skip


def measure_damage(setting: Setting) -> list[Figure]:
    """Give damaged games, games that cannot be won, and damaged packs of games."""
    return [_games(setting), _unwinnable(), _packs(setting)]


def _write(root: Path, content: Content | bytes, task: str, trial: str = TRIAL) -> Path:
    path = root / "json_2.1.1" / "train" / task / trial / "game.tw-pddl"
    path.parent.mkdir(parents=True)
    path.write_bytes(content if isinstance(content, bytes) else json.dumps(content).encode())
    return path


def _games(setting: Setting) -> Figure:
    setting.say("ALFWorld: games that are damaged")
    good: Content = dict(GeneratedALFWorld()(f"alfworld-generated/{FAMILY}/1").game.as_data())
    task, wrong = f"{FAMILIES[FAMILY]}-Mug-None-Desk-1", []
    cases = [(what, word, spoil, task) for what, (word, spoil) in DAMAGED.items()]
    cases += [(what, what.split()[-1], dict, f"{FAMILIES[FAMILY]}-{name}") for what, name in LEFT_OUT.items()]  # fmt: skip
    for number, (what, word, spoil, folder) in enumerate(cases):
        root = setting.work / f"tree-{number}"
        path = _write(root, spoil(good), folder)
        _write(root, good, task, "trial_T2")
        said = _game_error(partial(_first, TreeLibrary(root), TRIAL))
        if not (said.startswith(f"{path}: ") and word in said and said.isprintable()):
            wrong.append(f"{what} ({said or 'taken'})")
        elif not _wins(TreeLibrary(root), "trial_T2"):
            wrong.append(f"{what}: the game beside it cannot be played")
    return Figure(
        "A damaged ALFWorld game is refused in one line that names its file",
        f"game files with {'; '.join(what for what, *_ in cases)}; a good one beside each",
        share(len(cases) - len(wrong), len(cases), wrong),
        "all: one line, nothing of it reaches the engine, and the other game is won",
        not wrong,
    )


def _first(library: TreeLibrary, name: str) -> str:
    return ALFWorld(library)(f"alfworld/{FAMILY}/{name}").reset().observation


def _wins(library: TreeLibrary, name: str) -> bool:
    episode = ALFWorld(library)(f"alfworld/{FAMILY}/{name}")
    episode.reset()
    return [episode.step(command).success for command in episode.game.walkthrough][-1]


def _unwinnable() -> Figure:
    """Play a game that says it can be solved, and cannot: nothing in it can be cleaned."""
    game = GeneratedALFWorld()(f"alfworld-generated/{FAMILY}/1").game
    barren = replace(game, problem=re.sub(r"\(cleanable \w+\)", "", game.problem))
    ways: dict[str, Callable[[], object]] = {
        "played": AlfworldEnvironment(barren).reset,
        "played by the plain engine": AlfworldEnvironment(barren, fast=False).reset,
        "given to the oracle": partial(plan, barren),
    }
    told = {what: _game_error(way) for what, way in ways.items()}
    wrong = [what for what, said in told.items() if "cannot be won" not in said]
    return Figure(
        "A game that says it can be won and cannot is refused before the first command",
        f"a generated game in which nothing can be cleaned: {', '.join(ways)}",
        f"“{told['played'] or 'played'}”" + (f"; otherwise {', '.join(wrong)}" if wrong else ""),
        "refused by all in one line",
        not wrong,
    )


def _game_error(way: Callable[[], object]) -> str:
    try:
        way()
    except GameError as error:
        return str(error)
    return ""


def _packs(setting: Setting) -> Figure:
    head = {"pddl_domain": "", "grammar": "", "n": 1}
    row = {"split": "train", "task": "a-b", "trial": "t", "desc": "", "problem": ""}
    cases = {
        "not xz": b"PK",
        "cut short": _pack(head, row)[:-30],
        "no first line": lzma.compress(b""),
        "a game missing": _pack(head),
        "a row that is not JSON": lzma.compress(f"{json.dumps(head)}\n{{\n".encode()),
        "a split of its own": _pack(head, {**row, "split": "../x"}),
        "an archive cut short": b"",
    }
    wrong = []
    for number, (what, content) in enumerate(cases.items()):
        name = f"games-{number}.tar.xz" if "archive" in what else f"games-{number}.jsonl.xz"
        path = setting.work / name
        path.write_bytes(content)
        said = _game_error(partial(_opened, path))
        if not (said.startswith(str(path)) and said.isprintable()):
            wrong.append(f"{what} ({said or 'taken'})")
    return Figure(
        "A damaged pack or archive of games is refused in one line that names it",
        "; ".join(cases),
        share(len(cases) - len(wrong), len(cases), wrong),
        "all",
        not wrong,
    )


def _pack(*rows: object) -> bytes:
    return lzma.compress("".join(f"{json.dumps(row)}\n" for row in rows).encode())


def _opened(path: Path) -> object:
    return (TreeLibrary if path.name.endswith(".tar.xz") else PackLibrary)(path)
