"""Refusing what is no store, and no ranker, where it is handed in."""

from langgraph.store.base import BaseStore

from langgraft._core.errors import SettingsError
from langgraft.memory.rankers.base import is_ranker


def check_store(store: object, what: str = "store") -> None:
    """Raise `SettingsError` unless `store` is a LangGraph store."""
    if not isinstance(store, BaseStore):
        msg = f"{what} must be a LangGraph BaseStore, such as InMemoryStore(), got {store!r:.80}"
        raise SettingsError(msg)


def check_ranker(ranker: object) -> None:
    """Raise `SettingsError` unless `ranker` is a ranker."""
    if not is_ranker(ranker):
        msg = f"ranker must be a ranker, such as BM25(), got {ranker!r:.80}"
        raise SettingsError(msg)
