"""One attempt at a task of STATE-Bench: tools over a database of its own, a scripted user, the score.

Attempts share nothing: each has read the task's database anew, and several may be under way in threads.
"""

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, Final, Literal, TypeAlias

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft.environments.statebench.release import Code, read_json

DONE: Final = "[TASK_DONE]"
"""What a user of the benchmark says when there is nothing more to say."""
MOST_DATABASE_BYTES: Final = 1 << 22

User: TypeAlias = Callable[[str], str]
"""What the agent said → what the user says to it; `DONE` ends the conversation."""


@dataclass(frozen=True, slots=True)
class ToolCall:
    """A call of a tool, and what came of it. `name`, `arguments` and `result`, as the benchmark has them."""

    name: str
    arguments: Mapping[str, JSON]
    result: JSON


@dataclass(frozen=True, slots=True)
class Turn:
    """What one side said; an assistant called tools before it spoke.

    `role` is the speaker, `text` what was said, `calls` what was called before.
    """

    role: Literal["system", "user", "assistant"]
    text: str
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True, slots=True)
class Score:
    """What the benchmark's state requirements say of a database. It is no official score.

    An official one needs also the requirements that a language model judges, after a conversation
    with the benchmark's locked user simulator, five times a task.
    """

    success: bool
    """Whether all requirements are met and nothing else was changed; of a task without any,
    whether nothing was changed at all."""
    required: int
    """How many state requirements the task has."""
    met: int
    """How many of them are met, whatever else was changed."""
    reason: str
    """The benchmark's own words."""

    @property
    def value(self) -> float:
        """1 for success, else 0: what the benchmark counts."""
        return float(self.success)

    @property
    def share(self) -> float:
        """Share of requirements that are met; of a task without any, `value`."""
        return self.met / self.required if self.required else self.value


class ScriptedUser:
    """A user by rules, in the place of the benchmark's locked user simulator (a language model).

    Asked for permission it says yes, asked anything else it says once all that the scenario says it
    knows, and when nothing is asked it is done. It is done as well when it has given permission twice in a
    row and the agent called no tool.

    It cannot refuse, bargain, push back, correct the agent, tell a right offer from a wrong one, keep to
    a budget, hold back facts until they are asked for one by one, or follow the scenario's rules of the
    kind "if the agent says …": tasks that turn on these are easier or harder with it than they are.
    It does not see the state requirements.

    Args:
        known: The facts that the user knows.
    """

    def __init__(self, known: Sequence[str]) -> None:
        self._known = tuple(known)
        self._told = False
        self._allowed = 0

    def __call__(self, text: str, *, worked: bool = False) -> str:
        """Return what the user says.

        Args:
            text: What the agent said.
            worked: Whether it called tools before it said so.
        """
        asked = " ".join(s for s in _SENTENCE.split(text) if not _COURTESY.search(s))
        if worked:
            self._allowed = 0
        if _PERMISSION.search(asked):
            self._allowed += 1
            return DONE if self._allowed > _MOST_ALLOWED else "Yes, please go ahead."
        if not _QUESTION.search(asked):
            return DONE
        if self._told or not self._known:
            return "I do not know. Please look it up, and do what my request needs."
        self._told = True
        return "What I know: " + " ".join(self._known)


_MOST_ALLOWED: Final = 2
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n+")
_COURTESY: Final = re.compile(
    r"\b(?:anything|something) else\b|\bI can also\b|\balso help\b", re.IGNORECASE
)
_PERMISSION: Final = re.compile(
    r"\b(?:shall|should|may|can) I\b|\bwould you like\b|\bdo you want\b|\bwant me to\b"
    r"|\bif you(?:'d| would)? (?:want|like)\b|\bgo ahead\b|\bproceed\b|\bconfirm\b(?!ed)",
    re.IGNORECASE,
)
_QUESTION: Final = re.compile(
    r"\?|\b(?:please|could you) (?:tell|give|provide|share|send)", re.IGNORECASE
)


