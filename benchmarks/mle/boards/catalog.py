"""The contests by id. Each is imported when it is asked for: scikit-learn comes with an extra."""

import importlib
from typing import Final, cast

from langgraft._core.errors import InputError
from langgraft._core.extras import require
from langgraft.benchmarks.mle.boards.contests import Contest

IDS: Final = ("visits", "weather", "digits", "textures", "denoising", "phrases")


def find(competition: str) -> Contest:
    """Return what a board needs to know of a competition that ships.

    Raises:
        InputError: If none that ships has this id.
        MissingExtraError: If what boards are made with is not installed.
    """
    if competition not in IDS:
        raise InputError(f"no competition `{competition}` ships; there are {', '.join(IDS)}")
    require("sklearn", extra="mle", purpose="Making a board")
    module = importlib.import_module(f"langgraft.benchmarks.mle.boards.{competition}")
    return cast("Contest", module.CONTEST)
