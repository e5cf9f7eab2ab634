"""A bounded table of kernels that are kept for the next action of their run."""

import threading
from collections import OrderedDict
from dataclasses import dataclass

from langgraft.environments.sandboxes.sandbox import Kernel
from langgraft.nodes.workbench.events import Action


@dataclass(frozen=True, slots=True)
class _Live:
    kernel: Kernel
    done: tuple[Action, ...]


class LiveKernels:
    """Kernels by run, each with what was done in it. It closes none itself: closing takes time.

    A kernel in use is not in the table, so that no two use it, and none of a run that failed
    half-way is ever found there.

    Args:
        capacity: Kernels that wait for their run's next action; the one longest unused goes first.
    """

    def __init__(self, capacity: int) -> None:
        self._capacity = capacity
        self._idle: OrderedDict[str, _Live] = OrderedDict()
        self._busy: dict[int, tuple[str, Kernel]] = {}
        self._lock = threading.Lock()

    def take(self, run: str, done: tuple[Action, ...]) -> tuple[Kernel | None, list[Kernel]]:
        """Return a run's kernel if exactly this was done in it, and those to be closed."""
        with self._lock:
            live = self._idle.pop(run, None)
            if live is None:
                return None, []
            if live.done != done:
                return None, [live.kernel]
            self._busy[id(live.kernel)] = (run, live.kernel)
            return live.kernel, []

    def opened(self, run: str, kernel: Kernel) -> None:
        """Note a kernel that was opened and is in use."""
        with self._lock:
            self._busy[id(kernel)] = (run, kernel)

    def give(self, run: str, kernel: Kernel, done: tuple[Action, ...]) -> list[Kernel]:
        """Put a kernel back after use, and return those to be closed."""
        with self._lock:
            if self._busy.pop(id(kernel), None) is None:  # its run ended meanwhile
                return [kernel]
            before = self._idle.pop(run, None)
            self._idle[run] = _Live(kernel, done)
            over = [] if before is None else [before.kernel]
            while len(self._idle) > self._capacity:
                over.append(self._idle.popitem(last=False)[1].kernel)
            return over

    def drop(self, kernel: Kernel) -> bool:
        """Forget a kernel in use, and return whether it was still wanted."""
        with self._lock:
            return self._busy.pop(id(kernel), None) is not None

    def end(self, run: str | None = None) -> list[Kernel]:
        """Forget all kernels of a run, or of all, and return them to be closed."""
        with self._lock:
            idle = [name for name in self._idle if run in (None, name)]
            busy = [key for key, (name, _) in self._busy.items() if run in (None, name)]
            return [
                *(self._idle.pop(name).kernel for name in idle),
                *(self._busy.pop(key)[1] for key in busy),
            ]

    def __len__(self) -> int:
        """Return how many kernels wait for their run."""
        with self._lock:
            return len(self._idle)
