"""The report: self-contained, escaped, complete, and the same bytes for the same log."""

import csv
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from html.parser import HTMLParser
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
import synthetic_log
from synthetic_log import SyntheticLog, World

from langgraft._core.canonical import JSON
from langgraft.benchmarks.continual.analysis import Analysis, analyze
from langgraft.benchmarks.continual.columns import MEANINGS
from langgraft.benchmarks.continual.report import write_report
from langgraft.benchmarks.continual.tables import tables
from langgraft.benchmarks.harness.study import Plan, Report
from langgraft.benchmarks.reporting.words import interval, signed
from langgraft.memory.model import MemoryDelta

WORLD = World(effects={("agg", "", ""): 0.35, ("raw", "", ""): -0.35}, steps=2)
SMALL = World(conditions=("agg",), controls=(), train_items=2, test_items=4)
PLAN = Plan(study="continual", title="A synthetic study")
FIGURES = [
    *("backward", "decomposition", "dilution", "forest", "forward", "learning", "milestones"),
    *("retention", "retrieval", "subsets", "within-cross"),
]
EVIL = "<script>alert('x')</script>&\"'"


class Page(HTMLParser):
    """Collects the tags, attributes and text of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str | None]] = []
        self.words: list[str] = []
        self.unfolded: list[str] = []
        self.open: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in a tag."""
        self.tags.append(tag)
        self.attributes += attrs
        if tag not in {"meta", "br", "path", "use", "rect", "link"}:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take in a tag that closes itself."""
        self.tags.append(tag)
        self.attributes += attrs

    def handle_endtag(self, tag: str) -> None:
        """Check that tags close in the order in which they were opened."""
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Take in text, styles aside."""
        if self.open[-1:] != ["style"]:
            self.words.append(data)
            if "head" not in self.open and ("details" not in self.open or "summary" in self.open):
                self.unfolded += data.split()

    @property
    def text(self) -> str:
        """All text with single spaces."""
        return " ".join(" ".join(self.words).split())


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    """Analyze a complete study."""
    return analyze(SyntheticLog(WORLD))


@pytest.fixture(scope="module")
def written(analysis: Analysis, tmp_path_factory: pytest.TempPathFactory) -> Report:
    """Write its report."""
    out = tmp_path_factory.mktemp("report")
    return write_report(PLAN, SyntheticLog(WORLD), out, analysis=analysis)


@pytest.fixture(scope="module")
def html(written: Report) -> str:
    """Return its page."""
    return written.page.read_text(encoding="utf-8")


