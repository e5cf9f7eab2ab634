"""Reading replies, and writing episodes as conversations."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, HumanMessage, SystemMessage
from toy_world import playing

from langgraft._core.errors import ActionFormatError
from langgraft._core.prompts import Prompt
from langgraft.nodes.state import AgentState, StepState
from langgraft.nodes.text_world import Reply, parse_reply, render_messages, think_node

READABLE = [
    ("Thought: a door\nAction: open it", "a door", "open it"),
    ("Thought:\na door\n\nAction:\nopen it", "a door", "open it"),
    ("Action: open it", "", "open it"),
    ("a door\nACTION:open it  ", "a door", "open it"),
    ("Thought: a\nb\nAction: open it\nObservation: made up", "a\nb", "open it"),
    ("**Thought:** a door\n**Action:** open it", "a door", "open it"),
    ("**Thought**: a door\n**Action**: **open it**", "a door", "open it"),
    ("### Thought:\na door\n### Action:\n`open it`", "a door", "open it"),
    ("- Thought: a door\n- Action: open it", "a door", "open it"),
    ("Thought: a door\nAction:\n```\nopen it\n```", "a door", "open it"),
    ("Thought: a door\nAction:\n```text\nopen it\n```", "a door", "open it"),
    ("Thought: a door\r\nAction: open it\r\n", "a door", "open it"),
    ("Thought: my next Action: is open\nAction: open it", "my next Action: is open", "open it"),
    ("Thought: x\nAction: say Action: now", "x", "say Action: now"),
    ("Thought: x\nAction: pick_up the_key", "x", "pick_up the_key"),
]

UNREADABLE = [
    ("", "The reply is empty"),
    (" \n", "The reply is empty"),
    ("Act: open it", "no line that starts with 'Action:'"),
    ('{"action": "open it"}', "no line that starts with 'Action:'"),
    ("Thought: Thought: Thought: open it", "no line that starts with 'Action:'"),
    ("Thought: a door", "no line that starts with 'Action:'"),
    ("open it", "no line that starts with 'Action:'"),
    ("Actions: open it", "no line that starts with 'Action:'"),
    ("Action: a\nAction: b", "holds 2 actions"),
    ("Action: a\nObservation: c\n**Action:** b", "holds 2 actions"),
    ("Action:", "The action is empty"),
    ("Thought: a\nAction:  \n \n", "The action is empty"),
    ("Action: **", "The action is empty"),
    ("Action:\n```\n```", "The action is empty"),
]


@pytest.mark.parametrize(("text", "thought", "action"), READABLE)
def test_reply_when_it_holds_one_action_is_read(text: str, thought: str, action: str) -> None:
    """Layout and Markdown do not matter, the one action does."""
    assert parse_reply(text) == Reply(thought, action)


@pytest.mark.parametrize(("text", "said"), UNREADABLE)
def test_reply_when_it_holds_none_or_several_says_so(text: str, said: str) -> None:
    """The model is told what was wrong with its reply."""
    with pytest.raises(ActionFormatError, match=said):
        parse_reply(text)


words = st.text(st.characters(codec="ascii", categories=["L", "N"]), min_size=1)


@given(st.lists(words).map(" ".join), st.lists(words, min_size=1).map(" ".join))
def test_reply_when_written_as_asked_is_read_back(thought: str, action: str) -> None:
    """The form that is asked for is the one that is read."""
    assert parse_reply(f"Thought: {thought}\nAction: {action}") == Reply(thought, action)


def step(said: str, observation: str) -> StepState:
    """Make a turn of a state."""
    return StepState(said=said, thought="go", action="walk", observation=observation, valid=True)


STEPS = [step("", "At 0."), step(" **Action:** walk\n", "At 1.")]


def test_messages_when_memory_is_recalled_put_it_before_the_first_observation() -> None:
    """Recalled text stands in one place, and the conversation alternates."""
    assert render_messages("play", "<notes>\n", STEPS) == [
        SystemMessage("play"),
        HumanMessage("<notes>\nAt 0."),
        AIMessage(" **Action:** walk\n"),
        HumanMessage("At 1."),
    ]


def test_messages_when_nothing_is_recalled_show_no_trace_of_memory() -> None:
    """Without memory the prompt is the bare episode."""
    assert render_messages("play", "", STEPS)[1] == HumanMessage("At 0.")


def state(**fields: Any) -> AgentState:
    """Make the part of a state that thinking reads."""
    plain = {"world_instructions": "Walk.", "recalled": "", "steps": STEPS}
    return cast("AgentState", {**plain, **fields})


async def test_node_when_run_returns_the_turn_sync_and_async() -> None:
    """The model sees the instructions, and its reply becomes thought and action."""
    model = playing("no", "Thought: on\nAction: walk")
    node = think_node(model, prompt=Prompt("p", "Rules: $instructions"))
    said = {"said": "Thought: on\nAction: walk", "thought": "on", "action": "walk"}
    expected = {**said, "valid": True, "reason": ""}
    assert node.invoke(state()) == await node.ainvoke(state()) == expected
    assert model.seen[0][0] == SystemMessage("Rules: Walk.")


def test_node_when_the_reply_is_malformed_keeps_it_and_says_why() -> None:
    """The whole reply is the thought of a turn without an action."""
    update = think_node(playing("hm", " let me see ")).invoke(state())
    assert update["valid"] is False
    assert update["said"] == update["thought"] == " let me see "
    assert update["action"] == ""
    assert update["reason"] == "The reply holds no line that starts with 'Action:'."


def test_node_when_the_reply_holds_a_lone_surrogate_makes_it_storable() -> None:
    """Half an emoji in a reply breaks no log."""
    update = think_node(playing("", "Thought: \ud83d\nAction: walk")).invoke(state())
    assert update["thought"] == "?"
