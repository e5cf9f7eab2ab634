"""What environments cost: a sandbox of Docker containers over its engine, and TextWorld over the fast engine of ALFWorld.

Wall time, both sides in turns in one run: the cost of Docker's engine swings by a half with the
machine's load, and the ratio much less.

Both engines of ALFWorld play the same commands of the same games; the floor is the installed TextWorld.
Before each round the fast engine forgets all games, so that its first sight of them counts.
"""

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from statistics import median, quantiles
from typing import Any, Final, TypeVar

from docker import APIClient

from langgraft.environments.alfworld.engine import Engine, Frame
from langgraft.environments.alfworld.environment import open_engine
from langgraft.environments.alfworld.fast import forget
from langgraft.environments.alfworld.games import FAMILIES, Game
from langgraft.environments.alfworld.generated import make_game
from langgraft.environments.sandboxes.docker.controls import Wish, container_config
from langgraft.environments.sandboxes.docker.engine import IMAGE, connect
from langgraft.environments.sandboxes.docker.sandbox import DockerSandbox
from langgraft.environments.sandboxes.sandbox import Job, Kernel, Limits, PythonProgram

ML_STACK: Final = ("numpy", "pandas", "sklearn", "lightgbm", "xgboost")

_IMPORTS: Final = f"import {', '.join(ML_STACK)}"
_HELLO: Final = "print(1)"
_CLOCK: Final = "import time; print(time.clock_gettime(time.CLOCK_MONOTONIC))"
_PATIENCE: Final = 120.0


@dataclass(frozen=True, slots=True)
class Times:
    """Wall times of one thing, in seconds, in the order they were taken."""

    values: tuple[float, ...]

    @property
    def median(self) -> float:
        """Return their median."""
        return median(self.values)

    def __str__(self) -> str:
        """Write median, quartiles and number, in milliseconds."""
        low, _, high = quantiles(self.values, n=4) if len(self.values) > 1 else [self.median] * 3
        n = len(self.values)
        return f"{self.median * 1e3:.1f} ms ({low * 1e3:.1f} to {high * 1e3:.1f}, n = {n})"


@dataclass(frozen=True, slots=True)
class Paired:
    """Wall times of two ways to do one thing, taken in turns."""

    ours: Times
    floor: Times

    @property
    def ratio(self) -> float:
        """Return ours over the floor's: the ratio of the medians."""
        return self.ours.median / self.floor.median


def fresh_over_floor(
    image: str = IMAGE, *, rounds: int = 30, limits: Limits | None = None
) -> Paired:
    """Compare a program in a fresh container over the bare engine doing the same.

    The floor creates a container with the very controls of ours, starts it with `print(1)` as
    its only process, waits for its end and removes it. Ours gives the program to a sandbox
    without a pool, and ends when the container is removed, which a caller need not wait for.

    Args:
        image: With a Python.
        rounds: How often each is done.
        limits: Of both.
    """
    with _beside_the_floor(image, limits or Limits(), pool=0) as (sandbox, floor):

        def ours() -> float:
            started = time.monotonic()
            _run(sandbox, _HELLO)
            _settle(sandbox)
            return time.monotonic() - started

        return _in_turns(ours, floor, rounds)


def first_instruction_over_floor(
    image: str = IMAGE, *, rounds: int = 30, limits: Limits | None = None
) -> Paired:
    """Compare the time to a program's first instruction, from the pool, over the same floor.

    The program tells the time of the monotonic clock, which containers share with their host.

    Args:
        image: With a Python.
        rounds: How often each is done.
        limits: Of both.
    """
    with _beside_the_floor(image, limits or Limits(), pool=1) as (sandbox, floor):

        def ours() -> float:
            # The pool fills again while programs run; here nothing else shall run meanwhile.
            _settle(sandbox)
            started = time.monotonic()
            first = float(_run(sandbox, _CLOCK))
            _settle(sandbox)
            return first - started

        _run(sandbox, _HELLO)
        return _in_turns(ours, floor, rounds)


@contextmanager
def _beside_the_floor(
    image: str, limits: Limits, *, pool: int
) -> Iterator[tuple[DockerSandbox, Callable[[], float]]]:
    """Open a sandbox, and what times the bare engine under the same limits."""
    with (
        closing(connect()) as client,
        DockerSandbox(image, limits=limits, pool=pool) as sandbox,
    ):
        yield sandbox, _floor(client.api, image, limits)


def kernel_cells(image: str = IMAGE, *, rounds: int = 100) -> Times:
    """Measure a small cell of a kernel, there and back.

    Args:
        image: With a Python.
        rounds: How many cells.
    """
    with DockerSandbox(image, pool=0) as sandbox:
        kernel = sandbox.kernel()
        try:
            _cell(kernel, _HELLO)
            return Times(tuple(_cell(kernel, _HELLO) for _ in range(rounds)))
        finally:
            kernel.close()


