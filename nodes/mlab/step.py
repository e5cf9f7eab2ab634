"""`think`, `act` and `summarize`: ask for a step, do it, and shorten what it shows where it is too long.

A reply that has not the form is asked for again.
"""

from dataclasses import dataclass, field
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program
from langgraft.nodes.dialogue import (
    CUT_SHORT,
    Dialogue,
    Model,
    Request,
    Response,
    dialogue_node,
)
from langgraft.nodes.mlab.consult import said_action, summarizing
from langgraft.nodes.mlab.deps import (
    LONGEST_SHOWN,
    SUMMARY,
    MLABDeps,
    PromptExtent,
    extents,
    prompt_text,
    reply_form,
    sample_name,
)
from langgraft.nodes.mlab.tools import (
    ACTION_INPUT,
    CHANGING,
    FINAL_ANSWER,
    THOUGHT,
    Reply,
    performer,
    read_reply,
)
from langgraft.nodes.node import Node, Update
from langgraft.nodes.replies import in_turns
from langgraft.nodes.structured import REPLY_SHOWN
from langgraft.nodes.workbench.deps import RunDeps, metered
from langgraft.nodes.workbench.limits import ended_by, spend
from langgraft.nodes.workbench.log import (
    INVALID,
    Action,
    EventLog,
    Observation,
    append_events,
    command_of,
)
from langgraft.nodes.workbench.performing import observed
from langgraft.nodes.workbench.state import RunState

NO_VALID_REPLY: Final = "no valid reply"
CONTEXT: Final = "context"
_SHORTER: Final = 1000
"""Characters of a bad reply that are sent back where a prompt was too long."""
FINISHED: Final = "finished"


@dataclass(frozen=True, slots=True)
class StepReply:
    """What came of asking for a step."""

    reply: Reply | None
    """`None` where no reply has the form."""
    asked: list[dict[str, str]] = field(default_factory=list)
    """Replies that had not the form, with what was wrong with each."""
    ended: str = ""
    """Why the run ends; empty where it goes on."""


@checked
def think_node(deps: MLABDeps, model: Model, *, retries: int) -> Node[RunState]:
    """Make the node that asks for the next step, where the run may go on at all.

    Args:
        deps: What MLAB's nodes depend on.
        model: Any chat model.
        retries: Replies without the form that are answered with a complaint, before the run ends.
    """
    run = deps.run

    def begin(state: RunState) -> Dialogue[Update]:
        if ended := ended_by(run.limits, state, run.prices):
            return {"ended": ended}
        dialogue = thinking(deps, state, retries=retries)
        came = yield from metered(run, state, dialogue)
        thought = came.value
        update: Update = {"spent": came.spent}
        if came.broke:
            return {**update, "ended": "dollars"}
        if thought.reply is None and not thought.asked:
            return {**update, "ended": thought.ended}
        action = _action(len(run.log(state).events), thought)
        update["said"] = run.keep(action.model_dump(mode="json"))
        return {**update, "ended": thought.ended} if thought.ended else update

    return dialogue_node("think", model, begin, sample_name)


def thinking(deps: MLABDeps, state: RunState, *, retries: int) -> Dialogue[StepReply]:
    """Ask for a step until a reply has the form.

    A prompt that is too long for the model is made shorter, which is no try.
    """
    shorter = extents(deps.window)
    extent = next(shorter)
    asked: list[dict[str, str]] = []
    while True:
        messages = _messages(deps, state, extent, asked)
        response = yield Request(messages, "think")
        if response.overflow:
            further = next(shorter, None)
            if further is None:
                return StepReply(None, asked, CONTEXT)
            extent = further
            continue
        reply = read_reply(response.text)
        problem = _problem(response, reply)
        if not problem:
            return StepReply(reply, asked)
        asked.append({"said": response.text[:REPLY_SHOWN], "problem": problem})
        if len(asked) > retries:
            return StepReply(None, asked, NO_VALID_REPLY)


