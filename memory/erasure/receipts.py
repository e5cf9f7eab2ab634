"""What is written down of erasures: what is under way, so that a crash does not end it, and receipts.

A ledger is a folder of the application's own:

==================  =======================================================================
`pending.json`      the erasure under way, with what it looks for; overwritten and deleted at its end
`receipts.jsonl`    one receipt a line; each names the digest of the one before
`key`               what receipts are signed with, where no other key is given; made at first
`lock`              held by the process that erases
==================  =======================================================================

A receipt says what was erased without saying it: by digests with a salt of its own, so that who knows
an id or a text can ask whether it was covered (`covers`), and nobody can read it off. It is signed
(HMAC-SHA-256): a receipt that was forged or changed does not verify without the key, nor does a ledger
from whose middle one was taken. Who can read the key can sign; keep one elsewhere where that matters.
"""

import hashlib
import hmac
import json
import os
import secrets
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from filelock import FileLock, Timeout
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from langgraft._core.arguments import checked, describe_validation
from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import InfrastructureError, InputError
from langgraft._core.files import sync, whole_lines, write_all, write_whole
from langgraft._core.untrusted import MOST_BYTES, load_json

Kind: TypeAlias = Literal["item", "episode", "source", "user", "age"]
"""What an erasure was asked of: an id of one of these, or all that is older than a moment."""

FORMAT: Final = "langgraft-erasure"
VERSION: Final = 1

_PENDING: Final = "pending.json"
_RECEIPTS: Final = "receipts.jsonl"
_KEY: Final = "key"
_LOCK: Final = "lock"
_SHORTEST_KEY: Final = 16
"""Bytes, below which a key can be guessed."""
_PATIENCE_SECONDS: Final = 600.0
_OWN: Final = 0o600
"""Permissions of files: the folder may have been made by somebody else, for others to look into."""


class _Frozen(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)


class Looked(_Frozen):
    """What came of one `place`."""

    place: str
    removed: int = 0
    """Records, entries, lines or files that were deleted, or rewritten without what was erased."""
    left: tuple[str, ...] = ()
    """Where something of it still is, and why; empty where a search of the bytes found nothing."""


class ErasureReceipt(_Frozen):
    """Proof of an erasure: of what `kind`, `began` when, and what came of its `places`.

    `format` and `version` are the line's; `signature` is empty where no key was given.
    """

    format: Literal["langgraft-erasure"] = FORMAT
    version: Literal[1] = VERSION
    number: int = Field(ge=1)
    """Its place in the ledger, from 1."""
    previous: str
    """SHA-256 of the line before it; empty for the first one."""
    kind: Kind
    salt: str
    """16 random bytes as hexadecimal digits."""
    subject: str
    """Salted digest of the id that was asked for."""
    erased: tuple[str, ...]
    """Salted digests of the ids of all that was erased with it, and of what it said."""
    began: str
    ended: str
    """UTC, ISO 8601."""
    places: tuple[Looked, ...]
    not_reached: tuple[str, ...]
    """Where copies may be that nobody can delete from here."""
    signature: str = ""

    @property
    def complete(self) -> bool:
        """Whether nothing was left in any place that was reached."""
        return not any(place.left for place in self.places)

    def covers(self, text: str) -> bool:
        """Say whether an id, or the whole text of an item, is among what was erased."""
        try:
            return digest_of(self.salt, text) in {self.subject, *self.erased}
        except ValueError:  # no salt that was written here: who forged it covers nothing
            return False

    def signed_by(self, key: bytes) -> bool:
        """Say whether it is as it was signed with a key."""
        return hmac.compare_digest(self.signature.encode(), _signature(self, key).encode())

    def line(self) -> bytes:
        """Return it as a ledger has it."""
        return f"{canonical_json(self.model_dump(mode='json'))}\n".encode()

    @classmethod
    def read(cls, data: bytes, where: object) -> "ErasureReceipt":
        """Read a receipt.

        Raises:
            InputError: It is none.
        """
        try:
            return cls.model_validate(load_json(data, max(len(data), MOST_BYTES)))
        except ValidationError as error:
            msg = f"{where}: no receipt of an erasure: {describe_validation(error)}"
            raise InputError(msg) from error
        except ValueError as error:
            msg = f"{where}: no receipt of an erasure: {error}"
            raise InputError(msg) from error


