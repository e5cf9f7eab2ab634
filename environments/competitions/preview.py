"""What a prompt says of a competition's data: files, columns, shapes, within a bound."""

from pathlib import Path
from typing import Final

MOST: Final = 6_000
"""Characters of a preview, AIDE's bound."""


def data_preview(folder: Path, *, most: int = MOST) -> str:
    """Describe the public data of a competition for a prompt."""
    raise NotImplementedError
