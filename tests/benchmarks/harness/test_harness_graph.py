"""The runs of a plan as a graph."""

import pytest

from langgraft._core.errors import PlanError
from langgraft.benchmarks.harness.log import runs_from_json
from langgraft.benchmarks.harness.study import (
    BankSource,
    RunSpec,
    build_graph,
    run_to_json,
)


def spec(
    name: str,
    source: str | None = None,
    after: int | None = None,
    seed: int = 0,
    reads: tuple[str, ...] = (),
) -> RunSpec:
    """Make a run of three items."""
    bank = None if source is None else BankSource(source, after)
    return RunSpec("toy", name, {"seed": seed}, ("a", "b", "c"), bank, reads=reads)


@pytest.mark.parametrize(
    ("specs", "complaint"),
    [
        ([spec("x"), spec("x")], "two runs of the plan are called 'x'"),
        ([spec("x", "y")], "bank of 'y', which no run is called"),
        ([spec("x"), spec("y", "x", 4)], "after 4 items; that run has 3"),
        ([spec("x"), spec("y", "x", -1)], "after -1 items"),
        ([spec("x", "x")], "circle: 'x' → 'x'"),
        ([spec("x", reads=("y",))], "run 'x' reads 'y', which no run is called"),
        ([spec("x", reads=("y",)), spec("y", "x")], "circle: 'x' → 'y' → 'x'"),
        ([spec("x", "z"), spec("y", "x"), spec("z", "y")], "in a circle: 'x' → 'z' → 'y' → 'x'"),
    ],
)
def test_graph_when_runs_do_not_fit_then_error_names_them(
    specs: list[RunSpec], complaint: str
) -> None:
    """Names given twice, unknown or too short sources and circles are named."""
    with pytest.raises(PlanError, match=complaint):
        build_graph(specs)


def test_run_id_when_a_source_changes_then_changes_with_it() -> None:
    """What a run starts from, however far back, is part of its id."""
    chain = [spec("x"), spec("y", "x"), spec("z", "y", 2)]
    before = build_graph(chain)
    after = build_graph([spec("x", seed=1), *chain[1:]])
    assert all(before[name].id != after[name].id for name in "xyz")


def test_run_id_when_a_run_that_is_read_changes_then_changes_with_it() -> None:
    """What a run reads is part of its id; what it does not, and reading nothing, is not."""
    specs = [spec("x"), spec("y"), spec("z", "x", reads=("y",))]
    before, after = build_graph(specs), build_graph([specs[0], spec("y", seed=1), specs[2]])
    assert before["z"].id != after["z"].id
    assert before["x"].id == after["x"].id
    assert "reads" not in before["x"].identity
    assert [(run.name, items) for run, items in before.awaited(before["z"])] == [("x", 3), ("y", 3)]


def test_run_id_when_other_runs_change_then_stays() -> None:
    """Runs that a run does not depend on leave its id alone, and so does their order."""
    small = build_graph([spec("x"), spec("y", "x")])
    large = build_graph([spec("w"), spec("y", "x"), spec("x")])
    assert (small["x"].id, small["y"].id) == (large["x"].id, large["y"].id)


def test_limit_when_given_then_items_and_sources_are_cut_and_ids_differ() -> None:
    """A limited plan holds other runs, none longer than the limit."""
    specs = [spec("x"), spec("y", "x", 3)]
    limited, whole = build_graph(specs, limit=2), build_graph(specs)
    assert [run.length for run in limited] == [2, 2]
    assert limited["y"].spec.source == BankSource("x", 2)
    assert limited["x"].id != whole["x"].id
    with pytest.raises(PlanError, match="at least 1"):
        build_graph(specs, limit=0)


def test_lineage_when_sources_have_sources_then_oldest_comes_first() -> None:
    """The bank of a run is folded from its oldest source on, each cut where it was taken."""
    graph = build_graph([spec("x"), spec("y", "x", 1), spec("z", "y")])
    assert [(run.name, items) for run, items in graph.lineage(graph["z"])] == [("x", 1), ("y", 3)]


def test_graph_when_chain_is_long_then_no_stack_is_needed() -> None:
    """A chain of thousands of runs gets its ids, whatever the order of the runs."""
    chain = [spec("0"), *(spec(str(n), str(n - 1)) for n in range(1, 3_000))]
    assert len(build_graph(chain[::-1])) == 3_000


def test_graph_when_written_then_reads_back_with_same_ids() -> None:
    """The list of runs in a run directory gives the same graph again."""
    graph = build_graph([spec("x"), spec("y", "x", 1), spec("z", "y", reads=("x", "y"))])
    assert runs_from_json([run_to_json(run) for run in graph]) == graph
