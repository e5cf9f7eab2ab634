"""What intervals, corrected p values and detectable differences do on outcomes whose truth is known.

Outcomes are drawn as in docs/statistics.md: items of a logit-normal difficulty (SD 1.6), a shift of the
logit of every run of a memory, none of the runs without memory. The null hypothesis is true for the
mean over items and orders, which a shift on the logit scale alone would not make it.
"""

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from functools import cache
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from acceptance.figure import Figure, Setting, share
from langgraft._core.lazy import require
from langgraft.benchmarks.comparison.estimates import Estimate, mean_estimate, order_effects
from langgraft.benchmarks.comparison.power import detectable_difference
from langgraft.benchmarks.comparison.verdicts import FEWEST_RUNS
from langgraft.benchmarks.continual.analysis import expected
from langgraft.benchmarks.continual.metrics import majority

Array = npt.NDArray[np.float64]

ITEM_SD: Final = 1.6
BASELINE_RUNS: Final = 5
_POWERS: Final = (0.70, 0.90)
_PRINTED: Final = 120
"""Detectable differences a cell to take the median of."""
_HOW: Final = "n 36, 100, 200 × runs 2 to 5 × order SD 0, .4, .8 × 1, 4, 7 memories"  # noqa: RUF001


@dataclass(frozen=True, slots=True)
class Cell:
    """One kind of study."""

    items: int
    runs: int
    order_sd: float
    memories: int
    rate: float
    """Success without memory."""
    families: int
    """Studies to draw."""
    times: int = 1
    """How many times as many of everything."""

    @property
    def name(self) -> str:
        """Say it in short."""
        return (
            f"{self.items} × {self.runs}, SD {self.order_sd}, {self.memories} memories,"  # noqa: RUF001
            f" rate {self.rate}"
        )


@dataclass(frozen=True, slots=True)
class Found:
    """What became of the studies of a cell."""

    cell: Cell
    covered: float
    covered_orders: float
    false_alarms: int
    half_width: float
    power: float | None
    """At the median printed detectable difference; `None` where none is printed or possible."""

    @property
    def told(self) -> bool:
        """Whether its intervals are promised: not those of one memory and two runs."""
        return self.cell.runs >= FEWEST_RUNS or self.cell.memories > 1


def measure(setting: Setting) -> list[Figure]:
    """Draw the grid and hold it to what its intervals say."""
    slack = 0.02 if setting.reduced else 0.0
    covers, covers_orders = (0.92 - slack, 0.99 + slack), (0.92 - slack, 0.98 + slack)
    with ProcessPoolExecutor(2) as pool:
        first = list(pool.map(_try, _cells(reduced=setting.reduced)))
        doubtful = [
            replace(each.cell, times=8)
            for each in first
            if (each.told and not _within(each.covered, covers))
            or not _within(each.covered_orders, covers_orders)
            or not (each.power is None or _within(each.power, _POWERS))
        ]
        again = {replace(each.cell, times=1): each for each in pool.map(_try, doubtful)}
    found = [again.get(each.cell, each) for each in first]
    how = f"{_HOW} × rates .05 to .95" if not setting.reduced else "a dozen of its cells"  # noqa: RUF001
    how += f"; {len(again)} cells that were outside drawn anew, eight times as often"
    told = [each for each in found if each.told]
    return [
        _bounded("Intervals cover", how, told, "covered", covers),
        _bounded(
            "Intervals for these orders cover their own target",
            how,
            found,
            "covered_orders",
            covers_orders,
        ),
        _family_wise(how, found, slack),
        _power(how, [each for each in found if each.power is not None], slack),
        _widths(how, found),
        _nulls(setting),
    ]


def _cells(*, reduced: bool) -> Iterator[Cell]:
    sizes = (60,) if reduced else (36, 100, 200)
    runs = (3, 5) if reduced else (2, 3, 4, 5)
    rates = (0.2, 0.5) if reduced else (0.05, 0.25, 0.5, 0.75, 0.95)
    spreads = (0.0, 0.8) if reduced else (0.0, 0.4, 0.8)
    families = {1: 400, 4: 150} if reduced else {1: 1200, 4: 500, 7: 300}
    for n, s, sd, rate in itertools.product(sizes, runs, spreads, rates):
        yield from (Cell(n, s, sd, memories, rate, each) for memories, each in families.items())


