"""What `ablate` says of agents whose truth is planted: verdicts, help and harm apart, and the guard in CI.

A thousand repeats through the whole harness would take days. So outcomes are drawn as an agent's would be, and
handed to the analysis behind the page as a log in memory; some are played through `ablate` whole, which must
say the same. Shares of tasks are drawn, not fixed: tasks are a sample.
"""

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Final, Literal, TypeAlias

import numpy as np
import numpy.typing as npt
from langchain.agents import create_agent
from langchain_core.messages import BaseMessage
from scipy.optimize import brentq
from scipy.special import expit

from acceptance.figure import Figure, Setting, share
from langgraft import MemoryMiddleware, MemoryProvider
from langgraft._core.canonical import JSON
from langgraft.benchmarks.ablation import Experiment, Task, ablate, preview_ablation
from langgraft.benchmarks.ablation.analysis import MemoryFound, analyze
from langgraft.benchmarks.ablation.plan import AblationPlan, runs_of
from langgraft.benchmarks.ablation.running import plan_of
from langgraft.benchmarks.comparison.verdicts import (
    ENOUGH,
    MARGIN,
    GuardDecision,
    fixed_pairs,
    guard_decision,
)
from langgraft.benchmarks.harness.study import RunSpec
from langgraft.benchmarks.simulated.chat import Sampling, SimulatedChatModel
from langgraft.memory.model import BLOCK_START, MemoryDelta

Array: TypeAlias = npt.NDArray[np.float64]
Kind: TypeAlias = Literal["steady", "even", "answers"]

RUNS: Final = 5
EFFECT: Final = 0.15
NOISE: Final = 0.143
"""Mean variance of a task's outcome between samples, as `planned_difference` takes it to be."""
HELPED, HARMED = 0.20, 0.15
"""Shares of tasks of a memory that does both."""
SEED: Final = 7_114
KINDS: Final[Mapping[Kind, str]] = {
    "steady": "an agent without noise; memory settles a share of the tasks",
    "even": "noisy; memory shifts the logits of all tasks alike",
    "answers": "noisy; memory holds the answers to tasks that are never solved without, and nothing for the rest",
}


@dataclass(frozen=True, slots=True)
class Cell:
    """A kind of agent with a memory."""

    kind: Kind
    base: float
    """Success without memory."""
    order_sd: float
    effect: float
    """Of the memory, on average over tasks and orders."""

    @property
    def name(self) -> str:
        """Say it in short."""
        return f"{self.kind}, base {self.base}, order SD {self.order_sd}, effect {self.effect:+.2f}"

    def draw(self, rng: np.random.Generator, tasks: int) -> tuple[Array, Array]:
        """Draw outcomes with and without memory, tasks by runs."""
        orders = rng.normal(0, self.order_sd, RUNS)
        if self.kind == "steady":
            before, after = self._settled(rng.random(tasks) < self.base, rng)
            return _sampled(rng, _moved(after, orders, self.base + self.effect)), _sampled(
                rng, np.repeat(before[:, np.newaxis], RUNS, axis=1)
            )
        held = np.zeros(tasks, bool)
        rate, noise, shift = self.base, NOISE, self.effect
        if self.kind == "answers":
            size = abs(self.effect)
            held, shift = rng.random(tasks) < size, 0.0
            rate = (self.base - max(-self.effect, 0.0)) / (1 - size)
            noise = NOISE / (1 - size)
        mean, sd = _logits(rate, noise)
        logits = rng.normal(mean, sd, tasks)
        after = logits + _shift(rate, noise, shift)
        moves = _order_shifts(
            rate, noise, shift, tuple(orders / (1 - abs(self.effect) * held.any()))
        )
        treated = expit(after[:, np.newaxis] + moves)
        treated[held] = self.effect > 0
        untreated = np.repeat(expit(logits)[:, np.newaxis], RUNS, axis=1)
        untreated[held] = self.effect < 0
        return _sampled(rng, treated), _sampled(rng, untreated)

    def _settled(
        self, solved: npt.NDArray[np.bool_], rng: np.random.Generator
    ) -> tuple[Array, Array]:
        if self.effect > 0:
            gained = ~solved & (rng.random(len(solved)) < self.effect / (1 - self.base))
            return solved.astype(float), (solved | gained).astype(float)
        lost = solved & (rng.random(len(solved)) < -self.effect / self.base)
        return solved.astype(float), (solved & ~lost).astype(float)


