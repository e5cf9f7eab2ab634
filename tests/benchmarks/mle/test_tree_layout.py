"""Where programs stand in the picture of a tree: tidy for every tree."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft.benchmarks.mle.tree_picture import Place, tree_layout


@st.composite
def forests(draw: st.DrawFn) -> list[int | None]:
    """Draw trees, some of them a single long line."""
    size = draw(st.integers(1, 60))
    reach = draw(st.sampled_from([1, 3, 60]))
    parents: list[int | None] = [None]
    for node in range(1, size):
        parent = draw(st.integers(max(-1, node - reach - 1), node - 1))
        parents.append(None if parent < 0 else parent)
    return parents


def by_row(places: list[Place]) -> dict[int, list[float]]:
    """Return the columns of each row."""
    rows: dict[int, list[float]] = {}
    for place in places:
        rows.setdefault(place.row, []).append(place.column)
    return rows


@given(forests())
def test_layout_when_made_keeps_nodes_of_a_row_apart(parents: list[int | None]) -> None:
    """No two stand closer than one column, and none left of the first."""
    for columns in by_row(tree_layout(parents)).values():
        assert min(columns) >= 0
        assert all(right - left > 1 - 1e-5 for left, right in pairwise(sorted(columns)))


@given(forests())
def test_layout_when_made_centers_parents_and_keeps_brothers_in_order(
    parents: list[int | None],
) -> None:
    """A parent stands a row above, in the middle of its first and last child."""
    places = tree_layout(parents)
    for node, place in enumerate(places):
        below = [child for child, parent in enumerate(parents) if parent == node]
        columns = [places[child].column for child in below]
        assert all(places[child].row == place.row + 1 for child in below)
        assert columns == sorted(columns)
        if columns:
            assert place.column == pytest.approx((columns[0] + columns[-1]) / 2, abs=1e-5)


@given(forests())
def test_layout_when_made_draws_no_two_lines_across_each_other(
    parents: list[int | None],
) -> None:
    """Of two children of a row, the one further left has its parent no further right."""
    places = tree_layout(parents)
    edges = [(places[p], places[n]) for n, p in enumerate(parents) if p is not None]
    for above, below in edges:
        for other_above, other_below in edges:
            if below.row == other_below.row and below.column < other_below.column:
                assert above.column <= other_above.column


def test_layout_when_a_line_is_long_takes_one_column() -> None:
    """Thousands of repairs in a row make no stack of calls."""
    places = tree_layout([None, *range(2999)])
    assert {place.column for place in places} == {0}
    assert places[-1].row == 2999


def test_layout_when_subtrees_differ_in_depth_moves_them_until_they_touch() -> None:
    """The wide third row of one tree reaches under its shallow neighbor."""
    places = tree_layout([None, None, 0, 2, 2, 2])
    assert [place.column for place in places] == [1, 2, 1, 0, 1, 2]


def test_layout_when_empty_or_out_of_order_says_so() -> None:
    """No programs are no places; a parent that comes later is an error."""
    assert tree_layout([]) == []
    with pytest.raises(ValueError, match="node 0 has the parent 1"):
        tree_layout([1, None])
