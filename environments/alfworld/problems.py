"""Checking a PDDL problem before the engine sees it, and what each task family asks for.

The engine's planner is native code that trusts its input: what reaches it is a problem of
ALFWorld's domain, in which every name is declared and every fact is one that the domain knows.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias

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
