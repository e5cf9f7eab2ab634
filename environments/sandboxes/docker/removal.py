"""Removing containers, and remembering those that would not go.

Removing takes an engine some 50 ms in which nobody has to wait for it: places whose programs
are all dead are removed by a thread.
"""

import contextlib
import logging
import queue
import threading
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from docker import APIClient

logger = logging.getLogger(__name__)

_WAITING: Final = 8
"""Containers that may wait to be removed; beyond it whoever is done with one waits instead."""
_ENDING: Final = 1
"""Seconds for a container to end after its input did."""


def remove_container(api: "APIClient", container: str) -> bool:
    """Kill and remove a container; return whether it is gone. Never raises."""
    import requests  # noqa: PLC0415  (with docker: slow)
    from docker.errors import APIError, DockerException, NotFound  # noqa: PLC0415

    try:
        api.remove_container(container, v=True, force=True)
    except NotFound:
        return True
    except APIError as error:
        # 409: somebody else is removing it just now.
        if error.status_code == 409:  # noqa: PLR2004
            return True
        logger.warning("cannot remove the container %s: %s", container[:12], error)
        return False
    except (DockerException, requests.RequestException, OSError) as error:
        logger.warning("cannot remove the container %s: %s", container[:12], error)
        return False
    return True


def wait_for_end(api: "APIClient", container: str) -> None:
    """Give a container whose input has ended a moment to end by itself. Never raises.

    The engine removes one that has ended in some 7 ms; killing it takes it 45 ms, most of them
    of a processor.
    """
    import requests  # noqa: PLC0415  (with docker: slow)
    from docker.errors import DockerException  # noqa: PLC0415

    # Whatever is wrong, removing it meets the same, and tells.
    with contextlib.suppress(DockerException, requests.RequestException, OSError):
        api.wait(container, timeout=_ENDING)


class Removals:
    """What is to be removed from one engine.

    Args:
        api: Of the engine.
    """

    def __init__(self, api: "APIClient") -> None:
        self._api = api
        self._stubborn: set[str] = set()
        self._queue: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._waiting = 0
        self._closed = False
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @property
    def stubborn(self) -> frozenset[str]:
        """The containers that would not go."""
        with self._changed:
            return frozenset(self._stubborn)

    def now(self, container: str) -> None:
        """Remove a container before returning; one that does not go is remembered."""
        gone = remove_container(self._api, container)
        with self._changed:
            (self._stubborn.discard if gone else self._stubborn.add)(container)

    def soon(self, container: str) -> None:
        """Have a container removed by a thread; after `close`, remove it at once."""
        with self._changed:
            busy = self._closed or self._waiting >= _WAITING
            self._waiting += not busy
            if not busy and self._thread is None:
                self._thread = threading.Thread(
                    target=self._work, name="sandbox-removal", daemon=True
                )
                self._thread.start()
        if busy:
            self.now(container)
        else:
            self._queue.put(container)

    def retry(self) -> None:
        """Try again to remove those that would not go."""
        for container in self.stubborn:
            self.now(container)

    def settle(self, seconds: float = 60.0) -> None:
        """Wait until nothing is left to the thread."""
        with self._changed:
            self._changed.wait_for(lambda: self._waiting == 0, seconds)

    def close(self) -> None:
        """Remove all there is, and end the thread."""
        with self._changed:
            self._closed = True
        self.settle()
        self.retry()
        with self._changed:
            if self._thread is not None:
                self._queue.put(None)
                self._thread = None

    def _work(self) -> None:
        while (container := self._queue.get()) is not None:
            try:
                wait_for_end(self._api, container)
                self.now(container)
            finally:
                with self._changed:
                    self._waiting -= 1
                    self._changed.notify_all()
