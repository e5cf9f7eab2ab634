"""Reading one game: the JSON of a `game.tw-pddl`, checked from end to end, its PDDL problem first.

TextWorld evaluates Python expressions that it finds in a game's grammar. A game file is data from
elsewhere, so it is played only where its grammar, the goal sentence taken out, is a known one. The
engine's planner is native code that trusts its input: what reaches it is a problem of ALFWorld's
domain, in which every name is declared and every fact is one that the domain knows.
"""

import json
import re
import sys
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any, Final, NamedTuple, TypeAlias

from langgraft._core.canonical import JSON
from langgraft._core.errors import GameError
from langgraft.environments.alfworld.games import FAMILIES, Dialect, Game

LONGEST: Final = 400_000
"""Characters; the longest of the released problems has 104,757."""

_TOKEN: Final = re.compile(r"[()]|[^\s()]+", re.ASCII)
_TEXT: Final = re.compile(r"[A-Za-z0-9_()\-:?= \t\r\n]*", re.ASCII)
_NAME: Final = re.compile(r"[A-Za-z][A-Za-z0-9_]{0,199}", re.ASCII)
_SECTIONS: Final = ("problem", ":domain", ":objects", ":init", ":goal")
_TYPES: Final = ("agent", "location", "receptacle", "object", "rtype", "otype")
_FACTS: Final[dict[str, tuple[str, ...]]] = {
    "atLocation": ("agent", "location"),
    "receptacleAtLocation": ("receptacle", "location"),
    "objectAtLocation": ("object", "location"),
    "openable": ("receptacle",),
    "opened": ("receptacle",),
    "inReceptacle": ("object", "receptacle"),
    "isReceptacleObject": ("object",),
    "inReceptacleObject": ("object", "object"),
    "isReceptacleObjectFull": ("object",),
    "wasInReceptacle": ("object", "receptacle"),
    "checked": ("receptacle",),
    "examined": ("location",),
    "receptacleType": ("receptacle", "rtype"),
    "canContain": ("rtype", "otype"),
    "objectType": ("object", "otype"),
    "holds": ("agent", "object"),
    "holdsAny": ("agent",),
    "holdsAnyReceptacleObject": ("agent",),
    "full": ("receptacle",),
    "isClean": ("object",),
    "cleanable": ("object",),
    "isHot": ("object",),
    "heatable": ("object",),
    "isCool": ("object",),
    "coolable": ("object",),
    "pickupable": ("object",),
    "moveable": ("object",),
    "toggleable": ("object",),
    "isOn": ("object",),
    "isToggled": ("object",),
    "sliceable": ("object",),
    "isSliced": ("object",),
}
"""Predicate → the types of what it is about."""

_Facts: TypeAlias = dict[str, list[tuple[str, ...]]]
"""Predicate → what it is true of."""

PLAIN_WORDS: Final = re.compile(r"[a-z]+(?: [a-z]+){1,19}", re.ASCII)
"""A goal sentence; it stands in the grammar, in which other characters can mean code."""

_PUT_ONE: Final = (
    "( and ( exists ( ?r - receptacle ) ( exists ( ?o - object ) ( and {facts} ) ) ) )"
)


class UnusableProblemError(ValueError):
    """A problem is not one to give to the engine; the message says why."""


def check_problem(text: str, family: str, goal: str) -> None:
    """Check that a problem is whole, of this domain, and asks for what the sentence `goal` says.

    Raises:
        UnusableProblemError: It is not, or its goal holds already.
    """
    if len(text) > LONGEST:
        raise UnusableProblemError(f"has {len(text)} characters; at most {LONGEST} are read")
    if not _TEXT.fullmatch(text):
        bad = next(character for character in text if not _TEXT.fullmatch(character))
        raise UnusableProblemError(f"holds the character {bad!r}")
    problem, domain, objects, init, wish = _sections(_TOKEN.findall(text))
    if len(problem) != 1 or not _NAME.fullmatch(problem[0]):
        raise UnusableProblemError("has no plain name")
    if domain != ["alfred"]:
        raise UnusableProblemError("is not of the domain `alfred`")
    facts = _facts(init, _declared(objects))
    thing, receptacle = _kinds(wish, family, goal)
    if 0 < GOALS[family].wanted <= _in_place(facts, family, thing, receptacle):
        raise UnusableProblemError("is solved before the first command: its goal holds already")


