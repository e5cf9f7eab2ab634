"""`langgraft memory search`."""

from typing import Final

from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError, LanggraftError
from langgraft.benchmarks.cli.memory.arguments import mapping
from langgraft.benchmarks.cli.memory.banks import Bank
from langgraft.benchmarks.cli.memory.showing import show_items
from langgraft.benchmarks.cli.printing import say, write_json
from langgraft.memory.bank import (
    INDEXED_FIELD,
    ORDER_FIELD,
    Namespace,
    item_of,
    place,
    replace_content,
)
from langgraft.memory.items import MemoryItem
from langgraft.memory.rankers.base import Ranker
from langgraft.memory.rankers.named import make_ranker
from langgraft.memory.stores.drive import drive
from langgraft.memory.stores.ranked import RankedStore
from langgraft.memory.stores.read_only import ReadOnlyStore

_HERE: Final[Namespace] = place(("search",))


def search(bank: Bank, query: str, *, ranker: str, top_k: int, as_json: bool) -> None:
    """Show the items that fit a query best, with their scores.

    Raises:
        InputError: There is no such ranker, or nothing to look for.
        LanggraftError: The ranker's embedder fails.
    """
    if not query.strip():
        msg = "there is nothing to look for: the query is empty"
        raise InputError(msg)
    found = _found(bank, query, _ranker(ranker), top_k)
    if as_json:
        hits: list[JSON] = [{"score": score, "item": item.to_json()} for item, score in found]
        write_json({"bank": bank.name, "query": query, "found": hits})
        return
    if not found:
        say(f"{bank.name}: nothing found among {len(bank.content.items)} items")
        return
    say(f"{bank.name}: best of {len(bank.content.items)} items for {query!r}")
    show_items([item for item, _ in found], [f"{score:.4f}" for _, score in found])


def _ranker(text: str) -> Ranker:
    settings = mapping("--ranker", text) if text.lstrip().startswith("{") else {"ranker": text}
    return make_ranker(settings)


def _found(bank: Bank, query: str, ranker: Ranker, top_k: int) -> list[tuple[MemoryItem, float]]:
    store = InMemoryStore()
    drive(replace_content(_HERE, bank.content), store)
    ranked = RankedStore(
        ReadOnlyStore(store),
        ranker,
        field=INDEXED_FIELD,
        heed_index=False,
        order_field=ORDER_FIELD,
    )
    try:
        hits = ranked.search(_HERE, query=query, limit=top_k)
    except LanggraftError:
        raise
    except Exception as error:  # an embedder may be a service, with errors of any class
        msg = f"the ranker cannot search: {type(error).__name__}: {error}"
        raise LanggraftError(msg) from error
    return [(item_of(hit), hit.score or 0.0) for hit in hits]
