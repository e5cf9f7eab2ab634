"""How a supervisor says that a program ended: checked, since nothing it says is trusted."""

from collections.abc import Mapping
from typing import Final, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from langgraft.environments.sandboxes.results import Frame, ProgramError
from langgraft.environments.sandboxes.wire import ProtocolError, parse_json

MAX_TEXT: Final = 100_000
"""Characters of any one text of an answer."""


class _Frame(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    file: str = Field(max_length=MAX_TEXT)
    line: int = Field(ge=0)
    function: str = Field(max_length=MAX_TEXT)
    text: str = Field(max_length=MAX_TEXT)


class _Error(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")

    type: str = Field(max_length=MAX_TEXT)
    message: str = Field(max_length=MAX_TEXT)
    frames: list[_Frame] = Field(max_length=1000)

    def told(self) -> ProgramError:
        frames = tuple(Frame(f.file, f.line, f.function, f.text) for f in self.frames)
        return ProgramError(self.type, self.message, frames)


class Ended(BaseModel):
    """How a program or cell ended, as the frame `ENDED` has it."""

    model_config = ConfigDict(strict=True, extra="forbid")

    exit_code: int | None = Field(ge=0, le=255)
    signal: str | None = Field(max_length=100)
    stopped: Literal["timeout", "output", "cancelled"] | None
    oom: bool
    duration: float = Field(ge=0, allow_inf_nan=False)
    stdout_printed: int = Field(ge=0)
    stderr_printed: int = Field(ge=0)
    error: _Error | None
    kernel_lost: bool
    cleared: bool


def parse_ended(payload: bytes) -> Ended:
    """Return what the frame says.

    Raises:
        ProtocolError: It is not as it should be.
    """
    content = parse_json(payload)
    try:
        return Ended.model_validate(content)
    except ValidationError as error:
        problem = error.errors(include_url=False, include_input=False)[0]
        raise ProtocolError(
            f"the supervisor sent a result with a wrong {problem['loc']}: {problem['msg']}"
        ) from error


def text_in(content: Mapping[str, object], name: str) -> str:
    """Return a text of an answer.

    Raises:
        ProtocolError: There is none, or it is too long.
    """
    value = content.get(name)
    if not isinstance(value, str) or len(value) > MAX_TEXT:
        raise ProtocolError(f"the supervisor sent no proper {name!r}")
    return value.encode("utf-8", "backslashreplace").decode("utf-8")
