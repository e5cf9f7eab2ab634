"""The report of several agents: a section for each, one table for all, tables told apart."""

import csv
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from mle_logs import Tree, TreeLog, plan

from langgraft.benchmarks.mle.analysis import analyze_agents
from langgraft.benchmarks.mle.report import (
    named_sentences,
    render,
    summary_rows,
    title_of,
    write_report,
)
from langgraft.benchmarks.mle.tables import MEANINGS

pytestmark = pytest.mark.matrix  # whole studies

AGENTS = ("tree", "chain", "mlab")
HOSTILE = '<script>alert(1)</script> & "quotes" {{ 7 * 7 }} \u202e'


class Page(HTMLParser):
    """Collects tags, ids and links."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.ids: list[str] = []
        self.links: list[str] = []
        self.feed(path.read_text())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note a tag."""
        self.tags.add(tag)
        self.ids += [value or "" for name, value in attrs if name == "id"]
        self.links += [value or "" for name, value in attrs if name == "href"]


def rows(folder: Path, name: str) -> list[dict[str, str]]:
    """Return a table of a report."""
    return list(csv.DictReader((folder / "tables" / f"{name}.csv").read_text().splitlines()))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return the folder of a report on three agents."""
    out = tmp_path_factory.mktemp("agents")
    tree = Tree(agents=AGENTS, conditions=("off", "warm"), seeds=2)
    write_report(plan(), TreeLog(tree), out)
    return out


def test_page_when_agents_are_several_has_a_section_for_each(written: Path) -> None:
    """Places and figures are each agent's own, and every link leads somewhere."""
    page = Page(written / "index.html")
    assert len(set(page.ids)) == len(page.ids)
    for agent in AGENTS:
        assert {agent, f"{agent}-outcomes", f"{agent}-changes", f"{agent}-gates"} <= set(page.ids)
    assert {"agents", "chain-endings", "mlab-timelines", "published"} <= set(page.ids)
    places = {link[1:] for link in page.links if link.startswith("#")}
    assert places <= set(page.ids)
    trees = [link for link in page.links if not link.startswith("#")]
    assert len(trees) == 12  # of the tree agent alone
    assert all((written / link).is_file() for link in trees)
    assert (written / "figures" / "chain-progress.svg").is_file()


def test_page_when_runs_had_errors_shows_their_timelines_folded(written: Path) -> None:
    """A block for each run of a step agent, in the paper's form."""
    text = (written / "index.html").read_text()
    assert text.count('<pre class="text">') == 2 * 12
    assert re.search(
        r"<strong>off, seed 0</strong> \| \d+ steps? \| late errors: \d+ \| ended: ", text
    )
    assert re.search(r"\[step \d+\] KeyError: &#39;sex&#39; … \+\d+ more", text)
    assert '<details class="timelines">' in text


def test_tables_when_written_say_the_agent_in_each_row(written: Path) -> None:
    """Agents share files, every column is explained, and no measure is another agent's."""
    for path in (written / "tables").glob("*.csv"):
        if path.stem in {"columns", "published"}:
            continue
        header = path.read_text().splitlines()[0].split(",")
        assert header[0] == "agent", path.name
        assert [name for name in header if MEANINGS.of(name) is None] == [], path.name
    found = rows(written, "contrasts")
    assert {row["agent"] for row in found} == set(AGENTS)
    commands = {row["agent"] for row in found if row["measure"] == "commands"}
    assert commands == {"chain"}
    assert {row["agent"] for row in rows(written, "timelines")} == {"chain", "mlab"}
    keys = [(row["agent"], row["run"]) for row in rows(written, "runs")]
    assert len(set(keys)) == len(keys) == 36
    for row in found:
        if row["value"]:
            assert float(row["low"]) <= float(row["value"]) <= float(row["high"])


