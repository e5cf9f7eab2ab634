"""Data files inside installed packages, read as bytes, and known by their content."""

import gzip
import hashlib
import importlib.metadata
import importlib.util
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from langgraft._core.errors import CompetitionError, MissingExtraError
from langgraft._core.lazy import require

Picture = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Source:
    """A data file of a package. The package itself is never imported for it."""

    package: str
    """As it is installed by pip."""
    version: str
    """That the digest and the competition's checksums were made with."""
    module: str
    """Top-level module whose folder holds the file."""
    path: str
    sha256: str
    """Of what the file holds: unpacked, or a picture's pixels."""

    @property
    def file(self) -> Path:
        """Where the file lies.

        Raises:
            MissingExtraError: If the package is not installed.
            CompetitionError: If it carries no such file.
        """
        spec = importlib.util.find_spec(self.module)
        if spec is None or not spec.submodule_search_locations:
            msg = (
                f"This competition is made from data inside `{self.package}`, which is not "
                "installed: pip install 'langgraft[mle]'"
            )
            raise MissingExtraError(msg)
        file = Path(spec.submodule_search_locations[0], *self.path.split("/"))
        if not file.is_file():
            raise CompetitionError(f"is not there. {self._advice()}", path=file)
        return file

    def checked(self, content: bytes) -> bytes:
        """Return content if it is what is known.

        Raises:
            CompetitionError: If it differs.
        """
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise CompetitionError(f"holds other data than known. {self._advice()}", path=self.file)
        return content

    def _advice(self) -> str:
        try:
            installed = importlib.metadata.version(self.package)
        except importlib.metadata.PackageNotFoundError:
            installed = "an unknown version"
        if installed == self.version:
            return (
                f"The file of {self.package} {installed} was changed: "
                f"pip install --force-reinstall '{self.package}=={installed}'"
            )
        return (
            f"The competition's checksums were made with {self.package} {self.version}, installed "
            f"is {installed}: pip install '{self.package}=={self.version}', prepare, and change back"
        )


def skimage_picture(name: str, sha256: str) -> Source:
    """Return one of scikit-image's pictures."""
    return Source("scikit-image", "0.26.0", "skimage", f"data/{name}.png", sha256)


def read_bytes(source: Source) -> bytes:
    """Read a file's content, unpacked where its name ends in `.gz`.

    Raises:
        MissingExtraError: If the package is not installed.
        CompetitionError: If the file is missing or holds other data than known.
    """
    raw = source.file.read_bytes()
    return source.checked(gzip.decompress(raw) if source.path.endswith(".gz") else raw)


def read_picture(source: Source) -> Picture:
    """Read a lossless picture in shades of gray, 0 to 255.

    Colors are weighted as in ITU-R BT.601, in integers.

    Raises:
        MissingExtraError: If the package is not installed.
        CompetitionError: If the file is missing or holds other pixels than known.
    """
    pillow = require("PIL.Image", extra="mle", purpose="A competition of pictures")
    with pillow.open(source.file) as image:
        colors = np.asarray(image.convert("RGB"), dtype=np.uint8)
    source.checked(repr(colors.shape).encode() + colors.tobytes())
    weighted = colors.astype(np.int64) @ np.array([299, 587, 114])
    gray: Picture = ((weighted + 500) // 1000).astype(np.uint8)
    return gray


def secret(*contents: bytes) -> str:
    """Return a key of draws that nobody can tell who has this code, but not the sources.

    Where answers follow from draws alone, it goes into their key. `Source.sha256`, which stands in
    the code, tells nothing of it.
    """
    digest = hashlib.blake2b(person=b"langgraft")
    for content in contents:
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()
