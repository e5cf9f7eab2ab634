"""`langgraft bench`: one page, a floor in every table, and every peer on it, measured or named as missing."""

import csv
import json
from collections.abc import Sequence
from html import unescape
from pathlib import Path

import pytest
from warm_python import CONTEXT, begin_server

from langgraft._core.errors import InputError
from langgraft.benchmarks.performance import bench, contenders, page, timing
from langgraft.benchmarks.performance.searching import Row, Section
from langgraft.benchmarks.performance.timing import Spread, Times


def _row(name: str, values: Sequence[float], *, durable: bool | None = None, size: int = 10) -> Row:
    who = {"o": "langgraft", "p": "peer", "f": "floor"}[name[0]]
    return Row(name, who, Times(tuple(values), tuple(values)), size, durable)  # type: ignore[arg-type]


def _section(*rows: Row, name: str = "recall-words") -> Section:
    return Section(name, "Recall, by words", "Searches.", rows=list(rows))


def _write(out: Path, *sections: Section) -> str:
    return unescape(page.write_page(out, sections, {"Python": "3"}, (10,)).read_text("utf-8"))


def test_page_when_a_peer_is_not_installed_then_names_it_with_the_line_that_installs_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is left out in silence."""
    with monkeypatch.context() as nothing_there:
        nothing_there.setattr("importlib.util.find_spec", lambda _: None)
        lacking = {each.name: each.lacking() for each in contenders.contenders("vectors")}
    shown = _section(_row("floor", [1.0]))
    shown.missing = {name: why for name, why in lacking.items() if why}
    assert {"langmem tools over InMemoryStore", "sqlite-vec"} <= shown.missing.keys()
    text = _write(tmp_path, shown)
    for name, why in shown.missing.items():
        assert name in text
        assert contenders.INSTALL in why
    assert contenders.INSTALL in text


def test_contenders_when_ours_then_need_nothing_and_stand_beside_a_floor() -> None:
    """Without a single peer there is a page: ours, and the floor first."""
    for ranks in ("words", "vectors"):
        first, *others = contenders.contenders(ranks)
        assert first.who == "floor"
        assert not first.lacking()
        assert [each.lacking() for each in others if each.who == "langgraft"] == ["", "", ""]


@pytest.mark.parametrize(
    ("ours", "verdict"),
    [([1.0, 1.1, 1.2], "ahead"), ([2.0, 2.2, 1.9], "level"), ([5, 6, 7], "behind")],
)
def test_comparison_when_quartiles_agree_then_says_who_is_ahead(
    ours: list[float], verdict: str
) -> None:
    """A ratio is of the same questions, and level where its quartiles hold 1."""
    (found,) = page.comparisons(_section(_row("ours", ours), _row("peer", [2.0, 2.1, 2.2])))
    assert found.verdict == verdict
    assert bool(found.why) is (verdict == "behind")


def test_comparison_when_a_peer_keeps_less_then_is_not_made() -> None:
    """What is on disk is not held against what is gone with the process."""
    rows = _row("ours", [1], durable=True), _row("peer", [1], durable=False)
    assert not list(page.comparisons(_section(*rows, name="write-words")))
    assert list(page.comparisons(_section(*rows, name="recall-words")))
    assert not list(page.comparisons(_section(_row("ours", [1]), _row("peer", [1], size=20))))


def test_comparison_when_the_peer_was_asked_less_then_is_of_what_both_were_asked() -> None:
    """A slow peer answers the first questions alone."""
    (found,) = page.comparisons(_section(_row("ours", [1, 1, 90, 90]), _row("peer", [2, 2])))
    assert (found.ratio.median, found.ratio.n) == (0.5, 2)


def test_page_when_behind_then_explains_it_beside_the_table(tmp_path: Path) -> None:
    """A row that is behind has a reason, on the page and in the Markdown."""
    shown = _section(_row("floor", [1]), _row("ours", [5]), _row("peer", [1]))
    (found,) = page.comparisons(shown)
    assert found.why in _write(tmp_path, shown)
    assert found.why in (tmp_path / "figures.md").read_text("utf-8")
    with (tmp_path / "tables/ahead.csv").open() as file:
        (row,) = csv.DictReader(file)
    assert (row["verdict"], float(row["ratio"])) == ("behind", 5.0)


def test_spread_when_of_few_figures_then_has_their_ends() -> None:
    """Two figures have no quartiles."""
    assert Spread.of([3.0, 1.0]) == Spread(2.0, 1.0, 3.0, 2)
    with pytest.raises(ValueError, match="no figures"):
        Spread.of([])


@pytest.mark.parametrize("sizes", ["", "ten", "5", "100,,200"])
def test_bench_when_sizes_are_no_numbers_then_says_so_before_anything(
    sizes: str, tmp_path: Path
) -> None:
    """Nothing is written for a command that cannot be carried out."""
    with pytest.raises(InputError, match="sizes are numbers"):
        bench.run(tmp_path / "out", sizes, None, print)
    assert not (tmp_path / "out").exists()


def test_bench_when_nothing_has_the_word_then_lists_what_there_is(tmp_path: Path) -> None:
    """A mistyped topic names the topics."""
    with pytest.raises(InputError, match="import time"):
        bench.run(tmp_path, "20", "speed", print)


@pytest.mark.matrix
def test_bench_when_run_at_reduced_size_then_every_table_has_a_floor_and_everybody(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The command works without one peer beyond those that langgraft installs."""
    monkeypatch.delenv(contenders.POSTGRES, raising=False)
    begin_server()  # has one thread for numbers, as the processes that measure are to have
    monkeypatch.setattr(timing, "get_context", lambda _: CONTEXT)
    bench.run(tmp_path, "20,40", "words", print)
    told = json.loads((tmp_path / "bench.json").read_text("utf-8"))
    page_text = (tmp_path / "index.html").read_text("utf-8")
    assert len(told["sections"]) == 5
    for section in told["sections"]:
        floors = {row["size"] for row in section["rows"] if row["who"] == "floor"}
        assert floors == {20, 40}
        named = {row["name"] for row in section["rows"]} | section["missing"].keys()
        assert {each.name for each in contenders.contenders("words")} <= named
        assert section["title"] in page_text
    recall = next(each for each in told["sections"] if each["name"] == "recall-words")
    exact = [row for row in recall["rows"] if row["who"] == "langgraft"]
    assert {row["agreement"] for row in exact} == {1.0}
    assert "LangGraph PostgresStore" in recall["missing"]
    assert (tmp_path / "figures/growth-recall-words.svg").exists()
