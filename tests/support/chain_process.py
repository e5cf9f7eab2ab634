"""Run a plan of `ChainStudy` as a process of its own, to be signaled, limited or doubled.

Arguments: run directory, seconds an item takes, `polite` or `deaf` items (a deaf item keeps
the loop busy and cannot be dropped), largest file in bytes (0 for no limit).
"""

import asyncio
import resource
import sys
import time
from pathlib import Path

from chain_study import ChainStudy, chain_plan, run_chain

from langgraft._core.errors import LanggraftError
from langgraft.benchmarks.harness.progress import JsonProgress
from langgraft.benchmarks.harness.schedule import stop_on_signals


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
    study = ChainStudy(sleep_deaf) if manner == "deaf" else ChainStudy()
    stop = asyncio.Event()
    with stop_on_signals(stop):
        outcome = await run_chain(
            out, chain_plan(pause=pause), study, stop=stop, progress=JsonProgress(sys.stdout)
        )
    return outcome.exit_code


if __name__ == "__main__":
    try:
        sys.exit(asyncio.run(main()))
    except LanggraftError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
