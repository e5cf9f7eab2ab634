"""Settings as pydantic models, and what pydantic finds wrong with a value, in one line."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from pydantic import BaseModel, ConfigDict, ValidationError

from langgraft._core.arguments import did_you_mean
from langgraft._core.errors import SettingsError

CONFIDENTIAL: Final = "confidential"
"""Type of a pydantic error about a value that no message may quote."""
MOST_PROBLEMS: Final = 5
"""Problems of one value that are listed: a message is read by a person."""
_OTHER_WORDS: Final = {
    "string_unicode": "no UTF-8 text: surrogates not allowed",
}
"""Type of a pydantic error → what says more than its message."""


class Settings(BaseModel):
    """Frozen, printable settings.

    Raises:
        SettingsError: There is no such setting, or a value is not possible.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    def __init__(self, **values: Any) -> None:
        try:
            super().__init__(**values)
        except ValidationError as error:
            problems = describe_validation(error, type(self).model_fields)
            raise SettingsError(f"{type(self).__name__}: {problems}") from error

    # Within a larger value pydantic goes on by itself, and names the way to what is wrong.
    __init__.__pydantic_base_init__ = True  # type: ignore[attr-defined]


@contextmanager
def validation_as(
    error: Callable[[str], Exception], where: str = "", known: Iterable[str] = ()
) -> Iterator[None]:
    """Raise what pydantic refuses within the block as an error of ours, in one line.

    Args:
        error: Makes the error of its message.
        where: What the message begins with.
        known: The fields there are, as for `describe_validation`.
    """
    try:
        yield
    except ValidationError as refused:
        raise error(where + describe_validation(refused, known)) from refused


def describe_validation(error: ValidationError, known: Iterable[str] = ()) -> str:
    """Put a pydantic error into one line: each field with what is wrong and what it got.

    Of many, the first are listed. The value of a problem of type `CONFIDENTIAL` is not shown.

    Args:
        error: What pydantic raised.
        known: The fields there are: for one that is misspelt, the nearest are suggested.
    """
    parts = []
    problems = error.errors(include_url=False, include_context=False)
    for problem in problems[:MOST_PROBLEMS]:
        where = ".".join(_printable(str(part)) for part in problem["loc"])
        said = problem["msg"].removeprefix("Value error, ")
        said = _OTHER_WORDS.get(problem["type"], said[:1].lower() + said[1:])
        if not where and problem["type"] == "value_error":
            parts.append(said)  # about several fields, which it names
            continue
        if known and problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
            parts.append(f"there is no {where}: {did_you_mean(where, known)}")
            continue
        shown = problem["type"] not in {"missing", CONFIDENTIAL}
        got = f" (got {problem['input']!r:.80})" if shown else ""
        parts.append(f"{where or 'value'}: {said}{got}")
    if len(problems) > MOST_PROBLEMS:
        parts.append(f"and {len(problems) - MOST_PROBLEMS:,} more")
    return "; ".join(parts)


def _printable(name: str) -> str:
    """Write a name so that it can stand in a message of one line, whatever it holds."""
    return f"{name if name.isprintable() else ascii(name):.80}"
