"""Gray PNG files whose bytes depend on nothing but the pixels."""

import struct
import zlib

from langgraft.environments.competitions.shipped.making.sources import Picture

_STORED = 65_535
"""Bytes in a stored block of deflate at most (RFC 1951 3.2.4)."""


def encode(picture: Picture) -> bytes:
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
