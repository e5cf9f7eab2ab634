"""Behavior metrics: what each means at the edges that a definition leaves open."""

import math
from typing import Any

import pytest

from langgraft.benchmarks.mle.behaviour.runs import (
    MOST_CHARACTERS,
    Share,
    effective_number,
    jaccard_distance,
    names_among,
    operators,
    oriented,
    package_imports,
    tokens,
)
from langgraft.benchmarks.mle.behaviour.trees import TreeBehavior, measure
from langgraft.nodes.search.journal import Journal, JournalNode


def run(*nodes: dict[str, Any]) -> Journal:
    """Return a run: each program valid with metric 0.5 unless it says otherwise."""
    made = []
    for step, fields in enumerate(nodes):
        plain = {"plan": "p", "code": "x = 1", "metric": 0.5, "is_buggy": False}
        made.append(JournalNode.model_validate({"step": step, "id": f"{step}", **plain, **fields}))
    return Journal("run", "task", tuple(made))


BUG: dict[str, Any] = {"is_buggy": True, "metric": None}


def measured(*nodes: dict[str, Any], lower: bool = False, split: int = 10) -> TreeBehavior:
    """Return what is measured of a run."""
    return measure(run(*nodes), lower_is_better=lower, split=split)


def test_bugs_when_counted_are_told_by_step_and_of_the_late_ones() -> None:
    """Up to each step, from the first late one on, and no rate of nothing."""
    found = measured(BUG, {}, BUG, split=1)
    assert found.cumulative_bugs == (1, 1, 2)
    assert found.late_errors == 1
    assert measured().bug_rate is None


def test_first_valid_when_there_is_none_is_censored_at_the_length() -> None:
    """The number of steps is a lower bound, and says that it is one."""
    found = measured(BUG, BUG).first_valid
    assert (found.step, found.censored) == (2, True)


def test_best_metric_when_metrics_are_missing_or_infinite_passes_over_them() -> None:
    """Buggy programs and metrics that are no number never become the best."""
    nodes = (
        {**BUG, "metric": 9.0},
        {"metric": None},
        {"metric": 0.2},
        {"metric": math.inf},
        {"metric": 0.1},
    )
    curve = measured(*nodes).best_so_far
    assert [math.isnan(value) for value in curve[:2]] == [True, True]
    assert curve[2:] == (0.2,) * 3
    assert measured(*nodes, lower=True).final == 1 / 1.1


def test_loss_when_oriented_keeps_its_order() -> None:
    """Smaller losses are better, negative ones too, around the pole of the published form."""
    losses = [100.0, 1.0, 0.0, -0.5, -0.99, -1.0, -2.0]
    values = [oriented(loss, lower_is_better=True) for loss in losses]
    assert values == sorted(values)
    assert values[:3] == [1 / 101, 0.5, 1.0]


def test_effective_number_when_uses_are_equal_is_their_count() -> None:
    """Of nothing it is 0, of one kind 1, and of n equally frequent kinds n."""
    assert effective_number({}) == 0.0
    assert effective_number({"a": 7}) == 1.0
    assert effective_number({"a": 2, "b": 2, "c": 2}) == pytest.approx(3)
    assert effective_number({"a": 3, "b": 1}) == pytest.approx(math.exp(0.5623351446))


def test_imports_when_counted_count_statements_by_package() -> None:
    """Python's own modules and relative ones are none; a name in a string is none."""
    code = (
        "import os, numpy as np, numpy.linalg\nfrom sklearn.svm import SVC, SVR\n"
        "from sklearn import metrics\nfrom . import mine\nfrom .own import x\n"
        "def f():\n    import torch\ns = 'import keras'\n"
    )
    assert package_imports(code) == {"numpy": 1, "sklearn": 2, "torch": 1}
    assert measured({"code": code}).package_steps == {"numpy": 1, "sklearn": 1, "torch": 1}


def test_operators_when_counted_are_tokens_of_all_four_kinds() -> None:
    """Assignments with an operator count; each comparison of a chain does, too."""
    code = "x += -1\ny = a < b <= c and d and not e\nz = [*p] @ q if r is None else 2 ** 3\n"
    assert operators(code) == {
        "Add": 1,
        "USub": 1,
        "Lt": 1,
        "LtE": 1,
        "And": 1,
        "Not": 1,
        "MatMult": 1,
        "Is": 1,
        "Pow": 1,
    }


