"""The rules and words that are known; others are refused.

TextWorld evaluates Python expressions that it finds in a game's grammar. A game file is data from
elsewhere, so it is played only where its grammar, the goal sentence taken out, is one of these.
"""

import re
import sys
from hashlib import sha256
from typing import Final, NamedTuple

from langgraft._core.errors import GameError
from langgraft.environments.alfworld.games import Dialect
from langgraft.environments.alfworld.goals import PLAIN_WORDS

UNKNOWN_GOAL: Final = "UNKNOWN GOAL"
"""What a grammar has where a game has its goal sentence."""

_GOAL: Final = re.compile(r'(?<="rhs": "Your task is to: )[^"]*(?=\.")')


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
