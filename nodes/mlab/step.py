"""`think`, `act` and `summarize`: ask for a step, do it, with what its tools ask a model, and shorten what it shows.

The node `consult` asks what a tool needs a model for before the action is done. The answer becomes
a part of the action, so that doing it again, where a workspace has to be built anew, asks no model.
Each question ends with a text, or says why there is none; a failure of the model ends no run.

A reply that has not the form is asked for again.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, cast

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program
from langgraft.environments.sandboxes.result_text import trimmed
from langgraft.memory.model import strip_block
from langgraft.nodes.dialogue import (
    CUT_SHORT,
    Dialogue,
    Model,
    Node,
    Request,
    Response,
    Update,
    dialogue_node,
    responding,
)
from langgraft.nodes.mlab import tools
from langgraft.nodes.mlab.deps import (
    LONGEST_SHOWN,
    SUMMARY,
    MLABDeps,
    MLABPrompts,
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
from langgraft.nodes.program_text import asking_for_program, quotable
from langgraft.nodes.replies import encodable, in_turns
from langgraft.nodes.structured import REPLY_SHOWN
from langgraft.nodes.workbench.deps import Metered, RunDeps, metered
from langgraft.nodes.workbench.files import (
    ToolError,
    inside_path,
    reading,
    reading_or_none,
    writable_path,
)
from langgraft.nodes.workbench.limits import ended_by, spend
from langgraft.nodes.workbench.log import (
    INVALID,
    Action,
    EventLog,
    Observation,
    RunState,
    append_events,
    command_of,
)
from langgraft.nodes.workbench.performing import KernelProgram, observed

CONSULTING: Final = frozenset({tools.EDIT, tools.UNDERSTAND})
"""Tools that need a model's answer."""
LONGEST_ANSWER: Final = 20_000
"""Most characters kept of what a model says about a file."""
LONGEST_SCRIPT: Final = 100_000
"""Most characters of a script that a model is asked to edit."""
SHORTEST: Final = 1000
"""A part that is too long for a model's context is halved down to this."""
_SILENT: Final = "the model said nothing"


@dataclass(frozen=True, slots=True)
class _Looked:
    """What a model is to be shown."""

    text: str
    problem: str = ""
    """Why there is nothing to ask."""


@checked
def consult_node(deps: MLABDeps, edit_model: Model, reading_model: Model) -> Node[RunState]:
    """Make the node that asks what a tool needs a model for; other tools have no answer.

    Args:
        deps: What MLAB's nodes depend on.
        edit_model: Edits scripts.
        reading_model: Reads files.
    """
    run, prompts = deps.run, deps.prompts

    def consult(state: RunState) -> Program[Call, Update]:
        action, log = said_action(run, state), run.log(state)
        looked: _Looked = yield Call(
            run.workspaces.look,
            run.workspaces.alook,
            state["episode_id"],
            log,
            lambda: _looking(run, action),
        )
        asking = _asking(run, state, action, looked, prompts)
        model = edit_model if action.name == tools.EDIT else reading_model
        return (yield from responding(asking, model, sample_name(state)))

    return Node.running("consult", consult, in_threads=True)


def needs_model(run: RunDeps, state: RunState) -> bool:
    """Whether the action that is to be done next needs a model's answer."""
    return said_action(run, state).name in CONSULTING


def said_action(run: RunDeps, state: RunState) -> Action:
    """Return the action that is to be done next."""
    return Action.model_validate(run.read(state["said"]))


def _looking(run: RunDeps, action: Action) -> KernelProgram[_Looked]:
    """Read the file that a model is to be shown; a script that is not there yet is empty."""
    given = cast("Mapping[str, Any]", action.arguments["input"])  # as `read_reply` made it
    data = run.competition.input_dir
    try:
        if action.name == tools.UNDERSTAND:
            path = inside_path(given["file_name"])
            return _Looked((yield from reading(path, data)))
        writable_path(given["save_name"])
        path = inside_path(given["script_name"])
        code = (yield from reading_or_none(path, data)) or ""
    except ToolError as error:
        return _Looked("", str(error))
    if len(code) > LONGEST_SCRIPT:
        problem = f"{path} has {len(code):,} characters, and at most {LONGEST_SCRIPT:,} are edited"
        return _Looked("", problem)
    return _Looked(code)


def _asking(
    run: RunDeps, state: RunState, action: Action, looked: _Looked, prompts: MLABPrompts
) -> Dialogue[Update]:
    if looked.problem:
        return _answered(run, action, {"told": looked.problem})
    given = cast("Mapping[str, Any]", action.arguments["input"])  # as `read_reply` made it
    if action.name == tools.UNDERSTAND:
        name, wanted = given["file_name"], given["things_to_look_for"]
        dialogue = understanding(name, looked.text, wanted, prompts)
    else:
        name, wanted = given["script_name"], given["edit_instruction"]
        dialogue = editing(name, looked.text, wanted, prompts)
    came: Metered[Answered] = yield from metered(run, state, dialogue)
    answered = came.value
    arguments: dict[str, Any] = {
        "answer": answered.text,
        "why": answered.why,
        "calls": answered.calls,
    }
    if not answered.text:
        arguments = {"told": f"no model gave an answer ({answered.why})", "calls": answered.calls}
    return {**_answered(run, action, arguments), "spent": came.spent}


