"""The simulated solver: declared strengths, one draw a problem, notes that stand and notes that do not."""

import json

import pytest

from langgraft.benchmarks.simulated.solver import (
    STRONG,
    WEAK,
    KnownProblem,
    SimulatedSolver,
    Strengths,
)
from langgraft.memory.model import Outcome, Step
from langgraft.memory.recall import render_block
from langgraft.nodes.problem import solve_messages, solve_prompt
from langgraft.nodes.prompts import prompt
from langgraft.nodes.reflect import reflection_messages

KNOWN = tuple(
    KnownProblem(
        text=f"What is {n} + {n}?\nTask:\nSay it.",
        kind="Sums" if n % 2 else "Paths",
        level=f"Level {3 + n % 3}",
        right=str(2 * n),
        wrong="0",
    )
    for n in range(1, 601)
)
PLAIN = Strengths(base={}, otherwise=0.5, gain=0.3, general=0.1, harm=0.2)


def solved(notes: str = "", strengths: Strengths = PLAIN, kind: str = "Sums") -> list[bool]:
    """Say of each problem of a kind whether it is solved with these notes."""
    model = SimulatedSolver(known=KNOWN, strengths=strengths, temperature=0)
    block = render_block([notes]) if notes else ""
    asked = [each for each in KNOWN if each.kind == kind]
    replies = [
        model.invoke(solve_messages(solve_prompt(), each.text, block)).text for each in asked
    ]
    return [f"\\boxed{{{each.right}}}" in said for each, said in zip(asked, replies, strict=True)]


@pytest.mark.parametrize(
    ("notes", "rate"),
    [
        ("", 0.5),
        ("- When a problem is about Sums: check the result twice.", 0.8),
        ("- When a problem is about Sums: do not check the result.", 0.3),
        ("- When a problem is about Paths: check the result twice.", 0.3),
        ("- When you work at any problem: write every step down.", 0.6),
        ("Something about the weather.", 0.3),
    ],
)
def test_rate_when_notes_are_recalled_is_as_declared(notes: str, rate: float) -> None:
    """A note that stands for the kind helps; others are in the way; advice against is no advice."""
    done = solved(notes)
    assert sum(done) / len(done) == pytest.approx(rate, abs=0.07)


def test_draw_when_notes_help_solves_all_that_was_solved_without_them() -> None:
    """One draw a problem and seed: what a memory changes is what the prompt changed."""
    without, helped = solved(), solved("- When a problem is about Sums: check it.")
    assert all(after or not before for before, after in zip(without, helped, strict=True))
    assert sum(helped) > sum(without)


@pytest.mark.parametrize(("strengths", "rate"), [(STRONG, 0.64), (WEAK, 0.37)])
def test_presets_when_levels_are_mixed_as_in_the_paper_have_its_baselines(
    strengths: Strengths, rate: float
) -> None:
    """25 : 35 : 40 of Levels 3 to 5 (memory-transplants §4.3, App. E)."""
    base = strengths.base
    mixed = 0.25 * base["Level 3"] + 0.35 * base["Level 4"] + 0.4 * base["Level 5"]
    assert mixed == pytest.approx(rate, abs=0.01)


def test_lessons_when_asked_for_name_the_kind_and_never_the_answer() -> None:
    """In the form that the shipped prompt asks for; the task has several lines."""
    model = SimulatedSolver(known=KNOWN, strengths=PLAIN, temperature=0)
    kinds = set()
    for each in KNOWN[:40]:
        steps = (Step("", "", ""), Step("I add", "4", "The answer is wrong."))
        outcome = Outcome(success=False, reason="wrong answer")
        asked = reflection_messages(prompt("reflect"), each.text, steps, outcome, 3)
        (lesson,) = json.loads(model.invoke(asked).text)
        assert lesson["when_to_use"] == f"a problem is about {each.kind}"
        assert not any(letter.isdigit() for letter in lesson["lesson"])
        kinds.add(lesson["lesson"])
    assert len(kinds) > 1


def test_problem_when_it_is_not_known_gets_a_reply_all_the_same() -> None:
    """No crash, and no lesson."""
    model = SimulatedSolver(known=KNOWN, temperature=0)
    asked = solve_messages(solve_prompt(), "Who am I?", "")
    assert str(model.invoke(asked).text) == str(SimulatedSolver.at_a_loss)
