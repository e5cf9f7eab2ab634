"""`think` and `act`: ask for the next action, do it in the workspace, and note it in the log with what came of it.

What a file was before `edit_file` changed it is kept in the workspace itself, so that a workspace
which is built anew can take changes back, too.

A prompt that is too long is made shorter, and is never fatal.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, TypeAlias

from pydantic import JsonValue

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program
from langgraft.environments.competitions.competition import Competition
from langgraft.nodes.chain.deps import About, Browse, ChainDeps
from langgraft.nodes.chain.stuck import first_condensation
from langgraft.nodes.chain.tools import (
    BROWSE,
    EDIT_FILE,
    FINISH,
    JOB,
    RUN_BASH,
    RUN_PYTHON,
    THINK,
    VALIDATE_SUBMISSION,
    RequestedAction,
    no_call_text,
    requested_action,
    surplus_text,
)
from langgraft.nodes.chain.visible_history import Condensation, cut_to_fit
from langgraft.nodes.dialogue import Dialogue, Model, Node, Request, Update, dialogue_node
from langgraft.nodes.workbench.deps import metered
from langgraft.nodes.workbench.files import (
    ToolError,
    inside,
    inside_path,
    reading,
    writable_path,
    writing,
)
from langgraft.nodes.workbench.limits import ended_by, spend
from langgraft.nodes.workbench.log import (
    CONDENSATION,
    INVALID,
    MESSAGE,
    Action,
    Event,
    Observation,
    RunState,
    append_events,
    keepable,
)
from langgraft.nodes.workbench.performing import (
    KernelProgram,
    Performed,
    Performer,
    kept_text,
    perform_cell,
    perform_command,
    perform_job,
)
from langgraft.nodes.workbench.sessions import Repeater
from langgraft.nodes.workbench.start import perform_validation

CHANGING: Final = frozenset({RUN_BASH, RUN_PYTHON, EDIT_FILE, JOB})
"""Actions that may change a workspace."""
IN_WORKSPACE: Final = CHANGING | {VALIDATE_SUBMISSION}
"""Actions that need one."""
Does: TypeAlias = Callable[[str, Mapping[str, Any], Path], KernelProgram[str]]
"""Does one of the commands with a file, and returns what is observed of it."""
_AROUND: Final = 4
"""Lines shown before and after a change (OpenHands' figure)."""
_LONGEST_LINE: Final = 2_000


def performer(competition: Competition, soft_seconds: float | None = None) -> Performer:
    """Return what does the chain agent's actions.

    Args:
        competition: Whose data there is.
        soft_seconds: After which a command goes on as a job; `None`: it is waited for.
    """

    def perform(action: Action) -> KernelProgram[Performed]:
        arguments = action.arguments
        if action.name == JOB and soft_seconds is not None:
            wait = arguments.get("wait")
            asked = min(wait, soft_seconds) if isinstance(wait, int) else soft_seconds
            return (yield from perform_job(arguments, wait=asked))
        if action.name == RUN_BASH and soft_seconds is not None:
            line = {"line": str(arguments["command"])}
            return (yield from perform_job(line, wait=soft_seconds))
        if action.name == RUN_BASH:
            return (yield from perform_command(str(arguments["command"])))
        if action.name == RUN_PYTHON:
            return (yield from perform_cell(str(arguments["code"])))
        if action.name == EDIT_FILE:
            return (yield from perform_edit(arguments, competition.input_dir))
        return (yield from perform_validation(competition))

    return perform


def repeater(competition: Competition, soft_seconds: float | None = None) -> Repeater:
    """Return what does the chain agent's actions again, where a workspace is built anew.

    A job that had ended when it was looked at is waited for until it ends, and any other is not.
    """
    perform = performer(competition, soft_seconds)

    def repeat(action: Action, before: Observation) -> KernelProgram[Performed]:
        if soft_seconds is None or action.name not in (RUN_BASH, JOB):
            return (yield from perform(action))
        ask = action.arguments
        if action.name == RUN_BASH:
            ask = {"line": str(ask["command"])}
        return (yield from perform_job(ask, wait=0.0 if before.running else math.inf))

    return repeat


def perform_edit(arguments: Mapping[str, Any], data: Path) -> KernelProgram[Performed]:
    """Do what a call of `edit_file` asks for.

    Args:
        arguments: Of the call, checked.
        data: The folder that lies in `./input`, which the host has too.
    """
    does = _COMMANDS[arguments["command"]]
    try:
        return Performed((yield from does(arguments["path"], arguments, data)))
    except ToolError as error:
        return Performed(f"Not done: {error}.", failed=True, result=error.lost)


def _view(given: str, arguments: Mapping[str, Any], data: Path) -> KernelProgram[str]:
    path = inside_path(given)
    lines = (yield from reading(path, data)).splitlines()
    first, last = _range(arguments.get("view_range"), len(lines))
    shown = _numbered(lines, first, last)
    return f"{path}, lines {first} to {last} of {len(lines)}:\n{shown}" if lines else "It is empty."


def _create(given: str, arguments: Mapping[str, Any], _data: Path) -> KernelProgram[str]:
    path, text = writable_path(given), _needed(arguments, "file_text")
    yield from _changed(path, text)
    return f"{path} was written: {len(text.splitlines()):,} lines."


def _replace(given: str, arguments: Mapping[str, Any], data: Path) -> KernelProgram[str]:
    path, old = writable_path(given), _needed(arguments, "old_str")
    new = str(arguments.get("new_str") or "")
    text = yield from reading(path, data)
    count = text.count(old) if old else 0
    if count != 1:
        there = "is not in" if count == 0 else f"is {count:,} times in"
        raise ToolError(f"`old_str` {there} {path}, and must be there exactly once, to the letter")
    if old == new:
        raise ToolError("`new_str` is the same as `old_str`")
    yield from _changed(path, text.replace(old, new))
    before = text[: text.index(old)].count("\n")
    return _changed_lines(path, text.replace(old, new), before, len(new.splitlines()))


def _insert(given: str, arguments: Mapping[str, Any], data: Path) -> KernelProgram[str]:
    path, new = writable_path(given), _needed(arguments, "new_str")
    after = int(_needed(arguments, "insert_line"))
    text = yield from reading(path, data)
    lines = text.splitlines(keepends=True)
    if not 0 <= after <= len(lines):
        raise ToolError(f"`insert_line` is from 0 to {len(lines)}, the number of lines of {path}")
    if after and not lines[after - 1].endswith(("\n", "\r")):
        lines[after - 1] += "\n"
    put = new if new.endswith("\n") or after == len(lines) else f"{new}\n"
    changed = "".join([*lines[:after], put, *lines[after:]])
    yield from _changed(path, changed)
    return _changed_lines(path, changed, after, len(new.splitlines()))


def _undo(given: str, _arguments: Mapping[str, Any], _data: Path) -> KernelProgram[str]:
    report = yield from inside("take back", writable_path(given))
    return report.removesuffix(" It now reads:")


_COMMANDS: Final[dict[str, Does]] = {
    "view": _view,
    "create": _create,
    "str_replace": _replace,
    "insert": _insert,
    "undo_edit": _undo,
}


def _changed(path: str, text: str) -> KernelProgram[None]:
    yield from inside("keep", path)
    yield from writing(path, text)


def _needed(arguments: Mapping[str, Any], name: str) -> Any:
    if arguments.get(name) is None:
        raise ToolError(f"`{arguments['command']}` needs `{name}`")
    return arguments[name]


def _range(given: Any, count: int) -> tuple[int, int]:
    """Return the first and the last line to show."""
    if given is None:
        return min(1, count), count
    if len(given) != 2:  # noqa: PLR2004 - first and last
        raise ToolError("`view_range` is the first and the last line, such as [1, 40]")
    first, last = given[0], count if given[1] == -1 else min(given[1], count)
    if not 1 <= first <= last:
        raise ToolError(f"`view_range` has to lie within its {count:,} lines, first before last")
    return first, last


def _changed_lines(path: str, text: str, before: int, changed: int) -> str:
    """Tell a change by the lines around it; `before` lines come before it."""
    lines = text.splitlines()
    if not lines:
        return f"{path} was changed. It is empty now."
    first, last = max(before + 1 - _AROUND, 1), min(before + changed + _AROUND, len(lines))
    return f"{path} was changed. Lines {first} to {last} now read:\n{_numbered(lines, first, last)}"


def _numbered(lines: list[str], first: int, last: int) -> str:
    shown = enumerate(lines[max(first - 1, 0) : last], start=first)
    return "\n".join(f"{number:>6}  {line[:_LONGEST_LINE]}" for number, line in shown)


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
