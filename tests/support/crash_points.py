"""Kill a plan at system calls that write, run it again, and compare with a whole run.

Run by `test_harness_crashes.py` in a process of its own, because it forks. Prints one JSON
object: how many places were tried, and what went wrong.
"""

import asyncio
import json
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chain_study import ChainPlan, chain_plan, log_bytes, run_chain

from langgraft.benchmarks.harness.verify import verify_directory

PLAN = chain_plan(streams=1, items=3, probes=(2,))
CALLS = ("write", "fsync", "replace", "mkdir", "ftruncate")
KILLED = 77


class Fault:
    """Ends the process at the n-th writing system call.

    Modes: `before` the call; `torn`, after half of a write, so that other calls do not count;
    `lost`, before the call and with everything undone that was written to a file since its last
    sync, as a power loss would.
    """

    def __init__(self, mode: str, position: int) -> None:
        self.mode = mode
        self.left = position
        self.unsynced: dict[str, int] = {}
        self.lock = threading.Lock()

    def install(self) -> None:
        """Put the fault between the program and the system."""
        for name in CALLS:
            setattr(os, name, self.wrap(name, getattr(os, name)))

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Return a call that may be the last one."""

        def wrapped(*args: Any, **kwargs: Any) -> Any:
            with self.lock:  # one call at a time: nothing goes on while the process dies
                self.left -= name == "write" or self.mode != "torn"
                if self.left == 0:
                    self.die(name, call, args)
                return self.follow(name, call, args, kwargs)

        return wrapped

    def follow(
        self, name: str, call: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Make a call and keep account of what a power loss would undo."""
        is_file = isinstance(args[0], int)
        path = str(Path(f"/proc/self/fd/{args[0]}").readlink()) if is_file else ""
        if name == "write":
            self.unsynced.setdefault(path, os.fstat(args[0]).st_size)
        result = call(*args, **kwargs)
        if name == "fsync":
            self.unsynced.pop(path, None)
        return result

    def die(self, name: str, call: Callable[..., Any], args: tuple[Any, ...]) -> None:
        """End the process as the mode says."""
        if self.mode == "torn":
            call(args[0], bytes(args[1])[: len(args[1]) // 2])
        if self.mode == "lost":
            for path, size in list(self.unsynced.items()):
                os.truncate(path, size)
        os._exit(KILLED)


def in_fork(action: Callable[[], object]) -> int:
    """Run `action` in a forked process and return its process id."""
    child = os.fork()
    if child:
        return child
    try:
        action()
    except BaseException as error:  # noqa: BLE001 - the child must end here whatever happens
        sys.stderr.write(f"{type(error).__name__}: {error}\n")
        os._exit(1)
    os._exit(0)


def run(out: Path, plan: ChainPlan, fault: Fault | None = None) -> None:
    """Run a plan, with a fault to come."""
    if fault is not None:
        fault.install()
    asyncio.run(run_chain(out, plan, concurrency=4))


def status_of(child: int) -> int:
    """Wait for a process; negative for the signal that ended it."""
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def problems_of(out: Path, reference: dict[str, bytes]) -> list[str]:
    """Say what is not as in a run that nothing disturbed."""
    if log_bytes(out) != reference:
        return [f"{out.name}: other bytes"]
    return [str(finding) for finding in verify_directory(out)]


def every_point(
    base: Path, reference: dict[str, bytes], mode: str, stride: int
) -> tuple[int, list[str]]:
    """Kill at every `stride`-th call; every third of those kill the resumed run as well."""
    problems: list[str] = []
    position = 1
    while True:
        out = base / f"{mode}-{position}"
        fault = Fault(mode, position)
        status = status_of(in_fork(lambda: run(out, PLAN, fault)))  # noqa: B023 - waited for
        if status == 0:
            return (position - 1) // stride, problems
        again = Fault(mode, position // 3 + 1)
        if position // stride % 3 == 0:
            status_of(in_fork(lambda: run(out, PLAN, again)))  # noqa: B023 - waited for
        if status != KILLED or status_of(in_fork(lambda: run(out, PLAN))) != 0:  # noqa: B023
            problems.append(f"{out.name}: ended with {status} or could not be resumed")
        else:
            problems += problems_of(out, reference)
        position += stride


def random_moments(base: Path, seed: int, kills: int) -> tuple[int, list[str]]:
    """Kill one plan with SIGKILL at random moments until it has been killed often enough."""
    plan = chain_plan(streams=2, items=6, pause=0.02)
    run(base / "whole", plan)
    chance = random.Random(seed)
    killed = 0
    while killed < kills:
        child = in_fork(lambda: run(base / "killed", plan))
        time.sleep(chance.uniform(0.005, 0.08))
        os.kill(child, signal.SIGKILL)
        killed += status_of(child) == -signal.SIGKILL
    status = status_of(in_fork(lambda: run(base / "killed", plan)))
    if status != 0:
        return killed, [f"ended with {status}"]
    return killed, problems_of(base / "killed", log_bytes(base / "whole"))


def main() -> None:
    """Read the arguments: a new directory, a mode, and its seed (`random`) or stride (others)."""
    base, mode = Path(sys.argv[1]), sys.argv[2]
    base.mkdir(parents=True)
    if mode == "random":
        tried, problems = random_moments(base, seed=int(sys.argv[3]), kills=12)
    else:
        run(base / "whole", PLAN)
        tried, problems = every_point(base, log_bytes(base / "whole"), mode, int(sys.argv[3]))
    sys.stdout.write(json.dumps({"tried": tried, "problems": problems}))


if __name__ == "__main__":
    main()
