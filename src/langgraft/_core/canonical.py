"""One way to write a value as bytes, so that equal values have equal digests."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import TypeAlias

JSON: TypeAlias = "bool | int | float | str | Sequence[JSON] | Mapping[str, JSON] | None"
"""Any value that JSON can hold."""


def canonical_json(value: JSON) -> str:
    """Write `value` as canonical JSON: sorted keys, no spaces, UTF-8 text, no NaN.

    Args:
        value: A JSON value. Strings must be encodable as UTF-8.

    Returns:
        One line without a line break at the end.

    Raises:
        ValueError: `value` holds NaN, an infinity or a lone surrogate.
        TypeError: `value` holds something JSON cannot hold.
    """
    text = json.dumps(
        value, sort_keys=True, ensure_ascii=False, allow_nan=False, separators=(",", ":")
    )
    text.encode("utf-8")
    return text


def digest(value: JSON) -> str:
    """Return the SHA-256 hex digest of `value` in canonical JSON."""
    return hashlib.sha256(canonical_json(value).encode("utf-8")).hexdigest()


def text_digest(text: str) -> str:
    """Return the SHA-256 hex digest of a text in UTF-8."""
    return hashlib.sha256(text.encode("utf-8")).hexdigest()


def seeded_fraction(*parts: JSON) -> float:
    """Return a number in [0, 1) that depends on `parts` alone.

    The same parts give the same number in every process and on every machine, which makes
    it the right source for "random" choices that a log has to reproduce.
    """
    return math.ldexp(int(digest(list(parts))[:13], 16), -52)
