"""Negative transfer in ALFWorld comes from imitation: more of it, more harm; without it, none."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import yaml

from acceptance.command import langgraft
from acceptance.figure import Figure, Setting
from acceptance.kill import world_at_hand
from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison.outcomes import Metric
from langgraft.benchmarks.continual.analysis import Analysis, analyze
from langgraft.benchmarks.continual.cases import CasePage, case_pages
from langgraft.benchmarks.continual.cells import Banks, PairLog
from langgraft.benchmarks.continual.metrics import Transfer
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.study import PlanLogReader
from langgraft.benchmarks.reporting.words import points

MIMICRIES: Final = {"never": 0.0, "at-times": 0.4, "mostly": 0.8}
"""How often the simulated learner follows a recalled attempt, by the name of the pair."""
MOST: Final = "mostly"
PLACEBO: Final = "raw+placebo"
"""Filler in the place of what is recalled."""
NEVER: Final = "raw-own"
"""A memory that recalls nothing of another task, in training and after it."""
OWN: Final = "raw-own+random-own"
"""Random items of the task at hand, from a bank that was filed under no influence of the other."""
FILED: Final = "raw+random-own"
"""The same from the bank that Raw left: what stays of the harm is in what was filed."""
NEAR: Final = 0.025
"""How far from zero a control may be that harms nobody."""
_A, _B = "pick_and_place", "pick_clean_then_place"
_SEED: Final = 42
_ASKED_WITH: Final[JSON] = ["task", "observation"]
"""All that the agent sees first. With the instruction alone, 4 of 100 tests of B find a trajectory
of A first; with this, every other one: what is recalled decides, so something has to be."""
_RAW: Final[dict[str, JSON]] = {"top_k": 1, "query_fields": _ASKED_WITH}


@dataclass(frozen=True, slots=True)
class _Measured:
    """What the plans showed, pair by pair."""

    codes: tuple[int, ...]
    """How they ended."""
    analyses: Mapping[str, Analysis]
    how: str
    log: PlanLogReader
    """What the learner did that imitates most."""
    cases: Path
    """The folder of its case pages."""


def measure(setting: Setting) -> list[Figure]:
    """Let learners that imitate never, at times and mostly learn one task after the other.

    A reduced acceptance leaves it out: so few episodes cannot tell.
    """
    if setting.reduced:
        return []
    measured = _run(setting)
    return [
        _ended(measured),
        _grows(measured),
        *_where(measured),
        *(_vanishes(measured, each) for each in (PLACEBO, NEVER)),
        _shrinks(measured),
        _explained(measured),
    ]


def _run(setting: Setting) -> _Measured:
    """Run two plans: the controls are asked of the learner that imitates most, and of it alone.

    On released games where there are any, else on generated ones.
    """
    sizes = {"train_items": 60, "test_items": 80, "runs": 4, "baseline_runs": 4}
    world = world_at_hand()
    plans = {"less": tuple(name for name in MIMICRIES if name != MOST), MOST: (MOST,)}
    codes: list[int] = []
    logs: dict[str, PlanLogReader] = {}
    for plan, pairs in plans.items():
        path = setting.work / f"{plan}.yaml"
        path.write_text(yaml.safe_dump(_plan(world, pairs, **sizes)), encoding="utf-8")
        setting.say(f"negative transfer in {world}, mimicry {' and '.join(pairs)}")
        codes.append(langgraft("run", path, "--out", setting.work / plan).code)
        log = PlanLog(setting.work / plan)
        logs.update({name: PairLog(log, name) for name in pairs})
    analyses = {name: analyze(log) for name, log in logs.items()}
    how = (
        f"`langgraft run`, {world}, simulated learner, Raw, put → clean;"
        f" {sizes['train_items']} games a phase, {sizes['test_items']} in tests,"
        f" {sizes['runs']} runs"
    )
    folder = setting.work / MOST / "report" / MOST / "cases"
    return _Measured(tuple(codes), analyses, how, logs[MOST], folder)


def _plan(world: str, pairs: Sequence[str], **sizes: int) -> dict[str, JSON]:
    """Write a plan: learners, Raw, and what it is held against where that is asked for."""
    tasks = {"A": f"{world}/{_A}", "B": f"{world}/{_B}"}
    learners: list[JSON] = [
        {"name": name, **tasks, "learner": {"mimicry": MIMICRIES[name]}} for name in pairs
    ]
    conditions: list[JSON] = [{"name": "raw", "provider": "trajectory", "settings": _RAW}]
    controls: list[JSON] = []
    if MOST in pairs:
        own: dict[str, JSON] = {"name": "raw-own", "provider": "trajectory"}
        conditions.append({**own, "settings": {**_RAW, "own_domain_share": 1.0}})
        kinds = [name.split("+") for name in (PLACEBO, OWN, FILED)]
        controls = [{"control": kind, "of": of, "transfer": True} for of, kind in kinds]
    return {
        "study": "continual",
        "title": "Where negative transfer comes from",
        "model": "simulated",
        "seed": _SEED,
        "rerun": False,
        **sizes,
        "sequences": ["A>B"],
        "pairs": learners,
        "conditions": conditions,
        "controls": controls,
    }


def _forward(measured: _Measured, pair: str, condition: str = "raw") -> Transfer:
    rows = measured.analyses[pair].rows("forward", "A>B")
    return next(row for row in rows if row.condition == condition)


def _value(metric: Metric) -> float:
    return metric.estimate.value if metric.estimate else 0.0


def _ended(measured: _Measured) -> Figure:
    return Figure(
        "The plans of the mechanism complete",
        measured.how,
        f"exit codes {', '.join(map(str, measured.codes))}",
        "all 0",
        not any(measured.codes),
    )


def _grows(measured: _Measured) -> Figure:
    rows = {name: _forward(measured, name).transfer for name in MIMICRIES}
    values = [_value(row) for row in rows.values()]
    last = rows[MOST].estimate
    falls = values[0] > values[1] > values[2]
    return Figure(
        "Raw A→B: negative transfer grows with the learner's mimicry",
        measured.how,
        "; ".join(f"FWT {_points(rows[name])} at {at}" for name, at in MIMICRIES.items()),
        f"falls from each to the next; the 95 % interval at {MIMICRIES[MOST]} lies below 0,"
        " that at 0 holds it",
        falls and last is not None and last.high < 0 and _holds_zero(rows["never"]),
    )


def _where(measured: _Measured) -> Iterator[Figure]:
    row = _forward(measured, MOST)
    easy, hard = row.delta_rr, row.delta_nl
    passed = None
    if easy.estimate is not None and hard.estimate is not None:
        passed = hard.estimate.high < 0 and _value(hard) < _value(easy)
    yield Figure(
        "It falls on the hard items: those failed without memory",
        measured.how,
        f"ΔNL {_points(hard)}, n = {hard.n_items}; ΔRR {_points(easy)}, n = {easy.n_items}",
        "the 95 % interval of ΔNL lies below 0, and ΔNL < ΔRR",
        passed,
    )
    # The paper's figures are of a language model, and on other samples of games.
    yield Figure(
        "Beside the paper: success on put a clean X in Y",
        measured.how,
        f"{100 * _value(row.before):.1f} % after B alone, {100 * _value(row.after):.1f} % after A"
        f" and B; without memory {_without(measured.analyses[MOST])}",
        "continual-memory: 80.5 %, 71.0 %; 54 %",
        None,
    )


def _vanishes(measured: _Measured, control: str) -> Figure:
    """Hold a control to zero, and to be told from what it controls for.

    Where not a single outcome changes, the interval over runs says nothing, and the value all.
    """
    row = _forward(measured, MOST, control).transfer
    harm = _value(_forward(measured, MOST).transfer)
    return Figure(
        f"It vanishes where nothing of the other task is recalled: {control}",
        measured.how,
        f"FWT {_points(row)} at mimicry {MIMICRIES[MOST]}, where Raw has {100 * harm:+.1f}",
        f"the 95 % interval holds 0, and the value is at most {100 * NEAR:.0f} points from it",
        _holds_zero(row) and abs(_value(row)) <= NEAR < -harm,
    )


def _shrinks(measured: _Measured) -> Figure:
    """Hold random items of the task at hand to no harm but that of what Raw filed."""
    row, filed, raw = (_forward(measured, MOST, each).transfer for each in (OWN, FILED, "raw"))
    less = filed.estimate and raw.estimate and filed.estimate.low > raw.estimate.high
    return Figure(
        "It vanishes with random items of the own task",
        measured.how,
        f"FWT {_points(row)} at mimicry {MIMICRIES[MOST]}, from a bank filed without the other task's"
        f" influence; {_points(filed)} from the bank that Raw left, where Raw has {_points(raw)}",
        "the first 95 % interval holds 0, the second lies above Raw's",
        _holds_zero(row) and bool(less),
    )


def _explained(measured: _Measured) -> Figure:
    """Look for a case whose page shows an attempt at the other task, without the step."""
    analysis, log = measured.analyses[MOST], measured.log
    lost = [
        page
        for page in case_pages(analysis.cases, Banks(analysis.study, log), log)
        if page.case.rule == "transfer loss" and page.case.key.condition == "raw"
    ]
    shown = [
        page
        for page in lost
        if _recalls_other_task(page) and (measured.cases / f"{page.case.name}.html").is_file()
    ]
    return Figure(
        "The report explains it with a case",
        f"{measured.how}; case pages of transfer that Raw lost",
        f"{len(shown)} of {len(lost)} shows a recalled attempt at the other task, nothing cleaned"
        + "".join(f"; {page.case.item}: {page.case.reason}" for page in shown[:1]),
        "at least one",
        bool(shown),
    )


def _recalls_other_task(page: CasePage) -> bool:
    first = next(iter(page.asked), None)
    if first is None or not first.entries:
        return False
    return not first.entries[0].own and "You clean the" not in first.injected


def _without(analysis: Analysis) -> str:
    found = dict(analysis.baseline)
    return f"{100 * _value(found['B']):.1f} %" if "B" in found else "not known"


def _points(metric: Metric) -> str:
    return points(metric.estimate) if metric.estimate else "not known"


def _holds_zero(metric: Metric) -> bool:
    return metric.estimate is not None and metric.estimate.low <= 0 <= metric.estimate.high
