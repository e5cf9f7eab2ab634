"""`reflect`: distill lessons from a finished episode (continual-memory §3, *Insight*)."""

import json
import re
from collections.abc import Sequence
from functools import partial
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage, HumanMessage
from langchain_core.runnables import Runnable
from langchain_core.utils.json import parse_json_markdown

from langgraft._core.prompts import Prompt
from langgraft.memory.episodes import Outcome, Step, render_trajectory
from langgraft.memory.recall import strip_block
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.replies import encodable
from langgraft.nodes.state import AgentState, Node, StepState, Update

MAX_LESSONS = 3
"""About three insights per episode (continual-memory §A.1.4)."""

_LIST = re.compile(r"\[\s*(?:\{.*\}\s*)?\]", re.DOTALL)
# Line breaks within strings are a common slip; a list that is cut off is not repaired.
_loads = partial(json.loads, strict=False)


def reflect_node(
    model: BaseChatModel, *, prompt: Prompt | None = None, max_lessons: int = MAX_LESSONS
) -> Runnable[AgentState, Update]:
    """Make the node that asks a model for lessons.

    A reply that cannot be read gives no lessons; `reflection` in the state then says why.

    Args:
        model: Any chat model.
        prompt: Prompt with the placeholders `$task`, `$outcome`, `$trajectory`, `$limit`.
        max_lessons: Most lessons kept of one episode.
    """
    template = prompt or shipped("reflect")

    def messages(state: AgentState) -> list[BaseMessage]:
        steps = episode_steps(state["steps"])
        outcome = Outcome(state["success"], state["score"], state["reason"])
        return reflection_messages(template, state["instruction"], steps, outcome, max_lessons)

    def reflect(state: AgentState) -> Update:
        return _lessons(model.invoke(messages(state)), max_lessons)

    async def areflect(state: AgentState) -> Update:
        return _lessons(await model.ainvoke(messages(state)), max_lessons)

    return Node("reflect", reflect, areflect)


def reflection_messages(
    template: Prompt, task: str, steps: Sequence[Step], outcome: Outcome, limit: int
) -> list[BaseMessage]:
    """Write the question for lessons."""
    ended = {True: "success", False: f"failure ({outcome.reason})", None: "unknown"}
    text = template.render(
        task=task,
        outcome=ended[outcome.success],
        trajectory=render_trajectory(steps, result=""),
        limit=str(limit),
    )
    return [HumanMessage(text)]


def episode_steps(steps: Sequence[StepState]) -> tuple[Step, ...]:
    """Turn the steps of a graph's state into those of an episode."""
    return tuple(Step(step["thought"], step["action"], step["observation"]) for step in steps)


def parse_lessons(text: str, limit: int) -> tuple[list[dict[str, str]], str]:
    """Read a JSON list of lessons from a model's reply.

    Returns:
        The lessons as `{"text", "when_to_use"}`, and `ok` or why there are none.
    """
    try:
        value = _parse_list(text)
    except (ValueError, RecursionError) as error:
        return [], f"unreadable: {error}"
    lessons = [lesson for entry in value if (lesson := _lesson(entry)) is not None]
    return lessons[:limit], "ok" if len(lessons) == len(value) else "some entries were unreadable"


def _parse_list(text: str) -> list[Any]:
    try:
        value = parse_json_markdown(text, parser=_loads)
    except json.JSONDecodeError:
        found = _LIST.search(text)
        if found is None:
            msg = "the reply holds no JSON list"
            raise ValueError(msg) from None
        value = _loads(found.group())
    if not isinstance(value, list):
        msg = f"expected a JSON list, got {type(value).__name__}"
        raise ValueError(msg)  # noqa: TRY004  (one kind of error for every unreadable reply)
    return value


def _lesson(entry: Any) -> dict[str, str] | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("lesson"), str):
        return None
    text = _clean(entry["lesson"])
    when = entry.get("when_to_use")
    situation = _clean(when) if isinstance(when, str) else ""
    return {"text": text, "when_to_use": situation} if text else None


def _clean(text: str) -> str:
    return strip_block(encodable(text)).strip()


def _lessons(message: BaseMessage, limit: int) -> Update:
    lessons, reflection = parse_lessons(str(message.text), limit)
    return {"lessons": lessons, "reflection": reflection}