def read_csv(written: Report, name: str) -> list[dict[str, str]]:
    """Read one of the tables beside the page."""
    with (written.page.parent / "tables" / f"{name}.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_page_when_opened_then_needs_nothing_else(html: str) -> None:
    """No script, no link, no image, no address anywhere but in names of XML."""
    page = Page(html)
    assert not page.open
    assert not {"script", "link", "img", "iframe", "object", "embed"} & set(page.tags)
    assert page.tags.count("svg") == len(FIGURES)
    for name, value in page.attributes:
        assert not name.startswith("on")
        if name in {"href", "src", "xlink:href"}:
            assert value is not None
            assert re.match(r"#|cases/case-\d+\.html$", value)
    assert not re.search(r"@import|url\((?!#)", html)


def test_page_when_it_holds_many_figures_then_no_id_is_used_twice(html: str) -> None:
    """Every reference inside the page has one target."""
    page = Page(html)
    ids = [value for name, value in page.attributes if name == "id"]
    assert len(ids) == len(set(ids))
    links = [value for name, value in page.attributes if value and name.endswith("href")]
    targets = {link[1:] for link in links if link.startswith("#")}
    clips = set(re.findall(r"url\(#([^)]+)\)", html))
    assert targets | clips <= set(ids)


def test_page_when_read_then_says_what_was_found(html: str) -> None:
    """Findings, verdicts, transfer tables, gates and provenance are all there."""
    text = Page(html).text
    assert "agg helped" in text
    assert "raw hurt" in text
    for heading in ("Did memory help?", "Forward transfer", "Backward transfer", "Learning"):
        assert heading in text
    for words in ("Completeness", "Identity", "A/A: re-run", "G2: prompts", "passed"):
        assert words in text
    assert "langgraph" in text
    assert "c0ffee" in text


@pytest.mark.usefixtures("no_figures")
def test_report_when_games_are_generated_says_so_before_any_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In the terminal, on the page and on each case, nobody can take them for ALFWorld's."""
    families = {"A": "pick_and_place", "B": "pick_clean_then_place"}
    domains = {task: f"alfworld-generated/{family}" for task, family in families.items()}
    monkeypatch.setattr(synthetic_log, "DOMAINS", domains)
    small = World(conditions=("raw",), controls=(), train_items=2, test_items=4, replicates=2)
    plan = Plan(study="continual", model="simulated")
    report = write_report(plan, SyntheticLog(small), tmp_path)
    assert report.lines[1] == "The games are generated here: no number is an ALFWorld score."
    pages = [report.page, *(tmp_path / "cases").glob("*.html")]
    assert len(pages) > 1
    assert all("no number here is an ALFWorld score" in each.read_text() for each in pages)


def test_page_when_model_is_simulated_then_says_so_before_any_number(html: str) -> None:
    """Nobody can take a simulated learner's numbers for a language model's."""
    text = Page(html).text
    assert "The model is simulated." in text
    assert text.index("The model is simulated.") < text.index("Of 2 memories")


@pytest.mark.usefixtures("no_figures")
def test_page_when_nothing_is_unfolded_then_answers_in_six_hundred_words(tmp_path: Path) -> None:
    """Whether memory helped, transfer at its best and worst, cost, controls and limits come first."""
    names = ("agg", "raw", *(f"same-{number}" for number in range(10)))
    world = replace(WORLD, conditions=names, train_items=4, test_items=25, tokens=(900, 134))
    analysis = analyze(SyntheticLog(world))
    report = write_report(PLAN, SyntheticLog(world), tmp_path, analysis=analysis)
    shown = Page(report.page.read_text(encoding="utf-8")).unfolded
    assert len(shown) <= 600
    text = " ".join(shown)
    for words in ("agg helped", "raw hurt", "7 more stand below", "agg+placebo", "tokens without"):
        assert words in text
    for direction, name in (("forward", "FWT"), ("backward", "BWT")):
        found = [row for row in analysis.transfers if row.direction == direction]
        values = {row.transfer.estimate for row in found if row.condition in world.conditions}
        ranked = sorted(values - {None}, key=lambda each: each.value if each else 0.0)
        for label, estimate in (("worst", ranked[0]), ("best", ranked[-1])):
            assert estimate is not None
            told = f"{signed(estimate.value)} {interval(estimate)}"
            assert re.search(rf"{label} {name} [^A-Z]*[A-Z→ ]*[\d. →]* {re.escape(told)}", text)


@pytest.mark.usefixtures("no_figures")
def test_page_when_replies_were_simulated_behind_another_name_then_says_so(
    analysis: Analysis, tmp_path: Path
) -> None:
    """What replies say of themselves counts, whatever the plan calls the model."""

    class Served(SyntheticLog):
        def results(self, name: str) -> list[Mapping[str, JSON]]:
            usage: dict[str, JSON] = {"replies": 3, "simulated_replies": 3}
            return [{**result, "usage": usage} for result in super().results(name)]

    plan = Plan(study="continual", model="openai:gpt-4.1-mini")
    report = write_report(plan, Served(WORLD), tmp_path, analysis=analysis)
    assert "The model is simulated." in report.page.read_text(encoding="utf-8")
    assert "by construction" in report.lines[0]


@pytest.mark.usefixtures("no_figures")
def test_page_when_model_is_real_then_names_it(analysis: Analysis, tmp_path: Path) -> None:
    """A real model is named, and not called simulated."""
    plan = Plan(study="continual", model="openai:gpt-4.1-mini")
    report = write_report(plan, SyntheticLog(WORLD), tmp_path, analysis=analysis)
    text = Page(report.page.read_text(encoding="utf-8")).text
    assert "simulated" not in text
    assert "model: openai:gpt-4.1-mini" in text
    assert not any("simulated" in line for line in report.lines)


@pytest.mark.matrix
def test_report_when_written_twice_then_is_the_same_bytes(
    written: Report, analysis: Analysis, tmp_path: Path
) -> None:
    """Page, figures and tables depend on the log alone, in another process and style too.

    Drawing leaves the user's style as it was, and makes no global figure.
    """
    code = (
        "import sys; from pathlib import Path; import matplotlib as mpl;"
        "mpl.rcParams['font.size'] = 20; mpl.rcParams['svg.hashsalt'] = 'other';"
        "from langgraft.benchmarks.continual.report import write_report;"
        "from synthetic_log import SyntheticLog, World;"
        "from langgraft.benchmarks.harness.study import Plan;"
        "write_report(Plan(study='continual', title='A synthetic study'), SyntheticLog(World("
        "effects={('agg', '', ''): 0.35, ('raw', '', ''): -0.35}, steps=2)), Path(sys.argv[1]));"
        "assert mpl.rcParams['font.size'] == 20; assert 'matplotlib.pyplot' not in sys.modules"
    )
    support = str(Path(synthetic_log.__file__).parent)
    environment = {**os.environ, "PYTHONHASHSEED": "4711", "PYTHONPATH": support}
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=True, env=environment)
    first, second = written.page.parent, tmp_path
    names = sorted(path.relative_to(first) for path in first.rglob("*") if path.is_file())
    assert names == sorted(path.relative_to(second) for path in second.rglob("*") if path.is_file())
    pages = sum(name.parent.name == "cases" for name in names)
    assert len(names) == 1 + len(FIGURES) + len(tables(analysis)) + 1 + pages
    assert pages > 0
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_figures_when_opened_alone_then_are_svg(written: Report) -> None:
    """Each figure is a well-formed SVG file of its own."""
    figures = sorted((written.page.parent / "figures").glob("*.svg"))
    assert [path.stem for path in figures] == FIGURES
    for path in figures:
        assert ET.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