def digest_of(salt: str, text: str) -> str:
    """Return the digest by which a receipt names a text."""
    told = text.encode("utf-8", "surrogatepass")
    return hmac.new(bytes.fromhex(salt), told, hashlib.sha256).hexdigest()


def _signature(receipt: ErasureReceipt, key: bytes) -> str:
    body: dict[str, JSON] = receipt.model_dump(mode="json", exclude={"signature"})
    return hmac.new(key, canonical_json(body).encode(), hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class Pending:
    """An erasure under way: what has to be known to begin it again."""

    kind: Kind
    name: str
    salt: str
    began: str
    wanted: Mapping[str, JSON]
    told: Sequence[Looked] = ()
    """What came of the places it was at already."""

    def to_bytes(self) -> bytes:
        """Return it as a ledger keeps it."""
        told = [each.model_dump(mode="json") for each in self.told]
        fields: dict[str, Any] = {
            name: getattr(self, name) for name in ("kind", "name", "salt", "began", "wanted")
        }
        return canonical_json({**fields, "told": told}).encode()

    @classmethod
    def from_bytes(cls, data: bytes) -> "Pending":
        """Read it back."""
        fields: Any = json.loads(data)  # the ledger's own, and as large as what is erased
        told = [Looked.model_validate(each) for each in fields.pop("told")]
        return cls(**fields, told=told)


class Ledger:
    """Where erasures are written down.

    Args:
        path: The folder; made, for its owner alone, where it is missing.
        key: What receipts are signed with, at least 16 bytes; `None`: the file `key` in the folder,
            which is made at first.

    Raises:
        InputError: The key is too short, or the folder cannot be used.
    """

    @checked
    def __init__(self, path: Path | str, key: bytes | None = None) -> None:
        self.path = Path(path).expanduser().absolute()
        if key is not None and len(key) < _SHORTEST_KEY:
            msg = f"a key for receipts has at least {_SHORTEST_KEY} bytes, got {len(key)}"
            raise InputError(msg)
        try:
            self.path.mkdir(mode=0o700, parents=True, exist_ok=True)
            self._key = key or self._own_key()
        except OSError as error:
            msg = f"{self.path}: cannot be used as a ledger of erasures: {error.strerror}"
            raise InputError(msg) from error

    @contextmanager
    def held(self) -> Iterator[None]:
        """Be the only one who erases; nothing is left then of an erasure that has its receipt.

        Raises:
            InfrastructureError: Another process has been erasing for ten minutes.
        """
        try:
            held = FileLock(self.path / _LOCK).acquire(timeout=_PATIENCE_SECONDS)
        except Timeout as error:
            msg = f"{self.path}: another process is erasing; wait for it"
            raise InfrastructureError(msg) from error
        with held:
            if _is_blanked(self.path / _PENDING):
                self._forget_pending()
            yield

    @property
    def pending(self) -> Pending | None:
        """The erasure that a crash left under way, if there is one.

        Raises:
            InputError: What was written down of it is damaged.
        """
        path = self.path / _PENDING
        if not path.exists() or _is_blanked(path):
            return None
        try:
            return Pending.from_bytes(path.read_bytes())
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            msg = f"{path}: what is under way cannot be read: restore the file, or delete it and erase again"
            raise InputError(msg) from error

    def begin(self, pending: Pending) -> None:
        """Write down what is under way; on return it is on disk, and what it replaces is overwritten."""
        path = self.path / _PENDING
        before = os.open(path, os.O_WRONLY) if path.exists() else None
        try:
            write_whole(path, pending.to_bytes(), alone=True, mode=_OWN)
            if before is not None:
                _blank(before)
        finally:
            if before is not None:
                os.close(before)

    def end(self, receipt: ErasureReceipt) -> ErasureReceipt:
        """Sign a receipt and keep it, and nothing else of the erasure.

        A crash after the receipt was written has the erasure end with the same one.
        """
        path = self.path / _RECEIPTS
        before = list(self.receipts())
        made = before[-1] if before and before[-1].salt == receipt.salt else None
        if made is None:
            previous = hashlib.sha256(before[-1].line()).hexdigest() if before else ""
            numbered = receipt.model_copy(
                update={"number": len(before) + 1, "previous": previous, "signature": ""}
            )
            made = numbered.model_copy(update={"signature": _signature(numbered, self._key)})
            self._append(path, made.line())
        self._forget_pending()
        return made

    def _forget_pending(self) -> None:
        for name in (f".{_PENDING}.tmp", _PENDING):
            _overwrite(self.path / name)
        sync(self.path)

    def receipts(self) -> Iterator[ErasureReceipt]:
        """Yield all receipts, whether or not they verify.

        Raises:
            InputError: A line is none.
        """
        path = self.path / _RECEIPTS
        data = whole_lines(path.read_bytes()) if path.exists() else b""
        for number, line in enumerate(data.splitlines(), 1):
            yield ErasureReceipt.read(line, f"{path}, line {number}")

    def verify(self) -> list[str]:
        """Say what is wrong with the receipts; nothing, where each is as it was signed, in its place.

        That the last ones were cut off shows only by what somebody else kept: the latest receipt.

        Raises:
            InputError: A line is no receipt.
        """
        wrong: list[str] = []
        previous = ""
        for number, receipt in enumerate(self.receipts(), 1):
            if not receipt.signed_by(self._key):
                wrong.append(f"receipt {number} was not signed with this key, or was changed since")
            elif (receipt.number, receipt.previous) != (number, previous):
                wrong.append(f"receipt {receipt.number} does not follow the one before it")
            previous = hashlib.sha256(receipt.line()).hexdigest()
        return wrong

    def vouches_for(self, receipt: ErasureReceipt) -> bool:
        """Say whether a receipt, wherever it was kept, was signed with the ledger's key."""
        return receipt.signed_by(self._key)

    def _own_key(self) -> bytes:
        path = self.path / _KEY
        if path.exists():  # or who only reads receipts would wait for whoever erases
            return path.read_bytes()
        with FileLock(self.path / _LOCK, timeout=_PATIENCE_SECONDS):
            if not path.exists():
                write_whole(path, secrets.token_hex(32).encode(), alone=True, mode=_OWN)
            return path.read_bytes()

    def _append(self, path: Path, line: bytes) -> None:
        kept = whole_lines(path.read_bytes()) if path.exists() else b""
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, _OWN)
        try:
            os.ftruncate(descriptor, len(kept))  # of a line that a crash cut short
            write_all(descriptor, line)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        sync(self.path)


def _overwrite(path: Path) -> None:
    """Delete a file that says what was erased, once its bytes are gone."""
    with suppress(FileNotFoundError):
        descriptor = os.open(path, os.O_WRONLY)
        try:
            _blank(descriptor)
        finally:
            os.close(descriptor)
        path.unlink()


def _blank(descriptor: int) -> None:
    """Overwrite a file with zeros, from its beginning."""
    write_all(descriptor, bytes(os.fstat(descriptor).st_size))
    os.fsync(descriptor)


def _is_blanked(path: Path) -> bool:
    """Say whether a crash came while a file was overwritten: a large one may be half way then."""
    with suppress(FileNotFoundError), path.open("rb") as file:
        return file.read(1) in (b"", b"\0")
    return False
