"""Logic that waits for something, written once: programs, the two ways to run them, and clocks.

A program is a generator. It yields an effect, which says what is to be done (operations of a store,
a question to a model, code for a kernel), is sent what came of it, and returns its value. It waits
for nothing itself, so the same program serves threads and event loops:

    def length(path: str) -> Program[Read, int]:
        text = yield Read(path)
        return len(text)

    run(length("a.txt"), perform)
    await arun(length("a.txt"), aperform)

What performing an effect raises is raised at its `yield`, cancellation included, so that a program
may try again or put in order what it leaves.

Over a LangGraph store an effect is a batch of its operations, or knows by itself how it is performed:
`drive` and `adrive`. LangGraph's `InMemoryStore` is not for threads as it is: it walks its dictionaries
without a lock, and even a read may add to them. So everything of ours goes through here: one batch at a
time for each such store, from whatever object, thread or task it comes. Whoever writes to the store past
us holds no lock of ours: where that disturbs a walk, the walk is made again.
"""

import asyncio
import atexit
import contextvars
import sys
import threading
import time
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, wait
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import dataclass
from typing import (
    TYPE_CHECKING,
    Any,
    Final,
    Generic,
    ParamSpec,
    Protocol,
    Self,
    TypeAlias,
    TypeGuard,
    TypeVar,
    cast,
)
from weakref import WeakSet, ref

from langgraft._core.forks import renewed

if TYPE_CHECKING:  # who runs a program in a sandbox needs no store
    from langgraph.store.base import BaseStore, Op, Result
    from langgraph.store.memory import InMemoryStore

P = ParamSpec("P")
T = TypeVar("T")
EffectT = TypeVar("EffectT")
OuterT = TypeVar("OuterT")
AnswerT = TypeVar("AnswerT")

Program: TypeAlias = Generator[EffectT, Any, T]
"""Yields effects, and returns a `T`."""

_REPEAT_SECONDS: Final = 0.5


class Effect(Protocol):
    """An effect that knows how it is performed; `run(program, do)` and `arun(program, ado)`."""

    def do(self) -> Any:
        """Perform it."""

    async def ado(self) -> Any:
        """Perform it, asynchronously."""


