"""How competitions that ship are made of files in installed packages: the same bytes on every machine.

The split that ships, which rows it trains and tests on; chance; pictures turned, moved, scaled and
blurred with noise, in integers throughout; tables and pictures on disk.
"""

import csv
import gzip
import hashlib
import importlib.metadata
import importlib.util
import io
import os
import struct
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

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


Integers = NDArray[np.int64]

ONE = 1 << 16
"""What `normals` calls one standard deviation."""

SHIPPED: Final = "shipped"
"""Name of the split that ships."""

UNIT: Final = 1024
"""One pixel of the source, and the number one, in fixed-point arithmetic."""

SINES: Final = (0, 89, 178, 265, 350, 433, 512, 587, 658, 724, 784, 839, 887, 928, 962, 989, 1008)
"""1024 sin of 0, 5, 10 … 80 degrees."""

TURN: Final = 72
"""Steps of 5 degrees in a full turn."""

WRITTEN: Final = 1_577_836_800
"""Time of last change of every file, in seconds: the first of January 2020."""
_STORED = 65_535
"""Bytes in a stored block of deflate at most (RFC 1951 3.2.4)."""


def of_shipped(
    prepare_split: Callable[[Path, Path, str], None],
) -> Callable[[Path, Path, Path], None]:
    """Return MLE-bench's `prepare(raw, public, private)`, which makes the split that ships.

    Args:
        prepare_split: Writes the files of the split of a name.
    """

    def prepare(raw: Path, public: Path, private: Path) -> None:  # noqa: ARG001
        """Write the public and the private files.

        Args:
            raw: Not used, but part of MLE-bench's form: the source lies in a package.
            public: An empty folder for what agents may see.
            private: An empty folder for the answers.

        Raises:
            MissingExtraError: If the package with the source is not installed.
            CompetitionError: If its data are not those known.
        """
        prepare_split(public, private, SHIPPED)

    return prepare


# Chance that is the same under every version of every library
#
# Bytes come from SHAKE-256 of a key in words; all that is made of them is integer arithmetic, so
# neither a library's random streams nor the last bit of a float can show in a competition's files.


def uniforms(key: str, count: int, below: int = ONE) -> Integers:
    """Draw integers of equal chance from 0 to `below` - 1.

    The bias of taking 32 bits modulo `below` is under 2e-5 for every `below` used here.

    Args:
        key: Names the draw; another key, other numbers.
        count: How many.
        below: At most 65,536.
    """
    drawn = np.frombuffer(hashlib.shake_256(key.encode()).digest(4 * count), dtype="<u4")
    return drawn.astype(np.int64) % below


def normals(key: str, count: int) -> Integers:
    """Draw from nearly a normal distribution: mean 0, standard deviation `ONE`, at most 6 of it.

    Each is the sum of twelve uniform integers (Irwin-Hall), whose variance is that of `ONE` to a
    part in 4e9.
    """
    drawn = np.frombuffer(hashlib.shake_256(key.encode()).digest(24 * count), dtype="<u2")
    total: Integers = drawn.reshape(count, 12).sum(axis=1, dtype=np.int64)
    return total - 6 * (ONE - 1)


