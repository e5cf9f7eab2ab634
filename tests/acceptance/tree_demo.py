"""The demo of the tree agent: a plan in real Docker, from data to medals, and what it finds."""

import json
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
from langgraft.benchmarks.mle.analysis import Analysis, analyze

PLAN: Final = "demo-mle"
LONGEST: Final = 1200
"""Seconds that the demo may take on two cores."""
EFFECT_SEEDS: Final = (10, 11, 12, 13, 14, 15)
"""Seeds of the searches that conditions are judged by: not those of the demo, which the simulated
model was looked at with."""
_REDUCED: Final = {
    "competitions": ["weather"],
    "seeds": [0],
    "build_seeds": [100],
    "agents": [{"name": "tree", "steps": 6}],
}
OWN: Final = Path("examples") / "own_competition" / "rents"


def measure(setting: Setting) -> list[Figure]:
    """Run the demo and a larger one, and solve a competition of one's own with one command.

    At reduced size only a small demo: the command is among the tests.
    """
    larger = [] if setting.reduced else [*_effect(setting), _own(setting)]
    return [*_demo(setting), *larger]


def _demo(setting: Setting) -> list[Figure]:
    smaller: dict[str, Any] = {} if not setting.reduced else _REDUCED
    plan = write_plan(setting, PLAN, {**shipped(PLAN), **smaller})
    out = setting.work / "tree-demo"
    setting.say("the demo of the tree agent, in Docker")
    previewed = langgraft("preview", plan)
    done = langgraft("run", plan, "--out", out)
    how = f"`langgraft run {PLAN}`" + (", one competition, one seed" if setting.reduced else "")
    promise = "The demo of the tree agent ends in time"
    figures = [ends_in_time(setting, promise, (previewed, done), how, longest=LONGEST)]
    if done.code != 0:
        return figures
    analysis = analyze(PlanLog(out))
    reported = [replace(each, bound="", passed=None) for each in _findings(analysis, how)]
    return [*figures, *_leavings(analysis, out, how), *reported]


def _effect(setting: Setting) -> list[Figure]:
    """Compare conditions over more seeds than the demo has."""
    out, more = setting.work / "tree-effect", {"seeds": list(EFFECT_SEEDS)}
    larger = {**shipped(PLAN), **more, "memory": ["off", "warm", "placebo"]}
    plan = write_plan(setting, "tree-effect", larger)
    setting.say("the same with more seeds")
    done = langgraft("run", plan, "--out", out)
    if done.code != 0:
        msg = f"the larger plan ended with {done.code}: {done.stderr.strip()[-300:]}"
        raise RuntimeError(msg)
    how = f"{PLAN} with {len(EFFECT_SEEDS)} other seeds, off, warm and placebo"
    return _findings(analyze(PlanLog(out)), how)


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
        contrast(analysis, how, ("warm", "bug_rate"), f"{lower}bug rate", below=True),
        contrast(analysis, how, ("warm", "first_valid"), f"{lower}first valid node", below=True),
        contrast(analysis, how, ("placebo", "bug_rate"), f"{not_lower}bug rate", below=False),
        contrast(
            analysis, how, ("placebo", "first_valid"), f"{not_lower}first valid node", below=False
        ),
        contrast(analysis, how, ("warm", "operators"), "N_eff of operators under warm memory"),
        contrast(analysis, how, ("warm", "packages"), "N_eff of packages under warm memory"),
    ]


def _own(setting: Setting) -> Figure:
    out = setting.work / "tree-own"
    setting.say("a competition of one's own, with one command")
    steps = 12  # of six, all may fail by chance: the simulated model errs
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
