"""The battery on a Docker engine."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from langgraft.environments.sandboxes.docker.engine import (
    IMAGE,
    is_away,
    is_remote,
    unreachable,
)
from langgraft.environments.sandboxes.docker.owner import OWNER, Owner
from langgraft.environments.sandboxes.docker.sandbox import DockerSandbox
from langgraft.environments.sandboxes.hostile.attack import LIMITS
from langgraft.environments.sandboxes.hostile.attacks import ATTACKS
from langgraft.environments.sandboxes.hostile.battery import Battery
from langgraft.environments.sandboxes.hostile.surroundings import Surroundings

if TYPE_CHECKING:
    from docker import DockerClient


@contextmanager
def battery_on(client: "DockerClient", image: str = IMAGE) -> Iterator[Battery]:
    """Open a sandbox on an engine, with surroundings to watch.

    Args:
        client: Of the engine; stays open.
        image: What programs run in.
    """
    # An engine on another machine has no folders of this one.
    remote = is_remote(client.api)
    attacks = [attack for attack in ATTACKS if not (remote and attack.local)]
    with (
        Surroundings(_bridge(client)) as surroundings,
        DockerSandbox(
            image,
            limits=LIMITS,
            inputs={} if remote else {"input": surroundings.inputs},
            client=client,
        ) as sandbox,
    ):
        yield Battery(sandbox, surroundings, lambda: _running(client), attacks)


def _running(client: "DockerClient") -> int:
    """Count the containers of this process that run more than a supervisor.

    Raises:
        SandboxUnavailableError: The engine went away meanwhile.
    """
    try:
        return _count_running(client)
    except Exception as error:
        if not is_away(error):
            raise
        raise unreachable(error) from error


def _count_running(client: "DockerClient") -> int:
    from docker.errors import APIError  # noqa: PLC0415  (slow)

    label = f"{OWNER}={Owner.current().labels()[OWNER]}"
    running = 0
    for container in client.api.containers(filters={"label": label}):
        try:
            found: Any = client.api.top(container["Id"])
        except APIError:
            continue  # removed meanwhile
        running += len(found["Processes"] or ()) > 1
    return running


def _bridge(client: "DockerClient") -> list[str]:
    """Return the addresses at which the engine's default network reaches its host."""
    from docker.errors import DockerException  # noqa: PLC0415  (slow)

    try:
        network = client.networks.get("bridge").attrs
    except DockerException:
        return []
    settings = (network.get("IPAM") or {}).get("Config") or ()
    return [entry["Gateway"] for entry in settings if entry.get("Gateway")]
