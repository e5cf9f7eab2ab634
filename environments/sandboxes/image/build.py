"""The image, built once for each recipe."""

import hashlib
import io
import re
import tarfile
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Final

import docker
import requests
from docker.errors import APIError, DockerException, ImageNotFound
from docker.models.images import Image

from langgraft._core.errors import InputError, SandboxUnavailableError
from langgraft.environments.sandboxes.docker.engine import IMAGE
from langgraft.environments.sandboxes.image.packages import (
    PACKAGES_LABEL,
    PROBE,
    read_probe,
    write_label,
)

DEFAULT_BASE: Final = "python:3.11-slim"
REPOSITORY: Final = "langgraft-sandbox"
RECIPE_LABEL: Final = "langgraft.sandbox-image.recipe"
"""On images we built: the hash of Dockerfile, requirements and base."""
SHIPPED: Final = ("mle", "mle-newer")
"""Further lists of ours: MLE-bench's libraries as they were, and as they are today."""
_TAG: Final = re.compile(
    r"(?:[a-zA-Z0-9.-]+(?::[0-9]+)?/)?[a-z0-9]+(?:[._/-]+[a-z0-9]+)*(?::\w[\w.-]{0,127})?", re.ASCII
)
"""What an engine takes as a name, which it would tell only after building."""
_SECONDS: Final = 1800
"""Of silence: pip says nothing while it downloads."""


@dataclass(frozen=True, slots=True)
class Built:
    """An image that is ready."""

    tag: str
    id: str
    base: str
    made: bool
    """Whether it was built now; else one of the same recipe was there."""


def build_image(
    client: docker.DockerClient,
    *,
    base: str = DEFAULT_BASE,
    tag: str = IMAGE,
    requirements: Path | None = None,
    say: Callable[[str], None] = lambda _: None,
) -> Built:
    """Build the image, unless one of the same recipe is there, and tag it.

    Args:
        client: The engine.
        base: An image with a Python 3.11 or newer and pip.
        tag: How to name it, beside the tag that tells its recipe.
        requirements: What to install in place of our own list: a file, or one of `SHIPPED`.
        say: Told of progress, a line at a time.

    Raises:
        InputError: The requirements cannot be read, or no image can have such a tag.
        SandboxUnavailableError: The base cannot be had, or the build fails.
    """
    if not _TAG.fullmatch(tag):
        msg = f"{tag!r} names no image: give a name in lower case, such as {IMAGE!r}"
        raise InputError(msg)
    recipe = _recipe(requirements)
    try:
        digest = _digest(recipe, _base(client, base, say))
        exact = f"{REPOSITORY}:{digest}"
        image = _there(client, exact)
        made = image is None
        if image is None:
            labels = {RECIPE_LABEL: digest}
            _build(client, recipe, exact, labels=labels, base=base, say=say)
            image = client.images.get(exact)
        if PACKAGES_LABEL not in image.labels:
            # Only an image that is there can be asked, base and all; no layer comes on top.
            labels = {**image.labels, PACKAGES_LABEL: write_label(_packages(client, exact))}
            _build(client, {"Dockerfile": b"FROM " + exact.encode()}, exact, labels=labels)
            image = client.images.get(exact)
        image.tag(*_split(tag))
    except (DockerException, requests.RequestException) as error:
        msg = f"the engine could not build the image {tag}: {error}"
        raise SandboxUnavailableError(msg) from error
    return Built(tag, str(image.id), base, made)


def remove_images(client: docker.DockerClient) -> list[str]:
    """Remove the images that were built or made here; return those that went.

    One that a container still uses stays, with all its names.
    """
    used = {container["ImageID"] for container in client.api.containers(all=True)}
    gone = []
    found = client.images.list(filters={"label": RECIPE_LABEL})
    for image in {str(image.id): image for image in found if image.id not in used}.values():
        names = image.tags or [str(image.id)]
        for name in names:
            try:
                client.images.remove(name)
            except APIError:
                continue
            gone.append(name)
    return gone


