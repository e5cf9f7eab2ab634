"""All numbers of real AIDE runs, against tables made by reading the runs.

The expected numbers use none of our functions: flags and exceptions are copied from the journals,
imports and operators were counted in the programs by eye, and the formulas stand as they are.
"""

import io
import math
import tokenize
from pathlib import Path

import pytest

from langgraft.benchmarks.mle.behaviour.runs import FirstValid
from langgraft.benchmarks.mle.behaviour.trees import TreeBehavior, measure
from langgraft.benchmarks.mle.journals import read_journal
from langgraft.nodes.search.journal import Journal

KEYWORDS = "facebook-recruiting-iii-keyword-extraction-4c596c7d.json.gz"
DOGS = "dog-breed-identification-58af4168.json.gz"

# The run on keywords: 20 programs. V is valid, B buggy; only step 0 names an exception
# (AttributeError), the other 15 failures ended without one.
FLAGS = "BVVBVBVBBBBBBBBBBBBB"

# Its four valid programs: metric (F1, more is better) and import statements by package. Python's
# own modules (os, gc, sys, re, math, random, collections) are left out.
VALID = {
    1: (0.394224, {"numpy": 1, "pandas": 1, "sklearn": 6}),
    2: (0.38516066666666665, {"numpy": 1, "pandas": 1, "sklearn": 6}),
    4: (0.402738, {"numpy": 1, "pandas": 1, "sklearn": 6, "tqdm": 1}),
    6: (0.33953, {"numpy": 1, "pandas": 1, "sklearn": 6}),
}


@pytest.fixture
def keywords(data_dir: Path) -> Journal:
    """Return the run on keyword extraction."""
    return read_journal(data_dir / "aide" / KEYWORDS)


@pytest.fixture
def measured(keywords: Journal) -> TreeBehavior:
    """Return what we measure of it."""
    return measure(keywords, lower_is_better=False)


def test_failures_of_a_real_run_when_counted_are_those_of_the_table(measured: TreeBehavior) -> None:
    """Bug rate, bugs so far, first valid program, late errors and exceptions."""
    assert measured.steps == len(FLAGS) == 20
    assert measured.bug_rate == 16 / 20
    assert measured.cumulative_bugs == (
        *(1, 1, 1, 2, 2, 3, 3, 4, 5, 6),  # B V V B V B V B B B
        *(7, 8, 9, 10, 11, 12, 13, 14, 15, 16),  # buggy to the end
    )
    assert measured.first_valid == FirstValid(1, censored=False)
    assert measured.late_errors == 10  # steps 10 to 19
    assert dict(measured.error_types) == {"AttributeError": 1}
    assert measured.errors_recur is False  # the one class is met at step 0 alone


def test_best_metric_of_a_real_run_when_followed_is_that_of_the_table(
    measured: TreeBehavior, keywords: Journal
) -> None:
    """NaN before the first valid program; a loss would be 1 / (1 + loss)."""
    first, second, third = 0.394224, 0.394224, 0.402738
    assert math.isnan(measured.best_so_far[0])
    assert measured.best_so_far[1:] == (first, second, second, *[third] * 16)
    as_loss = measure(keywords, lower_is_better=True).best_so_far
    assert as_loss[1:4] == pytest.approx((1 / 1.394224, 1 / 1.385160667, 1 / 1.385160667))
    assert as_loss[-1] == pytest.approx(1 / 1.33953)


def test_packages_of_a_real_run_when_counted_are_those_of_the_table(measured: TreeBehavior) -> None:
    """exp(H) written as n / product of c^(c/n), for c uses of n."""
    # All programs: numpy 4, pandas 4, sklearn 24, tqdm 1, which is 33 statements.
    pooled = 33 / (4 ** (4 / 33) * 4 ** (4 / 33) * 24 ** (24 / 33))
    assert measured.package_imports_pooled == pytest.approx(pooled)
    three, one = 8 / 6 ** (6 / 8), 9 / 6 ** (6 / 9)
    assert measured.package_imports_per_program == pytest.approx((3 * three + one) / 4)
    # Once a program: numpy 4, pandas 4, sklearn 4, tqdm 1, which is 13.
    assert measured.packages_pooled == pytest.approx(13 / 4 ** (12 / 13))
    assert measured.packages_per_program == pytest.approx((3 + 3 + 4 + 3) / 4)
    assert dict(measured.package_steps) == {"numpy": 4, "pandas": 4, "sklearn": 4, "tqdm": 1}
    for step, (_, statements) in VALID.items():
        assert FLAGS[step] == "V"
        assert sum(statements.values()) in {8, 9}


def test_distance_of_a_real_run_when_measured_is_that_of_its_token_sets(
    measured: TreeBehavior, keywords: Journal
) -> None:
    """Programs 1, 2, 4 and 6 in time, though 4 is a draft and 6 the repair of another branch."""
    kinds = {tokenize.NAME, tokenize.OP, tokenize.NUMBER, tokenize.STRING}
    sets = [
        {
            token.string
            for token in tokenize.tokenize(io.BytesIO(keywords.nodes[step].code.encode()).readline)
            if token.type in kinds
        }
        for step in VALID
    ]
    one, two, three, four = sets
    expected = (
        (1 - len(one & two) / len(one | two))
        + (1 - len(two & three) / len(two | three))
        + (1 - len(three & four) / len(three | four))
    ) / 3
    if not hasattr(tokenize, "FSTRING_START"):  # then these are its tokens, parts and all
        assert measured.token_distance == pytest.approx(expected)
    assert measured.token_distance == pytest.approx(0.5696519, abs=1e-6)


def test_operators_of_a_real_run_when_counted_are_those_seen_in_its_one_valid_program(
    data_dir: Path,
) -> None:
    """Counted by eye, with the lines of the program."""
    journal = read_journal(data_dir / "aide" / DOGS)
    measured = measure(journal, lower_is_better=True)
    assert [node.step for node in journal.nodes if not node.is_buggy] == [2]
    counted = {
        "Add": 4,  # 155 fold += 1, 163 … + 1e-6, 184 test_probs += …, 208 ["id"] + …
        "Sub": 3,  # 164, 165, 166: X - mean
        "Div": 4,  # 164, 165, 166: … / std, 191 test_probs /= N_SPLITS
        "NotEq": 3,  # 133, 142: two lists of ids, 208 c != "id"
        "Eq": 1,  # 204: two sets of columns
        "USub": 1,  # 121: -1
    }
    total = sum(counted.values())
    assert total == 16
    effective = 16 / (4 ** (4 / 16) * 3 ** (3 / 16) * 4 ** (4 / 16) * 3 ** (3 / 16))
    assert measured.operators_pooled == pytest.approx(effective)
    assert measured.operators_per_program == pytest.approx(effective)
    assert dict(measured.error_types) == {"TypeError": 3}  # steps 0, 1 and 7
    assert measured.token_distance is None  # one valid program has none before it
