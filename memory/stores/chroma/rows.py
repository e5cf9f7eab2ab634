"""A record as one row of a Chroma collection.

Everything a record has stands in one row, its vectors included, because one row is what Chroma
writes whole or not at all. All of it is metadata:

* Text is JSON in ASCII, which holds what SQLite and HTTP do not (NUL, lone surrogates).
* Every row has the same names, because Chroma's `upsert` keeps metadata it is not given.
* Chroma's `document` stays empty: it is cut into trigrams for a full-text search nobody asks for,
  which doubles the time and the disk of a write (measured: .68 against .32 ms a row).
* Chroma's own vector stays a number that means nothing: reading it back goes through an index
  that is approximate, normalizes, and can lose rows. It costs .05 ms a row.
"""

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Final, TypeAlias

from langgraph.store.base import Item

from langgraft._core.errors import InputError
from langgraft.memory.stores.drive import Address, Namespace

Metadata: TypeAlias = dict[str, str | int]

MAX_DEPTH: Final = 200
"""Levels a value may be nested; Python reads JSON recursively and stops at about 1,000."""

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)

_EXCERPT: Final = 60


@dataclass(frozen=True, slots=True)
class Packed:
    """The vectors of a record, as bytes: little-endian float32, one vector after another."""

    dims: int = 0
    data: bytes = b""


@dataclass(frozen=True, slots=True)
class Row:
    """A record as it is kept.

    Attributes:
        namespace: Where it is.
        key: Its name there.
        created: When the key was first written, in nanoseconds since the epoch; no two records
            written by one store have the same, so this is also their order.
        updated: When it was last written, likewise.
        value: Its value in JSON.
        packed: Its vectors.
        id: Its id in Chroma, which follows from namespace and key.
    """

    namespace: Namespace
    key: str
    created: int
    updated: int
    value: str
    packed: Packed = Packed()
    id: str = ""

    def __post_init__(self) -> None:
        if not self.id:
            object.__setattr__(self, "id", row_id((self.namespace, self.key)))

    def content(self) -> dict[str, Any]:
        """Return a new copy of the record's value."""
        value: dict[str, Any] = json.loads(self.value)
        return value

    def item(self) -> Item:
        """Return the record as LangGraph gives it."""
        return Item(
            value=self.content(),
            key=self.key,
            namespace=self.namespace,
            created_at=moment(self.created),
            updated_at=moment(self.updated),
        )

    def metadata(self) -> Metadata:
        """Return what Chroma keeps of it."""
        vectors = base64.b64encode(self.packed.data).decode("ascii")
        return {
            "namespace": _json(self.namespace),
            "key": _json(self.key),
            "created": self.created,
            "updated": self.updated,
            "value": self.value,
            "vectors": f"{self.packed.dims}:{vectors}",
            **{_label(i): _json(label) for i, label in enumerate(self.namespace)},
        }

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, Any], identifier: str = "") -> "Row":
        """Read what `metadata` wrote, in the row of an id."""
        dims, _, vectors = metadata["vectors"].partition(":")
        return cls(
            namespace=tuple(json.loads(metadata["namespace"])),
            key=json.loads(metadata["key"]),
            created=metadata["created"],
            updated=metadata["updated"],
            value=metadata["value"],
            packed=Packed(int(dims), base64.b64decode(vectors)),
            id=identifier,
        )


def row_id(address: Address) -> str:
    """Return the id of a record's row: of one length, however long its key is."""
    namespace, key = address
    return hashlib.sha256(_json([*namespace, key]).encode("ascii")).hexdigest()


def placeholder(identifier: str) -> list[float]:
    """Return the vector of one number that Chroma wants for a row.

    Rows have different ones: an index of equal vectors is slower to add to.
    """
    return [int(identifier[:4], 16) / 65536]


def under(prefix: Namespace) -> dict[str, Any] | None:
    """Return Chroma's condition for the rows under a namespace prefix, label by label."""
    labels = [{_label(i): _json(label)} for i, label in enumerate(prefix)]
    if len(labels) > 1:
        return {"$and": labels}
    return dict(labels[0]) if labels else None


def check_address(namespace: Any, key: Any) -> Address:
    """Return the address of a record, with a namespace that came as a list as a tuple.

    Raises:
        InputError: A label or the key is no string, or one that JSON cannot give back.
    """
    labels = check_labels(namespace)
    if not isinstance(key, str):
        msg = f"a key must be a string, got {key!r} in namespace {labels!r}"
        raise InputError(msg)
    _check_text(key, f"the key {key!r}")
    return labels, key


def check_labels(namespace: Any) -> Namespace:
    """Return a namespace or a prefix of one as a tuple.

    Raises:
        InputError: It is no sequence of strings, or one that JSON cannot give back.
    """
    if not isinstance(namespace, tuple | list) or not all(isinstance(x, str) for x in namespace):
        msg = f"a namespace must be a tuple of strings, got {namespace!r}"
        raise InputError(msg)
    for label in namespace:
        _check_text(label, f"the namespace {namespace!r}")
    return tuple(namespace)


def encode(value: Any, address: Address) -> str:
    """Write a record's value as JSON in ASCII.

    Tuples become lists; NaN and infinities stay what they are.

    Raises:
        InputError: It is no mapping, or holds something that JSON does not give back as it was.
    """
    where = f"the value of {address[1]!r} in {address[0]!r}"
    if not isinstance(value, Mapping):
        msg = f"{where} must be a mapping, got {type(value).__name__}"
        raise InputError(msg)
    _check(dict(value), where, 0)
    try:
        return _json(dict(value))
    except ValueError as error:  # an integer of more digits than Python writes
        msg = f"{where} cannot be written as JSON: {error}"
        raise InputError(msg) from error


def moment(nanoseconds: int) -> datetime:
    """Return a time stamp as a date, which has microseconds."""
    return _EPOCH + timedelta(microseconds=nanoseconds // 1000)


def _check(value: Any, where: str, depth: int) -> None:
    if depth > MAX_DEPTH:
        msg = f"{where} is nested deeper than {MAX_DEPTH} levels; flatten it"
        raise InputError(msg)
    match value:
        case None | bool() | int() | float():
            return
        case str():
            _check_text(value, where)
        case dict():
            for key, inner in value.items():
                if not isinstance(key, str):
                    msg = f"{where} holds a mapping with the key {key!r}; keys must be strings"
                    raise InputError(msg)
                _check_text(key, where)
                _check(inner, where, depth + 1)
        case list() | tuple():
            for inner in value:
                _check(inner, where, depth + 1)
        case _:
            msg = f"{where} holds a {type(value).__name__}, which is no JSON; convert it first"
            raise InputError(msg)


def _check_text(text: str, where: str) -> None:
    """Refuse two surrogates that JSON would read back as the one character they stand for."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        units = text.encode("utf-16-le", "surrogatepass")
        if units.decode("utf-16-le", "surrogatepass") != text:
            msg = (
                f"{where} holds a character split into two surrogates, in"
                f" {text[:_EXCERPT]!r}; decode it first"
            )
            raise InputError(msg) from None


def _label(position: int) -> str:
    return f"label{position}"


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=True, separators=(",", ":"))