class HostileLog(SyntheticLog):
    """An incomplete log in which every name and text from outside wants to be markup."""

    def __init__(self) -> None:
        world = World(
            conditions=("agg",), controls=(), told=EVIL, train_items=6, test_items=12, steps=2
        )
        done = {"agg/1/test A after A>B": 7, "agg/0/test B after B": 0}
        super().__init__(world, done=done, manifest={"packages": {EVIL: EVIL}})
        self.runs = tuple(
            replace(
                run,
                name=run.name + EVIL,
                factors={**run.factors, "domain": EVIL},
                source=run.source and replace(run.source, run=run.source.run + EVIL),
            )
            for run in self.runs
        )

    def results(self, name: str) -> list[Mapping[str, JSON]]:
        """Return the results of a run by its hostile name."""
        return super().results(name.removesuffix(EVIL))

    def deltas(self, name: str) -> list[tuple[MemoryDelta, ...]]:
        """Return the deltas of a run by its hostile name."""
        return super().deltas(name.removesuffix(EVIL))


def test_pages_when_strings_are_hostile_then_escape_them(tmp_path: Path) -> None:
    """Titles, models, items, runs, manifests, memory and replies cannot become markup.

    The study is incomplete too: figures are drawn of what there is.
    """
    plan = Plan(study="continual", title=EVIL, model=EVIL)
    report = write_report(plan, HostileLog(), tmp_path)
    cases = sorted((tmp_path / "cases").glob("*.html"))
    assert cases
    assert "The study is incomplete." in report.page.read_text(encoding="utf-8")
    assert sorted(path.stem for path in tmp_path.glob("figures/*.svg")) == FIGURES
    for path in (report.page, *cases):
        html = path.read_text(encoding="utf-8")
        page = Page(html)
        assert not page.open
        assert "script" not in page.tags
        assert "<script" not in html
        assert "alert('x')" in page.text


@pytest.mark.usefixtures("no_figures")
def test_page_when_study_is_incomplete_then_marks_what_is_missing(tmp_path: Path) -> None:
    """Missing episodes are announced, counted beside their numbers and kept out of tests."""
    log = SyntheticLog(WORLD, done={"raw/1/test A after A>B": 7, "agg/0/test B after B": 0})
    text = Page(write_report(PLAN, log, tmp_path).page.read_text(encoding="utf-8")).text
    assert "The study is incomplete." in text
    assert "87/120 done" in text
    assert "raw and agg are incomplete" in text
    assert "helped" not in text


