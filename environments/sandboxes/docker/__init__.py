"""A sandbox of Docker containers: a fresh hardened one for each program.

    sandbox       `DockerSandbox`
    engine        reaching an engine, what it must be able to enforce, and removing containers, those of
                  processes that are gone among them
    controls      a container's configuration from `Limits`; its inputs and GPUs
    opening       containers created, attached, started and greeted; what holds inside the first one,
                  compared with what was asked for
    container     one of them: the stream to and from its supervisor, and why it died

Nothing of Docker's own client is imported before an engine is asked for something.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.environments.sandboxes.docker.engine import remove_all, remove_orphans
    from langgraft.environments.sandboxes.docker.sandbox import DockerSandbox

__all__ = ["DockerSandbox", "remove_all", "remove_orphans"]

_HERE = "langgraft.environments.sandboxes.docker"
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "DockerSandbox": f"{_HERE}.sandbox",
        "remove_all": f"{_HERE}.engine",
        "remove_orphans": f"{_HERE}.engine",
    },
)
