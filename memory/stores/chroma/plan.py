"""What a batch asks for, checked and worked out before anything is changed."""

from collections.abc import Iterable
from dataclasses import dataclass, field

from langgraph.store.base import GetOp, ListNamespacesOp, Op, PutOp, SearchOp

from langgraft._core.errors import InputError
from langgraft.memory.stores.chroma.rows import check_address, check_labels, encode, row_id
from langgraft.memory.stores.chroma.vectors import Index
from langgraft.memory.stores.drive import Address
from langgraft.memory.stores.filters import check_filter


@dataclass(frozen=True, slots=True)
class Write:
    """A record to be written.

    Attributes:
        address: Of the record.
        value: Its value in JSON, or `None` to delete it.
        texts: What its vectors are made of.
    """

    address: Address
    value: str | None
    texts: tuple[str, ...] = ()


@dataclass(slots=True)
class Plan:
    """A batch.

    Attributes:
        ops: Its operations; namespaces are tuples.
        ids: The row id of each that reads a record, "" of the others.
        writes: The last write of each record, by row id.
        queries: Queries to embed, each once.
    """

    ops: list[Op] = field(default_factory=list)
    ids: list[str] = field(default_factory=list)
    writes: dict[str, Write] = field(default_factory=dict)
    queries: list[str] = field(default_factory=list)

    @property
    def texts(self) -> list[str]:
        """Texts to embed, each once."""
        return list(dict.fromkeys(t for write in self.writes.values() for t in write.texts))


def plan(ops: Iterable[Op], index: Index | None) -> Plan:
    """Check a batch and say what it needs.

    Raises:
        InputError: An address, a value, a filter or an operation cannot be used.
    """
    made = Plan()
    for op in ops:
        identifier = ""
        match op:
            case PutOp():
                write = _write(op, index)
                made.writes[row_id(write.address)] = write
                made.ops.append(op)
            case GetOp():
                namespace, key = check_address(op.namespace, op.key)
                identifier = row_id((namespace, key))
                made.ops.append(op._replace(namespace=namespace, key=key))
            case SearchOp():
                check_filter(op.filter)
                prefix = check_labels(op.namespace_prefix)
                made.ops.append(op._replace(namespace_prefix=prefix))
                if op.query and index and op.query not in made.queries:
                    made.queries.append(op.query)
            case ListNamespacesOp():
                _check_conditions(op)
                made.ops.append(op)
            case _:
                msg = f"a store carries out GetOp, PutOp, SearchOp, ListNamespacesOp; got {op!r}"
                raise InputError(msg)
        made.ids.append(identifier)
    return made


def _write(op: PutOp, index: Index | None) -> Write:
    address = check_address(op.namespace, op.key)
    if op.value is None:
        return Write(address, None)
    value = encode(op.value, address)
    if index is None or op.index is False:
        return Write(address, value)
    return Write(address, value, index.texts(op.value, op.index))


def _check_conditions(op: ListNamespacesOp) -> None:
    for condition in op.match_conditions or ():
        if condition.match_type not in {"prefix", "suffix"}:
            msg = f"namespaces match by 'prefix' or 'suffix', got {condition.match_type!r}"
            raise InputError(msg)
