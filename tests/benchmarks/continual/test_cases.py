"""Episodes shown in full: chosen by rule, read from the log, bounded and escaped."""

from pathlib import Path

import pytest
from synthetic_log import SyntheticLog, World

from langgraft.benchmarks.continual.analysis import Analysis, analyze
from langgraft.benchmarks.continual.cases import RULES, Case, CasePage, case_pages
from langgraft.benchmarks.continual.cells import Banks
from langgraft.benchmarks.continual.report import write_report
from langgraft.benchmarks.harness.study import Plan
from langgraft.benchmarks.reporting.words import LONGEST_TEXT, shortened, signed

WORLD = World(
    conditions=("raw", "ind"),
    controls=("raw+placebo",),
    effects={("ind", "", ""): -0.3, ("raw", "", ""): 0.3},
    favorite={"ind": 1.0},
    train_items=8,
    test_items=16,
    retrieved=1,
)
LOG = SyntheticLog(WORLD)


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    """Analyze a study in which one memory is always served by one item."""
    return analyze(LOG)


@pytest.fixture(scope="module")
def pages(analysis: Analysis) -> list[CasePage]:
    """Read what the pages of its cases show."""
    return list(case_pages(analysis.cases, Banks(analysis.study, LOG), LOG))


def case_of(analysis: Analysis, rule: str, condition: str, sequence: str) -> Case | None:
    """Return the case a rule has chosen, if there was one to choose."""
    found = [
        case
        for case in analysis.cases
        if (case.rule, case.key.condition, case.key.sequence) == (rule, condition, sequence)
    ]
    assert len(found) <= 1
    return found[0] if found else None


@pytest.mark.parametrize("condition", ["raw", "ind"])
@pytest.mark.parametrize("sequence", ["A>B", "B>A"])
def test_extremes_when_counted_by_hand_then_are_the_chosen_items(
    analysis: Analysis, condition: str, sequence: str
) -> None:
    """No item falls or rises further than the one shown; none is shown where none does."""
    changes: dict[tuple[str, str], float] = {}
    for task in "AB":
        for replicate in range(WORLD.replicates):
            ours = LOG.results(f"{condition}/{replicate}/test {task} after {sequence}")
            theirs = {str(r["task_id"]): r for r in LOG.results(f"none/{replicate}/test {task}")}
            for result in ours:
                item = str(result["task_id"])
                change = int(bool(result["success"])) - int(bool(theirs[item]["success"]))
                changes[task, item] = changes.get((task, item), 0) + change
    for rule, extreme in (("loss", min(changes.values())), ("gain", max(changes.values()))):
        case = case_of(analysis, rule, condition, sequence)
        if case is None:
            assert extreme >= 0 if rule == "loss" else extreme <= 0
            continue
        assert changes[case.key.task, case.item] == extreme
        assert case.succeeded == ((False, True) if rule == "loss" else (True, False))
        assert case.reason.startswith(f"{signed(extreme / WORLD.replicates)} pp")


def test_concentration_when_one_item_serves_all_queries_then_is_shown(analysis: Analysis) -> None:
    """The evaluation with the largest top-1 concentration, and an episode it served."""
    (case,) = [case for case in analysis.cases if case.rule == "concentration"]
    assert case.key.condition == "ind"
    assert case.reason == "one item is the best for 100 % of the queries of this run"


def test_dilution_when_only_foreign_items_are_retrieved_then_is_shown(
    analysis: Analysis, pages: list[CasePage]
) -> None:
    """An earlier task whose query was given items of the later one alone."""
    (page,) = [page for page in pages if page.case.rule == "dilution"]
    assert page.case.key.task == page.case.key.sequence[0]
    entries = [entry for asked in page.asked for entry in asked.entries]
    assert entries
    assert not any(entry.own for entry in entries)


def test_cases_when_chosen_then_are_few_named_and_no_controls(analysis: Analysis) -> None:
    """A loss and a gain at most for each memory and sequence, two of transfer, and two more."""
    names = [case.name for case in analysis.cases]
    assert names == [f"case-{number:02}" for number in range(1, len(names) + 1)]
    assert len(names) <= 2 * 2 * (2 + 2) + 2
    assert {case.rule for case in analysis.cases} == set(RULES)
    assert not any("+" in case.key.condition for case in analysis.cases)


