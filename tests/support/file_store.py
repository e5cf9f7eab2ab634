"""A LangGraph store of a user's own: records in a dict, written to one JSON file."""

import json
from collections.abc import Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from langgraph.store.base import (
    BaseStore,
    GetOp,
    Item,
    ListNamespacesOp,
    Op,
    PutOp,
    Result,
    SearchItem,
    SearchOp,
)

EPOCH = datetime(2020, 1, 1, tzinfo=UTC)


class FileStore(BaseStore):
    """Keeps what it is given, survives its process, and ranks nothing."""

    def __init__(self, path: Path) -> None:
        self._path = path
        rows = json.loads(path.read_text()) if path.exists() else []
        self._records: dict[tuple[tuple[str, ...], str], dict[str, Any]] = {
            (tuple(namespace), key): value for namespace, key, value in rows
        }

    def batch(self, ops: Iterable[Op]) -> list[Result]:
        """Answer reads from before the batch, then write."""
        listed = list(ops)
        results = [self._read(op) for op in listed]
        for op in listed:
            if isinstance(op, PutOp):
                self._records.pop((op.namespace, op.key), None)
                if op.value is not None:
                    self._records[(op.namespace, op.key)] = json.loads(json.dumps(op.value))
        if any(isinstance(op, PutOp) for op in listed):
            rows = [[*place, value] for place, value in self._records.items()]
            self._path.write_text(json.dumps(rows))
        return results

    async def abatch(self, ops: Iterable[Op]) -> list[Result]:
        """Do as `batch` does."""
        return self.batch(ops)

    def _read(self, op: Op) -> Result:
        match op:
            case GetOp():
                value = self._records.get((op.namespace, op.key))
                return None if value is None else Item(**self._fields(op.namespace, op.key, value))
            case SearchOp():
                found = [
                    SearchItem(namespace, key, value, EPOCH, EPOCH)
                    for (namespace, key), value in self._records.items()
                    if namespace[: len(op.namespace_prefix)] == op.namespace_prefix
                ]
                return found[op.offset : op.offset + op.limit]
            case ListNamespacesOp():
                return sorted({namespace for namespace, _ in self._records})
            case _:
                return None

    @staticmethod
    def _fields(namespace: tuple[str, ...], key: str, value: dict[str, Any]) -> dict[str, Any]:
        return {
            "namespace": namespace,
            "key": key,
            "value": value,
            "created_at": EPOCH,
            "updated_at": EPOCH,
        }
