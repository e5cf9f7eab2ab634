"""Stop on request: the first signal asks to stop, the second one stops at once."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

SIGNALS = (signal.SIGINT, signal.SIGTERM)
"""Ctrl-C, and what batch systems send before they kill."""


@contextmanager
def stop_on_signals(
    stop: asyncio.Event, before_dying: Callable[[], None] = lambda: None
) -> Iterator[None]:
    """Set `stop` at the first signal; at the second, let it end the process as by default.

    Ending at any moment is safe: what is committed is on disk, what is not is run again.

    Args:
        stop: The event to set; belongs to the loop that is running.
        before_dying: Called at the second signal, to put a terminal in order.

    Raises:
        ValueError: This is not the main thread, which alone may handle signals.
    """
    loop = asyncio.get_running_loop()

    # Not `loop.add_signal_handler`: that would wait while an item keeps the loop busy.
    def on_signal(number: int, _frame: FrameType | None) -> None:
        if asked:
            before_dying()
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        asked.append(number)
        loop.call_soon_threadsafe(stop.set)

    asked: list[int] = []
    before = {number: signal.signal(number, on_signal) for number in SIGNALS}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
