"""Splits of a competition's source, prepared in folders."""

import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from langgraft.benchmarks.mle.boards.catalog import find
from langgraft.benchmarks.mle.boards.contests import Data
from langgraft.environments.competitions.shipped.denoising import prepare as denoising
from langgraft.environments.competitions.shipped.digits import prepare as digits
from langgraft.environments.competitions.shipped.making.shipping import SHIPPED
from langgraft.environments.competitions.shipped.phrases import prepare as phrases
from langgraft.environments.competitions.shipped.textures import prepare as textures
from langgraft.environments.competitions.shipped.visits import prepare as visits
from langgraft.environments.competitions.shipped.weather import prepare as weather

PREPARE: dict[str, Callable[[Path, Path, str], None]] = {
    "visits": visits.prepare_split,
    "weather": weather.prepare_split,
    "digits": digits.prepare_split,
    "textures": textures.prepare_split,
    "denoising": denoising.prepare_split,
    "phrases": phrases.prepare_split,
}


@contextmanager
def prepared(competition: str, split: str = SHIPPED) -> Iterator[Path]:
    """Prepare a split in a folder that goes when this ends, with `public` and `private` in it."""
    with tempfile.TemporaryDirectory(prefix="langgraft-board-") as name:
        folder = Path(name)
        PREPARE[competition](folder / "public", folder / "private", split)
        yield folder


def load(competition: str, split: str = SHIPPED) -> Data:
    """Prepare a split and read it."""
    with prepared(competition, split) as folder:
        return find(competition).load(folder)
