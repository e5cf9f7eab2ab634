"""Run a plan of `ChainStudy` as a process of its own, to be signaled, limited or doubled.

Arguments: run directory, seconds an item takes here (in no plan: who goes on need not wait as long; two
of each probe take none), `polite` or `deaf` items (a deaf item keeps the loop busy and cannot be dropped),
largest file in bytes (0 for no limit).
"""

import asyncio
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from chain_study import ChainPlan, ChainStudy, go_on, run_chain
from typing_extensions import override

from langgraft._core.errors import LanggraftError
from langgraft.benchmarks.harness.progress import JsonProgress
from langgraft.benchmarks.harness.schedule import stop_on_signals
from langgraft.benchmarks.harness.study import RunSession


class Slow(ChainStudy):
    """Takes its time, whatever the plan says."""

    def __init__(self, seconds: float, before_item: Callable[[str, str], None]) -> None:
        super().__init__(before_item)
        self._seconds = seconds

    @override
    def open(self, plan: ChainPlan, *rest: Any, **named: Any) -> RunSession:
        slow = plan.model_copy(update={"pause": self._seconds})
        return super().open(slow, *rest, **named)


def sleep_deaf(_run: str, _item: str) -> None:
    """Say so, and keep the loop busy for a minute."""
    sys.stdout.write('{"event": "deaf"}\n')
    sys.stdout.flush()
    time.sleep(60)


async def main() -> int:
    """Run the plan until it ends or a signal stops it."""
    out, pause, manner, largest = Path(sys.argv[1]), float(sys.argv[2]), sys.argv[3], sys.argv[4]
    if int(largest):
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(largest), int(largest)))
    study = Slow(pause, sleep_deaf if manner == "deaf" else go_on)
    stop = asyncio.Event()
    with stop_on_signals(stop):
        outcome = await run_chain(out, study=study, stop=stop, progress=JsonProgress(sys.stdout))
    return outcome.exit_code


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except LanggraftError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