def noise(key: str, count: int, deviation: int) -> Integers:
    """Draw normal noise with a standard deviation, rounded to integers."""
    rounded: Integers = (normals(key, count) * deviation + ONE // 2) >> 16
    return rounded


def order(key: str, count: int) -> Integers:
    """Return 0 to `count` - 1 in an order drawn by a key."""
    drawn = np.frombuffer(hashlib.shake_256(key.encode()).digest(8 * count), dtype="<u8")
    return np.argsort(drawn, kind="stable").astype(np.int64)


@dataclass(frozen=True, slots=True)
class Split:
    """Positions in the source, in the order in which rows are written and numbered."""

    train: Integers
    test: Integers


def split(key: str, labels: Sequence[object], test: float) -> Split:
    """Part rows at random, with equal shares of every label.

    Args:
        key: Names the split.
        labels: One for each row.
        test: Share of the rows that is for the test.
    """
    taken: list[int] = []
    for label in sorted(set(labels), key=str):
        rows = [row for row, other in enumerate(labels) if other == label]
        shuffled = order(f"{key} share of {label}", len(rows))
        taken += [rows[place] for place in shuffled[: round(test * len(rows))]]
    held = set(taken)
    shown = order(f"{key} order", len(labels))  # says nothing of labels
    return Split(
        train=shown[[row not in held for row in shown.tolist()]],
        test=shown[[row in held for row in shown.tolist()]],
    )


# Pictures


@dataclass(frozen=True, slots=True)
class View:
    """Where a window lies on a picture."""

    row: int
    """Of the window's center on the source, in 1/1024 pixels."""
    column: int
    angle: int
    """In steps of 5 degrees."""
    scale: int = UNIT
    """Pixels of the source per pixel of the window, in 1/1024."""


def sine(angle: int) -> int:
    """Return 1024 times the sine of an angle in steps of 5 degrees."""
    quarter, step = divmod(angle % TURN, 18)
    table = (*SINES, 1020, UNIT)
    rising = table[step] if quarter % 2 == 0 else table[18 - step]
    return rising if quarter < 2 else -rising  # noqa: PLR2004  (the half turn below zero)


def look(picture: NDArray[np.generic], view: View, size: int) -> Integers:
    """Return a square window of a picture, interpolated between its pixels.

    Beyond the picture's edge its edge goes on.

    Args:
        picture: Height by width.
        view: Where the window lies.
        size: Pixels along each side of the window.
    """
    steps = (2 * np.arange(size, dtype=np.int64) - (size - 1)) * view.scale // 2
    down, right = np.meshgrid(steps, steps, indexing="ij")
    cosine, slant = sine(view.angle + 18), sine(view.angle)
    rows = view.row + (down * cosine - right * slant) // UNIT
    columns = view.column + (down * slant + right * cosine) // UNIT
    return _between(picture.astype(np.int64), rows, columns)


def shade(values: Integers) -> Picture:
    """Cut values to shades of gray, 0 to 255."""
    return np.clip(values, 0, 255).astype(np.uint8)


def _between(picture: Integers, rows: Integers, columns: Integers) -> Integers:
    height, width = picture.shape
    top, left = rows // UNIT, columns // UNIT
    down, right = rows % UNIT, columns % UNIT
    y, below = np.clip(top, 0, height - 1), np.clip(top + 1, 0, height - 1)
    x, beside = np.clip(left, 0, width - 1), np.clip(left + 1, 0, width - 1)
    upper: Integers = picture[y, x] * (UNIT - right) + picture[y, beside] * right
    lower: Integers = picture[below, x] * (UNIT - right) + picture[below, beside] * right
    twice: Integers = upper * (UNIT - down) + lower * down
    rounded: Integers = (twice + UNIT * UNIT // 2) // (UNIT * UNIT)
    return rounded


# Files


def write_table(file: Path, header: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Write a CSV file; values are texts, integers, or decimals written out beforehand."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    _write(file, text.getvalue().encode())


def write_picture(file: Path, picture: Picture) -> None:
    """Write a gray PNG file."""
    _write(file, encode_png(picture))


def decimal(value: int, places: int = 2) -> str:
    """Write an integer number of hundredths (or other decimal places) as a decimal."""
    sign, size = "-" if value < 0 else "", 10**places
    return f"{sign}{abs(value) // size}.{abs(value) % size:0{places}d}"


def _write(file: Path, content: bytes) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(content)
    os.utime(file, (WRITTEN, WRITTEN))


def encode_png(picture: Picture) -> bytes:
    """Write an 8-bit gray picture as PNG, uncompressed.

    Builds of zlib compress differently; stored blocks leave them nothing to decide, and make
    every file of one size equally long.

    Args:
        picture: Height by width.
    """
    height, width = picture.shape
    lines = b"".join(b"\0" + row.tobytes() for row in picture)  # filter 0: none
    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    return b"".join(
        [
            b"\x89PNG\r\n\x1a\n",
            _chunk(b"IHDR", header),
            _chunk(b"IDAT", _stored(lines)),
            _chunk(b"IEND", b""),
        ]
    )


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _stored(data: bytes) -> bytes:
    """Wrap bytes as a zlib stream of stored blocks."""
    blocks = [data[start : start + _STORED] for start in range(0, len(data), _STORED)]
    framed = b"".join(
        struct.pack("<BHH", number == len(blocks) - 1, len(block), len(block) ^ 0xFFFF) + block
        for number, block in enumerate(blocks)
    )
    return b"\x78\x01" + framed + struct.pack(">I", zlib.adler32(data))
