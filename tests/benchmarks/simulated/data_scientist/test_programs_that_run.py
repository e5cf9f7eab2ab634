"""Programs of `SimulatedDataScientist` in the real sandbox: what fails there, and what runs."""

import itertools
import re
from collections.abc import Iterator

import pytest
from scientist_cases import Case, Ran, code_of, drafting, improving, merging, run_all, said

from langgraft.benchmarks.simulated.conversation import Dice
from langgraft.benchmarks.simulated.data_scientist.notes import Habit, habits_for
from langgraft.benchmarks.simulated.data_scientist.programs import (
    SLOTS,
    assembled,
    parts_for,
    reassembled,
)
from langgraft.benchmarks.simulated.data_scientist.tasks import Task, read_task

SLOW = {"lightgbm without end", "xgboost without end"}
FORMS = ("counts", "kinds", "texts", "pictures", "restoring", "table")


@pytest.fixture(scope="module")
def spoiled(cases: dict[str, Case]) -> dict[str, dict[str, tuple[Habit, str]]]:
    """Return a program with each habit, at the first form where it may occur."""
    seen = set(SLOW)  # boosting of so few rows stops early, however many rounds it is given
    found: dict[str, dict[str, tuple[Habit, str]]] = {}
    for form in FORMS:
        found[form] = {
            habit.name: (habit, reassembled(habit.broken(program)))
            for habit, program in _programs_with(cases[form])
            if habit.name not in seen
        }
        seen |= set(found[form])
    return found


@pytest.fixture(scope="module")
def drafts(cases: dict[str, Case]) -> dict[str, dict[str, str]]:
    """Return programs of somebody without habits: two for each form, and what is made of them."""
    found = {}
    for form, case in cases.items():
        two = {f"draft {n}": code_of(said(drafting(case), str(n), ignorance=0)) for n in range(2)}
        better = {
            f"{name}, bettered": code_of(said(improving(case, code), name, ignorance=0))
            for name, code in two.items()
        }
        both = code_of(said(merging(case, *two.values()), ignorance=0))
        found[form] = {**two, **better, "both": both}
    return found


@pytest.fixture(scope="module")
def ran(
    cases: dict[str, Case],
    spoiled: dict[str, dict[str, tuple[Habit, str]]],
    drafts: dict[str, dict[str, str]],
    docker_image: str,
) -> dict[str, dict[str, Ran]]:
    """Return what came of all these programs."""
    programs = {
        form: drafts[form] | {name: code for name, (_, code) in spoiled[form].items()}
        for form in FORMS
    }
    return run_all(cases, programs, docker_image)


def test_habits_when_run_then_fail_as_they_say(
    cases: dict[str, Case],
    spoiled: dict[str, dict[str, tuple[Habit, str]]],
    ran: dict[str, dict[str, Ran]],
) -> None:
    """Every mistake is a real one with the sandbox's versions; none is made up."""
    for form in FORMS:
        for name, (habit, _) in spoiled[form].items():
            raised, whole = ran[form][name]
            shown = "Submission: present, but not valid" if raised == "ran" else raised
            assert not whole, (form, name)
            assert re.search(habit.error, shown), (form, name, raised)
    every = {habit.name for task in map(_task, cases.values()) for habit in habits_for(task)}
    assert every - {name for each in spoiled.values() for name in each} == SLOW


def test_repairs_when_made_then_give_the_program_without_the_habit(
    cases: dict[str, Case],
) -> None:
    """The right repair restores what runs, whatever wrong one was tried before."""
    for form in FORMS:
        for habit, program in _programs_with(cases[form]):
            for wrong in (each.text for each in (habit.mistake, *habit.others)):
                bad = habit.broken(program, wrong)
                assert habit.occurs_in(bad), habit.name
                mended = habit.repaired(bad, habit.repair)
                assert not habit.occurs_in(mended), habit.name
                # Of limits, the repair has numbers of its own.
                assert mended == program or "without end" in habit.name, habit.name


def test_habits_when_they_do_not_occur_then_are_not_seen(cases: dict[str, Case]) -> None:
    """No fragment of a habit occurs in a program that is right, so that no repair harms one."""
    for form in FORMS:
        task = _task(cases[form])
        for sections in _programs(task):
            program = assembled(sections)
            assert [habit.name for habit in habits_for(task) if habit.occurs_in(program)] == []


@pytest.mark.parametrize("form", FORMS)
def test_drafts_without_ignorance_when_run_then_leave_a_whole_submission(
    form: str, drafts: dict[str, dict[str, str]], ran: dict[str, dict[str, Ran]]
) -> None:
    """What it writes for any form is complete, and differs; so is what is made of one or two of them."""
    alone = {name: code for name, code in drafts[form].items() if name != "both"}
    assert len(set(alone.values())) > 2
    found = {name: ran[form][name] for name in drafts[form]}
    assert set(found.values()) == {("ran", True)}, found


def _task(case: Case) -> Task:
    return read_task(case.description, case.preview)


def _programs_with(case: Case) -> Iterator[tuple[Habit, str]]:
    """Yield each habit that may occur in programs for a competition, with one where it may."""
    task = _task(case)
    programs = ["\n\n\n".join(each) for each in _programs(task)]
    for habit in habits_for(task):
        fitting = next((each for each in programs if habit.may_occur_in(each)), None)
        if fitting is not None:
            yield habit, fitting


def _programs(task: Task) -> Iterator[list[str]]:
    dice = Dice(0, sampled=False, text="", learner="")
    parts = parts_for(task)
    rest = {slot: each[0] for slot, each in parts.items()}
    pairs = [
        (features, model)
        for features, model in itertools.product(parts["Features"], parts["Model"])
        if features.sparse == model.sparse
    ]
    assert len(pairs) >= len(parts["Validation"])
    # Validation names nothing of the others: it need not be tried with each of them.
    for (features, model), validation in zip(pairs, itertools.cycle(parts["Validation"])):
        chosen = {**rest, "Features": features, "Model": model, "Validation": validation}
        yield [chosen[slot].written(dice, "") for slot in SLOTS]
