"""`SimulatedEngineer` in six fields: it knows what its plan says, and orders edits by instruction."""

import json
from pathlib import Path

from engineer_cases import edited, six_prompt, six_reply, step
from hypothesis import given, settings
from hypothesis import strategies as st
from scientist_cases import Case

from langgraft.benchmarks.simulated import SimulatedEngineer
from langgraft.benchmarks.simulated.data_scientist.notes import habits_for
from langgraft.benchmarks.simulated.data_scientist.programs import sections_of, title_of
from langgraft.benchmarks.simulated.data_scientist.tasks import Task
from langgraft.benchmarks.simulated.engineer.researching import (
    Script,
    Status,
    read_status,
    repairing_order,
)
from langgraft.nodes.mlab.tools import (
    EDIT,
    EXECUTE,
    FIELDS,
    FINAL_ANSWER,
    LIST_FILES,
    PLAN,
    TOOLS,
    UNDERSTAND,
    VALIDATE,
)
from langgraft.nodes.prompts import prompt

SAMPLES = [str(number) for number in range(40)]
PLACEBO = "Package: notes\nError: it is good to be careful\nFix: Take your time."
FIX = (
    "Package: sklearn\nError: TypeError: OneHotEncoder.__init__() got an unexpected keyword argument"
    " 'sparse'\nFix: Replaced `OneHotEncoder(sparse=False)` by `sparse_output=False`."
)
REFUSED = "TypeError: OneHotEncoder.__init__() got an unexpected keyword argument 'sparse'\n\nIt ended with exit code 1."
SPOILED, RIGHT = "sparse=False", "sparse_output=False"
LISTED = "description.md (9 bytes)\ntrain.csv (90 bytes)"


def ordered(case: Case, sample: str, *notes: str) -> tuple[str, str]:
    """Return the reply that has a first script written, and its instruction."""
    first, _ = six_reply(six_prompt(case), ignorance=0)
    looked = step(first, LISTED)
    said, reply = six_reply(six_prompt(case, looked, notes=notes), sample, ignorance=0)
    if reply.tool == UNDERSTAND:
        looked = step(said, "It begins with these lines.")
        said, reply = six_reply(six_prompt(case, looked, notes=notes), sample, ignorance=0)
    assert reply.tool == EDIT
    return said, str(reply.input["edit_instruction"])


def test_reply_when_it_begins_has_all_fields_and_looks(cases: dict[str, Case]) -> None:
    """A reply has the form asked for, and the first one lists the files."""
    for case in cases.values():
        said, reply = six_reply(six_prompt(case), ignorance=0)
        assert (reply.problem, reply.refused) == ("", "")
        assert list(reply.fields) == list(FIELDS)
        assert reply.tool == LIST_FILES
        assert said == six_reply(six_prompt(case), ignorance=0)[0]


def test_order_when_a_script_is_written_holds_all_that_is_needed(cases: dict[str, Case]) -> None:
    """From its instruction alone, a script with the parts that it names is written."""
    for name, case in cases.items():
        said, instruction = ordered(case, "a")
        code = edited("", instruction, ignorance=0)
        sections = sections_of(code)
        assert len(sections) == 6, name
        assert f"Model: {title_of(sections['Model'])}" in instruction
        compile(code, "train_1.py", "exec")
        ran = step(said, "train_1.py was written. It was not there before:")
        _, reply = six_reply(six_prompt(case, ran), ignorance=0)
        assert (reply.tool, reply.input) == (EXECUTE, {"script_name": "train_1.py"})


def test_work_when_a_script_ran_checks_it_and_goes_on_from_its_plan(
    cases: dict[str, Case],
) -> None:
    """The metric goes into the plan; then it checks, writes another script, and hands in the best."""
    case = cases["kinds"]
    said, _ = ordered(case, "a")
    said, _ = six_reply(six_prompt(case, step(said, "train_1.py was written.")), ignorance=0)
    said, reply = six_reply(six_prompt(case, step(said, "Validation metric: 0.5")), ignorance=0)
    assert reply.tool == VALIDATE
    assert "reached 0.5" in reply.fields[PLAN]
    valid = step(said, "Submission: present and valid.")
    said, reply = six_reply(six_prompt(case, valid), ignorance=0)
    assert reply.tool == EDIT
    assert reply.input["save_name"] == "train_2.py"
    said, reply = six_reply(six_prompt(case, valid, left=1), ignorance=0)
    assert reply.tool == FINAL_ANSWER
    assert "0.5" in str(reply.input)


