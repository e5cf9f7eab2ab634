"""Settings of providers, with their class their architecture, and rankers by name, as they say them."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Literal, cast

from pydantic import BaseModel, ConfigDict, SkipValidation, field_validator

from langgraft._core.arguments import Settings, did_you_mean
from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft.memory.forgetting import ForgettingPolicy
from langgraft.memory.rankers.base import Ranker, is_ranker
from langgraft.memory.rankers.composite import MMR, Hybrid
from langgraft.memory.rankers.dense import Dense
from langgraft.memory.rankers.lexical import BM25, TermOverlap
from langgraft.memory.trust import TrustSettings

_RANKERS: Mapping[str, type[Any]] = {
    "bm25": BM25,
    "dense": Dense,
    "hybrid": Hybrid,
    "mmr": MMR,
    "term_overlap": TermOverlap,
}

_COMPOSED: Mapping[str, Mapping[str, Any]] = {
    # By words and by meaning. A sum of reciprocal ranks would count a match of "the" as much as one
    # of a name. Twice as much for words: names and numbers mean nothing to the embedder.
    "semantic": {
        "ranker": "hybrid",
        "rankers": ("bm25", {"ranker": "dense", "embeddings": "wordllama"}),
        "weights": (2.0, 1.0),
        "fusion": "scores",
    },
}
"""Short names for settings of rankers."""


def make_ranker(settings: Mapping[str, Any]) -> Ranker:
    """Build a ranker from plain settings such as `{"ranker": "bm25", "k1": 1.2}`.

    Rankers made of others have these in `rankers` (hybrid) or `of` (mmr), by name or as settings.
    `semantic` is a hybrid of BM25 and the embedder `wordllama` (extra `semantic`).
    What a ranker's `describe` returns gives that ranker again, unless it embeds with an object
    that cannot be named: that has to be given itself.

    Raises:
        SettingsError: There is no such ranker or setting, or a value is not possible.
    """
    name = settings.get("ranker")
    if isinstance(name, str) and name in _COMPOSED:
        own = {key: value for key, value in settings.items() if key != "ranker"}
        return make_ranker({**_COMPOSED[name], **own})
    values = {key: _made(key, value) for key, value in settings.items() if key != "ranker"}
    if "ranker" not in settings:
        msg = (
            f"settings of a ranker name it as `ranker`, such as {{'ranker': 'bm25', 'k1': 1.2}};"
            f" got {dict(settings)!r:.200}"
        )
        raise SettingsError(msg)
    if not isinstance(name, str) or name not in _RANKERS:
        msg = f"unknown ranker {name!r}: {did_you_mean(name, [*_RANKERS, *_COMPOSED])}"
        raise SettingsError(msg)
    kind = _RANKERS[name]
    fields = {field.name for field in dataclasses.fields(kind)}
    try:
        ranker = cast("Ranker", kind(**{key: values[key] for key in fields & values.keys()}))
    except TypeError as error:
        msg = f"ranker {name!r}: {error}"
        raise SettingsError(msg) from error
    described = ranker.describe()
    for key in values.keys() - fields:
        if key not in described or described[key] != values[key]:
            msg = f"ranker {name!r} has no setting {key!r} of {values[key]!r}; it has {described}"
            raise SettingsError(msg)
    return ranker


def _made(key: str, value: Any) -> Any:
    """Return what a setting holds, with the rankers that it names."""
    if key == "rankers" and isinstance(value, list | tuple):
        return tuple(_part(part) for part in value)
    return _part(value) if key == "of" else value


def _part(value: Any) -> Any:
    if isinstance(value, str):
        return make_ranker({"ranker": value})
    return make_ranker(value) if isinstance(value, Mapping) else value


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
    trust: TrustSettings | None = None
    """How far what users, tools, pages and imports say is believed; `None`: all of it."""

    def describe(self) -> dict[str, JSON]:
        """Return the settings as JSON; without `trust` where there is none, as before there was any."""
        names = (name for name in type(self).model_fields if name != "trust" or self.trust)
        return {name: _describe(getattr(self, name)) for name in names}


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