def test_report_when_nothing_is_done_then_is_still_written(tmp_path: Path) -> None:
    """A report of a study that has just begun has no figures and no numbers."""
    names = [run.name for run in SyntheticLog(WORLD).runs]
    log = SyntheticLog(WORLD, done=dict.fromkeys(names, 0))
    html = write_report(PLAN, log, tmp_path).page.read_text(encoding="utf-8")
    assert "<svg" not in html
    assert "no data" in html


@pytest.mark.usefixtures("no_figures")
def test_page_when_a_subset_is_small_then_shows_only_its_size(tmp_path: Path) -> None:
    """Under ten items there is an n and a dash."""
    log = SyntheticLog(World(conditions=("agg",), controls=(), solved=0.95))
    report = write_report(PLAN, log, tmp_path)
    row = read_csv(report, "transfers")[0]
    assert row["delta_nl_value"] == ""
    assert 0 < int(row["delta_nl_n_items"]) < 10
    text = Page(report.page.read_text(encoding="utf-8")).text
    assert f"– n = {row['delta_nl_n_items']}" in text  # noqa: RUF001  (an en dash)


@pytest.mark.usefixtures("no_figures")
def test_page_when_plan_is_limited_then_says_so(tmp_path: Path) -> None:
    """A run of a few items is not mistaken for the plan."""
    report = write_report(PLAN, SyntheticLog(SMALL, manifest={"limit": 5}), tmp_path)
    assert "This is a limited run" in report.page.read_text(encoding="utf-8")


def test_terminal_table_when_returned_then_fits_its_columns(written: Report) -> None:
    """Rows are as wide as the header, and the findings come with the notice first."""
    assert {len(row) for row in written.rows} == {len(written.columns)} == {5}
    assert written.lines[0].startswith("The model is simulated")
    assert any(line.startswith("agg helped") for line in written.lines)
    assert written.json_rows()[0]["condition"] == "none"


def test_csv_when_compared_with_the_log_then_has_its_numbers(written: Report) -> None:
    """The accuracy of a cell in CSV is what one counts in the log."""
    log = SyntheticLog(WORLD)
    results = [
        result
        for replicate in range(WORLD.replicates)
        for result in log.results(f"agg/{replicate}/test B after A>B")
    ]
    rate = 100 * sum(bool(result["success"]) for result in results) / len(results)
    rows = read_csv(written, "accuracies")
    found = [r for r in rows if (r["condition"], r["sequence"], r["task"]) == ("agg", "A>B", "B")]
    assert len(found) == 1
    assert float(found[0]["value"]) == pytest.approx(rate)
    assert found[0]["n_done"] == found[0]["n_planned"] == str(len(results))


def test_csv_when_episodes_are_listed_then_every_result_is_there(written: Report) -> None:
    """One row per episode, with the place it had in its stream."""
    rows = read_csv(written, "episodes")
    log = SyntheticLog(WORLD)
    assert len(rows) == sum(run.length for run in log.runs)
    mine = [row for row in rows if row["run"] == "agg/0/train A>B"]
    order = [row["item"] for row in sorted(mine, key=lambda row: int(row["position"]))]
    assert tuple(order) == next(run.item_ids for run in log.runs if run.name == mine[0]["run"])


def test_csv_when_columns_repeat_a_number_then_interval_and_n_go_with_it() -> None:
    """No table of estimates has a value without interval, n and meaning; rows fit headers."""
    mending = replace(
        WORLD,
        conditions=("agg", "fold"),
        mends={"fold": "agg"},
        probes=("fold@agg",),
        tokens=(900, 134),
    )
    for table in tables(analyze(SyntheticLog(mending))):
        assert {len(row) for row in table.rows} <= {len(table.columns)}, table.name
        for column in table.columns:
            stem = column.removesuffix("value")
            if stem != column:
                assert {f"{stem}low", f"{stem}high", f"{stem}n_items"} <= set(table.columns)
        assert all(MEANINGS.of(column) for column in table.columns), table.name


