"""`SimulatedEngineer` with tools: the documented rules are the rules it works by."""

import re
from pathlib import Path

import pytest
from engineer_cases import (
    LOOKED,
    MEASURED,
    Done,
    conversation,
    program_of,
    replied,
)
from hypothesis import given, settings
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, ToolMessage
from scientist_cases import Case

from langgraft.benchmarks.simulated import SimulatedEngineer, engineer
from langgraft.benchmarks.simulated.conversation import Dice
from langgraft.benchmarks.simulated.data_scientist.programs import sections_of
from langgraft.benchmarks.simulated.engineer.model import engineer_writer
from langgraft.benchmarks.simulated.engineer.moves import RELAPSE, experienced, read_conversation
from langgraft.nodes.prompts import prompt

pytestmark = pytest.mark.matrix  # a learner, by its shares

SAMPLES = [str(number) for number in range(40)]
FIX = (
    "Package: sklearn\nError: TypeError: OneHotEncoder.__init__() got an unexpected keyword argument"
    " 'sparse'\nFix: Replaced `OneHotEncoder(sparse=False)` by `sparse_output=False`."
)
PLACEBO = "Package: notes\nError: it is good to be careful\nFix: Take your time."
REFUSED = (
    "Exception: TypeError: OneHotEncoder.__init__() got an unexpected keyword argument 'sparse'"
)
SPOILED, RIGHT = "sparse=False", "sparse_output=False"


def first_program(case: Case, sample: str, *notes: str, ignorance: float = 1.0) -> str:
    """Return the program that it writes once the data was looked at."""
    asked = conversation(case, LOOKED, MEASURED, notes=notes)
    return program_of(replied(asked, sample, ignorance=ignorance))


def encoding(case: Case) -> str:
    """Return a program without a mistake that encodes words."""
    programs = (first_program(case, sample, ignorance=0) for sample in SAMPLES)
    return next(f"{program.rstrip()}\n" for program in programs if RIGHT in program)


def share(programs: list[str], word: str) -> float:
    """Return what part of some programs holds a word."""
    return sum(word in each for each in programs) / len(programs)


def test_work_when_it_begins_looks_and_then_writes_a_whole_program(
    cases: dict[str, Case],
) -> None:
    """The data is looked at first; then a program with all six sections is run, or written to be."""
    for case in cases.values():
        reply = replied(conversation(case), ignorance=0)
        assert reply.tool_calls[0]["args"]["command"].startswith("ls input/")
        assert reply.text
        for sample in SAMPLES[:5]:
            assert len(sections_of(first_program(case, sample, ignorance=0))) == 6


def test_tools_when_programs_are_run_are_of_all_kinds(cases: dict[str, Case]) -> None:
    """New programs come as cells, as commands and as files."""
    asked = conversation(cases["kinds"], LOOKED, MEASURED)
    called = {replied(asked, each, ignorance=0).tool_calls[0]["name"] for each in SAMPLES}
    assert called == {"run_python", "run_bash", "edit_file"}


def test_slips_when_ignorant_are_replies_that_cannot_be_done(cases: dict[str, Case]) -> None:
    """Now and then it calls nothing, or sends what is no JSON; with all knowledge never."""
    asked = conversation(cases["kinds"], LOOKED, MEASURED)
    samples = [str(number) for number in range(120)]
    replies = [replied(asked, each, ignorance=2) for each in samples]
    assert 0 < sum(not each.tool_calls and not each.invalid_tool_calls for each in replies) < 15
    assert 0 < sum(bool(each.invalid_tool_calls) for each in replies) < 15
    assert all(replied(asked, each, ignorance=0).tool_calls for each in samples[:40])


def test_reply_when_asked_again_is_the_same_and_of_another_sample_another(
    cases: dict[str, Case],
) -> None:
    """Messages, seed and the sample's name decide; names of calls are no part of it."""
    asked = conversation(cases["kinds"], LOOKED, MEASURED)
    assert replied(asked, "a").tool_calls == replied(asked, "a").tool_calls
    assert len({program_of(replied(asked, each)) for each in SAMPLES[:8]}) > 5
    renamed = [
        each.model_copy(update={"tool_call_id": f"x{each.tool_call_id}"})
        if isinstance(each, ToolMessage)
        else each.model_copy(
            update={"tool_calls": [{**c, "id": f"x{c['id']}"} for c in each.tool_calls]}
        )
        if isinstance(each, AIMessage)
        else each
        for each in asked
    ]
    assert program_of(replied(renamed, "a")) == program_of(replied(asked, "a"))