def _sampled(rng: np.random.Generator, chances: Array) -> Array:
    return (rng.random(chances.shape) < chances).astype(float)


def _moved(settled: Array, orders: Array, rate: float) -> Array:
    """Return chances of settled tasks whose mean each order moves: some of them then turn over."""
    up = (1 - settled[:, np.newaxis]) * orders / max(1 - rate, 1e-9)
    down = settled[:, np.newaxis] * orders / max(rate, 1e-9)
    return np.clip(settled[:, np.newaxis] + np.where(orders > 0, up, down), 0, 1)


@cache
def _population() -> Array:
    return np.random.default_rng(0).normal(0, 1, 100_000)


@cache
def _logits(rate: float, noise: float) -> tuple[float, float]:
    """Return mean and SD of logits with that success rate, whose outcomes vary so."""
    z = _population()

    def mean(sd: float) -> float:
        return float(brentq(lambda m: float(expit(m + sd * z).mean()) - rate, -40, 40))

    def beyond(sd: float) -> float:
        chances = expit(mean(sd) + sd * z)
        return float((chances * (1 - chances)).mean()) - noise

    sd = 0.0 if beyond(0.0) <= 0 else float(brentq(beyond, 0.0, 6.0, xtol=1e-3))
    return mean(sd), sd


@cache
def _shift(rate: float, noise: float, effect: float) -> float:
    mean, sd = _logits(rate, noise)
    logits = mean + sd * _population()
    return float(brentq(lambda by: float(expit(logits + by).mean()) - rate - effect, -20, 20))


def _order_shifts(rate: float, noise: float, effect: float, orders: tuple[float, ...]) -> Array:
    """Return shifts of the logits that move the mean chance by what orders do; at its ends by less, both ways."""
    room = 0.9 * min(rate + effect, 1 - rate - effect)
    shifts, moved = _moves(rate, noise, effect)
    return np.asarray(np.interp(np.clip(orders, -room, room), moved, shifts))


@cache
def _moves(rate: float, noise: float, effect: float) -> tuple[Array, Array]:
    mean, sd = _logits(rate, noise)
    logits = mean + _shift(rate, noise, effect) + sd * _population()[:20_000]
    shifts = np.linspace(-8, 8, 161)
    means = np.array([expit(logits + by).mean() for by in shifts])
    return shifts, means - means[80]


# A log in memory --------------------------------------------------------------------------


@dataclass(frozen=True)
class Drawn:
    """The log of an ablation whose outcomes are drawn, as the analysis reads it."""

    plan: AblationPlan
    outcomes: Mapping[str, Array]
    """By condition, tasks by runs."""
    manifest: Mapping[str, JSON] = field(default_factory=dict)

    @property
    def runs(self) -> tuple[RunSpec, ...]:
        """The runs of the plan."""
        return tuple(runs_of(self.plan))

    def results(self, name: str) -> list[Mapping[str, JSON]]:
        """Return the results of a run; of one that builds a bank no more than that they are there."""
        if name.startswith("build"):
            build = next(each for each in self.runs if each.name == name)
            return [{"task": item} for item in build.item_ids]
        condition, _, run = name.removeprefix("test ").rpartition("/")
        recalled: JSON = [] if condition == "none" else [{"id": "note", "of": "tasks"}]
        fixed: dict[str, JSON] = {
            "kind": "",
            "error": "",
            "answer": "",
            "asked": 1,
            "tokens": 0,
            "usage": {},
            "recalled": recalled,
            "rest_sha256": "same",
        }
        scores = self.outcomes[condition][:, int(run)].tolist()
        return [
            {**fixed, "task": task.id, "score": score, "solved": score > 0}
            for task, score in zip(self.plan.tests, scores, strict=True)
        ]

    def deltas(self, name: str) -> list[tuple[MemoryDelta, ...]]:
        """Return nothing: no bank is read."""
        del name
        return []


MEMORY: Final = "trajectory"


class _Planted(SimulatedChatModel):
    """Solves what it is planted to solve, with notes in its prompt and without."""

    model_name: str = "planted"
    outcomes: Any

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str:
        """Answer by the table."""
        text = messages[-1].text
        condition = MEMORY if BLOCK_START in text else "none"
        question = text.partition(BLOCK_START)[0] or text
        if "lookup" in question:
            return "yes"
        number = int(question.split("question number ")[1].split()[0])
        return "yes" if self.outcomes[condition][number, sampling.seed] else "no"


