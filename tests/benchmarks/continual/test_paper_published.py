"""Published figures of continual-memory: what comes out of the others, and their page."""

import inspect
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from recomputed.continual import PAPER, count_behind, findings, prints

from langgraft.benchmarks.continual import tables
from langgraft.benchmarks.continual.columns import MEANINGS
from langgraft.benchmarks.published import Finding
from langgraft.benchmarks.reporting.words import DASH

REPOSITORY = Path(__file__).resolve().parents[3]
PAGE = (REPOSITORY / "docs" / "published-continual.md").read_text(encoding="utf-8")
WORDS = {True: "yes", False: "no", None: DASH}


def row(found: Finding) -> str:
    """Write a finding as the page has it."""
    return f"| {found.figure} | {found.printed} | {found.recomputed} | {WORDS[found.holds]} |"


@given(items=st.integers(1, 400), data=st.data())
def test_count_when_printed_is_found_again(items: int, data: st.DataObject) -> None:
    """A change that some episodes make comes back as a count that prints alike."""
    count = data.draw(st.integers(-items, items))
    printed = round(100 * count / items, 1)
    found = count_behind(printed, items)
    assert found is not None
    assert prints(found, items, printed)


@pytest.mark.parametrize(("printed", "items"), [(-0.7, 190), (0.9, 92), (2.2, 140), (2.9, 108)])
def test_change_when_no_count_prints_so_has_none(printed: float, items: int) -> None:
    """What cannot be had is said not to be, not rounded to the next count."""
    assert count_behind(printed, items) is None
    assert not any(prints(count, items, printed) for count in range(-items, items + 1))


def test_rows_when_recomputed_fail_where_the_paper_disagrees_with_itself() -> None:
    """Everything that cannot be had, by name; all else can."""
    off = {f"{found.section}: {found.figure}" for found in findings() if found.holds is False}
    assert off == {
        "Table 3: ALFWorld, B→A, Raw, ΔRR and ΔNL",
        "Table 5: ALFWorld, A→B, Cond-Ind, ΔRR and ΔNL",
        "Table 5: BabyAI, B→A, Cond-Ind, ΔRR and ΔNL",
        "Table 4: BabyAI, A→B, Insight (Cond-Agg), BWT",
        "Table 4: ALFWorld, B→A, Raw, BWT",
        "Table 4: BabyAI, B→A, Raw, BWT",
        "Table 6: BabyAI, A→B, Cond-Step, BWT",
        "Table 6: BabyAI, B→A, Insight (Cond-Agg), in Tables 4 and 6",
        "Appendix C: BabyAI, task B, Step",
        "Appendix D: items retrieved",
        "Appendix D: or items in the bank",
        "Appendix D: top-1 concentration",
        "Appendix D: loss within task B, against Cond-Agg",
        "Appendix F: top-1 entry of case 4",
        "Figure 13: RR and NL over training",
    }


def test_tables_when_read_have_every_condition_and_direction() -> None:
    """Two sequences of two worlds: two conditions in Study 1, three in Study 2."""
    assert len(PAPER.table_3) == len(PAPER.table_4) == 2 * 2 * 2
    assert len(PAPER.table_5) == len(PAPER.table_6) == 2 * 2 * 3
    assert set(PAPER.table_3) == set(PAPER.table_4)
    assert set(PAPER.table_5) == set(PAPER.table_6)


def test_page_when_read_has_what_is_recomputed() -> None:
    """Every finding stands under its section as it is computed now, and none besides."""
    wanted: dict[str, list[str]] = {}
    for found in findings():
        wanted.setdefault(found.section, []).append(row(found))
    chunks = re.split(r"^## ", PAGE, flags=re.MULTILINE)[1:]
    there = {chunk.partition(":")[0]: chunk for chunk in chunks if "| can be had |" in chunk}
    tables_of_the_page = {
        name: re.findall(r"^\| .* \|$", chunk, re.MULTILINE)[1:] for name, chunk in there.items()
    }
    assert tables_of_the_page == wanted


def test_prose_of_the_page_when_it_has_figures_repeats_those_of_its_tables() -> None:
    """A number with digits after its point is one of a finding."""
    rows = {row(found) for found in findings()}
    prose = "\n".join(line for line in PAGE.splitlines() if line not in rows)
    known = " ".join(f"{each.printed} {each.recomputed}" for each in findings())
    told = set(re.findall(r"(?<![\w.§])\d+\.\d+(?![\w.])", prose))
    off = {number for number in told if not re.search(rf"(?<![\d.]){number}(?![\d.])", known)}
    assert off == set()


def test_counterparts_of_the_page_when_looked_up_are_in_the_tables() -> None:
    """Each file and column that the page names is one of the report's."""
    (told,) = re.findall(
        r"^## Where the counterparts are\n(.*?)^## ", PAGE, re.MULTILINE | re.DOTALL
    )
    names = set(re.findall(r"`(\w+(?:\.csv)?)`", told)) - {"milestones"}
    files = {name.removesuffix(".csv") for name in names if name.endswith(".csv")}
    sources = inspect.getsource(tables)
    assert {name for name in files if f'"{name}"' not in sources} == {"columns"}
    assert {n for n in names if not n.endswith(".csv") and MEANINGS.of(n) is None} == set()
