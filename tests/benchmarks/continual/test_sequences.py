"""Sequences of more than two tasks, mixed streams, and training beside no memory."""

import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure
from synthetic_log import SyntheticLog, World

from langgraft._core.errors import PlanError
from langgraft.benchmarks.continual.analysis import analyze
from langgraft.benchmarks.continual.cells import read_study_log
from langgraft.benchmarks.continual.columns import MEANINGS
from langgraft.benchmarks.continual.curves import online, regrets
from langgraft.benchmarks.continual.metrics import Partition, partition, transfers
from langgraft.benchmarks.continual.paper.report import write_paper_report
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.continual.report import write_report
from langgraft.benchmarks.continual.sequences import Position, SequenceResult, sequence_results
from langgraft.benchmarks.continual.study import ContinualStudy
from langgraft.benchmarks.continual.tables import tables
from langgraft.benchmarks.harness.plans import plan_from_data
from langgraft.benchmarks.harness.study import RunSpec
from langgraft.benchmarks.reporting.drawing import svg_text
from langgraft.environments.babyai import BabyAI

pytestmark = pytest.mark.matrix  # whole studies

STUDY = ContinualStudy()
THREE = {"A": "babyai/action_obj_door", "B": "babyai/find_obj", "C": "babyai/pickup_loc"}
SMALL: dict[str, Any] = {
    "tasks": THREE,
    "sequences": ["A>B>C"],
    "conditions": [{"name": "raw", "provider": "trajectory"}],
    "train_items": 6,
    "test_items": 3,
    "runs": 1,
    "baseline_runs": 1,
    "rerun": False,
}


def plan_of(**fields: Any) -> ContinualPlan:
    """Return a small plan as a plan file is read."""
    data = {"study": "continual", **SMALL, **fields}
    _, plan = plan_from_data(data, {"continual": STUDY}, Path("plan.yaml"))
    assert isinstance(plan, ContinualPlan)
    return plan


def runs_of(**fields: Any) -> dict[str, RunSpec]:
    """Return the runs of a small plan by name."""
    return {run.name: run for run in STUDY.expand(plan_of(**fields))}


# Runs ------------------------------------------------------------------------------------------


def test_runs_when_three_tasks_follow_then_each_phase_goes_on_and_all_tasks_are_tested() -> None:
    """Scratch streams, then A>B and A>B>C; after each phase of the sequence tasks to come, too."""
    runs = runs_of()
    assert list(runs) == [
        *(f"none/0/test {task}" for task in "ABC"),
        *("raw/0/train A", "raw/0/test A after A", "raw/0/test B after A", "raw/0/test C after A"),
        *("raw/0/train B", "raw/0/test B after B"),
        *("raw/0/train C", "raw/0/test C after C"),
        *("raw/0/train A>B", "raw/0/test B after A>B", "raw/0/test A after A>B"),
        "raw/0/test C after A>B",
        *("raw/0/train A>B>C", "raw/0/test C after A>B>C", "raw/0/test A after A>B>C"),
        "raw/0/test B after A>B>C",
    ]
    sources = {name: run.source.run for name, run in runs.items() if run.source}
    assert sources["raw/0/train A>B>C"] == "raw/0/train A>B"
    assert sources["raw/0/train A>B"] == "raw/0/train A"
    assert sources["raw/0/test C after A>B"] == "raw/0/train A>B"
    assert runs["raw/0/train A>B>C"].item_ids == runs["raw/0/train C"].item_ids


def test_runs_when_sequences_begin_alike_then_share_what_they_begin_with() -> None:
    """A>B is trained once for both; tasks to come are those of either."""
    tasks = {
        "A": "pick_and_place",
        "B": "look_at_obj",
        "C": "pick_two_obj",
        "D": "pick_heat_then_place",
    }
    four = {letter: f"alfworld-generated/{family}" for letter, family in tasks.items()}
    runs = runs_of(tasks=four, sequences=["A>B>C", "A>B>D"])
    trained = [run.factors["sequence"] for run in runs.values() if not run.frozen]
    assert trained == ["A", "B", "C", "D", "A>B", "A>B>C", "A>B>D"]
    after = [run.factors["task"] for run in runs.values() if run.factors["sequence"] == "A>B"]
    assert after == ["B", "B", "A", "C", "D"]


