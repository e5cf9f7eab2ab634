"""`langgraft sandbox clean`."""

from contextlib import closing

from langgraft.benchmarks.cli.printing import say
from langgraft.environments.sandboxes.docker.engine import connect
from langgraft.environments.sandboxes.docker.owner import remove_all, remove_orphans
from langgraft.environments.sandboxes.image.build import remove_images


def clean(*, everything: bool, images: bool) -> None:
    """Remove containers, and images where that is asked for.

    Raises:
        SandboxUnavailableError: No engine answers.
    """
    with closing(connect()) as client:
        removed = remove_all(client) if everything else remove_orphans(client)
        say(f"{len(removed)} containers removed")
        if images:
            gone = remove_images(client)
            say(f"{len(gone)} images removed{': ' if gone else ''}{', '.join(gone)}")
