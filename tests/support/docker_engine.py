"""The Docker engine and image that tests run programs in, where there are any."""

import gc
import os
import warnings

import docker
from docker.errors import DockerException, ImageNotFound


def image_or_reason() -> tuple[str | None, str]:
    """Return the tag of the sandbox image, or why there is none and how to get it."""
    # docker-py leaves sockets that could not connect to the garbage collector.
    with warnings.catch_warnings(action="ignore", category=ResourceWarning):
        found = _looked_for()
        gc.collect()
    return found


def _looked_for() -> tuple[str | None, str]:
    tag = os.environ.get("LANGGRAFT_SANDBOX_IMAGE", "langgraft-sandbox:latest")
    try:
        client = docker.from_env(timeout=120)
    except DockerException as error:
        return (
            None,
            f"no Docker engine answers ({error}): start one, then `langgraft sandbox build`",
        )
    try:
        client.images.get(tag)
    except ImageNotFound:
        return None, f"no image {tag}: `langgraft sandbox build` makes it"
    finally:
        client.close()
    return tag, ""