def _rate(logit: float, sd: float) -> float:
    """Return the mean of a logit-normal chance."""
    nodes, weights = _normal()
    return float(weights @ (1 / (1 + np.exp(-logit - sd * nodes))))


@cache
def _normal() -> tuple[Array, Array]:
    """Return points and weights that integrate over the standard normal distribution."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(61)
    return nodes, weights / weights.sum()


@cache
def _logit(rate: float, sd: float) -> float:
    optimize: Any = require("scipy.optimize", extra="bench", purpose="The analysis")
    return float(optimize.brentq(lambda logit: _rate(logit, sd) - rate, -30, 30))


def _study(
    rng: np.random.Generator, cell: Cell, effect: float
) -> tuple[list[Estimate], Array, list[tuple[float, float]]]:
    """Draw a study; return its estimates, their targets for the orders drawn, and the rates.

    `effect` is the true difference of the first memory; the others have none.
    """
    spread = float(np.hypot(ITEM_SD, cell.order_sd))
    items = rng.normal(0, ITEM_SD, (cell.items, 1))
    untreated = rng.random((cell.items, BASELINE_RUNS)) < _chance(
        items + _logit(cell.rate, ITEM_SD)
    )
    baseline = untreated.mean(axis=1, keepdims=True)
    values, targets, rates = [], [], []
    for memory in range(cell.memories):
        logit = _logit(cell.rate + (0 if memory else effect), spread)
        shifts = rng.normal(0, cell.order_sd, (1, cell.runs))
        treated = rng.random((cell.items, cell.runs)) < _chance(items + logit + shifts)
        values.append(treated - baseline)
        targets.append(np.mean([_rate(logit + each, ITEM_SD) for each in shifts[0]]) - cell.rate)
        rates.append((float(baseline.mean()), float(treated.mean())))
    orders = order_effects(values)
    found = [mean_estimate(each, bounds=(-1, 1), orders=orders) for each in values]
    return found, np.array(targets), rates


def _chance(logits: Array) -> Array:
    return np.asarray(1 / (1 + np.exp(-logits)))


def _try(cell: Cell) -> Found:
    rng = np.random.default_rng([2026, cell.families, cell.times])
    held, held_orders, alarms, widths, printed = [], [], 0, [], []
    for number in range(cell.times * cell.families):
        estimates, targets, rates = _study(rng, cell, 0.0)
        held += [each.low <= 0 <= each.high for each in estimates]
        held_orders += [
            each.these_orders[0] <= target <= each.these_orders[1]
            for each, target in zip(estimates, targets, strict=True)
        ]
        alarms += min(each.p for each in estimates) * cell.memories < 0.05
        widths += [each.half_width for each in estimates]
        if number * cell.memories < cell.times * _PRINTED and cell.runs >= FEWEST_RUNS:
            printed += [
                detectable_difference(each, contrasts=cell.memories, rates=rate)
                for each, rate in zip(estimates, rates, strict=True)
            ]
    power = _found_share(rng, cell, float(np.median(printed))) if printed else None
    return Found(
        cell,
        float(np.mean(held)),
        float(np.mean(held_orders)),
        alarms,
        float(np.median(widths)),
        power,
    )


def _found_share(rng: np.random.Generator, cell: Cell, effect: float) -> float | None:
    """Return how often a true effect of that size is found at the first step of Holm's procedure."""
    signed = effect if cell.rate <= 0.5 else -effect
    if not 0.02 < cell.rate + signed < 0.98:
        return None
    draws = cell.times * 200
    found = sum(_study(rng, cell, signed)[0][0].p * cell.memories < 0.05 for _ in range(draws))
    return found / draws