def test_placebo_when_recalled_changes_nothing(cases: dict[str, Case]) -> None:
    """A note that tells nothing leaves every reply as it was, to the letter."""
    for case in cases.values():
        for sample in SAMPLES[:5]:
            plain = replied(conversation(case, LOOKED, MEASURED), sample)
            noted = replied(conversation(case, LOOKED, MEASURED, notes=[PLACEBO] * 2), sample)
            assert (noted.text, program_of(noted)) == (plain.text, program_of(plain))


def test_habit_when_its_fix_is_recalled_is_gone(cases: dict[str, Case]) -> None:
    """With the fix in the first message the mistake is never made; without it, it is."""
    case = cases["kinds"]
    assert share([first_program(case, each) for each in SAMPLES], SPOILED) > 0
    assert share([first_program(case, each, FIX) for each in SAMPLES], SPOILED) == 0


def test_habit_when_its_failure_is_in_sight_is_a_little_rarer(cases: dict[str, Case]) -> None:
    """It learns little from its own mistakes: new code has them again, if less often."""
    code = encoding(cases["kinds"]).replace(RIGHT, SPOILED)
    failed = ("run_python", {"code": code}, "Try.", REFUSED)
    mended = ("run_python", {"code": code.replace(SPOILED, RIGHT)}, "So.", "Validation metric: 0.5")
    valid: Done = ("validate_submission", {}, "Check.", "Submission: present and valid.")
    met = conversation(cases["kinds"], LOOKED, failed, mended, valid)
    replies = [replied(met, str(number), ignorance=2) for number in range(100)]
    new = [program_of(each) for each in replies if "Nothing is tuned yet" in each.text]
    encoders = [each for each in new if RIGHT in each or SPOILED in each]
    assert share(encoders, SPOILED) > 0.1
    now = read_conversation(met)
    assert now is not None
    writer = engineer_writer(now.asked, Dice(0, sampled=True, text="", learner=""), 1.0)
    learned = experienced(writer, now.progress().executions)
    rarer = {
        before.name: after.rate / before.rate
        for before, after in zip(writer.habits, learned.habits, strict=True)
        if after.rate != before.rate
    }
    assert rarer == {"OneHotEncoder(sparse)": pytest.approx(RELAPSE)}


def test_repair_when_a_cell_failed_says_what_it_replaces(cases: dict[str, Case]) -> None:
    """With the fix recalled the first try is right, and the reply begins with what is replaced."""
    code = encoding(cases["kinds"])
    failed = ("run_python", {"code": code.replace(RIGHT, SPOILED)}, "Try.", REFUSED)
    asked = conversation(cases["kinds"], LOOKED, failed, notes=[FIX])
    reply = replied(asked, ignorance=0)
    assert reply.text.startswith("Replaced `sparse=False` by")
    assert reply.tool_calls[0]["name"] == "run_python"
    assert sections_of(program_of(reply)) == sections_of(code)


def test_repair_when_a_script_failed_edits_it_and_repeats_the_plan_beside_the_run(
    cases: dict[str, Case],
) -> None:
    """What stands beside the run that proves a repair is what the repair was."""
    code = encoding(cases["kinds"]).replace(RIGHT, SPOILED)
    made = {"command": "create", "path": "solution.py", "file_text": code}
    done: list[Done] = [LOOKED, ("edit_file", made, "Make it.", "Written.")]
    done.append(("run_bash", {"command": "python solution.py"}, "Run it.", REFUSED))
    asked = conversation(cases["kinds"], *done, notes=[FIX])
    replies = [replied(asked, each, ignorance=0) for each in SAMPLES]
    edits = [each for each in replies if each.tool_calls[0]["name"] == "edit_file"]
    assert 5 < len(edits) < 35
    call = edits[0].tool_calls[0]["args"]
    assert call["command"] == "str_replace"
    assert code.count(call["old_str"]) == 1
    assert RIGHT in call["new_str"]
    done.append(("edit_file", call, edits[0].text, "Changed."))
    run = replied(conversation(cases["kinds"], *done, notes=[FIX]), ignorance=0)
    assert run.tool_calls[0]["args"] == {"command": "python solution.py"}
    assert run.text.startswith("Replaced `sparse=False` by")
    # A file that is not as it remembers it is written whole.
    done[-1] = ("edit_file", call, edits[0].text, "Not done: the passage was not found.")
    again = replied(conversation(cases["kinds"], *done, notes=[FIX]), ignorance=0)
    assert "PROGRAM" in again.tool_calls[0]["args"]["command"]


