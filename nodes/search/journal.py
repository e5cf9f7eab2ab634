"""The journal of a tree search: every program of a run, what came of it, and where it came from.

One form for all: a search of ours fills in every field, a journal of AIDE's those it has (see
`langgraft.benchmarks.mle.journals`). Nothing in it differs between two runs of the same search:
no clocks, durations, hosts or paths.
"""

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, JsonValue, field_validator

Stage: TypeAlias = Literal["draft", "debug", "improve"]
"""What a program was written for: a new solution, a repair of its parent, a better one."""


class JournalNode(BaseModel):
    """One program of a run."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    step: int = Field(ge=0)
    id: str = Field(min_length=1)
    parent_id: str | None = None
    plan: str
    """What the program was to do, in the agent's words."""
    code: str
    metric: float | None = None
    """Validation score; `None` where there is none, NaN included."""
    is_buggy: bool
    exc_type: str | None = None
    """Class of the exception that ended the program."""
    exc_value: str | None = None
    analysis: str = ""
    """What the review made of the run."""
    output: str = ""
    """What the program printed and how it ended, where the journal has it."""

    # Of our own searches alone ---------------------------------------------------------------

    timed_out: bool = False
    oom: bool = False
    submission: Literal["valid", "invalid", "absent"] | None = None
    """What the sample submission says of the file it left; `None`: not looked at."""
    reasons: tuple[str, ...] = ()
    """Why it counts as buggy, a reason each; empty where it does not."""
    recalled: str = ""
    """The block of memory in the prompt that it was written by; empty: nothing was recalled."""
    recalled_kinds: tuple[str, ...] = ()
    """The kind of error of each entry recalled (`code`, `environment`, `resource`, or nothing)."""
    receipt: dict[str, JsonValue] | None = None
    """Receipt of that recall, as `langgraft.memory.recall.Receipt`; `None`: memory was not asked."""
    error: dict[str, JsonValue] | None = None
    """The diagnosis of its failure, as `langgraft.memory.episodes.ErrorRecord`."""
    asked: dict[str, JsonValue] = Field(default_factory=dict)
    """How each model call of it went: by `write`, `review`, `diagnose`, `judge`."""

    @field_validator("metric", mode="before")
    @classmethod
    def _value(cls, metric: Any) -> Any:
        metric = metric.get("value") if isinstance(metric, Mapping) else metric
        return None if isinstance(metric, float) and math.isnan(metric) else metric

    @field_validator("analysis", "output", mode="before")
    @classmethod
    def _text(cls, text: Any) -> Any:
        return "" if text is None else text


@dataclass(frozen=True, slots=True)
class Journal:
    """One run, its programs in the order of their steps."""

    run: str
    """Name of the run: that of its file."""
    task: str
    """The competition."""
    nodes: tuple[JournalNode, ...]

    @property
    def buggy(self) -> tuple[JournalNode, ...]:
        """The programs that failed, or gave no metric."""
        return tuple(node for node in self.nodes if node.is_buggy)

    def stage(self, node: JournalNode) -> Stage:
        """Return what a program was written for (AIDE's `stage_name`)."""
        if node.parent_id is None:
            return "draft"
        parent = next(each for each in self.nodes if each.id == node.parent_id)
        return "debug" if parent.is_buggy else "improve"
