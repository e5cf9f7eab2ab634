"""`think`: show the model the episode so far and read an action from its reply."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from langgraft._core.errors import ActionFormatError
from langgraft._core.prompts import Prompt
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.replies import reply_text
from langgraft.nodes.state import AgentState, Node, StepState, Update

# Chat models like to set labels in bold, as headings or as list points.
_LABEL = r"^[ \t>#*_`-]*{}[ \t*_`]*:[ \t*_]*"
_THOUGHT = re.compile(_LABEL.format("Thought"), re.IGNORECASE | re.MULTILINE)
_ACTION = re.compile(_LABEL.format("Action") + "(.*)$", re.IGNORECASE | re.MULTILINE)
_FENCE = "```"


@dataclass(frozen=True, slots=True)
class Reply:
    """What a model wants to do."""

    thought: str
    action: str


def parse_reply(text: str) -> Reply:
    """Read `Thought: … Action: …`.

    The action is the rest of the one line that starts with `Action:`, or the next line that
    holds something where that rest is empty. Markdown around labels and action is ignored.

    Raises:
        ActionFormatError: There is no action, or more than one.
    """
    found = list(_ACTION.finditer(text))
    if not found:
        msg = "The reply holds no line that starts with 'Action:'."
        raise ActionFormatError(msg)
    if len(found) > 1:
        msg = f"The reply holds {len(found)} actions; take one at a time."
        raise ActionFormatError(msg)
    line = found[0]
    following = (_plain(each) for each in text[line.end() :].splitlines())
    action = _plain(line.group(1)) or next(filter(None, following), "")
    if not action:
        msg = "The action is empty."
        raise ActionFormatError(msg)
    thought = _THOUGHT.sub("", text[: line.start()], count=1).strip()
    return Reply(thought, action)


def _plain(line: str) -> str:
    """Take Markdown's emphasis, code marks and fences off a line."""
    bare = line.strip()
    return "" if bare.startswith(_FENCE) and bare.count("`") == len(_FENCE) else bare.strip("*` \t")


def render_reply(thought: str, action: str) -> str:
    """Write a turn the way a model is asked to write it."""
    return f"Thought: {thought}\nAction: {action}"


def render_messages(system: str, recalled: str, steps: Sequence[StepState]) -> list[BaseMessage]:
    """Write an episode as a conversation.

    Recalled memory stands before the first observation (continual-memory §2.1), where it is
    replaced when memory is asked again.
    """
    first, *rest = steps
    messages: list[BaseMessage] = [
        SystemMessage(system),
        HumanMessage(recalled + first["observation"]),
    ]
    for step in rest:
        messages.append(AIMessage(render_reply(step["thought"], step["action"])))
        messages.append(HumanMessage(step["observation"]))
    return messages


def think_node(
    model: BaseChatModel, *, prompt: Prompt | None = None
) -> Runnable[AgentState, Update]:
    """Make the node that decides on the next action.

    Args:
        model: Any chat model.
        prompt: System prompt with the placeholder `$instructions`.
    """
    template = prompt or shipped("act")

    def messages(state: AgentState) -> list[BaseMessage]:
        system = template.render(instructions=state["world_instructions"])
        return render_messages(system, state["recalled"], state["steps"])

    def think(state: AgentState) -> Update:
        return _decide(model.invoke(messages(state)))

    async def athink(state: AgentState) -> Update:
        return _decide(await model.ainvoke(messages(state)))

    return Node("think", think, athink)


def _decide(message: BaseMessage) -> Update:
    text = reply_text(message)
    try:
        reply = parse_reply(text)
    except ActionFormatError as error:
        return {"thought": text.strip(), "action": "", "valid": False, "reason": str(error)}
    return {"thought": reply.thought, "action": reply.action, "valid": True, "reason": ""}
