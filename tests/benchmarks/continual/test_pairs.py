"""Several pairs of task families in one plan: each a study of its own, in one directory."""

import asyncio
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from alfworld_cases import needs_alfworld
from typer.testing import CliRunner

from langgraft._core.errors import MissingExtraError, PlanError
from langgraft.benchmarks.continual.analysis import analyze
from langgraft.benchmarks.continual.cells import PairLog
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.continual.study import ContinualStudy
from langgraft.benchmarks.continual.tables import tables
from langgraft.benchmarks.harness.log import PlanLog, run_folder
from langgraft.benchmarks.harness.plans import load_plan, plan_from_data, prepare
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.verify import verify_directory
from langgraft.benchmarks.studies import shipped_plans
from langgraft.cli.app import app

pytestmark = pytest.mark.matrix  # whole studies

STUDY = ContinualStudy()
GRID = {"name": "grid", "A": "babyai/action_obj_door", "B": "babyai/find_obj"}
BACK = {"name": "back", "A": GRID["B"], "B": GRID["A"], "semantics": "fixed"}
HOME = {
    "name": "home",
    "A": "alfworld-generated/pick_and_place",
    "B": "alfworld-generated/pick_clean_then_place",
}
SMALL: dict[str, Any] = {
    "conditions": [{"name": "raw", "provider": "trajectory"}],
    "controls": [{"control": "random-own", "of": "raw", "transfer": True}],
    "train_items": 2,
    "test_items": 2,
    "runs": 1,
    "baseline_runs": 1,
}


def plan_of(*pairs: Mapping[str, Any], **fields: Any) -> ContinualPlan:
    """Return a small plan as a plan file is read."""
    data = {"study": "continual", **SMALL, **({"pairs": list(pairs)} if pairs else {}), **fields}
    _, plan = plan_from_data(data, {"continual": STUDY}, Path("plan.yaml"))
    assert isinstance(plan, ContinualPlan)
    return plan


def play(plan: ContinualPlan, out: Path) -> PlanLog:
    """Run a plan with the simulated learners."""
    outcome = asyncio.run(run_plan(prepare(STUDY, plan), out, model_for=STUDY.simulated_model))
    assert outcome.complete
    return PlanLog(out)


def logs(log: PlanLog) -> dict[str, bytes]:
    """Return the committed items of all runs by name, byte by byte."""
    return {run.name: (run_folder(log.path, run) / "items.jsonl").read_bytes() for run in log.graph}


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> PlanLog:
    """Run a plan of two pairs on BabyAI."""
    return play(plan_of(GRID, BACK), tmp_path_factory.mktemp("pairs") / "run")


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> PlanLog:
    """Run a plan of the second of these pairs alone."""
    tasks = {"A": BACK["A"], "B": BACK["B"]}
    plan = plan_of(tasks=tasks, semantics="fixed")
    return play(plan, tmp_path_factory.mktemp("alone") / "run")


def test_runs_when_of_several_pairs_then_begin_with_their_pairs_name(log: PlanLog) -> None:
    """Sources stay within the pair, and the factors name it."""
    for run in log.runs:
        pair = str(run.factors["pair"])
        assert run.name.startswith(f"{pair}/")
        assert run.source is None or run.source.run.startswith(f"{pair}/")
    assert {run.factors["pair"] for run in log.runs} == {"grid", "back"}


def test_view_when_of_a_pair_then_is_the_study_of_that_pair_alone(
    log: PlanLog, alone: PlanLog
) -> None:
    """Runs, results and deltas are those of a plan with nothing but the pair."""
    view = PairLog(log, "back")
    assert view.runs == alone.runs
    for run in view.runs:
        assert view.results(run.name) == alone.results(run.name)
        assert view.deltas(run.name) == alone.deltas(run.name)


def test_tables_when_of_a_pair_then_are_those_of_the_pair_alone(
    log: PlanLog, alone: PlanLog
) -> None:
    """Each pair is one family of hypotheses: another pair beside it changes no correction."""
    together, apart = tables(analyze(PairLog(log, "back"))), tables(analyze(alone))
    assert [t for t in together if t.name != "gates"] == [t for t in apart if t.name != "gates"]


@pytest.mark.usefixtures("no_figures")
def test_report_when_written_then_is_one_of_each_pair_and_one_of_all(
    log: PlanLog, tmp_path: Path
) -> None:
    """The terminal names the pair first; a pair's own page names runs by their real ids."""
    report = STUDY.report(plan_of(GRID, BACK), log, tmp_path)
    assert report.page == tmp_path / "index.html"
    assert report.columns[:2] == ("pair", "condition")
    assert {row[0] for row in report.rows} == {"grid", "back"}
    assert all(len(row) == len(report.columns) for row in report.rows)
    for pair in ("grid", "back"):
        page = (tmp_path / pair / "index.html").read_text()
        assert log.graph[f"{pair}/raw/0/train A>B"].id in page
        assert (tmp_path / pair / "tables" / "transfers.csv").is_file()


