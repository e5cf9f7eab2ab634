"""The measures of continual learning on logs with known outcomes."""

from collections.abc import Mapping

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from synthetic_log import SyntheticLog, World

from langgraft._core.canonical import JSON
from langgraft._core.errors import StudyError
from langgraft.benchmarks.comparison.outcomes import differences_of, matrices, mean_of
from langgraft.benchmarks.continual.cells import (
    Cell,
    CellKey,
    RunResults,
    StudyLog,
    pooled,
    read_study_log,
)
from langgraft.benchmarks.continual.metrics import (
    IDENTITY_TOLERANCE,
    Partition,
    identity_gap,
    partition,
    retentions,
    transfers,
)
from langgraft.benchmarks.harness.study import RunSpec


def cell(key: CellKey, *replicates: Mapping[str, bool], planned: tuple[str, ...] = ()) -> Cell:
    """Make a cell of outcomes per replicate."""
    runs = []
    for number, outcomes in enumerate(replicates):
        factors: dict[str, JSON] = {"kind": "evaluate", "replicate": number}
        spec = RunSpec("continual", f"{key}/{number}", factors, planned or tuple(outcomes))
        results: list[dict[str, JSON]] = [
            {"task_id": item, "success": success} for item, success in outcomes.items()
        ]
        runs.append(RunResults(spec, tuple(results)))
    return Cell(key, tuple(runs))


def study_of(*cells: Cell) -> StudyLog:
    """Make a study of cells."""
    return StudyLog({each.key: each for each in cells}, ())


def test_matrices_when_order_differs_between_replicates_then_match_by_item() -> None:
    """The same item is in the same row, wherever it stood in the stream."""
    key = CellKey("agg", "A", "A")
    mixed = cell(key, {"x": True, "y": False}, {"y": False, "x": True})
    found = matrices([mixed.scores])
    assert found is not None
    assert found[0].tolist() == [[1.0, 1.0], [0.0, 0.0]]


def test_differences_of_when_results_are_missing_then_uses_what_both_have() -> None:
    """Items that one side lacks and replicates without results take no part."""
    after = cell(CellKey("agg", "A", "A"), {"x": True, "y": True}, {"x": True, "y": True}, {})
    before = cell(CellKey("none", "", "A"), {"x": False}, {"x": True, "y": False}, {"x": True})
    (estimate, nothing) = differences_of(
        [(after.scores, before.scores), (after.scores, {0: {"z": 1.0}})]
    )
    assert estimate is not None
    assert (estimate.n_items, estimate.n_replicates, estimate.value) == (1, 2, 0.5)
    assert nothing is None


def test_pooled_when_a_cell_lacks_an_item_then_leaves_it_out() -> None:
    """A mean over sequences needs the item after every one of them."""
    one = cell(CellKey("agg", "A", "A"), {"x": True, "y": True})
    two = cell(CellKey("agg", "A>B", "A"), {"x": False}, planned=("x", "y"))
    assert pooled([one, two]) == {0: {"x": 0.5}}


def test_outcomes_when_a_result_is_of_no_planned_item_then_raises() -> None:
    """A result that does not belong to its run is a bug, not a number."""
    with pytest.raises(StudyError, match="item 'z'"):
        _ = cell(CellKey("agg", "A", "A"), {"z": True}, planned=("x",)).scores


def test_mean_of_when_one_replicate_then_uses_wilson() -> None:
    """Ten of ten from one run has Wilson's interval, not one of zero width."""
    single = cell(CellKey("none", "", "A"), {str(item): True for item in range(10)})
    estimate = mean_of(single.scores)
    assert estimate is not None
    assert estimate.method == "wilson"
    assert estimate.low == pytest.approx(0.7225, abs=1e-4)


def test_partition_when_baseline_ties_then_item_counts_as_failed() -> None:
    """Solved means in more than half of the runs."""
    base = cell(CellKey("none", "", "A"), {"x": True, "y": True}, {"x": True, "y": False})
    split = partition(study_of(base), "A")
    assert (split.solved, split.failed, split.runs) == (frozenset("x"), frozenset("y"), 2)


OUTCOMES = st.integers(2, 40).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(st.booleans(), min_size=n, max_size=n),
        st.lists(
            st.tuples(*[st.lists(st.booleans(), min_size=n, max_size=n)] * 2),
            min_size=1,
            max_size=4,
        ),
    )
)


