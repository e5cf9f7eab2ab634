"""A run as a chain of contents: a checkpoint holds one reference, however long the run is.

Each record is a content by reference in canonical JSON, and names the one before it by digest. So
the last reference vouches for the whole run: two runs are the same, byte for byte, exactly if
their last references are equal, and a record that is written again after a crash is the same
content. What the records of one kind of run add up to is for its own module to say
(`langgraft.nodes.search.journal`, `langgraft.nodes.workbench.log`).
"""

import json
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary

from pydantic import ValidationError

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import InputError
from langgraft._core.settings import describe_validation
from langgraft.nodes.artifacts import Artifacts, check_reference, reference_of

R = TypeVar("R")
"""A record, as it was read."""
V = TypeVar("V")
"""What the records so far add up to."""

_PREVIOUS: Final = "previous"
_HEADS: Final = 16
"""Runs that are remembered at a time, of each keeper of artifacts."""


class RecordChain(Generic[R, V]):
    """Reads and writes chains of one kind, and remembers what was read last.

    What was read before in this process, through the same artifacts, is not read again: going
    through a run that grows step by step reads each record once.

    Args:
        what: Whose records these are, for messages: `search`.
        keys: Keys of a record, besides `previous`.
        parse: Reads a record; what it raises (`ValueError`, `InputError`) says that it is none.
        extend: Adds a record to what came before, under its reference; raises `InputError` where
            it does not follow.
        start: What no record at all adds up to.
    """

    def __init__(
        self,
        what: str,
        *,
        keys: Iterable[str],
        parse: Callable[[Mapping[str, Any]], R],
        extend: Callable[[V, R, str], V],
        start: V,
    ) -> None:
        self._what = what
        self._keys = frozenset(keys) | {_PREVIOUS}
        self._parse = parse
        self._extend = extend
        self._start = start
        self._memos: WeakKeyDictionary[Artifacts, _Memo[V]] = WeakKeyDictionary()
        self._lock = threading.Lock()

    def append(self, artifacts: Artifacts, previous: str, content: Mapping[str, JSON]) -> str:
        """Add a record, and return its reference.

        Raises:
            InputError: It does not follow from the records before it, or one of those is missing
                or damaged.
            InfrastructureError: It cannot be written now.
        """
        before = self.read(artifacts, previous)
        written = canonical_json({**content, _PREVIOUS: previous})
        parsed = self._parse(json.loads(written))  # as it will be read back
        longer = self._extend(before, parsed, reference_of(written.encode("utf-8")))
        reference = artifacts.keep(written.encode("utf-8"))
        self._memo(artifacts).remember(reference, longer, instead_of=previous)
        return reference

    def read(self, artifacts: Artifacts, reference: str) -> V:
        """Return what the records up to a reference add up to; nothing is before the first one.

        Raises:
            InputError: A record is missing, damaged, no record, or does not follow from the one
                before.
            InfrastructureError: A record is there and cannot be read now.
        """
        memo = self._memo(artifacts)
        records: list[tuple[str, R]] = []
        value, at = self._start, reference
        while at:
            remembered = memo.get(at)
            if remembered is not None:
                value = remembered
                break
            record, previous = self._read_record(artifacts, at, after=len(records))
            records.append((at, record))
            at = previous
        for named, record in reversed(records):
            value = self._extend(value, record, named)
        if reference:
            memo.remember(reference, value)
        return value

    def _read_record(self, artifacts: Artifacts, reference: str, *, after: int) -> tuple[R, str]:
        where = f"the {self._what}'s record {check_reference(reference)[:12]}"
        if after:
            where += f", {after} before its last"
        try:
            content = artifacts.read(reference)
        except InputError as error:
            raise InputError(f"{where}: {error}") from error
        try:
            return self._record(json.loads(content.decode("utf-8")))
        except ValidationError as error:
            raise InputError(f"{where}: {describe_validation(error)}") from error
        except (ValueError, RecursionError, InputError) as error:
            msg = f"{where}: the content of that reference is no record of a {self._what}: {error}"
            raise InputError(msg) from error

    def _record(self, value: Any) -> tuple[R, str]:
        if not isinstance(value, dict) or value.keys() != self._keys:
            raise InputError(f"it has not the keys {', '.join(sorted(self._keys))}")
        previous = value[_PREVIOUS]
        if previous != "":
            check_reference(previous)
        return self._parse(value), previous

    def _memo(self, artifacts: Artifacts) -> "_Memo[V]":
        with self._lock:
            try:
                return self._memos.setdefault(artifacts, _Memo())
            except TypeError:  # artifacts that cannot be a key: nothing is remembered
                return _Memo()


class _Memo(Generic[V]):
    """The runs read last. What a reference names never changes, so none is ever stale."""

    def __init__(self) -> None:
        self._values: OrderedDict[str, V] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, reference: str) -> V | None:
        with self._lock:
            return self._values.get(reference)

    def remember(self, reference: str, value: V, *, instead_of: str = "") -> None:
        with self._lock:
            if instead_of in self._values:  # the first to go: a run goes on from its last record
                self._values.move_to_end(instead_of, last=False)
            self._values[reference] = value
            self._values.move_to_end(reference)
            while len(self._values) > _HEADS:
                self._values.popitem(last=False)
