"""What MLAB's nodes depend on: `MLABDeps`, one object for them all, and the prompts in it."""

from collections.abc import Sequence
from dataclasses import dataclass

from langgraft._core.prompts import Prompt
from langgraft.nodes.prompts import PromptSet, prompt_field
from langgraft.nodes.workbench.deps import RunDeps
from langgraft.nodes.workbench.state import RunState


@dataclass(frozen=True, slots=True)
class MLABPrompts(PromptSet):
    """The prompts of MLAB, each with the placeholders that it may have."""

    task: Prompt = prompt_field("mlab_task", "task tools data memory packages limit window format")
    """What each prompt begins with."""
    turn: Prompt = prompt_field("mlab_turn", "steps left all time number")
    """What each prompt ends with."""
    format: Prompt = prompt_field("mlab_format")
    """What becomes `$format`."""
    repair: Prompt = prompt_field("mlab_repair", "problem format")
    """Asks again for a reply."""
    edit: Prompt = prompt_field("mlab_edit", "name code instruction")
    edit_repair: Prompt = prompt_field("mlab_edit_repair", "problem")
    """Asks again for a script."""
    understand: Prompt = prompt_field("mlab_understand", "name question text part parts")
    """Reads a part of a file."""
    understand_all: Prompt = prompt_field("mlab_understand_all", "name question found")
    """Puts together what the parts held."""
    summarize: Prompt = prompt_field("mlab_summarize", "action text part parts limit")
    diagnose: Prompt = prompt_field("diagnose", "code output analysis rules")


@dataclass(frozen=True, slots=True)
class MLABDeps:
    """What MLAB's nodes depend on, beside models and memory."""

    run: RunDeps
    prompts: MLABPrompts
    packages: Sequence[str]
    """What the prompt says can be imported."""
    window: int
    """Steps that a prompt shows."""


def sample_name(state: RunState) -> tuple[str, str]:
    """Name whose samples the calls of a step are."""
    return state["episode_id"], f"step-{state.get('steps', 0)}"
