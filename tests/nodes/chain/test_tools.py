"""What a reply asks for: one action, whatever a model says, and whatever its client makes of it."""

import asyncio
import json
from typing import Any

import pytest
from acceptance.chain_script import Scripted, does, in_turn
from chain_cases import calls, spoiled
from hypothesis import given
from hypothesis import strategies as st
from langchain.chat_models import init_chat_model
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage
from pydantic import JsonValue

from langgraft._core.canonical import canonical_json
from langgraft.benchmarks.harness.models import make_model
from langgraft.benchmarks.simulated.server import serve
from langgraft.nodes.chain.tools import (
    ARGUMENTS,
    BROWSE,
    JOB,
    RequestedAction,
    requested_action,
    surplus_text,
    tool_schemas,
)
from langgraft.nodes.dialogue import Dialogue, Request, arun_dialogue, read_response

TOOLS = [name for name in ARGUMENTS if name not in (BROWSE, JOB)]


def read(message: BaseMessage) -> RequestedAction:
    """Read a reply."""
    return requested_action(read_response(message), TOOLS)


def problem(message: BaseMessage) -> str:
    """Return what is said of a call that cannot be used."""
    made = read(message)
    assert made.name == "invalid"
    return str(made.arguments["problem"])


def test_asked_when_a_tool_is_called_keeps_what_was_sent_and_what_was_said_beside_it() -> None:
    """A call is an action of the tool's name; `null` is the same as left out."""
    edit = {"command": "create", "path": "a.py", "file_text": "x = 1\n", "old_str": None}
    made = read(calls(("edit_file", edit), thought="  I write it. "))
    kept: dict[str, JsonValue] = {"command": "create", "path": "a.py", "file_text": "x = 1\n"}
    assert made == RequestedAction("edit_file", kept, "  I write it. ")
    assert read(calls(("finish", {}))) == RequestedAction("finish")


def test_asked_when_a_reply_makes_several_calls_takes_the_first_and_names_the_others() -> None:
    """One action a reply: the model is told which calls were not done."""
    several = calls(("run_bash", {"command": "ls"}), ("run_python", {"code": "1"}), ("finish", {}))
    made = read(several)
    assert (made.name, made.surplus) == ("run_bash", ("run_python", "finish"))
    assert "2 further calls of the same reply (run_python, finish)" in surplus_text(made.surplus)
    assert surplus_text(()) == ""


@pytest.mark.parametrize(
    ("name", "arguments", "said"),
    [
        ("run_bash", {}, "command: field required"),
        ("run_bash", {"command": 3}, "command: "),
        ("run_bash", {"command": "ls", "timeout": 3}, "timeout: "),
        ("edit_file", {"command": "delete", "path": "x"}, "command: "),
        ("edit_file", {"command": "insert", "path": "x", "insert_line": "3.5"}, "insert_line: "),
        ("edit_file", {"command": "insert", "path": "x", "insert_line": "03"}, "insert_line: "),
        ("edit_file", {"command": "insert", "path": "x", "insert_line": 2.5}, "insert_line: "),
        ("edit_file", {"command": "insert", "path": "x", "insert_line": True}, "insert_line: "),
        ("edit_file", {"command": "view", "path": "x", "view_range": "1, 40"}, "view_range: "),
        ("think", {"thought": ["a"]}, "thought: "),
    ],
)
def test_asked_when_arguments_do_not_fit_says_which(
    name: str, arguments: dict[str, Any], said: str
) -> None:
    """Missing, further and wrongly typed arguments make a call invalid, and are named."""
    made = read(calls((name, arguments)))
    assert said in problem(calls((name, arguments)))
    assert json.loads(str(made.arguments["said"])) == arguments
    assert made.arguments["tool"] == name


@pytest.mark.parametrize("lines", [[1, 40], "[1, 40]", ["1", 40.0], '["1", "40"]'])
def test_asked_when_numbers_and_lists_are_texts_takes_them_for_what_they_are(lines: Any) -> None:
    """Models write `"3"` for a number and JSON in a text for a list; nothing is lost by reading it."""
    view = {"command": "view", "path": "a.py", "view_range": lines}
    assert read(calls(("edit_file", view))).arguments["view_range"] == [1, 40]
    insert = {"command": "insert", "path": "a.py", "new_str": "[1]", "insert_line": " 3 "}
    made = read(calls(("edit_file", insert)))
    assert (made.arguments["insert_line"], made.arguments["new_str"]) == (3, "[1]")


