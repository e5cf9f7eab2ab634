"""What the fast engine of ALFWorld saves: each call over the same call of TextWorld as it is.

Both play the same commands of the same games, in turns; the floor is the installed TextWorld.
Before each round the fast engine forgets all games, so that its first sight of them counts.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Final, TypeVar

from langgraft.environments.alfworld.engine import Engine, Frame
from langgraft.environments.alfworld.environment import open_engine
from langgraft.environments.alfworld.fast import forget
from langgraft.environments.alfworld.games import FAMILIES, Game
from langgraft.environments.alfworld.generated import make_game

CALLS: Final = ("load", "reset", "step", "load again")
TURNS: Final = 12

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Times:
    """What one kind of call costs."""

    ratio: float
    """TextWorld's over ours: median over the rounds of each one's own ratio."""
    ours: float
    """CPU milliseconds a call, median over the rounds."""
    plain: float
    """CPU milliseconds a call of TextWorld as it is."""


def generated_games() -> tuple[Game, ...]:
    """Return a generated game of each family."""
    return tuple(make_game(family, 0) for family in FAMILIES)


def engine_times(games: Sequence[Game], *, rounds: int = 3) -> dict[str, Times]:
    """Measure loads, resets, steps, and loads of a game that was played before."""
    for fast in (True, False):  # imports, and what is parsed once in a process
        open_engine(games[0], fast=fast).close()
    found: dict[str, list[tuple[float, float]]] = {call: [] for call in CALLS}
    for _ in range(rounds):
        forget()
        spent = {fast: dict.fromkeys(CALLS, 0.0) for fast in (True, False)}
        for game in games:
            for fast, seconds in spent.items():
                _play(game, seconds, fast=fast)
        for call in CALLS:
            found[call].append((spent[True][call], spent[False][call]))
    return {call: _times(pairs, _how_many(call, len(games))) for call, pairs in found.items()}


def _play(game: Game, seconds: dict[str, float], *, fast: bool) -> None:
    """Play a game, and add up what each kind of call took."""

    def timed(call: str, work: Callable[[], T]) -> T:
        started = time.process_time()
        result = work()
        seconds[call] += time.process_time() - started
        return result

    engine: Engine = timed("load", lambda: open_engine(game, fast=fast))
    frame: Frame = timed("reset", engine.reset)
    for turn in range(TURNS):
        command = frame.commands[(7 * turn) % len(frame.commands)]
        frame = timed("step", partial(engine.step, command))
    engine.close()
    timed("load again", lambda: open_engine(game, fast=fast)).close()


def _how_many(call: str, games: int) -> int:
    return games * TURNS if call == "step" else games


def _times(pairs: Sequence[tuple[float, float]], calls: int) -> Times:
    # The fast engine's second load takes less than the clock of CPU time may tell.
    return Times(
        ratio=median(plain / max(ours, 1e-6) for ours, plain in pairs),
        ours=median(ours for ours, _ in pairs) / calls * 1e3,
        plain=median(plain for _, plain in pairs) / calls * 1e3,
    )
