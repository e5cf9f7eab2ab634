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
import ctypes, os, resource, socket, sys
exec(compile(open(sys.argv[1]).read(), "sealing.py", "exec"))
assert seal_supervisor()
resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
os.setpriority(os.PRIO_PROCESS, 0, 1)
os.sched_setaffinity(0, os.sched_getaffinity(0))
for family in (socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK):
    try:
        socket.socket(family, socket.SOCK_DGRAM).close()
    except PermissionError:
        print("a socket of family", family)
    except OSError:
        pass  # this system has none

def call(*words):
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(*words) < 0:
        raise OSError(ctypes.get_errno(), "refused")

_, _, _, (_, ioprio), _ = MACHINES[os.uname().machine]
tried = {
    "limits": lambda: resource.prlimit(os.getppid(), resource.RLIMIT_CORE),
    "affinity": lambda: os.sched_setaffinity(1, {0}),
    "scheduler": lambda: os.sched_setscheduler(1, os.SCHED_OTHER, os.sched_param(0)),
    "priority": lambda: os.setpriority(os.PRIO_PROCESS, 1, 0),
    "priorities": lambda: os.setpriority(os.PRIO_USER, os.getuid(), 1),
    "disks": lambda: call(ioprio, 1, 1, 3 << 13),
    "disks of all": lambda: call(ioprio, 3, os.getuid(), 3 << 13),
    "rings": lambda: call(IO_URING_SETUP, 1, ctypes.create_string_buffer(256)),
    "the machine's host": lambda: socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM),
    "packets": lambda: socket.socket(socket.AF_PACKET, socket.SOCK_RAW),
}
for name, attempt in tried.items():
    try:
        attempt()
    except PermissionError:
        continue
    print(name)
"""


@KNOWN
def test_a_sealed_process_when_it_reaches_for_the_first_process_or_beyond_is_refused() -> None:
    """Neither limits nor scheduling of others can be set, one's own still can; nor does a socket
    lead out of a network namespace, or a ring around the filter.
    """  # noqa: D205
    command = [sys.executable, "-I", "-c", CHILD, sealing.__file__]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_machine_whose_calls_are_not_known_when_sealed_has_no_filter() -> None:
    """Numbers of system calls are never guessed."""
    assert sealing.filter_program("pdp11") is None
