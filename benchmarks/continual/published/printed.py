"""What continual-memory prints, as data: shares in percent, differences in points."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

World: TypeAlias = Literal["ALFWorld", "BabyAI"]
Role: TypeAlias = Literal["raw", "agg", "ind", "step"]
Task: TypeAlias = Literal["A", "B"]

ROLES: Final[Mapping[Role, str]] = {
    "raw": "Raw",
    "agg": "Insight (Cond-Agg)",
    "ind": "Cond-Ind",
    "step": "Cond-Step",
}
"""The paper's conditions; its Insight of Study 1 and Cond-Agg of Study 2 are one (§A.1.4, §A.1.5)."""

STUDY_1: Final[tuple[Role, ...]] = ("raw", "agg")
STUDY_2: Final[tuple[Role, ...]] = ("agg", "ind", "step")

RUNS, TEST_ITEMS, TRAIN_ITEMS, MILESTONES = 2, 100, 200, 1
"""Table 8."""


@dataclass(frozen=True, slots=True)
class Family:
    """A task family of Table 2."""

    domain: str
    baseline: float
    """Success without memory."""
    solved: int
    """n_s: test items solved without memory."""
    failed: int
    """n_f."""


TASKS: Final[Mapping[World, Mapping[Task, Family]]] = {
    "ALFWorld": {
        "A": Family("pick_and_place", 95, 95, 5),
        "B": Family("pick_clean_then_place", 54, 54, 46),
    },
    "BabyAI": {
        "A": Family("action_obj_door", 70, 70, 30),
        "B": Family("find_obj", 49, 49, 51),
    },
}
"""Table 2; the paper's names of the families are longer or shorter, these are those of our data."""


@dataclass(frozen=True, slots=True)
class Forward:
    """A row of Tables 3 and 5: `X→T` is tested on T."""

    scratch: float
    crossed: float
    transfer: float
    delta_rr: float
    """0.0 also where *about 0* is printed."""
    delta_nl: float | None
    """`None` where it is left out: under ten items."""


@dataclass(frozen=True, slots=True)
class Backward:
    """A cell pair of Tables 4 and 6: `X→Y` is tested on X."""

    transfer: float
    delta_rr: float


Place: TypeAlias = tuple[str, World, Role]
"""Sequence, world and condition."""

TABLE_3: Final[Mapping[Place, Forward]] = {
    ("A>B", "ALFWorld", "raw"): Forward(80.5, 71.0, -9.5, 4.6, -26.1),
    ("A>B", "ALFWorld", "agg"): Forward(65.5, 72.0, 6.5, 9.3, 3.3),
    ("A>B", "BabyAI", "raw"): Forward(53.5, 46.0, -7.5, -2.0, -12.7),
    ("A>B", "BabyAI", "agg"): Forward(46.0, 55.0, 9.0, 8.2, 9.8),
    ("B>A", "ALFWorld", "raw"): Forward(92.0, 91.5, -0.5, -0.7, None),
    ("B>A", "ALFWorld", "agg"): Forward(97.0, 94.5, -2.5, -1.1, None),
    ("B>A", "BabyAI", "raw"): Forward(64.0, 71.0, 7.0, 2.9, 16.7),
    ("B>A", "BabyAI", "agg"): Forward(65.5, 73.0, 7.5, 1.4, 21.7),
}

TABLE_5: Final[Mapping[Place, Forward]] = {
    ("A>B", "ALFWorld", "agg"): Forward(65.5, 72.0, 6.5, 9.3, 3.3),
    ("A>B", "ALFWorld", "ind"): Forward(55.0, 53.0, -2.0, -4.6, 0.9),
    ("A>B", "ALFWorld", "step"): Forward(79.5, 78.0, -1.5, -3.7, 1.1),
    ("A>B", "BabyAI", "agg"): Forward(46.0, 55.0, 9.0, 8.2, 9.8),
    ("A>B", "BabyAI", "ind"): Forward(32.0, 47.0, 15.0, 19.4, 10.8),
    ("A>B", "BabyAI", "step"): Forward(48.0, 45.5, -2.5, -4.1, -1.0),
    ("B>A", "ALFWorld", "agg"): Forward(97.0, 94.5, -2.5, -1.1, None),
    ("B>A", "ALFWorld", "ind"): Forward(96.5, 97.0, 0.5, 0.5, None),
    ("B>A", "ALFWorld", "step"): Forward(99.0, 98.5, -0.5, -1.1, None),
    ("B>A", "BabyAI", "agg"): Forward(65.5, 73.0, 7.5, 1.4, 21.7),
    ("B>A", "BabyAI", "ind"): Forward(75.5, 74.5, -1.0, 0.0, -1.7),
    ("B>A", "BabyAI", "step"): Forward(70.0, 77.5, 7.5, 4.3, 15.0),
}