def _build(memory: MemoryProvider[Any], model: Any) -> Any:
    return create_agent(model, [], middleware=[MemoryMiddleware(memory)])


def _experiment(tasks: int, outcomes: Mapping[str, Array]) -> Experiment:
    return Experiment(
        build=_build,
        train=[Task("lookup", "lookup of question number 0 here")],
        test=[Task(f"q{n:04d}", f"question number {n} here") for n in range(tasks)],
        score=lambda _, output: output["messages"][-1].text == "yes",
        memory=MEMORY,
        conditions=(),
        replicates=RUNS,
        model=lambda seed: _Planted(seed=seed, outcomes=outcomes),
    )


@cache
def needed(effect: float) -> int:
    """Return how many test tasks the preview states for an effect."""
    found = preview_ablation(_experiment(2, {})).tests_for(effect)
    assert found is not None
    return found


@cache
def _plan(tasks: int) -> AblationPlan:
    return plan_of(_experiment(tasks, {}))


def _analyzed(outcomes: tuple[Array, Array]) -> MemoryFound:
    treated, untreated = outcomes
    plan = _plan(len(treated))
    (found,) = analyze(plan, Drawn(plan, {MEMORY: treated, "none": untreated})).memories
    return found


# Verdicts ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Judged:
    """What the analysis said of a cell."""

    cell: Cell
    words: Mapping[str, int]
    repeats: int

    def rate(self, word: str) -> float:
        """Return the share of repeats with that verdict."""
        return self.words.get(word, 0) / self.repeats


def _judged(work: tuple[Cell, int, int]) -> Judged:
    cell, tasks, repeats = work
    rng = np.random.default_rng([SEED, *cell.name.encode()])
    words = Counter[str](_analyzed(cell.draw(rng, tasks)).word for _ in range(repeats))
    return Judged(cell, words, repeats)


def _cells(*, reduced: bool) -> Iterator[Cell]:
    if reduced:
        yield from (Cell(kind, 0.5, 0.05, 0.0) for kind in ("steady", "answers"))
        return
    yield Cell("even", 0.5, 0.0, 0.0)
    for kind in KINDS:
        yield from (Cell(kind, base, 0.05, 0.0) for base in (0.3, 0.5, 0.8))


def measure_verdicts(setting: Setting) -> list[Figure]:
    """Judge planted gains, harms and nothing, at the size that the preview states."""
    repeats, tasks = setting.size(1000, 30), needed(EFFECT)
    cells = list(_cells(reduced=setting.reduced))
    effects = (EFFECT, -EFFECT, 0.0)
    work = [(replace(c, effect=effect), tasks, repeats) for effect in effects for c in cells]
    mixed = list(_mixtures(reduced=setting.reduced))
    setting.say(f"{len(work) + len(mixed)} kinds of agents, {repeats} repeats each")
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(_judged, work))
        both = list(pool.map(_apart, [(each, tasks, repeats) for each in mixed]))
    how = (
        f"{tasks} tasks, which the preview states for {100 * EFFECT:.0f} points, × {RUNS} runs;"  # noqa: RUF001
        f" {repeats:,} repeats of each of {len(cells)} agents: {'; '.join(KINDS.values())};"
        " base rates .3 to .8, order SD 0 and .05"
    )
    slack = 0.13 if setting.reduced else 0.0
    gains, harms, nothing = (
        [each for each in found if each.cell.effect == effect] for effect in effects
    )
    helpful = max(nothing, key=lambda each: each.rate("helps"))
    return [
        _power("A planted gain is found", how, gains, "helps", 0.80 - slack),
        _power("A harmful memory of the same size is flagged", how, harms, "harms", 0.80 - slack),
        Figure(
            "A useless memory is not called helpful",
            how,
            f"helpful in {helpful.rate('helps'):.3f} at the worst ({helpful.cell.name})",
            f"at most {0.05 + slack / 3:.2f}",
            helpful.rate("helps") <= 0.05 + slack / 3,
        ),
        *(_coverage(each, how, slack) for each in both),
        _whole(setting, tasks),
    ]


def _power(promise: str, how: str, found: Sequence[Judged], word: str, bound: float) -> Figure:
    rates = [each.rate(word) for each in found]
    worst = found[rates.index(min(rates))]
    told = ", ".join(f"{name} {count}" for name, count in sorted(worst.words.items()))
    figure = f"worst {min(rates):.3f} ({worst.cell.name}: {told}), mean {np.mean(rates):.3f}"
    return Figure(promise, how, figure, f"at least {bound:.2f}", min(rates) >= bound)


