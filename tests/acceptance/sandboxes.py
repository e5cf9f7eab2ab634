"""Sandboxes: the hostile battery on the engine of this machine, and their speed.

Speed is over the engine they stand on, both sides in turns in one run.
"""

from collections.abc import Callable
from contextlib import closing

from acceptance.figure import Figure, Setting, share
from langgraft._core.errors import SandboxUnavailableError
from langgraft.benchmarks.performance.environments import (
    Paired,
    Times,
    first_instruction_over_floor,
    fresh_over_floor,
    imports_in_kernel_over_exec,
    kernel_cells,
)
from langgraft.environments.sandboxes.docker.engine import connect
from langgraft.environments.sandboxes.hostile.battery import Outcome, battery_on

TESTS = "tests/environments/sandboxes/hostile/test_attacks.py"


def measure_battery(setting: Setting) -> list[Figure]:
    """Attack sandboxes, each round a new one, and count what was contained."""
    promise = "Every attack is contained, told as what it is, and harms neither host nor sandbox"
    if setting.reduced:
        # One round, an attack a test, is among the tests.
        return [Figure(promise, TESTS, "run with the tests", "", None)]
    rounds = 5
    outcomes: list[Outcome] = []
    with closing(connect()) as client:
        for number in range(rounds):
            with battery_on(client) as battery:
                setting.say(f"round {number + 1} of {rounds}: {len(battery.attacks)} attacks")
                outcomes += battery.run()
    wrong = [f"{each.attack.name}: {each.problems[0]}" for each in outcomes if each.problems]
    seconds = sum(outcome.seconds for outcome in outcomes) / rounds
    return [
        Figure(
            promise,
            f"the {len(outcomes) // rounds} attacks of `langgraft sandbox check`, {rounds} times,"
            " each with a look at the host and a plain program after it",
            share(len(outcomes) - len(wrong), len(outcomes), wrong),
            "all",
            not wrong and bool(outcomes),
        ),
        Figure(
            "`langgraft sandbox check` is done in a minute",
            "all attacks with what follows each, mean of the rounds",
            f"{seconds:.0f} s",
            "",
            None,
        ),
    ]


FRESH = 1.25
"""A fresh hardened container over the engine's own floor, at most."""
POOL = 1 / 3
"""From the pool, time to the first instruction over the same floor, at most."""
CELL = 0.010
"""Seconds of a kernel's cell, at most."""
IMPORT = 5.0
"""How many times faster importing the ML stack is in a kernel, at least."""


def measure_speed(setting: Setting) -> list[Figure]:
    """Measure fresh containers, the pool, the kernel's cells and its imports."""
    rounds = setting.size(40, 6)
    measured: list[Callable[[], Figure]] = [
        lambda: _fresh(rounds),
        lambda: _pooled(rounds),
        lambda: _cells(setting.size(300, 50), judge=not setting.reduced),
        lambda: _imports(setting.size(10, 2)),
    ]
    try:
        return [one() for one in measured]
    except SandboxUnavailableError as error:
        return [Figure("Sandboxes cost little over their engine", "", str(error), "", passed=None)]


def _fresh(rounds: int) -> Figure:
    found = fresh_over_floor(rounds=rounds)
    return Figure(
        "A program in a fresh hardened container costs little over the engine's own floor",
        "`print(1)` through a sandbox without a pool until its container is removed, over create,"
        " start, wait and remove of the same controls through the API",
        _shown(found, "x"),
        f"≤ {FRESH:g}x",
        found.ratio <= FRESH,
    )


def _pooled(rounds: int) -> Figure:
    found = first_instruction_over_floor(rounds=rounds)
    return Figure(
        "From the pool a program begins in a third of that floor",
        "from the call to the clock that the program reads first, over the same floor",
        _shown(found, "x"),
        "≤ 1/3",
        found.ratio <= POOL,
    )


def _cells(rounds: int, *, judge: bool) -> Figure:
    found: Times = kernel_cells(rounds=rounds)
    return Figure(
        "A cell of a kernel takes 10 ms at most",
        "`print(1)` there and back, median",
        str(found),
        f"≤ {CELL * 1e3:g} ms",
        found.median <= CELL if judge else None,
    )


def _imports(rounds: int) -> Figure:
    found = imports_in_kernel_over_exec(rounds=rounds)
    faster = 1 / found.ratio
    return Figure(
        "The ML stack is there at once in a preloaded kernel",
        "importing numpy, pandas, scikit-learn, LightGBM and XGBoost in a kernel, over `exec` of"
        " a Python in a warm container",
        f"{faster:.0f} times faster: {found.ours} over {found.floor}",
        f"≥ {IMPORT:g} times",
        faster >= IMPORT,
    )


def _shown(found: Paired, unit: str) -> str:
    return f"{found.ratio:.2f}{unit}: {found.ours} over {found.floor}"