class Attempt:
    """One attempt at a task. Made by `Task.open`.

    Attributes:
        system_prompt: What the benchmark tells the agent first: who it is, the date, the customer.
        opening: What the user says first.
        user: What the user says next, of what the agent said.
    """

    def __init__(self, code: Code, domain: str, definition: Any, user: User | None) -> None:
        self._code, self._definition = code, definition
        self._config = code.domains[domain]
        self._database = _database(self._config, definition)
        self._world = self._config.environment_class(self._database, now=definition.now)
        self._handlers = self._world.tool_handlers
        self._before = self._world.get_full_snapshot()
        self._lock = Lock()
        self._calls: list[ToolCall] = []
        self.opening: str = definition.opening_message
        self._turns = [Turn("user", self.opening)]
        self.system_prompt: str = self._config.agent_system_prompt.format(
            now=definition.now, user_id=definition.user_id
        )
        self.user: User = user or ScriptedUser(definition.user_simulator.known_info)

    @cached_property
    def tools(self) -> list[BaseTool]:
        """The domain's tools over this attempt's database, for an agent; results are JSON.

        Calls are made one at a time. Those that an agent makes at once, in one message, have no
        order that could be relied on.
        """
        return [self._tool(schema) for schema in self._config.tool_schemas]

    def call(self, name: str, arguments: Mapping[str, JSON]) -> JSON:
        """Call a tool; the call and its result become a part of the conversation.

        Raises:
            InputError: There is no such tool, or the benchmark's code failed on the arguments.
        """
        handler = self._handlers.get(name)
        if handler is None:
            msg = f"there is no tool {name!r:.80}; there are {', '.join(sorted(self._handlers))}"
            raise InputError(msg)
        with self._lock:
            try:
                result = json.loads(json.dumps(handler(dict(arguments))))
            except Exception as error:  # of arguments as language models write them
                kind = type(error).__name__
                msg = f"{name} cannot be called with {dict(arguments)!r:.200}: {kind}: {error}"
                raise InputError(msg) from error
            self._calls.append(ToolCall(name, dict(arguments), result))
        return result  # type: ignore[no-any-return]

    def answer(self, text: str) -> str | None:
        """Tell the user what the agent says; return what they say to it, `None` at the end.

        The end is when the user is done, or the agent has spoken as often as the benchmark allows.
        """
        with self._lock:
            worked = bool(self._calls)
            self._turns.append(Turn("assistant", text, tuple(self._calls)))
            self._calls.clear()
        if sum(t.role == "assistant" for t in self._turns) >= self._config.max_agent_turns:
            return None
        user = self.user
        said = user(text, worked=worked) if isinstance(user, ScriptedUser) else user(text)
        self._turns.append(Turn("user", said))
        return None if DONE in said else said

    @property
    def turns(self) -> tuple[Turn, ...]:
        """What was said and called so far, in the form of a recorded trajectory."""
        with self._lock:
            pending = (Turn("assistant", "", tuple(self._calls)),) if self._calls else ()
            return (Turn("system", self.system_prompt), *self._turns, *pending)

    @property
    def user_prompt(self) -> str:
        """What the benchmark tells a language model that plays the user, for a user of your own."""
        prompt = self._config.build_simulator_prompt
        return str(prompt(self._definition, self._database, self._definition.user_id))

    def score(self) -> Score:
        """Score the database as it stands, by the benchmark's code."""
        with self._lock:
            changes = self._code.difference.compute(self._before, self._world.get_full_snapshot())
        whole = self._code.evaluate(self._definition, changes)
        requirements = self._definition.state_requirements
        met = sum(self._meets(each, changes) for each in requirements)
        return Score(whole.score == 1, len(requirements), met, whole.reasoning)

    def _meets(self, requirement: Mapping[str, JSON], changes: Any) -> bool:
        alone = replace(self._definition, state_requirements=[requirement])
        found = self._code.evaluate(alone, changes).details or {}
        return not (found.get("missing_assertions") or found.get("unresolved_match_requirements"))

    def _tool(self, schema: Mapping[str, Any]) -> BaseTool:
        name = schema["name"]

        def call(**arguments: Any) -> str:
            try:
                return json.dumps(self.call(name, arguments), ensure_ascii=False)
            except InputError as error:
                raise ToolException(str(error)) from error

        return StructuredTool(
            name=name,
            description=schema["description"],
            args_schema=schema["parameters"],
            func=call,
            handle_tool_error=True,
        )


def _database(config: Any, definition: Any) -> Any:
    """Read a task's database anew."""
    path = Path(definition.task_env_path)
    try:
        return config.env_data_class.from_dict(read_json(path, MOST_DATABASE_BYTES))
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        msg = f"{path}: is no database of the domain {config.name} ({error!r:.200})"
        raise InputError(msg) from error