@pytest.mark.parametrize(
    ("sequence", "tests", "early"),
    [("A>B", None, 0), ("A>B", "all", 1), ("A>B>C", None, 3), ("A>B>C", "met", 0)],
)
def test_runs_when_tests_are_chosen_then_tasks_to_come_are_tested_or_not(
    sequence: str, tests: str | None, early: int
) -> None:
    """By default in sequences of more than two tasks alone: the paper has two and no such tests."""
    tasks = {letter: THREE[letter] for letter in sequence if letter in THREE}
    runs = runs_of(tasks=tasks, sequences=[sequence], tests=tests).values()
    found = [
        run
        for run in runs
        if (s := str(run.factors["sequence"])) and str(run.factors["task"]) not in s
    ]
    assert len(found) == early
    assert all(run.frozen for run in found)


def test_runs_when_a_controls_transfer_is_asked_then_it_is_tested_after_every_phase() -> None:
    """What FWT and BWT of each position are made of; without it, only after whole sequences."""
    control = {"control": "placebo", "of": "raw"}
    short = [n for n in runs_of(controls=[control]) if n.startswith("raw+")]
    assert short == [f"raw+placebo/0/test {task} after A>B>C" for task in "ABC"]
    long = [n for n in runs_of(controls=[{**control, "transfer": True}]) if n.startswith("raw+")]
    assert long == [
        *(f"raw+placebo/0/test {task} after {task}" for task in "ABC"),
        *(f"raw+placebo/0/test {task} after A>B" for task in "AB"),
        *(f"raw+placebo/0/test {task} after A>B>C" for task in "ABC"),
    ]


def test_runs_when_training_is_played_without_memory_then_it_is_the_streams_of_each_task() -> None:
    """The same instances in the same order with the same samples, and no bank."""
    runs = runs_of(online_baseline=True)
    for task in "ABC":
        bare, own = runs[f"none/0/train {task}"], runs[f"raw/0/train {task}"]
        assert bare.item_ids == own.item_ids
        assert bare.factors["model_seed"] == own.factors["model_seed"]
        assert bare.frozen
        assert bare.source is None
    others = {name: run for name, run in runs.items() if not name.startswith("none/0/train")}
    assert others == runs_of()


@pytest.mark.parametrize("order", ["shuffled", "interleaved"])
def test_runs_when_tasks_are_mixed_then_are_one_stream_of_all_instances(order: str) -> None:
    """One stream from an empty bank, in turns or by chance; what tests it are all tasks."""
    runs = runs_of(order=order)
    mixed, alone = runs["raw/0/train A+B+C"], [runs[f"raw/0/train {task}"] for task in "ABC"]
    assert mixed.source is None
    assert sorted(mixed.item_ids) == sorted(item for run in alone for item in run.item_ids)
    families = [item.rpartition("/")[0] for item in mixed.item_ids]
    assert (families == [*THREE.values()] * 6) == (order == "interleaved")
    for run in alone:  # each task's own instances come in the order they have alone
        assert [i for i in mixed.item_ids if i in run.item_ids] == [*run.item_ids]
    tests = [r.factors["task"] for r in runs.values() if r.source and r.source.run == mixed.name]
    assert tests == ["C", "A", "B"]


