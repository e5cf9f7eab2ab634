"""What memory-transplants prints, and what its figures cannot say."""

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from importlib import resources
from itertools import chain
from statistics import NormalDist, fmean, stdev
from typing import Final

import yaml
from pydantic import BaseModel

from langgraft.benchmarks.published import Finding

_FILE: Final = "memory-transplants.yaml"
_STATIC: Final = frozenset({"C_ONLY", "FULL", "IN_DOM", "CROSS"})
_STEPS: Final = 10_000
"""Points at which the distribution of a maximum is averaged over."""


class Published(BaseModel, frozen=True, extra="forbid"):
    """Tables 3 to 6: accuracy in percent."""

    conditions: tuple[str, ...]
    problems: int
    tables: Mapping[str, Mapping[str, tuple[float, ...]]]
    """`<solver> <budget>` → system → a value for each condition."""
    starred: Mapping[str, Mapping[str, tuple[str, ...]]]
    """Cells of two runs, by table and system."""

    def cells(self, solver: str) -> Iterator[tuple[str, str, str, float]]:
        """Yield table, system, condition and value of a solver's cells."""
        for table, systems in self.tables.items():
            if table.startswith(solver):
                for system, values in systems.items():
                    for condition, value in zip(self.conditions, values, strict=True):
                        yield table, system, condition, value

    def runs_of(self, table: str, system: str, condition: str) -> int:
        """Return how many runs a cell is said to be of."""
        return 2 if condition in self.starred.get(table, {}).get(system, ()) else 3


@cache
def published() -> Published:
    """Return the paper's tables."""
    text = resources.files("langgraft.benchmarks.published").joinpath(_FILE).read_text("utf-8")
    return Published.model_validate(yaml.safe_load(text))


def possible(value: float, problems: int, runs: int) -> bool:
    """Say whether a mean accuracy, printed to one digit, can come of whole numbers of solved problems."""
    total = value / 100 * problems * runs
    return any(
        abs(100 * whole / (problems * runs) - value) < 0.05 + 1e-9
        for whole in (int(total), int(total) + 1)
    )


def findings() -> tuple[Finding, ...]:
    """Recompute what the paper says of its tables."""
    paper = published()
    strong, weak = list(paper.cells("7B")), list(paper.cells("3B"))
    bare = [value for _, system, condition, value in strong if _is_bare(system, condition)]
    either = [
        cell for cell in weak if not any(possible(cell[3], paper.problems, n) for n in (2, 3))
    ]
    marked = [
        cell for cell in weak if not possible(cell[3], paper.problems, paper.runs_of(*cell[:3]))
    ]
    static = [(value, cell) for *cell, value in weak if cell[2] in _STATIC]
    best_static = max(static)
    starred = sum(map(len, chain.from_iterable(s.values() for s in paper.starred.values())))
    gains = {name: _own_gain(cells) for name, cells in (("7B", strong), ("3B", weak))}
    lucky = [_best_by_chance(cells) for cells in (strong, weak)]
    ranges = _ranges(paper.tables["7B 800"])
    steadier = [name for name, each in ranges.items() if each < ranges["lightweight"]]
    room = [
        more - less
        for less, more in zip(
            paper.tables["7B 400"]["none"], paper.tables["7B 800"]["none"], strict=True
        )
    ]
    return (
        Finding(
            "Tables 3, 4",
            "cells of the very same prompts, without memory",
            "(spread ascribed to orders)",
            f"{len(bare)} of {len(strong)} cells, {min(bare)} to {max(bare)} %",
            None,
        ),
        Finding(
            "Tables 5, 6",
            "cells that no whole number of solved problems gives",
            "0",
            f"{len(either)} of {len(weak)} with two or three runs a cell; {len(marked)} with two only"
            " where starred",
            False,
        ),
        Finding(
            "§7.1",
            "largest gain, 7B and 3B",
            "+6.7 and +15.0, against chosen baselines",
            f"{gains['7B']:+.1f} and {gains['3B']:+.1f} against the system's own NM in the same table",
            False,
        ),
        Finding(
            "§7.1",
            "gain of the best of 48 cells if memory did nothing, 7B and 3B",
            "(none told)",
            f"{lucky[0]:+.1f} and {lucky[1]:+.1f}: 48 normal draws that vary as the 22 cells do",
            None,
        ),
        Finding(
            "§7.4",
            "what more room does without memory",
            "67.7 to 63.3, ascribed to noise from what is retrieved",
            f"{min(room):+.1f} to {max(room):+.1f} by condition, where nothing is retrieved",
            False,
        ),
        Finding(
            "App. D",
            "best static cell, 3B",
            "44.3",
            f"{best_static[0]} ({best_static[1][1]} {best_static[1][2]}, {best_static[1][0]})",
            False,
        ),
        Finding(
            "§7.3",
            "most stable system",
            "lightweight",
            "7B, by range over conditions at 800 tokens: "
            + ", ".join(f"{name} {each:.1f}" for name, each in ranges.items()),
            not steadier,
        ),
        Finding(
            "App. D",
            "runs of the 3B plan",
            "156 of 210",
            f"{3 * len(weak) - starred}, by {starred} starred cells of two runs",
            False,
        ),
        Finding(
            "App. A",
            "95 % interval of three seeds",
            "least and greatest of the three",
            "covers the mean in 75 % of cases, 1 - 2 × (1/2)³, if seeds are normal draws about it; what"  # noqa: RUF001
            " other problems would give, in fewer",
            False,
        ),
    )


def _own_gain(cells: Sequence[tuple[str, str, str, float]]) -> float:
    """Return the gain of the best cell over its own system's NM in the same table."""
    best = max((cell for cell in cells if cell[1] != "none"), key=lambda cell: cell[3])
    own = next(cell[3] for cell in cells if cell[:2] == best[:2] and cell[2] == "NM")
    return best[3] - own


def _best_by_chance(cells: Sequence[tuple[str, str, str, float]]) -> float:
    """Return what the best cell with memory gains where all vary as those without do, on average."""
    bare = [value for _, system, condition, value in cells if _is_bare(system, condition)]
    draws = len(cells) - len(bare)
    normal = NormalDist()
    below = [(step + 0.5) / _STEPS for step in range(_STEPS)]
    best = fmean(normal.inv_cdf(share ** (1 / draws)) for share in below)
    return best * stdev(bare)


def _ranges(table: Mapping[str, Sequence[float]]) -> dict[str, float]:
    """Return how far apart a system's conditions are, the steadiest system first."""
    found = {name: max(each) - min(each) for name, each in table.items() if name != "none"}
    return dict(sorted(found.items(), key=lambda each: (round(each[1], 1), each[0])))


def _is_bare(system: str, condition: str) -> bool:
    return system == "none" or condition == "NM"
