"""A base image made of the running Python, where none can be pulled."""

import hashlib
import io
import tarfile
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

import docker
from docker.errors import ImageNotFound

from langgraft.environments.sandboxes.image.host_python import (
    CERTIFICATES,
    VERSION,
    Contents,
    gather,
)
from langgraft.environments.sandboxes.image.labels import BASE_LABEL, REPOSITORY

_FOLDERS: Final = [
    "dev",
    "etc",
    "home",
    "mnt",
    "opt",
    "proc",
    "root",
    "run",
    "sys",
    "tmp",
    "usr",
    "usr/bin",
    "usr/lib",
    "usr/lib64",
    "usr/local",
    "usr/local/bin",
    "usr/local/lib",
    "usr/sbin",
    "var",
    "var/tmp",
]
_OPEN_TO_ALL: Final = frozenset({"tmp", "var/tmp"})


def make_base(client: docker.DockerClient, say: Callable[[str], None]) -> str:
    """Make a base image of the Python that runs this, unless it is there, and return its tag.

    Its prefix goes to `/usr/local`, as in the official images, with the shared libraries it
    loads, a shell, the usual tools and this machine's certificates. No network is needed.

    Args:
        client: The engine.
        say: Told of progress, a line at a time.

    Raises:
        SandboxUnavailableError: This machine's Python cannot be taken over.
    """
    contents = gather()
    tag = f"local-{VERSION}-{_fingerprint(contents)}"
    name = f"{REPOSITORY}-base:{tag}"
    try:
        client.images.get(name)
    except ImageNotFound:
        count = len(contents.copied) + len(contents.written)
        say(f"base image {name}: {count} files of this machine's Python")
        with tempfile.TemporaryFile() as archive:
            _pack(contents, archive)
            archive.seek(0)
            client.api.import_image(
                archive, repository=f"{REPOSITORY}-base", tag=tag, changes=_settings(contents)
            )
    return name


def _fingerprint(contents: Contents) -> str:
    """Hash what the image would hold; of files, path, size and time, as `make` does."""
    told = hashlib.sha256()
    for name, path in sorted(contents.copied.items()):
        status = path.stat()
        told.update(f"{name}\0{path}\0{status.st_size}\0{status.st_mtime_ns}\n".encode())
    for name, target in sorted(contents.links.items()):
        told.update(f"{name}\0{target}\n".encode())
    for name, content in sorted(contents.written.items()):
        told.update(f"{name}\0{hashlib.sha256(content).hexdigest()}\n".encode())
    return told.hexdigest()[:12]


def _settings(contents: Contents) -> list[str]:
    environment = "PATH=/usr/local/bin:/usr/local/sbin:/usr/sbin:/usr/bin:/sbin:/bin LANG=C.UTF-8"
    if CERTIFICATES in contents.copied:
        # pip's own list lacks authorities that a company added to its machines.
        environment += f" PIP_CERT=/{CERTIFICATES} SSL_CERT_FILE=/{CERTIFICATES}"
    return [f"ENV {environment}", 'CMD ["python3"]', f"LABEL {BASE_LABEL}=1"]


def _pack(contents: Contents, target: IO[bytes]) -> None:
    with tarfile.open(fileobj=target, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for name in _FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type = tarfile.DIRTYPE
            folder.mode = 0o1777 if name in _OPEN_TO_ALL else 0o755
            archive.addfile(folder)
        for name, link in sorted(contents.links.items()):
            entry = tarfile.TarInfo(name)
            entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, link, 0o777
            archive.addfile(entry)
        for name, content in sorted(contents.written.items()):
            entry = tarfile.TarInfo(name)
            entry.size, entry.mode = len(content), 0o644
            archive.addfile(entry, io.BytesIO(content))
        for name, path in sorted(contents.copied.items()):
            _pack_file(archive, name, path)


def _pack_file(archive: tarfile.TarFile, name: str, path: Path) -> None:
    status = path.stat()
    entry = tarfile.TarInfo(name)
    entry.size, entry.mtime = status.st_size, int(status.st_mtime)
    # No bit of setuid is taken over, and everything can be read by the sandbox's user.
    entry.mode = 0o755 if status.st_mode & 0o111 else 0o644
    with path.open("rb") as stream:
        archive.addfile(entry, stream)