@pytest.mark.usefixtures("no_figures")
def test_report_when_results_hold_usage_then_tokens_reach_page_and_csv(tmp_path: Path) -> None:
    """Tokens per episode stand in the costs, and only where results hold them."""
    report = write_report(PLAN, SyntheticLog(replace(SMALL, tokens=(900, 134))), tmp_path)
    assert {row["tokens_mean"] for row in read_csv(report, "costs")} == {"1034.0"}
    html = report.page.read_text(encoding="utf-8")
    assert '<th scope="col">tokens</th>' in html
    assert "1,034" in Page(html).text
    assert "Who asks the model" in html
    rows = read_csv(report, "costs_by_node")
    assert {(row["node"], row["replies_mean"], row["tokens_mean"]) for row in rows} == {
        ("think", "1.0", "1034.0")
    }


@pytest.mark.parametrize("judged", [False, True])
@pytest.mark.usefixtures("no_figures")
def test_report_when_memory_asked_a_judge_then_tells_who_answered(
    tmp_path: Path, judged: bool
) -> None:
    """What rules answered in a model's place is counted, on the page and in the table."""
    report = write_report(PLAN, SyntheticLog(replace(SMALL, judged=judged)), tmp_path)
    assert ("What memory asked a judge" in report.page.read_text(encoding="utf-8")) is judged
    assert {row["by_rules_mean"] for row in read_csv(report, "costs")} == {str(float(judged))}


@pytest.mark.usefixtures("no_figures")
def test_report_when_nothing_is_detectable_then_page_and_csv_say_so(tmp_path: Path) -> None:
    """Neither page nor tables print a detectable difference of more than 100 points."""
    log = SyntheticLog(World(conditions=("agg",), test_items=1, replicates=2))
    report = write_report(PLAN, log, tmp_path)
    text = Page(report.page.read_text(encoding="utf-8")).text
    assert "this study cannot detect any difference" in text
    assert "none too few items or runs" in text
    row = read_csv(report, "contrasts")[0]
    assert row["detectable_80"] == ""
    assert row["detectable_note"] == "no difference can be detected: too few items or runs"
    assert read_csv(report, "contrasts")[-1]["noise"] == "cannot be told"


def test_report_when_differences_are_told_then_shows_what_they_are_made_of(written: Report) -> None:
    """Page, CSV and terminal show the two success rates that a difference is made of."""
    text = Page(written.page.read_text(encoding="utf-8")).text
    for row in read_csv(written, "contrasts"):
        success, baseline = float(row["success_value"]), float(row["baseline_value"])
        assert success - baseline == pytest.approx(float(row["value"]), abs=1e-5)
        assert f"{success:.2f} − {baseline:.2f}" in text  # noqa: RUF001  (a minus sign)


@pytest.mark.usefixtures("no_figures")
def test_page_when_fingerprints_are_nested_then_provenance_shows_each(tmp_path: Path) -> None:
    """Every leaf of the manifest has a row, lists and empty parts included."""
    fingerprints: dict[str, JSON] = {"learner": {"rules": {"a": 1}, "none": {}, "list": ["x", 2]}}
    report = write_report(
        PLAN, SyntheticLog(SMALL, manifest={"fingerprints": fingerprints}), tmp_path
    )
    text = Page(report.page.read_text(encoding="utf-8")).text
    assert "fingerprints.learner.rules.a 1" in text
    assert "fingerprints.learner.none {}" in text
    assert 'fingerprints.learner.list ["x", 2]' in text


def test_csv_when_contrasts_are_written_then_state_test_and_verdict(written: Report) -> None:
    """The contrast table names role, Holm-adjusted p and verdict."""
    rows = {row["condition"]: row for row in read_csv(written, "contrasts")}
    assert rows["agg"]["verdict"] == "helped"
    assert rows["agg"]["role"] == "memory"
    assert rows["agg+placebo"]["p_holm"] == ""
    assert float(rows["agg"]["low"]) < float(rows["agg"]["value"]) < float(rows["agg"]["high"])
