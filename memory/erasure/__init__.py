"""Erasure: an item, an episode, a source or a user, out of everything that was written here of it.

    ledger = Ledger("erasures")
    receipt = erase(memory, episode="e0", ledger=ledger, places=[VectorPlace(vectors)])
    assert receipt.complete

`forget` (`langgraft.memory.editing`) takes an item out of a bank; an erasure also leaves no byte of it:

1. What follows from it is found, in every bank that was given, and what it said.
2. That is written down in a ledger, so that after a crash at any step the next call goes on.
3. It is taken out of each bank in one step, as `forget` does. Filings go on before and after it.
4. Indexes of these banks are dropped and built anew when they are next asked; the vectors that their
   rankers have cached go too; so do copies in all places that were given.
5. Files of databases are rewritten, so that nothing is left in free pages and logs.
6. Files are searched for its bytes: as UTF-8, as UTF-16, and as JSON escapes them.
7. A receipt is signed, and all that was written down of what was looked for is overwritten.

What was erased is known by the ids of items and by *phrases*: their texts, keys and metadata, and lines of
these, of twelve characters or more, as far as no item that stays says the same; and `mentions`, such as
a telephone number, as they are given. Copies outside of banks have no ids and are found by phrases.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.memory.erasure.places import CheckpointPlace, Place, VectorPlace, Wanted
    from langgraft.memory.erasure.receipts import ErasureReceipt, Ledger, Looked
    from langgraft.memory.erasure.work import aerase, erase, resume

__all__ = [
    "CheckpointPlace",
    "ErasureReceipt",
    "Ledger",
    "Looked",
    "Place",
    "VectorPlace",
    "Wanted",
    "aerase",
    "erase",
    "resume",
]

_MODULES = {
    "places": ("CheckpointPlace", "Place", "VectorPlace", "Wanted"),
    "receipts": ("ErasureReceipt", "Ledger", "Looked"),
    "work": ("aerase", "erase", "resume"),
}

__getattr__, __dir__ = lazy_exports(
    __name__, {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}
)
