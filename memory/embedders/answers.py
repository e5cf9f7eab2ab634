"""Reading what an embedder answered, whatever that is."""

import numpy as np

from langgraft.memory.embedders.base import Vectors


def read_answer(answer: object, count: int) -> Vectors:
    """Return an embedder's answer to `count` texts, one row each.

    Raises:
        ValueError: It is not one vector per text, all of one length and of numbers that are
            finite in float32; the message says what it is instead.
    """
    try:
        with np.errstate(over="ignore"):  # it becomes infinite and is refused below
            rows = np.array(answer, dtype=np.float64).astype(np.float32)
    except (TypeError, ValueError, OverflowError) as error:
        msg = "vectors of different lengths, or no numbers"
        raise ValueError(msg) from error
    if rows.ndim != 2 or len(rows) != count or not rows.size:  # noqa: PLR2004
        msg = f"an array of shape {rows.shape} for {count} texts"
        raise ValueError(msg)
    if not np.isfinite(rows).all():
        msg = "numbers that are not finite in float32"
        raise ValueError(msg)
    return rows
