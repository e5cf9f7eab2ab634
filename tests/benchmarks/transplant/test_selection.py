"""What is chosen on build problems before anything is evaluated: settings, and items of memory."""

import asyncio
import re
from pathlib import Path
from typing import Any

import pytest
from transplant_log import transplant_plan

from langgraft.benchmarks.harness import PlanLog, prepare, run_plan
from langgraft.benchmarks.harness.progress import NoProgress, ProgressEvent
from langgraft.benchmarks.harness.study import RunSpec
from langgraft.benchmarks.harness.verify import verify_directory
from langgraft.benchmarks.studies import studies
from langgraft.benchmarks.transplant.analysis import analyze
from langgraft.benchmarks.transplant.gates import gates_of, read_admitted, read_chosen
from langgraft.benchmarks.transplant.plan import TransplantPlan
from langgraft.benchmarks.transplant.report import write_report

pytestmark = pytest.mark.matrix  # whole studies

PLAN = transplant_plan(
    source={"name": "counting", "problems": "generated"},
    target={"name": "algebra", "problems": "generated"},
    systems=[
        {"name": "none", "provider": "none"},
        {"name": "rag", "provider": "simple_rag", "grid": {"top_k": [1, 4]}},
        {"name": "kb", "provider": "agent_kb"},
    ],
    solvers=[{"name": "strong", "strengths": {"gain": 0.4, "harm": 0.4}}],
    budgets=[400],
    seeds=2,
    build_items=5,
    target_build_items=5,
    eval_items=2,
    noise_runs=1,
    controlled=[],
    admitted=["rag"],
    gated=["kb"],
)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> PlanLog:
    """Play the plan once."""
    out = tmp_path_factory.mktemp("selection") / "out"
    study = studies()["transplant"]
    asyncio.run(run_plan(prepare(study, PLAN), out, model_for=study.simulated_model))
    return PlanLog(out)


def runs(log: PlanLog, **factors: Any) -> list[RunSpec]:
    """Return the runs with these factors."""
    return [run for run in log.runs if factors.items() <= run.factors.items()]


def results(log: PlanLog, run: RunSpec) -> list[Any]:
    """Return the results of a run, to look into."""
    return list(log.results(run.name))


def solved(log: PlanLog, run: RunSpec) -> int:
    """Count the problems a run solved."""
    return sum(bool(each["success"]) for each in results(log, run))


def test_settings_when_selected_are_those_whose_builds_solved_the_most(log: PlanLog) -> None:
    """Over all draws of a domain; of equals the first; the bank is the one they built."""
    for side in ("source", "target"):
        builds = runs(log, kind="build", system="rag", architecture=side)
        counts = [
            sum(solved(log, run) for run in builds if run.factors["chosen"] == {"top_k": top_k})
            for top_k in (1, 4)
        ]
        best = {"top_k": (1, 4)[counts.index(max(counts))]}
        for draw, run in enumerate(runs(log, kind="select", system="rag", architecture=side)):
            (result,) = results(log, run)
            assert result["chosen"] == best
            assert [each["solved"] for each in result["solved"]] == counts
            (build,) = (
                each
                for each in builds
                if each.factors["chosen"] == best and each.factors["draw"] == draw
            )
            assert log.bank(run.name) == log.bank(build.name)


def test_evaluation_when_settings_are_selected_recalls_by_them(log: PlanLog) -> None:
    """No recall holds more items than the architecture's domain selected, whatever the content."""
    chosen = read_chosen(log)["strong", "rag"]
    for side in ("source", "target"):
        evaluated = runs(log, kind="eval", system="rag", architecture=side, mode="static")
        assert evaluated
        counts = [each["recalled"] for run in evaluated for each in results(log, run)]
        top_k = chosen[side]["top_k"]
        assert isinstance(top_k, int)
        assert max(counts) <= top_k


def test_items_when_admitted_are_those_that_were_better_more_often_than_worse(log: PlanLog) -> None:
    """The log of the replays says which; the evaluated bank holds these and no other."""
    admissions = runs(log, kind="admit")
    assert admissions
    for run in admissions:
        gains: dict[str, int] = {}
        for result in results(log, run):
            for name, success in result["alone"].items():
                gains[name] = gains.get(name, 0) + (success - result["without"])
        kept = {name for name, gain in gains.items() if gain > 0}
        bank = log.bank(run.name)
        assert set(bank.items) == kept
        assert "replays" not in bank.state
        last = results(log, run)[-1]
        assert last["admitted"] == len(kept) < last["offered"]
    assert sum(kept for kept, _ in read_admitted(log).values()) > 0


def test_admission_when_it_replays_uses_no_evaluated_problem(log: PlanLog) -> None:
    """Items are tried on build problems of the target domain alone (gate G1)."""
    evaluated = {item for run in runs(log, kind="eval") for item in run.item_ids}
    tried = {item for run in runs(log, kind="admit") for item in run.item_ids}
    built = {i for run in runs(log, kind="build", architecture="target") for i in run.item_ids}
    assert tried == built
    assert not tried & evaluated
    (splits,) = (gate for gate in gates_of(PLAN, log, {}) if gate.name.startswith("G1"))
    assert splits.state == "passed"