def test_repair_when_a_script_failed_is_ordered_and_made(cases: dict[str, Case]) -> None:
    """With the fix recalled it orders the right repair, and says beside the run what it was."""
    case = cases["kinds"]
    said, instruction = next(
        found
        for found in (ordered(case, each) for each in SAMPLES)
        if RIGHT in edited("", found[1], ignorance=0)
    )
    code = edited("", instruction, ignorance=0).replace(RIGHT, SPOILED)
    said, _ = six_reply(six_prompt(case, step(said, "train_1.py was written.")), ignorance=0)
    failed = six_prompt(case, step(said, REFUSED), notes=[FIX])
    replies = [six_reply(failed, each, ignorance=0) for each in SAMPLES[:10]]
    said, reply = next(each for each in replies if each[1].tool == EDIT)
    assert edited(code, str(reply.input["edit_instruction"])) == code.replace(SPOILED, RIGHT)
    changed = step(said, "train_1.py was written. What changed from train_1.py:")
    _, reply = six_reply(six_prompt(case, changed), ignorance=0)
    assert reply.fields["Thought"].startswith("Replaced `sparse=False` by")


def test_every_repair_when_ordered_is_the_repair_that_is_made() -> None:
    """What an instruction says of a repair, right or wrong, is what the edit does."""
    habits = habits_for(Task(), endless=False)
    for habit in (each for each in habits if "@" not in each.mistake.text):
        for repair in (habit.repair, *habit.others):
            code = f"x = 1\n{habit.mistake.text}\n"
            made = edited(code, repairing_order(habit, repair))
            assert made.strip() == habit.repaired(code, repair).strip(), habit.name


def test_notes_when_they_tell_something_go_into_the_order(cases: dict[str, Case]) -> None:
    """The editor sees no notes: what they tell of the parts reaches it by the instruction alone."""
    case = cases["kinds"]
    orders = [ordered(case, each, FIX)[1] for each in SAMPLES]
    codes = [edited("", each, str(at), ignorance=2) for at, each in enumerate(orders)]
    assert any("Fix: Replaced `sparse=False" in each for each in orders)
    assert not any(SPOILED in code for code in codes)
    plain = [ordered(case, each)[1] for each in SAMPLES]
    assert any(SPOILED in edited("", each, str(at), ignorance=2) for at, each in enumerate(plain))


def test_placebo_when_recalled_changes_nothing(cases: dict[str, Case]) -> None:
    """A note that tells nothing leaves replies and instructions as they were, to the letter."""
    for case in cases.values():
        for sample in SAMPLES[:4]:
            assert ordered(case, sample, PLACEBO, PLACEBO) == ordered(case, sample)


def test_summary_when_an_output_is_long_keeps_what_matters() -> None:
    """Errors and metrics stay, within the limit."""
    text = "\n".join(["[LightGBM] busy"] * 500 + ["ValueError: no", "Validation metric: 0.25"])
    asked = prompt("mlab_summarize").render(action="x", text=text, part="1", parts="1", limit="90")
    assert SimulatedEngineer().invoke(asked).text == "ValueError: no\nValidation metric: 0.25"


_TITLES = st.text("abcdefgh ", min_size=1, max_size=9)
_SCRIPTS = st.builds(
    Script,
    name=st.just(""),
    titles=st.tuples(_TITLES, _TITLES, _TITLES),
    metric=st.none() | st.floats(-1e6, 1e6).map(lambda value: float(f"{value:g}")),
)


@given(st.lists(_SCRIPTS, max_size=5), st.booleans(), st.integers(0, 9))
def test_plan_when_read_again_says_what_was_written(
    scripts: list[Script], checked: bool, looks: int
) -> None:
    """What it carries in its plan comes back whole."""
    named = {
        f"train_{at}.py": Script(f"train_{at}.py", each.titles, each.metric)
        for at, each in enumerate(scripts, start=1)
    }
    last = next(reversed(named), "")
    status = Status(named, at_work=last, in_place=last, checked=checked, looks=looks)
    assert read_status(status.written()) == status


@settings(max_examples=25, deadline=None)
@given(st.text(), st.text(), st.text(), st.sampled_from([*TOOLS, "Dance"]))
def test_anything_in_a_window_is_answered(plan: str, given: str, seen: str, tool: str) -> None:
    """No plan, input or observation stops it, and every reply has the form."""
    fields = dict.fromkeys(FIELDS, "x") | {PLAN: plan, "Action": tool, "Action Input": given}
    said = "\n".join(f"{name}: {value}" for name, value in fields.items())
    case = Case("# A task", Path(), "")
    _, reply = six_reply(six_prompt(case, step(said, seen)))
    assert not reply.problem
    assert edited(plan, given) is not None
    assert json.dumps(dict(reply.input)) is not None