def _sections(words: Sequence[str]) -> list[list[str]]:
    """Return the contents of the five sections, their names taken off."""
    if list(words[:2]) != ["(", "define"] or words[-1] != ")":
        raise UnusableProblemError("is not one `(define …)`")
    sections: list[list[str]] = []
    depth = 0
    for word in words[2:-1]:
        depth += {"(": 1, ")": -1}.get(word, 0)
        if word == "(" and depth == 1:
            sections.append([])
        elif depth > 0:
            sections[-1].append(word)
        elif depth < 0:
            break
        elif word != ")":
            raise UnusableProblemError(f"has {word[:40]!r} outside of its sections")
    if depth:
        raise UnusableProblemError("has parentheses that are not balanced")
    if tuple("".join(section[:1]) for section in sections) != _SECTIONS:
        raise UnusableProblemError(f"does not have the sections {', '.join(_SECTIONS)}")
    return [section[1:] for section in sections]


def _declared(words: Sequence[str]) -> dict[str, str]:
    """Return name → type."""
    types: dict[str, str] = {}
    in_any_case = set()
    for start in range(0, len(words), 3):
        name, dash, kind = (*words[start : start + 3], "", "")[:3]
        if dash != "-" or kind not in _TYPES or not _NAME.fullmatch(name):
            raise UnusableProblemError(f"declares {name[:40]!r} otherwise than `name - type`")
        types[name] = kind
        in_any_case.add(name.lower())
    if len(in_any_case) * 3 != len(words):  # the planner does not tell cases apart
        raise UnusableProblemError("declares a name twice")
    return types


def _facts(words: Sequence[str], types: Mapping[str, str]) -> _Facts:
    facts: _Facts = defaultdict(list)
    fact: list[str] | None = None
    for word in words:
        if word == "(" and fact is None:
            fact = []
        elif word == ")" and fact:
            _check_fact(fact, types)
            facts[fact[0]].append(tuple(fact[1:]))
            fact = None
        elif fact is None or word in "()":
            raise UnusableProblemError(f"has {word[:40]!r} where a fact should be")
        else:
            fact.append(word)
    if not facts["atLocation"]:
        raise UnusableProblemError("does not say where the agent is")
    return facts


def _check_fact(fact: Sequence[str], types: Mapping[str, str]) -> None:
    if _FACTS.get(fact[0]) != tuple(types.get(name) for name in fact[1:]):
        raise UnusableProblemError(
            f"states {' '.join(fact)[:80]!r}, which the domain does not know"
        )


def _kinds(words: Sequence[str], family: str, goal: str) -> tuple[str, str]:
    """Return the kinds of thing and receptacle that the goal is about."""
    named = GOALS[family].named_in(goal)
    if named is None:
        raise UnusableProblemError(f"is not of {family}: the goal reads {goal[:80]!r}")
    kinds = GOALS[family].typed_in(words)
    if kinds is None or tuple(kind.lower() for kind in kinds) != tuple(f"{n}type" for n in named):
        raise UnusableProblemError(f"has another goal than {goal[:80]!r} says")
    return kinds


def _in_place(facts: _Facts, family: str, thing: str, receptacle: str) -> int:
    """Return how many things lie where they are wanted, counted in the fullest receptacle."""
    things = {name for name, kind in facts["objectType"] if kind == thing}
    for state in GOALS[family].states:
        things &= {name for (name,) in facts[state]}
    places = {name for name, kind in facts["receptacleType"] if kind == receptacle}
    lying = Counter(
        place for name, place in set(facts["inReceptacle"]) if name in things and place in places
    )
    return max(lying.values(), default=0)


