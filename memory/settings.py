"""Settings of providers: with the provider's class they are its architecture."""

from collections.abc import Mapping
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, SkipValidation, field_validator

from langgraft._core.arguments import Settings
from langgraft._core.canonical import JSON
from langgraft.memory.forgetting import ForgettingPolicy
from langgraft.memory.rankers.base import Ranker, is_ranker
from langgraft.memory.rankers.named import make_ranker


class ProviderSettings(Settings):
    """Settings of a provider; with its class they are its *architecture* (memory-transplants §3.1)."""

    model_config = ConfigDict(arbitrary_types_allowed=True)

    feedback: Literal["environment", "oracle"] = "environment"
    """`oracle` declares that episodes may be judged by gold answers. Without that declaration they
    are refused; with it, what is learned from them says so in its metadata, as `feedback`."""
    same_task: Literal["allow", "exclude"] = "allow"
    """Whether an item may be recalled for the very task it was learned on."""
    credit: bool = False
    """Count how often each item was recalled (note `uses`), and how often the episode then
    succeeded (`successes`). Policies that forget by use turn it on by themselves."""
    forgetting: tuple[ForgettingPolicy, ...] = ()
    """What upkeep forgets, policy by policy, after the provider's own capacities."""

    def describe(self) -> dict[str, JSON]:
        """Return the settings as JSON."""
        return {name: _describe(getattr(self, name)) for name in type(self).model_fields}


def _describe(value: Any) -> JSON:
    match value:
        case _ if hasattr(value, "describe"):
            return cast("JSON", value.describe())
        case BaseModel():
            return cast("JSON", value.model_dump(mode="json"))
        case tuple():
            return [_describe(each) for each in value]
        case Mapping():
            return {str(key): _describe(each) for key, each in value.items()}
        case _:
            return cast("JSON", value)


class RankedSettings(ProviderSettings):
    """Settings of a provider that retrieves by rank."""

    ranker: SkipValidation[Ranker]
    """How items are ordered. It belongs to the provider, never to the store: swapping the
    store changes nothing in what is retrieved."""

    @field_validator("ranker", mode="before")
    @classmethod
    def _named_ranker(cls, value: object) -> object:
        if isinstance(value, str):
            return make_ranker({"ranker": value})
        if isinstance(value, Mapping) and isinstance(value.get("ranker", ""), str):
            return make_ranker(value)
        if not is_ranker(value):
            msg = "not a ranker, nor the name or the settings of one"
            raise ValueError(msg)
        return value