def test_runs_when_the_order_is_a_curriculum_then_each_phase_goes_from_easy_to_hard() -> None:
    """Phases are as ever; within one the moves to win only grow, and equals are in an order of chance."""
    world, blocked, graded = BabyAI(), runs_of(), runs_of(order="curriculum")
    assert blocked.keys() == graded.keys()
    for name, run in graded.items():
        assert run.source == blocked[name].source
        assert sorted(run.item_ids) == sorted(blocked[name].item_ids)
        if run.factors["kind"] == "train":
            grades = [world.difficulty(item) for item in run.item_ids]
            assert grades == sorted(grades)
    mazes = graded["raw/0/train C"].item_ids
    assert world.difficulty(mazes[0]) < world.difficulty(mazes[-1])


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        (
            {"sequences": []},
            "sequences: give at least one, such as 'A>B' or 'A>B>C', and each once",
        ),
        ({"sequences": ["A>B>C", "A>B>C"]}, "sequences: give at least one, .* each once"),
        ({"sequences": ["A>B>A"]}, r"sequences: .* each once, joined by '>' \(got 'A>B>A'\)"),
        ({"sequences": ["A"]}, r"sequences: .* two letters of tasks or more.*\(got 'A'\)"),
        ({"sequences": ["A>b"]}, r"sequences: .*\(got 'A>b'\)"),
        ({"sequences": ["A>B>"]}, r"sequences: .*\(got 'A>B>'\)"),
        ({"sequences": ["A>" * 100_000]}, r"sequences: .*\(got 'A>A>A"),
        ({"sequences": ["A>B>C>D"]}, "sequences name task D, but tasks are A, B, C"),
        ({"sequences": ["A>B"]}, "task C is in none of the sequences A>B"),
        ({"tasks": {**THREE, "I": "babyai/x"}}, "tasks.I: extra inputs are not permitted"),
        ({"tasks": {**THREE, "C": THREE["A"]}}, "tasks A and C are both 'babyai/action_obj_door'"),
        ({"tasks": {**THREE, "C": "alfworld/look_at_obj"}}, "a stream is played in one world"),
        ({"order": "random"}, "order: .*'blocked', 'shuffled', 'interleaved' or 'curriculum'"),
        (
            {"order": "shuffled", "sequences": ["A>B>C", "C>B>A"]},
            "order 'shuffled' makes one stream .* with the same tasks give one, got A>B>C, C>B>A",
        ),
        ({"tests": "none"}, "tests: .*'met' or 'all'"),
        (
            {"tasks": {}, "pairs": [{"name": "p", "A": THREE["A"], "B": THREE["B"]}]},
            "pair 'p': sequences name task C, but tasks are A, B",
        ),
    ],
)
def test_plan_when_its_sequences_mean_nothing_then_is_one_clear_error(
    fields: dict[str, Any], says: str
) -> None:
    """Before anything is written, in one line that quotes no more than it has to."""
    with pytest.raises(PlanError, match=says) as caught:
        STUDY.expand(plan_of(**fields))
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 400


def test_plan_when_written_then_names_the_tasks_that_there_are_and_reads_back() -> None:
    """A plan of two tasks is written as ever, without letters that nobody gave."""
    assert plan_of().model_dump()["tasks"] == THREE
    two = plan_of(tasks={}, sequences=["A>B"])
    assert set(two.model_dump()["tasks"]) == {"A", "B"}
    assert ContinualPlan.model_validate(plan_of().model_dump(mode="json")) == plan_of()


# What is read off them ---------------------------------------------------------------------------


def splits_of(world: World) -> tuple[Any, dict[str, Partition]]:
    """Read a log, and split the test items of its tasks."""
    study = read_study_log(SyntheticLog(world))
    return study, {task: partition(study, task) for task in world.tasks}


def results_of(world: World) -> dict[tuple[str, str], SequenceResult]:
    """Return what came of each condition and sequence."""
    study, splits = splits_of(world)
    found = sequence_results(study, transfers(study, splits))
    return {(each.condition, each.sequence): each for each in found}


def three(**fields: Any) -> World:
    """Return a study of three tasks, of one memory unless told otherwise."""
    plain: dict[str, Any] = {"conditions": ("agg",), "controls": (), "replicates": 5}
    return World(**{**plain, "sequences": ("A>B>C",), "to_come": True, "test_items": 60, **fields})


def verdict(place: Position) -> tuple[float, str]:
    """Return the BWT of a position and what it comes to."""
    assert place.backward is not None
    assert place.backward.transfer.transfer.estimate is not None
    return place.backward.transfer.transfer.estimate.value, place.backward.verdict


