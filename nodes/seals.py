"""Signatures on what the middleware writes into a thread's state, which clients may write too.

A client of a LangGraph server may write any value into the state of its threads: with `update_state`, with
`Command(update=…)`, or as input of a graph. A signature tells the records of turns that this application
wrote from all others. It covers the record and its thread, so a record counts in its own thread only.

The key is random. It is kept in the store that holds the banks, so all processes of an application share it.
Whoever can read that store can read the banks as well. Until the store has answered, and where it can only
be read, records are signed with a key of the process.
"""

import hmac
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar, cast

from langgraph.store.base import BaseStore, GetOp, Item, PutOp

from langgraft._core.canonical import canonical_json
from langgraft._core.effects import Call, PerStore, Program, adrive, drive
from langgraft._core.errors import ForkError
from langgraft.memory.bank import open_bank
from langgraft.memory.stores.programs import Namespace
from langgraft.memory.stores.programs import Program as StoreProgram

SIGNATURE: Final = "signature"
"""The field of a record that holds its signature."""

_PLACE: Final[Namespace] = ("langgraft-server",)
_NAME: Final = "key-of-turns"
_OF_PROCESS: Final = secrets.token_bytes(32)

RecordT = TypeVar("RecordT", bound=Mapping[str, Any])


class Seals:
    """Signs records, and tells those that were signed here, or by another process over the same store."""

    def __init__(self) -> None:
        self._keys: PerStore[list[bytes]] = PerStore(lambda: [_OF_PROCESS])

    def load(self, store: BaseStore) -> Program[Call, None]:
        """Read the key that a store keeps, and make it if there is none; a store that fails changes nothing."""
        keys = self._keys.of(store)
        if len(keys) > 1:
            return
        try:
            key = yield Call(_key, _akey, store)
        except ForkError:
            raise
        except Exception:  # noqa: BLE001 - whatever a database raises; recalling from it reports the fault
            return
        keys[:] = [key, _OF_PROCESS]

    def sign(self, store: BaseStore, thread: str, record: RecordT) -> RecordT:
        """Return a record with its signature."""
        key = self._keys.of(store)[0]
        return cast("RecordT", {**record, SIGNATURE: _signature(key, thread, record)})

    def signed(self, store: BaseStore, thread: str, records: Iterable[Any]) -> list[Any]:
        """Return the records that carry a valid signature for this thread, in their order."""
        keys = self._keys.of(store)
        return [each for each in records if _is_signed(keys, thread, each)]


def _is_signed(keys: Iterable[bytes], thread: str, record: object) -> bool:
    if not isinstance(record, Mapping) or not isinstance(record.get(SIGNATURE), str):
        return False
    claimed = record[SIGNATURE].encode("utf-8", "replace")
    try:
        return any(
            hmac.compare_digest(_signature(key, thread, record).encode(), claimed) for key in keys
        )
    except (TypeError, ValueError, RecursionError):  # a client wrote what no record holds
        return False


def _signature(key: bytes, thread: str, record: Mapping[str, Any]) -> str:
    said = {name: value for name, value in record.items() if name != SIGNATURE}
    return hmac.digest(key, canonical_json([thread, said]).encode(), "sha256").hex()


def _key(store: BaseStore) -> bytes:
    found = drive(_read(), store)
    if found is None:
        with open_bank(store, _PLACE).lock.held():
            found = drive(_read_or_made(), store)
    return bytes.fromhex(found)


async def _akey(store: BaseStore) -> bytes:
    found = await adrive(_read(), store)
    if found is None:
        async with open_bank(store, _PLACE).lock.aheld():
            found = await adrive(_read_or_made(), store)
    return bytes.fromhex(found)


def _read() -> StoreProgram[str | None]:
    (found,) = yield [GetOp(_PLACE, _NAME)]
    return None if found is None else str(cast("Item", found).value["key"])


def _read_or_made() -> StoreProgram[str]:
    found = yield from _read()
    if found is None:
        made = secrets.token_hex(32)
        yield [PutOp(_PLACE, _NAME, {"key": made}, index=False)]
        # Over a store without locks another process may have been later.
        found = (yield from _read()) or made
    return found