def _messages(
    deps: MLABDeps, state: RunState, extent: PromptExtent, asked: list[dict[str, str]]
) -> list[BaseMessage]:
    """Return the prompt, and the last complaint; earlier ones say nothing new."""
    question = HumanMessage(prompt_text(deps, state, extent))
    if not asked:
        return [question]
    room = REPLY_SHOWN if extent == PromptExtent(deps.window) else _SHORTER
    shown = AIMessage(asked[-1]["said"][:room])
    again = deps.prompts.repair.render(problem=asked[-1]["problem"], format=reply_form(deps))
    return in_turns([question, shown, HumanMessage(again)])


def _problem(response: Response, reply: Reply) -> str:
    if response.failure:
        return f"the model gave none: {response.failure}"
    if reply.problem and response.cut:
        return f"{reply.problem}, and {CUT_SHORT}"
    return reply.problem


def _action(place: int, thought: StepReply) -> Action:
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


@checked
def act_node(deps: MLABDeps) -> Node[RunState]:
    """Make the node that does an action, and notes it and what was observed of it in the log."""
    run = deps.run

    def act(state: RunState) -> Program[Call, Update]:
        action = said_action(run, state)
        seen, seconds = _without_workspace(run, action), 0.0
        if seen is None:
            seen, seconds = yield from run.acting(state, action)
        return _done(run, state, action, seen, seconds)

    return Node.running("act", act, in_threads=True)


def _without_workspace(run: RunDeps, action: Action) -> Observation | None:
    """Observe an action that asks nothing of a workspace; `None` for any other.

    What changes a workspace always goes there, so that it knows all that was done in it.
    """
    if action.name in CHANGING:
        return None
    performing = performer(run.competition)(action)
    try:
        next(performing)
    except StopIteration as stop:
        return observed(stop.value, action, limits=run.sandbox.limits, seconds=run.seconds)
    performing.close()
    return None


def _done(
    run: RunDeps, state: RunState, action: Action, seen: Observation, seconds: float
) -> Update:
    update: Update = {
        "log": append_events(run.artifacts, state.get("log", ""), [action, seen]),
        "steps": state.get("steps", 0) + 1,
        "said": "",
        "spent": spend(state, seconds=seconds),
    }
    return {**update, "ended": FINISHED} if action.name == FINAL_ANSWER else update


@checked
def summarize_node(deps: MLABDeps, model: Model) -> Node[RunState]:
    """Make the node that has a long observation shortened; it does nothing for others."""
    run = deps.run

    def begin(state: RunState) -> Dialogue[Update]:
        log = run.log(state)
        last = _long_step(log)
        if last is None:
            return {}
        action, seen = last
        dialogue = summarizing(f"{action.name} {command_of(action)}", seen.text, deps.prompts)
        came = yield from metered(run, state, dialogue)
        short = came.value
        summary = Action(
            id=len(log.events),
            source="environment",
            cause=seen.id,
            name=SUMMARY,
            arguments={"text": short.text, "why": short.why, "calls": short.calls},
        )
        longer = append_events(run.artifacts, state["log"], [summary])
        return {"log": longer, "spent": came.spent}

    return dialogue_node("summarize", model, begin, _of_last_step)


def is_long(run: RunDeps, state: RunState) -> bool:
    """Whether what the last action showed is too long to be shown as it is."""
    return _long_step(run.log(state)) is not None


def _long_step(log: EventLog) -> tuple[Action, Observation] | None:
    """Return the last action and what was observed of it, where that is the log's end, and long."""
    *_, action, seen = log.events
    if not isinstance(action, Action) or not isinstance(seen, Observation):
        return None
    return (action, seen) if len(seen.text) > LONGEST_SHOWN else None


def _of_last_step(state: RunState) -> tuple[str, str]:
    episode_id, _ = sample_name(state)
    return episode_id, f"step-{state['steps'] - 1}"
