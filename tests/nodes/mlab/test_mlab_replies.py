"""Replies in six fields: what is read of them, whatever a model says."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mlab_cases import edit, six

from langgraft.nodes.mlab.tools import FIELDS, TOOLS, described_tools, read_reply

WORDS = st.sampled_from([f"{name}:" for name in FIELDS] + ["\n", "{", '"', "Execute Script", "```"])


def test_reply_when_it_has_the_form_is_read_whole() -> None:
    """All fields are there by name, and the input is the tool's."""
    reply = read_reply(edit("train.py", "Use a\nseed."))
    assert (reply.problem, reply.refused, reply.tool) == ("", "", "Edit Script (AI)")
    assert reply.input["edit_instruction"] == "Use a\nseed."
    assert list(reply.fields) == list(FIELDS)
    assert reply.fields["Research Plan and Status"] == "1. Look. 2. Try."


@given(st.text() | st.lists(st.text() | WORDS).map("".join))
def test_reply_when_it_is_anything_at_all_is_read_or_refused(text: str) -> None:
    """No text raises, and what is neither refused nor a problem is an action of a tool."""
    reply = read_reply(text)
    if not reply.problem and not reply.refused:
        assert reply.input.keys() == TOOLS[reply.tool].keys.keys()
    json.dumps([dict(reply.fields), dict(reply.input)]).encode()


@given(st.text())
def test_input_when_it_is_anything_at_all_is_read_or_refused(text: str) -> None:
    """A reply of the right form is a step, whatever stands for its input."""
    reply = read_reply(six("Execute Script", f"{text}"))
    assert not reply.problem
    assert bool(reply.refused) != bool(reply.input)


@pytest.mark.parametrize("missing", FIELDS)
def test_reply_when_a_field_is_missing_names_it(missing: str) -> None:
    """The complaint says which field is not there."""
    lines = [line for line in six("List Files").splitlines() if not line.startswith(f"{missing}:")]
    assert read_reply("\n".join(lines)).problem == f"the field `{missing}:` is missing"


def test_reply_when_its_fields_are_in_another_order_is_none() -> None:
    """The order is a part of the form."""
    first, second, *rest = six("List Files").splitlines()
    problem = read_reply("\n".join([second, first, *rest])).problem
    assert (
        problem == "the field `Research Plan and Status:` stands before another that it must follow"
    )
    assert read_reply("  \n").problem == "it is empty"


def test_reply_when_a_field_speaks_of_others_is_not_confused() -> None:
    """Names of later fields within a field do not begin them before their turn."""
    reply = read_reply("Action: none yet\n" + six("List Files", {"dir_path": "."}))
    assert (reply.tool, reply.input) == ("List Files", {"dir_path": "."})


@pytest.mark.parametrize(
    "written",
    [
        '```json\n{"script_name": "a.py"}\n```',
        '{"script_name": "a.py"}\nObservation:\n```\nit worked {"script_name": "b.py"}\n```',
        'Here: {"script_name": "a.py"} as said.',
        '{\n  "script_name": "a.py"\n}\nReflection: I go on alone.',
        '{"script_name": " a.py "}',
    ],
)
def test_input_when_things_stand_around_it_is_found(written: str) -> None:
    """Fences, prose and what a model makes up after it do no harm."""
    assert read_reply(six("**Execute Script**", written)).input == {"script_name": "a.py"}


@pytest.mark.parametrize(
    ("tool", "written", "why"),
    [
        ("Execute Script", "a.py", "is no JSON object"),
        ("Execute Script", '["a.py"]', "is no JSON object"),
        ("Execute Script", '{"script_name": NaN}', "a number is not finite"),
        ("Execute Script", '{"script_name": {"a": ["b.py"]}}', "is to be a text"),
        ("Execute Script", '{"script_name": ' + "[" * 9000, "nested too deeply"),
        ("Execute Script", '{"script": "a.py"}', "it has no `script_name`, `script` is none"),
        ("Execute Script", '{"script_name": "a", "why": 1}', "`why` is none of its keys"),
        ("Drink Coffee", "{}", "there is no tool 'Drink Coffee'"),
    ],
)
def test_input_when_it_cannot_be_used_is_refused_with_why(
    tool: str, written: str, why: str
) -> None:
    """The step is refused, and the agent told what to give."""
    reply = read_reply(six(tool, written))
    assert reply.problem == ""
    assert why in reply.refused


@pytest.mark.parametrize(
    ("first", "last", "read"),
    [(1, 5, (1, 5)), ("2", 7.0, (2, 7)), (1.5, 2, None), (True, 2, None), (1, 10**12, None)],
)
def test_lines_when_written_otherwise_are_numbers_all_the_same(
    first: Any, last: Any, read: tuple[int, int] | None
) -> None:
    """A number in quotation marks is one; halves, truths and millions of millions are none."""
    given = {"script_name": "a.py", "start_line_number": first, "end_line_number": last}
    reply = read_reply(six("Inspect Script Lines", given))
    numbers = (reply.input.get("start_line_number"), reply.input.get("end_line_number"))
    assert numbers == (read or (None, None))
    assert bool(reply.refused) == (read is None)


def test_instruction_when_its_quotation_marks_break_the_json_is_read_between_the_keys() -> None:
    """Unescaped quotation marks are the slip that models make most."""
    written = (
        '{"script_name": "a.py", "edit_instruction": "Print "Validation metric: 0.5"\\n'
        'and {"seed": 1} too", "save_name": "b.py"}'
    )
    reply = read_reply(six("Edit Script (AI)", written))
    wanted = 'Print "Validation metric: 0.5"\nand {"seed": 1} too'
    assert reply.input == {"script_name": "a.py", "edit_instruction": wanted, "save_name": "b.py"}


def test_tools_when_told_are_the_nine_of_mle_bench_with_their_keys() -> None:
    """Whoever reads the prompt can write every input."""
    told = described_tools()
    assert len(TOOLS) == 9
    for tool in TOOLS.values():
        assert f"## {tool.name}\n" in told
        assert all(f'"{key}": ' in told for key in tool.keys)
