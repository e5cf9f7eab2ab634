"""The page of a tree search: what is on it, and that nothing from outside gets into its markup."""

import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from langgraft._core.errors import InputError
from langgraft.benchmarks.mle.journals import read_journal, read_journals
from langgraft.benchmarks.mle.tree_page import render_tree_page, write_tree_page
from langgraft.benchmarks.mle.tree_picture import TreeView, color
from langgraft.benchmarks.reporting.words import visible
from langgraft.nodes.search.journal import Journal, JournalNode

HOSTILE = (
    "</script><script>alert(1)</script><!-- --><img src=x onerror=alert(1)>\u202eevil\u2066"
    "\x00\x1b[31m\ud800 '\"& ]]>"
)


def node(step: int, parent: str | None = None, **fields: Any) -> JournalNode:
    """Make a program; what is not given is that of one that failed."""
    plain: dict[str, Any] = {"plan": f"Plan {step}.", "code": f"x = {step}\n", "is_buggy": True}
    return JournalNode.model_validate(
        {"step": step, "id": f"{step:03d}", "parent_id": parent, **plain, **fields}
    )


def ran(step: int, metric: float | None, parent: str | None = None, **fields: Any) -> JournalNode:
    """Make a program that ran."""
    return node(step, parent, is_buggy=False, metric=metric, **fields)


SEARCH = Journal(
    "leaf-1",
    "leaf",
    (
        node(
            0,
            exc_type="KeyError",
            exc_value="'sex'",
            reasons=("the program failed", "no valid submission"),
            output="Traceback …\nKeyError: 'sex'",
            error={"package": "pandas", "error": "KeyError: 'sex'", "fix": "Rename it.", "kind": "code"},
            timed_out=True,
        ),
        ran(1, 0.5, analysis="It reached a half."),
        ran(
            2,
            0.25,
            "000",
            code="x = 0\ny = 1\n",
            recalled="Package: pandas\nFix: Rename it.",
            recalled_kinds=("code",),
            receipt={"item_ids": ["e/1"], "scores": [0.75], "tokens": 9, "searched": "KeyError"},
            asked={"write": {"calls": 2, "why": "no code"}},
        ),
        ran(3, 0.75, "001"),
    ),
)  # fmt: skip


