"""The tree study's report: one page, its tables, figures and trees; the same for the same log."""

import csv
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from mle_logs import Tree, TreeLog, plan

from langgraft.benchmarks.mle.analysis import analyze
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.benchmarks.mle.report import roles_of, sentences, write_report
from langgraft.benchmarks.mle.tables import MEANINGS
from langgraft.benchmarks.reporting.words import DASH

pytestmark = pytest.mark.matrix  # whole studies

HOSTILE = '<script>alert(1)</script> & "quotes" {{ 7 * 7 }} \u202e'


def files(folder: Path) -> dict[str, bytes]:
    """Return all files below a folder."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def table(folder: Path, name: str) -> list[list[str]]:
    """Return a table of a report, its header first."""
    return list(csv.reader((folder / "tables" / name).read_text().splitlines()))


class Tags(HTMLParser):
    """Collects tags and links."""

    def __init__(self) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.links: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.add(tag)
        self.links += [value or "" for name, value in attrs if name in {"href", "src"}]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a report."""
    out = tmp_path_factory.mktemp("report")
    write_report(plan(title="Trees"), TreeLog(), out)
    return out


def test_report_when_written_twice_is_the_same_bytes(written: Path, tmp_path: Path) -> None:
    """Page, tables, figures and trees."""
    write_report(plan(title="Trees"), TreeLog(), tmp_path)
    assert files(tmp_path) == files(written)


def test_page_when_opened_links_every_tree_and_fetches_nothing(written: Path) -> None:
    """All links lead to a place in the page or to a file beside it."""
    page = Tags()
    page.feed((written / "index.html").read_text())
    assert not page.tags & {"script", "link", "img", "iframe"}
    trees = [link for link in page.links if link.startswith("trees/")]
    assert len(trees) == len(set(trees)) == 45
    for link in trees:
        assert (written / link).is_file()
    assert all(link.startswith(("trees/", "#")) for link in page.links)


@pytest.mark.usefixtures("no_figures")
def test_page_when_the_model_is_simulated_says_so(written: Path, tmp_path: Path) -> None:
    """And not where it is none."""
    assert "The model is simulated." in (written / "index.html").read_text()
    report = write_report(
        plan(model="openai:o3"), TreeLog(Tree(conditions=("off",), seeds=1)), tmp_path
    )
    assert "simulated" not in report.page.read_text()
    assert "The model is simulated." not in report.lines


def test_tables_when_written_explain_each_column(written: Path) -> None:
    """Every column has a meaning, every difference its interval and n."""
    for path in (written / "tables").glob("*.csv"):
        header = table(written, path.name)[0]
        if path.stem != "columns":
            assert [name for name in header if MEANINGS.of(name) is None] == [], path.name
    header, *rows = table(written, "contrasts.csv")
    found = [dict(zip(header, row, strict=True)) for row in rows]
    bug = next(r for r in found if (r["condition"], r["measure"]) == ("warm", "bug_rate"))
    assert float(bug["low"]) <= float(bug["value"]) <= float(bug["high"])
    assert (bug["pairs"], bug["planned"], bug["in_family"]) == ("9", "9", "yes")
    assert len(table(written, "runs.csv")) == 1 + 45


def test_figures_when_drawn_are_those_of_the_page(written: Path) -> None:
    """Each SVG file stands in the page as it is."""
    page = (written / "index.html").read_text()
    names = {path.stem for path in (written / "figures").glob("*.svg")}
    assert names == {"progress", "first-valid", "diversity", "packages", "differences"}
    for name in names:
        assert (written / "figures" / f"{name}.svg").read_text().strip() in page


def test_report_when_names_are_hostile_escapes_them(tmp_path: Path) -> None:
    """Texts of a model, exceptions and modalities never become markup."""
    tree = Tree(conditions=("off", "warm"), seeds=1, told=HOSTILE, modality=HOSTILE)
    log = TreeLog(tree, manifest={"note": HOSTILE})
    report = write_report(plan(title=HOSTILE), log, tmp_path)
    page = report.page.read_text()
    assert "<script" not in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "{{ 7 * 7 }}" in page
    assert "49" not in re.findall(r"<h1>(.*?)</h1>", page)[0]


def test_report_when_the_study_is_unfinished_is_written_and_says_so(tmp_path: Path) -> None:
    """With some results, and with none at all; trees of an earlier report go."""
    tree = Tree(seeds=1)
    every = [run.name for run in TreeLog(tree).runs]
    some = write_report(plan(), TreeLog(tree, missing=every[5:9]), tmp_path)
    assert "The study is incomplete." in some.page.read_text()
    assert len(list((tmp_path / "trees").iterdir())) == 15 - 4
    none = write_report(plan(), TreeLog(tree, missing=every), tmp_path)
    assert "The study is incomplete." in none.page.read_text()
    assert list((tmp_path / "trees").iterdir()) == []
    assert none.rows[0][:3] == ("off", "0/3", DASH)


@pytest.mark.usefixtures("no_figures")
def test_summary_when_shown_has_a_row_per_condition(tmp_path: Path) -> None:
    """Without memory first, then memories, then controls."""
    report = write_report(plan(title="Trees"), TreeLog(Tree(seeds=1)), tmp_path)
    assert [row[0] for row in report.rows] == ["off", "cold", "warm", "placebo", "rerun"]
    assert report.json_rows()[2]["searches"] == "3/3"
    assert any(line.startswith("warm against off") for line in report.lines)
    assert all(row[3].endswith(("(these)", "(all)")) for row in report.rows[1:])


def test_sentence_when_an_interval_is_told_says_of_what_and_of_how_many() -> None:
    """Which question it answers, n, whether it holds 0, and what is censored or missing."""
    tree = Tree(conditions=("off", "warm"), bugs={"off": 0.97, "warm": 0.1})
    (whole,) = _differences(TreeLog(tree))
    assert whole.startswith("warm against off, other seeds of these competitions: bug rate")
    assert re.search(r"bug rate [^;]* points \(n = 9\);", whole)
    assert re.search(r"first valid node [^;]*none valid in \d+ search", whole)
    alike = Tree(conditions=("off", "warm"), bugs={"off": 0.5, "warm": 0.5})
    (part,) = _differences(TreeLog(alike, missing=["warm/digits/1"]))
    assert part.startswith("warm against off, other seeds of these competitions, incomplete: bug")
    assert re.search(r"bug rate [^;]* points \(n = 8, holds 0\);", part)


def _differences(log: TreeLog) -> list[str]:
    return [line for line in sentences(analyze(log)) if "against" in line]


def test_roles_when_a_plan_has_names_of_its_own_follow_its_settings() -> None:
    """What is without memory, a re-run or a control is said by settings, not by names."""
    own = MlePlan.model_validate(
        {
            "study": "mle",
            "memory": [
                {"name": "bare", "start": "off"},
                {"name": "again", "start": "off", "resampled": True},
                {"name": "full", "start": "warm"},
                {"name": "sham", "start": "warm", "control": "placebo", "of": "full"},
                {"name": "mixed", "start": "warm", "control": "shuffled", "of": "full"},
            ],
        }
    )
    roles = roles_of(own)
    assert (roles.baseline, roles.reruns) == ("bare", ("again",))
    assert (roles.placebos, roles.others) == (("sham",), ("mixed",))
