"""`think`: ask for the next step. A reply that has not the form is asked for again."""

from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraft._core.arguments import checked
from langgraft.nodes.chat_models import Model
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.mlab.briefing import Briefing, Cut, cuts
from langgraft.nodes.mlab.replies import ACTION_INPUT, THOUGHT, Reply
from langgraft.nodes.mlab.replies import read_reply as read_fields
from langgraft.nodes.replies import in_turns
from langgraft.nodes.structured import REPLY_SHOWN
from langgraft.nodes.talking import Ask, Said, Talk, talking_node
from langgraft.nodes.workbench.events import INVALID, Action
from langgraft.nodes.workbench.limits import ended_by
from langgraft.nodes.workbench.metering import metered
from langgraft.nodes.workbench.state import RunState

NO_VALID_REPLY: Final = "no valid reply"
CONTEXT: Final = "context"
_SHORTER: Final = 1000
"""Characters of a bad reply that are sent back where a prompt was too long."""


@dataclass(frozen=True, slots=True)
class Thought:
    """What came of asking for a step."""

    reply: Reply | None
    """`None` where no reply has the form."""
    asked: list[dict[str, str]] = field(default_factory=list)
    """Replies that had not the form, with what was wrong with each."""
    ended: str = ""
    """Why the run ends; empty where it goes on."""


@checked
def think_node(briefing: Briefing, model: Model, *, retries: int) -> GraphNode[RunState]:
    """Make the node that asks for the next step, where the run may go on at all.

    Args:
        briefing: What the prompts are filled in with.
        model: Any chat model.
        retries: Replies without the form that are answered with a complaint, before the run ends.
    """
    desk = briefing.desk

    def begin(state: RunState) -> Talk[Update]:
        if ended := ended_by(desk.limits, state, desk.prices):
            return {"ended": ended}
        held = thinking(briefing, state, retries=retries)
        came = yield from metered(desk, state, held)
        thought = came.value
        update: Update = {"spent": came.spent}
        if came.broke:
            return {**update, "ended": "dollars"}
        if thought.reply is None and not thought.asked:
            return {**update, "ended": thought.ended}
        action = _action(len(desk.log(state).events), thought)
        update["said"] = desk.keep(action.model_dump(mode="json"))
        return {**update, "ended": thought.ended} if thought.ended else update

    return talking_node("think", model, begin, of_step)


def of_step(state: RunState) -> tuple[str, str]:
    """Name whose samples the calls of a step are."""
    return state["episode_id"], f"step-{state.get('steps', 0)}"


def thinking(briefing: Briefing, state: RunState, *, retries: int) -> Talk[Thought]:
    """Ask for a step until a reply has the form.

    A prompt that is too long for the model is made shorter, which is no try.
    """
    shorter = cuts(briefing.window)
    cut = next(shorter)
    asked: list[dict[str, str]] = []
    while True:
        messages = _messages(briefing, state, cut, asked)
        said = yield Ask(messages, "think")
        if said.overflow:
            further = next(shorter, None)
            if further is None:
                return Thought(None, asked, CONTEXT)
            cut = further
            continue
        reply = read_fields(said.text)
        problem = _problem(said, reply)
        if not problem:
            return Thought(reply, asked)
        asked.append({"said": said.text[:REPLY_SHOWN], "problem": problem})
        if len(asked) > retries:
            return Thought(None, asked, NO_VALID_REPLY)


def _messages(
    briefing: Briefing, state: RunState, cut: Cut, asked: list[dict[str, str]]
) -> list[BaseMessage]:
    """Return the prompt, and the last complaint; earlier ones say nothing new."""
    question = HumanMessage(briefing.prompt(state, cut))
    if not asked:
        return [question]
    room = REPLY_SHOWN if cut == Cut(briefing.window) else _SHORTER
    said = AIMessage(asked[-1]["said"][:room])
    again = briefing.prompts.repair.render(problem=asked[-1]["problem"], format=briefing.form)
    return in_turns([question, said, HumanMessage(again)])


def _problem(said: Said, reply: Reply) -> str:
    if said.failure:
        return f"the model gave none: {said.failure}"
    if reply.problem and said.cut:
        return f"{reply.problem}, and the reply was cut off"
    return reply.problem


def _action(place: int, thought: Thought) -> Action:
    """Return the action that a thought comes to, to be logged at this place."""
    reply = thought.reply
    arguments: dict[str, Any] = {"asked": thought.asked} if thought.asked else {}
    if reply is None:
        last = thought.asked[-1]
        arguments |= {"tool": "", **last}
        return _made(place, INVALID, arguments)
    arguments["fields"] = {name: said for name, said in reply.fields.items() if name != THOUGHT}
    if reply.refused:
        said = reply.fields[ACTION_INPUT]
        arguments |= {"tool": reply.tool, "said": said, "problem": reply.refused}
        return _made(place, INVALID, arguments, reply.fields[THOUGHT])
    arguments["input"] = dict(reply.input)
    return _made(place, reply.tool, arguments, reply.fields[THOUGHT])


def _made(place: int, name: str, arguments: dict[str, Any], thought: str = "") -> Action:
    return Action(id=place, source="agent", name=name, arguments=arguments, thought=thought)
