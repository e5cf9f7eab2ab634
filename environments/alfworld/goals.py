"""What each task family asks for: its two sentences, and its goal in PDDL."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

PLAIN_WORDS: Final = re.compile(r"[a-z]+(?: [a-z]+){1,19}", re.ASCII)
"""A goal sentence; it stands in the grammar, in which other characters can mean code."""


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


_PUT_ONE: Final = (
    "( and ( exists ( ?r - receptacle ) ( exists ( ?o - object ) ( and {facts} ) ) ) )"
)


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
