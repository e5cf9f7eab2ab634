"""What MLAB's nodes depend on, and what its prompts say: the task, the last steps, and what is left.

A step is shown by its six fields as the model wrote them, and by what was observed.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from langgraft._core.texts import Prompt
from langgraft.environments.sandboxes.result_text import trimmed
from langgraft.nodes.competition_run import BOUNDS
from langgraft.nodes.mlab.tools import FIELDS, FINAL_ANSWER, THOUGHT, described_tools
from langgraft.nodes.program_text import quotable
from langgraft.nodes.prompts import PromptSet, prompt_field
from langgraft.nodes.replies import encodable
from langgraft.nodes.workbench.deps import RunDeps
from langgraft.nodes.workbench.log import Action, EventLog, Observation, RunState
from langgraft.nodes.workbench.memory import recalled_in


@dataclass(frozen=True, slots=True)
class MLABPrompts(PromptSet):
    """The prompts of MLAB, each with the placeholders that it may have."""

    task: Prompt = prompt_field("mlab_task", "task tools data memory packages ending window format")
    """What each prompt begins with."""
    turn: Prompt = prompt_field("mlab_turn", "steps bounds number")
    """What each prompt ends with."""
    bounds: Prompt = prompt_field("bounds", BOUNDS)
    """What becomes `$bounds`."""
    use_all_time: Prompt = prompt_field("use_all_time", "finish")
    """What becomes `$ending`, where the agent is asked to."""
    may_finish: Prompt = prompt_field("may_finish", "finish")
    """What becomes `$ending` otherwise."""
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
    use_all_time: bool = True
    """Whether the agent is asked to use all its steps and time, or may finish before."""


def sample_name(state: RunState) -> tuple[str, str]:
    """Name whose samples the calls of a step are."""
    return state["episode_id"], f"step-{state.get('steps', 0)}"


SUMMARY: Final = "summary"
"""Event: what a model made of an observation that is too long to be shown; `text`, `why`, `calls`."""
LONGEST_SHOWN: Final = 5000
"""Most characters of an observation that are shown (MLAB's figure)."""
NO_STEPS: Final = "(none yet)"
_CLIPPED: Final = (2500, 1000, 300)
"""Characters of an observation that stay where a prompt is too long, one after the other."""
_TASK: Final = (8000, 4000, 2000, 1000, 300)
"""Characters of the task, and of the data's preview, that stay after that."""


@dataclass(frozen=True, slots=True)
class PromptExtent:
    """How much of a run a prompt shows."""

    window: int
    """Most steps."""
    room: int = LONGEST_SHOWN
    """Most characters of one observation, and of one field."""
    task: int | None = None
    """Most characters of the task and of the data's preview; `None` sets no limit."""


def extents(window: int) -> Iterator[PromptExtent]:
    """Yield how a prompt is made shorter and shorter, beginning with all it is to show.

    First older steps go, then the middles of what is left of them, and at last those of the task.
    """
    for steps in range(window, 0, -1):
        yield PromptExtent(steps)
    for room in _CLIPPED:
        yield PromptExtent(1, room)
    for task in _TASK:
        yield PromptExtent(1, _CLIPPED[-1], task)


def prompt_text(deps: MLABDeps, state: RunState, extent: PromptExtent) -> str:
    """Return the prompt for the next step."""
    log = deps.run.log(state)
    task = _task(deps, state, log, extent)
    return encodable(f"{task.strip()}\n\n{_turn(deps, state, log, extent).strip()}\n")


def reply_form(deps: MLABDeps) -> str:
    """Return what a reply has to look like, as a prompt says it."""
    return deps.prompts.format.render().strip()


def _task(deps: MLABDeps, state: RunState, log: EventLog, extent: PromptExtent) -> str:
    preview = deps.run.artifacts.read(state["begun"]["preview"]).decode()
    task = deps.run.competition.description.strip()
    recalled = recalled_in(log) or ""
    if extent.task is not None:
        task, preview = trimmed(task, extent.task), trimmed(preview, extent.task)
    prompts = deps.prompts
    ending = prompts.use_all_time if deps.use_all_time else prompts.may_finish
    return prompts.task.render(
        task=task,
        tools=described_tools(),
        data=preview.strip(),
        memory=f"{recalled}\n" if recalled else "",
        packages=", ".join(deps.packages),
        ending=ending.render(finish=FINAL_ANSWER).strip(),
        window=str(deps.window),
        format=reply_form(deps),
    )


def _turn(deps: MLABDeps, state: RunState, log: EventLog, extent: PromptExtent) -> str:
    return deps.prompts.turn.render(
        steps=window_text(log, extent.window, room=extent.room),
        bounds=deps.run.bounds_text(deps.prompts.bounds, state),
        number=str(state.get("steps", 0)),
    )


def window_text(log: EventLog, window: int, *, room: int = LONGEST_SHOWN) -> str:
    """Write the last steps of a run.

    Args:
        log: What happened so far.
        window: How many steps are shown, at most.
        room: Most characters of one observation, and of one field.
    """
    actions = [
        event for event in log.events if isinstance(event, Action) and event.source == "agent"
    ]
    first = max(len(actions) - window, 0)
    steps = [
        _step(log, action, number, room) for number, action in enumerate(actions) if number >= first
    ]
    return "\n\n".join(steps) or NO_STEPS


def _step(log: EventLog, action: Action, number: int, room: int) -> str:
    fields = six_fields(action)
    shown = trimmed(_shown(log, action), room) or "(nothing)"
    return "\n".join(
        [
            f"## Step {number}",
            *(f"{name}: {trimmed(fields[name], room)}" for name in FIELDS),
            "Observation:",
            f"```\n{quotable(shown)}\n```",
        ]
    )


def six_fields(action: Action) -> dict[str, str]:
    """Return the six fields of the reply that an action was made of."""
    said: Any = action.arguments["fields"]
    return {**said, THOUGHT: action.thought}


def _shown(log: EventLog, action: Action) -> str:
    """Return what is shown of an action: what was observed, or the summary of it."""
    text = ""
    for event in log.events[action.id + 1 :]:
        if isinstance(event, Action) and event.source == "agent":
            break
        if isinstance(event, Observation) and event.cause == action.id:
            text = event.text
        if isinstance(event, Action) and event.name == SUMMARY:
            text = str(event.arguments.get("text", ""))
    return text
