"""A conversation with tools, read: the task, what was done, what came of it, what is left."""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, ToolMessage

from langgraft.benchmarks.simulated.data_scientist.programs import sections_of, titles_in
from langgraft.benchmarks.simulated.data_scientist.prompts import FilledPrompt, read_prompt
from langgraft.benchmarks.simulated.data_scientist.reviewing import reported, went_wrong
from langgraft.benchmarks.simulated.data_scientist.tasks import Metric

Way: TypeAlias = Literal["cell", "script"]
"""How a program is run: as a cell of the interpreter, or as a script from a shell."""

SCRIPT: Final = "solution.py"
"""The script that it keeps its program in."""
LEFT_OUT: Final = "left out"
"""Stands where something is no longer shown."""
HIGHER: Final[frozenset[Metric]] = frozenset({"auc", "accuracy", "kappa", "f1", "r2"})
"""Metrics of which more is better."""
_LEFT: Final = re.compile(r"\[(\d+) steps? (?:is|are) left of (\d+)\.\]")
_UNKNOWN_LEFT: Final = 99
"""Steps that are taken to be left where nothing says how many."""
_WRITTEN: Final = re.compile(r"^cat > (\S+) <<'PROGRAM'\n(.*?)^PROGRAM$", re.MULTILINE | re.DOTALL)
_RUN: Final = re.compile(r"^(?:time )?python3? (\S+\.py)$", re.MULTILINE)
_INVALID: Final = re.compile(
    r"\bnot valid\b|\binvalid\b|\babsent\b|^not done\b", re.IGNORECASE | re.MULTILINE
)
_REFUSED: Final = re.compile(r"\bnot (?:found|done|there)\b|\bno such\b|\boccurs\b", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Call:
    """A call of a tool, what was said beside it, and what it showed."""

    said: str
    tool: str
    arguments: Mapping[str, str]
    """Those that are texts."""
    shown: str
    """What it showed; empty where that is not told."""


@dataclass(frozen=True, slots=True)
class Execution:
    """A program that was run."""

    code: str
    way: Way
    output: str
    failed: bool
    metric: float | None


@dataclass(slots=True)
class Progress:
    """What was done so far, summed up call by call."""

    looked: int = 0
    """How often the data was looked at."""
    astray: bool = False
    """Whether the last look failed."""
    files: dict[str, str] = field(default_factory=dict)
    """Scripts as they were last written."""
    executions: list[Execution] = field(default_factory=list)
    waiting: str = ""
    """A plan whose script was written, and not run yet."""
    misnamed: bool = False
    """Whether a script was just run by a name that no file has."""
    uneditable: bool = False
    """Whether the last change of a file was refused."""
    validated: bool | None = None
    """What the submission of the last program that ran was found to be; `None`: not looked at."""
    complaint: str = ""
    """What was found wrong with it."""

    @property
    def ran(self) -> list[Execution]:
        """The programs that ran; the last one wrote the submission that lies there."""
        return [each for each in self.executions if not each.failed]

    def failures(self) -> int:
        """Return how many programs failed since one ran."""
        outcomes = [each.failed for each in reversed(self.executions)]
        return outcomes.index(False) if False in outcomes else len(outcomes)

    def best(self, metric: Metric) -> Execution | None:
        """Return the program with the best metric, the first of them."""
        sign = -1 if metric in HIGHER else 1
        return min(self.ran, key=lambda each: sign * (each.metric or 0.0), default=None)

    def titles(self) -> str:
        """Name what was tried, for choices to differ from it."""
        return "\n".join(dict.fromkeys(titles_in(each.code for each in self.executions)))

    def add(self, call: Call) -> None:
        """Take in one more call."""
        self.misnamed = self.uneditable = self.astray = False
        match call.tool:
            case "run_python":
                self._ran(call, call.arguments.get("code", ""), "cell")
            case "run_bash":
                self._commanded(call, call.arguments.get("command", ""))
            case "edit_file":
                self._edited(call)
            case "validate_submission":
                self.validated = not says_invalid(call.shown)
                self.complaint = "" if self.validated else call.shown
            case _:
                pass

    def _commanded(self, call: Call, command: str) -> None:
        self.files.update(_WRITTEN.findall(command))
        run = _RUN.findall(_WRITTEN.sub("", command))
        if not run:
            self._looked(call)
        elif run[-1] in self.files:
            self._ran(call, self.files[run[-1]], "script")
        else:
            self.misnamed = went_wrong(call.shown)
            self.waiting = self.waiting or call.said

    def _edited(self, call: Call) -> None:
        path, how = call.arguments.get("path", SCRIPT), call.arguments.get("command")
        old, text = call.arguments.get("old_str", ""), self.files.get(path, "")
        if how == "create":
            self.files[path] = call.arguments.get("file_text", "")
        elif how != "str_replace":
            return
        elif not old or text.count(old) != 1 or _REFUSED.search(call.shown):
            self.uneditable = True
            return
        else:
            self.files[path] = text.replace(old, call.arguments.get("new_str", ""))
        self.waiting = call.said

    def _ran(self, call: Call, code: str, way: Way) -> None:
        self.waiting = ""
        if not sections_of(code):
            self._looked(call)
            return
        metric, wrong = reported(call.shown), went_wrong(call.shown)
        if LEFT_OUT in code or (metric is None and not wrong and LEFT_OUT in call.shown):
            return  # what it was, or what came of it, is no longer told
        failed = wrong or metric is None
        self.executions.append(Execution(code, way, call.shown, failed, metric))
        self.validated, self.complaint = None, ""

    def _looked(self, call: Call) -> None:
        self.looked += 1
        self.astray = went_wrong(call.shown)


@dataclass(frozen=True, slots=True)
class Conversation:
    """What an engineer has before it."""

    asked: FilledPrompt
    calls: tuple[Call, ...]
    left: int
    """Steps that are left, the next one included."""
    recovered: bool
    """Whether it was just told that it went in circles."""
    texts: tuple[str, ...]
    """All that was said and called."""

    def progress(self) -> Progress:
        """Sum up what was done."""
        progress = Progress()
        for call in self.calls:
            progress.add(call)
        return progress


def says_invalid(shown: str) -> bool:
    """Say whether a check found something wrong with a submission."""
    return _INVALID.search(shown) is not None


def read_conversation(messages: Sequence[BaseMessage]) -> Conversation | None:
    """Read a conversation; `None` where none of its messages is the task of an engineer."""
    humans = (each.text for each in messages if isinstance(each, HumanMessage))
    asked = next(filter(None, (read_prompt(text, ("chain_task",)) for text in humans)), None)
    if asked is None:
        return None
    last = messages[-1].text if isinstance(messages[-1], HumanMessage) else ""
    recovered = read_prompt(last, ("chain_recovery",)) is not None
    # Blanks of a call's arguments are no part of what draws are made from, nor are names of calls.
    called = [
        json.dumps([call["name"], call["args"]])
        for message in messages
        if isinstance(message, AIMessage)
        for call in message.tool_calls
    ]
    texts = (*(message.text for message in messages), *called)
    calls = tuple(_calls(messages))
    return Conversation(asked, calls, _left(messages, asked, len(calls)), recovered, texts)


def _calls(messages: Sequence[BaseMessage]) -> list[Call]:
    """Pair calls with what they showed; replies that are no call, or none that was read, are left out."""
    shown = {each.tool_call_id: each.text for each in messages if isinstance(each, ToolMessage)}
    calls = []
    for message in messages:
        for call in message.tool_calls[:1] if isinstance(message, AIMessage) else ():
            texts = {key: value for key, value in call["args"].items() if isinstance(value, str)}
            calls.append(Call(message.text, call["name"], texts, shown.get(str(call["id"]), "")))
    return calls


def _left(messages: Sequence[BaseMessage], asked: FilledPrompt, done: int) -> int:
    told = [found for message in messages[-3:] for found in _LEFT.findall(message.text)]
    if told:
        return int(told[-1][0])
    steps = asked.part("steps")
    return int(steps) - done if steps.isdecimal() else _UNKNOWN_LEFT
