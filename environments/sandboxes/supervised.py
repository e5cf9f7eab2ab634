"""`SupervisedSandbox`: what all sandboxes with a supervisor share."""

from abc import ABC, abstractmethod

from langgraft.environments.sandboxes.limits import Limits
from langgraft.environments.sandboxes.places import Place
from langgraft.environments.sandboxes.results import ExecutionResult


class SupervisedSandbox(ABC):
    """Runs programs in places that a subclass opens; retries what is not the program's doing.

    Args:
        limits: Of every program.
        retries: Fresh places a program gets after one died under it.
    """

    def __init__(self, limits: Limits | None = None, *, retries: int = 2) -> None:
        self.limits = limits or Limits()
        self._retries = retries

    @property
    @abstractmethod
    def digest(self) -> str:
        """What else decides a result: image, mounts, limits; a part of the execution cache's key."""

    @abstractmethod
    def _open(self) -> Place:
        """Return a started place whose supervisor was greeted; from a pool it comes at once.

        Called from any number of threads. Whoever gets the place destroys it.

        Raises:
            SandboxUnavailableError: There is no engine or image: trying again is of no use.
            SandboxFailureError, OSError, TimeoutError, ChannelClosedError, ProtocolError: It
                failed this time; it is tried again.
        """

    def _release(self) -> None:
        """Remove what a subclass keeps besides open places: its pool, its client. Once, last."""

    def _told(self, place: Place, result: ExecutionResult) -> ExecutionResult:  # noqa: ARG002
        """Return a result as it is told; a subclass may leave out what names the machine."""
        return result
