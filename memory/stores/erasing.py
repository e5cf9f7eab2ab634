"""Deleting whatever lies under a namespace."""

from typing import Final

from langgraph.store.base import Op, PutOp

from langgraft.memory.stores.drive import Program
from langgraft.memory.stores.paging import read_all
from langgraft.memory.stores.records import Namespace

PAGE: Final = 1000
"""Records deleted in one batch."""


def erase(prefix: Namespace) -> Program[int]:
    """Delete every record in `prefix` and below it, and return how many there were.

    Raises:
        InfrastructureError: The store caps searches and did not list all records.
    """
    found = yield from read_all(prefix)
    # Some stores compare namespaces as texts, and so take `a.10` to lie in `a.1`.
    inside = [each for each in found if tuple(each.namespace[: len(prefix)]) == prefix]
    for start in range(0, len(inside), PAGE):
        deletions: list[Op] = [
            PutOp(tuple(each.namespace), each.key, None) for each in inside[start : start + PAGE]
        ]
        yield deletions
    return len(inside)