def _answered(run: RunDeps, action: Action, added: Mapping[str, Any]) -> Update:
    longer = action.model_copy(update={"arguments": {**action.arguments, **added}})
    return {"said": run.keep(longer.model_dump(mode="json"))}


@dataclass(frozen=True, slots=True)
class Answered:
    """What came of asking."""

    text: str
    """Empty where there is no answer."""
    why: str
    """`ok`, or why there is none, or what is missing in it."""
    calls: int


def editing(name: str, code: str, instruction: str, prompts: MLABPrompts) -> Dialogue[Answered]:
    """Ask for a script after an edit, and again where no reply holds one.

    A script that does not compile counts where no later reply has a better one: the agent sees
    what is wrong with it when it runs it.
    """
    shown = prompts.edit.render(name=name, code=quotable(code.rstrip()), instruction=instruction)
    question = HumanMessage(encodable(shown))
    reply = yield from asking_for_program([question], "edit", prompts.edit_repair)
    return Answered(reply.found.code, reply.why, reply.calls)


def understanding(name: str, text: str, question: str, prompts: MLABPrompts) -> Dialogue[Answered]:
    """Ask what a file holds about a question: part by part, and then for all of it."""
    parts = _parts(text)[: tools.BLOCKS]
    given = {"name": name, "question": question, "parts": str(len(parts))}
    found: list[str] = []
    calls = failed = 0
    for number, part in enumerate(parts, start=1):
        shown = _Shown(part, {**given, "part": str(number)})
        response, asked = yield from _reading(shown, prompts, "understand")
        calls += asked
        failed += _fails(response)
        found.append(_text_or_failure(response, f"part {number} could not be read"))
    if failed == len(parts):
        return Answered("", response.failure or _SILENT, calls)
    answer, why = found[0], "ok"
    if len(found) > 1:
        listed = "\n\n".join(f"Part {at}:\n{each}" for at, each in enumerate(found, start=1))
        answer = trimmed(listed, LONGEST_ANSWER)
        asked_all = prompts.understand_all.render(name=name, question=question, found=answer)
        response = yield Request([HumanMessage(encodable(asked_all))], "understand")
        calls += 1
        answer = answer if _fails(response) else response.text.strip()
    if len(text) > tools.BLOCK * tools.BLOCKS:
        why = f"only the first {tools.BLOCK * tools.BLOCKS:,} of {len(text):,} characters were read"
        answer = f"{answer}\n\n[{why}]"
    return Answered(_kept(answer, LONGEST_ANSWER), why, calls)


def summarizing(action: str, text: str, prompts: MLABPrompts) -> Dialogue[Answered]:
    """Ask for an observation in short; where that fails, its beginning and end are shown."""
    parts = _parts(text)
    room = LONGEST_SHOWN // len(parts)
    given = {"action": action, "parts": str(len(parts)), "limit": str(room)}
    found: list[str] = []
    calls = 0
    for number, part in enumerate(parts, start=1):
        shown = _Shown(part, {**given, "part": str(number)})
        response, asked = yield from _reading(shown, prompts, "summarize")
        calls += asked
        if _fails(response):
            why = response.failure or _SILENT
            return Answered(trimmed(text, LONGEST_SHOWN), why, calls)
        found.append(trimmed(response.text.strip(), room))
    return Answered(_kept("\n\n".join(found), LONGEST_SHOWN), "ok", calls)


@dataclass(frozen=True, slots=True)
class _Shown:
    part: str
    given: dict[str, str]


def _reading(shown: _Shown, prompts: MLABPrompts, what: str) -> Dialogue[tuple[Response, int]]:
    """Have a part read; one that is too long for the model is cut until it is not."""
    prompt = prompts.understand if what == "understand" else prompts.summarize
    part, calls = shown.part, 0
    while True:
        asked = prompt.render(**shown.given, text=quotable(part))
        response = yield Request([HumanMessage(encodable(asked))], what)
        calls += 1
        if not response.overflow or len(part) <= SHORTEST:
            return response, calls
        part = trimmed(part, len(part) // 2)


def _parts(text: str) -> Sequence[str]:
    return [text[at : at + tools.BLOCK] for at in range(0, len(text), tools.BLOCK)] or [""]


def _fails(response: Response) -> bool:
    return bool(response.failure) or not response.text.strip()


def _text_or_failure(response: Response, otherwise: str) -> str:
    why = response.failure or _SILENT
    return f"[{otherwise}: {why}]" if _fails(response) else response.text.strip()


def _kept(text: str, room: int) -> str:
    return trimmed(strip_block(encodable(text)), room)


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