def imports_in_kernel_over_exec(
    image: str = IMAGE, *, rounds: int = 10, limits: Limits | None = None
) -> Paired:
    """Compare importing the ML stack in a kernel that has it over `exec` in a warm container.

    Each import in a kernel is the first cell of a new kernel, whose preloading was done while
    nobody waited. The warm container has the same controls and has imported the stack before.

    Args:
        image: With the ML stack.
        rounds: How often each is done.
        limits: Of both.
    """
    limits = limits or Limits()
    with (
        closing(connect()) as client,
        DockerSandbox(image, limits=limits, pool=0) as sandbox,
        _warm(client.api, image, limits) as container,
    ):

        def ours() -> float:
            kernel = sandbox.kernel(preload=ML_STACK)
            try:
                _cell(kernel, _HELLO)
                return _cell(kernel, f"{_IMPORTS}\nprint(1)")
            finally:
                kernel.close()
                _settle(sandbox)

        def floor() -> float:
            started = time.monotonic()
            made = client.api.exec_create(container, ["python3", "-c", f"{_IMPORTS}; print(1)"])
            printed = client.api.exec_start(made["Id"])
            elapsed = time.monotonic() - started
            _expect(printed.decode())
            return elapsed

        return _in_turns(ours, floor, rounds)


def _in_turns(ours: Callable[[], float], floor: Callable[[], float], rounds: int) -> Paired:
    """Measure both by turns, after one round that does not count."""
    pairs = [(ours(), floor()) for _ in range(1 + rounds)][1:]
    return Paired(Times(tuple(a for a, _ in pairs)), Times(tuple(b for _, b in pairs)))


def _floor(api: APIClient, image: str, limits: Limits) -> Callable[[], float]:
    config = _config(api, image, limits, ["python3", "-c", _HELLO])

    def measure() -> float:
        started = time.monotonic()
        container = _created(api, config)
        api.start(container)
        code = api.wait(container)["StatusCode"]
        api.remove_container(container)
        elapsed = time.monotonic() - started
        assert code == 0
        return elapsed

    return measure


@contextmanager
def _warm(api: APIClient, image: str, limits: Limits) -> Iterator[str]:
    """Start a container that does nothing, with the controls of ours; give its id."""
    asleep = ["python3", "-c", "import time; time.sleep(1e6)"]
    container = _created(api, _config(api, image, limits, asleep))
    try:
        api.start(container)
        yield container
    finally:
        api.remove_container(container, force=True)


def _config(api: APIClient, image: str, limits: Limits, command: list[str]) -> dict[str, Any]:
    wish = Wish(image, image, limits, cpus=int(api.info()["NCPU"]))
    return container_config(api, wish, command=command, labels={})


def _created(api: APIClient, config: dict[str, Any]) -> str:
    return str(api.create_container_from_config(config)["Id"])  # type: ignore[no-untyped-call]


def _run(sandbox: DockerSandbox, code: str) -> str:
    result = sandbox.run(Job(PythonProgram(code)))
    if not result.ok:
        msg = f"a program of the benchmark failed: {result}"
        raise RuntimeError(msg)
    return result.stdout


def _cell(kernel: Kernel, code: str) -> float:
    started = time.monotonic()
    result = kernel.execute(code)
    elapsed = time.monotonic() - started
    _expect(result.stdout)
    return elapsed


def _expect(printed: str) -> None:
    if printed != "1\n":
        msg = f"a program of the benchmark printed {printed!r}"
        raise RuntimeError(msg)


def _settle(sandbox: DockerSandbox) -> None:
    """Wait until what is used up is removed and the pool is full."""
    engine = sandbox._reached()  # noqa: SLF001  (nobody else need wait for it)
    engine.removals.settle(_PATIENCE)
    engine.pool.wait_until_full(_PATIENCE)


CALLS: Final = ("load", "reset", "step", "load again")
TURNS: Final = 12

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class EngineTimes:
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


def engine_times(games: Sequence[Game], *, rounds: int = 3) -> dict[str, EngineTimes]:
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


def _times(pairs: Sequence[tuple[float, float]], calls: int) -> EngineTimes:
    # The fast engine's second load takes less than the clock of CPU time may tell.
    return EngineTimes(
        ratio=median(plain / max(ours, 1e-6) for ours, plain in pairs),
        ours=median(ours for ours, _ in pairs) / calls * 1e3,
        plain=median(plain for _, plain in pairs) / calls * 1e3,
    )
