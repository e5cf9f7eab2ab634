"""A run as a list of steps: one for each action of the agent, with all that is measured of it."""

from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue


class StepRecord(BaseModel):
    """One action of the agent and what came of it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    step: int = Field(ge=0)
    """Actions of the agent before it."""
    action: str
    """Name of the tool, `message`, or `invalid`."""
    command: str = ""
    """What was issued: a command line, a cell's code, the arguments of another tool in one line."""
    thought: str = ""
    executed: bool = False
    """Whether something ran in the sandbox."""
    program: str = ""
    """The Python that ran; empty where none did or it is not known."""
    failed: bool = False
    exit_code: int | None = None
    exc_type: str | None = None
    exc_value: str | None = None
    timed_out: bool = False
    oom: bool = False
    metric: float | None = None
    submission: Literal["valid", "invalid", "absent"] | None = None
    output: str = ""
    attempt: int = Field(default=0, ge=0)
    """The attempt it belongs to, from 0: each begins with what memory recalls."""
    recalled: str = ""
    """The block of memory that the attempt began with."""
    recalled_kinds: tuple[str, ...] = ()
    error: dict[str, JsonValue] | None = None
    """The diagnosis of its failure, as an `ErrorRecord`."""
