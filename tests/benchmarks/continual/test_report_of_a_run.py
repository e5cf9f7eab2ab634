"""A small study played for real, and everything its report says about it."""

import asyncio
import csv
import re
from statistics import fmean

import pytest

from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.continual.study import ContinualStudy
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.study import Report
from langgraft.memory.model import BankContent
from langgraft.memory.rankers.diversity import mean_pairwise_diversity

pytestmark = pytest.mark.matrix  # a whole study

STUDY = ContinualStudy()
PLAN = ContinualPlan.model_validate(
    {
        "conditions": [
            {
                "name": "ind",
                "provider": "insight",
                "settings": {"granularity": "individual", "top_k": 2},
            },
            {
                "name": "wide",
                "provider": "insight",
                "mends": "ind",
                "settings": {"granularity": "individual", "top_k": 4},
            },
        ],
        "probes": [{"retrieval": "wide", "pool": "ind"}],
        "sequences": ["A>B"],
        "train_items": 4,
        "test_items": 2,
        "runs": 2,
        "baseline_runs": 2,
        "milestones": 2,
    }
)


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> PlanLog:
    """Play the study."""
    out = tmp_path_factory.mktemp("study") / "run"
    asyncio.run(run_plan(prepare(STUDY, PLAN), out, model_for=STUDY.simulated_model))
    return PlanLog(out)


@pytest.fixture(scope="module")
def report(log: PlanLog, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Write its report."""
    return STUDY.report(PLAN, log, tmp_path_factory.mktemp("report"))


def rows(report: Report, table: str) -> list[dict[str, str]]:
    """Read a table beside the page."""
    path = report.page.parent / "tables" / f"{table}.csv"
    with path.open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_report_when_a_study_was_played_then_every_analysis_is_there(report: Report) -> None:
    """Retrieval, dilution, probes, remedies and cases stand on the page and in tables."""
    html = report.page.read_text(encoding="utf-8")
    for section in ("retrieval", "dilution", "probes", "cases"):
        assert f'<section id="{section}">' in html
    for table in ("retrieval", "dilution_tested", "crossed_effects", "remedies", "null_values"):
        assert rows(report, table), table
    assert {row["condition"] for row in rows(report, "remedies")} == {"wide", "wide@ind"}


def test_retrieval_when_measured_from_a_real_log_then_agrees_with_its_banks(
    report: Report, log: PlanLog
) -> None:
    """Bank size, key diversity, ties and tokens are those of the run directory."""
    row = next(
        row
        for row in rows(report, "retrieval_runs")
        if (row["condition"], row["sequence"], row["task"], row["at"], row["replicate"])
        == ("wide@ind", "A>B", "A", "", "1")
    )
    bank: BankContent = log.bank("ind/1/train A>B")
    keys = [item.retrieval_key for item in bank.items.values()]
    results = log.results("wide@ind/1/test A after A>B")
    receipts = [recall for result in results for recall in result["recalls"]]  # type: ignore[union-attr]
    assert float(row["bank_items"]) == len(keys)
    assert float(row["key_diversity"]) == pytest.approx(mean_pairwise_diversity(keys), abs=1e-6)
    assert float(row["queries"]) == len(receipts) == 2
    tied = [receipt["tied"] > 1 for receipt in receipts]  # type: ignore[index,call-overload,operator]
    assert float(row["tie_rate"]) == pytest.approx(100 * sum(tied) / len(tied), abs=1e-4)


def test_dilution_when_a_study_was_played_then_follows_its_milestones(
    report: Report, log: PlanLog
) -> None:
    """The earlier task is tested before, in the middle of and after the later one."""
    mine = [
        row
        for row in rows(report, "dilution_tested")
        if (row["condition"], row["sequence"]) == ("ind", "A>B")
    ]
    assert [row["at"] for row in mine] == ["0", "2", "4"]
    own = [
        fmean(_share(log.bank(f"ind/{run}/train A>B", items), PLAN.tasks.A) for run in (0, 1))
        for items in (0, 2, 4)
    ]
    assert own[0] == 1 > own[1] > own[2]
    assert [float(row["bank_own_mean"]) for row in mine] == pytest.approx(
        [100 * each for each in own], abs=1e-5
    )


def _share(bank: BankContent, domain: str) -> float:
    return fmean(item.source_domain == domain for item in bank.items.values())


def test_cases_when_a_study_was_played_then_show_what_the_agent_saw_and_did(
    report: Report, log: PlanLog
) -> None:
    """A case page holds the block that was injected and the observations of both episodes."""
    pages = [
        path.read_text(encoding="utf-8")
        for path in sorted((report.page.parent / "cases").glob("*.html"))
    ]
    assert pages
    for html in pages:
        assert "Your goal:" in html
        # With memory beside none, or both tasks' beside the later one's alone.
        assert re.search(r"<h2>(With memory|After \w→\w)</h2>", html)
        assert re.search(r"<h2>(Without|After \w alone)</h2>", html)
    assert any("&lt;recalled_memory&gt;" in html for html in pages)
