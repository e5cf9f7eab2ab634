"""Published figures, recomputed: forms that fit, figures that cannot be had, and their page."""

import inspect
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recomputed.mle import findings
from recomputed.mle.errors import thirds
from recomputed.mle.forms import (
    can_be_counts,
    counts_behind,
    difference,
    sign_test,
)
from recomputed.mle.timelines import RUNS, late_listed, name, recurs

from langgraft.benchmarks.comparison.outcomes import spread_of
from langgraft.benchmarks.mle import tables
from langgraft.benchmarks.mle.analysis import MEASURES
from langgraft.benchmarks.mle.behaviour.trees import measure
from langgraft.benchmarks.mle.journals import read_journals
from langgraft.benchmarks.mle.outcomes import OUTCOMES as OUTCOMES_OF_OURS
from langgraft.benchmarks.mle.tables import MEANINGS
from langgraft.benchmarks.published import Finding, mle_agent_memory
from langgraft.benchmarks.reporting.words import DASH

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = (REPOSITORY / "docs" / "published-mle.md").read_text(encoding="utf-8")
PAPER = mle_agent_memory()
WORDS = {True: "yes", False: "no", None: DASH}


@pytest.mark.parametrize(
    ("mean", "sem"),
    sorted(
        {
            cell
            for pair in PAPER.table_1.outcomes["OpenHands"].values()
            for cell in pair
            if any(cell)
        }
    ),
)
def test_errors_of_table_1_when_recovered_divide_by_n_less_1(mean: float, sem: float) -> None:
    """OpenHands: three seeds of 22 tasks print so with ddof = 1, and not with 0 unless equal."""
    assert counts_behind(mean, sem, units=3, of=22, ddof=1)
    assert bool(counts_behind(mean, sem, units=3, of=22, ddof=0)) == (sem == 0)


def test_counts_of_table_1_when_recovered_are_these() -> None:
    """Made submissions without memory: two ways, no third."""
    assert counts_behind(31.82, 6.94, units=3, of=22, ddof=1) == [(4, 8, 9), (5, 6, 10)]
    assert counts_behind(28.79, 6.06, units=3, of=22, ddof=1) == [(5, 5, 9)]


@pytest.mark.parametrize(
    ("mean", "sem"),
    sorted(
        {cell for pair in PAPER.table_1.outcomes["MLAB"].values() for cell in pair if any(cell)}
    ),
)
def test_row_that_is_estimated_when_recovered_fits_no_counts(mean: float, sem: float) -> None:
    """No three seeds print like the MLAB row, cut or rounded; its means alone are of 22 tasks."""
    assert not counts_behind(mean, sem, units=3, of=22, ddof=1)
    assert not counts_behind(mean, sem, units=3, of=22, ddof=0)
    assert counts_behind(mean, 0.0, units=1, of=22, ddof=0)


@given(counts=st.lists(st.integers(0, 6), min_size=2, max_size=5), ddof=st.sampled_from([0, 1]))
def test_counts_when_printed_are_among_what_can_have_been(counts: list[int], ddof: int) -> None:
    """Both ways back from a mean and its error find the counts they were made of."""
    found = spread_of([100 * count / 6 for count in counts], ddof=ddof)
    assert found is not None
    assert found.sem is not None
    printed, sem = round(found.mean, 2), round(found.sem, 2)
    behind = counts_behind(printed, sem, units=len(counts), of=6, ddof=ddof)
    assert tuple(sorted(counts)) in behind
    assert can_be_counts(printed, sem, units=len(counts), of=6, ddof=ddof)


def test_errors_of_table_5_when_recovered_divide_by_n() -> None:
    """Over tasks, with ddof = 0; two cells fit no 16 seeds, but 5."""
    off = [
        (agent, modality, cell)
        for agent, seeds in (("AIDE", 16), ("OpenHands", 3))
        for modality, (pair, _) in PAPER.table_5.medals[agent].items()
        for cell in pair
        if not can_be_counts(*cell, units=PAPER.table_5.tasks[modality], of=seeds, ddof=0)
        or (
            any(cell)
            and can_be_counts(*cell, units=PAPER.table_5.tasks[modality], of=seeds, ddof=1)
        )
    ]
    assert off == [("AIDE", "audio", (20.00, 14.14)), ("AIDE", "tabular", (35.00, 20.46))]
    for _, modality, cell in off:
        assert can_be_counts(*cell, units=PAPER.table_5.tasks[modality], of=5, ddof=0)


def test_difference_of_printed_means_when_intervals_are_made_is_welch() -> None:
    """Equal errors of three seeds each: four degrees of freedom."""
    found = difference((10.0, 1.0), (14.0, 1.0), n=3)
    assert found.value == pytest.approx(4.0)
    assert found.high - found.value == pytest.approx(2.776 * 2**0.5, abs=0.001)


def test_late_errors_of_table_9_when_tested_show_nothing() -> None:
    """11 fewer, 8 more, 3 equal; two tasks make the mean."""
    wins, losses, ties, p = sign_test(thirds())
    assert (wins, losses, ties) == (11, 8, 3)
    assert p == pytest.approx(0.648, abs=0.001)
    drops = sorted(base - memory for base, memory in thirds())
    assert sum(drops) == 86
    assert sum(drops[:-2]) < 0
    assert len(PAPER.table_9) == 22


def test_recurrence_of_table_7_when_added_up_rises_with_memory() -> None:
    """0.99 without, 1.66 with: 3 and 5 runs."""
    columns = list(zip(*PAPER.table_7.values(), strict=True))
    assert [round(sum(column), 2) for column in columns] == [0.99, 1.66]


