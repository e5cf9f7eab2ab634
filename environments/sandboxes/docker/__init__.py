"""A sandbox of Docker containers: a fresh hardened one for each program.

    sandbox       `DockerSandbox`
    engine        reaching an engine, and what it must be able to enforce
    controls      a container's configuration from `Limits`
    verification  what holds inside a container, compared with what was asked for
    inputs        folders of this machine, mounted read-only
    gpus          what is asked of an engine that has them
    bootstrap     how a supervisor gets into a container
    container     one started container, and why it died
    channel       the stream to and from the supervisor inside
    pool          places started beforehand, each used once
    removal       removing containers, and remembering those that would not go
    owner         whose a container is, and removing those whose owner is gone

Nothing of Docker's own client is imported before an engine is asked for something.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.environments.sandboxes.docker.owner import remove_all, remove_orphans
    from langgraft.environments.sandboxes.docker.sandbox import DockerSandbox

__all__ = ["DockerSandbox", "remove_all", "remove_orphans"]

_HERE = "langgraft.environments.sandboxes.docker"
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "DockerSandbox": f"{_HERE}.sandbox",
        "remove_all": f"{_HERE}.owner",
        "remove_orphans": f"{_HERE}.owner",
    },
)
