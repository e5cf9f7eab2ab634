"""A client of a sandbox that may be killed: it is given programs on standard input, one a line.

Of each it says on standard output how it ended, or that the sandbox failed under it.
"""

import json
import sys
import time
from typing import Final

from langgraft._core.errors import SandboxFailureError, SandboxUnavailableError
from langgraft.benchmarks.acceptance.chaos_programs import LIMITS, Errand, ending
from langgraft.environments.sandboxes.docker import DockerSandbox

_PAUSE: Final = 0.5
"""Seconds before it takes the next program after the sandbox failed: an engine may be away."""


def main(image: str, pool: str) -> None:
    """Run what comes until there is no more."""
    with DockerSandbox(image, limits=LIMITS, pool=int(pool)) as sandbox:
        for line in sys.stdin:
            errand = Errand(**json.loads(line))
            answer: dict[str, object] = {"number": errand.number}
            try:
                answer["ending"] = ending(sandbox.run(errand.job()))
            except (SandboxFailureError, SandboxUnavailableError) as error:
                answer |= {"failure": type(error).__name__, "message": str(error)}
                time.sleep(_PAUSE)
            sys.stdout.write(json.dumps(answer) + "\n")
            sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
