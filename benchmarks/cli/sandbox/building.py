"""`langgraft sandbox build`."""

from contextlib import closing
from pathlib import Path

from langgraft.benchmarks.cli.printing import say
from langgraft.environments.sandboxes.docker.engine import IMAGE, connect
from langgraft.environments.sandboxes.image.build import build_image


def build(base: str, tag: str, requirements: Path | None) -> None:
    """Build the image, telling of each step.

    Raises:
        InputError: The requirements cannot be read.
        SandboxUnavailableError: No engine answers, the base cannot be had, or a step fails.
    """
    with closing(connect()) as client:
        built = build_image(client, base=base, tag=tag or IMAGE, requirements=requirements, say=say)
    how = "built" if built.made else "there already"
    say(f"{built.tag}: {how}, on {built.base} ({built.id.removeprefix('sha256:')[:12]})")
