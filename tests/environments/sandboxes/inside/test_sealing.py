"""What a sealed process and its children can no longer do to others of the same user."""

import platform
import subprocess
import sys

import pytest

from langgraft.environments.sandboxes.inside import sealing

KNOWN = pytest.mark.skipif(
    platform.machine() not in sealing.MACHINES, reason="the system calls of this machine"
)

CHILD = """
import os, resource, sys
exec(compile(open(sys.argv[1]).read(), "sealing.py", "exec"))
assert seal_supervisor()
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.setpriority(os.PRIO_PROCESS, 0, 1)
os.sched_setaffinity(0, os.sched_getaffinity(0))
tried = {
    "limits": lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CORE),
    "affinity": lambda: os.sched_setaffinity(1, {0}),
    "scheduler": lambda: os.sched_setscheduler(1, os.SCHED_OTHER, os.sched_param(0)),
    "priority": lambda: os.setpriority(os.PRIO_PROCESS, 1, 0),
    "priorities": lambda: os.setpriority(os.PRIO_USER, os.getuid(), 1),
}
for name, attempt in tried.items():
    try:
        attempt()
    except PermissionError:
        continue
    print(name)
"""


@KNOWN
def test_a_sealed_process_when_it_reaches_for_the_first_process_is_refused() -> None:
    """Neither limits nor scheduling of others can be set, one's own still can."""
    command = [sys.executable, "-I", "-c", CHILD, sealing.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_machine_whose_calls_are_not_known_when_sealed_has_no_filter() -> None:
    """Numbers of system calls are never guessed."""
    assert sealing.filter_program("pdp11") is None
