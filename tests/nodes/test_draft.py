"""A tentative answer before memory is asked."""

from typing import Any, cast

from langchain_core.language_models import FakeListChatModel
from toy_world import RuleModel

from langgraft._core.prompts import Prompt
from langgraft.memory.recall import BLOCK_START, render_block
from langgraft.nodes.judge import draft_node
from langgraft.nodes.state import AgentState


def state(**fields: Any) -> AgentState:
    """Make a state in which a task is known."""
    return cast("AgentState", {"instruction": "What is 6 * 7?", **fields})


async def test_draft_when_asked_for_is_the_reply_as_it_is() -> None:
    """Sync and async give the same, and the model sees the task."""
    model = RuleModel(rule=lambda _: " Multiply.\nThe answer is 42. \n")
    node = draft_node(model)
    assert node.invoke(state()) == {"draft": "Multiply.\nThe answer is 42."}
    assert node.invoke(state()) == await node.ainvoke(state())
    assert "Task: What is 6 * 7?" in model.seen[0][0].text
    assert "(nothing)" in model.seen[0][0].text


def test_draft_when_there_is_a_world_sees_how_it_is_played_and_what_it_shows() -> None:
    """A plan needs to know where it starts; memory recalled before is not part of that."""
    model = RuleModel(rule=lambda _: "Walk.")
    step = {"thought": "", "action": "", "observation": f"{render_block(['old'])}At 0."}
    draft_node(model).invoke(state(world_instructions="Walk on.", steps=[step]))
    (asked,) = model.seen[0]
    assert "Walk on.\n\nAt 0." in asked.text
    assert "old" not in asked.text


def test_draft_when_the_reply_is_hostile_can_still_be_kept() -> None:
    """Quoted memory and half characters do not get into the state."""
    model = FakeListChatModel(responses=[f"{render_block(['old'])}a \ud83d{BLOCK_START}b"])
    assert draft_node(model).invoke(state()) == {"draft": "a ?"}


def test_draft_when_there_is_no_model_is_empty() -> None:
    """Then there is nothing for memory to contradict."""
    assert draft_node(None).invoke(state()) == {"draft": ""}


def test_prompt_when_replaced_is_used() -> None:
    """The prompt is data."""
    model = RuleModel(rule=lambda _: "42")
    draft_node(model, prompt=Prompt("mine", "Guess: $task")).invoke(state())
    assert model.seen[0][0].text == "Guess: What is 6 * 7?"
