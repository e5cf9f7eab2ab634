"""A base image for the sandbox, made of the Python that runs this, where no registry is at hand.

`make base-image` makes it and prints its tag; `langgraft sandbox build --base TAG` builds on it.
"""

import ensurepip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import zipfile
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Final

import docker
from docker.errors import DockerException, ImageNotFound

from langgraft._core.errors import LanggraftError, SandboxUnavailableError
from langgraft.environments.sandboxes.image.build import RECIPE_LABEL, REPOSITORY

VERSION: Final = f"python{sys.version_info.major}.{sys.version_info.minor}"
CERTIFICATES: Final = "etc/ssl/certs/ca-certificates.crt"
"""Where certificates go in the image."""

_LEFT_OUT: Final = frozenset(
    {"site-packages", "dist-packages", "test", "idlelib", "turtledemo", "tkinter", "ensurepip"}
)
# Compiled files stay, with the times of their sources: a read-only image cannot make them.
_ENDINGS_LEFT_OUT: Final = (".a", ".o", ".opt-1.pyc", ".opt-2.pyc", "EXTERNALLY-MANAGED")
_TOOLS: Final = [
    "bash",
    "basename",
    "cat",
    "chmod",
    "chown",
    "cp",
    "cut",
    "date",
    "dd",
    "df",
    "dirname",
    "du",
    "echo",
    "env",
    "false",
    "find",
    "grep",
    "gzip",
    "head",
    "id",
    "kill",
    "ln",
    "ls",
    "mkdir",
    "mktemp",
    "mv",
    "nproc",
    "printf",
    "ps",
    "pwd",
    "readlink",
    "rm",
    "rmdir",
    "sed",
    "seq",
    "sh",
    "sleep",
    "sort",
    "stat",
    "tail",
    "tar",
    "tee",
    "test",
    "timeout",
    "touch",
    "tr",
    "true",
    "uname",
    "uniq",
    "wc",
    "which",
    "xargs",
]
# What wheels link to, and what the C library loads by name at run time.
_LIBRARIES: Final = [
    "libanl.so.1",
    "libc.so.6",
    "libcrypt.so.1",
    "libdl.so.2",
    "libexpat.so.1",
    "libgcc_s.so.1",
    "libgomp.so.1",
    "libm.so.6",
    "libnss_dns.so.2",
    "libnss_files.so.2",
    "libpthread.so.0",
    "libresolv.so.2",
    "librt.so.1",
    "libstdc++.so.6",
    "libutil.so.1",
    "libz.so.1",
]
_CERTIFICATE_FILES: Final = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
)
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


@dataclass
class Contents:
    """The files of an image, by the path they get (no leading slash)."""

    copied: dict[str, Path] = field(default_factory=dict)
    links: dict[str, str] = field(default_factory=dict)
    written: dict[str, bytes] = field(default_factory=dict)

    def add(self, source: Path, target: str) -> None:
        """Take a file over; a link to a sibling stays one."""
        if source.is_symlink() and len((sibling := source.readlink()).parts) == 1:
            self.links[target] = str(sibling)
        else:
            self.copied[target] = source.resolve()


def gather() -> Contents:
    """Find what the image needs: the layout is that of the official Python images.

    Raises:
        SandboxUnavailableError: This machine's Python cannot be taken over.
    """
    _check_machine()
    contents = Contents()
    _add_python(contents)
    _add_pip(contents)
    for name in _TOOLS:
        if found := shutil.which(name, path="/usr/bin:/bin"):
            contents.copied[f"usr/bin/{name}"] = Path(found).resolve()
    _add_libraries(contents)
    for name in _CERTIFICATE_FILES:
        if Path(name).is_file():
            contents.copied.setdefault(CERTIFICATES, Path(name).resolve())
    _add_system_files(contents)
    return contents


def _check_machine() -> None:
    libc = os.confstr("CS_GNU_LIBC_VERSION") if sys.platform == "linux" else None
    if not libc or not libc.startswith("glibc"):
        msg = (
            "a base image can be made from this machine's Python on Linux with glibc only; here,"
            " give one that is pulled: `langgraft sandbox build --base python:3.11-slim`"
        )
        raise SandboxUnavailableError(msg)


def _add_python(contents: Contents) -> None:
    prefix = Path(sys.base_prefix).resolve()
    contents.add((prefix / "bin" / VERSION).resolve(), f"usr/local/bin/{VERSION}")
    for name in ("python3", "python"):
        contents.links[f"usr/local/bin/{name}"] = VERSION
    library = prefix / "lib" / VERSION
    for path in _files_below(library):
        contents.add(path, f"usr/local/lib/{VERSION}/{path.relative_to(library)}")
    # Beside the system's libraries, where the loader looks without a cache.
    for path in (prefix / "lib").glob("libpython3*.so*"):
        contents.add(path, f"{_library_folder()}/{path.name}")


def _files_below(folder: Path) -> Iterator[Path]:
    for root, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if name not in _LEFT_OUT)
        for name in sorted(files):
            path = Path(root, name)
            if not name.endswith(_ENDINGS_LEFT_OUT) and path.exists():
                yield path