def test_effective_numbers_when_no_program_is_valid_are_0() -> None:
    """Buggy programs do not count, whatever they import."""
    found = measured({**BUG, "code": "import torch\nx = 1 + 1"})
    assert found.packages_pooled == 0.0
    assert found.operators_per_program == 0.0
    both = measured({"code": "import torch"}, {"code": "x = 1"})
    assert both.packages_per_program == 0.5


def test_distance_when_only_comments_differ_is_0() -> None:
    """Comments, blank lines and indentation are no tokens."""
    one, other = "x = f(1)  # one\n", "# other\n\nx = f(1)\n"
    assert measured({"code": one}, BUG, {"code": other}).token_distance == 0.0
    assert measured({"code": one}, BUG).token_distance is None
    assert tokens(one) == {"x", "=", "f", "(", "1", ")"}
    assert names_among(tokens("for x in y: print('z')")) == {"x", "y", "print"}
    assert jaccard_distance({"a", "b"}, {"b", "c"}) == pytest.approx(2 / 3)
    assert jaccard_distance(set(), set()) == 0.0


def test_formatted_string_when_read_is_one_token_with_what_is_in_it() -> None:
    """So that distances do not depend on the version of Python."""
    code = "y = f'{a + f\"{b}\"} of {c:.2f}'\nz = (f'''one\n{d} two''', 1)\n"
    assert tokens(code) == {
        *("y", "=", "f'{a + f\"{b}\"} of {c:.2f}'"),
        *("z", "(", "f'''one\n{d} two'''", ",", "1", ")"),
    }


@pytest.mark.parametrize(
    "code",
    [
        "",
        "this is no program (",
        "\0",
        "'''never closed",
        "(" * 100_000,
        "-" * 100_000 + "1",
        "x" + "[0]" * 50_000,
        "1" + "+1" * 50_000,
        "x = " + "9" * 100_000,
        "lambda: " * 30_000 + "0",
        "a" * (MOST_CHARACTERS + 1),
        "\ud800 = 1",
        "if 1:\n" + "".join(" " * depth + "if 1:\n" for depth in range(1, 130)),
        "'\\d' is 'x'",
    ],
    ids=range(14),
)
def test_program_when_it_is_none_or_hostile_breaks_nothing(code: str) -> None:
    """It counts as a program that uses nothing, and has some tokens."""
    found = measured({"code": code}, {"code": "x = 1"}, lower=True)
    assert found.valid == 2
    assert found.token_distance is not None
    assert 0 <= found.token_distance <= 1
    assert found.package_steps.total() == 0


def test_error_when_it_recurs_is_of_the_same_class() -> None:
    """A program ended from outside has the class of what it ran out of; modules do not count."""
    nodes: tuple[dict[str, Any], ...] = (
        {**BUG, "exc_type": "KeyError"},
        {**BUG, "timed_out": True},
        BUG,
        {"exc_type": "ValueError"},
        {**BUG, "exc_type": "concurrent.futures.TimeoutError"},
        {**BUG, "oom": True},
    )
    assert measured(*nodes).error_types == {"KeyError": 1, "TimeoutError": 2, "MemoryError": 1}
    assert measured(*nodes, split=3).errors_recur is True
    assert measured(*nodes, split=5).errors_recur is False
    assert measured(*nodes, split=6).errors_recur is None


def test_retrievals_when_read_in_two_ways_differ() -> None:
    """Programs written with memory that failed; failures repaired with memory."""
    told = {"recalled": "- a note", "recalled_kinds": ("code", "resource")}
    found = measured(
        {**BUG},  # repaired by 1 with memory
        {**BUG, **told, "parent_id": "0"},  # written with memory, repaired without
        {"parent_id": "1"},
        {**told, "recalled_kinds": ("code",), "parent_id": "2"},
    )
    assert found.written_with_memory == Share(1, 2)
    assert found.repaired_with_memory == Share(1, 2)
    assert found.resource_retrievals == Share(1, 2)
    assert found.resource_of_buggy == Share(1, 1)
    assert found.resource_for_buggy == Share(1, 1)
    assert measured({}).written_with_memory.value is None


def test_run_when_it_has_no_steps_has_no_rates() -> None:
    """Nothing is made up for a search that did nothing."""
    found = measured()
    assert (found.bug_rate, found.final, found.late_errors) == (None, None, None)
    assert found.first_valid.censored
