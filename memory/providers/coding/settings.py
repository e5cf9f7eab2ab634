"""Settings of `CodingMemory`: what is recalled, and where in a search it is shown."""

from collections.abc import Mapping
from typing import Any, Final, Literal, Self, TypeAlias

from pydantic import Field as SettingsField
from pydantic import SkipValidation, field_validator, model_validator

from langgraft.memory.episodes import ErrorKind
from langgraft.memory.providers.remedies import RetrievalSettings
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.rankers.dense import Dense

KINDS: Final[tuple[ErrorKind, ...]] = ("code", "environment", "resource")

KindsByStage: TypeAlias = tuple[tuple[str, tuple[ErrorKind, ...]], ...]


class CodingSettings(RetrievalSettings):
    """Settings of `CodingMemory`: what is recalled, and where in a search it is shown.

    The published system has all of the scope in one: memory on or off. Its own figures
    contradict its text on two of the choices (see `CodingMemory`), so that each is a setting.
    """

    stages: tuple[str, ...] = ("start", "debug", "improve")
    """Stages that memory speaks in. §3.3: a tree search is given memory when it debugs and when
    it improves, a chain agent in the first message of an attempt, which is the stage `start`."""
    start: Literal["warm", "cold"] = "warm"
    """`cold` recalls only what this bank took in itself, and none of what was imported. A bank that
    goes on from another's log or lies in a store since earlier runs took all of it in itself: to
    begin a search with nothing, give it an empty bank."""
    tasks: Literal["same", "all"] = "same"
    """Whose entries may be recalled (§3.3: those of the task alone)."""
    from_step: int = SettingsField(default=0, ge=0)
    """The first step that memory speaks in. §5 (Limitations) proposes to leave early exploration
    alone."""
    kinds_by_stage: KindsByStage = ()
    """Kinds that may be recalled, for stages where it is not all of them: `{"improve":
    ["code", "environment"]}`. §4.6: 40.7 % of one bank were timeouts, 57.9 % of what was recalled
    for buggy nodes were, and they steered the search to light models."""
    verified_only: bool = False
    """Recall only fixes with which a later program ran."""
    top_k: int = SettingsField(default=3, ge=1)
    """Entries per recall. The paper does not say; ours."""
    ranker: SkipValidation[Ranker] = Dense(ties="newest")
    """Cosine of embeddings (§3.3). The paper does not name the model; the default compares
    spelling and works offline. Any embeddings: `Dense("openai:text-embedding-3-small")`."""

    @field_validator("kinds_by_stage", mode="before")
    @classmethod
    def _listed(cls, value: Any) -> Any:
        return tuple(sorted(value.items())) if isinstance(value, Mapping) else value

    @model_validator(mode="after")
    def _recalls_something(self) -> Self:
        if self.tasks == "same" and self.same_task == "exclude":
            msg = "tasks 'same' with same_task 'exclude' leaves nothing to recall; take tasks 'all'"
            raise ValueError(msg)
        return self

    def kinds(self, stage: str) -> tuple[ErrorKind, ...]:
        """Return the kinds that may be recalled at a stage."""
        return dict(self.kinds_by_stage).get(stage, KINDS)