def _add_pip(contents: Contents) -> None:
    """Take pip from the wheel that Python brings, whatever the environment has."""
    wheel = _pip_wheel()
    # Debian's Python looks into `dist-packages` only; every other into `site-packages`.
    packages = "dist-packages" if _is_debians() else "site-packages"
    with zipfile.ZipFile(wheel) as archive:
        for member in archive.infolist():
            if not member.is_dir():
                target = f"usr/local/lib/{VERSION}/{packages}/{member.filename}"
                contents.written[target] = archive.read(member)


def _pip_wheel() -> Path:
    folders = [Path(ensurepip.__file__).parent / "_bundled"]
    if configured := sysconfig.get_config_var("WHEEL_PKG_DIR"):
        folders.append(Path(configured))
    folders.append(Path("/usr/share/python-wheels"))
    wheels = [wheel for folder in folders for wheel in sorted(folder.glob("pip-*.whl"))]
    if not wheels:
        msg = (
            f"this Python ({sys.base_prefix}) brings no pip to put into the image: install the"
            " package python3-venv (Debian, Ubuntu), or use another Python"
        )
        raise SandboxUnavailableError(msg)
    return wheels[-1]


def _is_debians() -> bool:
    return (Path(sys.base_prefix) / "lib/python3/dist-packages").is_dir()


def _add_libraries(contents: Contents) -> None:
    """Add every shared library that a file of the image loads, and the loader."""
    binaries = sorted({str(path) for path in contents.copied.values() if _is_binary(path)})
    own = str(Path(sys.base_prefix).resolve())
    known = dict(_loaded(["ldconfig", "-p"], r"^\s*(\S+) \(libc6[^)]*\) => (\S+)"))
    needed = {name: known[name] for name in _LIBRARIES if name in known}
    needed.update(_loaded(["ldd", *binaries], r"^\s+(\S+) => (/\S+)"))
    for name, path in needed.items():
        if own == "/usr" or not path.startswith(own):
            contents.copied[f"{_library_folder()}/{name}"] = Path(path).resolve()
    loaders = {path for path, _ in _loaded(["ldd", *binaries], r"^\s+(/lib\S*/ld-linux\S+)( )")}
    for path in loaders:
        contents.copied[f"usr{path}"] = Path(path).resolve()
    if ldconfig := shutil.which("ldconfig", path="/usr/sbin:/sbin"):
        contents.copied["usr/sbin/ldconfig"] = Path(ldconfig).resolve()


def _loaded(command: list[str], pattern: str) -> Iterable[tuple[str, str]]:
    program = shutil.which(command[0], path=f"{os.environ.get('PATH', '')}:/usr/sbin:/sbin")
    if program is None:
        msg = f"{command[0]} is not installed, and a base image cannot be made without it"
        raise SandboxUnavailableError(msg)
    # ldd fails for scripts and static programs among the files, and tells of the others all the same.
    told = subprocess.run([program, *command[1:]], capture_output=True, text=True, check=False)
    return re.findall(pattern, told.stdout, re.MULTILINE)


def _is_binary(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(4) == b"\x7fELF"


def _library_folder() -> str:
    multiarch = sysconfig.get_config_var("MULTIARCH")
    return f"usr/lib/{multiarch}" if multiarch else "usr/lib64"


def _add_system_files(contents: Contents) -> None:
    texts = {
        "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nsandbox:x:10001:10001::/tmp:/bin/sh\n",
        "etc/group": "root:x:0:\nsandbox:x:10001:\n",
        "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
        "etc/ld.so.conf": f"/usr/local/lib\n/{_library_folder()}\n",
    }
    contents.written.update({name: text.encode() for name, text in texts.items()})
    for name in ("bin", "sbin", "lib", "lib64"):
        contents.links[name] = f"usr/{name}"
    if Path("/usr/share/zoneinfo/UTC").is_file():
        contents.copied["usr/share/zoneinfo/UTC"] = Path("/usr/share/zoneinfo/UTC").resolve()


def make_base(client: docker.DockerClient) -> str:
    """Make a base image of the Python that runs this, unless it is there, and return its tag.

    Its prefix goes to `/usr/local`, as in the official images, with the shared libraries it
    loads, a shell, the usual tools and this machine's certificates. No network is needed.

    Args:
        client: The engine.

    Raises:
        SandboxUnavailableError: This machine's Python cannot be taken over.
    """
    contents = gather()
    tag = f"local-{VERSION}-{_fingerprint(contents)}"
    name = f"{REPOSITORY}-base:{tag}"
    try:
        client.images.get(name)
    except ImageNotFound:
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
    return [f"ENV {environment}", 'CMD ["python3"]', f"LABEL {RECIPE_LABEL}=base"]


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


def main() -> int:
    """Make the image on the engine of this machine and print its tag."""
    try:
        sys.stdout.write(make_base(docker.from_env()) + "\n")
    except (DockerException, LanggraftError) as error:
        sys.stderr.write(f"base-image: {error}\n")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
