"""What a plan registers, on the reports of the studies: their own contrasts, first on the page, all else by label."""

import asyncio
import csv
import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import yaml
from ablation_cases import asked, experiment
from mle_logs import Tree, TreeLog
from mle_logs import plan as mle_plan
from synthetic_log import MANIFEST, SyntheticLog, World
from transplant_log import SYSTEMS, DrawnLog, transplant_plan

from langgraft._core.canonical import JSON
from langgraft._core.errors import PlanError
from langgraft.benchmarks.ablation.analysis import analyze as analyze_ablation
from langgraft.benchmarks.ablation.report import write_report as write_ablation
from langgraft.benchmarks.ablation.running import ablate, plan_of, preview_ablation
from langgraft.benchmarks.ablation.study import AblationStudy
from langgraft.benchmarks.comparison.verdicts import Hypothesis, alike
from langgraft.benchmarks.continual.analysis import analyze as analyze_continual
from langgraft.benchmarks.continual.cells import CellKey, PairLog, read_study_log
from langgraft.benchmarks.continual.contrasts import hypothesis_difference as continual_difference
from langgraft.benchmarks.continual.plan import ContinualPlan, of_pair
from langgraft.benchmarks.continual.report import write_report as write_continual
from langgraft.benchmarks.continual.report import write_reports as write_continual_pairs
from langgraft.benchmarks.harness.log import PlanLog, run_folder
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.study import Report
from langgraft.benchmarks.mle.analysis import analyze as analyze_mle
from langgraft.benchmarks.mle.analysis import hypothesis_difference
from langgraft.benchmarks.mle.report import write_report as write_mle
from langgraft.benchmarks.reporting.findings import (
    complete_runs,
    disjoint,
    halves,
    provenance,
    registration,
)
from langgraft.benchmarks.transplant.analysis import analyze as analyze_transplant
from langgraft.benchmarks.transplant.report import write_report as write_transplant
from langgraft.memory.model import MemoryDelta

pytestmark = pytest.mark.usefixtures("no_figures")  # words and tables

REGISTERED: JSON = {"sha256": "ab" * 32, "time": "2026-01-02T03:04:05+00:00"}


def claim(name: str, treated: Any, baseline: Any, **fields: Any) -> Hypothesis:
    """Return a hypothesis, of success in either direction where nothing else is said."""
    given: dict[str, Any] = {"measure": "success", "direction": "different", **fields}
    return Hypothesis(name=name, treated=treated, baseline=baseline, **given)


