"""The page over all pairs: every table and figure of the paper, with ours beside what it prints."""

import csv
import re
from html import unescape
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as ET

import pytest
import synthetic_log
from synthetic_log import SyntheticLog, World

from langgraft.benchmarks.continual.analysis import Analysis, analyze
from langgraft.benchmarks.continual.paper.counterparts import others, roles, side_of
from langgraft.benchmarks.continual.paper.report import write_paper_report
from langgraft.benchmarks.continual.plan import ContinualPlan
from langgraft.benchmarks.harness.study import Report
from langgraft.benchmarks.published import continual_memory
from langgraft.benchmarks.reporting.words import MINUS

pytestmark = pytest.mark.matrix  # whole studies

DOMAINS = {
    "home": {"A": "alfworld/pick_and_place", "B": "alfworld/pick_clean_then_place"},
    "back": {"A": "babyai/find_obj", "B": "babyai/action_obj_door"},
}
SINGLE = {"granularity": "individual", "top_k": 3}
CONDITIONS: list[dict[str, Any]] = [
    {"name": "whole", "provider": "trajectory"},
    {"name": "better", "provider": "insight", "mends": "single", "settings": SINGLE},
    {"name": "bundle", "provider": "insight", "settings": {"granularity": "aggregate"}},
    {"name": "single", "provider": "insight", "settings": SINGLE},
    {"name": "often", "provider": "insight", "settings": {**SINGLE, "requery_interval": 4}},
]
EVIL = "<script>alert('x')</script>&\"'"
PLAN = ContinualPlan.model_validate(
    {
        "title": EVIL,
        "model": "simulated",
        "pairs": [{"name": name, **domains} for name, domains in DOMAINS.items()],
        "conditions": CONDITIONS,
        "controls": [{"control": "placebo", "of": "whole"}],
        "train_items": 6,
        "test_items": 24,
    }
)
WORLD = World(
    conditions=[each["name"] for each in CONDITIONS],
    controls=("whole+placebo",),
    replicates=2,
    baseline_runs=3,
    train_items=4,
    test_items=20,
    mends={"better": "single"},
)


@pytest.fixture(scope="module")
def analyses() -> dict[str, Analysis]:
    """Analyze a study on ALFWorld's pair, and on BabyAI's with its tasks the other way round."""
    found = {}
    with pytest.MonkeyPatch.context() as patch:
        for name, domains in DOMAINS.items():
            patch.setattr(synthetic_log, "DOMAINS", domains)
            found[name] = analyze(SyntheticLog(WORLD))
    return found


