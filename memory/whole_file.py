"""Files that appear whole or not at all."""

import os
import secrets
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

from langgraft._core.errors import InputError


def write_whole(path: Path, chunks: Iterable[bytes]) -> None:
    """Write a file; one that is there is replaced at the end, or left as it was.

    Raises:
        InputError: The path cannot be written.
    """
    temporary = path.parent / f".{secrets.token_hex(8)}.tmp"
    try:
        with temporary.open("xb") as file:
            file.writelines(chunks)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(path)
    except OSError as error:
        msg = f"{path}: cannot be written: {error.strerror}"
        raise InputError(msg) from error
    finally:
        with suppress(OSError):  # it is in place, or never came to be
            temporary.unlink()
