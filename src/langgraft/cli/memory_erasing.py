"""What `langgraft memory erase` and `receipts` do."""

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Final

from langgraft._core.canonical import JSON
from langgraft._core.effects import SystemClock
from langgraft._core.errors import InputError
from langgraft._core.sqlite_file import open_checkpoints
from langgraft.benchmarks.harness.erasing import ResponsePlace, RunDirectory
from langgraft.cli.memory_banks import Address, kept_provider, mapping
from langgraft.cli.printing import complain, say, write_json
from langgraft.memory.banks import Banks
from langgraft.memory.embedders import SQLiteVectors
from langgraft.memory.erasure import (
    CheckpointPlace,
    ErasureReceipt,
    Ledger,
    Place,
    VectorPlace,
)
from langgraft.memory.erasure import erase as erased
from langgraft.memory.erasure import resume as resumed
from langgraft.memory.erasure.work import Memories
from langgraft.memory.stores.named import open_store

_AGE: Final = re.compile(r"(\d{1,6})([dhm])")
_UNITS: Final = {"d": "days", "h": "hours", "m": "minutes"}


@dataclass(frozen=True, slots=True)
class Asked:
    """What is to be erased, as it was typed."""

    item: str | None
    episode: str | None
    source: str | None
    user: str | None
    older_than: str | None
    mentions: Sequence[str]
    resume: bool


@dataclass(frozen=True, slots=True)
class Where:
    """Where copies may be, beside the bank."""

    runs: Sequence[Path]
    responses: Sequence[Path]
    vectors: Sequence[Path]
    checkpoints: Sequence[Path]


def erase(
    address: Address,
    asked: Asked,
    where: Where,
    ledger: Path,
    key: Path | None,
    *,
    as_json: bool,
) -> bool:
    """Erase, and show the receipt; say whether nothing is left.

    Raises:
        InputError: It is not told what or where, or something is not there; nothing was changed.
    """
    before = None if asked.older_than is None else _moment(asked.older_than)
    for path in (*where.runs, *where.responses, *where.vectors, *where.checkpoints):
        if not path.exists():
            msg = f"{path}: there is nothing to erase in"
            raise InputError(msg)
    with ExitStack() as opened:
        memory = opened.enter_context(_memory(address, asked))
        places = list(_places(where, opened))
        book = _ledger(ledger, key)
        if asked.resume:
            receipt = resumed(memory, ledger=book, places=places)
            if receipt is None:
                say("no erasure is under way")
                return True
        else:
            receipt = erased(
                memory,
                ledger=book,
                item=asked.item,
                episode=asked.episode,
                source=asked.source,
                user=asked.user,
                before=before,
                mentions=asked.mentions,
                places=places,
            )
    _show(receipt, as_json=as_json)
    return receipt.complete


def show_receipts(
    ledger: Path, key: Path | None, covers: str | None, receipt: Path | None, *, as_json: bool
) -> bool:
    """Verify receipts and show them; say whether all are as they were signed.

    Raises:
        InputError: There is no ledger, or a line of it is no receipt.
    """
    if not ledger.is_dir():
        msg = f"{ledger}: there is no ledger of erasures"
        raise InputError(msg)
    book = _ledger(ledger, key)
    wrong = book.verify()
    found = list(book.receipts())
    if receipt is not None:
        found = [ErasureReceipt.read(_bytes("--receipt", receipt), receipt)]
        wrong = [] if book.vouches_for(found[0]) else [f"{receipt}: not signed with this key"]
    if book.pending is not None:
        complain("an erasure is under way: end it with `langgraft memory erase --resume`")
    shown = [each for each in found if covers is None or each.covers(covers)]
    if as_json:
        listed: list[JSON] = [each.model_dump(mode="json") for each in shown]
        write_json({"receipts": listed, "wrong": list(wrong)})
    else:
        for each in shown:
            _show(each, as_json=False)
        for line in wrong:
            say(line)
        say(f"{len(shown)} receipts; {'they verify' if not wrong else 'they do not verify'}")
    return not wrong


def _ledger(path: Path, key: Path | None) -> Ledger:
    return Ledger(path, None if key is None else _bytes("--key", key))


def _bytes(option: str, path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        msg = f"{option} {path}: cannot be read: {error.strerror}"
        raise InputError(msg) from error


@contextmanager
def _memory(address: Address, asked: Asked) -> Iterator[Memories]:
    """Open the bank, or those of all users; none, where only copies are erased."""
    if address.store is None and address.provider is None:
        yield []
    elif asked.user is None:
        with kept_provider(address) as memory:
            yield memory
    else:
        if address.store is None or address.provider is None:
            raise InputError("a user is erased from a store: give --store and --provider")
        namespace = tuple(address.namespace.split("/")) if address.namespace else None
        settings = mapping("--settings", address.settings)
        with (
            open_store(address.store) as store,
            Banks(store, address.provider, settings, namespace=namespace) as banks,
        ):
            yield banks


def _places(where: Where, opened: ExitStack) -> Iterator[Place]:
    yield from map(RunDirectory, where.runs)
    yield from map(ResponsePlace, where.responses)
    for path in where.vectors:
        vectors = SQLiteVectors(path)
        opened.callback(vectors.close)
        yield VectorPlace(vectors)
    for path in where.checkpoints:
        yield CheckpointPlace(opened.enter_context(_saver(path)))


@contextmanager
def _saver(path: Path) -> Iterator[Any]:
    from langgraft._core.lazy import require  # noqa: PLC0415

    sqlite = require("langgraph.checkpoint.sqlite", extra="mle", purpose="A file of checkpoints")
    try:
        with open_checkpoints(path) as connection:
            yield sqlite.SqliteSaver(connection)
    except (sqlite3.DatabaseError, OSError) as error:
        msg = f"{path}: no SQLite file of checkpoints: {error}"
        raise InputError(msg) from error


def _moment(text: str) -> datetime:
    """Return the time that an age or a date stands for."""
    now = datetime.fromtimestamp(SystemClock().time(), UTC)
    try:
        if match := _AGE.fullmatch(text):
            return now - timedelta(**{_UNITS[match[2]]: int(match[1])})
        found = datetime.fromisoformat(text)
    except (ValueError, OverflowError) as error:
        msg = f"--older-than takes an age such as 90d, 12h or 30m, or a date, got {text!r:.80}"
        raise InputError(msg) from error
    return found if found.tzinfo else found.replace(tzinfo=UTC)


def _show(receipt: ErasureReceipt, *, as_json: bool) -> None:
    if as_json:
        write_json(receipt.model_dump(mode="json"))
        return
    say(f"receipt {receipt.number}: {receipt.kind}, {receipt.began} to {receipt.ended}")
    for place in receipt.places:
        say(f"  {place.place}: {place.removed} removed")
        for left in place.left:
            say(f"    left: {left}")
    for beyond in receipt.not_reached:
        say(f"  not reached: {beyond}")
