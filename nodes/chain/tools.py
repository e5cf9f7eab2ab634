"""The tools of the chain agent, as a model is offered them: names, arguments, what they are for."""

from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field

RUN_BASH: Final = "run_bash"
RUN_PYTHON: Final = "run_python"
EDIT_FILE: Final = "edit_file"
VALIDATE_SUBMISSION: Final = "validate_submission"
THINK: Final = "think"
FINISH: Final = "finish"
BROWSE: Final = "browse"

Schema: TypeAlias = dict[str, Any]
"""A tool as chat models are told of it (OpenAI's form, which LangChain's models all take)."""


class _Arguments(BaseModel):
    # Strict: what a model sent is what the log says it did. `"3"` is no number of a line.
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
    insert_line: int | None = Field(
        None, description="For `insert`: the line after which it goes; 0 is the beginning."
    )
    view_range: list[int] | None = Field(
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
    EDIT_FILE: EditFile,
    VALIDATE_SUBMISSION: ValidateSubmission,
    THINK: Think,
    FINISH: Finish,
    BROWSE: Browse,
}
"""What each tool takes."""


def tool_schemas(*, browse: bool = False) -> list[Schema]:
    """Return the tools as `bind_tools` takes them.

    Args:
        browse: Whether the agent has something to read the web with.
    """
    offered = (name for name in ARGUMENTS if browse or name != BROWSE)
    return [_schema(name, ARGUMENTS[name]) for name in offered]


def _schema(name: str, arguments: type[BaseModel]) -> Schema:
    told = arguments.model_json_schema()
    parameters = {
        "type": "object",
        "properties": {
            field: _property(value) for field, value in told.get("properties", {}).items()
        },
        "required": told.get("required", []),
        "additionalProperties": False,
    }
    described = " ".join((arguments.__doc__ or "").split())
    function = {"name": name, "description": described, "parameters": parameters}
    return {"type": "function", "function": function}


def _property(told: dict[str, Any]) -> dict[str, Any]:
    """Write a property plainly: no titles, and one that may be left out has one type."""
    plain = {key: value for key, value in told.items() if key not in ("title", "default", "anyOf")}
    several: list[dict[str, Any]] = told.get("anyOf", [])
    typed = next((each for each in several if each.get("type") != "null"), {})
    return {**typed, **plain}
