"""Looking at a sandbox's containers from outside, and ending them there."""

import contextlib
import os
import signal
import threading
import time
from collections.abc import Callable, Iterator

from docker import DockerClient
from docker.errors import APIError
from docker.models.containers import Container

from langgraft.environments.sandboxes.docker import DockerSandbox


def containers_of(engine: DockerClient, sandbox: DockerSandbox) -> list[Container]:
    """Return all containers of a sandbox, ended ones included."""
    label = sandbox._reached().opening.label
    return engine.containers.list(all=True, filters={"label": label}, ignore_removed=True)


def settled(sandbox: DockerSandbox) -> None:
    """Wait until what programs used is removed."""
    sandbox._reached().removals.settle()


def wait_until_running(engine: DockerClient, sandbox: DockerSandbox) -> None:
    """Wait until a container of a sandbox runs."""
    while not any(one.status == "running" for one in containers_of(engine, sandbox)):
        time.sleep(0.05)


def process_of(container: Container) -> int:
    """Return the number that a container's first process has on this machine."""
    container.reload()
    return int(container.attrs["State"]["Pid"])


def kill(container: Container) -> None:
    """End a container as `docker kill` does, if it has not ended by itself."""
    try:
        container.kill()
    except APIError as error:
        if error.status_code not in (404, 409):  # is gone, or does not run
            raise


def remove(container: Container) -> None:
    """End a container as `docker rm -f` does."""
    container.remove(force=True)


def kill_process(container: Container) -> None:
    """End a container's first process from this machine."""
    if (number := process_of(container)) == 0:  # it has ended; 0 would be all of our own group
        raise ProcessLookupError
    os.kill(number, signal.SIGKILL)


@contextlib.contextmanager
def ending(
    engine: DockerClient,
    sandbox: DockerSandbox,
    *ways: Callable[[Container], None],
) -> Iterator[list[str]]:
    """End a sandbox's containers one after another, each in its way once it has run for a while.

    Yields:
        The ids of those ended so far.
    """
    ended: list[str] = []
    over = threading.Event()

    def work() -> None:
        while len(ended) < len(ways) and not over.wait(0.05):
            for container in containers_of(engine, sandbox):
                if container.status != "running" or container.id in ended:
                    continue
                how = ways[min(len(ended), len(ways) - 1)]
                time.sleep(0.3)
                with contextlib.suppress(APIError, ProcessLookupError):
                    how(container)
                    ended.append(str(container.id))

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield ended
    finally:
        over.set()
        thread.join()
