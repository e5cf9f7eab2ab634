"""Chance that is the same on every machine, under every version of every library.

Bytes come from SHAKE-256 of a key in words; all that is made of them is integer arithmetic, so
neither a library's random streams nor the last bit of a float can show in a competition's files.
"""

import hashlib

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]

ONE = 1 << 16
"""What `normals` calls one standard deviation."""


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
