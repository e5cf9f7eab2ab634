"""Programs that yield effects, and what runs them."""

import asyncio
import threading
from collections.abc import Awaitable, Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from langgraft._core.effects import Program, arun, relay, run, run_in_thread

Perform = Callable[[str], int]
Run = Callable[[Program[str, Any], Perform], Awaitable[Any]]


async def _sync(held: Program[str, Any], perform: Perform) -> Any:
    return run(held, perform)


async def _async(held: Program[str, Any], perform: Perform) -> Any:
    async def aperform(effect: str) -> int:
        await asyncio.sleep(0)
        return perform(effect)

    return await arun(held, aperform)


async def _threads(held: Program[str, Any], perform: Perform) -> Any:
    async def aperform(effect: str) -> int:
        return perform(effect)

    return await arun(held, aperform, in_threads=True)


async def _relayed(held: Program[str, Any], perform: Perform) -> Any:
    def answer(effect: str) -> Generator[str, int, int]:
        return (yield effect)

    return run(relay(held, answer), perform)


EACH = pytest.mark.parametrize("run_it", [_sync, _async, _threads, _relayed])


def _summed(*words: str) -> Program[str, int]:
    total = 0
    for word in words:
        total += yield word
    return total


@EACH
async def test_run_when_program_yields_effects_then_answers_and_value_follow(run_it: Run) -> None:
    """What performing gives is sent in, and what the program returns comes out."""
    assert await run_it(_summed("a", "bcd"), len) == 4
    assert await run_it(_summed(), len) == 0


@EACH
async def test_run_when_performing_raises_then_program_may_try_again(run_it: Run) -> None:
    """An error arrives at the `yield` of its effect; unhandled, it reaches the caller."""
    failures = [LookupError("first"), None]

    def perform(effect: str) -> int:
        if error := failures.pop(0):
            raise error
        return len(effect)

    def patient() -> Generator[str, int, int]:
        try:
            return (yield "abc")
        except LookupError:
            return (yield "abcd")

    assert await run_it(patient(), perform) == 4
    failures[:] = [LookupError("second")]
    with pytest.raises(LookupError, match="second"):
        await run_it(_summed("a"), perform)


@EACH
async def test_run_when_performing_raises_stop_iteration_then_it_is_an_error(run_it: Run) -> None:
    """A stray `StopIteration` is never taken for the end of the program."""

    def perform(_: str) -> int:
        raise StopIteration

    with pytest.raises(RuntimeError, match="StopIteration"):
        await run_it(_summed("a"), perform)


@pytest.mark.parametrize("in_threads", [False, True])
async def test_arun_when_cancelled_then_program_hears_and_can_put_things_in_order(
    in_threads: bool,
) -> None:
    """Cancellation is thrown in; effects asked for then are performed still."""
    waiting = asyncio.Event()
    performed = []

    async def perform(effect: str) -> None:
        performed.append(effect)
        if effect == "wait":
            waiting.set()
            await asyncio.Event().wait()

    def held() -> Program[str, None]:
        try:
            yield "wait"
        finally:
            yield "clean"

    task = asyncio.create_task(arun(held(), perform, in_threads=in_threads))
    await waiting.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert performed == ["wait", "clean"]


async def test_arun_when_cancelled_while_program_goes_on_in_thread_then_next_effect_is_not_done() -> (
    None
):
    """The program hears of it at its next effect; nothing runs twice at a time."""
    began, go_on = threading.Event(), threading.Event()
    performed: list[str] = []
    heard: list[BaseException] = []

    async def perform(effect: str) -> None:
        performed.append(effect)

    def held() -> Program[str, None]:
        began.set()
        go_on.wait()
        try:
            yield "too late"
        except asyncio.CancelledError as error:
            heard.append(error)
            raise

    task = asyncio.create_task(arun(held(), perform, in_threads=True))
    await asyncio.to_thread(began.wait)
    task.cancel()
    go_on.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (performed, len(heard)) == ([], 1)


async def test_arun_when_in_threads_then_event_loop_goes_on_meanwhile() -> None:
    """What a program computes between effects blocks no event loop."""
    done = threading.Event()

    def held() -> Program[str, bool]:
        return done.wait(timeout=60)
        yield

    task = asyncio.create_task(arun(held(), _never, in_threads=True))
    await asyncio.sleep(0)
    done.set()
    assert await task


async def _never(_: str) -> None:
    raise AssertionError


async def test_run_in_thread_when_cancelled_then_work_is_called_off_and_its_result_discarded() -> (
    None
):
    """The task ends when the work has ended, and leaves nothing behind."""
    stop = threading.Event()
    discarded: list[str] = []

    def work() -> str:
        stop.wait()
        return "late"

    task = asyncio.create_task(run_in_thread(work, stop.set, discarded.append))
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert discarded == ["late"]


async def test_run_in_thread_when_cancelled_again_with_pool_full_then_result_is_discarded() -> None:
    """What came is never left lying about, however busy the process is."""
    go_on, stop = threading.Event(), threading.Event()
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(1))
    full = loop.run_in_executor(None, go_on.wait)
    discarded: list[str] = []

    def work() -> str:
        stop.wait()
        return "late"

    task = asyncio.create_task(run_in_thread(work, discard=discarded.append))
    await asyncio.sleep(0)
    task.cancel()
    stop.set()
    while not task.done():
        task.cancel()
        await asyncio.sleep(0)
    assert task.cancelled()
    assert discarded == ["late"]
    go_on.set()
    await full
