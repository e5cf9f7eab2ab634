"""Published figures, recomputed: forms that fit, and figures that cannot be had."""

from pathlib import Path

import pytest

from langgraft.benchmarks.mle.behaviour.diversity import (
    operators,
    package_imports,
    packages,
    pooled_number,
)
from langgraft.benchmarks.mle.journals import read_journals
from langgraft.benchmarks.mle.published import (
    LATE,
    MLAB,
    MODALITIES,
    OPENHANDS,
    RECURRENCE,
    counts_behind,
    findings,
    sign_test,
)


@pytest.mark.parametrize(("mean", "sem"), OPENHANDS.values(), ids=OPENHANDS)
def test_errors_of_table_1_when_recovered_divide_by_n_less_1(mean: float, sem: float) -> None:
    """OpenHands: three seeds of 22 tasks print so with ddof = 1, and not with 0 unless equal."""
    assert counts_behind(mean, sem, units=3, of=22, ddof=1)
    assert bool(counts_behind(mean, sem, units=3, of=22, ddof=0)) == (sem == 0)


def test_counts_of_table_1_when_recovered_are_these() -> None:
    """Made submissions without memory: two ways, no third."""
    assert counts_behind(31.82, 6.94, units=3, of=22, ddof=1) == [(4, 8, 9), (5, 6, 10)]
    assert counts_behind(28.79, 6.06, units=3, of=22, ddof=1) == [(5, 5, 9)]


@pytest.mark.parametrize("name", MLAB)
def test_row_that_is_estimated_when_recovered_fits_no_counts(name: str) -> None:
    """No three seeds print like the MLAB row."""
    mean, sem = MLAB[name]
    assert not counts_behind(mean, sem, units=3, of=22, ddof=1)


def test_errors_of_table_5_when_recovered_divide_by_n() -> None:
    """Over tasks, with ddof = 0; two cells fit no 16 seeds."""
    fits = {}
    for name, (mean, sem, tasks, seeds) in MODALITIES.items():
        assert not counts_behind(mean, sem, units=tasks, of=seeds, ddof=1)
        fits[name] = bool(counts_behind(mean, sem, units=tasks, of=seeds, ddof=0))
    assert [name for name, fit in fits.items() if not fit] == [
        "AIDE audio, memory",
        "AIDE tabular, memory",
    ]
    assert counts_behind(20.00, 14.14, units=2, of=5, ddof=0) == [(0, 2)]


def test_late_errors_of_table_9_when_tested_show_nothing() -> None:
    """11 fewer, 8 more, 3 equal; two tasks make the mean."""
    wins, losses, ties, p = sign_test(LATE)
    assert (wins, losses, ties) == (11, 8, 3)
    assert p == pytest.approx(0.648, abs=0.001)
    drops = sorted(before - after for before, after in LATE)
    assert sum(drops) == pytest.approx(28.6)
    assert sum(drops[:-2]) < 0


def test_recurrence_of_table_7_when_added_up_rises_with_memory() -> None:
    """0.99 without, 1.66 with."""
    assert [round(sum(column), 2) for column in zip(*RECURRENCE, strict=True)] == [0.99, 1.66]


def test_effective_numbers_of_real_runs_when_measured_are_on_the_published_scale_for_operators(
    data_dir: Path,
) -> None:
    """Table 2 has 8.45 and 8.10: operators pooled over a run are there, packages are not."""
    journals = read_journals(data_dir / "aide")
    found = [pooled_number(journal, operators) for journal in journals]
    assert [round(value, 2) for value in found] == [5.30, 7.23, 9.37, 11.74, 10.80]
    assert all(min(found) < printed < max(found) for printed in (8.45, 8.10))
    for count in (package_imports, packages):
        assert max(pooled_number(journal, count) for journal in journals) < 8


def test_findings_when_listed_hold_but_for_those_known_not_to() -> None:
    """What cannot be had stays known: a changed function would show."""
    off = {each.where for each in findings() if each.holds is False}
    assert off == {
        "Table 1, MLAB: made, baseline",
        "Table 1, MLAB: valid, baseline",
        "Table 1, MLAB: above median",
        "Table 5: AIDE audio, memory",
        "Table 5: AIDE tabular, memory",
        "Table 1 and Table 5, any medal: AIDE, baseline",
    }