# Help and harm apart ----------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Mixture:
    """A memory that helps some tasks and harms others."""

    name: str
    jump: float | None
    """Logits that they move by; `None`: from never to always, without noise elsewhere either."""
    order_sd: float
    judged: bool = True

    def chances(self, rng: np.random.Generator, tasks: int) -> tuple[Array, Array]:
        """Return chances with and without memory."""
        turn = rng.random(tasks)
        gain, loss = turn < HELPED, (turn >= HELPED) & (turn < HELPED + HARMED)
        if self.jump is None:
            before = np.where(gain, 0.0, np.where(loss, 1.0, rng.random(tasks) < 0.5))
            return np.where(gain, 1.0, np.where(loss, 0.0, before)), before
        mean, sd = _logits(0.5, NOISE)
        logits = rng.normal(mean, sd, tasks)
        return expit(logits + self.jump * (1.0 * gain - 1.0 * loss)), expit(logits)

    @property
    def truth(self) -> tuple[float, float]:
        """What tasks gain and lose on average."""
        if self.jump is None:
            return HELPED, HARMED
        after, before = self.chances(np.random.default_rng(0), 1_000_000)
        return float(np.maximum(after - before, 0).mean()), float(
            np.maximum(before - after, 0).mean()
        )


def _mixtures(*, reduced: bool) -> Iterator[Mixture]:
    yield Mixture("without noise", None, 0.05)
    if not reduced:
        yield Mixture("without noise or order effects", None, 0.0)
        yield Mixture("noisy, by 4 logits", 4.0, 0.05)
        yield Mixture("noisy, by 2 logits", 2.0, 0.05, judged=False)


@dataclass(frozen=True, slots=True)
class Apart:
    """How help and harm of a mixture were told, each as a pair."""

    mixture: Mixture
    truth: tuple[float, float]
    covered: tuple[float, float]
    bias: tuple[float, float]


def _apart(work: tuple[Mixture, int, int]) -> Apart:
    mixture, tasks, repeats = work
    rng = np.random.default_rng([SEED + 1, *mixture.name.encode()])
    truth = mixture.truth
    told = []
    for _ in range(repeats):
        after, before = mixture.chances(rng, tasks)
        orders = rng.normal(0, mixture.order_sd, RUNS)
        if mixture.jump is None:
            treated = _moved(after, orders, float(after.mean()))
        else:
            logits = np.log(after / (1 - after))
            treated = expit(logits[:, np.newaxis] + orders / NOISE)
        untreated = np.repeat(before[:, np.newaxis], RUNS, axis=1)
        found = _analyzed((_sampled(rng, treated), _sampled(rng, untreated))).transitions
        assert found is not None
        assert found.helped is not None
        assert found.harmed is not None
        told.append((found.helped, found.harmed))
    covered = [np.mean([p[k].low <= truth[k] <= p[k].high for p in told]) for k in (0, 1)]
    means = [np.mean([p[k].value for p in told]) - truth[k] for k in (0, 1)]
    return Apart(
        mixture,
        truth,
        (float(covered[0]), float(covered[1])),
        (float(means[0]), float(means[1])),
    )


def _coverage(found: Apart, how: str, slack: float) -> Figure:
    bound = 0.93 - slack
    figure = (
        f"truth {found.truth[0]:.3f} and {found.truth[1]:.3f}; covered {found.covered[0]:.3f} and"
        f" {found.covered[1]:.3f}; bias {found.bias[0]:+.3f} and {found.bias[1]:+.3f}"
    )
    promise = f"Help of 20 % of tasks and harm of 15 % stand apart ({found.mixture.name})"
    if not found.mixture.judged:
        return Figure(promise, how, figure, "", None)
    return Figure(promise, how, figure, f"covered ≥ {bound:.2f}", min(found.covered) >= bound)


# The same, played -------------------------------------------------------------------------