@settings(max_examples=100, deadline=None)
@given(OUTCOMES)
def test_identity_when_outcomes_are_any_then_subsets_add_up_to_the_whole(
    drawn: tuple[int, list[bool], list[tuple[list[bool], list[bool]]]],
) -> None:
    """FWT = (n_s·ΔRR + n_f·ΔNL) / N, whatever the outcomes and the split."""
    n, solved, replicates = drawn
    items = [f"item-{number}" for number in range(n)]
    before = cell(
        CellKey("agg", "B", "B"), *(dict(zip(items, b, strict=True)) for b, _ in replicates)
    )
    after = cell(
        CellKey("agg", "A>B", "B"), *(dict(zip(items, a, strict=True)) for _, a in replicates)
    )
    base = cell(CellKey("none", "", "B"), dict(zip(items, solved, strict=True)))
    gap = identity_gap(before, after, partition(study_of(base), "B"))
    assert gap is not None
    assert gap <= IDENTITY_TOLERANCE


def test_identity_when_nothing_is_split_then_cannot_be_checked() -> None:
    """Without a baseline there is no identity to hold."""
    one = cell(CellKey("agg", "B", "B"), {"x": True})
    empty = partition(study_of(cell(CellKey("none", "", "B"), {})), "B")
    assert identity_gap(one, one, empty) is None


def test_transfers_when_effects_are_known_then_finds_them_in_the_right_rows() -> None:
    """FWT is found on the later task, BWT on the earlier one, each with its sign."""
    world = World(
        conditions=("agg",),
        controls=(),
        replicates=6,
        test_items=80,
        effects={("agg", "A>B", "B"): 0.4, ("agg", "A>B", "A"): -0.4},
    )
    study = read_study_log(SyntheticLog(world))
    splits = {task: partition(study, task) for task in "AB"}
    found = {(row.direction, row.sequence): row for row in transfers(study, splits)}
    assert len(found) == 4
    forward = found["forward", "A>B"].transfer.estimate
    backward = found["backward", "A>B"].transfer.estimate
    null = found["forward", "B>A"].transfer.estimate
    assert forward is not None
    assert forward.low > 0.1
    assert backward is not None
    assert backward.high < -0.1
    assert null is not None
    assert null.low < 0 < null.high
    assert found["forward", "A>B"].task == "B"
    assert found["backward", "A>B"].task == "A"
    assert all(row.identity_holds for row in found.values())


def test_transfers_when_gains_are_on_hard_items_then_delta_nl_shows_it() -> None:
    """A gain that easy items have no room for is seen in ΔNL and hardly in ΔRR."""
    world = World(
        conditions=("agg",), controls=(), replicates=5, effects={("agg", "A>B", "B"): 0.5}
    )
    study = read_study_log(SyntheticLog(world))
    splits = {task: partition(study, task) for task in "AB"}
    row = next(row for row in transfers(study, splits) if row.task == "B")
    assert row.delta_nl.estimate is not None
    assert row.delta_rr.estimate is not None
    assert row.delta_nl.estimate.value > 0.3 > row.delta_rr.estimate.value


def test_transfers_when_a_subset_is_under_ten_then_prints_only_its_size() -> None:
    """Nine hard items get an n and no ΔNL, while the identity is still checked."""
    world = World(conditions=("agg",), controls=(), solved=0.9, test_items=40)
    study = read_study_log(SyntheticLog(world))
    splits = {task: partition(study, task) for task in "AB"}
    assert all(len(split.failed) < 10 for split in splits.values())
    for row in transfers(study, splits):
        assert row.delta_nl.estimate is None
        assert row.delta_nl.n_items == len(splits[row.task].failed)
        assert row.delta_rr.estimate is not None
        assert row.identity_holds


def test_retentions_when_there_is_a_rerun_then_show_what_nothing_looks_like() -> None:
    """The re-run's RR is below 100 % and its NL above 0: regression to the mean, on record."""
    study = read_study_log(SyntheticLog(World(replicates=5, test_items=80)))
    splits: dict[str, Partition] = {task: partition(study, task) for task in "AB"}
    rows = [row for row in retentions(study, splits) if row.key.condition == "rerun"]
    assert len(rows) == 2
    for row in rows:
        assert row.rr.estimate is not None
        assert row.nl.estimate is not None
        assert 0 < row.nl.estimate.value < 0.3
        assert 0.7 < row.rr.estimate.value < 1
    assert not [row for row in retentions(study, splits) if row.key.condition == "none"]
