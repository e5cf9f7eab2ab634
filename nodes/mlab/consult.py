"""`consult`: what a tool needs a model for is asked before the action is done.

The answer becomes a part of the action, so that doing it again, where a workspace has to be built
anew, asks no model.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, cast

from langgraft._core.arguments import checked
from langgraft.nodes.chat_models import Model
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.mlab import tools
from langgraft.nodes.mlab.answers import LONGEST_SCRIPT, Answered, editing, understanding
from langgraft.nodes.mlab.prompting import MLABPrompts
from langgraft.nodes.mlab.think import of_step
from langgraft.nodes.talking import Talk, atalk, talk
from langgraft.nodes.workbench.desk import Desk
from langgraft.nodes.workbench.events import Action
from langgraft.nodes.workbench.files import (
    ToldError,
    inside_path,
    reading,
    reading_or_none,
    writable_path,
)
from langgraft.nodes.workbench.kernel_calls import KernelTalk
from langgraft.nodes.workbench.metering import Metered, metered
from langgraft.nodes.workbench.state import RunState

CONSULTING: Final = frozenset({tools.EDIT, tools.UNDERSTAND})
"""Tools that need a model's answer."""


@dataclass(frozen=True, slots=True)
class _Looked:
    """What a model is to be shown."""

    text: str
    told: str = ""
    """Why there is nothing to ask."""


@checked
def consult_node(
    desk: Desk, edit_model: Model, reading_model: Model, prompts: MLABPrompts
) -> GraphNode[RunState]:
    """Make the node that asks what a tool needs a model for; other tools have no answer.

    Args:
        desk: What all nodes of the run share.
        edit_model: Edits scripts.
        reading_model: Reads files.
        prompts: For both.
    """

    def model(action: Action) -> Model:
        return edit_model if action.name == tools.EDIT else reading_model

    def consult(state: RunState) -> Update:
        action = said_action(desk, state)
        log = desk.log(state)
        looked = desk.workspaces.look(state["episode_id"], log, lambda: _looking(desk, action))
        return talk(_asking(desk, state, action, looked, prompts), model(action), *of_step(state))

    async def aconsult(state: RunState) -> Update:
        action = await asyncio.to_thread(said_action, desk, state)
        log = await asyncio.to_thread(desk.log, state)
        looked = await desk.workspaces.alook(
            state["episode_id"], log, lambda: _looking(desk, action)
        )
        asking = _asking(desk, state, action, looked, prompts)
        return await atalk(asking, model(action), *of_step(state))

    return GraphNode("consult", consult, aconsult)


def needs_model(desk: Desk, state: RunState) -> bool:
    """Whether the action that is to be done next needs a model's answer."""
    return said_action(desk, state).name in CONSULTING


def said_action(desk: Desk, state: RunState) -> Action:
    """Return the action that is to be done next."""
    return Action.model_validate(desk.read(state["said"]))


def _looking(desk: Desk, action: Action) -> KernelTalk[_Looked]:
    """Read the file that a model is to be shown; a script that is not there yet is empty."""
    given = cast("Mapping[str, Any]", action.arguments["input"])  # as `read_reply` made it
    data = desk.competition.public_dir
    try:
        if action.name == tools.UNDERSTAND:
            path = inside_path(given["file_name"])
            return _Looked((yield from reading(path, data)))
        writable_path(given["save_name"])
        path = inside_path(given["script_name"])
        code = (yield from reading_or_none(path, data)) or ""
    except ToldError as error:
        return _Looked("", str(error))
    if len(code) > LONGEST_SCRIPT:
        told = f"{path} has {len(code):,} characters, and at most {LONGEST_SCRIPT:,} are edited"
        return _Looked("", told)
    return _Looked(code)


def _asking(
    desk: Desk, state: RunState, action: Action, looked: _Looked, prompts: MLABPrompts
) -> Talk[Update]:
    if looked.told:
        return _answered(desk, action, {"told": looked.told})
    given = cast("Mapping[str, Any]", action.arguments["input"])  # as `read_reply` made it
    if action.name == tools.UNDERSTAND:
        name, wanted = given["file_name"], given["things_to_look_for"]
        held = understanding(name, looked.text, wanted, prompts)
    else:
        name, wanted = given["script_name"], given["edit_instruction"]
        held = editing(name, looked.text, wanted, prompts)
    came: Metered[Answered] = yield from metered(desk, state, held)
    answered = came.value
    said: dict[str, Any] = {"answer": answered.text, "why": answered.why, "calls": answered.calls}
    if not answered.text:
        said = {"told": f"no model gave an answer ({answered.why})", "calls": answered.calls}
    return {**_answered(desk, action, said), "spent": came.spent}


def _answered(desk: Desk, action: Action, said: Mapping[str, Any]) -> Update:
    longer = action.model_copy(update={"arguments": {**action.arguments, **said}})
    return {"said": desk.keep(longer.model_dump(mode="json"))}
