"""The memory systems: each a class with a frozen settings model, named in `PROVIDERS`."""

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from langgraft._core.arguments import did_you_mean
from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from langgraft.memory.provider import MemoryProvider
    from langgraft.memory.providers.agent_kb import AgentKB, AgentKBSettings
    from langgraft.memory.providers.coding import CodingMemory, CodingSettings
    from langgraft.memory.providers.expel import ExpeL, ExpeLSettings, VoteSettings
    from langgraft.memory.providers.full_history import FullHistory
    from langgraft.memory.providers.insight import InsightMemory, InsightSettings
    from langgraft.memory.providers.lightweight import LightweightMemory, LightweightSettings
    from langgraft.memory.providers.none import NoMemory
    from langgraft.memory.providers.recency import RecencyFewShot, RecencySettings
    from langgraft.memory.providers.remedies import RetrievalSettings
    from langgraft.memory.providers.self_examples import SelfExamplesSettings, SelfGeneratedExamples
    from langgraft.memory.providers.simple_rag import SimpleRAG, SimpleRAGSettings
    from langgraft.memory.providers.trajectory import TrajectoryMemory, TrajectorySettings
    from langgraft.memory.settings import ProviderSettings

__all__ = [
    "PROVIDERS",
    "AgentKB",
    "AgentKBSettings",
    "CodingMemory",
    "CodingSettings",
    "ExpeL",
    "ExpeLSettings",
    "FullHistory",
    "InsightMemory",
    "InsightSettings",
    "LightweightMemory",
    "LightweightSettings",
    "NoMemory",
    "RecencyFewShot",
    "RecencySettings",
    "RetrievalSettings",
    "SelfExamplesSettings",
    "SelfGeneratedExamples",
    "SimpleRAG",
    "SimpleRAGSettings",
    "TrajectoryMemory",
    "TrajectorySettings",
    "VoteSettings",
    "make_provider",
    "provider_settings",
]

PROVIDERS: Final[Mapping[str, tuple[str, str]]] = {
    "none": ("langgraft.memory.providers.none", "NoMemory"),
    "trajectory": ("langgraft.memory.providers.trajectory", "TrajectoryMemory"),
    "insight": ("langgraft.memory.providers.insight", "InsightMemory"),
    "agent_kb": ("langgraft.memory.providers.agent_kb", "AgentKB"),
    "coding": ("langgraft.memory.providers.coding", "CodingMemory"),
    "expel": ("langgraft.memory.providers.expel", "ExpeL"),
    "full_history": ("langgraft.memory.providers.full_history", "FullHistory"),
    "lightweight": ("langgraft.memory.providers.lightweight", "LightweightMemory"),
    "recency": ("langgraft.memory.providers.recency", "RecencyFewShot"),
    "self_examples": ("langgraft.memory.providers.self_examples", "SelfGeneratedExamples"),
    "simple_rag": ("langgraft.memory.providers.simple_rag", "SimpleRAG"),
}
"""Name in plans → module and class."""

__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "NoMemory": "langgraft.memory.providers.none",
        "RetrievalSettings": "langgraft.memory.providers.remedies",
        "TrajectoryMemory": "langgraft.memory.providers.trajectory",
        "TrajectorySettings": "langgraft.memory.providers.trajectory",
        "InsightMemory": "langgraft.memory.providers.insight",
        "InsightSettings": "langgraft.memory.providers.insight",
        "AgentKB": "langgraft.memory.providers.agent_kb",
        "AgentKBSettings": "langgraft.memory.providers.agent_kb",
        "CodingMemory": "langgraft.memory.providers.coding",
        "CodingSettings": "langgraft.memory.providers.coding",
        "ExpeL": "langgraft.memory.providers.expel",
        "ExpeLSettings": "langgraft.memory.providers.expel",
        "VoteSettings": "langgraft.memory.providers.expel",
        "FullHistory": "langgraft.memory.providers.full_history",
        "LightweightMemory": "langgraft.memory.providers.lightweight",
        "LightweightSettings": "langgraft.memory.providers.lightweight",
        "RecencyFewShot": "langgraft.memory.providers.recency",
        "RecencySettings": "langgraft.memory.providers.recency",
        "SelfExamplesSettings": "langgraft.memory.providers.self_examples",
        "SelfGeneratedExamples": "langgraft.memory.providers.self_examples",
        "SimpleRAG": "langgraft.memory.providers.simple_rag",
        "SimpleRAGSettings": "langgraft.memory.providers.simple_rag",
    },
)


def provider_class(name: str) -> "type[MemoryProvider[Any]]":
    """Return the provider of a name, or of a dotted path `package.module:Class`.

    Raises:
        SettingsError: There is no such provider.
    """
    from langgraft.memory.provider import MemoryProvider  # noqa: PLC0415  (loads stores)

    module, attribute = PROVIDERS.get(name, name.partition(":")[::2])
    if not attribute:
        known = did_you_mean(name, PROVIDERS)
        msg = f"unknown provider {name!r}: {known} Your own is named 'package.module:Class'"
        raise SettingsError(msg)
    try:
        found = getattr(importlib.import_module(module), attribute)
    except Exception as error:
        msg = f"provider {name!r} cannot be imported: {error}"
        raise SettingsError(msg) from error
    if not (isinstance(found, type) and issubclass(found, MemoryProvider)):
        msg = f"provider {name!r} is no `MemoryProvider`, but {found!r:.80}"
        raise SettingsError(msg)
    if missing := sorted(found.__abstractmethods__):
        msg = f"provider {name!r} has no `{'`, `'.join(missing)}`: they are yours to write"
        raise SettingsError(msg)
    if not isinstance(getattr(found, "name", None), str):
        msg = f"provider {name!r} has no `name`: give the class one, such as name = 'mine'"
        raise SettingsError(msg)
    return found


def provider_settings(name: str, settings: Mapping[str, JSON]) -> "ProviderSettings":
    """Check the settings of a provider.

    Raises:
        SettingsError: There is no such provider or setting, or a value is not possible.
    """
    model = provider_class(name).settings_model
    if not isinstance(settings, Mapping):
        msg = f"provider {name!r}: settings are a mapping, got {settings!r:.80}"
        raise SettingsError(msg)
    try:
        return model(**{str(name): value for name, value in settings.items()})
    except SettingsError as error:
        msg = f"provider {name!r}: {error}"
        raise SettingsError(msg) from error


def make_provider(
    name: str,
    store: "BaseStore",
    *,
    settings: Mapping[str, JSON],
    namespace: tuple[str, ...] | None = None,
) -> "MemoryProvider[Any]":
    """Build a provider from its name and plain settings, as plans do.

    Raises:
        SettingsError: There is no such provider or setting, or a value is not possible.
    """
    return provider_class(name)(
        store, namespace=namespace, settings=provider_settings(name, settings)
    )
