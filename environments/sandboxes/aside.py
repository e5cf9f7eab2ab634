"""Blocking work done aside of an event loop, and called off when its task is cancelled."""

import asyncio
import contextvars
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")

_REPEAT_SECONDS = 0.5


async def do_aside(
    work: Callable[[], T],
    call_off: Callable[[], None],
    discard: Callable[[T], None] = lambda _result: None,
) -> T:
    """Do blocking work in a thread of its own; a cancelled task waits until the work has ended.

    Args:
        work: What to do.
        call_off: Makes the work end soon. Called from other threads, again and again until it
            has ended, since it may come too early to have an effect.
        discard: Takes a result that came though its task was cancelled.
    """
    done: Future[T] = Future()
    context = contextvars.copy_context()

    def run() -> None:
        try:
            done.set_result(context.run(work))
        except BaseException as error:  # noqa: BLE001 - it belongs to the waiting task
            done.set_exception(error)

    threading.Thread(target=run, name="langgraft-sandbox", daemon=True).start()
    waiting = asyncio.wrap_future(done)
    try:
        # Not shielded: newer Pythons log what a shielded future raises after its task was cancelled.
        await asyncio.wait([waiting])
    except asyncio.CancelledError:
        stopper = threading.Thread(target=_insist, args=(call_off, done), daemon=True)
        stopper.start()
        while not waiting.done():
            try:
                await asyncio.wait([waiting])
            except asyncio.CancelledError:
                continue
        if not waiting.cancelled() and waiting.exception() is None:
            await asyncio.to_thread(discard, waiting.result())
        raise
    return waiting.result()


def _insist(call_off: Callable[[], None], done: "Future[T]") -> None:
    ended = threading.Event()
    done.add_done_callback(lambda _done: ended.set())
    while not ended.is_set():
        call_off()
        ended.wait(_REPEAT_SECONDS)