def test_gate_when_it_is_a_remedy_asks_for_drafts_and_leaves_the_bank(log: PlanLog) -> None:
    """The gated condition reads the same bank; of the plain one no judgment is in the log."""
    (plain, *_), (gated, *_) = (
        runs(log, system="kb", condition=condition) for condition in ("C_ONLY", "C_ONLY+gated")
    )
    assert plain.source == gated.source
    calls = [
        [each["usage"]["simulated_replies"] for each in results(log, run)] for run in (plain, gated)
    ]
    assert set(calls[0]) == {1}
    assert min(calls[1]) >= 2


@pytest.mark.kill
def test_log_when_runs_read_others_is_verified_and_cut_off_alike(
    tmp_path: Path, log: PlanLog
) -> None:
    """Each run stopped after every few items ends in the same bytes; a changed log is found."""
    study = studies()["transplant"]
    prepared = prepare(study, PLAN)
    out = tmp_path / "parts"
    for _ in range(400):
        stop = asyncio.Event()
        outcome = asyncio.run(_some(prepared, out, study, stop))
        if outcome.complete:
            break
    again = PlanLog(out)
    for run in log.runs:
        assert log.results(run.name) == again.results(run.name), run.name
        assert log.deltas(run.name) == again.deltas(run.name), run.name
    assert not list(verify_directory(out))
    select = next(run for run in again.graph if run.spec.factors["kind"] == "select")
    path = out / "runs" / select.id / "spec.json"
    path.write_text(re.sub(r'@0":"[0-9a-f]{4}', '@0":"0000', path.read_text()))
    assert any("a log that the run read has changed" in str(each) for each in verify_directory(out))


async def _some(prepared: Any, out: Path, study: Any, stop: asyncio.Event) -> Any:
    """Run for a few items, then stop."""

    class Stopper(NoProgress):
        seen = 0

        def report(self, event: ProgressEvent) -> None:
            self.seen += event.kind == "item"
            if self.seen >= 80:
                stop.set()

    return await run_plan(
        prepared, out, model_for=study.simulated_model, stop=stop, progress=Stopper()
    )


def test_report_when_there_are_remedies_and_selections_tells_both(
    tmp_path: Path, log: PlanLog
) -> None:
    """Settings by domain, and what the remedies did, on the page and in the tables."""
    found = analyze(PLAN, log)
    assert {each.cell.place[3] for each in found.remedies} == {
        f"{name}+{remedy}"
        for name in ("C_ONLY", "FULL", "IN_DOM", "CROSS")
        for remedy in ("admitted", "gated")
    }
    assert not any("+" in each.condition for c in found.against_none.values() for each in c.family)
    report = write_report(PLAN, log, tmp_path)
    page = report.page.read_text()
    assert "Selected settings" in page
    assert 'id="remedies"' in page
    assert any(line.startswith("Remedies") for line in report.lines)
    assert (tmp_path / "tables" / "remedies.csv").exists()


@pytest.mark.parametrize(
    ("grid", "said"),
    [
        ({"max_items": [1, 2]}, "'max_items' is no policy"),
        ({"ranker": ["bm25", "overlap"]}, "'ranker' is no policy"),
        ({"top_k": []}, "'top_k' needs values"),
        ({"top_k": [2, 2]}, "'top_k' needs values, each once"),
        ({"top_k": [2, 0]}, "top_k"),
        ({"tpo_k": [2, 3]}, "tpo_k"),
        ({"top_k": list(range(1, 66))}, "at most 64 candidates"),
    ],
)
def test_grid_when_it_holds_what_it_must_not_is_refused(grid: dict[str, Any], said: str) -> None:
    """Before anything is run, naming the setting."""
    with pytest.raises(ValueError, match=said):
        transplant_plan(systems=[{"name": "rag", "provider": "simple_rag", "grid": grid}])


def test_gated_when_the_provider_has_no_gate_is_refused() -> None:
    """Only a memory with that setting can have the remedy."""
    systems = [{"name": "rag", "provider": "simple_rag"}]
    with pytest.raises(ValueError, match=r"gated: .*gate"):
        transplant_plan(systems=systems, controlled=[], gated=["rag"])


def test_hypotheses_when_both_domains_select_one_setting_are_not_testable() -> None:
    """H1 and H3 compare architectures: of one there is nothing to compare."""
    assert _same(TransplantPlan.same_architecture, {"top_k": 1}, {"top_k": 1})
    assert not _same(TransplantPlan.same_architecture, {"top_k": 1}, {"top_k": 4})


def _same(judge: Any, source: dict[str, int], target: dict[str, int]) -> bool:
    system = next(each for each in PLAN.systems if each.grid)
    assert not judge(PLAN, system)  # nobody knows yet
    return bool(judge(PLAN, system, {"source": source, "target": target}))
