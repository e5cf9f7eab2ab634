"""What the analysis of a transplant study claims, on logs whose truth is known.

Outcomes of 100 problems are drawn: how hard each is, what a memory's text moves beside (an SD of 12
points by problem and seed), and a shift of whole runs. Effects are planted by the factors of a run alone.
"""

import random
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Final

from transplant_log import DrawnLog, transplant_plan

from acceptance.figure import Figure, Setting, share
from langgraft.benchmarks.transplant.analysis import Analysis, analyze
from langgraft.benchmarks.transplant.plan import TransplantPlan
from langgraft.benchmarks.transplant.report import tables_of

ORDER_SDS: Final = (0.0, 0.03, 0.06)
"""Of whole runs, in turn."""
AT: Final = ("expel", 800)
"""System and budget of the one contrast in which an effect of the stated size is planted."""
CONTROLLED: Final = ("lightweight", 800)
"""The same of H4, which takes controls."""
POWERS: Final = (0.70, 0.90)

Factors = Mapping[str, Any]


def _none(_: Factors) -> float:
    return 0.0


def _architecture(f: Factors) -> float:
    return 0.3 if f["architecture"] == "source" else 0.0


def _content(f: Factors) -> float:
    return 0.3 if f["content"] in {"source", "target"} else 0.0


def _interaction(f: Factors) -> float:
    return 0.4 if f["architecture"] == f["content"] == "source" else 0.0


def _solver(f: Factors) -> float:
    return 0.3 if f["solver"] == "weak" else 0.0


KINDS: Final[Mapping[str, tuple[Callable[[Factors], float], frozenset[str]]]] = {
    "architecture": (_architecture, frozenset({"H1", "H4"})),
    "content": (_content, frozenset({"H2"})),
    "interaction": (_interaction, frozenset({"H3"})),
    "solver": (_solver, frozenset({"H2", "H4", "M"})),
}
"""Effect → the hypotheses that are then so. Settings that help are retrieved with, so H4 is so too."""


@dataclass(frozen=True, slots=True)
class _Planted:
    """An effect in the runs of one condition of one system and budget, or of one solver."""

    hypothesis: str
    condition: str
    size: float

    @property
    def place(self) -> tuple[str, int | None]:
        """System and budget of the contrast."""
        if self.hypothesis == "M":
            return "", None
        return CONTROLLED if self.hypothesis == "H4" else AT

    def __call__(self, f: Factors) -> float:
        if self.hypothesis == "M":
            return self.size if f["solver"] == "weak" else 0.0
        here = (f["system"], f["budget"]) == self.place and f["solver"] == "strong"
        return self.size if here and f["condition"] == self.condition else 0.0


PLANTED: Final = (
    _Planted("H1", "E_CODE", 0.0),
    _Planted("H2", "C_ONLY", 0.0),
    _Planted("H3", "FULL", 0.0),
    _Planted("H4", "E_MATH", 0.0),
    _Planted("M", "", 0.0),
)


def measure(setting: Setting) -> list[Figure]:
    """Draw studies without an effect, with each kind, and with one of the size that is stated.

    At reduced size a few without: one study of each kind, and one told in other names, are tests.
    """
    with ProcessPoolExecutor(2) as pool:
        figures = [_nothing(pool, setting.size(200, 4))]
        if not setting.reduced:
            figures += [*_kinds(pool, 50), *_power(pool), _same_numbers(pool, 10)]
    return figures


def _plan(solvers: int = 2) -> TransplantPlan:
    named = [{"name": "strong"}, {"name": "weak"}][:solvers]
    return transplant_plan(noise_runs=2, solvers=named)


def _study(effect: Callable[[Factors], float], number: int, *, solvers: int = 2) -> Analysis:
    plan = _plan(solvers)
    order_sd = ORDER_SDS[number % len(ORDER_SDS)]
    return analyze(plan, DrawnLog(plan, effect, seed=number, order_sd=order_sd))


def _said(found: Analysis) -> set[str]:
    """Return what a study claims: hypotheses, and whether a condition helped or hurt."""
    family = [each for comparison in found.against_none.values() for each in comparison.family]
    changed = found.sound and any(each.verdict in {"helped", "hurt"} for each in family)
    return {each.hypothesis for each in found.claims} | ({"changed"} if changed else set())


def _claims(kind: str, number: int) -> set[str]:
    effect = KINDS[kind][0] if kind else _none
    return _said(_study(effect, number, solvers=1 + (kind in {"", "solver"})))


