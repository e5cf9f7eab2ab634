"""Programs of `SimulatedDataScientist` in the real sandbox: what fails there, and what runs."""

import itertools
import re
from collections.abc import Iterator

import pytest
from scientist_cases import Case, code_of, drafting, improving, run_all, said

from langgraft.benchmarks.simulated.data_scientist.dice import Dice
from langgraft.benchmarks.simulated.data_scientist.forms import parts_for, slot_parts
from langgraft.benchmarks.simulated.data_scientist.habits import Habit
from langgraft.benchmarks.simulated.data_scientist.parts import SLOTS, Part
from langgraft.benchmarks.simulated.data_scientist.programs import (
    assembled,
    imports_of,
    sections_of,
)
from langgraft.benchmarks.simulated.data_scientist.schema import schema_habits
from langgraft.benchmarks.simulated.data_scientist.stale import STALE
from langgraft.benchmarks.simulated.data_scientist.tasks import read_task

FORMS = ("counts", "kinds", "texts", "pictures", "restoring", "table")


@pytest.mark.slow
def test_habits_when_run_then_fail_as_they_say(cases: dict[str, Case], docker_image: str) -> None:
    """Every mistake is a real one with the sandbox's versions; none is made up."""
    seen: set[str] = set()
    for form in FORMS:
        spoiled = {
            habit.name: (habit, habit.broken(program))
            for habit, program in _programs_with(cases[form])
            # Boosting of so few rows stops early, however many rounds it is given.
            if habit.name not in seen | {"lightgbm without end", "xgboost without end"}
        }
        seen |= set(spoiled)
        codes = {name: _imported(code) for name, (_, code) in spoiled.items()}
        found = run_all(cases[form], codes, docker_image) if codes else {}
        for name, (raised, whole) in found.items():
            shown = "Submission: present, but not valid" if raised == "ran" else raised
            assert not whole, (form, name)
            assert re.search(spoiled[name][0].error, shown), (form, name, raised)
    assert {habit.name for habit in STALE} <= seen


def test_repairs_when_made_then_give_the_program_without_the_habit(
    cases: dict[str, Case],
) -> None:
    """The right repair restores what runs, whatever wrong one was tried before."""
    for form in FORMS:
        for habit, program in _programs_with(cases[form]):
            for wrong in (habit.wrong, *(other.text for other in habit.others)):
                bad = habit.broken(program, wrong)
                assert habit.occurs_in(bad), habit.name
                mended = habit.repaired(bad, habit.repair)
                assert not habit.occurs_in(mended), habit.name
                # Of limits, the repair has numbers of its own.
                assert mended == program or "without end" in habit.name, habit.name


def test_habits_when_they_do_not_occur_then_are_not_seen(cases: dict[str, Case]) -> None:
    """No fragment of a habit occurs in a program that is right, so that no repair harms one."""
    for form in FORMS:
        task = read_task(cases[form].description, cases[form].preview)
        habits = (*STALE, *schema_habits(task))
        for sections in _programs(parts_for(task)):
            program = assembled(sections)
            assert [habit.name for habit in habits if habit.occurs_in(program)] == []


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS)
def test_drafts_without_ignorance_when_run_then_leave_a_whole_submission(
    form: str, cases: dict[str, Case], docker_image: str
) -> None:
    """What it writes for any form is complete, and differs; so does what is made better of it."""
    drafts = {
        f"draft {at}": code_of(said(drafting(cases[form]), str(at), ignorance=0)) for at in range(2)
    }
    better = {
        f"{name}, bettered": code_of(said(improving(cases[form], code), name, ignorance=0))
        for name, code in drafts.items()
    }
    assert len({*drafts.values(), *better.values()}) > len(drafts)
    found = run_all(cases[form], drafts | better, docker_image)
    assert set(found.values()) == {("ran", True)}, found


def _programs_with(case: Case) -> Iterator[tuple[Habit, str]]:
    """Yield each habit that may occur in programs for a competition, with one where it may."""
    task = read_task(case.description, case.preview)
    programs = ["\n\n\n".join(each) for each in _programs(parts_for(task))]
    for habit in (*STALE, *schema_habits(task)):
        fitting = next((each for each in programs if habit.may_occur_in(each)), None)
        if fitting is not None:
            yield habit, fitting


def _programs(parts: list[Part]) -> Iterator[list[str]]:
    dice = Dice(0, sampled=False, prompt="")
    ways = (slot_parts(parts, slot) for slot in ("Features", "Validation", "Model"))
    rest: dict[str, Part] = {each.slot: each for each in parts}
    for features, validation, model in itertools.product(*ways):
        if features.makes in model.takes:
            chosen = {**rest, "Features": features, "Model": model, "Validation": validation}
            yield [chosen[slot].written(dice, "") for slot in SLOTS]


def _imported(code: str) -> str:
    sections = sections_of(code)
    return assembled([sections[slot] for slot in SLOTS], imports_of(code))