def _bounded(
    promise: str, how: str, found: Sequence[Found], name: str, bounds: tuple[float, float]
) -> Figure:
    values = [getattr(each, name) for each in found]
    wrong = [
        f"{each.cell.name}: {value:.3f}"
        for each, value in zip(found, values, strict=True)
        if not _within(value, bounds)
    ]
    text = f"{min(values):.3f} to {max(values):.3f}, mean {np.mean(values):.3f}"
    good = share(len(found) - len(wrong), len(found), wrong)
    bound = f"{bounds[0]} to {bounds[1]}"
    return Figure(promise, how, f"{text}; cells within: {good}", bound, not wrong)


def _within(value: float, bounds: tuple[float, float]) -> bool:
    return bounds[0] <= value <= bounds[1]


def _family_wise(how: str, found: Sequence[Found], slack: float) -> Figure:
    """Pool false alarms over rates: a cell alone has too few families to tell .05 from .06."""
    alarms: dict[tuple[int, int, float, int], list[tuple[int, int]]] = {}
    for each in found:
        cell = each.cell
        if cell.memories > 1 and cell.runs >= FEWEST_RUNS:
            key = (cell.items, cell.runs, cell.order_sd, cell.memories)
            alarms.setdefault(key, []).append((each.false_alarms, cell.times * cell.families))
    rates = {key: sum(a for a, _ in each) / sum(n for _, n in each) for key, each in alarms.items()}
    bound = 0.06 + slack
    return Figure(
        "Holm's procedure over true nulls: family-wise error",
        how,
        f"at most {max(rates.values()):.3f}, mean {np.mean(list(rates.values())):.3f}",
        f"at most {bound:.2f}",
        bool(max(rates.values()) <= bound),
    )


def _power(how: str, found: Sequence[Found], slack: float) -> Figure:
    values = [each.power for each in found if each.power is not None]
    inside = sum(_within(value, _POWERS) for value in values)
    low, middle, high = np.quantile(values, (0.05, 0.5, 0.95))
    outside = [
        f"{each.cell.name}: {each.power:.3f}"
        for each in found
        if each.power is not None and not _within(each.power, _POWERS)
    ]
    return Figure(
        "Power at the printed detectable difference",
        how,
        f"median {middle:.2f}, nine cells in ten {low:.2f} to {high:.2f}, least {min(values):.2f};"
        f" cells within .70 to .90: {share(inside, len(values), outside)}",
        "95 % of the cells within .70 to .90, none below .65",
        bool(inside >= (0.95 - 2 * slack) * len(values) and min(values) >= 0.65 - slack),
    )


def _widths(how: str, found: Sequence[Found]) -> Figure:
    chosen = [each for each in found if each.cell.rate == 0.5]
    text = "; ".join(
        f"{each.cell.items} × {each.cell.runs}, SD {each.cell.order_sd}: ±{100 * each.half_width:.0f}"  # noqa: RUF001
        for each in chosen
        if each.cell.memories == 4 and each.cell.items != 36
    )
    return Figure("Half-widths of four memories at a rate of one half, points", how, text, "", None)


def _nulls(setting: Setting) -> Figure:
    """Hold the expected RR and NL to what a fresh run scores."""
    rng = np.random.default_rng(5)
    errors: dict[str, list[float]] = {}
    for runs, _ in itertools.product((3, 5), range(setting.size(200, 40))):
        chances = _chance(rng.normal(0, ITEM_SD, 100))
        scores = {
            run: {str(i): float(v) for i, v in enumerate(rng.random(100) < chances)}
            for run in range(runs)
        }
        for name, subset in zip(("RR", "NL"), majority(scores), strict=True):
            fitted = expected(scores, subset)
            if fitted is not None:
                truth = float(np.mean([chances[int(item)] for item in subset]))
                errors.setdefault(f"{name} of {runs} runs", []).append(100 * (fitted - truth))
    means = {name: float(np.mean(each)) for name, each in errors.items()}
    bound = setting.size(2, 3)  # a fifth of the splits
    return Figure(
        "Expected RR and NL without memory, less those of a fresh run, points",
        "100 items, 3 and 5 baseline runs",
        "; ".join(f"{name}: {value:+.1f}" for name, value in means.items()),
        f"within ±{bound}",
        bool(max(map(abs, means.values())) <= bound),
    )