def _nothing(pool: ProcessPoolExecutor, repeats: int) -> Figure:
    claims = list(pool.map(_claims, [""] * repeats, range(repeats)))
    loud = [f"{number}: {' '.join(sorted(each))}" for number, each in enumerate(claims) if each]
    return Figure(
        "Where nothing is planted, studies claim nothing",
        f"{repeats} studies of 2 solvers, 3 systems with memory, 2 budgets, 3 seeds; SD of whole runs"
        f" {', '.join(f'{100 * each:.0f}' for each in ORDER_SDS)} points in turn; any verdict counts:"
        " H1 to H4, moderation, helped or hurt against no memory",
        f"{share(len(loud), repeats, loud)} claim anything",
        "at most 5 %",
        len(loud) <= 0.05 * repeats,
    )


def _kinds(pool: ProcessPoolExecutor, repeats: int) -> Iterator[Figure]:
    for kind, (_, so) in KINDS.items():
        first = 1000 * (1 + list(KINDS).index(kind))
        claims = list(pool.map(_claims, [kind] * repeats, range(first, first + repeats)))
        found = sum(each & so != set() and ("M" in each or "M" not in so) for each in claims)
        astray = [" ".join(sorted(each - so)) for each in claims if each - so - {"changed"}]
        yield Figure(
            f"A planted effect is found, and only that: {kind}",
            f"{repeats} studies, 30 or 40 points; the SD of whole runs as above",
            f"found in {share(found, repeats)}; something else claimed in"
            f" {share(len(astray), repeats, astray)}",
            "found in at least 80 %, something else in at most 5 %",
            found >= 0.8 * repeats and len(astray) <= 0.05 * repeats,
        )


def _contrast(found: Analysis, planted: _Planted) -> tuple[bool, float]:
    """Return whether the contrast is claimed, and the detectable difference it states."""
    (each,) = [
        each
        for each in found.hypotheses
        if each.hypothesis == planted.hypothesis
        and (each.system, each.budget) == planted.place
        and (each.solver == "strong" or planted.hypothesis == "M")
        and (planted.hypothesis != "H4" or each.what.startswith(planted.condition))
    ]
    assert each.detectable is not None
    return each.claims and each.estimate is not None and each.estimate.value > 0, each.detectable


def _try(planted: _Planted, number: int) -> tuple[bool, float]:
    plan = _plan(2 if planted.hypothesis == "M" else 1)
    return _contrast(analyze(plan, DrawnLog(plan, planted, seed=10_000 + number)), planted)


def _power(pool: ProcessPoolExecutor) -> Iterator[Figure]:
    for planted in PLANTED:
        stated = median(reach for _, reach in pool.map(_try, [planted] * 24, range(24)))
        with_effect = [replace(planted, size=stated)] * 150
        found = sum(claimed for claimed, _ in pool.map(_try, with_effect, range(150)))
        yield Figure(
            f"Power at the difference that is stated as detectable: {planted.hypothesis}",
            f"150 studies with {100 * stated:.1f} points there alone, orders that do nothing",
            f"{found / 150:.2f}",
            "within .70 to .90",
            POWERS[0] <= found / 150 <= POWERS[1],
        )


def _numbers(plan: TransplantPlan, log: DrawnLog) -> list[str]:
    """Return every number of a report, in an order of its own."""
    tables = tables_of(analyze(plan, log))
    return sorted(
        f"{table.name} "
        + " ".join(f"{each:.9f}" if isinstance(each, float) else str(each) for each in row)
        for table in tables
        for row in table.rows
    )


def _shuffled(number: int) -> bool:
    chance = random.Random(number)
    names = [f"p{place:03}" for place in range(100)]
    chance.shuffle(names)
    plan = _plan()
    moved = plan.model_copy(
        update={
            "systems": tuple(chance.sample(plan.systems, len(plan.systems))),
            "budgets": plan.budgets[::-1],
        }
    )
    first = _numbers(plan, DrawnLog(plan, _content, seed=number))
    other = DrawnLog(
        moved, _content, seed=number, rename=lambda item: names[int(item.split("-")[1])]
    )
    return first == _numbers(moved, other)


def _same_numbers(pool: ProcessPoolExecutor, repeats: int) -> Figure:
    same = sum(pool.map(_shuffled, range(repeats)))
    return Figure(
        "Names of problems and the order of systems and budgets change no number",
        f"{repeats} studies, every cell of every table, to nine digits",
        share(same, repeats),
        "all",
        same == repeats,
    )