@pytest.mark.parametrize("seed", range(3))
def test_forgetting_when_planted_at_position_2_then_is_found_there_and_nowhere_else(
    seed: int,
) -> None:
    """What the third task did to the second, among three tasks and two memories."""
    effects: Mapping[tuple[str, str, str], float] = {("raw", "A>B>C", "B"): -0.3}
    found = results_of(three(conditions=("raw", "agg"), effects=effects, seed=seed))
    raw, agg = found["raw", "A>B>C"].positions, found["agg", "A>B>C"].positions
    value, said = verdict(raw[1])
    assert value < -0.1
    assert said == "hurt"
    assert {verdict(place)[1] for place in (raw[0], *agg[:2])} == {"no detectable difference"}
    assert raw[1].forgetting is not None
    assert raw[1].forgetting.estimate is not None
    assert raw[1].forgetting.estimate.low > 0
    assert all(each.forward.verdict != "hurt" for each in (*raw, *agg) if each.forward)


def test_forgetting_when_zero_is_planted_then_is_hardly_ever_found() -> None:
    """Over 12 studies without any effect, few have a verdict at any of their positions."""
    said = []
    for seed in range(12):
        world = three(test_items=20, train_items=2, seed=seed, rerun=False)
        positions = results_of(world)["agg", "A>B>C"].positions
        said.append([verdict(place)[1] for place in positions[:2]])
    wrong = [each for each in said if set(each) != {"no detectable difference"}]
    assert len(wrong) <= 2  # of families at a level of 5 %: more would be a chance of 1 in 50


def test_zero_shot_when_planted_then_is_told_from_forward_transfer() -> None:
    """What A did for C before C was learned is no transfer to C once it is."""
    effects = {("agg", "A>B", "C"): 0.3}
    result = results_of(three(effects=effects))["agg", "A>B>C"]
    *_, last = result.positions
    assert last.zero_shot is not None
    assert last.zero_shot.verdict == "helped"
    assert last.forward is not None
    assert last.forward.verdict == "no detectable difference"
    assert result.positions[1].zero_shot is not None
    assert result.positions[1].zero_shot.verdict == "no detectable difference"


def test_matrix_when_read_then_has_an_entry_for_every_phase_and_task() -> None:
    """Rows after 0 to n phases, columns in the order of the sequence; its means are the averages."""
    effects = {("agg", "B>C>A", "B"): -0.2, ("agg", "B>C", "C"): 0.3}
    world = three(sequences=("B>C>A",), effects=effects)
    result = results_of(world)["agg", "B>C>A"]
    table = {(e.phases, e.task): e.accuracy.estimate for e in result.matrix}
    assert {(i, j) for i, j in table} == {(i, j) for i in range(4) for j in "ABC"}
    assert {e.after for e in result.matrix} == {"", "B", "B>C", "B>C>A"}
    assert [(e.phases, e.task) for e in result.matrix if e.met] == [
        *((1, "B"), (2, "B"), (2, "C"), (3, "B"), (3, "C"), (3, "A")),
    ]
    value = {place: e.value for place, e in table.items() if e is not None}
    assert result.average.estimate is not None
    last = [value[3, task] for task in "ABC"]
    assert result.average.estimate.value == pytest.approx(sum(last) / 3)
    lost = [value[3, task] - value[i, task] for i, task in ((1, "B"), (2, "C"))]
    assert result.backward.estimate is not None
    assert result.backward.estimate.value == pytest.approx(sum(lost) / 2)
    for place, change in zip(result.positions[:2], lost, strict=True):
        assert verdict(place)[0] == pytest.approx(change)
    best = [max(value[i, task] for i in (1, 2)) - value[3, task] for task in "BC"]
    assert result.forgetting.estimate is not None
    assert result.forgetting.estimate.value == pytest.approx(sum(best) / 2)
    early = [value[1, "C"], value[2, "A"]]
    assert result.zero_shot.estimate is not None
    bare = [_untrained(world, task) for task in "CA"]
    assert result.zero_shot.estimate.value == pytest.approx((sum(early) - sum(bare)) / 2)


