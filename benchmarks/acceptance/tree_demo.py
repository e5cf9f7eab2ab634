"""The demo of the tree agent: a plan in real Docker, from data to medals, and what it finds."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import yaml

from langgraft.benchmarks.acceptance.command import Ended, langgraft
from langgraft.benchmarks.acceptance.figure import Figure, Setting, share
from langgraft.benchmarks.cli.plan_choice import shipped_plans
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.statistics import Estimate
from langgraft.benchmarks.mle.analysis import Analysis, analyze

PLAN: Final = "demo-mle"
LONGEST: Final = 1200
"""Seconds that the demo may take on two cores."""
EFFECT_SEEDS: Final = (10, 11, 12, 13, 14, 15)
"""Seeds of the searches that conditions are judged by: not those of the demo, which the simulated
model was looked at with."""
OWN: Final = Path("examples") / "own_competition" / "rents"


def measure(setting: Setting) -> list[Figure]:
    """Run the demo and a larger one, and solve a competition of one's own with one command."""
    larger = [] if setting.reduced else _effect(setting)
    return [*_demo(setting), *larger, _own(setting)]


def _demo(setting: Setting) -> list[Figure]:
    plan = _plan(setting)
    out = setting.work / "tree-demo"
    setting.say("the demo of the tree agent, in Docker")
    previewed = langgraft("preview", plan)
    done = langgraft("run", plan, "--out", out)
    how = f"`langgraft run {PLAN}`" + (", two competitions, one seed" if setting.reduced else "")
    figures = [_time(setting, done, previewed, how)]
    if done.code != 0:
        return figures
    analysis = analyze(PlanLog(out))
    reported = [replace(each, bound="", passed=None) for each in _findings(analysis, how)]
    return [*figures, *_leavings(analysis, out, how), *reported]


def _effect(setting: Setting) -> list[Figure]:
    """Compare conditions over more seeds than the demo has."""
    plan, out = setting.work / "tree-effect.yaml", setting.work / "tree-effect"
    larger = yaml.safe_load(_plan(setting).read_text(encoding="utf-8"))
    larger |= {"memory": ["off", "warm", "placebo"], "seeds": list(EFFECT_SEEDS)}
    plan.write_text(yaml.safe_dump(larger), encoding="utf-8")
    setting.say("the same with more seeds")
    done = langgraft("run", plan, "--out", out)
    if done.code != 0:
        msg = f"the larger plan ended with {done.code}: {done.stderr.strip()[-300:]}"
        raise RuntimeError(msg)
    how = f"{PLAN} with {len(EFFECT_SEEDS)} other seeds, off, warm and placebo"
    return _findings(analyze(PlanLog(out)), how)


def _plan(setting: Setting) -> Path:
    """Write the plan that ships, with data of its own, and smaller where sizes are reduced."""
    plan: dict[str, Any] = yaml.safe_load(shipped_plans()[PLAN].read_text(encoding="utf-8"))
    plan["data_dir"] = str(setting.work / "data")
    if setting.reduced:
        fewer = {"competitions": plan["competitions"][:2], "seeds": [0], "build_seeds": [100]}
        plan |= {**fewer, "agents": [{**plan["agents"][0], "steps": 7}]}
    path = setting.work / f"{PLAN}.yaml"
    path.write_text(yaml.safe_dump(plan), encoding="utf-8")
    return path


def _time(setting: Setting, done: Ended, previewed: Ended, how: str) -> Figure:
    foretold = next((line for line in previewed.stdout.splitlines() if "minutes" in line), "")
    complaint = "" if done.code == 0 else f": {done.stderr.strip()[-300:]}"
    return Figure(
        "The demo of the tree agent ends in time",
        f"{how}, competitions prepared on the way; the preview says: {foretold.strip()}",
        f"{done.seconds:.0f} s, exit code {done.code}{complaint}",
        f"< {LONGEST} s, exit code 0",
        done.code == 0 and (setting.reduced or done.seconds < LONGEST),
    )


