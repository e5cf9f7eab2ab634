"""A world of somebody else's in the study: named in the plan, imported when it is run, checked first."""

import asyncio
import importlib
import itertools
import json
import linecache
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from langgraft._core.errors import PlanError, ResumeRefusedError
from langgraft.benchmarks.continual import worlds
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.continual.study import ContinualStudy
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.plans import plan_from_data, prepare
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.verify import verify_directory
from langgraft.cli.app import app

STUDY = ContinualStudy()
GUIDE = Path(__file__).parents[3] / "docs" / "your-own-world.md"
LEVERS = GUIDE.read_text("utf-8").split("```python\n")[1].split("```")[0]
_NAMES = (f"world_of_a_test_{number}" for number in itertools.count())

GRID = {"name": "grid", "A": "babyai/action_obj_door", "B": "babyai/find_obj"}

Writer = Callable[[str], str]


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Writer:
    """Return what writes the guide's world, with code after it, as a module that can be imported."""
    monkeypatch.syspath_prepend(tmp_path)

    def writing(after: str = "") -> str:
        name = next(_NAMES)
        (tmp_path / f"{name}.py").write_text(f"{LEVERS}\n\n{after}\n")
        importlib.invalidate_caches()
        return name

    return writing


def plan_of(world: str | None, **fields: Any) -> ContinualPlan:
    """Return a small plan in a world, as a plan file is read."""
    data = {
        "study": "continual",
        "world": world,
        "tasks": {"A": "levers/gate", "B": "levers/chest"},
        "conditions": [{"name": "raw", "provider": "trajectory"}],
        "controls": [{"control": "random", "of": "raw"}],
        "train_items": 3,
        "test_items": 2,
        "runs": 1,
        "baseline_runs": 1,
        **fields,
    }
    _, plan = plan_from_data(data, {"continual": STUDY}, Path("plan.yaml"))
    assert isinstance(plan, ContinualPlan)
    return plan


def play(plan: ContinualPlan, out: Path) -> PlanLog:
    """Run a plan with its world's simulated learner."""
    outcome = asyncio.run(run_plan(prepare(STUDY, plan), out, model_for=STUDY.simulated_model))
    assert outcome.complete
    return PlanLog(out)


@pytest.mark.usefixtures("no_figures")
def test_world_when_of_ones_own_then_is_studied_with_controls_and_reported(
    write: Writer, tmp_path: Path
) -> None:
    """Runs play its tasks, the directory verifies, and the report has the control."""
    plan = plan_of(f"{write('')}:Levers")
    log = play(plan, tmp_path / "run")
    assert log.graph["raw/0/train A"].spec.item_ids[0].startswith("levers/gate/")
    assert all(run.finished for run in log.progress())
    assert verify_directory(log.path) == []
    report = STUDY.report(plan.model_copy(update={"train_items": 9}), log, tmp_path / "report")
    assert "raw+random" in {row[0] for row in report.rows}
    assert "levers/gate has 3 training tasks, where the plan asks for 9." in report.lines
    assert "Fewer tasks than asked for." in report.page.read_text("utf-8")


def test_plan_when_only_looked_at_then_imports_no_world(write: Writer, tmp_path: Path) -> None:
    """A preview counts what the plan asks for, and says that it did not look; a run says the error."""
    name = write("raise RuntimeError('imported')")
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps(plan_of(f"{name}:Levers").model_dump(mode="json")))
    shown = json.loads(CliRunner().invoke(app, ["preview", str(path), "--json"]).output)
    calls = {group["condition"]: group["most_model_calls"] for group in shown["groups"]}
    assert calls["none"] == 4 * worlds.MOST_ROUNDS
    assert any(name in note for note in shown["notes"])
    assert any("most there can be" in note for note in shown["notes"])
    assert name not in sys.modules
    done = CliRunner().invoke(app, ["run", str(path), "--out", str(tmp_path / "out")])
    assert isinstance(done.exception, PlanError)
    assert f"'{name}:Levers' cannot be imported: imported" in str(done.exception)
    assert not (tmp_path / "out").exists()


def test_tasks_when_fewer_than_asked_for_then_are_all_played_and_it_is_said(write: Writer) -> None:
    """A world is not refused for being small; more milestones than tasks cannot be."""
    plan = plan_of(f"{write('')}:Levers", train_items=200, test_items=100)
    runs = STUDY.expand(plan)
    lengths = {(str(run.factors["kind"]), run.length) for run in runs}
    assert lengths == {("train", 24), ("evaluate", 12)}
    notes = STUDY.notes(plan, runs)
    assert "levers/chest has 24 training tasks, where the plan asks for 200" in notes
    assert "levers/gate has 12 test tasks, where the plan asks for 100" in notes
    with pytest.raises(PlanError, match="25 milestones do not fit into the 24 training tasks"):
        STUDY.expand(plan.model_copy(update={"milestones": 25}))


