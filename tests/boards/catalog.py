"""The contests by id, and splits of their sources, prepared in folders.

A contest is imported when it is asked for: scikit-learn comes with an extra.
"""

import importlib
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final, cast

from boards.contests import Contest, Data
from langgraft._core.errors import InputError
from langgraft._core.lazy import require
from langgraft.environments.competitions.shipped.denoising import prepare as denoising
from langgraft.environments.competitions.shipped.digits import prepare as digits
from langgraft.environments.competitions.shipped.making import SHIPPED
from langgraft.environments.competitions.shipped.phrases import prepare as phrases
from langgraft.environments.competitions.shipped.textures import prepare as textures
from langgraft.environments.competitions.shipped.visits import prepare as visits
from langgraft.environments.competitions.shipped.weather import prepare as weather

_PREPARE: Final[dict[str, Callable[[Path, Path, str], None]]] = {
    "visits": visits.prepare_split,
    "weather": weather.prepare_split,
    "digits": digits.prepare_split,
    "textures": textures.prepare_split,
    "denoising": denoising.prepare_split,
    "phrases": phrases.prepare_split,
}
IDS: Final = tuple(_PREPARE)


def find(competition: str) -> Contest:
    """Return what a board needs to know of a competition that ships.

    Raises:
        InputError: If none that ships has this id.
        MissingExtraError: If what boards are made with is not installed.
    """
    if competition not in IDS:
        raise InputError(f"no competition `{competition}` ships; there are {', '.join(IDS)}")
    require("sklearn", extra="mle", purpose="Making a board")
    module = importlib.import_module(f"boards.{competition}")
    return cast("Contest", module.CONTEST)


@contextmanager
def prepared(competition: str, split: str = SHIPPED) -> Iterator[Path]:
    """Prepare a split in a folder that goes when this ends, with `public` and `private` in it."""
    with tempfile.TemporaryDirectory(prefix="langgraft-board-") as name:
        folder = Path(name)
        _PREPARE[competition](folder / "public", folder / "private", split)
        yield folder


def load(competition: str, split: str = SHIPPED) -> Data:
    """Prepare a split and read it."""
    with prepared(competition, split) as folder:
        return find(competition).load(folder)