def test_transfer_cases_when_counted_by_hand_then_are_the_chosen_items(analysis: Analysis) -> None:
    """No item of the later task falls or rises further between one task and both."""
    found = [case for case in analysis.cases if case.about_transfer]
    assert {case.rule for case in found} == {"transfer loss", "transfer gain"}
    for case in found:
        condition, sequence, task = case.key.condition, case.key.sequence, case.key.task
        assert task == sequence[-1]
        changes: dict[str, int] = {}
        for replicate in range(WORLD.replicates):
            for sign, after in ((1, sequence), (-1, task)):
                for result in LOG.results(f"{condition}/{replicate}/test {task} after {after}"):
                    item = str(result["task_id"])
                    changes[item] = changes.get(item, 0) + sign * bool(result["success"])
        extreme = max(changes.values()) if case.rule == "transfer gain" else min(changes.values())
        assert changes[case.item] == extreme
        hard = analysis.partitions[task].failed
        equals = [item for item, change in changes.items() if change == extreme]
        assert case.item == min(equals, key=lambda item: (item not in hard, item))
        assert case.succeeded == ((True, False) if extreme > 0 else (False, True))
        assert case.reason == f"{signed(extreme / WORLD.replicates)} pp against {task} alone"


def test_transfer_pages_when_read_then_hold_what_both_memories_recalled(
    pages: list[CasePage],
) -> None:
    """After the task alone every item is of the task; the other episode has items of its own."""
    found = [page for page in pages if page.case.about_transfer]
    assert found
    for page in found:
        assert page.case.titles == (
            f"After {page.case.key.sequence.replace('>', '→')}",
            f"After {page.case.key.task} alone",
        )
        (asked,), (alone,) = page.asked, page.asked_alone
        assert asked.entries
        assert all(entry.own and entry.domain for entry in alone.entries)


def test_pages_when_read_then_hold_query_items_text_and_both_episodes(
    pages: list[CasePage],
) -> None:
    """What was asked, what came and from where, what was injected, and what was then done."""
    for page in pages:
        (asked,) = page.asked
        assert asked.searched == "find it"
        assert asked.tied == 1
        (entry,) = asked.entries
        assert entry.key.startswith("situation")
        assert asked.injected.startswith("<recalled_memory>")
        assert f"of {entry.domain}" in asked.injected
        assert (page.played.success, page.baseline.success) == page.case.succeeded
        assert [turn.action for turn in page.played.turns] == ["", "go"]


def test_cases_when_runs_are_under_way_then_wait_for_them() -> None:
    """No case is chosen from an evaluation that is not complete."""
    done = {f"ind/{replicate}/test A after A>B": 3 for replicate in range(WORLD.replicates)}
    found = analyze(SyntheticLog(WORLD, done=done)).cases
    places = {(case.key.condition, case.key.sequence, case.key.task) for case in found}
    assert ("ind", "A>B", "A") not in places


def test_shortened_when_a_text_is_long_then_says_what_is_left_out() -> None:
    """Pages are bounded whatever a model has written, and nothing is cut in silence."""
    assert shortened("x" * 10, 10) == "x" * 10
    assert shortened("x" * 1_011, 10) == "x" * 10 + " […1,001 more characters]"


@pytest.mark.usefixtures("no_figures")
def test_case_pages_when_texts_are_huge_then_stay_bounded(tmp_path: Path) -> None:
    """A page of texts without end is a page of some hundred kilobytes at most."""
    world = World(
        conditions=("ind",),
        controls=(),
        told="<b>&" * 50_000,
        train_items=3,
        test_items=3,
        replicates=1,
        baseline_runs=1,
        rerun=False,
        effects={("ind", "", ""): -0.9},
    )
    write_report(Plan(study="continual"), SyntheticLog(world), tmp_path)
    found = list((tmp_path / "cases").glob("*.html"))
    assert found
    for path in found:
        html = path.read_text(encoding="utf-8")
        assert len(html) < 40 * 5 * LONGEST_TEXT
        assert "more characters]" in html
        assert "<b>" not in html


@pytest.mark.usefixtures("no_figures")
def test_report_when_written_again_then_old_cases_are_gone(tmp_path: Path) -> None:
    """A case of an earlier report that is none now does not stay behind."""
    stale = tmp_path / "cases" / "case-99.html"
    stale.parent.mkdir()
    stale.write_text("old", encoding="utf-8")
    small = World(conditions=("ind",), controls=(), train_items=2, test_items=3, replicates=1)
    write_report(Plan(study="continual"), SyntheticLog(small), tmp_path)
    assert not stale.exists()