@given(st.integers() | st.floats(allow_nan=False) | st.text())
def test_asked_whatever_stands_for_a_number_is_read_without_loss_or_not_at_all(given: Any) -> None:
    """What counts as the number says the same as what was sent."""
    insert = {"command": "insert", "path": "a.py", "new_str": "x", "insert_line": given}
    made = read(calls(("edit_file", insert)))
    if made.name != "invalid":
        number = made.arguments["insert_line"]
        assert isinstance(number, int)
        assert number == given or str(number) == str(given).strip()


def test_asked_when_there_is_no_such_tool_names_those_there_are() -> None:
    """A made-up tool is answered with the real ones; one that is not offered is none."""
    told = problem(calls(("execute_bash", {"command": "ls"})))
    assert "no tool 'execute_bash'" in told
    assert "run_bash, run_python" in told
    assert "no tool 'browse'" in problem(calls(("browse", {"url": "x"})))


def test_asked_when_arguments_are_no_json_says_so_and_where() -> None:
    """A call that cannot be read is answered with what is wrong, and a cut-off reply with that."""
    broken = spoiled("run_python", '{"code": "print(1)')
    assert "must be one JSON object (Unterminated string" in problem(broken)
    broken.response_metadata["finish_reason"] = "length"
    assert "send less" in problem(broken)
    assert read(spoiled(None, "")).arguments["tool"] == ""
    assert read(spoiled("run_bash", "[" * 100_000)).name == "invalid"
    deep: dict[str, Any] = {}
    for _ in range(2_000):
        deep = {"command": deep}
    assert read(calls(("run_bash", deep))).name == "invalid"


def test_asked_when_nothing_is_called_makes_a_message_also_of_nothing() -> None:
    """Prose is a message; an empty, filtered or refused reply is one that says why."""
    assert read(AIMessage("What next?")) == RequestedAction("message", {"text": "What next?"})
    assert read(AIMessage(" ")).arguments == {"text": "", "failure": "empty"}
    refused = AIMessage("", additional_kwargs={"refusal": "I must not, says request 81723."})
    assert read(refused).arguments == {"text": "", "failure": "refusal"}
    filtered = AIMessage("", response_metadata={"finish_reason": "content_filter"})
    assert read(filtered).arguments == {"text": "", "failure": "content_filter"}


JSON_VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=6,
)


@given(
    st.sampled_from([*TOOLS, "", "a b", "\ud83d"]),
    st.dictionaries(st.sampled_from(["command", "code", "path", "x\ud83d"]), JSON_VALUES),
    st.text(),
)
def test_asked_whatever_is_called_can_be_kept(
    name: str, arguments: dict[str, Any], thought: str
) -> None:
    """No name, argument or thought keeps an action from being written to a log."""
    made = read(calls((name, arguments), thought=thought))
    canonical_json({"name": made.name, "arguments": made.arguments, "thought": made.thought})
    assert made.name in (*TOOLS, "invalid")


def test_tool_schemas_when_nothing_browses_leave_it_out() -> None:
    """The tools have the names that agents know them by, each with a description."""
    offered = [each["function"] for each in tool_schemas()]
    assert [each["name"] for each in offered] == TOOLS
    assert all(each["description"] for each in offered)
    assert tool_schemas(browse=True)[-1]["function"]["name"] == BROWSE
    (edit,) = (each["parameters"] for each in offered if each["name"] == "edit_file")
    assert edit["required"] == ["command", "path"]
    assert edit["properties"]["insert_line"]["type"] == "integer"


def client(name: str, url: str) -> BaseChatModel:
    """Return a client of a server."""
    if name == "LangChain's":
        return init_chat_model("openai:simulated", base_url=url, api_key="none", max_retries=0)
    return make_model("openai:simulated", base_url=url, api_key="none")


@pytest.mark.parametrize("name", ["LangChain's", "the harness's"])
@pytest.mark.parametrize("arguments", ['["ls"]', "7", '"ls"'])
def test_call_when_its_arguments_are_no_object_then_is_an_invalid_action(
    arguments: str, name: str
) -> None:
    """The client refuses to make a message of the reply, and the model is told what is wrong."""

    def step() -> Dialogue[RequestedAction]:
        said = yield Request([HumanMessage("Go on.")], "think")
        return requested_action(said, ["run_bash"])

    async def held() -> RequestedAction:
        async with serve(Scripted(script=in_turn([does("run_bash", arguments)]))) as server:
            model = client(name, server.base_url).bind_tools(tool_schemas())
            return await arun_dialogue(step(), model, ("run", "step-0"))

    found = asyncio.run(held())
    assert found.name == "invalid"
    assert "must be one JSON object" in str(found.arguments["problem"])