def _leavings(analysis: Analysis, out: Path, how: str) -> list[Figure]:
    searches = analysis.searches.done
    report = out / "report"
    pages = list((report / "trees").glob("*.html"))
    submissions = [*out.glob("runs/*/kept/*/submission.csv")]
    graded = [search for search in searches if search.report]
    valid = [search for search in graded if search.report.get("valid_submission")]
    medals = {
        color: sum(bool(search.report.get(f"{color}_medal")) for search in graded)
        for color in ("gold", "silver", "bronze")
    }
    median = sum(bool(search.report.get("above_median")) for search in graded)
    page = (report / "index.html").read_text(encoding="utf-8")
    linked = sum(f"trees/{path.name}" in page for path in pages)
    return [
        Figure(
            "It ends with graded submissions and medals",
            how,
            f"{len(graded)} searches graded, {len(valid)} valid, {median} above the median; medals:"
            f" {json.dumps(medals)}; {len(submissions)} submissions kept",
            "all graded; valid ones, and medals among them",
            len(graded) == len(searches) > 0 and bool(valid),
        ),
        Figure(
            "It ends with a tree page of every search, and the behavior report",
            how,
            share(linked, len(searches)) + " trees linked from the report",
            "all",
            linked == len(searches) and "simulated" in page,
        ),
    ]


def _findings(analysis: Analysis, how: str) -> list[Figure]:
    """Compare conditions with no memory."""
    lower, not_lower = "Warm memory lowers the ", "Placebo does not lower the "
    return [
        _contrast(analysis, how, ("warm", "bug_rate"), f"{lower}bug rate", below=True),
        _contrast(analysis, how, ("warm", "first_valid"), f"{lower}first valid node", below=True),
        _contrast(analysis, how, ("placebo", "bug_rate"), f"{not_lower}bug rate", below=False),
        _contrast(
            analysis, how, ("placebo", "first_valid"), f"{not_lower}first valid node", below=False
        ),
        _contrast(analysis, how, ("warm", "operators"), "N_eff of operators under warm memory"),
        _contrast(analysis, how, ("warm", "packages"), "N_eff of packages under warm memory"),
    ]


def _contrast(
    analysis: Analysis,
    how: str,
    of: tuple[str, str],
    promise: str,
    *,
    below: bool | None = None,
) -> Figure:
    """Tell a condition's difference, judged for other seeds of these competitions.

    Three competitions say little of others: that interval is told beside it.
    """
    found = analysis.contrast(*of)
    scale, digits = found.measure.scale, found.measure.digits

    def told(estimate: Estimate | None) -> str:
        if estimate is None:
            return "no spread between seeds, so no interval,"
        ends = f"[{scale * estimate.low:.{digits}f}, {scale * estimate.high:.{digits}f}]"
        return f"{scale * estimate.value:+.{digits}f} {ends}"

    lower = found.same_tasks is not None and found.same_tasks.high < 0
    bound = {None: "", True: "the 95 % interval is below 0", False: "the 95 % interval is not"}
    return Figure(
        promise,
        f"{how}; difference from no memory in {found.measure.unit}, {found.pairs} pairs",
        f"{told(found.same_tasks)} over other seeds of these competitions; {told(found.estimate)}"
        " over other competitions, too",
        bound[below],
        None if below is None else lower == below,
    )


def _own(setting: Setting) -> Figure:
    out = setting.work / "tree-own"
    setting.say("a competition of one's own, with one command")
    steps = setting.size(12, 6)
    done = langgraft(
        "solve", setting.checkout / OWN, "--steps", steps, "--seconds", 60,
        "--data-dir", setting.work / "data", "--out", out,
    )  # fmt: skip
    wanted = ("submission.csv", "solution.py", "journal.json", "tree.html", "grade.json")
    missing = [name for name in wanted if not (out / name).is_file()]
    grade = json.loads((out / "grade.json").read_text()) if not missing else {}
    complaint = "" if done.code == 0 else f"; exit code {done.code}: {done.stderr.strip()[-200:]}"
    return Figure(
        "A user's own competition runs with one command",
        f"`langgraft solve {OWN} --steps {steps}`",
        f"score {grade.get('score')}, {len(wanted) - len(missing)} of {len(wanted)} files{complaint}",
        "a graded submission, and all files",
        done.code == 0 and not missing and grade.get("valid_submission") is True,
    )
