"""The reference: LangGraph's `InMemoryStore`, corrected where it is wrong."""

import sys
from collections.abc import Iterable
from copy import deepcopy
from threading import Lock
from typing import Any

from langgraph.store.base import GetOp, Item, Op, PutOp, Result, SearchOp
from langgraph.store.memory import InMemoryStore

from langgraft.memory.stores.records import Address, Namespace, check_filter, passes

Vectors = list[list[float]]


class ReferenceStore(InMemoryStore):
    """What a conforming store does, in the simplest way; for comparison, not for use.

    LangGraph's documentation names `InMemoryStore` as the reference. `defects` lists where this
    one departs from it and why. Embeddings are always called synchronously.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._lock = Lock()

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Read what is asked, then write; hold nothing that a caller can reach."""
        asked = [_own(op) for op in ops]
        with self._lock:
            results = [deepcopy(self._answer(op)) for op in asked]
            created = {address: item.created_at for address, item in self._written(asked)}
            for op in asked:
                if isinstance(op, PutOp):
                    self._vectors[op.namespace].pop(op.key, None)
            super().batch([op for op in asked if isinstance(op, PutOp)])
            for address, item in self._written(asked):
                item.created_at = created.get(address, item.created_at)
            for namespace in [each for each, held in self._data.items() if not held]:
                del self._data[namespace]
            return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as `batch`."""
        return self.batch(ops)

    def _answer(self, op: Op) -> Result:
        match op:
            case PutOp():
                return None
            case GetOp():
                return self._data.get(op.namespace, {}).get(op.key)
            case _:
                return super().batch([op])[0]

    def _written(self, ops: Iterable[Op]) -> list[tuple[Address, Item]]:
        """List the stored items that `ops` write to."""
        addresses = {(op.namespace, op.key) for op in ops if isinstance(op, PutOp)}
        held = [(address, self._data.get(address[0], {}).get(address[1])) for address in addresses]
        return [(address, item) for address, item in held if item is not None]

    def _filter_items(self, op: SearchOp) -> list[tuple[Item, Vectors]]:
        every = super()._filter_items(op._replace(filter=None, offset=0, limit=sys.maxsize))
        return [(item, vectors) for item, vectors in every if passes(item.value, op.filter)]

    def _insertinmem_store(
        self, to_embed: dict[str, list[tuple[Namespace, str, str]]], embeddings: Vectors
    ) -> None:
        for fields, vector in zip(to_embed.values(), embeddings, strict=True):
            for namespace, key, path in fields:
                self._vectors[namespace][key][path] = vector


def _own(op: Op) -> Op:
    """Return an operation that shares nothing with the caller."""
    match op:
        case PutOp():
            return op._replace(namespace=tuple(op.namespace), value=deepcopy(op.value))
        case GetOp():
            return op._replace(namespace=tuple(op.namespace))
        case SearchOp():
            check_filter(op.filter)
            return op._replace(namespace_prefix=tuple(op.namespace_prefix))
        case _:
            return op