def test_sentences_when_agents_are_several_name_theirs() -> None:
    """In the terminal, too."""
    log = TreeLog(Tree(agents=("chain", "mlab"), conditions=("off", "warm"), seeds=2))
    analyses = analyze_agents(log)
    said = named_sentences(analyses)
    assert any(line.startswith("chain: warm against off, other seeds") for line in said)
    assert any(line.startswith("mlab: 12 of 12 runs ended") for line in said)
    columns, shown = summary_rows(analyses)
    assert columns[:2] == ("agent", "condition")
    assert [row[:3] for row in shown[1:3]] == [("chain", "warm", "6/6"), ("mlab", "off", "6/6")]


def test_page_when_the_only_agent_is_no_tree_does_not_call_it_a_search() -> None:
    """Title, headings and notes follow the agent."""
    log = TreeLog(Tree(agents=("chain",), conditions=("off", "warm"), seeds=1))
    analyses = analyze_agents(log)
    assert title_of(plan(), analyses) == "Chain agent with memory"
    page = render(plan(), analyses, {"chain": {}}, simulated=True)
    shown = re.sub(r"<style.*?</style>|<[^>]*>", "", page, flags=re.DOTALL)
    assert "search" not in shown.partition("Published figures")[0].lower()


def test_page_when_runs_say_hostile_things_escapes_them(tmp_path: Path) -> None:
    """Exceptions in timelines, commands and modalities never become markup."""
    tree = Tree(
        agents=("chain", "mlab"),
        conditions=("off", "warm"),
        seeds=1,
        told=HOSTILE,
        modality=HOSTILE,
    )
    analyses = analyze_agents(TreeLog(tree))
    text = render(plan(title=HOSTILE), analyses, {"chain": {}, "mlab": {}}, simulated=True)
    page = tmp_path / "page.html"
    page.write_text(text)
    assert "script" not in Page(page).tags
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    timelines = re.findall(r'<pre class="text">(.*?)</pre>', text, flags=re.DOTALL)
    assert any("\\u202e" in each for each in timelines)
    assert not any("\u202e" in each for each in timelines)


def test_page_when_an_agent_has_not_begun_is_written_and_says_so() -> None:
    """Agents end at different times; nothing of one waits for another."""
    tree = Tree(agents=AGENTS, conditions=("off", "warm"), seeds=1)
    missing = [run.name for run in TreeLog(tree).runs if run.factors["agent"] != "tree"]
    analyses = analyze_agents(TreeLog(tree, missing=missing))
    drawn: dict[str, dict[str, str]] = {name: {} for name in AGENTS}
    assert "The study is incomplete." in render(plan(), analyses, drawn, simulated=True)
    counts = [row[2] for row in summary_rows(analyses)[1]]
    assert counts == ["3/3", "3/3", "0/3", "0/3", "0/3", "0/3"]


def test_report_when_a_tree_has_three_policies_has_a_section_with_intervals_for_each(
    tmp_path: Path,
) -> None:
    """What memory does is told of each policy; an agent whose runs are missing is a tree still."""
    agents = ("tree", "tree-uct", "tree-evolution")
    log = TreeLog(Tree(agents=agents, conditions=("off", "warm", "placebo"), seeds=3))
    write_report(plan(), log, tmp_path)
    page = Page(tmp_path / "index.html")
    for agent in agents:
        assert {agent, f"{agent}-changes", f"{agent}-gates"} <= set(page.ids)
    text = (tmp_path / "index.html").read_text()
    assert "Tree search by UCT" in text
    assert "Tree search by evolution" in text
    found = [row for row in rows(tmp_path, "contrasts") if row["measure"] == "bug_rate"]
    assert {(row["agent"], row["condition"]) for row in found} == {
        (agent, condition) for agent in agents for condition in ("warm", "placebo")
    }
    assert all(float(row["low"]) < float(row["high"]) for row in found)
    absent = [run.name for run in log.runs if run.factors["agent"] == "tree-uct"]
    missing = analyze_agents(TreeLog(log.tree, missing=absent))[1]
    assert (missing.agent, missing.searches.kind) == ("tree-uct", "tree")
