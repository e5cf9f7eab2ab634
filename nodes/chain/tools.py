"""The tools of the chain agent: what a model is offered, and which action its reply asks for."""

import json
import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, Final, Literal, TypeAlias

from langchain_core.messages import BaseMessage
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, JsonValue, ValidationError

from langgraft._core.arguments import describe_validation
from langgraft._core.untrusted import unreadable_as
from langgraft.nodes.dialogue import UNREADABLE, Response
from langgraft.nodes.replies import encodable
from langgraft.nodes.workbench.log import INVALID, MESSAGE, keepable

RUN_BASH: Final = "run_bash"
RUN_PYTHON: Final = "run_python"
JOB: Final = "job"
EDIT_FILE: Final = "edit_file"
VALIDATE_SUBMISSION: Final = "validate_submission"
THINK: Final = "think"
FINISH: Final = "finish"
BROWSE: Final = "browse"
LONGEST_KEPT: Final = 10_000
"""Most characters kept of arguments that could not be used."""
LONGEST_NAME: Final = 100
CUT: Final = "cut"
"""Failure of a reply that ends where the longest possible one does, before it calls a tool."""
_NAMES_SHOWN: Final = 5
_NO_OBJECT: Final = "the arguments of the call cannot be read: they must be one JSON object"


Schema: TypeAlias = dict[str, Any]
"""A tool as chat models are sent it (OpenAI's form, which LangChain's models all take)."""


_WHOLE: Final = re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII)


def _whole(value: Any) -> Any:
    """Return the number that a text, or a float without a fraction, is; nothing is rounded."""
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value)
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT:
        return int(value)
    return value


_EXACT: Final = 2**53
"""From here on a float may stand for several whole numbers."""


def _read(value: Any) -> Any:
    """Return the list or object that a text of JSON is."""
    if not isinstance(value, str):
        return value
    try:
        read = json.loads(value)
    except (ValueError, RecursionError):
        return value
    return read if isinstance(read, list | dict) else value


_Whole: TypeAlias = Annotated[int, BeforeValidator(_whole)]


class _Arguments(BaseModel):
    # Strict: what a model sent is what the log says it did, but for numbers and lists as texts.
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)


class RunBash(_Arguments):
    """Run a command line with bash, in the working folder.

    Each call starts a new shell there: variables, the current folder and background processes do
    not outlive it, files do.
    """

    command: str = Field(description="The command line; several lines are a script.")


class RunPython(_Arguments):
    """Run Python code in an interpreter that keeps its variables between calls.

    What it prints and the value of a last expression are shown.
    """

    code: str = Field(description="The code.")


class Job(_Arguments):
    """See what a command that goes on as a job has printed since you last looked.

    It waits until the job ends, or for so many seconds. It can send the job a line of input before, or
    interrupt it.
    """

    job: _Whole = Field(description="Number of the job.")
    wait: _Whole | None = Field(
        None, description="Seconds to wait at most; left out, as long as for a new command."
    )
    input: str | None = Field(None, description="A line for its standard input.")
    interrupt: bool | None = Field(None, description="True ends it, as Ctrl-C does.")


class EditFile(_Arguments):
    """View or change a text file of the working folder.

    `view` shows it with numbered lines; `create` writes it whole, over what was there;
    `str_replace` replaces one passage, which must be there exactly once; `insert` puts text in
    after a line; `undo_edit` takes the last change of the file back.
    """

    command: Literal["view", "create", "str_replace", "insert", "undo_edit"] = Field(
        description="What to do."
    )
    path: str = Field(description="The file, relative to the working folder.")
    file_text: str | None = Field(None, description="For `create`: the whole file.")
    old_str: str | None = Field(
        None, description="For `str_replace`: the passage, exactly as it stands in the file."
    )
    new_str: str | None = Field(
        None,
        description="For `str_replace`: what takes its place. For `insert`: what is put in.",
    )
    insert_line: _Whole | None = Field(
        None, description="For `insert`: the line after which it goes; 0 is the beginning."
    )
    view_range: Annotated[list[_Whole] | None, BeforeValidator(_read)] = Field(
        None,
        description="For `view`: first and last line, counted from 1; -1 as last is the end.",
    )


class ValidateSubmission(_Arguments):
    """Check whether `./submission.csv` has the form of the sample submission.

    Columns, rows, ids and kinds of values are checked; it gives no score.
    """


class Think(_Arguments):
    """Write down a thought: a plan, or what an observation means. Nothing is run."""

    thought: str = Field(description="The thought.")


class Finish(_Arguments):
    """End the work. The submission that lies in place then is handed in."""

    message: str = Field("", description="What was done and how well it works, in a few sentences.")


class Browse(_Arguments):
    """Read a page of the web, as text."""

    url: str = Field(description="Address of the page.")


ARGUMENTS: Final[dict[str, type[BaseModel]]] = {
    RUN_BASH: RunBash,
    RUN_PYTHON: RunPython,
    JOB: Job,
    EDIT_FILE: EditFile,
    VALIDATE_SUBMISSION: ValidateSubmission,
    THINK: Think,
    FINISH: Finish,
    BROWSE: Browse,
}
"""What each tool takes."""


def tool_schemas(*, browse: bool = False, jobs: bool = False) -> list[Schema]:
    """Return the tools as `bind_tools` takes them.

    Args:
        browse: Whether the agent has something to read the web with.
        jobs: Whether commands that take long go on as jobs.
    """
    there = {BROWSE: browse, JOB: jobs}
    offered = (name for name in ARGUMENTS if there.get(name, True))
    return [_schema(name, ARGUMENTS[name]) for name in offered]


