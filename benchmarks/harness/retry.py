"""How often a failed model call is repeated, and how long to wait first.

One loop owns all retries: clients are built with `max_retries=0`, because nested retries
multiply, and because a client's own are too few (two attempts are about 1.5 seconds of
patience) and give up on a `Retry-After` above 120 seconds.
"""

import asyncio
import random
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from langgraft._core.clock import Clock, SystemClock
from langgraft.benchmarks.harness.failures import Failure, FailureKind


@dataclass(frozen=True, slots=True)
class RetryPolicy:
    """How patient to be. Defaults: exponential from 1 to 60 s with full jitter, 15 minutes in all."""

    first_seconds: float = 1.0
    """Longest wait after the first failure; doubles with each further one."""
    most_seconds: float = 60.0
    """Longest wait of our own choosing; a provider's `Retry-After` may be longer."""
    total_seconds: float = 900.0
    """How long after its first attempt a request may still be repeated."""
    unreachable_seconds: float = 60.0
    """The same as long as nothing has ever answered there, as with a mistyped URL."""

    def delay(
        self, failure: Failure, *, attempts: int, elapsed: float, fraction: float, reached: bool
    ) -> float | None:
        """Return the seconds to wait before the next attempt, or `None` to give up.

        Args:
            failure: How the last attempt failed.
            attempts: Attempts so far, at least 1.
            elapsed: Seconds since the first attempt began.
            fraction: A random number in [0, 1): the jitter.
            reached: Whether the provider has ever answered.
        """
        if failure.kind is not FailureKind.PROVIDER_TRANSIENT:
            return None
        ceiling = min(self.most_seconds, self.first_seconds * 2.0 ** min(attempts - 1, 32))
        wait = fraction * ceiling + (failure.retry_after or 0.0)
        patience = self.total_seconds
        if failure.unreachable and not reached:
            patience = min(patience, self.unreachable_seconds)
        return wait if elapsed + wait <= patience else None


class Timing:
    """Where waiting comes from; tests pass a clock that does not wait.

    Attributes:
        clock: The time, for dates and durations.
        sleep: Waits some seconds.
        asleep: The same for a coroutine.
        fraction: Gives random numbers in [0, 1). They decide when a call is made, never what
            it says.
    """

    def __init__(
        self,
        *,
        clock: Clock | None = None,
        sleep: Callable[[float], None] = time.sleep,
        asleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
        fraction: Callable[[], float] = random.random,
    ) -> None:
        self.clock = clock or SystemClock()
        self.sleep = sleep
        self.asleep = asleep
        self.fraction = fraction