_CASES: dict[str, tuple[str, str, str]] = {
    "nothing there": ("", "Gates", "cannot be imported: module .* has no attribute 'Gates'"),
    "not callable": ("World = 3", "World", "is no world: .* got 3"),
    "no tasks": ("def World(task_id): ...", "World", "have a method `tasks"),
    "class with arguments": (
        "class World:\n    def __init__(self, size): ...",
        "World",
        "calling World without arguments raised TypeError",
    ),
    "no task": (
        "class World(Levers):\n    def tasks(self, domain, split): return []",
        "World",
        r"tasks\('levers/gate', 'train'\) must return tasks, got \[\]",
    ),
    "endless": (
        "class World(Levers):\n    def tasks(self, domain, split):\n        while True: yield 1",
        "World",
        "must return tasks, got <generator",
    ),
    "no such family": (
        "class World(Levers):\n    def tasks(self, domain, split): return {}[domain]",
        "World",
        "raised KeyError: 'levers/gate'",
    ),
    "other domain": (
        (
            "class World(Levers):\n    def tasks(self, domain, split):"
            "\n        return [TextTask('a/1', 'a', split)]"
        ),
        "World",
        "no `TextTask` of these",
    ),
    "same in both splits": (
        (
            "class World(Levers):\n    def tasks(self, domain, split):"
            "\n        return [TextTask(f'{domain}/1', domain, split)]"
        ),
        "World",
        "'levers/gate/1' of 'levers/gate', test, is also in 'levers/gate', train",
    ),
    "another task": (
        (
            "class World(Levers):\n    def __call__(self, task_id):"
            "\n        return Episode(self.tasks('levers/gate', 'test')[0])"
        ),
        "World",
        "no `TextEnvironment` of it",
    ),
    "no episode": (
        "class World(Levers):\n    def __call__(self, task_id): return None",
        "World",
        "making an episode of task 'levers/gate/0' raised AttributeError",
    ),
    "too many rounds": (
        (
            "class World(Levers):\n    def __call__(self, task_id):\n"
            "        made = Levers.__call__(self, task_id)\n        made.max_rounds = 101\n"
            "        return made"
        ),
        "World",
        "max_rounds of an episode must be from 1 to 100, got 101",
    ),
    "no learner": (
        "class World:\n    __call__, tasks, _all = Levers.__call__, Levers.tasks, Levers._all",
        "World",
        "has no simulated learner: name a model, as in --model",
    ),
    "no chat model": (
        "class World(Levers):\n    def learner(self, seed, temperature, settings): return 'me'",
        "World",
        "learner returned no chat model, but 'me'",
    ),
    "semantics of another kind": (
        "class World(Levers):\n    semantics = 'hard'",
        "World",
        "semantics must be a tuple of names, got 'hard'",
    ),
}


@pytest.mark.parametrize("case", _CASES)
def test_world_when_it_is_none_then_one_error_says_why_before_anything_is_written(
    case: str, write: Writer, tmp_path: Path
) -> None:
    """The error names the world, what was asked of it, and what came."""
    after, attribute, says = _CASES[case]
    plan = plan_of(f"{write(after)}:{attribute}")
    with pytest.raises(PlanError, match=says) as raised:
        play(plan, tmp_path / "run")
    assert str(raised.value).count("\n") == 0
    assert not (tmp_path / "run").exists()


def test_world_when_without_a_learner_then_is_played_by_a_real_model(write: Writer) -> None:
    """Its runs can be listed and its fingerprints taken."""
    after, attribute, _ = _CASES["no learner"]
    plan = plan_of(f"{write(after)}:{attribute}", model="openai:some")
    assert STUDY.expand(plan)
    assert STUDY.fingerprints(plan)["world"]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"world": "babyai"}, "'babyai' is no 'package.module:Object'; worlds of langgraft's own"),
        ({"world": "../levers:X"}, "is no 'package.module:Object'"),
        ({"world": "levers:X", "tasks": {}}, "name the families of 'levers:X'"),
        (
            {"pairs": [{"name": "a", "A": "x", "B": "y", "world": "levers:X"}]},
            "world: with `pairs`, each pair has its own",
        ),
    ],
)
def test_plan_when_its_world_is_ill_named_then_is_refused(
    fields: dict[str, Any], says: str
) -> None:
    """Nothing is imported to say so."""
    if "pairs" in fields:
        fields = {**fields, "tasks": {"A": GRID["A"], "B": GRID["B"]}}
    with pytest.raises(PlanError, match=says):
        plan_of(**{"world": "levers:X", **fields})