class Reader(HTMLParser):
    """Collects elements, and texts by the `id` of the element that they are in."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.texts: dict[str, str] = {}
        self._article = ""
        self.feed(page)

    def handle_starttag(self, name: str, attrs: list[tuple[str, str | None]]) -> None:
        """Note an element."""
        given = dict(attrs)
        self.elements.append((name, given))
        if name == "article":
            self._article = given["id"] or ""

    def handle_endtag(self, name: str) -> None:
        """Note that a panel ends."""
        if name == "article":
            self._article = ""

    def handle_data(self, data: str) -> None:
        """Note a text."""
        self.texts[self._article] = self.texts.get(self._article, "") + data

    def all(self, name: str) -> list[dict[str, str | None]]:
        """Return the attributes of all elements of a name."""
        return [given for each, given in self.elements if each == name]


def test_page_when_written_has_every_program_in_the_tree_and_in_full() -> None:
    """A link in the tree to a panel with all there is; the picture says the same in words."""
    page = Reader(render_tree_page(SEARCH, lower_is_better=True, chosen="003"))
    links = [given["href"] for given in page.all("a") if (given.get("id") or "").startswith("m")]
    assert links == ["#n0", "#n1", "#n2", "#n3"]
    first, repaired = page.texts["n0"], page.texts["n2"]
    for told in ("Step 0: draft", "the program failed; no valid submission", "KeyError: 'sex'",
                 "pandas", "Rename it.", "out of time", "x = 0"):  # fmt: skip
        assert told in first
    for told in ("Step 2: debug", "0.25", "Recalled memory", "Kinds of the entries: code (1)", "e/1",
                 "no code", "Marked: what step 0 does not have", "★ best metric"):  # fmt: skip
        assert told in repaired
    assert "◎ chosen" in page.texts["n3"]
    assert "Step 2, debug, ran, metric 0.25, best metric" in page.texts[""]


def test_page_when_a_program_has_a_parent_marks_what_is_new_in_it() -> None:
    """Only the added line."""
    assert re.findall(r"<mark>(.*?)</mark>", render_tree_page(SEARCH), re.DOTALL)[0] == "y = 1\n"


@pytest.mark.parametrize(
    ("lower", "best", "told"),
    [(True, "2", "lower is better"), (False, "3", "higher is better"), (None, None, "not told")],
)
def test_page_when_the_direction_is_told_marks_the_best_by_it(
    lower: bool | None, best: str | None, told: str
) -> None:
    """Of the metrics 0.5, 0.25 and 0.75; without a direction none is best."""
    page = render_tree_page(SEARCH, lower_is_better=lower)
    assert told in page
    assert re.findall(r"Best metric: [\d.]+, <a href=\"#n(\d)\"", page) == ([best] if best else [])


def test_page_when_read_back_asks_nobody_and_obeys_its_own_policy() -> None:
    """No address but those on the page, no style or script but the two that the policy names."""
    text = render_tree_page(SEARCH, lower_is_better=True)
    page = Reader(text)
    policy = next(m["content"] for m in page.all("meta") if m.get("http-equiv")) or ""
    assert policy.startswith("default-src 'none'; style-src 'sha256-")
    assert len(page.all("style")) == len(page.all("script")) == 1
    assert "src" not in page.all("script")[0]
    given = [attributes for _, attributes in page.elements]
    assert all(each["href"] and each["href"].startswith("#n") for each in given if "href" in each)
    assert not any(name == "style" or name.startswith("on") for each in given for name in each)


def test_page_when_everything_in_it_is_hostile_shows_it_as_text() -> None:
    """Markup, marks of direction, lone surrogates, control characters, in every field and name."""
    fields: dict[str, Any] = {
        "plan": HOSTILE, "code": HOSTILE, "analysis": HOSTILE, "output": HOSTILE,
        "exc_type": HOSTILE, "exc_value": HOSTILE, "reasons": (HOSTILE,), "recalled": HOSTILE,
        "recalled_kinds": (HOSTILE,), "asked": {HOSTILE: HOSTILE},
        "error": {"package": HOSTILE, "error": {HOSTILE: [HOSTILE]}},
        "receipt": {"item_ids": [HOSTILE], "searched": HOSTILE},
    }  # fmt: skip
    journal = Journal(HOSTILE, HOSTILE, (node(0, **fields),))
    object.__setattr__(journal.nodes[0], "id", HOSTILE)
    report = {HOSTILE: HOSTILE, "score": HOSTILE}
    text = render_tree_page(journal, title=HOSTILE, chosen=HOSTILE, report=report)
    plain = Reader(render_tree_page(Journal("r", "t", (node(0),))))
    text.encode("utf-8")
    page = Reader(text)
    assert {name for name, _ in page.elements} - {name for name, _ in plain.elements} <= {
        "h3",
        "details",
        "summary",
    }
    assert len(page.all("script")) == 1
    assert not re.search(r"[\x00-\x08\x0b-\x1f\u202e\u2066\ud800-\udfff]", text)
    assert "<img" not in text
    assert "\\u202eevil\\u2066\\u0000\\u001b[31m\\ud800" in page.texts["n0"]


def test_page_when_texts_are_endless_shows_a_part_and_says_how_much_is_left_out() -> None:
    """A page of one bad run stays small, and one of many programs too."""
    endless = node(0, code="x" * 10**6, output="y" * 10**6, plan="z " * 10**6, analysis="w" * 10**6)
    page = render_tree_page(Journal("r", "t", (endless,)))
    assert len(page) < 80_000
    assert "more characters" in page
    assert "characters left out" in page
    many = [ran(0, 0.5)]
    many += [node(step, f"{step // 3:03d}", code=f"x = {step}\n" * 2_000) for step in range(1, 500)]
    assert len(render_tree_page(Journal("r", "t", tuple(many)))) < 9_000_000


@pytest.mark.parametrize(
    "nodes",
    [(), (node(0),), (ran(0, None),), (ran(0, float("inf")), ran(1, 1.0)), (ran(0, 1.0), ran(1, 1.0))],
    ids=["empty", "one-failed", "no-metric", "infinite", "equal"],
)  # fmt: skip
@pytest.mark.parametrize("lower", [True, False, None])
def test_page_when_the_journal_is_odd_is_still_a_page(
    nodes: tuple[JournalNode, ...], lower: bool | None
) -> None:
    """Nothing, nothing that ran, no metric, one beyond all numbers, or all the same."""
    page = render_tree_page(Journal("r", "t", nodes), lower_is_better=lower)
    assert page.endswith("</html>")
    assert page.count("<article") == len(nodes)


def test_page_when_written_twice_is_the_same_bytes_in_a_folder_that_is_made(tmp_path: Path) -> None:
    """As reports are compared; an older page is replaced."""
    path = tmp_path / "new" / "tree.html"
    written = [write_tree_page(SEARCH, path, report={"score": 0.5}).read_bytes() for _ in range(2)]
    assert written[0] == written[1]
    assert b"\r" not in written[0]


def test_page_when_the_chosen_program_is_not_there_is_refused(tmp_path: Path) -> None:
    """Nothing is written then; nor where the place is a folder."""
    with pytest.raises(InputError, match="no program '999'"):
        write_tree_page(SEARCH, tmp_path / "tree.html", chosen="999")
    assert not list(tmp_path.iterdir())
    with pytest.raises(InputError, match="cannot be written"):
        write_tree_page(SEARCH, tmp_path)


@pytest.mark.parametrize(
    ("report", "told"),
    [
        ({"score": 0.25, "silver_medal": True, "above_median": True},
         "Graded: 0.25, silver medal, above the median."),
        ({"score": 0.25, "above_median": False}, "Graded: 0.25, no medal."),
        ({"score": None, "valid_submission": False}, "Graded: no valid submission."),
    ],
)  # fmt: skip
def test_page_when_there_is_a_report_says_how_it_was_graded(
    report: dict[str, Any], told: str
) -> None:
    """In a sentence; without a score there was no valid submission."""
    assert told in render_tree_page(SEARCH, report=report)
    assert "Graded" not in render_tree_page(SEARCH)


def test_page_when_the_model_is_simulated_says_so_first() -> None:
    """Above everything else, and only then."""
    assert "no language model" in render_tree_page(SEARCH, simulated=True)
    assert "no language model" not in render_tree_page(SEARCH)


def test_ranks_when_one_metric_is_far_off_still_tell_the_others_apart() -> None:
    """By rank; programs that failed have none, whatever metric they claim."""
    values = [0.1, 0.2, 1e9]
    view = TreeView(Journal("r", "t", tuple(ran(i, v) for i, v in enumerate(values))), True)
    assert [view.rank(i) for i in range(3)] == [1, 0.5, 0]
    failed = TreeView(Journal("r", "t", (node(0, metric=0.5),)), True)
    assert (failed.rank(0), failed.best) == (None, None)


def test_colors_when_ranks_rise_get_darker() -> None:
    """In one order, for readers who see no hues and for print."""

    def brightness(text: str) -> float:
        red, green, blue = (int(text[at : at + 2], 16) for at in (1, 3, 5))
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    seen = [brightness(color(rank / 20)) for rank in range(21)]
    assert seen == sorted(seen, reverse=True)
    assert seen[0] - seen[-1] > 150


def test_text_when_it_has_signs_that_are_not_seen_shows_them() -> None:
    """A mark of direction by its number; all ends of lines are one."""
    assert visible("a\r\nb\tc\u200f") == "a\nb\tc\\u200f"


def test_page_when_made_of_real_runs_of_aide_has_all_their_programs(data_dir: Path) -> None:
    """Five runs as they were published, read as they are."""
    if not (data_dir / "aide").is_dir():
        pytest.skip("LANGGRAFT_DATA has no folder `aide`")
    for journal in read_journals(data_dir / "aide"):
        page = render_tree_page(journal, lower_is_better=True)
        assert page.count("<article") == len(journal.nodes)
        assert len(page) < 4_000_000


def test_page_when_made_of_aides_own_file_is_a_page(tmp_path: Path) -> None:
    """An object with `nodes` and `node2parent`, metrics as objects, output in pieces."""
    path = tmp_path / "journal.json"
    path.write_text(
        '{"nodes": [{"step": 0, "id": "a", "plan": "p", "code": "c", "is_buggy": false,'
        ' "metric": {"value": 3, "maximize": false}, "_term_out": ["done"], "analysis": null}],'
        ' "node2parent": {}, "__version": "2"}'
    )
    page = Reader(render_tree_page(read_journal(path)))
    assert "done" in page.texts["n0"]
    assert "metric3" in page.texts["n0"]


def test_merge_when_drawn_has_a_shape_of_its_own_and_a_dashed_line_to_its_second_parent() -> None:
    """Both parents are named, both are of its lineage, and without merges no legend tells of them."""
    merged = ran(2, 0.9, "000", partner_id="001")
    search = Journal("run", "task", (ran(0, 0.5), ran(1, 0.6), merged))
    page = render_tree_page(search, lower_is_better=False, chosen="002")
    assert page.count("stroke-dasharray") == 1
    assert "Step 2: merge" in page
    assert '<a href="#n0">step 0</a> and <a href="#n1">step 1</a>' in page
    assert "1 merged" in page
    assert TreeView(search, lower_is_better=False).lineage == {0, 1, 2}
    plain = render_tree_page(SEARCH, lower_is_better=True)
    assert "merge" not in plain
    assert "stroke-dasharray" not in plain
