"""Draws are seeded, apart by id and by statement, and change little when the file does."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from langgraft._core.errors import InputError, SettingsError
from langgraft.environments.problems import read_math
from langgraft.environments.problems.splits import (
    MATH_BUILD,
    MATH_EVALUATION,
    by_level,
    draw,
    is_whole,
    require_apart,
    shared_out,
    statement,
    stream_order,
)


@dataclass(frozen=True)
class Asked:
    """Anything with an id and a text can be drawn."""

    id: str
    text: str


POOL = tuple(Asked(str(n), f"What is ${n}$?") for n in range(200))


def parity(problem: Asked) -> int | None:
    """Return a stratum; problems from 150 on are never drawn."""
    return int(problem.id) % 2 if int(problem.id) < 150 else None


def test_draws_of_math_are_those_of_the_study_and_apart(data_dir: Path) -> None:
    """25, 35 and 40 of Levels 3 to 5; no build draw meets them, nor another statement of theirs."""
    problems = read_math(data_dir / "math" / "train.jsonl")
    evaluation = draw("math-eval", problems, MATH_EVALUATION, seed=0, stratum=by_level)
    levels = [each.level for each in evaluation]
    assert {each: levels.count(each) for each in levels} == {3: 25, 4: 35, 5: 40}
    builds = {
        seed: draw(
            "build",
            problems,
            {True: MATH_BUILD},
            seed=seed,
            stratum=is_whole,
            apart_from=evaluation,
        )
        for seed in range(3)
    }
    for build in builds.values():
        require_apart({"build": build, "eval": evaluation})
        assert len({statement(each) for each in build}) == MATH_BUILD
        assert all(each.level and each.answer for each in build)
    assert len(set(builds.values())) == 3


def test_draw_of_everything_leaves_out_second_copies_and_what_has_no_stratum() -> None:
    """Only the first of duplicates is ever drawn, whatever their case, spaces and ids are."""
    copies = (*POOL, Asked("-1", r"WHAT is \, $7 $?"), Asked("9", "another text"))
    found = draw("all", copies, {0: 75, 1: 75}, seed=1, stratum=parity)
    assert set(found) == set(POOL[:150])
    rest = draw(
        "rest", copies, {0: 75, 1: 73}, seed=1, stratum=parity, apart_from=[POOL[7], POOL[9]]
    )
    assert set(rest) == set(POOL[:150]) - {POOL[7], POOL[9]}


def test_draw_depends_on_name_seed_and_ids_alone() -> None:
    """Order does not matter; one problem more displaces one at most."""
    first = draw("a", POOL, {0: 10, 1: 20}, seed=3, stratum=parity)
    assert draw("a", POOL[::-1], {0: 10, 1: 20}, seed=3, stratum=parity) == first
    assert draw("a", POOL, {0: 10, 1: 20}, seed=4, stratum=parity) != first
    assert draw("b", POOL, {0: 10, 1: 20}, seed=3, stratum=parity) != first
    for gone in first:
        fewer = [each for each in POOL if each != gone]
        assert len(set(first) & set(draw("a", fewer, {0: 10, 1: 20}, seed=3, stratum=parity))) == 29


def test_draw_when_a_stratum_is_too_small_says_every_number() -> None:
    """All of them in one error."""
    with pytest.raises(
        InputError, match=r"math-eval: too few .*: 75 of 76 in stratum 0, 0 of 1 in stratum 5"
    ):
        draw("math-eval", POOL, {0: 76, 1: 75, 5: 1}, seed=0, stratum=parity)


def test_draws_when_they_meet_are_named_with_their_sizes() -> None:
    """By id or by statement."""
    require_apart({"code-build": POOL[:60], "math-build": POOL[60:90]})
    with pytest.raises(InputError, match=r"build \(60\) and eval \(11\) share 2: \['59', 'x'\]"):
        require_apart({"build": POOL[:60], "eval": (*POOL[59:69], Asked("x", "what is 3?"))})


@pytest.mark.parametrize(
    ("size", "counts"),
    [(100, [25, 35, 40]), (1000, [250, 350, 400]), (7, [2, 2, 3]), (1, [0, 0, 1])],
)
def test_size_is_shared_out_whole(size: int, counts: list[int]) -> None:
    """By the largest remainders."""
    assert list(shared_out(size, MATH_EVALUATION).values()) == counts
    with pytest.raises(SettingsError, match="must be positive"):
        shared_out(-size, MATH_EVALUATION)


def test_stream_order_is_of_a_seed() -> None:
    """The same problems, in an order of each seed."""
    orders = [stream_order(POOL, seed) for seed in range(3)]
    assert all(set(each) == set(POOL) for each in orders)
    assert len(set(orders)) == 3
    assert stream_order(POOL[::-1], 0) == orders[0]
