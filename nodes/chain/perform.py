"""What the chain agent's actions do in its workspace."""

from typing import Final

from langgraft.environments.competitions.competition import Competition
from langgraft.nodes.chain.editing import perform_edit
from langgraft.nodes.chain.tools import EDIT_FILE, RUN_BASH, RUN_PYTHON, VALIDATE_SUBMISSION
from langgraft.nodes.workbench.events import Action
from langgraft.nodes.workbench.kernel_calls import KernelTalk
from langgraft.nodes.workbench.performing import (
    Performed,
    Performer,
    perform_cell,
    perform_command,
)
from langgraft.nodes.workbench.validation import perform_validation

CHANGING: Final = frozenset({RUN_BASH, RUN_PYTHON, EDIT_FILE})
"""Actions that may change a workspace."""
IN_WORKSPACE: Final = CHANGING | {VALIDATE_SUBMISSION}
"""Actions that need one."""


def performer(competition: Competition) -> Performer:
    """Return what does the chain agent's actions."""

    def perform(action: Action) -> KernelTalk[Performed]:
        arguments = action.arguments
        if action.name == RUN_BASH:
            return (yield from perform_command(str(arguments["command"])))
        if action.name == RUN_PYTHON:
            return (yield from perform_cell(str(arguments["code"])))
        if action.name == EDIT_FILE:
            return (yield from perform_edit(arguments, competition.public_dir))
        return (yield from perform_validation(competition))

    return perform
