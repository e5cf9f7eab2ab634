"""Rankers by name, for plans and settings files."""

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from langgraft._core.arguments import did_you_mean
from langgraft._core.errors import SettingsError
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.rankers.composite import MMR, Hybrid
from langgraft.memory.rankers.dense import Dense
from langgraft.memory.rankers.lexical import BM25, TermOverlap

_RANKERS: Mapping[str, type[Any]] = {
    "bm25": BM25,
    "dense": Dense,
    "hybrid": Hybrid,
    "mmr": MMR,
    "term_overlap": TermOverlap,
}


def make_ranker(settings: Mapping[str, Any]) -> Ranker:
    """Build a ranker from plain settings such as `{"ranker": "bm25", "k1": 1.2}`.

    Rankers made of others have these in `rankers` (hybrid) or `of` (mmr), by name or as settings.
    What a ranker's `describe` returns gives that ranker again, unless it embeds with an object
    that cannot be named: that has to be given itself.

    Raises:
        SettingsError: There is no such ranker or setting, or a value is not possible.
    """
    values = {key: _made(key, value) for key, value in settings.items()}
    name = values.pop("ranker", None)
    if "ranker" not in settings:
        msg = (
            f"settings of a ranker name it as `ranker`, such as {{'ranker': 'bm25', 'k1': 1.2}};"
            f" got {dict(settings)!r:.200}"
        )
        raise SettingsError(msg)
    if not isinstance(name, str) or name not in _RANKERS:
        msg = f"unknown ranker {name!r}: {did_you_mean(name, _RANKERS)}"
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
