"""Reading one game: the JSON of a `game.tw-pddl`, checked from end to end.

TextWorld evaluates Python expressions that it finds in a game's grammar. A game file is data from
elsewhere, so it is played only where its grammar, the goal sentence taken out, is a known one.
"""

import json
import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple

from langgraft._core.canonical import JSON
from langgraft._core.errors import GameError
from langgraft.environments.alfworld.games import FAMILIES, Dialect, Game
from langgraft.environments.alfworld.problems import (
    PLAIN_WORDS,
    UnusableProblemError,
    check_problem,
)

LARGEST_FILE: Final = 2_000_000
"""Bytes of a game file; those of the releases have up to 150,000."""
LONGEST_WALKTHROUGH: Final = 1_000

_TRIAL: Final = re.compile(r"[A-Za-z0-9_]{1,80}", re.ASCII)
_COMMAND: Final = re.compile(r"[a-z0-9/ ]{1,200}", re.ASCII)
_OF_TYPE: Final = {task_type: family for family, task_type in FAMILIES.items()}

UNKNOWN_GOAL: Final = "UNKNOWN GOAL"
"""What a grammar has where a game has its goal sentence."""

_GOAL: Final = re.compile(r'(?<="rhs": "Your task is to: )[^"]*(?=\.")')


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


class _Rules(NamedTuple):
    domain: str
    grammar: str
    dialect: Dialect


_KNOWN: Final = (
    _Rules(  # the package alfworld 0.4.2
        domain="f1473041ed01da514de1f87adfd7ef0804862361f83ccf63c75e43633b0eb280",
        grammar="c5b22f0f73309a7fd7c8e5b71de42ad4803b60766ab4a51cc2feb34162be036b",
        dialect="move",
    ),
    _Rules(  # the games of release json_2.1.2
        domain="0af55e7f92d12b09d28515aa730e4d03fddd17228ef1fd7b18a3ee8ba49b27b9",
        grammar="cce0702cd250cc6af6c3ea047a21f6c4c1c8d29a1739efefb5221ef4c3dcac57",
        dialect="move",
    ),
    _Rules(  # the games of release json_2.1.1
        domain="34172c333dff7e62eb90e85367fa5519b5f31b3849e56123d96dbc0deda50e27",
        grammar="d955e6db384c68ac5797e881b795fd36d788e87a03547f9a87e48fbd7c5b361b",
        dialect="put",
    ),
    _Rules(  # the logic files that came with release json_2.1.1
        domain="e64e8c0002648c403e05adedc25be5ea8b9863924f32cc7611051bed1f386e46",
        grammar="d955e6db384c68ac5797e881b795fd36d788e87a03547f9a87e48fbd7c5b361b",
        dialect="put",
    ),
)


class Grammar(NamedTuple):
    """A grammar that may be given to the engine."""

    goal: str
    """The goal sentence in it: plain words."""
    dialect: Dialect


def check_rules(domain: str, grammar: str, source: str) -> Grammar:
    """Find out which release a domain and a grammar are of.

    Raises:
        GameError: They are not known.
    """
    goals = _GOAL.findall(grammar)
    if len(goals) != 1 or not PLAIN_WORDS.fullmatch(goals[0]):
        raise GameError(
            "its grammar does not say `Your task is to: …` once and in plain words", source=source
        )
    found = (_digest(domain), _digest(_GOAL.sub(UNKNOWN_GOAL, grammar)))
    for rules in _KNOWN:
        if found == (rules.domain, rules.grammar):
            return Grammar(goals[0], rules.dialect)
    what = "grammar" if found[0] in {rules.domain for rules in _KNOWN} else "PDDL domain"
    raise GameError(
        f"its {what} is of no release that is known (alfworld 0.4.2, json_2.1.2, json_2.1.1), and"
        " a grammar can hold code, so the game is not played; get the games anew with"
        " alfworld-download",
        source=source,
    )


def shared(text: str) -> str:
    """Return one and the same object for equal texts: thousands of games have one domain."""
    return sys.intern(text)


def _digest(text: str) -> str:
    return sha256(text.encode("utf-8", errors="surrogatepass")).hexdigest()