TABLE_4: Final[Mapping[Place, Backward]] = {
    ("A>B", "ALFWorld", "raw"): Backward(0.5, 0.5),
    ("A>B", "ALFWorld", "agg"): Backward(-1.0, 0.0),
    ("A>B", "BabyAI", "raw"): Backward(3.0, 2.9),
    ("A>B", "BabyAI", "agg"): Backward(0.0, 2.2),
    ("B>A", "ALFWorld", "raw"): Backward(-5.5, 2.9),
    ("B>A", "ALFWorld", "agg"): Backward(-3.5, 4.6),
    ("B>A", "BabyAI", "raw"): Backward(-4.0, 2.1),
    ("B>A", "BabyAI", "agg"): Backward(3.5, 8.2),
}

TABLE_6: Final[Mapping[Place, Backward]] = {
    ("A>B", "ALFWorld", "agg"): Backward(-1.0, 0.0),
    ("A>B", "ALFWorld", "ind"): Backward(1.5, 1.1),
    ("A>B", "ALFWorld", "step"): Backward(-0.5, -0.5),
    ("A>B", "BabyAI", "agg"): Backward(0.0, 2.2),
    ("A>B", "BabyAI", "ind"): Backward(-10.0, -6.4),
    ("A>B", "BabyAI", "step"): Backward(3.0, -2.2),
    ("B>A", "ALFWorld", "agg"): Backward(-3.5, 4.6),
    ("B>A", "ALFWorld", "ind"): Backward(0.5, -0.9),
    ("B>A", "ALFWorld", "step"): Backward(-5.0, -4.6),
    ("B>A", "BabyAI", "agg"): Backward(3.0, 8.2),
    ("B>A", "BabyAI", "ind"): Backward(4.0, 7.1),
    ("B>A", "BabyAI", "step"): Backward(0.5, -5.1),
}

ABOUT_ZERO: Final[Place] = ("B>A", "BabyAI", "ind")
"""Whose ΔRR of Table 5 is printed as about 0."""

CONTEXT_DIVERSITY: Final[Mapping[tuple[Task, Role], float]] = {
    ("A", "ind"): 0.45,
    ("A", "agg"): 0.29,
    ("B", "ind"): 0.38,
    ("B", "agg"): 0.41,
}
"""Appendix D, BabyAI, within a task."""

LEAST_KEY_DIVERSITY: Final = 0.91
"""Of Cond-Ind in both tasks of BabyAI."""

COLLAPSE: Final[Mapping[str, float]] = {
    "unique": 13,
    "retrieved": 240,
    "coverage": 5.4,
    "top1": 88.5,
    "top1_queries": 82,
    "queries": 200,
    "loss": -17,
}
"""Cond-Ind on task B of BabyAI: Figure 11, appendix D, and case 4 (`top1_queries` of `queries`)."""

SCRATCH: Final[Mapping[tuple[World, Task, Role], float]] = {
    ("ALFWorld", "A", "step"): 99.0,
    ("ALFWorld", "B", "step"): 79.5,
    ("ALFWorld", "A", "ind"): 96.5,
    ("ALFWorld", "B", "ind"): 55.0,
    ("ALFWorld", "A", "agg"): 97.0,
    ("ALFWorld", "B", "agg"): 65.5,
    ("BabyAI", "A", "step"): 70.0,
    ("BabyAI", "B", "step"): 48.0,
    ("BabyAI", "A", "ind"): 75.5,
}
"""Success within a task, as appendix C repeats it."""

STEP_LEAD: Final = 24.5
"""Cond-Step less Cond-Ind on task B of ALFWorld, appendix C."""


def tested(sequence: str, direction: str) -> Task:
    """Return the task that a transfer is measured on: forward the later one, backward the other."""
    name = sequence[-1] if direction == "forward" else sequence[0]
    return "A" if name == "A" else "B"


def scratch(world: World, task: Task, role: Role) -> float:
    """Return success within a task, from Tables 3 and 5."""
    found = {**TABLE_3, **TABLE_5}
    return found["A>B" if task == "B" else "B>A", world, role].scratch
