"""`MemoryItem`: one piece of text that an agent may be given again."""

from collections.abc import Iterable, Mapping
from typing import Any, Final, Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from langgraft._core.arguments import did_you_mean
from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import InputError

ItemType: TypeAlias = Literal["strategic", "operational", "error_trace", "other"]
"""What kind of knowledge an item holds (memory-transplants §3.1)."""

Scalar: TypeAlias = str | int | float | bool

CONFIDENTIAL: Final = "confidential"
"""Type of a pydantic error about a value that no message may quote."""
MOST_PROBLEMS: Final = 5
"""Problems of one value that are told each: a message is read by a person."""


class MemoryItem(BaseModel):
    """One memory in canonical form (memory-transplants §3.1, `CanonicalMemoryItem`).

    An item is content only. Whatever a provider derives from it (vectors, tiers, votes,
    counters) is kept as notes in the bank and is recomputed where an item is imported.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    id: str = Field(min_length=1)
    """Stable name, unique within a bank."""
    text: str
    """The memory itself, as plain text."""
    type: ItemType
    """What kind of knowledge it is."""
    source_domain: str = Field(min_length=1)
    """Where it was learned: `code`, `math`, `babyai/find_obj` …"""
    episode_id: str
    """The episode it was learned in."""
    success: bool | None
    """Whether that episode reached its goal; `None` where nobody can tell."""
    order_index: int = Field(ge=0)
    """Position in the stream of items written to the bank, from 0."""
    task_id: str | None = None
    """The task instance of that episode."""
    key: str | None = None
    """What the item is retrieved by, where that is not its text."""
    metadata: Mapping[str, Scalar] = Field(default_factory=dict)
    """Flat extra fields: `package`, `error`, `kind` …"""

    @field_validator("metadata")
    @classmethod
    def _plain_numbers(cls, metadata: Mapping[str, Scalar]) -> dict[str, Scalar]:
        canonical_json(dict(metadata))  # refuses NaN and lone surrogates
        return dict(metadata)

    @field_validator("id", "text", "source_domain", "episode_id", "task_id", "key")
    @classmethod
    def _encodable(cls, text: str | None) -> str | None:
        if text is not None:
            text.encode("utf-8")  # a lone surrogate cannot be stored or exported
        return text

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


def describe_validation(error: ValidationError, known: Iterable[str] = ()) -> str:
    """Put a pydantic error into one line: each field with what is wrong and what it got.

    Of many, the first are told. What a problem of type `CONFIDENTIAL` got is not.

    Args:
        error: What pydantic raised.
        known: The fields there are: one that is misspelt is told what it may have been.
    """
    parts = []
    problems = error.errors(include_url=False, include_context=False)
    for problem in problems[:MOST_PROBLEMS]:
        where = ".".join(_printable(str(part)) for part in problem["loc"])
        said = problem["msg"].removeprefix("Value error, ")
        said = said[:1].lower() + said[1:]
        if not where and problem["type"] == "value_error":
            parts.append(said)  # about several fields, which it names
            continue
        if known and problem["type"] == "extra_forbidden" and len(problem["loc"]) == 1:
            parts.append(f"there is no {where}: {did_you_mean(where, known)}")
            continue
        told = problem["type"] not in {"missing", CONFIDENTIAL}
        got = f" (got {problem['input']!r:.80})" if told else ""
        parts.append(f"{where or 'value'}: {said}{got}")
    if len(problems) > MOST_PROBLEMS:
        parts.append(f"and {len(problems) - MOST_PROBLEMS:,} more")
    return "; ".join(parts)


def _printable(name: str) -> str:
    """Write a name so that it can stand in a message of one line, whatever it holds."""
    return f"{name if name.isprintable() else ascii(name):.80}"
