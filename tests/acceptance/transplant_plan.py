"""The transplant study whole: the paper's plan from start to report, killed once, and over HTTP."""

import asyncio
import time
from pathlib import Path
from typing import Any, Final

import yaml

from acceptance.command import langgraft
from acceptance.figure import Figure, Setting, share
from acceptance.kill import kill_and_resume, kill_figures
from langgraft.benchmarks.harness import PlanLog, prepare, run_plan
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.models import MeteredChatModel, make_model
from langgraft.benchmarks.simulated.server import serve
from langgraft.benchmarks.studies import read_plan, shipped_plans, studies
from langgraft.benchmarks.transplant.domains import simulated_solver
from langgraft.benchmarks.transplant.plan import TransplantPlan

PLAN: Final = "memory-transplants"
DEMO: Final = "demo-transplant"
MINUTES: Final = 20
"""How long the plan may take with one solver, on two cores and with no reply cached."""
DEMO_SECONDS: Final = 180
CORE: Final = 210
"""Runs of systems, conditions, seeds and budgets (memory-transplants §4.4)."""


def measure(setting: Setting) -> list[Figure]:
    """Run the demo, the whole plan with the strong solver, and one system over HTTP."""
    if setting.reduced:
        return []
    return [_demo(setting), *_whole(setting), _over_http(setting)]


def _demo(setting: Setting) -> Figure:
    setting.say(DEMO)
    done = langgraft("run", DEMO, "--out", setting.work / "demo")
    return Figure(
        "The demo of transplants ends in minutes",
        f"`langgraft run {DEMO}`",
        f"{done.seconds:.0f} s, exit code {done.code}",
        f"< {DEMO_SECONDS} s",
        done.code == 0 and done.seconds < DEMO_SECONDS,
    )


def _fields(**changes: Any) -> dict[str, Any]:
    """Return the plan with the strong solver alone."""
    found: dict[str, Any] = yaml.safe_load(Path(shipped_plans()[PLAN]).read_text("utf-8"))
    return {**found, "solvers": [{"name": "strong"}], **changes}


def _whole(setting: Setting) -> list[Figure]:
    plan, work = setting.work / "plan.yaml", setting.work / "whole-plan"
    plan.write_text(yaml.safe_dump(_fields()))
    setting.say(f"{PLAN} with the strong solver, then once more, killed on the way")
    began = time.time()
    kills = kill_and_resume(plan, work, kills=1, seed=2611)
    log = PlanLog(work / "whole")
    minutes = ((work / "whole" / "report" / "index.html").stat().st_mtime - began) / 60
    core = [
        run
        for run in log.runs
        if run.factors["kind"] == "eval"
        and not run.factors["control"]
        and run.factors["remedy"] is None
        and run.factors["condition"] != "NOISE"
    ]
    results: list[Any] = [each for run in log.runs for each in log.results(run.name)]
    calls = sum(each["usage"]["simulated_replies"] for each in results if "usage" in each)
    return [
        Figure(
            "The paper's plan with all controls, start to report",
            f"`langgraft run {PLAN}`, the strong simulated solver, an empty cache",
            f"{len(core)} runs of the paper in {len(log.runs)}, {log.n_done:,} of {log.n_planned:,}"
            f" items, {calls:,} replies, {minutes:.1f} min",
            f"{CORE} runs, all items, < {MINUTES} min",
            len(core) == CORE and log.n_done == log.n_planned and minutes < MINUTES,
        ),
        *kill_figures("The plan killed on the way leaves the same bytes", kills, 1, f"{PLAN}, "),
        _imports(log),
    ]


def _imports(log: PlanLog) -> Figure:
    """Look into what imports say: one digest wherever a bank is read, and what was dropped."""
    digests: dict[tuple[Any, ...], set[str]] = {}
    said = 0
    for run in log.runs:
        f = run.factors
        if f["kind"] == "eval" and run.source is not None and f["remedy"] is None:
            first: Any = log.results(run.name)[0]
            imported = first.get("imported", {"digest": f"nothing is said by {run.name}"})
            said += "kept" in imported
            place = f["solver"], f["system"], f["content"], f["draw"]
            digests.setdefault(place, set()).add(imported["digest"])
    apart = [" ".join(map(str, place)) for place, found in digests.items() if len(found) != 1]
    apart += [each for found in digests.values() for each in found if each.startswith("nothing")]
    return Figure(
        "A bank is the same wherever it is read, and every import says what it changed",
        f"{said} imports of {len(digests)} banks",
        share(len(digests) - len(apart), len(digests), apart),
        "all",
        bool(digests) and not apart,
    )


def _over_http(setting: Setting) -> Figure:
    fields = _fields(
        systems=[{"name": "none", "provider": "none"}, _fields()["systems"][2]],
        admitted=[],
        gated=[],
    )
    path = setting.work / "http.yaml"
    path.write_text(yaml.safe_dump(fields))
    _, plan = read_plan(path)
    assert isinstance(plan, TransplantPlan)
    setting.say("one system through ChatOpenAI")
    own, out = setting.work / "own", setting.work / "http"
    done = langgraft("run", path, "--out", own)
    began = time.monotonic()
    asked = asyncio.run(_served(plan, out))
    minutes = (time.monotonic() - began) / 60
    ours, theirs = PlanLog(own), PlanLog(out)
    different = [
        run.name
        for run in ours.runs
        if [{**each, "usage": 0} for each in ours.results(run.name)]
        != [{**each, "usage": 0} for each in theirs.results(run.name)]
    ]
    return Figure(
        "The plan of one system through ChatOpenAI over HTTP gives the same items",
        f"{len(ours.runs)} runs, {ours.n_done:,} items, {asked:,} requests, {minutes:.1f} min",
        share(len(ours.runs) - len(different), len(ours.runs), different) + " runs",
        "all",
        done.code == 0 and not different and theirs.n_done == theirs.n_planned,
    )


async def _served(plan: TransplantPlan, out: Path) -> int:
    """Run a plan against the simulated solver behind a server; return how often it was asked."""
    study = studies()["transplant"]
    async with serve(simulated_solver(plan, plan.solvers[0], plan.seed)) as server:
        served = plan.model_copy(update={"model": "openai:simulated", "base_url": server.base_url})
        with ResponseCache(out.with_suffix(".sqlite")) as kept:

            def model_for(_: object, __: object) -> MeteredChatModel:
                return make_model(
                    "openai:simulated",
                    base_url=server.base_url,
                    temperature=0,
                    api_key="none",
                    responses=kept,
                )

            await run_plan(prepare(study, served), out, model_for=model_for)
        return len(server.calls)
