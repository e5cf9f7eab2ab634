"""The study of continual-memory at the paper's size, from beginning to end."""

from collections.abc import Iterator

from acceptance.command import langgraft
from acceptance.figure import Figure, Setting
from acceptance.kill import world_at_hand
from langgraft.benchmarks.comparison.outcomes import Metric
from langgraft.benchmarks.continual.analysis import Analysis, analyze, summary_table
from langgraft.benchmarks.continual.cells import PairLog
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.reporting.words import plain, points
from langgraft.benchmarks.studies import read_plan, shipped_plans

PLAN = "continual-memory"
MINUTES = 110
"""How long it may take on two cores."""


def measure(setting: Setting) -> list[Figure]:
    """Run the full-size plan; a reduced acceptance leaves it out."""
    if setting.reduced:
        return []
    promise = "The full-size plan completes in time"
    how = f"`langgraft run {PLAN}`"
    if world_at_hand() != "alfworld":
        return [Figure(promise, how, "needs the released ALFWorld games", "", None)]
    directory = setting.work / "full"
    setting.say(f"{PLAN}, full size; an hour")
    done = langgraft("run", PLAN, "--out", directory)
    log = PlanLog(directory)
    ended = Figure(
        promise,
        how,
        f"{log.n_done:,} of {log.n_planned:,} episodes and the report in {done.seconds / 60:.1f}"
        f" min, exit code {done.code}",
        f"all episodes in {MINUTES} min, exit code 0",
        done.code == 0 and log.n_done == log.n_planned and done.seconds < 60 * MINUTES,
    )
    verified = langgraft("verify", directory)
    sound = Figure(
        "Its directory is sound",
        "`langgraft verify`",
        f"exit code {verified.code}",
        "exit code 0",
        verified.code == 0,
    )
    return [ended, sound, *_pairs(log)]


def _pairs(log: PlanLog) -> Iterator[Figure]:
    _, plan = read_plan(shipped_plans()[PLAN])
    assert isinstance(plan, ContinualPlan)
    for pair in plan.parts:
        analysis = analyze(PairLog(log, pair))
        for figures in (_gates, _contrasts, _transfers):
            yield from figures(pair, analysis)


def _gates(pair: str, analysis: Analysis) -> Iterator[Figure]:
    for gate in analysis.gates:
        if gate.state == "not applicable":
            continue
        yield Figure(
            f"{pair}: gate: {gate.name}",
            "the pair's report",
            gate.detail,
            "passed",
            gate.state == "passed",
        )


def _contrasts(pair: str, analysis: Analysis) -> Iterator[Figure]:
    tasks = ", ".join(task for task, _ in analysis.baseline)
    for row in summary_table(analysis):
        yield Figure(
            f"{pair}: {row.condition}: success on {tasks}; against no memory",
            "the pair's report",
            f"{', '.join(row.accuracies)} %; {row.difference} {row.verdict}".strip(),
            "",
            None,
        )


def _transfers(pair: str, analysis: Analysis) -> Iterator[Figure]:
    for row in analysis.transfers:
        yield Figure(
            f"{pair}: {row.condition}: {row.direction} transfer, {row.sequence}, tested on"
            f" {row.task}",
            "transfer; ΔRR and ΔNL where they can be told",
            f"{_points(row.transfer)}; ΔRR {_points(row.delta_rr)}; ΔNL {_points(row.delta_nl)};"
            f" {_plain(row.before)} → {_plain(row.after)} %",
            "",
            None,
        )


def _points(metric: Metric) -> str:
    if metric.estimate is None:
        return f"n = {metric.n_items}"
    return points(metric.estimate)


def _plain(metric: Metric) -> str:
    return "?" if metric.estimate is None else plain(metric.estimate.value)