class Call:
    """A function that is called with these arguments, or its async twin."""

    __slots__ = ("_arguments", "_function", "_twin")

    def __init__(
        self,
        function: Callable[P, T],
        twin: Callable[P, Awaitable[T]],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> None:
        self._function, self._twin = function, twin
        self._arguments = args, kwargs

    def do(self) -> Any:
        """Call the function."""
        args, kwargs = self._arguments
        return self._function(*args, **kwargs)

    async def ado(self) -> Any:
        """Call its twin."""
        args, kwargs = self._arguments
        return await self._twin(*args, **kwargs)


def in_thread(function: Callable[P, Any], *args: P.args, **kwargs: P.kwargs) -> Call:
    """Return the call of a function that reads or writes files: no event loop waits for it."""

    async def twin(*args: P.args, **kwargs: P.kwargs) -> Any:
        return await asyncio.to_thread(function, *args, **kwargs)

    return Call(function, twin, *args, **kwargs)


def do(effect: Effect) -> Any:
    """Perform an effect."""
    return effect.do()


async def ado(effect: Effect) -> Any:
    """Perform an effect, asynchronously."""
    return await effect.ado()


def run(program: Generator[EffectT, AnswerT, T], perform: Callable[[EffectT], AnswerT]) -> T:
    """Run a program to its end, and return its value."""
    step = _advance(program, None, None)
    while not isinstance(step, _Ended):
        try:
            answer = perform(step)
        except BaseException as error:  # noqa: BLE001 - it is the program's to handle
            step = _advance(program, None, error)
        else:
            step = _advance(program, answer, None)
    return step.value


async def arun(
    program: Generator[EffectT, AnswerT, T],
    perform: Callable[[EffectT], Awaitable[AnswerT]],
    *,
    in_threads: bool = False,
) -> T:
    """Do what `run` does, asynchronously.

    Args:
        program: The program.
        perform: Performs an effect.
        in_threads: Have the program go on in threads, so that no event loop waits for the files it
            reads or the million rows it checks between its effects. Cancelled meanwhile, it hears
            of that once it has come to its next effect, which is not performed.
    """
    advance = _advance_in_thread if in_threads else _advance_here
    try:
        step = await advance(program, None, None)
        while not isinstance(step, _Ended):
            try:
                answer = await perform(step)
            except GeneratorExit:  # nobody waits any more
                raise
            except BaseException as error:  # noqa: BLE001 - it is the program's to handle
                step = await advance(program, None, error)
            else:
                step = await advance(program, answer, None)
        return step.value
    finally:
        program.close()  # cancelled again, say, while it put in order what it leaves


def relay(
    program: Generator[EffectT, AnswerT, T],
    answer: Callable[[EffectT], Generator[OuterT, Any, AnswerT]],
) -> Program[OuterT, T]:
    """Run a program within another one, which answers each of its effects by a program."""
    step = _advance(program, None, None)
    while not isinstance(step, _Ended):
        try:
            answered = yield from answer(step)
        except BaseException as error:  # noqa: BLE001 - it is the inner program's to handle
            step = _advance(program, None, error)
        else:
            step = _advance(program, answered, None)
    return step.value


def drive(program: "Generator[Sequence[Op] | Effect, list[Result], T]", store: "BaseStore") -> T:
    """Run a program to its end with `store.batch`."""

    def perform(step: "Sequence[Op] | Effect") -> "list[Result]":
        # Programs say what they are sent for operations; who yields another effect knows its answer.
        return carry_out(store, step) if isinstance(step, Sequence) else cast("Any", step.do())

    return run(program, perform)


async def adrive(
    program: "Generator[Sequence[Op] | Effect, list[Result], T]", store: "BaseStore"
) -> T:
    """Run a program to its end with `store.abatch`."""

    async def perform(step: "Sequence[Op] | Effect") -> "list[Result]":
        if isinstance(step, Sequence):
            return await acarry_out(store, step)
        return cast("list[Result]", await step.ado())

    return await arun(program, perform)


class PerStore(Generic[T]):
    """One `T` for each store. Stores need be neither hashable nor changeable.

    Args:
        make: Makes what is kept, which must not refer to the store: it would never go.
    """

    def __init__(self, make: Callable[[], T]) -> None:
        self._make = make
        self._kept: dict[int, tuple[ref[BaseStore], T]] = {}

    def of(self, store: "BaseStore") -> T:
        """Return what is kept for a store; any number of threads get the same."""
        found = self._kept.get(id(store))
        if found is None:
            # No lock: the garbage collector calls `forget` in the middle of anything.
            kept, key = self._kept, id(store)
            found = kept.setdefault(key, (ref(store, lambda _: kept.pop(key, None)), self._make()))
        return found[1]


class Carried(list["Op"], ABC):
    """Operations that one kind of store carries out in a way of their own."""

    @abstractmethod
    def fits(self, store: "BaseStore") -> bool:
        """Say whether a store is of that kind. A store around one passes them on."""

    @abstractmethod
    def carry_out(self, store: "BaseStore") -> "list[Result]":
        """Carry them out."""

    @abstractmethod
    async def acarry_out(self, store: "BaseStore") -> "list[Result]":
        """Do as `carry_out` does, asynchronously."""


_LOCKS: Final = PerStore(lambda: renewed(threading.RLock()))


def carry_out(store: "BaseStore", ops: "Iterable[Op]") -> "list[Result]":
    """Do as `store.batch` does; a store in memory does it by itself."""
    if isinstance(ops, Carried) and ops.fits(store):
        return ops.carry_out(store)
    if not _is_in_memory(store):
        return store.batch(ops)
    operations = list(ops)
    if _embeds(store, operations):
        return _undisturbed(store, operations)
    with _LOCKS.of(store):
        return _undisturbed(store, operations)


async def acarry_out(store: "BaseStore", ops: "Iterable[Op]") -> "list[Result]":
    """Do as `store.abatch` does; a store in memory does it by itself."""
    if isinstance(ops, Carried) and ops.fits(store):
        return await ops.acarry_out(store)
    if not _is_in_memory(store):
        return await store.abatch(ops)
    operations = list(ops)
    from langgraph.store.memory import InMemoryStore  # noqa: PLC0415  (`store` is one)

    own = type(store).batch, type(store).abatch
    if own == (InMemoryStore.batch, InMemoryStore.abatch) and not _embeds(store, operations):
        # Nothing to wait for, so it can be done at once, and under a lock that threads share.
        return carry_out(store, operations)
    while True:
        try:
            return await store.abatch(operations)
        except RuntimeError as error:
            _check_walk(error)


def _is_in_memory(store: "BaseStore") -> "TypeGuard[InMemoryStore]":
    """Say whether a store is LangGraph's own; before its module is imported there is none."""
    module = sys.modules.get("langgraph.store.memory")
    return module is not None and isinstance(store, module.InMemoryStore)


def _undisturbed(store: "InMemoryStore", operations: "Sequence[Op]") -> "list[Result]":
    while True:
        try:
            return store.batch(operations)
        except RuntimeError as error:
            _check_walk(error)


def _check_walk(error: RuntimeError) -> None:
    """Go on only if a walk broke off: that is before anything is written."""
    if "changed size during iteration" not in str(error):
        raise error


def _embeds(store: "InMemoryStore", operations: "Sequence[Op]") -> bool:
    """Say whether a model may be called, for which nobody else must wait."""
    if store.embeddings is None:
        return False
    from langgraph.store.base import PutOp, SearchOp  # noqa: PLC0415  (there is a store)

    return any(
        (isinstance(op, SearchOp) and op.query)
        or (isinstance(op, PutOp) and op.value is not None and op.index is not False)
        for op in operations
    )


class _Closes(Protocol):
    def close(self) -> None: ...


_OPEN: "Final[WeakSet[_Closes]]" = WeakSet()


def close_at_exit(opened: _Closes) -> None:
    """Close something before Python shuts down, unless it is closed or gone by then.

    Left to the garbage collector it may be closed when Python can no longer write files.
    """
    _OPEN.add(opened)


@atexit.register
def _close_all() -> None:
    for opened in list(_OPEN):
        with suppress(Exception):  # the process ends in any case
            opened.close()


class Closing:
    """Base of what has to be closed; closing it again does nothing more."""

    def also_close(self, opened: AbstractContextManager[Any]) -> None:
        """Have something that was opened for this object closed with it."""
        vars(self).setdefault("_opened", ExitStack()).push(opened)

    def close(self) -> None:
        """Close what was opened for this object."""
        vars(self).setdefault("_opened", ExitStack()).close()

    async def aclose(self) -> None:
        """Do as `close` does, in a thread."""
        await asyncio.to_thread(self.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *error: object) -> None:
        await self.aclose()


async def run_in_thread(
    work: Callable[[], T],
    call_off: Callable[[], None] = lambda: None,
    discard: Callable[[T], None] = lambda _result: None,
) -> T:
    """Do blocking work in a thread of its own; a cancelled task waits until the work has ended.

    Args:
        work: What to do.
        call_off: Makes the work end soon. Called from other threads, again and again until it
            has ended, since it may come too early to have an effect.
        discard: Takes a result that came though its task was cancelled.
    """
    done = _in_thread(work)
    waiting = asyncio.wrap_future(done)
    try:
        # Not shielded: newer Pythons log what a shielded future raises after its task was cancelled.
        await asyncio.wait([waiting])
    except asyncio.CancelledError:
        # In a thread of its own too: a pool may be full, and what waits for it can be cancelled.
        leaving = asyncio.wrap_future(_in_thread(lambda: _leave(done, call_off, discard)))
        for each in (leaving, waiting):
            await _ended(each)
        waiting.exception()  # seen, and so not logged
        leaving.result()
        raise
    return waiting.result()


def _in_thread(work: Callable[[], T]) -> "Future[T]":
    done: Future[T] = Future()
    context = contextvars.copy_context()

    def thread() -> None:
        try:
            done.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 - it belongs to the waiting task
            done.set_exception(error)

    threading.Thread(target=thread, name="langgraft", daemon=True).start()
    return done


async def _ended(future: "asyncio.Future[Any]") -> None:
    """Wait for a future, however often the task is cancelled."""
    while not future.done():
        with suppress(asyncio.CancelledError):
            await asyncio.wait([future])


def _leave(done: "Future[T]", call_off: Callable[[], None], discard: Callable[[T], None]) -> None:
    while not done.done():
        call_off()
        wait([done], _REPEAT_SECONDS)
    if done.exception() is None:
        discard(done.result())


@dataclass(frozen=True, slots=True)
class _Ended(Generic[T]):
    """What a program returned, apart from a `StopIteration` that performing an effect raises."""

    value: T


def _advance(
    program: Generator[EffectT, AnswerT, T], answer: AnswerT | None, error: BaseException | None
) -> EffectT | _Ended[T]:
    try:
        if error is not None:
            return program.throw(error)
        return program.send(cast("AnswerT", answer))  # the first `None` starts it
    except StopIteration as stop:
        return _Ended(stop.value)


async def _advance_here(
    program: Generator[EffectT, AnswerT, T], answer: AnswerT | None, error: BaseException | None
) -> EffectT | _Ended[T]:
    return _advance(program, answer, error)


async def _advance_in_thread(
    program: Generator[EffectT, AnswerT, T], answer: AnswerT | None, error: BaseException | None
) -> EffectT | _Ended[T]:
    try:
        return await run_in_thread(lambda: _advance(program, answer, error))
    except asyncio.CancelledError as cancelled:
        if error is not None:
            raise
        return await _advance_in_thread(program, None, cancelled)


# The time ---------------------------------------------------------------------------------


class Clock(Protocol):
    """Where a component gets the time from: passed in, since results must not depend on it."""

    def time(self) -> float:
        """Seconds since the epoch."""
        ...

    def monotonic(self) -> float:
        """Seconds that never go back, for durations."""
        ...


class SystemClock:
    """The machine's clock."""

    def time(self) -> float:
        """Seconds since the epoch."""
        return time.time()

    def monotonic(self) -> float:
        """Seconds that never go back, for durations."""
        return time.monotonic()
