"""A transplant from problems of code to problems of mathematics."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from transplant_log import transplant_plan

from langgraft._core.errors import InputError, PlanError, SandboxUnavailableError
from langgraft.benchmarks.harness import PlanLog, prepare, run_plan
from langgraft.benchmarks.studies import studies
from langgraft.benchmarks.transplant.domains import fingerprint, open_domain, simulated_solver
from langgraft.benchmarks.transplant.plan import TransplantPlan
from langgraft.environments.problems.code_grading import find_program
from langgraft.nodes.problem import solve_messages, solve_prompt

GRADED = [
    ("twice", "print(2 * int(input()))", True),
    ("thrice", "print(3 * int(input()))", False),
    ("half", "", False),
    ("untested", "print(1)", True),
]
"""Problem, program and its verdict."""


def write_problems(folder: Path) -> Path:
    """Write problems as LiveCodeBench's graded outputs tell them; the last has no test."""
    rows = [
        {
            "question_id": name,
            "question_content": f"Print {name} the number.",
            "platform": "atcoder",
            "starter_code": "",
            "difficulty": "easy",
            "known_tests": [{"input": "4\n", "expected": "8\n"}] if name != "untested" else [],
            "graded_solution": {"code": code, "passed": passed},
        }
        for name, code, passed in GRADED
    ]
    path = folder / "problems.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


@pytest.fixture
def plan(tmp_path: Path) -> TransplantPlan:
    """Return a small plan from code to algebra."""
    return transplant_plan(
        source={"name": "code", "problems": "livecodebench", "file": str(write_problems(tmp_path))},
        target={"name": "algebra", "problems": "generated"},
        systems=[{"name": "rag", "provider": "simple_rag", "source": {"top_k": 2}}],
        solvers=[{"name": "able", "strengths": {"otherwise": 1.0}}],
        controlled=[],
        budgets=[400],
        seeds=1,
        build_items=3,
        target_build_items=2,
        eval_items=2,
        noise_runs=0,
    )


def test_solver_when_it_knows_a_right_program_replies_with_it_and_else_with_a_wrong_one(
    plan: TransplantPlan,
) -> None:
    """A problem without a program that is known to be right is never solved."""
    model = simulated_solver(plan, plan.solvers[0], 0)
    problems = open_domain(plan.source).problems
    for name, program in (
        ("twice", "print(2 * int(input()))"),
        ("thrice", "print(3 * int(input()))"),
        ("half", "raise NotImplementedError"),
    ):
        asked = solve_messages(solve_prompt(), problems[name].text, "")
        assert find_program(model.invoke(asked).text)[0] == program


def test_problems_when_they_have_no_tests_are_never_drawn(plan: TransplantPlan) -> None:
    """Three of four have any; the fingerprint covers what is run."""
    assert set(fingerprint(plan)) == {"evaluation", "source build 0", "target build 0"}
    with pytest.raises(InputError, match="too few problems to draw from: 3 of 4"):
        fingerprint(plan.model_copy(update={"build_items": 4}))


def test_study_when_there_is_no_engine_is_planned_but_not_begun(
    plan: TransplantPlan, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listing runs needs none; running is refused before the first item."""
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    study = studies()["transplant"]
    prepared = prepare(study, plan)
    with pytest.raises(SandboxUnavailableError):
        asyncio.run(run_plan(prepared, tmp_path / "out", model_for=study.simulated_model))
    assert not list((tmp_path / "out").rglob("items.jsonl"))


def test_problems_when_their_file_is_not_there_say_how_to_get_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """In the folder of data, unless the plan names a file."""
    monkeypatch.setenv("LANGGRAFT_DATA", str(tmp_path))
    for source, name in (("livecodebench", "livecodebench"), ("humaneval", "humaneval")):
        made = transplant_plan(source={"name": f"{name}-absent", "problems": source})
        with pytest.raises(PlanError, match=f"code/{name}.jsonl.gz; name the file"):
            open_domain(made.source)


@pytest.mark.usefixtures("docker_image")
def test_study_when_memory_comes_from_code_builds_banks_of_programs_that_ran(
    plan: TransplantPlan, tmp_path: Path
) -> None:
    """The right program is a success, the others failures by their kinds; nothing tells of tests."""
    study = studies()["transplant"]
    prepared = prepare(study, plan)
    asyncio.run(run_plan(prepared, tmp_path / "out", model_for=study.simulated_model))
    log = PlanLog(tmp_path / "out")
    builds = {run.factors["architecture"]: run for run in log.runs if "/build/" in run.name}
    build = builds["source"]
    found = {each["problem"]: each for each in log.results(build.name)}
    assert {name: each["reason"] for name, each in found.items()} == {
        "twice": "goal reached",
        "thrice": "wrong answer on test 1",
        "half": "NotImplementedError on test 1",
    }
    assert found["twice"]["answer"] == "print(2 * int(input()))"
    written = json.dumps([each.to_json() for deltas in log.deltas(build.name) for each in deltas])
    assert "wrong answer on test 1" in written
    assert "oracle" in written
    moved = [run for run in log.runs if run.factors["condition"] == "C_ONLY"]
    imported: Any = log.results(moved[0].name)[0]["imported"]
    assert imported["kept"] > 0
