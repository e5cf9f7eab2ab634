"""What the chain agent's nodes depend on, and what its model is sent: prompts, and the log as messages.

Messages are a pure function of the log and of settings. What the model said stands there word for
word. Every call of a tool has its answer right behind it, under a name of its own (`call-<step>`),
so that any provider takes them and no provider's ids are kept. A call that providers would not
take back (arguments that are no JSON object, a name that no tool can have) is not made into
another: it is quoted where the model is shown what was wrong.
"""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias

from langchain_core.messages import (
    AIMessage,
    BaseMessage,
    HumanMessage,
    SystemMessage,
    ToolMessage,
)

from langgraft._core.texts import Prompt
from langgraft.environments.sandboxes.result_text import span, trimmed
from langgraft.memory.recall import count_tokens_approximately
from langgraft.nodes.chain.tools import FINISH, JOB, Schema
from langgraft.nodes.chain.visible_history import (
    AgentTurn,
    Condenser,
    HistoryPart,
    StuckNotice,
    VisibleHistory,
    visible_history,
)
from langgraft.nodes.competition_run import BOUNDS
from langgraft.nodes.program_text import quotable
from langgraft.nodes.prompts import PromptSet, prompt_field
from langgraft.nodes.replies import encodable, in_turns
from langgraft.nodes.workbench.deps import RunDeps
from langgraft.nodes.workbench.limits import estimated_tokens
from langgraft.nodes.workbench.log import INVALID, MESSAGE, Event, RunState

