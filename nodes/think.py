"""`think`: show the model the episode so far and read an action from its reply."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.runnables import Runnable

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program
from langgraft._core.errors import ActionFormatError
from langgraft._core.prompts import Prompt
from langgraft.nodes.chat_models import ChatModel, chat_model
from langgraft.nodes.model_dialogue import heard
from langgraft.nodes.node import Node, Update
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.replies import in_turns
from langgraft.nodes.state import AgentState, StepState

# Chat models like to set labels in bold, as headings or as list points.
_LABEL = r"^[ \t>#*_`-]*{}[ \t*_`]*:[ \t*_]*"
_THOUGHT = re.compile(_LABEL.format("Thought"), re.IGNORECASE | re.MULTILINE)
_ACTION = re.compile(_LABEL.format("Action") + "(.*)$", re.IGNORECASE | re.MULTILINE)
_FENCE = "```"
_CUT = "It was cut off where the longest possible reply ends: think in fewer words."


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
        raise ActionFormatError(msg if text.strip() else "The reply is empty.")
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


def render_messages(system: str, recalled: str, steps: Sequence[StepState]) -> list[BaseMessage]:
    """Write an episode as a conversation, with the model's replies as it gave them.

    Recalled memory stands before the first observation (continual-memory §2.1), where it is
    replaced when memory is asked again.
    """
    first, *rest = steps
    messages: list[BaseMessage] = [
        SystemMessage(system),
        HumanMessage(recalled + first["observation"]),
    ]
    for step in rest:
        messages += [AIMessage(step["said"]), HumanMessage(step["observation"])]
    return in_turns(messages)


@checked
def think_node(model: ChatModel, *, prompt: Prompt | None = None) -> Runnable[AgentState, Update]:
    """Make the node that decides on the next action.

    Args:
        model: Any chat model, or the name of one (`openai:gpt-4.1-mini`).
        prompt: System prompt with the placeholder `$instructions`.
    """
    template = prompt or shipped("act")
    model = chat_model(model, "`model` of think_node")

    def messages(state: AgentState) -> list[BaseMessage]:
        system = template.render(instructions=state["world_instructions"])
        return render_messages(system, state["recalled"], state["steps"])

    def think(state: AgentState) -> Program[Call, Update]:
        return _decide((yield Call(model.invoke, model.ainvoke, messages(state))))

    return Node.running("think", think)


def _decide(message: BaseMessage) -> Update:
    said = heard(message)
    update = {"said": said.text, "thought": said.text, "action": "", "valid": False}
    try:
        reply = parse_reply(said.text)
    except ActionFormatError as error:
        return {**update, "reason": f"{error} {_CUT}" if said.cut else str(error)}
    taken = {"thought": reply.thought, "action": reply.action, "valid": True}
    return {**update, **taken, "reason": ""}
