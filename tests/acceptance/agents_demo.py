"""The demo of the chain agent and MLAB: a plan in real Docker, and what memory does to their errors."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

from acceptance.command import langgraft
from acceptance.figure import Figure, Setting, share
from acceptance.mle_demos import (
    contrast,
    ends_in_time,
    shipped,
    write_plan,
)
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.mle.analysis import Analysis, analyze_agents

PLAN: Final = "demo-mle-chain"
LONGEST: Final = 900
"""Seconds that the demo may take on two cores."""
_REDUCED: Final[dict[str, Any]] = {
    "agents": [{"name": "chain", "steps": 6}, {"name": "mlab", "steps": 6}],
    "memory": ["off", "warm"],
    "competitions": ["weather"],
    "seeds": [0],
    "build_seeds": [100],
}


def measure(setting: Setting) -> list[Figure]:
    """Run the demo; its settings were settled on other seeds (10 to 12) than it has."""
    plan = {**shipped(PLAN), **(_REDUCED if setting.reduced else {})}
    path, out = write_plan(setting, PLAN, plan), setting.work / "agents-demo"
    setting.say("the demo of the chain agent and MLAB, in Docker")
    ended = langgraft("preview", path), langgraft("run", path, "--out", out)
    size = ", one competition, one seed, 6 steps, no placebo" if setting.reduced else ""
    how = f"`langgraft run {PLAN}`{size}"
    promise = "The demo of the chain agent and MLAB ends in time"
    figures = [ends_in_time(setting, promise, ended, how, longest=LONGEST)]
    if ended[1].code != 0:
        return figures
    analyses = analyze_agents(PlanLog(out))
    figures += [_sound(out, analyses, how), _page(out, analyses, how)]
    reported = [each for analysis in analyses for each in _findings(analysis, how, plan)]
    # Six steps, one run each: nothing that could be judged.
    unjudged = [replace(each, bound="", passed=None) for each in reported]
    return [*figures, *(unjudged if setting.reduced else reported)]


def _sound(out: Path, analyses: Sequence[Analysis], how: str) -> Figure:
    runs = [(analysis.agent, run) for analysis in analyses for run in analysis.searches.step_runs]
    verified = langgraft("verify", out)
    graded = [run for _, run in runs if run.report]
    valid = sum(bool(run.report.get("valid_submission")) for run in graded)
    counts = Counter(agent for agent, _ in runs)
    told = ", ".join(f"{count} of {agent}" for agent, count in sorted(counts.items()))
    return Figure(
        "It ends with a graded run of each agent under each memory, and a log that is sound",
        f"{how}; `langgraft verify`",
        f"{len(runs)} runs ({told}), {len(graded)} graded, {valid} with a valid submission; verify:"
        f" exit code {verified.code}",
        "every agent; exit code 0",
        verified.code == 0 and len(counts) == len(analyses) and bool(graded),
    )


def _page(out: Path, analyses: Sequence[Analysis], how: str) -> Figure:
    page = out / "report" / "index.html"
    text = page.read_text(encoding="utf-8") if page.is_file() else ""
    named = [analysis.agent for analysis in analyses if analysis.agent in text]
    return Figure(
        "It ends with a page that has both agents, and says that the model was simulated",
        how,
        f"{len(text):,} characters; {share(len(named), len(analyses))} agents",
        "both",
        len(named) == len(analyses) > 1 and "simulated" in text,
    )


def _findings(analysis: Analysis, how: str, plan: dict[str, Any]) -> list[Figure]:
    """Compare the conditions of one agent with no memory."""
    agent = analysis.agent
    how = f"{how}, {agent}"
    judged = [("warm", f"Warm memory lowers late-phase errors of {agent}", True)]
    if "placebo" in plan["memory"]:
        judged.append(("placebo", f"Placebo does not lower late-phase errors of {agent}", False))
    figures = [
        contrast(analysis, how, (condition, "late_errors"), promise, below=below)
        for condition, promise, below in judged
    ]
    for name, what in (("bug_rate", "bug rate"), ("first_valid", "first valid step")):
        promise = f"The {what} of {agent} under warm memory"
        figures.append(contrast(analysis, how, ("warm", name), promise))
    return figures
