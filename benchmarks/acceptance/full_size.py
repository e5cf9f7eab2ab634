"""The plan of the paper's size, from beginning to end."""

from langgraft.benchmarks.acceptance.command import langgraft
from langgraft.benchmarks.acceptance.figure import Figure, Setting
from langgraft.benchmarks.continual.analysis import Analysis, analyze, summary_table
from langgraft.benchmarks.continual.metrics import Metric
from langgraft.benchmarks.continual.wording import plain, points
from langgraft.benchmarks.harness.log import PlanLog

PLAN = "continual-babyai"


def measure(setting: Setting) -> list[Figure]:
    """Run the full-size plan; a reduced acceptance leaves it out."""
    if setting.reduced:
        return []
    directory = setting.work / "full"
    setting.say(f"{PLAN}, full size; some ten minutes")
    done = langgraft("run", PLAN, "--out", directory)
    log = PlanLog(directory)
    how = f"`langgraft run {PLAN}`"
    ended = Figure(
        "The full-size plan completes",
        how,
        f"{log.n_done:,} of {log.n_planned:,} episodes in {done.seconds:.0f} s, exit code {done.code}",
        "all episodes, exit code 0",
        done.code == 0 and log.n_done == log.n_planned,
    )
    verified = langgraft("verify", directory)
    sound = Figure(
        "Its directory is sound",
        "`langgraft verify`",
        f"exit code {verified.code}",
        "exit code 0",
        verified.code == 0,
    )
    analysis = analyze(log)
    return [ended, sound, *_gates(analysis), *_contrasts(analysis), *_transfers(analysis)]


def _gates(analysis: Analysis) -> list[Figure]:
    return [
        Figure(
            f"Gate: {gate.name}", "the plan's report", gate.detail, "passed", gate.state == "passed"
        )
        for gate in analysis.gates
    ]


def _contrasts(analysis: Analysis) -> list[Figure]:
    tasks = [task for task, _ in analysis.baseline]
    return [
        Figure(
            f"{row.condition}: success on {', '.join(tasks)}; against no memory",
            "the plan's report",
            f"{', '.join(row.accuracies)} %; {row.difference} {row.verdict}".strip(),
            "",
            None,
        )
        for row in summary_table(analysis)
    ]


def _transfers(analysis: Analysis) -> list[Figure]:
    return [
        Figure(
            f"{row.condition}: {row.direction} transfer, {row.sequence}, tested on {row.task}",
            "transfer; ΔRR and ΔNL where they can be told",
            f"{_points(row.transfer)}; ΔRR {_points(row.delta_rr)}; ΔNL {_points(row.delta_nl)};"
            f" {_plain(row.before)} → {_plain(row.after)} %",
            "",
            None,
        )
        for row in analysis.transfers
    ]


def _points(metric: Metric) -> str:
    if metric.estimate is None:
        return f"n = {metric.n_items}"
    return points(metric.estimate)


def _plain(metric: Metric) -> str:
    return "?" if metric.estimate is None else plain(metric.estimate.value)