def _schema(name: str, arguments: type[BaseModel]) -> Schema:
    schema = arguments.model_json_schema()
    parameters = {
        "type": "object",
        "properties": {
            field: _property(value) for field, value in schema.get("properties", {}).items()
        },
        "required": schema.get("required", []),
        "additionalProperties": False,
    }
    described = " ".join((arguments.__doc__ or "").split())
    function = {"name": name, "description": described, "parameters": parameters}
    return {"type": "function", "function": function}


def _property(schema: dict[str, Any]) -> dict[str, Any]:
    """Write a property plainly: no titles, and one that may be left out has one type."""
    plain = {
        key: value for key, value in schema.items() if key not in ("title", "default", "anyOf")
    }
    several: list[dict[str, Any]] = schema.get("anyOf", [])
    typed = next((each for each in several if each.get("type") != "null"), {})
    return {**typed, **plain}


@dataclass(frozen=True, slots=True)
class RequestedAction:
    """An action that a reply asks for."""

    name: str
    """A tool, `message` or `invalid`, as the log calls it."""
    arguments: dict[str, JsonValue] = field(default_factory=dict)
    thought: str = ""
    """What the model said beside it."""
    surplus: tuple[str, ...] = ()
    """Tools of further calls in the same reply, which are not done."""


@unreadable_as(lambda *_: _invalid("", "", _NO_OBJECT, "", ()))
def requested_action(response: Response, offered: Collection[str]) -> RequestedAction:
    """Read a reply.

    The first call that can be read counts. A reply without any call is a message, one that holds
    nothing at all too: `failure` says in a word why (what else a provider says may differ each time).

    Args:
        response: What the model replied.
        offered: Names of the tools there are.
    """
    calls, spoiled = _calls(response.message)
    thought = response.text
    if calls:
        surplus = [_name(call) for call in (*calls[1:], *spoiled)]
        return _checked(calls[0], thought, offered, tuple(surplus))
    if spoiled:
        surplus = [_name(call) for call in spoiled[1:]]
        return _unreadable(spoiled[0], thought, tuple(surplus), cut=response.cut)
    if response.failure.partition(":")[0] == UNREADABLE:
        return _invalid("", "", _NO_OBJECT, thought, ())
    if not thought.strip():
        failure = response.failure.partition(":")[0] or "empty"
        return RequestedAction(MESSAGE, {"text": "", "failure": failure})
    return RequestedAction(MESSAGE, {"text": thought, **({"failure": CUT} if response.cut else {})})


def no_call_text(failure: str) -> str:
    """Tell the model why a reply did nothing that calls no tool."""
    texts = {
        "": "your reply calls no tool",
        "empty": "your reply is empty",
        CUT: "your reply was cut off, before it called a tool, where the longest possible one ends",
    }
    return texts.get(failure, f"your reply is empty ({failure})")


def surplus_text(names: Collection[str]) -> str:
    """Tell the model which calls of its reply were not done; nothing where there was only one."""
    if not names:
        return ""
    shown = ", ".join([*names][:_NAMES_SHOWN]) + (", …" if len(names) > _NAMES_SHOWN else "")
    calls = "1 further call" if len(names) == 1 else f"{len(names)} further calls"
    return f"[Not done: {calls} of the same reply ({shown}). Make one call a reply.]"


def _calls(message: BaseMessage | None) -> tuple[list[Mapping[str, Any]], list[Mapping[str, Any]]]:
    calls: Any = getattr(message, "tool_calls", None) or []
    spoiled: Any = getattr(message, "invalid_tool_calls", None) or []
    return list(calls), list(spoiled)


def _name(call: Mapping[str, Any]) -> str:
    return encodable(str(call.get("name") or ""))[:LONGEST_NAME]


def _checked(
    call: Mapping[str, Any], thought: str, offered: Collection[str], surplus: tuple[str, ...]
) -> RequestedAction:
    name, given = _name(call), keepable(call.get("args"))
    if name not in offered:
        problem = f"there is no tool {name!r}; the tools are {', '.join(offered)}"
        return _invalid(name, _written(given), problem, thought, surplus)
    try:
        arguments = ARGUMENTS[name].model_validate(given)
    except ValidationError as error:
        problem = f"{name} cannot be called like that: {describe_validation(error)}"
        return _invalid(name, _written(given), problem, thought, surplus)
    kept = arguments.model_dump(mode="json", exclude_unset=True, exclude_none=True)
    return RequestedAction(name, kept, thought, surplus)


def _unreadable(
    call: Mapping[str, Any], thought: str, surplus: tuple[str, ...], *, cut: bool
) -> RequestedAction:
    name, given = _name(call), encodable(str(call.get("args") or ""))
    problem = _NO_OBJECT
    if cut:
        problem += ". The reply was cut off where the longest possible reply ends: send less"
    else:
        problem += _where(given)
    return _invalid(name, given, problem, thought, surplus)


def _where(given: str) -> str:
    """Say what is wrong with a text that ought to be JSON."""
    try:
        json.loads(given)
    except RecursionError:
        return ", not so deeply nested"
    except ValueError as error:
        return f" ({encodable(str(error))[:200]})"
    return ""


def _invalid(
    tool: str, said: str, problem: str, thought: str, surplus: tuple[str, ...]
) -> RequestedAction:
    written = encodable(problem)
    arguments: dict[str, JsonValue] = {
        "tool": tool,
        "said": said[:LONGEST_KEPT],
        "problem": written[:LONGEST_KEPT],
    }
    return RequestedAction(INVALID, arguments, thought, surplus)


def _written(given: Any) -> str:
    """Write arguments as JSON, whatever they are."""
    try:
        return encodable(json.dumps(given, ensure_ascii=False, sort_keys=True, default=str))
    except (TypeError, ValueError, RecursionError):
        return encodable(f"{type(given).__name__} that is no JSON")