def test_control_when_its_transfer_is_asked_for_then_has_rows_like_a_memory(log: PlanLog) -> None:
    """Forward and backward, in both directions; it is no hypothesis of the family."""
    analysis = analyze(PairLog(log, "grid"))
    rows = {(row.direction, row.sequence) for row in analysis.transfers if "+" in row.condition}
    assert rows == {(way, seq) for way in ("forward", "backward") for seq in ("A>B", "B>A")}
    assert [contrast.condition for contrast in analysis.family] == ["raw"]


def test_control_when_it_recalls_ones_own_then_all_items_are_of_the_task_tested(
    log: PlanLog,
) -> None:
    """Of another task's bank nothing is recalled; of one's own, its items."""
    for run in PairLog(log, "grid").runs:
        if run.factors["condition"] != "raw+random-own":
            continue
        results: Any = PairLog(log, "grid").results(run.name)
        for result in results:
            items = [item for recall in result["recalls"] for item in recall["item_ids"]]
            assert all(item.startswith(str(run.factors["domain"])) for item in items)
            assert items


def test_directory_when_of_pairs_then_verifies_and_resumes_to_the_same_bytes(
    log: PlanLog, tmp_path: Path
) -> None:
    """A stream of one pair that is cut after its first item goes on from there."""
    assert verify_directory(log.path) == []
    copy = tmp_path / "run"
    shutil.copytree(log.path, copy)
    for name in ("grid/raw/0/train A>B", "back/raw/0/train B"):
        folder = run_folder(copy, log.graph[name])
        (folder / "DONE.json").unlink()
        first = (folder / "items.jsonl").read_bytes().splitlines(keepends=True)[0]
        (folder / "items.jsonl").write_bytes(first)
    assert logs(play(plan_of(GRID, BACK), copy)) == logs(log)


def test_limit_when_given_then_holds_for_every_pair() -> None:
    """No run of any pair has more items, and each pair still has all of its runs."""
    whole, limited = (
        prepare(STUDY, plan_of(GRID, BACK)),
        prepare(STUDY, plan_of(GRID, BACK), limit=1),
    )
    assert [run.name for run in limited.graph] == [run.name for run in whole.graph]
    assert {run.length for run in limited.graph} == {1}


def test_preview_when_of_pairs_then_counts_and_notes_each(tmp_path: Path) -> None:
    """What each pair costs and can detect is said before anything is paid."""
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps({"study": "continual", **SMALL, "pairs": [GRID, BACK]}))
    shown = json.loads(CliRunner().invoke(app, ["preview", str(path), "--json"]).output)
    assert {group["condition"] for group in shown["groups"]} >= {"grid/raw", "back/raw"}
    assert [note.partition(":")[0] for note in shown["notes"]] == ["grid", "back"]


def test_most_calls_when_worlds_differ_then_go_by_each_worlds_rounds() -> None:
    """Twenty replies in BabyAI, thirty in ALFWorld."""
    plan = plan_of(GRID, HOME, model="openai:some")
    runs = {run.name: run for run in STUDY.expand(plan)}
    assert STUDY.most_calls(plan, runs["grid/raw/0/test A after A"]) == 2 * 20
    assert STUDY.most_calls(plan, runs["home/raw/0/test A after A"]) == 2 * 30


@needs_alfworld
@pytest.mark.kill
def test_pairs_when_of_two_worlds_then_are_played_in_one_plan(tmp_path: Path) -> None:
    """Households and grids, one directory; killed half-way, the bytes are the same."""
    plan = plan_of(HOME, GRID, sequences=["A>B"], controls=[])
    log = play(plan, tmp_path / "run")
    before = logs(log)
    assert verify_directory(log.path) == []
    folder = run_folder(log.path, log.graph["home/raw/0/train A>B"])
    (folder / "DONE.json").unlink()
    first = (folder / "items.jsonl").read_bytes().splitlines(keepends=True)[0]
    (folder / "items.jsonl").write_bytes(first)
    assert logs(play(plan, log.path)) == before