def _untrained(world: World, task: str) -> float:
    """Return success without memory over all runs, the re-run's included."""
    study = read_study_log(SyntheticLog(world))
    runs = [
        outcomes
        for name in ("none", "rerun")
        for cell in study.final_cells(name)
        if cell.key.task == task
        for outcomes in cell.scores.values()
    ]
    return sum(sum(each.values()) / len(each) for each in runs) / len(runs)


@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 999), lost=st.sampled_from([0.0, -0.4, 0.4]))
def test_matrix_when_of_two_tasks_then_is_the_papers_transfer(seed: int, lost: float) -> None:
    """FWT and BWT are the rows of the transfer tables, and forgetting is BWT's other sign."""
    world = three(
        sequences=("A>B", "B>A"),
        effects={("agg", "A>B", "A"): lost},
        test_items=12,
        train_items=2,
        replicates=3,
        seed=seed,
    )
    study, splits = splits_of(world)
    rows = {(r.direction, r.sequence): r for r in transfers(study, splits)}
    for result in sequence_results(study, tuple(rows.values())):
        first, second = result.positions
        assert second.forward is not None
        assert second.forward.transfer is rows["forward", result.sequence]
        assert first.backward is not None
        assert first.backward.transfer is rows["backward", result.sequence]
        estimate, gone = first.backward.transfer.transfer.estimate, first.forgetting
        assert estimate is not None
        assert gone is not None
        assert gone.estimate is not None
        assert gone.estimate.value == pytest.approx(-estimate.value)


def test_comparison_when_tasks_to_come_are_tested_then_does_not_count_them() -> None:
    """Whether memory helped is asked of tasks it has learned: planted effects on others are no help."""
    effects = {("agg", "A", "B"): 0.9, ("agg", "A", "C"): 0.9, ("agg", "A>B", "C"): 0.9}
    with_them = analyze(SyntheticLog(three(effects=effects, rerun=False)))
    without = analyze(SyntheticLog(three(to_come=False, rerun=False)))
    assert with_them.comparison["agg"] == without.comparison["agg"]


# Along training ----------------------------------------------------------------------------------


def test_online_when_memory_helps_in_training_then_difference_and_regret_say_so() -> None:
    """Paired by instance and run; regret is what was lost so far, and so falls below 0."""
    effects = {("agg", "A>B>C", "C"): 0.4}
    study = read_study_log(SyntheticLog(three(effects=effects, online=True, train_items=40)))
    found = {each.sequence: each.difference.estimate for each in online(study)}
    assert list(found) == ["A", "B", "C", "A>B", "A>B>C"]
    gained, nothing = found["A>B>C"], found["A>B"]
    assert gained is not None
    assert gained.low > 0.05
    assert nothing is not None
    assert nothing.low < 0 < nothing.high
    (curve,) = regrets(study)
    assert curve.length == curve.planned == 120
    told = [found[phase] for phase in ("A", "A>B", "A>B>C")]
    assert curve.mean[-1] == pytest.approx(-40 * sum(e.value for e in told if e is not None))


def test_online_when_nothing_was_played_without_memory_then_is_empty() -> None:
    """There is nothing to hold success in training to."""
    study = read_study_log(SyntheticLog(three()))
    assert online(study) == ()
    assert regrets(study) == ()


# Reports -----------------------------------------------------------------------------------------


