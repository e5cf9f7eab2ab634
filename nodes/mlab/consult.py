"""What MLAB's tools ask a model: to edit a script, to read a file, to shorten an observation.

The node `consult` asks what a tool needs a model for before the action is done. The answer becomes
a part of the action, so that doing it again, where a workspace has to be built anew, asks no model.
Each question ends with a text, or says why there is none; a failure of the model ends no run.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from langchain_core.messages import HumanMessage

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program
from langgraft.environments.sandboxes.result_text import trimmed
from langgraft.memory.model import strip_block
from langgraft.nodes.dialogue import Dialogue, Model, Request, Response, responding
from langgraft.nodes.mlab import tools
from langgraft.nodes.mlab.deps import LONGEST_SHOWN, MLABDeps, MLABPrompts, sample_name
from langgraft.nodes.node import Node, Update
from langgraft.nodes.program_text import asking_for_program, quotable
from langgraft.nodes.replies import encodable
from langgraft.nodes.workbench.deps import Metered, RunDeps, metered
from langgraft.nodes.workbench.files import (
    ToolError,
    inside_path,
    reading,
    reading_or_none,
    writable_path,
)
from langgraft.nodes.workbench.log import Action
from langgraft.nodes.workbench.performing import KernelProgram
from langgraft.nodes.workbench.state import RunState

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
