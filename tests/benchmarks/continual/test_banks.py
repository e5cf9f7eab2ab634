"""Banks folded from a log: as they stand before each item of a stream."""

import pytest
from synthetic_log import DOMAINS, SyntheticLog, World

from langgraft.benchmarks.continual.cells import Bank, Banks, CellKey, domains, read_study_log
from langgraft.memory.model import Add, MemoryDelta, MemoryItem, Remove

WORLD = World(conditions=("agg",), controls=(), train_items=6, test_items=4, steps=3, replicates=2)


def banks_of(log: SyntheticLog) -> Banks:
    """Return the banks of a log."""
    return Banks(read_study_log(log), log)


def test_along_when_a_stream_is_unfolded_then_bank_grows_item_by_item() -> None:
    """Before the first item the bank is what the source left; after each it has one more."""
    sizes = [
        (number, len(bank.items), bank.share(DOMAINS["A"]))
        for number, bank in banks_of(SyntheticLog(WORLD)).along("agg/0/train A>B")
    ]
    assert [size[:2] for size in sizes] == [(number, 6 + number) for number in range(7)]
    assert sizes[0][2] == 1.0
    assert sizes[-1][2] == 0.5


@pytest.mark.parametrize(("at", "items"), [(2, 8), (4, 10), (None, 12)])
def test_at_when_an_evaluation_has_a_source_then_is_the_bank_it_read(
    at: int | None, items: int
) -> None:
    """Milestones read the bank as it stood; the last evaluation reads all of it."""
    log = SyntheticLog(WORLD)
    study = read_study_log(log)
    run = study.cells[CellKey("agg", "A>B", "A", at)].runs[0]
    bank = Banks(study, log).at(run.spec)
    assert bank is not None
    assert len(bank.items) == items


def test_at_when_the_stream_has_not_come_so_far_then_there_is_no_bank() -> None:
    """A bank that is not there yet is not taken for an empty one."""
    log = SyntheticLog(WORLD, done={"agg/0/train A>B": 3})
    study = read_study_log(log)
    run = study.cells[CellKey("agg", "A>B", "A")].runs[0]
    assert Banks(study, log).at(run.spec) is None


def test_take_when_items_are_removed_then_shares_follow() -> None:
    """A removed item is of no family any more; made-up ids are skipped."""
    first, second = (
        MemoryItem(
            id=name,
            text="t",
            type="other",
            source_domain=name,
            episode_id="e",
            success=True,
            order_index=0,
        )
        for name in "xy"
    )
    bank = Bank()
    assert bank.share("x") is None
    bank.take([MemoryDelta((Add(first), Add(second)))], lessons=["t", "u"])
    assert bank.insights == {"x": 1, "y": 1}
    assert bank.share("x") == 0.5
    bank.take([MemoryDelta((Remove("x", "old"),))], lessons=[])
    assert bank.share("x") == 0.0
    assert bank.known(["x", "y"]) == [second]


def test_domains_when_runs_do_not_say_then_items_do() -> None:
    """The task family is the folder of its items."""
    assert domains(read_study_log(SyntheticLog(WORLD))) == DOMAINS