def _whole(setting: Setting, tasks: int) -> Figure:
    """Play some tables through `ablate`, which must say what the analysis said of them."""
    cells = [Cell("answers", 0.5, 0.05, effect) for effect in (EFFECT, -EFFECT, 0.0)]
    seeds = setting.size(2, 1)
    cells, tasks = (cells, tasks) if not setting.reduced else (cells[:1], 40)
    wrong, told, total = [], Counter[str](), 0
    for cell in cells:
        for seed in range(seeds):
            rng = np.random.default_rng([SEED + 2, seed, *cell.name.encode()])
            treated, untreated = cell.draw(rng, tasks)
            wanted = _analyzed((treated, untreated))
            outcomes = {MEMORY: treated, "none": untreated}
            out = setting.work / f"whole-{total}"
            (found,) = ablate(_experiment(tasks, outcomes), out=out).analysis.memories
            total += 1
            told[found.word] += 1
            same = (found.word, found.contrast, found.transitions)
            if same != (wanted.word, wanted.contrast, wanted.transitions):
                wrong.append(f"{cell.name}, seed {seed}")
    return Figure(
        "Played through `ablate` the same outcomes give the same verdicts, estimates and transitions",
        f"{tasks} tasks × {RUNS} runs, a create_agent app",  # noqa: RUF001
        f"{share(total - len(wrong), total, wrong)}; verdicts {dict(told)}",
        "all",
        not wrong,
    )


# The guard --------------------------------------------------------------------------------

SHARES: Final = (0.1, 0.2, 0.3, 0.4)
BATCH: Final = 20


def _guard(rng: np.random.Generator, discordant: float, loss: float) -> tuple[GuardDecision, int]:
    """Guard a change that loses so much, with as many pairs as the preview asks for.

    Returns:
        The decision, and the pairs that were played for it: rounds are played to their end.
    """
    most = round(ENOUGH * fixed_pairs(discordant) / BATCH + 0.5) * BATCH
    draws = rng.random(most)
    differences = np.where(
        draws < (discordant + loss) / 2, -1.0, np.where(draws < discordant, 1.0, 0.0)
    ).tolist()
    for played in range(BATCH, most + 1, BATCH):
        decision = guard_decision(differences[:played], MARGIN, ended=played == most)
        if decision.verdict != "open":
            break
    return decision, played


def measure_guard(setting: Setting) -> list[Figure]:
    """Guard changes that do nothing and changes that lose the margin, in rounds as they are played."""
    repeats = setting.size(4000, 500)
    rows = {
        loss: [
            [_guard(rng, each, loss) for _ in range(repeats)]
            for each in SHARES
            for rng in [np.random.default_rng([SEED + 3, round(100 * each), round(100 * loss)])]
        ]
        for loss in (0.0, MARGIN, 2 * MARGIN)
    }
    slack = 0.03 if setting.reduced else 0.0
    how = f"{repeats} guards for each share of discordant pairs {SHARES}, rounds of {BATCH} pairs"

    def rates(loss: float) -> list[float]:
        return [
            float(np.mean([each.verdict == "regressed" for each, _ in row])) for row in rows[loss]
        ]

    def pairs(loss: float, count: Callable[[tuple[GuardDecision, int]], int]) -> list[float]:
        return [
            float(np.median([count(each) for each in row])) / fixed_pairs(discordant - loss**2)
            for discordant, row in zip(SHARES, rows[loss], strict=True)
            if discordant >= loss
        ]

    false, caught = rates(0.0), rates(MARGIN)
    told = {loss: pairs(loss, lambda each: each[0].pairs) for loss in rows}
    played = {loss: pairs(loss, lambda each: each[1]) for loss in rows}
    figures = [
        Figure(
            "A change that does nothing raises no alarm",
            how,
            _listed(false),
            f"at most {0.05 + slack:.2f}",
            max(false) <= 0.05 + slack,
        ),
        Figure(
            "A loss of ten points is caught",
            how,
            _listed(caught),
            f"at least {0.80 - slack:.2f}",
            min(caught) >= 0.80 - slack,
        ),
        Figure(
            "Pairs until it is decided, where nothing changed, of those of a fixed test: the median",
            how,
            f"{_listed(told[0.0])}; in whole rounds {_listed(played[0.0])}",
            "at most .50 from a share of .2 on",
            max(told[0.0][1:]) <= 0.5,
        ),
    ]
    figures += [
        Figure(
            f"The same, where {100 * loss:.0f} points are lost",
            how,
            f"{_listed(told[loss])}; in whole rounds {_listed(played[loss])}",
            "",
            None,
        )
        for loss in (MARGIN, 2 * MARGIN)
    ]
    return figures


def _listed(values: Sequence[float]) -> str:
    return ", ".join(f"{value:.3f}" for value in values)