def read(report: Report, name: str) -> list[dict[str, str]]:
    """Return the rows of a table of a report."""
    with (report.page.parent / "tables" / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def check(report: Report, expected: Mapping[str, str]) -> None:
    """Hypotheses stand first with their verdicts, what follows is exploratory, and columns are explained."""
    page = report.page.read_text("utf-8")
    assert "2026-01-02T03:04:05+00:00" in page
    assert page.index("Registered hypotheses") < page.index("Exploratory: all that follows")
    assert {row["registered"]: row["decision"] for row in read(report, "registered")} == expected
    told = [line for line in report.lines if line.partition(": ")[0] in expected]
    assert {
        line.partition(": ")[0]: line.split()[1 + line.partition(": ")[0].count(" ")].strip(".(,")
        for line in told
    } == expected
    after = list(report.lines).index(told[-1])
    assert report.lines[after + 1].startswith("Exploratory: all that follows")
    assert all(row["meaning"] for row in read(report, "columns") if row["table"] == "registered")


# Continual --------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def continual() -> SyntheticLog:
    """One memory that helps, one that does nothing, a placebo, a re-run."""
    world = World(effects={("agg", "", ""): 0.35}, replicates=4, tokens=(100, 20))
    return SyntheticLog(world, manifest={"registered": REGISTERED})


def continual_plan(*hypotheses: Hypothesis) -> ContinualPlan:
    """Return a plan that registers them."""
    return ContinualPlan(hypotheses=hypotheses, margin=0.1)


@pytest.mark.matrix  # a whole report
def test_continual_when_its_memories_are_registered_has_the_numbers_of_its_own_family(
    continual: SyntheticLog, tmp_path: Path
) -> None:
    """The family of the study, registered, is that family: estimates and corrected p values."""
    plan = continual_plan(
        *(
            claim(f"{name} helps", {"condition": name}, {"condition": "none"}, direction="greater")
            for name in ("raw", "agg")
        )
    )
    report = write_continual(plan, continual, tmp_path)
    check(report, {"raw helps": "undecided", "agg helps": "supported"})
    rows = {row["registered"].split()[0]: row for row in read(report, "registered")}
    for contrast in analyze_continual(continual).family:
        row = rows[contrast.condition]
        assert contrast.estimate is not None
        assert float(row["registered_difference"]) == pytest.approx(
            100 * contrast.estimate.value, abs=1e-5
        )
        assert float(row["p_family"]) == pytest.approx(contrast.p_adjusted, abs=1e-5)


@pytest.mark.matrix  # a whole report
def test_continual_when_a_transfer_is_registered_has_the_number_of_its_table(
    continual: SyntheticLog, tmp_path: Path
) -> None:
    """Cells by sequence and task: forward transfer, paired run by run."""
    there = {"condition": "agg", "sequence": "A>B", "task": "B"}
    alone = {"condition": "agg", "sequence": "B", "task": "B"}
    plan = continual_plan(claim("forward", there, alone))
    (row,) = read(write_continual(plan, continual, tmp_path), "registered")
    moved = next(
        each
        for each in analyze_continual(continual).transfers
        if (each.condition, each.direction, each.sequence) == ("agg", "forward", "A>B")
    )
    assert moved.transfer.estimate is not None
    assert float(row["registered_difference"]) == pytest.approx(
        100 * moved.transfer.estimate.value, abs=1e-5
    )


@pytest.mark.matrix  # a whole report
def test_report_when_nothing_is_registered_says_so_and_has_no_table(
    continual: SyntheticLog, tmp_path: Path
) -> None:
    """The page says which contrasts the study declares; a terminal is not told."""
    report = write_continual(continual_plan(), continual, tmp_path)
    assert "No hypothesis was registered: all results are exploratory." in report.page.read_text(
        "utf-8"
    )
    assert not (tmp_path / "tables" / "registered.csv").exists()
    assert not any("xploratory" in line for line in report.lines)


@pytest.mark.matrix  # a whole report
def test_report_when_items_say_what_they_took_has_it_by_condition_and_node(
    continual: SyntheticLog, tmp_path: Path
) -> None:
    """Sums of the table are those of the log; every column is explained."""
    report = write_continual(continual_plan(), continual, tmp_path)
    rows = read(report, "spending")
    episodes = sum(len(continual.results(run.name)) for run in continual.runs)
    assert sum(int(row["tokens_used"]) for row in rows) == 120 * episodes
    assert {row["node"] for row in rows} == {"think"}
    assert {row["spent_by"] for row in rows} >= {"none", "raw", "agg", "agg+placebo"}
    assert all(row["meaning"] for row in read(report, "columns") if row["table"] == "spending")
    assert "What was spent" in report.page.read_text("utf-8")


class OfPairs:
    """A log of two pairs of task families, each of a world of its own."""

    manifest: Mapping[str, JSON] = {**MANIFEST, "registered": REGISTERED}

    def __init__(self, **worlds: World) -> None:
        self._logs = {name: SyntheticLog(world) for name, world in worlds.items()}
        self.runs = tuple(
            of_pair(run, name) for name, log in self._logs.items() for run in log.runs
        )

    def results(self, name: str) -> list[Mapping[str, JSON]]:
        """Return the results of a run."""
        pair, _, rest = name.partition("/")
        return self._logs[pair].results(rest)

    def deltas(self, name: str) -> list[tuple[MemoryDelta, ...]]:
        """Return the changes of a run."""
        pair, _, rest = name.partition("/")
        return self._logs[pair].deltas(rest)


HELPS = World(("agg",), (), {("agg", "", ""): 0.4}, replicates=3, test_items=20)
PAIRS = ContinualPlan.model_validate(
    {
        "pairs": [
            {"name": "home", "A": "babyai/action_obj_door", "B": "babyai/find_obj"},
            {"name": "back", "A": "babyai/find_obj", "B": "babyai/action_obj_door"},
        ],
        "conditions": [{"name": "agg", "provider": "insight"}],
        "hypotheses": [
            claim(
                "home", {"pair": "home", "condition": "agg"}, {"pair": "home", "condition": "none"}
            ),
            claim(
                "back", {"pair": "back", "condition": "agg"}, {"pair": "back", "condition": "none"}
            ),
            claim("all", {"condition": "agg"}, {"condition": "none"}),
        ],
    }
)


def test_transfer_when_registered_is_paired_run_by_run() -> None:
    """Both sides were trained in the same orders: each run is held to its own, and none is a mere sample."""
    study = read_study_log(SyntheticLog(HELPS))
    there = {"condition": "agg", "sequence": "A>B", "task": "B"}
    alone = {"condition": "agg", "sequence": "B", "task": "B"}
    found = continual_difference(claim("forward", there, alone), {"": study})
    cells = (CellKey("agg", "A>B", "B"), CellKey("agg", "B", "B"))
    after, before = (study.cells[key].scores for key in cells)
    expected = [[after[r][i] - before[r][i] for r in sorted(after)] for i in sorted(after[0])]
    assert found.values is not None
    assert found.values.tolist() == expected
    assert found.without == ()


def test_pairs_when_a_hypothesis_names_one_or_none_rest_on_its_items_or_on_all() -> None:
    """The one whose memory helps, the one whose memory does not, and the mean of both."""
    log = OfPairs(home=HELPS, back=World(("agg",), (), replicates=3, test_items=20, seed=1))
    analyses = {name: analyze_continual(PairLog(log, name)) for name in ("home", "back")}
    studies = {name: each.study for name, each in analyses.items()}
    tested = registration(
        PAIRS.hypotheses, log.manifest, lambda each: continual_difference(each, studies)
    ).tested
    found = {each.hypothesis.name: each for each in tested}
    assert {name: each.verdict for name, each in found.items() if name != "all"} == {
        "home": "supported",
        "back": "undecided",
    }
    values = {}
    for name, each in found.items():
        assert each.estimate is not None
        values[name] = each.estimate.value
        if name in analyses:
            own = analyses[name].family[0].estimate
            assert own is not None
            assert each.estimate.value == pytest.approx(own.value)
    assert values["all"] == pytest.approx((values["home"] + values["back"]) / 2)


@pytest.mark.matrix  # whole reports
def test_pairs_when_reports_are_written_have_their_hypotheses_on_the_page_over_all(
    tmp_path: Path,
) -> None:
    """The page of a pair is exploratory, and says where to look."""
    report = write_continual_pairs(PAIRS, OfPairs(home=HELPS, back=HELPS), tmp_path)
    assert "Registered hypotheses" in report.page.read_text("utf-8")
    assert {row["registered"] for row in read(report, "registered")} == {"home", "back", "all"}
    for name in ("home", "back"):
        page = (tmp_path / name / "index.html").read_text("utf-8")
        assert "Registered hypotheses" not in page
        assert "is on the first page" in page


# Competitions -----------------------------------------------------------------------------------


@pytest.mark.matrix  # a whole report
def test_mle_when_a_measure_is_registered_has_the_numbers_of_its_own_contrasts(
    tmp_path: Path,
) -> None:
    """Bugs of the same pairs against no memory and its re-run; fewer are better."""
    log = TreeLog(
        Tree(bugs={"warm": 0.05, "cold": 0.5}, seeds=4, steps=20),
        manifest={"registered": REGISTERED},
    )
    fewer = {"measure": "bug_rate", "direction": "less", "family": "bugs"}
    hypotheses = (
        claim(
            "warm has fewer",
            {"condition": "warm"},
            {"condition": "off"},
            **fewer,
            estimator="these_items",
        ),
        claim(
            "cold is no worse",
            {"condition": "cold"},
            {"condition": "off"},
            measure="bug_rate",
            direction="non_inferior",
            margin=0.3,
            family="other",
            estimator="these_items",
        ),
        claim(
            "warm, generally",
            {"condition": "warm"},
            {"condition": "off"},
            measure="bug_rate",
            family="general",
        ),
    )
    plan = mle_plan(hypotheses=hypotheses)
    report = write_mle(plan, log, tmp_path)
    rows = {row["registered"]: row for row in read(report, "registered")}
    assert rows["warm has fewer"]["decision"] == "supported"
    assert rows["cold is no worse"]["decision"] == "supported"
    check(report, {name: row["decision"] for name, row in rows.items()})
    analysis = analyze_mle(log)
    contrast = analysis.contrast("warm", "bug_rate")
    assert contrast.estimate is not None
    assert contrast.same_items is not None
    found = registration(
        hypotheses, log.manifest, lambda each: hypothesis_difference(each, [analysis])
    )
    same, _, general = (each.estimate for each in found.tested)
    assert same is not None
    assert general is not None
    assert same.value == pytest.approx(contrast.same_items.value)
    assert same.p == pytest.approx(contrast.same_items.p)
    assert general.value == pytest.approx(contrast.estimate.value)


@pytest.mark.matrix  # a whole report
def test_mle_when_a_run_is_missing_is_undecided(tmp_path: Path) -> None:
    """What did not end is no number."""
    log = TreeLog(Tree(bugs={"warm": 0.05}, seeds=4, steps=20), missing=["warm/digits/1"])
    fewer = claim(
        "fewer", {"condition": "warm"}, {"condition": "off"}, measure="bug_rate", direction="less"
    )
    (row,) = read(write_mle(mle_plan(hypotheses=(fewer,)), log, tmp_path), "registered")
    assert (row["decision"], row["undecided_because"]) == ("undecided", "incomplete")


# Transplants ------------------------------------------------------------------------------------


class Registered(DrawnLog):
    """A drawn log of a directory in which hypotheses were registered."""

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The manifest with the entry."""
        return {**super().manifest, "registered": REGISTERED}


def transplant(**fields: Any) -> Any:
    """Return a plan of two systems and one solver that registers the paper's hypotheses."""
    hypotheses = [
        claim("H1", {"condition": "E_CODE"}, {"condition": "E_MATH"}, family="architecture"),
        claim(
            "H2",
            {"condition": "C_ONLY"},
            {"condition": "NM"},
            family="content",
            direction="greater",
        ),
        claim(
            "H2 of one",
            {"condition": "C_ONLY", "system": "simple_rag", "budget": 400},
            {"condition": "NM"},
            family="one",
        ),
        claim(
            "H3",
            {"condition": ["FULL", "IN_DOM"]},
            {"condition": ["C_ONLY", "CROSS"]},
            family="interaction",
        ),
        claim(
            "H4",
            {"condition": "E_MATH", "system": "lightweight"},
            {"condition": "E_MATH~write_only"},
            family="retrieval",
        ),
    ]
    return transplant_plan(
        noise_runs=2,
        systems=SYSTEMS[:3],
        solvers=[{"name": "strong"}],
        hypotheses=hypotheses,
        **fields,
    )


def content(f: Mapping[str, Any]) -> float:
    """Imported items help, whichever domain they are from."""
    return 0.3 if f["content"] in {"source", "target"} else 0.0


@pytest.mark.matrix  # a whole study
def test_transplant_when_the_paper_s_hypotheses_are_registered_finds_what_is_planted(
    tmp_path: Path,
) -> None:
    """Content helps and nothing else is claimed; one cell alone is the study's own contrast."""
    plan = transplant()
    log = Registered(plan, content, seed=3)
    report = write_transplant(plan, log, tmp_path)
    decided = {row["registered"]: row["decision"] for row in read(report, "registered")}
    assert decided == {
        "H1": "undecided",
        "H2": "supported",
        "H2 of one": "supported",
        "H3": "undecided",
        "H4": "undecided",
    }
    check(report, decided)
    found = analyze_transplant(plan, log)
    own = next(
        e
        for e in found.hypotheses
        if (e.hypothesis, e.system, e.budget) == ("H2", "simple_rag", 400)
    )
    one = next(each for each in found.registration.tested if each.hypothesis.name == "H2 of one")
    assert own.estimate is not None
    assert one.estimate is not None
    assert one.estimate.value == pytest.approx(own.estimate.value)


@pytest.mark.matrix  # a whole study
def test_transplant_when_a_gate_has_not_passed_decides_nothing(tmp_path: Path) -> None:
    """What is registered is held to the gates before any claim, as all else is."""
    plan = transplant(controls=["placebo", "write_only"])
    rows = read(write_transplant(plan, Registered(plan, content), tmp_path), "registered")
    assert {row["decision"] for row in rows} == {"undecided"}
    assert all("gate" in row["undecided_because"] for row in rows)


# One's own agent --------------------------------------------------------------------------------


def test_ablation_when_a_memory_is_registered_is_judged_by_its_comparison(tmp_path: Path) -> None:
    """The number is that of the condition's own contrast; gates and spending stand in the same report."""
    helps = {
        "name": "it helps",
        "treated": {"memory": "trajectory", "control": ""},
        "baseline": {"condition": "none"},
        "measure": "score",
        "direction": "greater",
    }
    tried = experiment(test=asked("ada", "bob", "fay", times=10), replicates=3, hypotheses=[helps])
    assert (
        preview_ablation(tried)
        .notes[0]
        .startswith("registered: it helps: score: (memory trajectory")
    )
    found = ablate(tried, out=tmp_path / "out")
    log, plan = PlanLog(tmp_path / "out"), found.analysis.plan
    report = write_ablation(plan, log, tmp_path / "report")
    assert [row["decision"] for row in read(report, "registered")] == ["supported"]
    assert report.lines[1].startswith("it helps: supported. Registered: score: (memory trajectory")
    analysis = analyze_ablation(plan, log)
    (tested,) = analysis.registration.tested
    assert analysis.comparison is not None
    assert tested.estimate == analysis.comparison["trajectory"].estimate
    calls = {row["spent_by"]: int(row["calls"]) for row in read(report, "spending")}
    assert calls["none"] == 90
    gates = {row["gate"]: row["state"] for row in read(report, "gates")}
    assert (gates["Completeness"], gates["Provenance"], gates["G1: splits"]) == ("passed",) * 3
    check_gates(report)
    assert "it helps: supported" in found.summary()
    with pytest.raises(
        PlanError, match=r"hypotheses\.0\.treated\.memory: there is no 'trajectroy'"
    ):
        ablate(
            replace(tried, hypotheses=[{**helps, "treated": {"memory": "trajectroy"}}]),
            out=tmp_path / "other",
        )


# Gates ------------------------------------------------------------------------------------------

EVERYWHERE = (
    "Completeness",
    "Provenance",
    "G1: splits",
    "G2: ",
    "G3: grader",
    "G4: orders",
    "G5: budgets",
    "G6: frozen-store utility",
    "A/A",
    "Order of reading",
)


def check_gates(report: Report) -> None:
    """Each gate of the list is there, with a state and a reason."""
    rows = read(report, "gates")
    names = [row["gate"] for row in rows]
    for expected in EVERYWHERE:
        assert any(name.startswith(expected) for name in names), expected
    assert {row["state"] for row in rows} <= {"passed", "failed", "open", "not applicable"}
    assert all(row["detail"] for row in rows)
    assert "not applicable" in report.page.read_text("utf-8")


@pytest.mark.matrix  # a whole report
def test_gates_when_a_report_is_written_are_the_same_list_in_every_study(
    continual: SyntheticLog, tmp_path: Path
) -> None:
    """What there is nothing for says why."""
    check_gates(write_continual(continual_plan(), continual, tmp_path / "continual"))
    check_gates(write_mle(mle_plan(), TreeLog(Tree(seeds=3)), tmp_path / "mle"))


def tampered_bank(out: Path) -> None:
    """Have one of two runs that start from one bank say that it began with another."""
    log = PlanLog(out)
    run = next(each for each in log.graph if each.spec.source is not None)
    path = run_folder(out, run) / "spec.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "bank": "0" * 64}))


def tampered_plan(out: Path) -> None:
    """Claim more, afterwards."""
    told = yaml.safe_load((out / "plan.yaml").read_text())
    told["hypotheses"][0]["margin"] = 0.4
    (out / "plan.yaml").write_text(yaml.safe_dump(told, sort_keys=False))


@pytest.mark.parametrize(
    ("tamper", "said"), [(tampered_bank, "states of"), (tampered_plan, "plan.yaml")]
)
def test_provenance_when_a_file_is_another_than_its_digest_says_fails(
    tmp_path: Path, tamper: Callable[[Path], None], said: str
) -> None:
    """Banks and plan are held to their digests once more where the page is made."""
    helps = claim("it", {"memory": "trajectory"}, {"condition": "none"}, measure="score")
    tried = experiment(conditions=("placebo",), replicates=3)
    study, plan = AblationStudy(tried), plan_of(tried).model_copy(update={"hypotheses": (helps,)})
    asyncio.run(run_plan(prepare(study, plan), tmp_path, model_for=study.simulated_model))
    assert provenance(PlanLog(tmp_path)).state == "passed"
    tamper(tmp_path)
    found = provenance(PlanLog(tmp_path))
    assert found.state == "failed"
    assert said in found.detail


def _read(log: SyntheticLog) -> Any:
    return ((run, log.results(run.name)) for run in log.runs)


def test_completeness_when_items_are_twice_or_missing_names_them_by_condition() -> None:
    """A result that is there twice is no more complete than one that is not there."""
    whole = SyntheticLog(World())
    assert complete_runs(_read(whole), lambda _run, result: result["task_id"]).state == "passed"
    lost = SyntheticLog(World(), done={"agg/0/test A after A": 30, "agg/1/test B after B": 39})
    found = complete_runs(_read(lost), lambda _run, result: result["task_id"])
    assert found.state == "failed"
    assert "agg 11 of" in found.detail
    assert "raw" not in found.detail

    class Twice(SyntheticLog):
        def results(self, name: str) -> list[Mapping[str, JSON]]:
            found = super().results(name)
            return [*found[:-1], found[0]] if name == "raw/0/test A after A" else found

    again = complete_runs(_read(Twice(World())), lambda _run, result: result["task_id"])
    assert again.state == "failed"
    assert "Twice, or of another run: raw/0/test A after A" in again.detail


def test_halves_when_runs_of_one_condition_differ_fail() -> None:
    """Half the runs cannot solve what the other half always does by chance."""
    items = [f"i{n}" for n in range(40)]
    same = {run: {item: float(n % 2) for n, item in enumerate(items)} for run in range(4)}
    assert halves("none", same, 0.1).state == "passed"
    apart = {run: dict.fromkeys(items, float(run > 1)) for run in range(4)}
    assert halves("none", apart, 0.1).state == "failed"
    assert halves("none", {0: same[0]}, 0.1).state == "not applicable"


def test_order_of_reading_when_a_number_follows_it_fails() -> None:
    """A number that another order of the log changes names itself."""
    assert alike("Order of reading", {"a": 0.1, "b": None}, {"a": 0.1, "b": None}).state == "passed"
    found = alike("Order of reading", {"a": 0.1, "b": 0.2}, {"a": 0.1, "b": 0.3})
    assert found.state == "failed"
    assert found.detail.endswith(": b.")


def test_splits_when_a_tested_task_was_learned_from_fail() -> None:
    """The task is named."""
    assert disjoint(["a", "b"], ["c"]).state == "passed"
    found = disjoint(["a", "b"], ["b", "c"])
    assert (found.state, "such as b" in found.detail) == ("failed", True)
    assert disjoint([], ["c"]).state == "not applicable"