def test_timelines_of_appendix_c_when_complete_count_as_printed() -> None:
    """Step 10 is late and step 9 is not; one list of twelve breaks off."""
    whole = [run for run in RUNS if not run.more]
    assert len(whole) == 11
    assert all(late_listed(run) == run.late for run in whole)


def test_recurrence_of_appendix_c_when_counted_tells_what_an_error_type_is() -> None:
    """The class of an exception gives the printed third; with its message nothing recurs."""
    assert [name(run) for run in RUNS if recurs(run, with_message=False)] == [
        "histopathologic-cancer-detection, baseline run 3"
    ]
    assert not any(recurs(run, with_message=True) for run in RUNS)


def test_effective_numbers_of_real_runs_when_measured_are_on_the_published_scale_for_operators(
    data_dir: Path,
) -> None:
    """Table 2 has 8.45 and 8.10: operators pooled over a run are there, packages are not."""
    journals = read_journals(data_dir / "aide")
    runs = [measure(journal, lower_is_better=False) for journal in journals]
    found = [run.operators_pooled for run in runs]
    assert [round(value, 2) for value in found] == [5.30, 7.23, 9.37, 11.74, 10.80]
    assert all(min(found) < printed < max(found) for printed in (8.45, 8.10))
    assert max(run.package_imports_pooled for run in runs) < 8
    assert max(run.packages_pooled for run in runs) < 8


def test_findings_when_listed_hold_but_for_those_known_not_to() -> None:
    """What cannot be had stays known: a changed function would show."""
    off = {each.where for each in findings() if each.holds is False}
    assert off == {
        "Table 1: MLAB, made, baseline",
        "Table 1: MLAB, made, memory",
        "Table 1: MLAB, valid, baseline",
        "Table 1: MLAB, valid, memory",
        "Table 1: MLAB, above median, baseline",
        "Table 1: AIDE, valid, above median, bronze, silver, gold, any medal, baseline",
        "Table 1: AIDE, valid, above median, bronze, silver, gold, any medal, memory",
        "Figure 3: reduction of bugs so far",
        "Table 8: metric group of tabular-playground-series-may-2022",
        "§4.4: AIDE, N_eff",
        "§4.4: AIDE, first valid node",
        "§4.4: AIDE, valid code distance",
        "§4.4: OpenHands, N_eff (tool)",
        "§4.4: OpenHands, N_eff (command)",
        "Table 5: AIDE, audio, memory",
        "Table 5: AIDE, tabular, memory",
        "Table 5: AIDE, any medal over all tasks, baseline",
        "§4.6: dog-breed, entries of the store",
        "Appendix C: KeyErrors, siim-isic-melanoma-classification, baseline run 2",
    }


def test_findings_when_shipped_are_what_is_recomputed() -> None:
    """Reports show them from the data of the paper."""
    assert PAPER.recomputed == findings()


def test_findings_when_named_are_told_apart() -> None:
    """Section and figure name one finding."""
    names = [each.where for each in findings()]
    assert len(set(names)) == len(names)


def sections_of_the_page() -> dict[str, list[str]]:
    """Return the rows of findings by the section that the heading above them names."""
    chunks = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    head = r"^\| figure \| printed \| recomputed \| can be had \|\n\|.*\n((?:\|.*\n)+)"
    found = {chunk.partition(":")[0]: re.findall(head, chunk, re.MULTILINE) for chunk in chunks}
    return {name: "".join(tables).splitlines() for name, tables in found.items() if tables}


def row(found: Finding) -> str:
    """Return how the page writes a finding."""
    cells = (found.figure, found.printed or DASH, found.recomputed, WORDS[found.holds])
    return f"| {' | '.join(cells)} |"


def test_page_of_published_figures_when_read_has_what_is_recomputed() -> None:
    """Every finding stands under its section as it is computed now, and none besides."""
    wanted: dict[str, list[str]] = {}
    for found in findings():
        wanted.setdefault(found.section, []).append(row(found))
    assert sections_of_the_page() == wanted


def test_prose_of_the_page_when_it_has_figures_repeats_those_of_its_tables() -> None:
    """A number with digits after its point, or a percentage, is one of a finding."""
    rows = {row(found) for found in findings()}
    prose = "\n".join(line for line in PAGE.splitlines() if line not in rows)
    known = " ".join(f"{each.printed} {each.recomputed}" for each in findings())
    told = re.findall(r"(?<![\w.§])(?:\d+\.\d+|\d+(?= %))(?![\w.])", prose)
    assert {
        number for number in told if not re.search(rf"(?<![\d.]){number}(?![\d.])", known)
    } == set()


def test_counterparts_of_the_page_when_looked_up_are_in_the_tables() -> None:
    """Each file, outcome, measure and column that the page names is one of the report's."""
    (told,) = re.findall(
        r"^## Where the counterparts are\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL
    )
    names = set(re.findall(r"`(\w+(?:\.csv)?)`", told))
    files = {name.removesuffix(".csv") for name in names if name.endswith(".csv")}
    sources = inspect.getsource(tables)
    assert {name for name in files if f'"{name}"' not in sources} == {"columns"}
    measures = {each.name for found in MEASURES.values() for each in found}
    others = (
        {name for name in names if not name.endswith(".csv")} - measures - set(OUTCOMES_OF_OURS)
    )
    assert {name for name in others if MEANINGS.of(name) is None} == set()