@pytest.fixture(scope="module")
def written(analyses: dict[str, Analysis], tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Write the page over both."""
    return write_paper_report(PLAN, analyses, tmp_path_factory.mktemp("paper"), simulated=True)


@pytest.fixture(scope="module")
def html(written: Report) -> str:
    """Return the page."""
    return written.page.read_text(encoding="utf-8")


def read_csv(written: Report, name: str) -> list[dict[str, str]]:
    """Read one of the tables beside the page."""
    with (written.page.parent / "tables" / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_roles_when_read_from_settings_do_not_need_names() -> None:
    """Whatever they are called: providers and settings tell; a remedy plays no role."""
    cast = roles(PLAN)
    named = {role: condition.name for role, condition in cast.items()}
    assert named == {"raw": "whole", "agg": "bundle", "ind": "single", "step": "often"}
    assert others(PLAN) == [
        ("better", "to improve on single"),
        ("whole+placebo", "control of whole"),
    ]


@pytest.mark.parametrize(
    "condition",
    [
        {"provider": "insight", "settings": {**SINGLE, "mmr": 0.5}},
        {"provider": "insight", "settings": SINGLE, "distillation": "by_outcome"},
        {"provider": "insight", "settings": {"granularity": "adaptive"}},
        {"provider": "recency"},
    ],
)
def test_condition_when_it_is_none_of_the_paper_plays_no_role(condition: dict[str, Any]) -> None:
    """Other ways to keep, to distill or to recall are listed apart."""
    plan = PLAN.model_copy(
        update={
            "conditions": ContinualPlan.model_validate(
                {"conditions": [{"name": "ind", **condition}]}
            ).conditions,
            "controls": (),
        }
    )
    assert roles(plan) == {}
    assert [name for name, _ in others(plan)] == ["ind"]


def test_role_when_two_could_play_it_goes_to_the_one_of_table_8() -> None:
    """Cond-Ind with ten items gives way to the one with three, wherever that stands."""
    many = {"name": "many", "provider": "insight", "settings": {**SINGLE, "top_k": 10}}
    plan = ContinualPlan.model_validate({"conditions": [many, CONDITIONS[3]]})
    assert roles(plan)["ind"].name == "single"
    assert roles(ContinualPlan.model_validate({"conditions": [many]}))["ind"].name == "many"


@pytest.mark.parametrize("name", ["table_3", "table_5"])
def test_published_values_when_tasks_are_swapped_stand_beside_their_own(
    written: Report, name: str
) -> None:
    """Each row has what the paper prints of the same families, condition and direction."""
    paper = continual_memory()
    table = paper.table_3 if name == "table_3" else paper.table_5
    names = {"Raw": "raw", "Insight (Cond-Agg)": "agg", "Cond-Ind": "ind", "Cond-Step": "step"}
    rows = read_csv(written, name)
    assert len(rows) == len(table)
    for row in rows:
        back = row["pair"] == "back"
        sequence = row["sequence"][::-1] if back else row["sequence"]
        world = "BabyAI" if back else "ALFWorld"
        printed = table[sequence, world, names[row["role"]]]  # type: ignore[index]
        assert float(row["transfer_published"]) == printed.transfer
        assert float(row["before_published"]) == printed.scratch
        assert row["delta_nl_published"] == (
            "" if printed.delta_nl is None else str(printed.delta_nl)
        )


def test_numbers_when_written_are_those_of_the_analyses(
    written: Report, analyses: dict[str, Analysis]
) -> None:
    """No second way to compute a metric: what a pair's own report says is said here."""
    for name, direction in (("table_3", "forward"), ("table_6", "backward")):
        for row in read_csv(written, name):
            (ours,) = [
                each.transfer
                for each in analyses[row["pair"]].transfers
                if (each.direction, each.sequence, each.condition)
                == (direction, row["sequence"], row["condition"])
            ]
            assert ours.estimate is not None
            assert float(row["transfer_value"]) == pytest.approx(100 * ours.estimate.value)
            assert float(row["transfer_low"]) == pytest.approx(100 * ours.estimate.low)
            assert int(row["transfer_n_items"]) == ours.estimate.n_items


def test_further_conditions_when_there_are_any_have_a_table_of_their_own(written: Report) -> None:
    """Remedies are below, with what they are to mend, and in none of the paper's tables."""
    assert {(row["condition"], row["kind"]) for row in read_csv(written, "further_conditions")} == {
        ("better", "to improve on single")
    }
    assert "better" not in {row["condition"] for row in read_csv(written, "table_5")}


def test_page_when_written_has_every_table_and_figure(html: str, written: Report) -> None:
    """Tables 2 to 8, Figures 2 to 12 of both pairs; why Figure 13 is none is said."""
    for number in range(2, 9):
        assert (written.page.parent / "tables" / f"table_{number}.csv").is_file()
        assert re.search(rf"Tables? (\d and )?{number}", html)
    drawn = {path.stem for path in (written.page.parent / "figures").glob("*.svg")}
    wanted = {f"figure-{number}" for number in (2, 3, 4, 5, 7, 8, 9, 10)}
    assert drawn == wanted | {f"figure-{n}-{name}" for n in (11, 12) for name in DOMAINS}
    assert "Figure 13, RR and NL along training, has no counterpart here" in html


def test_page_when_written_is_safe_and_links_to_each_pair(html: str) -> None:
    """No script, nothing fetched, all escaped; ids once; reports and cases by relative links."""
    assert EVIL not in html
    assert "&lt;script&gt;" in html
    assert not re.search(r"<script|<link|<img|src=|https?://(?!www\.w3\.org)", html)
    ids = re.findall(r'\bid="([^"]+)"', html)
    assert len(set(ids)) == len(ids)
    links = set(re.findall(r'href="([^"#]+)"', html))
    assert {f"{name}/index.html" for name in DOMAINS} <= links
    assert any(re.fullmatch(r"home/cases/case-\d+\.html", link) for link in links)
    assert all(re.fullmatch(r"[a-z]+/[\w./-]+", link) for link in links)


def test_page_when_the_model_is_simulated_says_whose_numbers_are_whose(html: str) -> None:
    """Published numbers are a language model's, ours are not; each is marked."""
    said = "The model is simulated; the published numbers are a language model's."
    assert said in unescape(html)
    assert f"paper {MINUS}26.1" in html
    assert "paper ≈0" in html


def test_figures_when_written_are_xml_without_clashes(written: Report) -> None:
    """Each figure stands alone, too."""
    for path in (written.page.parent / "figures").glob("*.svg"):
        ET.fromstring(path.read_text(encoding="utf-8"))


def test_report_when_written_again_has_the_same_bytes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same analyses give the same page; that its figures do, the report of a pair is asked."""
    monkeypatch.setattr("langgraft.benchmarks.continual.paper.figures.draw", lambda *_: {})
    small = World(conditions=("whole",), controls=(), train_items=2, test_items=4, replicates=2)
    found = analyze(SyntheticLog(small))
    plan = PLAN.model_copy(update={"conditions": PLAN.conditions[:1], "controls": ()})
    first, again = (
        write_paper_report(plan, {"back": found}, tmp_path / name, simulated=True).page.read_bytes()
        for name in ("first", "again")
    )
    assert first == again


def test_side_when_families_are_not_the_papers_has_nothing_published() -> None:
    """A pair of other families stands without published numbers; generated games say so."""
    with pytest.MonkeyPatch.context() as patch:
        for domains, world, generated in (
            ({"A": "babyai/find_obj", "B": "babyai/other"}, None, False),
            ({"A": "toy/x", "B": "toy/y"}, None, False),
            (
                {
                    "A": "alfworld-generated/pick_and_place",
                    "B": "alfworld-generated/pick_clean_then_place",
                },
                "ALFWorld",
                True,
            ),
        ):
            patch.setattr(synthetic_log, "DOMAINS", domains)
            small = World(conditions=("raw",), controls=(), train_items=2, test_items=3)
            side = side_of("x", analyze(SyntheticLog(small)))
            assert (side.world, side.generated) == (world, generated)
            assert (side.forward("A>B", "raw") is None) == (world is None)


def test_page_when_nothing_is_done_yet_still_stands(tmp_path: Path) -> None:
    """A study under way has a page that says what is missing."""
    small = World(conditions=("whole",), controls=(), train_items=2, test_items=4)
    done = {run.name: 0 for run in SyntheticLog(small).runs}
    found = analyze(SyntheticLog(small, done=done))
    report = write_paper_report(PLAN, {"back": found}, tmp_path, simulated=True)
    assert "The study is incomplete." in report.page.read_text(encoding="utf-8")
