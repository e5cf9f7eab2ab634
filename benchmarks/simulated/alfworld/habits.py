"""The ways of acting in which the learner can be right or wrong, and how it comes by them.

The weights are the learner's declared ignorance; they are the same whatever the world holds.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from langgraft._core.canonical import seeded_fraction
from langgraft.benchmarks.simulated.alfworld.goals import TREATED, Goal, Kind
from langgraft.benchmarks.simulated.dice import Dice


class Care(StrEnum):
    """What becomes of the step that a goal asks for besides taking a thing and putting it down."""

    DO = "do"
    """It is done: the thing is cleaned, heated or cooled; the second one fetched; the lamp lit."""
    OMIT = "omit"
    """It is left out."""
    FUMBLE = "fumble"
    """The thing is put where it should be treated, and taken up again."""


class Search(StrEnum):
    """In which order it looks for a thing."""

    LIKELY = "likely"
    """Where such things usually are, what is in the open first; then what has to be opened."""
    LISTED = "listed"
    """As the room is described, one after the other, opening what is closed."""
    PASSING = "passing"
    """As the room is described; what is closed is left for the end."""


class Grasp(StrEnum):
    """How well it knows of itself what a task asks for: a matter of the task, not of the day."""

    FIRM = "firm"
    UNSURE = "unsure"
    LOST = "lost"


GRASP_WEIGHTS: Mapping[Grasp, float] = {Grasp.FIRM: 0.5, Grasp.UNSURE: 0.15, Grasp.LOST: 0.35}
"""Shares of the tasks whose goal asks for a step of its own."""
KNOWS: Mapping[Grasp, float] = {Grasp.FIRM: 0.97, Grasp.UNSURE: 0.5, Grasp.LOST: 0.05}
"""Chance to think of the step unaided."""
FUMBLES = 0.2
"""Chance that a thing is treated wrongly where its treatment would be left out."""
YIELDS = 0.1
"""Chance that a firm grasp gives way to an attempt that does without the step."""
HEEDS_FAILURE = 0.5
"""Chance to see, in a failed attempt at the same kind of goal that is followed, that the step was
missing."""
SEARCH_WEIGHTS: Mapping[Search, float] = {
    Search.LIKELY: 0.7,
    Search.LISTED: 0.2,
    Search.PASSING: 0.1,
}


@dataclass(frozen=True, slots=True)
class Habits:
    """How it means to go about an episode; `None` where it does not arise or nothing is said."""

    care: Care | None = None
    search: Search | None = None
    first: tuple[str, ...] = ()
    """Kinds of places to look at before all others."""
    spare: Kind | None = None
    """A treatment that nobody asked for."""

    def or_else(self, other: "Habits") -> "Habits":
        """Fill what is open from `other`."""
        return Habits(
            self.care or other.care,
            self.search or other.search,
            self.first or other.first,
            self.spare or other.spare,
        )


@dataclass(frozen=True, slots=True)
class Counsel:
    """What memory says about one kind of goal."""

    advised: Habits = field(default_factory=Habits)
    """What lines of advice say."""
    shown: Habits = field(default_factory=Habits)
    """What the first successful attempt shows."""
    lacking: bool = False
    """Whether a failed attempt at the same kind of goal did without the step."""
    opens: bool = False
    """Whether some line says to open what is closed."""


def grasp_of(goal: Goal, task: str) -> Grasp:
    """Say how well it understands a task: by the task's own text, the same for every seed."""
    left = seeded_fraction("alfworld", "grasp", goal.kind, task) * sum(GRASP_WEIGHTS.values())
    for grasp, weight in GRASP_WEIGHTS.items():
        left -= weight
        if left < 0:
            return grasp
    return Grasp.LOST


def settle(
    goal: Goal, counsel: Counsel, declared: Habits, dice: Dice, mimicry: float
) -> tuple[Habits, bool]:
    """Decide on the habits of an episode, and say whether an attempt's example decided on the step.

    What is advised comes first, then what the learner said before in this episode, then the
    example of an attempt, if it is followed, then a draw.
    """
    shown = _followed(counsel, dice) if dice.coin("mimicry", mimicry) else Habits()
    known = counsel.advised.or_else(declared)
    care, led = known.care, False
    if goal.kind is Kind.PLACE:
        care = None
    elif care is None:
        own = grasp_of(goal, dice.text)
        led = shown.care is not None and _gives_way(own, shown.care, dice)
        care = shown.care if led else _draw_care(own, dice)
        if care is Care.OMIT and goal.kind in TREATED and dice.coin("fumble", FUMBLES):
            care = Care.FUMBLE
    search = known.search or dice.pick("search", SEARCH_WEIGHTS)
    if counsel.opens and search is Search.PASSING:
        search = Search.LISTED
    spare = shown.spare if goal.kind is Kind.PLACE else None
    return Habits(care, search, known.first or shown.first, spare), led


def _followed(counsel: Counsel, dice: Dice) -> Habits:
    """Return what attempts show: a success by its example, a failure by what it lacks."""
    if counsel.lacking and dice.coin("heeds failure", HEEDS_FAILURE):
        return counsel.shown.or_else(Habits(care=Care.DO))
    return counsel.shown


def _gives_way(own: Grasp, shown: Care, dice: Dice) -> bool:
    """Say whether the example of an attempt goes before what it knows of itself."""
    return shown is Care.DO or own is not Grasp.FIRM or dice.coin("yields", YIELDS)


def _draw_care(own: Grasp, dice: Dice) -> Care:
    return Care.DO if dice.coin("care", KNOWS[own]) else Care.OMIT