def test_pairs_when_in_worlds_of_their_own_then_are_played_in_one_plan(
    write: Writer, tmp_path: Path
) -> None:
    """A pair in a world of one's own stands beside one in BabyAI."""
    world = f"{write('')}:Levers"
    plan = plan_of(
        None,
        tasks={"A": GRID["A"], "B": GRID["B"]},
        pairs=[{"name": "own", "A": "levers/gate", "B": "levers/chest", "world": world}, GRID],
        train_items=1,
        test_items=1,
        sequences=["A>B"],
        controls=[],
    )
    assert STUDY.foreign_code(plan) == (world,)
    log = play(plan, tmp_path / "run")
    assert {run.factors["pair"] for run in log.runs} == {"own", "grid"}


def test_semantics_when_a_world_has_several_then_the_plan_chooses(write: Writer) -> None:
    """The first is the default; another name is refused, as is any of a world that has one way."""
    name = write(
        "class Ways(Levers):\n    semantics, made = ('easy', 'hard'), []\n"
        "    def factory(self, semantics):\n        self.made.append(semantics)\n"
        "        return self\n"
    )
    for semantics, expected in (("compat", "easy"), ("hard", "hard")):
        STUDY.expand(plan_of(f"{name}:Ways", semantics=semantics))
        assert sys.modules[name].Ways.made[-1] == expected
    with pytest.raises(PlanError, match=r"one of easy, hard \(got 'odd'\)"):
        STUDY.expand(plan_of(f"{name}:Ways", semantics="odd"))
    with pytest.raises(PlanError, match="there is one way to play it"):
        STUDY.expand(plan_of(f"{name}:Levers", semantics="hard"))


def test_order_when_a_curriculum_then_the_world_says_how_hard_its_tasks_are(write: Writer) -> None:
    """By its method; without one, or with a grade that is none, one error says so."""
    wish = {"conditions": [{"name": "raw", "provider": "trajectory"}], "order": "curriculum"}
    for body, says in (
        ("pass", r"order 'curriculum': world '.*:Graded' has no method `difficulty\(task_id\)`"),
        ("difficulty = lambda self, task_id: 'hard'", "must return a number, got 'hard'"),
        ("difficulty = lambda self, task_id: float('nan')", "must return a number, got nan"),
        ("difficulty = lambda self, task_id: 1 / 0", "raised ZeroDivisionError: division by zero"),
    ):
        module = write(f"class Graded(Levers):\n    {body}")
        with pytest.raises(PlanError, match=says):
            STUDY.expand(plan_of(f"{module}:Graded", **wish))
    module = write("class Graded(Levers):\n    difficulty = lambda self, id: -int(id[-1])")
    runs = {run.name: run for run in STUDY.expand(plan_of(f"{module}:Graded", **wish))}
    assert [item[-1] for item in runs["raw/0/train A"].item_ids] == ["2", "1", "0"]


def test_run_when_the_world_has_changed_then_does_not_go_on(write: Writer, tmp_path: Path) -> None:
    """Its code, and the versions of packages that it names, are part of what a run rests on."""
    name = write("Levers.packages = ('numpy', 'not-there')")
    plan = plan_of(f"{name}:Levers")
    described: Any = plan.played_in.describe("compat", (plan.tasks.A, plan.tasks.B))
    assert described["packages"]["numpy"]
    assert described["packages"]["not-there"] is None
    play(plan, tmp_path / "run")
    path = tmp_path / f"{name}.py"
    path.write_text(path.read_text().replace("It jams.", "It does not move."))
    linecache.checkcache()
    with pytest.raises(ResumeRefusedError, match="world"):
        play(plan, tmp_path / "run")


def test_learner_when_it_has_no_such_setting_then_the_error_names_the_world(
    write: Writer,
) -> None:
    """Settings of the learner are the world's to check."""
    plan = plan_of(f"{write('')}:Levers", learner={"context": -1})
    with pytest.raises(PlanError, match="Levers': learner raised ValidationError"):
        STUDY.expand(plan)


def test_error_of_a_world_when_it_is_ours_then_is_told_as_it_is(write: Writer) -> None:
    """A `SettingsError` that a world raises is quoted, with the world's name before it."""
    name = write(
        "from langgraft._core.errors import SettingsError\n\nclass World(Levers):\n"
        "    def tasks(self, domain, split): raise SettingsError('no levers today')"
    )
    with pytest.raises(PlanError, match=r"tasks.*: no levers today"):
        STUDY.expand(plan_of(f"{name}:World"))