def test_work_when_steps_run_out_hands_in_the_best(cases: dict[str, Case]) -> None:
    """The best program is run again where another one's submission lies there, and checked."""
    code = encoding(cases["kinds"])
    best: Done = ("run_python", {"code": code}, "One.", "Validation metric: 0.4")
    other: Done = ("run_python", {"code": f"{code}#\n"}, "Two.", "Validation metric: 0.7")
    done = [LOOKED, best, other]
    reply = replied(conversation(cases["kinds"], *done, left=3), ignorance=0)
    assert reply.tool_calls[0]["args"] == {"code": code}
    done.append(best)
    reply = replied(conversation(cases["kinds"], *done, left=2), ignorance=0)
    assert reply.tool_calls[0]["name"] == "validate_submission"
    done.append(("validate_submission", {}, "Check.", "Submission: present and valid."))
    reply = replied(conversation(cases["kinds"], *done, left=1), ignorance=0)
    assert reply.tool_calls[0]["name"] == "finish"
    assert "0.4" in reply.tool_calls[0]["args"]["message"]


@pytest.mark.parametrize(
    "last",
    [
        prompt("chain_continue").render(problem="your reply calls no tool"),
        prompt("chain_recovery").render(rule="the same call, four times"),
    ],
)
def test_work_when_told_something_goes_on(cases: dict[str, Case], last: str) -> None:
    """Whatever the user says, the next reply is a program; in circles, another one."""
    failed: Done = ("run_python", {"code": encoding(cases["kinds"])}, "Try.", "Exception: E: no")
    reply = replied(conversation(cases["kinds"], LOOKED, failed, last=last), ignorance=0)
    assert program_of(reply)
    told = read_conversation(conversation(cases["kinds"], last=last))
    assert told is not None
    assert told.recovered == ("circles" in last)


def test_tools_when_none_are_offered_then_it_only_speaks(cases: dict[str, Case]) -> None:
    """A model without tools gets no calls out of it."""
    message = SimulatedEngineer().invoke(conversation(cases["kinds"]))
    assert not message.tool_calls
    assert message.text


@settings(max_examples=25, deadline=None)
@given(
    st.lists(
        st.tuples(
            st.sampled_from(("run_python", "run_bash", "edit_file", "browse", "think")),
            st.dictionaries(
                st.sampled_from(("code", "command", "path", "old_str", "new_str")), st.text()
            ),
            st.text(),
            st.text(),
        ),
        max_size=4,
    ),
    st.text(),
)
def test_anything_in_a_conversation_is_answered(done: list[Done], description: str) -> None:
    """No call, observation or description stops it."""
    case = Case(description, Path(), "")
    assert replied(conversation(case, *done)).text


def test_other_questions_are_answered_as_the_data_scientist_does() -> None:
    """Diagnoses and what it does not understand."""
    diagnosed = prompt("diagnose").render(code="", output=REFUSED, analysis="(empty)", rules="")
    assert '"kind": "code"' in SimulatedEngineer().invoke(diagnosed).text
    assert SimulatedEngineer().invoke([HumanMessage("Play chess.")]).text.startswith("I can only")


def test_source_knows_no_condition_competition_or_split() -> None:
    """Nothing in the package names what a study compares, so that no result is built in."""
    banned = (
        r"\b(?:cold|warm|placebo|scheduled|baseline|condition|provider)\b"
        r"|\b(?:denoising|digits|phrases|textures|visits|weather)\b"
        r"|memory\.providers|coding_?memory|task_id|episode_id|held.?out|private|leaderboard"
    )
    files = sorted(Path(engineer.__file__).parent.rglob("*.py"))
    assert {file.stem for file in files} >= {"model", "moves", "researching"}
    for file in files:
        found = re.findall(banned, file.read_text("utf-8"), re.IGNORECASE)
        assert not found, f"{file.name}: {found}"
