"""The memory systems: each a class with a frozen settings model, named in `PROVIDERS`."""

import importlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from langgraft._core.arguments import did_you_mean, named
from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraph.store.base import BaseStore

    from langgraft.memory.provider import MemoryProvider
    from langgraft.memory.providers.agent_kb import AgentKB, AgentKBSettings
    from langgraft.memory.providers.baselines import (
        FullHistory,
        NoMemory,
        RecencyFewShot,
        RecencySettings,
        SelfExamplesSettings,
        SelfGeneratedExamples,
    )
    from langgraft.memory.providers.coding import CodingMemory, CodingSettings
    from langgraft.memory.providers.expel import ExpeL, ExpeLSettings
    from langgraft.memory.providers.expel_rules import VoteSettings
    from langgraft.memory.providers.fact_items import KeptFact
    from langgraft.memory.providers.facts import FactMemory, FactSettings
    from langgraft.memory.providers.insight import InsightMemory, InsightSettings
    from langgraft.memory.providers.lightweight import LightweightMemory, LightweightSettings
    from langgraft.memory.providers.memrl import MemRL, MemRLSettings
    from langgraft.memory.providers.reasoning_bank import ReasoningBank, ReasoningBankSettings
    from langgraft.memory.providers.retrieval import RetrievalSettings
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
    "FactMemory",
    "FactSettings",
    "FullHistory",
    "InsightMemory",
    "InsightSettings",
    "KeptFact",
    "LightweightMemory",
    "LightweightSettings",
    "MemRL",
    "MemRLSettings",
    "NoMemory",
    "ReasoningBank",
    "ReasoningBankSettings",
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
    "open_provider",
    "provider_settings",
]

_MODULES: Final[Mapping[str, tuple[str, ...]]] = {
    "agent_kb": ("AgentKB", "AgentKBSettings"),
    "baselines": (
        "FullHistory",
        "NoMemory",
        "RecencyFewShot",
        "RecencySettings",
        "SelfExamplesSettings",
        "SelfGeneratedExamples",
    ),
    "coding": ("CodingMemory", "CodingSettings"),
    "expel": ("ExpeL", "ExpeLSettings"),
    "expel_rules": ("VoteSettings",),
    "fact_items": ("KeptFact",),
    "facts": ("FactMemory", "FactSettings"),
    "insight": ("InsightMemory", "InsightSettings"),
    "lightweight": ("LightweightMemory", "LightweightSettings"),
    "memrl": ("MemRL", "MemRLSettings"),
    "reasoning_bank": ("ReasoningBank", "ReasoningBankSettings"),
    "retrieval": ("RetrievalSettings",),
    "simple_rag": ("SimpleRAG", "SimpleRAGSettings"),
    "trajectory": ("TrajectoryMemory", "TrajectorySettings"),
}
_PLACES: Final = {
    name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names
}

PROVIDERS: Final[Mapping[str, tuple[str, str]]] = {
    name: (_PLACES[provider], provider)
    for name, provider in {
        "none": "NoMemory",
        "trajectory": "TrajectoryMemory",
        "insight": "InsightMemory",
        "agent_kb": "AgentKB",
        "coding": "CodingMemory",
        "expel": "ExpeL",
        "facts": "FactMemory",
        "full_history": "FullHistory",
        "lightweight": "LightweightMemory",
        "memrl": "MemRL",
        "reasoning_bank": "ReasoningBank",
        "recency": "RecencyFewShot",
        "self_examples": "SelfGeneratedExamples",
        "simple_rag": "SimpleRAG",
    }.items()
}
"""Name in plans → module and class."""

__getattr__, __dir__ = lazy_exports(__name__, _PLACES)


def provider_class(name: "str | type[MemoryProvider[Any]]") -> "type[MemoryProvider[Any]]":
    """Return the provider of a name, or of a dotted path `package.module:Class`; a class is checked.

    Raises:
        SettingsError: There is no such provider.
    """
    from langgraft.memory.provider import MemoryProvider  # noqa: PLC0415  (loads stores)

    found = _imported(name) if isinstance(name, str) else name
    if not (isinstance(found, type) and issubclass(found, MemoryProvider)):
        but = f", but {found!r:.80}" if isinstance(name, str) else ""
        msg = f"provider {name!r} is no `MemoryProvider`{but}"
        raise SettingsError(msg)
    if missing := sorted(found.__abstractmethods__):
        msg = f"provider {name!r} has no `{'`, `'.join(missing)}`: they are yours to write"
        raise SettingsError(msg)
    if not isinstance(getattr(found, "name", None), str):
        msg = f"provider {name!r} has no `name`: give the class one, such as name = 'mine'"
        raise SettingsError(msg)
    return found


def _imported(name: str) -> Any:
    module, attribute = PROVIDERS.get(name, name.partition(":")[::2])
    if not attribute:
        raise SettingsError(unknown_provider(name))
    try:
        return getattr(importlib.import_module(module), attribute)
    except Exception as error:
        msg = f"provider {name!r} cannot be imported: {error}"
        raise SettingsError(msg) from error


def unknown_provider(name: str) -> str:
    """Say that there is no provider of a name, and what may have been meant."""
    if "." in name or "/" in name:  # as paths and names of files have, and no provider of ours
        return (
            f"unknown provider {name!r:.80}: your own is named 'package.module:Class', and a file"
            " is opened by `open_memory` or `Banks`"
        )
    plain = {kind.casefold(): plan for plan, (_, kind) in PROVIDERS.items()}
    known = did_you_mean(plain.get(name.casefold(), name), PROVIDERS)
    return f"unknown provider {name!r:.80}: {known} Your own is named 'package.module:Class'"


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


@named
def make_provider(
    name: str,
    store: "BaseStore",
    *,
    settings: Mapping[str, JSON] = MappingProxyType({}),
    namespace: tuple[str, ...] | None = None,
) -> "MemoryProvider[Any]":
    """Build a provider from its name and plain settings, as plans do.

    Raises:
        SettingsError: There is no such provider or setting, or a value is not possible.
    """
    return provider_class(name)(
        store, namespace=namespace, settings=provider_settings(name, settings)
    )


@contextmanager
def open_provider(
    name: str,
    path: Path | str,
    *,
    settings: Mapping[str, JSON] = MappingProxyType({}),
    namespace: tuple[str, ...] | None = None,
) -> Iterator["MemoryProvider[Any]"]:
    """Open a provider on a folder, which keeps its bank in Chroma and the index of its items.

    Where the folder is as the last block left it, the index is read, and the bank is not. Where
    the process was killed, or anybody else wrote to the database, it is built anew.

    ```python
    with open_provider("insight", "memories") as memory:
        memory.provide("open the red door", context)
    ```

    Args:
        name: The provider's name in plans, or `package.module:Class`.
        path: The folder, which has one owner at a time; made where it is not there.
        settings: The provider's settings, as plans have them.
        namespace: Where the bank is; `None`: `("langgraft", <the provider's name>)`.

    Raises:
        SettingsError: There is no such provider or setting, or a value is not possible.
        StorePathError: The folder is open already, or cannot be written to.
    """
    from langgraft.memory.stores.chroma import ChromaStore  # noqa: PLC0415  (loads chromadb)

    provider_settings(name, settings)  # before anything is opened
    with ChromaStore.open(Path(path).expanduser()) as store:
        yield make_provider(name, store, settings=settings, namespace=namespace)
