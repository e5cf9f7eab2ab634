"""`MemoryItem`: one piece of text that an agent may be given again."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import InputError
from langgraft._core.settings import describe_validation

ItemType: TypeAlias = Literal["strategic", "operational", "error_trace", "other"]
"""What kind of knowledge an item holds (memory-transplants §3.1)."""

Scalar: TypeAlias = str | int | float | bool
_Text: TypeAlias = Annotated[str, Field(min_length=0)]
"""A text that can be stored and exported: only where it counts the letters does pydantic refuse a
lone surrogate."""


class MemoryItem(BaseModel):
    """One memory in canonical form (memory-transplants §3.1, `CanonicalMemoryItem`).

    An item is content only. Whatever a provider derives from it (vectors, tiers, votes,
    counters) is kept as notes in the bank and is recomputed where an item is imported.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: str = Field(min_length=1)
    """Stable name, unique within a bank."""
    text: _Text
    """The memory itself, as plain text."""
    type: ItemType
    """What kind of knowledge it is."""
    source_domain: str = Field(min_length=1)
    """Where it was learned: `code`, `math`, `babyai/find_obj` …"""
    episode_id: _Text
    """The episode it was learned in."""
    success: bool | None
    """Whether that episode reached its goal; `None` where nobody can tell."""
    order_index: int = Field(ge=0)
    """Position in the stream of items written to the bank, from 0."""
    task_id: _Text | None = None
    """The task instance of that episode."""
    key: _Text | None = None
    """What the item is retrieved by, where that is not its text."""
    metadata: Mapping[str, Scalar] = Field(default_factory=dict)
    """Flat extra fields: `package`, `error`, `kind` …"""

    @field_validator("metadata")
    @classmethod
    def _plain_numbers(cls, metadata: Mapping[str, Scalar]) -> dict[str, Scalar]:
        canonical_json(dict(metadata))  # refuses NaN and lone surrogates
        return dict(metadata)

    @property
    def retrieval_key(self) -> str:
        """What a ranker compares with the query: `key`, or the text where there is none."""
        return self.text if self.key is None else self.key

    def __hash__(self) -> int:
        return hash((self.id, self.text, self.order_index))

    def to_json(self) -> dict[str, JSON]:
        """Return the item as JSON; optional fields that hold nothing are left out."""
        value: dict[str, Any] = {
            "id": self.id,
            "text": self.text,
            "type": self.type,
            "source_domain": self.source_domain,
            "episode_id": self.episode_id,
            "success": self.success,
            "order_index": self.order_index,
        }
        if self.task_id is not None:
            value["task_id"] = self.task_id
        if self.key is not None:
            value["key"] = self.key
        if self.metadata:
            value["metadata"] = dict(self.metadata)
        return value

    @classmethod
    def from_json(cls, value: Mapping[str, JSON]) -> "MemoryItem":
        """Read an item back from JSON.

        Raises:
            InputError: A field is missing, unknown or of the wrong type.
        """
        try:
            return cls.model_validate(dict(value) if isinstance(value, Mapping) else value)
        except ValidationError as error:
            raise InputError(describe_validation(error)) from error
