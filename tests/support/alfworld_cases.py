"""ALFWorld games for tests: ready ones, ways to write them down, and ways to damage them."""

import importlib.util
import json
import lzma
import tarfile
from collections.abc import Callable, Iterable
from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from langgraft.environments.alfworld.games import FAMILIES, Game
from langgraft.environments.alfworld.generated import make_game

PRESENT: Final = all(
    importlib.util.find_spec(module) is not None for module in ("alfworld", "textworld")
)
HOW_TO_GET_IT: Final = "needs the engine of ALFWorld: pip install 'langgraft[alfworld]'"

needs_alfworld = pytest.mark.skipif(not PRESENT, reason=HOW_TO_GET_IT)
"""Marks a test, or as `pytestmark` a file, that plays or generates games."""


@cache
def game_of(family: str = "pick_clean_then_place", seed: int = 0) -> Game:
    """Return a generated game."""
    return make_game(family, seed)


@cache
def one_of_each() -> tuple[Game, ...]:
    """Return one generated game of every family."""
    return tuple(game_of(family) for family in FAMILIES)


def folder_of(game: Game) -> str:
    """Return the name of the folder that ALFWorld's data would have a game in, below its split."""
    words = game.goal.split()
    return f"{FAMILIES[game.family]}-{words[-1]}-None-{words[-1]}-1/trial_{game.family}_{game.name}"


def trial_of(game: Game) -> str:
    """Return what a library calls a game that was written down."""
    return folder_of(game).rpartition("/")[2]


def write_tree(root: Path, games: Iterable[Game], split: str = "train") -> Path:
    """Write games down as `alfworld-download` does, and return the folder of the last one."""
    folder = root
    for game in games:
        folder = root / "json_2.1.1" / split / folder_of(game)
        folder.mkdir(parents=True)
        (folder / "game.tw-pddl").write_text(json.dumps(game.as_data()), encoding="utf-8")
    return folder


def write_archive(root: Path, path: Path) -> Path:
    """Pack a tree into a `.tar.xz`."""
    with tarfile.open(path, "w:xz", preset=0) as archive:
        archive.add(root / "json_2.1.1", "json_2.1.1")
    return path


def pack_rows(games: Iterable[Game], split: str = "train") -> list[dict[str, Any]]:
    """Return the lines of a pack."""
    rows: list[dict[str, Any]] = []
    for game in games:
        task, trial = folder_of(game).split("/")
        row = {"split": split, "task": task, "trial": trial, "desc": game.goal}
        rows.append({**row, "problem": game.problem, "walkthrough": list(game.walkthrough)})
    first = game_of()
    grammar = first.grammar.replace(f": {first.goal}.", ": UNKNOWN GOAL.")
    return [{"pddl_domain": first.domain, "grammar": grammar, "n": len(rows)}, *rows]


def write_pack(path: Path, rows: Iterable[dict[str, Any]]) -> Path:
    """Write the lines of a pack."""
    with lzma.open(path, "wt", encoding="utf-8", preset=0) as file:
        file.writelines(json.dumps(row) + "\n" for row in rows)
    return path


Damage = Callable[[dict[str, Any]], dict[str, Any]]
"""Takes what a game file holds, and spoils it."""


def _problem(old: str, new: str) -> Damage:
    return lambda data: data | {"pddl_problem": data["pddl_problem"].replace(old, new, 1)}


def _goal(new: str) -> Damage:
    return lambda data: data | {"grammar": data["grammar"].replace(game_of().goal, new, 1)}


DAMAGES: Final[dict[str, tuple[Damage, str]]] = {
    "no domain": (lambda data: data | {"pddl_domain": None}, "no text under 'pddl_domain'"),
    "no problem": (
        lambda data: {key: data[key] for key in data if key != "pddl_problem"},
        "no text under 'pddl_problem'",
    ),
    "unsolvable": (lambda data: data | {"solvable": False}, "cannot be solved"),
    "never solved": (
        lambda data: {key: data[key] for key in data if key != "solvable"},
        "is not known solvable",
    ),
    "commands of another kind": (lambda data: data | {"walkthrough": [1]}, "list of commands"),
    "other rules": (
        lambda data: data | {"pddl_domain": data["pddl_domain"] + " "},
        "PDDL domain is of no release that is known",
    ),
    "code in the grammar": (
        lambda data: (
            data | {"grammar": data["grammar"].replace("TODO", "{__import__('os').abort()}")}
        ),
        "grammar is of no release that is known",
    ),
    "code in the goal": (_goal("put {o.name} in bed"), "in plain words"),
    "a derivation in the goal": (_goal("put #look.feedback# in bed"), "in plain words"),
    "a new line in the goal": (_goal("put a mug\\nin bed"), "in plain words"),
    "the end of the goal": (
        _goal('put a mug in bed."}], "x": [{"rhs": "x'),
        "grammar is of no release",
    ),
    "a goal of another family": (_goal("put two knife in drawer"), "is not of"),
    "a goal about another thing": (_goal("put a clean egg in bed"), "another goal than"),
    "another goal in PDDL": (_problem("isClean ?o", "isHot ?o"), "another goal than"),
    "a missing parenthesis": (_problem("(:init", "(:init ("), "not balanced"),
    "an open end": (
        lambda data: data | {"pddl_problem": data["pddl_problem"].rstrip()[:-1]},
        "parentheses that are not balanced",
    ),
    "something after the end": (
        lambda data: data | {"pddl_problem": data["pddl_problem"] + "(define)"},
        "not balanced",
    ),
    "a list in a fact": (_problem("(pickupable ", "(pickupable (x) "), "where a fact should be"),
    "a stray word": (_problem("(:init", "stray (:init"), "outside of its sections"),
    "no objects": (_problem("(:objects", "(:things"), "does not have the sections"),
    "another domain": (_problem(":domain alfred", ":domain blocks"), "not of the domain `alfred`"),
    "an undeclared thing": (_problem("(pickupable ", "(pickupable Un"), "the domain does not know"),
    "an unknown fact": (_problem("(pickupable ", "(edible "), "the domain does not know"),
    "a name declared twice": (_problem("agent1 - agent", "agent1 - agent AGENT1 - agent"), "twice"),
    "an odd character": (_problem("(:init", "(:init ; rm -rf"), "holds the character ';'"),
    "nobody there": (_problem("(atLocation agent1 loc_bar_00)", ""), "where the agent is"),
    "an empty problem": (lambda data: data | {"pddl_problem": ""}, "is not one `(define …)`"),
    "a huge problem": (
        lambda data: data | {"pddl_problem": data["pddl_problem"] + " " * 400_000},
        "at most 400000",
    ),
}
"""What is done to a game of `pick_clean_then_place` → how, and what the error says of it."""
