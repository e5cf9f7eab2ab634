"""Logic over a store, written once: programs that yield operations, and the one way these go.

LangGraph's `InMemoryStore` is not for threads as it is: it walks its dictionaries without a lock, and
even a read may add to them. So everything of ours goes through here: one batch at a time for each
such store, from whatever object, thread or task it comes. Whoever writes to the store past us holds
no lock of ours: where that disturbs a walk, the walk is made again.
"""

from collections.abc import Callable, Coroutine, Generator, Iterable, Sequence
from threading import RLock
from typing import Final, Generic, TypeAlias, TypeVar, cast
from weakref import ref

from langgraph.store.base import BaseStore, Op, PutOp, Result, SearchOp
from langgraph.store.memory import InMemoryStore

from langgraft._core.effects import arun, run
from langgraft._core.errors import SettingsError
from langgraft.memory.embedders.base import EmbeddingRequest, Vectors

T = TypeVar("T")

Namespace: TypeAlias = tuple[str, ...]

Address: TypeAlias = tuple[Namespace, str]
"""Namespace and key of a record."""

Step: TypeAlias = Sequence[Op] | EmbeddingRequest
"""What a program waits for: a store, or an embedder."""

Program: TypeAlias = Generator[Step, list[Result], T]
"""Yields batches of operations, is sent their results, and returns a `T`.

What a store raises is raised at the `yield`. A program holds no lock and awaits nothing, so the
same one serves threads and event loops. Vectors it asks for with `yield from embed(request)`.
"""


Hooked: TypeAlias = Program[T] | T
"""What a hook returns: its value, or, where it needs the store, a program that comes to it."""


def program(made: Hooked[T]) -> Program[T]:
    """Return what a hook somebody wrote made as a program.

    Raises:
        SettingsError: The hook is `async`.
    """
    if isinstance(made, Generator):
        return made
    if isinstance(made, Coroutine):
        made.close()
        name = getattr(made, "__qualname__", made)
        msg = f"`{name}` is async: make it a plain function, or a generator that yields operations"
        raise SettingsError(msg)
    return _returned(made)


def _returned(value: T) -> Program[T]:
    return value
    yield


def embed(request: EmbeddingRequest) -> Program[Vectors]:
    """Ask for vectors; what the embedder raises is raised here."""
    answer: object = yield request
    return cast("Vectors", answer)


def drive(program: Program[T], store: BaseStore) -> T:
    """Run `program` to its end with `store.batch`, and with embedders' synchronous methods."""

    def perform(step: Step) -> list[Result]:
        if isinstance(step, EmbeddingRequest):
            # Programs say what they are sent for operations; `embed` knows that this is a matrix.
            return cast("list[Result]", step.answer())
        return carry_out(store, step)

    return run(program, perform)


async def adrive(program: Program[T], store: BaseStore) -> T:
    """Run `program` to its end with `store.abatch`, and with embedders' asynchronous methods."""

    async def perform(step: Step) -> list[Result]:
        if isinstance(step, EmbeddingRequest):
            return cast("list[Result]", await step.aanswer())
        return await acarry_out(store, step)

    return await arun(program, perform)


class PerStore(Generic[T]):
    """One `T` for each store. Stores need be neither hashable nor changeable.

    Args:
        make: Makes what is kept, which must not refer to the store: it would never go.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._kept: dict[int, tuple[ref[BaseStore], T]] = {}

    def of(self, store: BaseStore) -> T:
        """Return what is kept for a store; any number of threads get the same."""
        found = self._kept.get(id(store))
        if found is None:
            # No lock: the garbage collector calls `forget` in the middle of anything.
            kept, key = self._kept, id(store)
            found = kept.setdefault(key, (ref(store, lambda _: kept.pop(key, None)), self._make()))
        return found[1]


_LOCKS: Final = PerStore(RLock)


def carry_out(store: BaseStore, ops: Iterable[Op]) -> list[Result]:
    """Do as `store.batch` does; a store in memory does it by itself."""
    if not isinstance(store, InMemoryStore):
        return store.batch(ops)
    operations = list(ops)
    if _embeds(store, operations):
        return _undisturbed(store, operations)
    with _LOCKS.of(store):
        return _undisturbed(store, operations)


async def acarry_out(store: BaseStore, ops: Iterable[Op]) -> list[Result]:
    """Do as `store.abatch` does; a store in memory does it by itself."""
    if not isinstance(store, InMemoryStore):
        return await store.abatch(ops)
    operations = list(ops)
    own = type(store).batch, type(store).abatch
    if own == (InMemoryStore.batch, InMemoryStore.abatch) and not _embeds(store, operations):
        # Nothing to wait for, so it can be done at once, and under a lock that threads share.
        return carry_out(store, operations)
    while True:
        try:
            return await store.abatch(operations)
        except RuntimeError as error:
            _check_walk(error)


def _undisturbed(store: InMemoryStore, operations: Sequence[Op]) -> list[Result]:
    while True:
        try:
            return store.batch(operations)
        except RuntimeError as error:
            _check_walk(error)


def _check_walk(error: RuntimeError) -> None:
    """Go on only if a walk broke off: that is before anything is written."""
    if "changed size during iteration" not in str(error):
        raise error


def _embeds(store: InMemoryStore, operations: Sequence[Op]) -> bool:
    """Say whether a model may be called, for which nobody else must wait."""
    return store.embeddings is not None and any(
        (isinstance(op, SearchOp) and op.query)
        or (isinstance(op, PutOp) and op.value is not None and op.index is not False)
        for op in operations
    )
