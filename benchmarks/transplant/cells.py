"""The cells of a transplant study: what one solver did with one system, budget, condition and control."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TypeAlias, cast

import numpy as np

from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison.estimates import Matrix
from langgraft.benchmarks.harness.study import PlanLogReader
from langgraft.benchmarks.transplant.plan import NOISE, Side

Place: TypeAlias = tuple[str, int, str, str, str]
"""Solver, budget, system, condition, control."""


@dataclass(frozen=True)
class Cell:
    """What came of one cell of the design."""

    place: Place
    mode: str
    planned: int
    scores: Mapping[int, Mapping[str, float]]
    """Seed → problem → outcome."""
    by_last_token: Mapping[int, Mapping[str, float]]
    """The same by the paper's extraction, where that says something."""
    prompts: Mapping[tuple[int, str], str]
    """Seed and problem → SHA-256 of the prompt."""
    asked: int
    """Attempts in which memory was asked."""
    empty: int
    """Those of them in which nothing was recalled."""
    partial: int
    """Those in which something was recalled, and something else found had no room."""
    remedied: bool = False
    """Whether it is a condition with a remedy."""

    @property
    def done(self) -> int:
        """Attempts that have a result."""
        return sum(map(len, self.scores.values()))

    @property
    def complete(self) -> bool:
        """Whether no result is missing."""
        return self.done == self.planned

    @cached_property
    def seeds(self) -> tuple[int, ...]:
        """Return a seed for each observation: those whose prompts are all the same are one.

        Runs that share no reply are what they are.
        """
        if self.place[3] == NOISE:
            return tuple(sorted(self.scores))
        seen: dict[tuple[tuple[str, str], ...], int] = {}
        for seed, outcomes in sorted(self.scores.items()):
            key = tuple((item, self.prompts[seed, item]) for item in sorted(outcomes))
            seen.setdefault(key, seed)
        return tuple(sorted(seen.values()))

    @property
    def items(self) -> list[str]:
        """Return the problems of its first observation, sorted."""
        return sorted(self.scores[self.seeds[0]])

    def matrix(self, items: Sequence[str]) -> Matrix:
        """Return the outcomes of problems by observations."""
        rows = [[self.scores[seed][item] for seed in self.seeds] for item in items]
        return np.array(rows, dtype=np.float64)


def read_chosen(log: PlanLogReader) -> dict[tuple[str, str], dict[Side, Mapping[str, JSON]]]:
    """Return what each domain selected, by solver and system; what is not selected yet is left out."""
    found: dict[tuple[str, str], dict[Side, Mapping[str, JSON]]] = {}
    for run in log.runs:
        f = run.factors
        if f["kind"] == "select" and (results := log.results(run.name)):
            sides = found.setdefault((str(f["solver"]), str(f["system"])), {})
            chosen = cast("Mapping[str, JSON]", results[0]["chosen"])
            sides[cast("Side", f["architecture"])] = chosen
    return found


def read_admitted(log: PlanLogReader) -> dict[tuple[str, str, str], tuple[int, int]]:
    """Return how many items were admitted, and of how many, by solver, system and condition."""
    found: dict[tuple[str, str, str], tuple[int, int]] = {}
    for run in log.runs:
        f = run.factors
        last = log.results(run.name)[-1:] if f["kind"] == "admit" else []
        for result in last:
            if "admitted" in result:
                place = str(f["solver"]), str(f["system"]), str(f["condition"])
                kept, offered = found.get(place, (0, 0))
                here = cast("int", result["admitted"]), cast("int", result["offered"])
                found[place] = kept + here[0], offered + here[1]
    return found


def read_cells(log: PlanLogReader) -> dict[Place, Cell]:
    """Read the evaluated runs of a log, cell by cell; the order of runs and items plays no part."""
    cells: dict[Place, Cell] = {}
    for run in sorted(log.runs, key=lambda each: each.name):
        f = run.factors
        if f["kind"] != "eval":
            continue
        solver, system, condition, control = (
            str(f[name]) for name in ("solver", "system", "condition", "control")
        )
        place = solver, cast("int", f["budget"]), system, condition, control
        seed, results = cast("int", f["seed"]), log.results(run.name)
        known = cells.get(place) or Cell(
            place, str(f["mode"]), 0, {}, {}, {}, 0, 0, 0, remedied=f["remedy"] is not None
        )
        asked = [each for each in results if each["asked"]]
        tokens = {
            str(each["problem"]): float(bool(each["by_last_token"]))
            for each in results
            if each["by_last_token"] is not None
        }
        cells[place] = replace(
            known,
            planned=known.planned + run.length,
            scores={
                **known.scores,
                seed: {str(each["problem"]): float(bool(each["success"])) for each in results},
            },
            by_last_token={**known.by_last_token, seed: tokens},
            prompts={
                **known.prompts,
                **{(seed, str(each["problem"])): str(each["prompt"]) for each in results},
            },
            asked=known.asked + len(asked),
            empty=known.empty + sum(not each["recalled"] for each in asked),
            partial=known.partial
            + sum(bool(each["recalled"] and each["lacked_room"]) for each in asked),
        )
    return cells