def test_fingerprints_when_of_babyai_then_are_untouched_by_alfworld(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A plan is held to the worlds it is played in, and needs nothing of the others."""
    monkeypatch.setattr("langgraft.benchmarks.continual.worlds.alfworld_version", _missing)
    found = STUDY.fingerprints(plan_of(GRID))
    code = found["code"]
    assert isinstance(code, Mapping)
    assert any("babyai" in module for module in code)
    assert not any("alfworld" in module for module in code)
    assert {"gymnasium", "minigrid"} <= set(STUDY.packages(plan_of(GRID)))
    assert {"gymnasium", "minigrid"}.isdisjoint(STUDY.packages(plan_of(HOME)))
    assert "textworld" in STUDY.packages(plan_of(GRID, HOME))


def _missing() -> str:
    msg = "ALFWorld's engine needs `alfworld`, which is not installed"
    raise MissingExtraError(msg)


def test_plan_when_its_extra_is_missing_then_is_refused_before_anything_is_written(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """One sentence, and no directory."""
    monkeypatch.setattr("langgraft.benchmarks.continual.worlds.alfworld_version", _missing)
    path, out = tmp_path / "plan.yaml", tmp_path / "out"
    path.write_text(json.dumps({"study": "continual", **SMALL, "pairs": [HOME]}))
    done = CliRunner().invoke(app, ["run", str(path), "--out", str(out)])
    assert isinstance(done.exception, MissingExtraError)
    assert not out.exists()


@pytest.mark.parametrize("name", ["continual-memory", "remedies-alfworld"])
def test_plan_when_its_games_are_missing_then_is_refused_and_still_listed(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The sentence says what is missing; `plans` lists the plan with it."""
    monkeypatch.setenv("LANGGRAFT_DATA", str(tmp_path))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    study, plan = load_plan(shipped_plans()[name], {"continual": STUDY})
    with pytest.raises(PlanError) as caught:
        study.expand(plan)
    assert "\n" not in str(caught.value)
    listed = json.loads(CliRunner().invoke(app, ["plans", "--json"]).output)
    (row,) = [each for each in listed if each["name"] == name]
    assert row["missing"] == str(caught.value)


def test_plans_when_listed_then_no_game_is_read(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Counting needs seconds of unpacking otherwise: that games are there is enough."""
    (tmp_path / "alfworld").mkdir()
    (tmp_path / "alfworld" / "games-2.1.2.jsonl.xz").write_bytes(b"no pack")
    monkeypatch.setenv("LANGGRAFT_DATA", str(tmp_path))
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)
    listed = json.loads(CliRunner().invoke(app, ["plans", "--json"]).output)
    counts = {each["name"]: (each["runs"], each["items"]) for each in listed}
    assert counts["continual-memory"] == (960, 128_000)
    assert counts["remedies-alfworld"] == (620, 41_000)
    assert not any(each["missing"] for each in listed)


@pytest.mark.parametrize(
    "name",
    ["continual-memory", "readings", "remedies-alfworld", "demo-alfworld", "demo-sequences"],
)
def test_plan_when_it_ships_then_its_comment_has_the_exact_counts(
    name: str, data_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs and episodes, as they are."""
    monkeypatch.setenv("LANGGRAFT_DATA", str(data_dir))
    path = shipped_plans()[name]
    study, plan = load_plan(path, {"continual": STUDY})
    runs = study.expand(plan)
    comment = " ".join(path.read_text().partition("study:")[0].replace("#", " ").split())
    pairs = len(plan.parts)  # type: ignore[attr-defined]  # a plan of this study
    episodes = sum(run.length for run in runs) // pairs
    training = sum(run.length for run in runs if not run.frozen) // pairs
    assert f"{len(runs) // pairs:,} runs of {episodes:,} episodes, {training:,}" in comment


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ({"pairs": [GRID, GRID]}, r"pairs must have distinct names, got \['grid', 'grid'\]"),
        ({"pairs": [{**GRID, "name": "a/b"}]}, r"pairs.0.name: .*\(got 'a/b'\)"),
        ({"pairs": [{**GRID, "name": "a" * 65}]}, r"pairs.0.name: .*at most 64 characters"),
        ({"pairs": [{**GRID, "B": GRID["A"]}]}, "tasks A and B are both 'babyai/action_obj_door'"),
        (
            {"pairs": [{**GRID, "A": "chess/mate"}]},
            "no world of task family 'chess/mate'; .*babyai",
        ),
        (
            {"pairs": [{**GRID, "semantics": "odd"}]},
            "pair 'grid': semantics: .*'compat' or 'fixed'",
        ),
        ({"pairs": [{**GRID, "A": HOME["A"]}]}, "is played in one world"),
        (
            {"pairs": [{**GRID, "learner": {"mimicry": 1}}]},
            "babyai has no setting 'mimicry'; .*none",
        ),
        ({"pairs": [{**HOME, "learner": {"haste": 1}}]}, "no setting 'haste'; it has mimicry"),
        ({"pairs": [{**HOME, "learner": {"mimicry": 7}}]}, "mimicry: .*or equal to 1 .got 7"),
        ({"pairs": [GRID], "tasks": {"A": GRID["B"], "B": GRID["A"]}}, "tasks: with `pairs`, each"),
        ({"pairs": [GRID], "semantics": "fixed"}, "semantics: with `pairs`, each pair has its own"),
        ({"pairs": [GRID], "learner": {"mimicry": 1}}, "learner: with `pairs`, each pair has its"),
        (
            {"model": "openai:x", "learner": {"mimicry": 1}},
            "learner settings are for the simulated",
        ),
    ],
)
def test_plan_when_its_pairs_are_impossible_then_is_one_clear_error(
    fields: dict[str, Any], says: str
) -> None:
    """Refused before anything is paid, in one sentence."""
    with pytest.raises(PlanError, match=says) as caught:
        prepare(STUDY, plan_of(**fields))
    assert "\n" not in str(caught.value)


def test_learner_when_a_real_model_is_chosen_then_its_settings_are_dropped() -> None:
    """They were meant for the simulated one."""
    plan = plan_of({**HOME, "learner": {"mimicry": 0.5}})
    fields = ContinualPlan.with_model(plan.model_dump(mode="json"), "openai:some", None)
    changed = ContinualPlan.model_validate(fields)
    assert [pair.learner for pair in changed.pairs] == [{}]
