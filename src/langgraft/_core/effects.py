"""Logic that waits for something, written once: programs, and the two ways to run them.

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
"""

import asyncio
import contextvars
import threading
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import Future, wait
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Final, Generic, ParamSpec, Protocol, TypeAlias, TypeVar, cast

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
