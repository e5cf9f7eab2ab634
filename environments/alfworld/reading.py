"""Reading one game: the JSON of a `game.tw-pddl`, checked from end to end."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from langgraft._core.canonical import JSON
from langgraft._core.errors import GameError
from langgraft.environments.alfworld.games import FAMILIES, Game
from langgraft.environments.alfworld.problems import UnusableProblemError, check_problem
from langgraft.environments.alfworld.rules import check_rules, shared

LARGEST_FILE: Final = 2_000_000
"""Bytes of a game file; those of the releases have up to 150,000."""
LONGEST_WALKTHROUGH: Final = 1_000

_TRIAL: Final = re.compile(r"[A-Za-z0-9_]{1,80}", re.ASCII)
_COMMAND: Final = re.compile(r"[a-z0-9/ ]{1,200}", re.ASCII)
_OF_TYPE: Final = {task_type: family for family, task_type in FAMILIES.items()}


class LeftOutError(Exception):
    """A game is not one of the benchmark's; the message is the reason: it `needs …`, `is …`."""


@dataclass(frozen=True, slots=True)
class Folder:
    """Where a game stands in the data: the names of its folders."""

    split: str
    task: str
    """Such as `pick_and_place_simple-Mug-None-Desk-301`."""
    trial: str

    @property
    def family(self) -> str | None:
        """The task family; `None` where the task is of none."""
        return _OF_TYPE.get(self.task.partition("-")[0])

    def check(self) -> None:
        """Leave out what ALFWorld leaves out by a folder's name.

        Raises:
            LeftOutError: It does.
        """
        if "movable" in self.task:
            raise LeftOutError("needs a movable receptacle")
        if "Sliced" in self.task:
            raise LeftOutError("is about a sliced thing")
        if self.family is None:
            raise LeftOutError("is of no known task type")
        if not _TRIAL.fullmatch(self.trial):
            raise LeftOutError("has a name that no task id can hold")


def parse_game(data: bytes, source: str) -> dict[str, Any]:
    """Return the JSON object of a game file.

    Raises:
        GameError: The file is damaged.
    """
    if len(data) > LARGEST_FILE:
        raise GameError(f"has more than {LARGEST_FILE} bytes, which no game has", source=source)
    try:
        parsed = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise GameError(f"is not JSON ({error}); get it anew", source=source) from error
    if not isinstance(parsed, dict):
        raise GameError("is not a JSON object", source=source)
    return parsed


def check_solvable(data: Mapping[str, Any]) -> None:
    """Leave out a game that has no solution.

    Raises:
        LeftOutError: It has none, or nobody looked for one.
    """
    if data.get("solvable") is not True:
        raise LeftOutError("cannot be solved" if "solvable" in data else "is not known solvable")


def read_game(data: Mapping[str, Any], *, name: str, family: str, split: str, source: str) -> Game:
    """Read and check a game.

    Raises:
        GameError: It is damaged, cannot be solved, or brings rules that are not known.
    """
    try:
        check_solvable(data)
    except LeftOutError as reason:
        raise GameError(f"the game {reason}, so it is not played", source=source) from reason
    domain, grammar, problem = (
        _text(data, key, source) for key in ("pddl_domain", "grammar", "pddl_problem")
    )
    words = check_rules(domain, grammar, source)
    try:
        check_problem(problem, family, words.goal)
    except UnusableProblemError as reason:
        raise GameError(f"the game's problem {reason}", source=source) from reason
    return Game(
        name=name,
        family=family,
        split=split,
        goal=words.goal,
        dialect=words.dialect,
        domain=shared(domain),
        grammar=grammar,
        problem=problem,
        walkthrough=_walkthrough(data.get("walkthrough", []), source),
        source=source,
    )


def _text(data: Mapping[str, Any], key: str, source: str) -> str:
    value = data.get(key)
    if not isinstance(value, str):
        raise GameError(f"the game has no text under {key!r}", source=source)
    return value


def _walkthrough(value: JSON, source: str) -> tuple[str, ...]:
    if isinstance(value, list) and len(value) <= LONGEST_WALKTHROUGH:
        commands = tuple(
            command for command in value if isinstance(command, str) and _COMMAND.fullmatch(command)
        )
        if len(commands) == len(value):
            return commands
    raise GameError("the game's `walkthrough` is not a list of commands", source=source)