@dataclass(frozen=True, slots=True)
class GoalForm:
    """The goals of a family, with `{obj}` and `{recep}` (a lamp, where things are looked at)."""

    sentences: tuple[str, str]
    pddl: str
    states: tuple[str, ...] = ()
    """What else must be true of the thing: `isClean`, `isHot`, `isCool`."""
    wanted: int = 1
    """How many things must be in place; none where nothing is put down."""

    def named_in(self, sentence: str) -> tuple[str, str] | None:
        """Return the thing and the receptacle of a sentence; `None` where it is not of this form."""
        for template in self.sentences:
            pattern = template.format(obj="([a-z]+)", recep="([a-z]+)")
            if found := re.fullmatch(pattern, sentence):
                return found[1], found[2]
        return None

    def typed_in(self, tokens: Sequence[str]) -> tuple[str, str] | None:
        """Return the kinds of thing and receptacle of a goal in PDDL; `None` as above."""
        kinds: dict[str, str] = {}
        template = self.pddl.split()
        if len(template) != len(tokens):
            return None
        for expected, token in zip(template, tokens, strict=True):
            if not expected.startswith("{"):
                if token != expected:
                    return None
            elif kinds.setdefault(expected, token) != token:
                return None
        return kinds["{obj}"], kinds["{recep}"]


def _put(facts: str) -> str:
    return _PUT_ONE.replace("{facts}", facts)


def _changed(able: str, state: str) -> str:
    return _put(
        f"( {able} ?o ) ( objectType ?o {{obj}} ) ( receptacleType ?r {{recep}} )"
        f" ( {state} ?o ) ( inReceptacle ?o ?r )"
    )


GOALS: Final[dict[str, GoalForm]] = {
    "pick_and_place": GoalForm(
        ("put a {obj} in {recep}", "put some {obj} on {recep}"),
        _put("( inReceptacle ?o ?r ) ( objectType ?o {obj} ) ( receptacleType ?r {recep} )"),
    ),
    "look_at_obj": GoalForm(
        ("look at {obj} under the {recep}", "examine the {obj} with the {recep}"),
        "( and ( exists ( ?ot - object ?r - receptacle ?a - agent ?l - location ) ( and"
        " ( objectType ?ot {recep} ) ( toggleable ?ot ) ( isToggled ?ot )"
        " ( receptacleAtLocation ?r ?l ) ( atLocation ?a ?l ) ( inReceptacle ?ot ?r ) ) )"
        " ( exists ( ?o - object ?a - agent ) ( and"
        " ( objectType ?o {obj} ) ( holds ?a ?o ) ) ) )",
        wanted=0,
    ),
    "pick_clean_then_place": GoalForm(
        ("put a clean {obj} in {recep}", "clean some {obj} and put it in {recep}"),
        _changed("cleanable", "isClean"),
        ("isClean",),
    ),
    "pick_heat_then_place": GoalForm(
        ("put a hot {obj} in {recep}", "heat some {obj} and put it in {recep}"),
        _changed("heatable", "isHot"),
        ("isHot",),
    ),
    "pick_cool_then_place": GoalForm(
        ("put a cool {obj} in {recep}", "cool some {obj} and put it in {recep}"),
        _changed("coolable", "isCool"),
        ("isCool",),
    ),
    "pick_two_obj": GoalForm(
        ("put two {obj} in {recep}", "find two {obj} and put them in {recep}"),
        "( and ( exists ( ?r - receptacle ) ( exists ( ?o1 - object ) ( and"
        " ( objectType ?o1 {obj} ) ( receptacleType ?r {recep} ) ( inReceptacle ?o1 ?r )"
        " ( exists ( ?o2 - object ) ( and ( not ( = ?o1 ?o2 ) ) ( objectType ?o2 {obj} )"
        " ( receptacleType ?r {recep} ) ( inReceptacle ?o2 ?r ) ) ) ) ) ) )",
        wanted=2,
    ),
}
"""Task family → its goals, as ALFWorld's goal library words them."""


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
