"""The wording of lessons: a few ways to say each thing."""

from collections.abc import Mapping
from enum import StrEnum

from langgraft.benchmarks.simulated.alfworld.observations import Kind


class Topic(StrEnum):
    """What a lesson can be about."""

    STEP = "step"
    STEP_NOT_PLACING = "step, not placing alone"
    STRAIGHT = "straight"
    ELSEWHERE = "elsewhere"
    FOUND_ON = "found on"
    LIKELY = "likely"
    OPEN = "open"
    SEARCH_VAGUE = "search vague"
    COMMONPLACE = "commonplace"

    @property
    def of_search(self) -> bool:
        """Whether it is about finding the thing rather than about dealing with it."""
        return self in {Topic.FOUND_ON, Topic.LIKELY, Topic.OPEN, Topic.SEARCH_VAGUE}


SITUATIONS: Mapping[Kind, tuple[str, ...]] = {
    Kind.PLACE: (
        "the task is to put a {thing} or the like somewhere",
        "you are asked to put a thing in or on a {place}",
    ),
    Kind.CLEAN: (
        "the task asks for a clean {thing} in some place",
        "you have to clean a thing such as a {thing} and put it somewhere",
    ),
    Kind.HEAT: (
        "the task asks for a hot {thing} in some place",
        "you have to heat a thing such as a {thing} and put it somewhere",
    ),
    Kind.COOL: (
        "the task asks for a cool {thing} in some place",
        "you have to cool a thing such as a {thing} and put it somewhere",
    ),
    Kind.PAIR: (
        "the task asks for two things of a kind in one place",
        "you have to put two {thing}s somewhere",
    ),
    Kind.LIGHT: (
        "the task is to examine a {thing} with a lamp",
        "you have to look at a thing such as a {thing} under a {place}",
    ),
}
"""Kind of goal → clauses that can follow `when`."""

SEARCHING: tuple[str, ...] = (
    "you have to find a {thing}",
    "you are looking for a thing such as a {thing}",
    "you are to find something that is not in sight",
)
"""Clauses for lessons about searching."""

STEPS: Mapping[Kind, tuple[str, ...]] = {
    Kind.CLEAN: (
        "Take it to a sinkbasin and use 'clean <thing> with <sinkbasin>' before you put it down.",
        "Only at a sinkbasin does 'clean <thing> with <sinkbasin>' work; do it before the rest.",
        "Clean it with the sinkbasin first; then bring it where it belongs.",
    ),
    Kind.HEAT: (
        "Take it to a microwave and use 'heat <thing> with <microwave>' before you put it down.",
        "Heat it with the microwave first; then bring it where it belongs.",
    ),
    Kind.COOL: (
        "Take it to a fridge and use 'cool <thing> with <fridge>' before you put it down.",
        "Cool it with the fridge first; then bring it where it belongs.",
    ),
    Kind.PAIR: (
        "Carry one at a time: put the first in its place, and then go back for the other one.",
        "One hand holds one thing. Bring them one after the other to the same place.",
    ),
    Kind.LIGHT: (
        "Hold it, go to the lamp, and use the {place}.",
        "With the thing in hand, switch on the lamp; that is all it takes.",
    ),
}
"""Kind of goal → what its step is, and when it is to be done."""

PREFER: Mapping[Kind, tuple[str, ...]] = {
    Kind.CLEAN: ("Prefer to clean it with a sinkbasin first over putting it down as it is.",),
    Kind.HEAT: ("Prefer to heat it with a microwave first over putting it down as it is.",),
    Kind.COOL: ("Prefer to cool it with a fridge first over putting it down as it is.",),
    Kind.PAIR: ("Prefer to carry one at a time over stopping after the first.",),
    Kind.LIGHT: (
        "Prefer to use the lamp with the thing in hand over examining it beside the lamp.",
    ),
}
"""Kind of goal → its step, as the better of two ways."""

LESSONS: Mapping[Topic, tuple[str, ...]] = {
    Topic.STRAIGHT: (
        "Take it, go straight to where it belongs, and put it down. Nothing else is needed.",
        "Once it is in hand, go to the place that was named and set it down there.",
    ),
    Topic.ELSEWHERE: (
        "If nothing comes of putting it down, take it up and try another place of the same kind.",
        "Make sure that it is the right thing, and that it lies in the right place.",
    ),
    Topic.FOUND_ON: (
        "Check the {found} early: it is likely to be there.",
        "Look on or in a {found} before other places.",
    ),
    Topic.LIKELY: (
        "Check countertops, tables and other open surfaces first, where such things usually are.",
        "Start with the likely places, what lies in the open first, not in the order of the list.",
    ),
    Topic.OPEN: (
        "Open closed cabinets and drawers as you pass, since it may be inside.",
        "Look inside: open each closed place when you stand before it.",
    ),
    Topic.SEARCH_VAGUE: (
        "Searching can take many moves. Be efficient.",
        "Remember what was seen, and do not waste moves.",
    ),
    Topic.COMMONPLACE: (
        "Choose actions that are available, and word them exactly.",
        "Think about the task again where nothing seems to happen.",
        "Work step by step and watch what each action leads to.",
    ),
}
