"""Time is passed in, never read in place: results must not depend on it."""

import time
from typing import Protocol


class Clock(Protocol):
    """Where a component gets the time from."""

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
