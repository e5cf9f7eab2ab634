"""`think` and `act`: ask for the next action, do it, and note it in the log with what came of it.

A prompt that is too long is made shorter, and is never fatal.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Final

from pydantic import JsonValue

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program
from langgraft.nodes.chain.deps import About, Browse, ChainDeps
from langgraft.nodes.chain.perform import IN_WORKSPACE
from langgraft.nodes.chain.stuck import first_condensation
from langgraft.nodes.chain.tools import (
    BROWSE,
    FINISH,
    THINK,
    RequestedAction,
    no_call_text,
    requested_action,
    surplus_text,
)
from langgraft.nodes.chain.visible_history import Condensation, cut_to_fit
from langgraft.nodes.dialogue import Dialogue, Model, Request, dialogue_node
from langgraft.nodes.node import Node, Update
from langgraft.nodes.workbench.deps import metered
from langgraft.nodes.workbench.limits import ended_by, spend
from langgraft.nodes.workbench.log import (
    CONDENSATION,
    INVALID,
    MESSAGE,
    Action,
    Event,
    Observation,
    append_events,
    keepable,
)
from langgraft.nodes.workbench.performing import kept_text
from langgraft.nodes.workbench.state import RunState

CONTEXT: Final = "context"
_SHORTER: Final = 0.75
"""A prompt that a model refused as too long is made at least so much shorter, as estimated."""
FINISHED: Final = "finished"
_OBSERVED: Final = {THINK: "Noted.", FINISH: "The work ends here."}
_LONGEST_PROBLEM: Final = 500


@dataclass(frozen=True, slots=True)
class NextAction:
    """What came of asking for an action."""

    requested: RequestedAction | None
    """`None` where no prompt is short enough."""
    condensed: tuple[Action, ...] = ()
    """What was left out for that."""


@checked
def think_node(deps: ChainDeps, model: Model) -> Node[RunState]:
    """Make the node that asks for the next action, where the run may go on at all.

    Args:
        deps: What the nodes of the chain agent depend on.
        model: A chat model that the tools are bound to.
    """
    run = deps.run

    def begin(state: RunState) -> Dialogue[Update]:
        if ended := ended_by(run.limits, state, run.prices):
            return {"ended": ended}
        log = run.log(state)
        came = yield from metered(run, state, thinking(deps, log.events, deps.about(state)))
        thought: NextAction = came.value
        update: Update = {"spent": came.spent}
        if came.broke:
            return {**update, "ended": "dollars"}
        if thought.condensed:
            update["log"] = append_events(run.artifacts, log.reference, thought.condensed)
        if thought.requested is None:
            return {**update, "ended": CONTEXT}
        return {**update, "said": run.keep(keepable(asdict(thought.requested)))}

    return dialogue_node("think", model, begin, _of_step)


def thinking(deps: ChainDeps, events: tuple[Event, ...], about: About) -> Dialogue[NextAction]:
    """Ask for an action, with less in view where the prompt is too long for the model.

    It is too long where it is estimated to be so, or where the model says it is. A model that says
    so again is asked with much less each time.
    """
    seen, share = events, 1.0
    if deps.most is not None:
        seen = _shortened(deps, seen, about, deps.most) or seen
    while True:
        response = yield Request(deps.prompt(seen, about), "think")
        if not response.overflow:
            return NextAction(requested_action(response, deps.offered), _new(seen, events))
        share *= _SHORTER
        most = int(deps.tokens(seen, about) * share)
        fewer = _shortened(deps, seen, about, most)
        if fewer is None or first_condensation(fewer) is not None:
            return NextAction(None, _new(fewer or seen, events))
        seen, share = fewer, share / 2


def _of_step(state: RunState) -> tuple[str, str]:
    return state["episode_id"], f"step-{state.get('steps', 0)}"


def _new(seen: tuple[Event, ...], events: tuple[Event, ...]) -> tuple[Action, ...]:
    return tuple(event for event in seen[len(events) :] if isinstance(event, Action))


def _shortened(
    deps: ChainDeps, events: tuple[Event, ...], about: About, most: int
) -> tuple[Event, ...] | None:
    """Return the events with a condensation that leaves at most so many tokens in view.

    Where none does, with the one that leaves fewest; `None` where nothing has to be left out, or
    nothing can be.
    """
    now = deps.tokens(events, about)
    if now <= most:
        return None

    def measure(cut: Condensation) -> int:
        return deps.tokens((*events, _condensation(len(events), cut)), about)

    cut = cut_to_fit(deps.history(events), len(events), most=most, now=now, measure=measure)
    return None if cut is None else (*events, _condensation(len(events), cut))


def _condensation(place: int, cut: Condensation) -> Action:
    return Action(id=place, source="environment", name=CONDENSATION, arguments=cut.arguments())


@checked
def act_node(deps: ChainDeps) -> Node[RunState]:
    """Make the node that does what was asked for.

    A message is answered by the scripted user; everything else is observed.
    """
    run = deps.run

    def act(state: RunState) -> Program[Call, Update]:
        action, surplus = _requested(deps, state)
        seen: Observation | None
        if action.name in IN_WORKSPACE:
            seen, seconds = yield from run.acting(state, action)
        else:
            began = run.clock()
            seen = _observed(action, deps.browse)
            seconds = run.clock() - began
        return _done(deps, state, _events(deps, action, surplus, seen), seconds)

    return Node.running("act", act, in_threads=True)


def _requested(deps: ChainDeps, state: RunState) -> tuple[Action, str]:
    """Return the action that is to be done, and what to say of further calls."""
    requested: dict[str, Any] = deps.run.read(state["said"])
    action = Action(
        id=len(deps.run.log(state).events),
        source="agent",
        name=requested["name"],
        arguments=requested["arguments"],
        thought=requested["thought"],
    )
    return action, surplus_text(requested["surplus"])


def _observed(action: Action, browse: Browse | None) -> Observation | None:
    """Observe what needs no workspace; nothing is observed of a message."""
    if action.name == MESSAGE:
        return None
    text, failed = _OBSERVED.get(action.name, ""), False
    if action.name == INVALID:
        problem = str(action.arguments.get("problem", ""))[:_LONGEST_PROBLEM]
        text, failed = f"Not done: {problem}.", True
    elif action.name == BROWSE and browse is not None:
        text, failed = _read_page(browse, str(action.arguments.get("url", "")))
    seen = kept_text(text)
    return Observation(id=action.id + 1, cause=action.id, text=seen, failed=failed)


def _read_page(browse: Browse, url: str) -> tuple[str, bool]:
    try:
        return str(browse(url)), False
    except Exception as error:  # noqa: BLE001 - whatever a page does, the run goes on
        return f"The page could not be read: {type(error).__name__}: {error}", True


def _done(deps: ChainDeps, state: RunState, events: Sequence[Event], seconds: float) -> Update:
    done = events[0]
    update: Update = {
        "log": append_events(deps.run.artifacts, state.get("log", ""), events),
        "steps": state.get("steps", 0) + 1,
        "said": "",
        "spent": spend(state, seconds=seconds),
    }
    return (
        {**update, "ended": FINISHED}
        if isinstance(done, Action) and done.name == FINISH
        else update
    )


def _events(deps: ChainDeps, action: Action, surplus: str, seen: Observation | None) -> list[Event]:
    """Return an action, what was observed of it, and what the user says to it."""
    events: list[Event] = [action] if seen is None else [action, seen]
    answer = surplus
    if action.name == MESSAGE:
        problem = no_call_text(str(action.arguments.get("failure", "")))
        answer = deps.instructions.prompts.go_on.render(problem=problem).strip()
    if answer:
        place = action.id + len(events)
        arguments: dict[str, JsonValue] = {"text": answer}
        message = Action(
            id=place, source="user", cause=action.id, name=MESSAGE, arguments=arguments
        )
        events.append(message)
    return events