@pytest.fixture
def few_figures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Draw what is another figure where there are more than two tasks, or where they are mixed."""
    drawn = {"matrix", "regret", "learning", "backward"}

    def draw(name: str, figure: Callable[[], Figure]) -> str:
        return svg_text(name, figure) if name in drawn else "<svg></svg>"

    monkeypatch.setattr("langgraft.benchmarks.continual.figures.svg_text", draw)


@pytest.fixture(scope="module")
def log() -> SyntheticLog:
    """Return a study of three tasks, with everything a plan can ask for."""
    effects = {("raw", "A>B>C", "B"): -0.5}
    world = three(
        conditions=("raw", "agg"),
        controls=("raw+placebo",),
        online=True,
        steps=2,
        train_items=10,
        test_items=24,
        replicates=4,
        effects=effects,
    )
    return SyntheticLog(world)


@pytest.mark.usefixtures("few_figures")
def test_report_when_of_three_tasks_then_shows_the_matrix_and_where_it_was_forgotten(
    log: SyntheticLog, tmp_path: Path
) -> None:
    """Page, figures and tables; every column is explained."""
    plan = plan_of()
    analysis = analyze(log)
    page = write_report(plan, log, tmp_path, analysis=analysis).page
    text = page.read_text("utf-8")
    assert "raw, A → B → C" in text
    assert "not learned yet" in text
    assert "Regret over all phases" in text
    for name in ("matrix", "regret", "learning", "backward"):
        assert (tmp_path / "figures" / f"{name}.svg").is_file()
    found = {table.name: table for table in tables(analysis)}
    assert {"accuracy_matrix", "positions", "sequences", "online", "regret"} <= set(found)
    assert [c for t in found.values() for c in t.columns if MEANINGS.of(c) is None] == []
    assert ",hurt," in found["positions"].to_csv()


def test_report_when_of_two_tasks_then_has_no_tables_of_longer_ones() -> None:
    """What a plan of two tasks writes stays as it is."""
    names = {table.name for table in tables(analyze(SyntheticLog(World(replicates=3))))}
    assert not names & {"accuracy_matrix", "positions", "sequences", "mixtures", "online", "regret"}


@pytest.mark.usefixtures("few_figures")
def test_report_when_tasks_are_mixed_then_says_what_it_gives_instead_of_transfer(
    tmp_path: Path,
) -> None:
    """A stream without phases has no FWT, BWT or forgetting: each task is held to the task alone."""
    world = three(
        sequences=("A+B",), to_come=False, online=True, effects={("agg", "A+B", "B"): -0.5}, steps=2
    )
    log = SyntheticLog(world)
    analysis = analyze(log)
    assert (analysis.transfers, analysis.sequences) == ((), ())
    told = {row.task: row.difference.estimate for row in analysis.mixtures}
    assert told["A"] is not None
    assert told["A"].low < 0 < told["A"].high
    assert told["B"] is not None
    assert told["B"].high < -0.1
    plan = plan_of(tasks={}, sequences=["A>B"], order="interleaved")
    page = write_report(plan, log, tmp_path, analysis=analysis).page.read_text("utf-8")
    assert "forward and backward transfer and forgetting are not defined" in page
    assert "Tasks are mixed in one stream" in page


def test_page_over_pairs_when_sequences_are_longer_then_has_their_streams_side_by_side(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One stream tells memories apart and one does not: averages of both, and by how much."""
    monkeypatch.setattr("langgraft.benchmarks.continual.paper.figures.draw", lambda *_: {})
    both = {"conditions": ("raw", "agg"), "rerun": False, "test_items": 30, "replicates": 3}
    better = {("agg", "A>B>C", task): 0.4 for task in "ABC"}
    analyses = {
        "apart": analyze(SyntheticLog(three(effects=better, **both))),
        "alike": analyze(SyntheticLog(three(**both))),
    }
    plan = plan_of(tasks={}, pairs=[{"name": name, **THREE} for name in analyses])
    page = write_paper_report(plan, analyses, tmp_path, simulated=True).page.read_text("utf-8")
    told = dict(re.findall(r"(apart|alike), A→B→C: .*?, ([\d.]+) points apart", page))
    assert float(told["apart"]) > 15
    assert float(told["alike"]) < 5
    rows = (tmp_path / "tables" / "sequences.csv").read_text("utf-8").splitlines()
    assert [row.split(",")[:3] for row in rows[1:]] == [
        [pair, memory, "A>B>C"] for pair in analyses for memory in ("raw", "agg")
    ]
    assert "A>B>C" not in (tmp_path / "tables" / "table_3.csv").read_text("utf-8")