_NOTHING: Final = "(nothing)"
_CALLABLE: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names that providers take."""


@dataclass(frozen=True, slots=True)
class ChainPrompts(PromptSet):
    """The prompts of the chain agent, each with the placeholders that it may have."""

    system: Prompt = prompt_field("chain_system", "ending shell")
    shell: Prompt = prompt_field("chain_shell")
    """What becomes `$shell`."""
    shell_of_jobs: Prompt = prompt_field("chain_shell_of_jobs", "soft_seconds job")
    """What becomes `$shell` where commands that take long go on."""
    task: Prompt = prompt_field("chain_task", "task memory data packages")
    """Begins each attempt."""
    bounds: Prompt = prompt_field("bounds", BOUNDS)
    """Ends each prompt."""
    use_all_time: Prompt = prompt_field("use_all_time", "finish")
    """What becomes `$ending`, where the agent is asked to."""
    may_finish: Prompt = prompt_field("may_finish", "finish")
    """What becomes `$ending` otherwise."""
    go_on: Prompt = prompt_field("chain_continue", "problem")
    """What the user says to a reply without a call."""
    recovery: Prompt = prompt_field("chain_recovery", "rule")
    """Begins what follows circles."""
    diagnose: Prompt = prompt_field("diagnose", "code output analysis rules")


RULES_IN_WORDS: Final = {
    "pairs": "the same call with the same result, four times in a row",
    "errors": "the same call, which failed three times in a row",
    "messages": "the same message three times in a row, without any call",
    "alternation": "the same two calls by turns, with the same results, three times",
}
"""What an agent reads of how it went in circles."""


@dataclass(frozen=True, slots=True)
class Instructions:
    """What the prompts of a run are filled in with."""

    prompts: ChainPrompts
    task: str
    """Description of the competition."""
    packages: Sequence[str]
    use_all_time: bool = True
    """Whether the agent is asked to use all its steps and time, or may finish before."""
    soft_seconds: float | None = None
    """After which a command goes on as a job; `None`: it is waited for."""

    def system(self) -> str:
        """Return what the model is, and how it works."""
        prompts = self.prompts
        ending = prompts.use_all_time if self.use_all_time else prompts.may_finish
        shell = prompts.shell.render()
        if self.soft_seconds is not None:
            shell = prompts.shell_of_jobs.render(soft_seconds=span(self.soft_seconds), job=JOB)
        text = prompts.system.render(
            ending=ending.render(finish=FINISH).strip(), shell=shell.strip()
        )
        return text.strip()

    def first(self, data: str, memory: str, *, room: int | None = None) -> str:
        """Return the message that an attempt begins with.

        Args:
            data: The preview of the data.
            memory: The block that memory recalled; empty where it recalled nothing.
            room: Characters for task, data and memory together, roughly; `None` sets no limit.
        """
        task, data, memory = encodable(self.task), encodable(data), encodable(memory)
        if room is not None:
            task, data = trimmed(task, room // 2), trimmed(data, room // 4)
            memory = trimmed(memory, room // 4)
        text = self.prompts.task.render(
            task=task.strip(),
            memory=f"{memory}\n" if memory else "",
            data=data,
            packages=", ".join(self.packages),
        )
        return text.strip()

    def recovery(self, rule: str) -> str:
        """Return what the agent reads where it went in circles."""
        return self.prompts.recovery.render(rule=RULES_IN_WORDS.get(rule, rule)).strip()


def messages_of(
    history: VisibleHistory, instructions: Instructions, *, data: str, bounds: str
) -> list[BaseMessage]:
    """Return what a model is sent.

    Args:
        history: What the agent sees of the log.
        instructions: What the prompts are filled in with.
        data: The preview of the data.
        bounds: What the run may use and what is left of it, in words.
    """
    first = instructions.first(data, history.memory, room=history.first_message)
    said = (message for part in history.parts for message in _messages_of_part(part, instructions))
    messages = in_turns([SystemMessage(instructions.system()), HumanMessage(first), *said])
    last = messages[-1]
    messages[-1] = last.model_copy(update={"content": f"{last.text}\n\n{bounds}"})
    return messages


def _messages_of_part(part: HistoryPart, instructions: Instructions) -> Iterator[BaseMessage]:
    if isinstance(part, StuckNotice):
        yield HumanMessage(instructions.recovery(str(part.action.arguments.get("rule", ""))))
    elif part.action.name == MESSAGE:
        yield AIMessage(_clean(str(part.action.arguments.get("text", ""))))
        yield HumanMessage(_text(part.answer))
    else:
        yield from _called(part)


def _called(turn: AgentTurn) -> Iterator[BaseMessage]:
    action, name = turn.action, f"call-{turn.step}"
    tool = action.name
    arguments: dict[str, Any] | None = dict(action.arguments)
    thought = _clean(action.thought) if action.thought.strip() else ""
    seen = "" if turn.observation is None else turn.observation.text
    said = f"{seen}\n\n{turn.answer}" if turn.answer else seen
    if action.name == INVALID:
        tool, written = (str(action.arguments.get(key, "")) for key in ("tool", "said"))
        arguments = _object(written) if _CALLABLE.fullmatch(tool) else None
        if arguments is None:
            yield AIMessage(thought)
            yield HumanMessage(_clean(f"{_quoted(tool, written)}{said}"))
            return
    call = {"name": tool, "args": arguments, "id": name, "type": "tool_call"}
    yield AIMessage(thought, tool_calls=[call])
    yield ToolMessage(_text(said), tool_call_id=name)


def _object(written: str) -> dict[str, Any] | None:
    """Return arguments as the object that they are; `None` where they are none."""
    try:
        read = json.loads(written)
        json.dumps(read, allow_nan=False)
    except (ValueError, RecursionError):
        return None
    return read if isinstance(read, dict) else None


def _quoted(tool: str, written: str) -> str:
    if not tool and not written:
        return ""
    return f"You called `{tool}` with these arguments:\n```\n{quotable(written)}\n```\n"


def _text(text: str) -> str:
    return _clean(text) if text.strip() else _NOTHING


def _clean(text: str) -> str:
    """Take NULs out, which some servers refuse."""
    return text.replace("\0", "�")


Browse: TypeAlias = Callable[[str], str]
"""Reads a page of the web, as text; what it raises the agent reads."""

_REPLY_SHARE = 8
"""Of the context, one part in so many is left for the reply."""


@dataclass(frozen=True, slots=True)
class ChainDeps:
    """What the chain agent's nodes share."""

    run: RunDeps
    instructions: Instructions
    tools: Sequence[Schema]
    """What the model is offered."""
    condensers: Sequence[Condenser] = ()
    context: int | None = None
    """Tokens that the model can read, where that is known."""
    browse: Browse | None = None

    @property
    def offered(self) -> tuple[str, ...]:
        """Names of the tools."""
        return tuple(tool["function"]["name"] for tool in self.tools)

    @property
    def most(self) -> int | None:
        """Tokens that messages may have, as far as it is known."""
        if self.context is None:
            return None
        schemas = count_tokens_approximately(json.dumps(list(self.tools)))
        return max(self.context - self.context // _REPLY_SHARE - schemas, 0)

    def about(self, state: RunState) -> "About":
        """Return what a prompt says beside what happened."""
        data = self.run.artifacts.read(state["begun"]["preview"]).decode()
        return About(data, self.run.bounds_text(self.instructions.prompts.bounds, state))

    def history(self, events: Sequence[Event]) -> VisibleHistory:
        """Return what the agent sees of a log."""
        return visible_history(events, self.condensers)

    def prompt(self, events: Sequence[Event], about: "About") -> list[BaseMessage]:
        """Return what the model is sent after these events."""
        history = self.history(events)
        return messages_of(history, self.instructions, data=about.data, bounds=about.bounds)

    def tokens(self, events: Sequence[Event], about: "About") -> int:
        """Estimate the tokens of that."""
        return estimated_tokens(self.prompt(events, about))


@dataclass(frozen=True, slots=True)
class About:
    """What a prompt says beside what happened."""

    data: str
    """The preview of the data."""
    bounds: str
    """What the run may use, and what is left of it."""
