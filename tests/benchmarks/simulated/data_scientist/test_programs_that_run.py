"""Programs of `SimulatedDataScientist` in the real sandbox: what fails there, and what runs."""

import itertools
import re
from collections.abc import Iterator

import pytest
from scientist_cases import Case, code_of, drafting, improving, merging, run_all, said

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


def test_habits_when_run_then_fail_as_they_say(cases: dict[str, Case], docker_image: str) -> None:
    """Every mistake is a real one with the sandbox's versions; none is made up."""
    seen: set[str] = set()
    for form in FORMS:
        spoiled = {
            habit.name: (habit, habit.broken(program))
            for habit, program in _programs_with(cases[form])
            # Boosting of so few rows stops early, however many rounds it is given.
            if habit.name not in seen | SLOW
        }
        seen |= set(spoiled)
        codes = {name: reassembled(code) for name, (_, code) in spoiled.items()}
        found = run_all(cases[form], codes, docker_image) if codes else {}
        for name, (raised, whole) in found.items():
            shown = "Submission: present, but not valid" if raised == "ran" else raised
            assert not whole, (form, name)
            assert re.search(spoiled[name][0].error, shown), (form, name, raised)
    every = {habit.name for task in map(_task, cases.values()) for habit in habits_for(task)}
    assert every - seen == SLOW


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
    form: str, cases: dict[str, Case], docker_image: str
) -> None:
    """What it writes for any form is complete, and differs; so is what is made of one or two of them."""
    drafts = {
        f"draft {at}": code_of(said(drafting(cases[form]), str(at), ignorance=0)) for at in range(2)
    }
    better = {
        f"{name}, bettered": code_of(said(improving(cases[form], code), name, ignorance=0))
        for name, code in drafts.items()
    }
    assert len({*drafts.values(), *better.values()}) > len(drafts)
    both = code_of(said(merging(cases[form], *drafts.values()), ignorance=0))
    found = run_all(cases[form], {**drafts, **better, "both": both}, docker_image)
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
    ways = (parts[slot] for slot in ("Features", "Validation", "Model"))
    for features, validation, model in itertools.product(*ways):
        if features.sparse == model.sparse:
            chosen = {**rest, "Features": features, "Model": model, "Validation": validation}
            yield [chosen[slot].written(dice, "") for slot in SLOTS]