def _recipe(requirements: Path | None) -> dict[str, bytes]:
    """Return the files that the image is built from."""
    here = resources.files("langgraft.environments.sandboxes.image")
    names = ("Dockerfile", "requirements.txt")
    recipe = {name: here.joinpath(name).read_bytes() for name in names}
    if requirements is None:
        return recipe
    shipped = here.joinpath(f"requirements-{requirements}.txt")
    if str(requirements) in SHIPPED and not requirements.exists():
        recipe["requirements.txt"] = shipped.read_bytes()
        return recipe
    try:
        recipe["requirements.txt"] = requirements.read_bytes()
    except OSError as error:
        msg = (
            f"{requirements}: cannot be read: {error.strerror} (of our own there are"
            f" {', '.join(SHIPPED)})"
        )
        raise InputError(msg) from error
    return recipe


def _base(client: docker.DockerClient, base: str, say: Callable[[str], None]) -> str:
    """Return the id of the base image, pulled where it is not there."""
    image = _there(client, base)
    if image is None:
        say(f"pulling {base}")
        try:
            client.images.pull(base)
            image = client.images.get(base)
        except DockerException as error:
            msg = (
                f"the base image {base} cannot be pulled ({_reason(error)}): name one that is"
                " here with `--base IMAGE`; without a registry, `make base-image` in a checkout"
                " of langgraft makes one from this machine's Python"
            )
            raise SandboxUnavailableError(msg) from error
    return str(image.id)


def _split(tag: str) -> tuple[str, str]:
    """Return repository and tag; a colon before the last slash is that of a port."""
    repository, colon, name = tag.rpartition(":")
    return (repository, name) if colon and "/" not in name else (tag, "latest")


def _reason(error: DockerException) -> str:
    told = error.explanation if isinstance(error, APIError) else None
    return " ".join(str(told or error).split())[:200]


def _there(client: docker.DockerClient, name: str) -> Image | None:
    try:
        return client.images.get(name)
    except ImageNotFound:
        return None


def _digest(recipe: Mapping[str, bytes], base_id: str) -> str:
    told = hashlib.sha256(base_id.encode())
    for name, content in sorted(recipe.items()):
        told.update(f"\n{name} {len(content)}\n".encode() + content)
    return told.hexdigest()[:12]


def _packages(client: docker.DockerClient, image: str) -> tuple[str, ...]:
    """Ask an image which packages it has.

    Raises:
        SandboxUnavailableError: It does not say.
    """
    printed: bytes = client.containers.run(
        image,
        ["python3", "-c", PROBE],
        network_mode="none",
        read_only=True,
        cap_drop=["ALL"],
        mem_limit="1g",
        remove=True,
    )
    found = read_probe(printed.decode("utf-8", "replace"))
    if found is None:
        msg = f"the image {image} was built, and does not say which packages it has"
        raise SandboxUnavailableError(msg)
    return found


def _build(
    client: docker.DockerClient,
    recipe: Mapping[str, bytes],
    tag: str,
    *,
    labels: Mapping[str, str],
    base: str = "",
    say: Callable[[str], None] = lambda _: None,
) -> None:
    """Build by the engine's own builder, which streams what it does.

    Raises:
        SandboxUnavailableError: A step failed.
    """
    # `images.build` tells what happened only at the end; this is what it calls.
    told: Iterator[Any] = client.api.build(
        fileobj=_context(recipe),
        custom_context=True,
        tag=tag,
        buildargs={"BASE_IMAGE": base} if base else {},
        labels=dict(labels),
        rm=True,
        forcerm=True,
        decode=True,
        timeout=_SECONDS,
    )
    last = ""
    for message in told:
        if not isinstance(message, dict):
            continue
        if "error" in message:
            failed = " ".join(str(message["error"]).split())
            msg = f"the image could not be built on {base or tag}: {failed}; before that: {last[-300:]}"
            raise SandboxUnavailableError(msg)
        line = str(message.get("stream", "")).strip()
        if line.startswith("Step "):
            say(line.splitlines()[0][:100])
        elif line and not line.startswith(("--->", "Removing intermediate")):
            last = line


def _context(recipe: Mapping[str, bytes]) -> io.BytesIO:
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w") as archive:
        for name, content in sorted(recipe.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
    packed.seek(0)
    return packed
