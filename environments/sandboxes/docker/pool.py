"""Places started beforehand, so that nobody waits for an engine; each is handed out once."""

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Final, Generic, Protocol, TypeVar

from langgraft._core.errors import SandboxUnavailableError
from langgraft.environments.sandboxes.places import ChannelClosedError

logger = logging.getLogger(__name__)

_LOOK: Final = 2.0
"""Seconds between looks at the places that wait."""
_AGE: Final = 900.0
"""Seconds after which a place that waits is replaced: what nobody used for so long may have
suffered in ways that do not show (a machine that slept, an engine that was upgraded)."""
_PAUSES: Final = (0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds to wait after one failure to start a place, two, and so on."""


class Pooled(Protocol):
    """What waits in a pool."""

    def alive(self) -> bool:
        """Return whether it can still be used."""
        ...

    def destroy(self) -> None:
        """Get rid of it."""
        ...


P = TypeVar("P", bound=Pooled)


class Pool(Generic[P]):
    """Keeps `size` places ready.

    Args:
        start: Starts a place; called from any thread.
        size: How many wait; with 0 each is started when it is asked for.
        age: Seconds after which one that waits is replaced.
    """

    def __init__(self, start: Callable[[], P], size: int, *, age: float = _AGE) -> None:
        self._start = start
        self._size = size
        self._age = age
        self._ready: deque[tuple[float, P]] = deque()
        self._failures = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @property
    def ready(self) -> int:
        """How many wait."""
        with self._changed:
            return len(self._ready)

    def fill(self) -> None:
        """Begin to start places, in a thread."""
        with self._changed:
            if self._size and self._thread is None and not self._closed:
                self._thread = threading.Thread(target=self._work, name="sandbox-pool", daemon=True)
                self._thread.start()

    def take(self) -> P:
        """Return a place that waited, or start one where none does.

        Raises:
            ChannelClosedError: The pool is closed.
            Exception: Whatever starting one raises.
        """
        self.fill()
        while True:
            with self._changed:
                if self._closed:
                    raise ChannelClosedError("the sandbox is closed")
                born, place = self._ready.popleft() if self._ready else (0.0, None)
                self._changed.notify_all()
            if place is None:
                return self._start()
            if self._usable(born, place):
                return place
            place.destroy()

    def wait_until_full(self, seconds: float) -> bool:
        """Wait for as many places as it keeps; return whether they are there."""
        with self._changed:
            return self._changed.wait_for(lambda: len(self._ready) >= self._size, seconds)

    def close(self) -> None:
        """Destroy what waits, and what is being started as soon as it is."""
        with self._changed:
            self._closed = True
            places = [place for _, place in self._ready]
            self._ready.clear()
            self._changed.notify_all()
            thread = self._thread
        for place in places:
            place.destroy()
        if thread is not None and thread is not threading.current_thread():
            thread.join(60.0)

    def _work(self) -> None:
        while True:
            with self._changed:
                self._changed.wait_for(lambda: self._closed or len(self._ready) < self._size, _LOOK)
                if self._closed:
                    return
                lacking = len(self._ready) < self._size
            self._sort_out()
            if lacking:
                self._add()

    def _add(self) -> None:
        try:
            place = self._start()
        except Exception as error:  # noqa: BLE001  (who needs a place meets the same, and is told)
            level = logging.INFO if isinstance(error, SandboxUnavailableError) else logging.WARNING
            logger.log(level, "no place could be started beforehand: %s", error)
            pause = _PAUSES[min(self._failures, len(_PAUSES) - 1)]
            self._failures += 1
            with self._changed:
                self._changed.wait_for(lambda: self._closed, pause)
            return
        self._failures = 0
        with self._changed:
            if not self._closed:
                self._ready.append((time.monotonic(), place))
                self._changed.notify_all()
                return
        place.destroy()

    def _sort_out(self) -> None:
        """Replace those that died or aged while they waited."""
        with self._changed:
            # Looked at in here: one that is handed out belongs to who took it, its stream as well.
            unfit = [entry for entry in self._ready if not self._usable(*entry)]
            for entry in unfit:
                self._ready.remove(entry)
        for _, place in unfit:
            place.destroy()

    def _usable(self, born: float, place: P) -> bool:
        return time.monotonic() - born < self._age and place.alive()
