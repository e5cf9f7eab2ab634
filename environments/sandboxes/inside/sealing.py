"""What a program must not do to the supervisor, though both have the same user id, nor beyond.

A first process cannot be signalled or traced from inside. But Linux lets a process set the limits
and the scheduling of any other of its user: `prlimit(1, RLIMIT_CPU, 0)` has the kernel itself kill
the first process, and `SCHED_IDLE` starves it. And a container without a network still has the
sockets by which virtual machines talk to their host (`AF_VSOCK`), which no namespace holds. A
filter of system calls refuses both, and the rings that would get around it; programs inherit it
and nobody can take it off.
"""

from __future__ import annotations

import ctypes
import os
import struct

PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS, SECCOMP_MODE_FILTER = 22, 38, 2
ALLOW, REFUSE = 0x7FFF0000, 0x00050001
"""What a filter answers; the second is an error, `EPERM`."""
LOAD, EQUAL, AT_LEAST, ANSWER = 0x20, 0x15, 0x35, 0x06
"""Instructions: load a word of the call, jump where it is or is not so, end."""
NUMBER, ARCHITECTURE, FIRST, SECOND = 0, 4, 16, 24
"""Where in a call's description they are; of arguments, the lower half (little-endian)."""
FOREIGN = 0x40000000
"""Calls of another ABI (x32) have numbers from here on."""
PRIO_USER, IOPRIO_USER = 2, 3
IO_URING_SETUP = 425
"""The same on all machines."""
FAMILIES = (1, 2, 10, 16)
"""Of sockets, those that a namespace holds: local ones, of IPv4, of IPv6, and netlink."""

# Machine: its number in a filter, then the calls prlimit64, socket, those of priority (setpriority,
# ioprio_set), and those of scheduling (sched_setparam, sched_setscheduler, sched_setaffinity,
# sched_setattr).
MACHINES = {
    "x86_64": (0xC000003E, 302, 41, (141, 251), (142, 144, 203, 314)),
    "aarch64": (0xC00000B7, 261, 198, (140, 30), (118, 119, 122, 274)),
}


def seal_supervisor() -> bool:
    """Refuse this process and all it starts what reaches the first process, or beyond.

    Returns:
        Whether it is so; not on machines whose calls are not known, nor without seccomp.
    """
    program = filter_program(os.uname().machine)
    libc = ctypes.CDLL(None, use_errno=True)
    if program is None or libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
        return False
    code = ctypes.create_string_buffer(program, len(program))
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    return bool(libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, described, 0, 0) == 0)


def filter_program(machine: str) -> bytes | None:
    """Return the filter, as the kernel takes it, or nothing where the machine is not known."""
    if machine not in MACHINES:
        return None
    architecture, prlimit, socket, priorities, scheduling = MACHINES[machine]
    rules = [
        # Calls of another ABI have other numbers: none are let through.
        (LOAD, 0, 0, ARCHITECTURE),
        (EQUAL, 1, 0, architecture),
        (ANSWER, 0, 0, REFUSE),
        (LOAD, 0, 0, NUMBER),
        (AT_LEAST, 0, 1, FOREIGN),
        (ANSWER, 0, 0, REFUSE),
        # Limits: one's own only, since a number can be that of a thread of the supervisor.
        (EQUAL, 0, 4, prlimit),
        (LOAD, 0, 0, FIRST),
        (EQUAL, 1, 0, 0),
        (ANSWER, 0, 0, REFUSE),
        (ANSWER, 0, 0, ALLOW),
        (EQUAL, 0, len(FAMILIES) + 3, socket),
        (LOAD, 0, 0, FIRST),
        *[(EQUAL, len(FAMILIES) - place, 0, one) for place, one in enumerate(FAMILIES)],
        (ANSWER, 0, 0, REFUSE),
        (ANSWER, 0, 0, ALLOW),
        (EQUAL, 0, 1, IO_URING_SETUP),
        (ANSWER, 0, 0, REFUSE),
    ]
    # Priorities: neither the first process's nor those of all of a user.
    for call, user in zip(priorities, (PRIO_USER, IOPRIO_USER)):  # noqa: B905 - not before 3.10
        rules += [
            (EQUAL, 0, 6, call),
            (LOAD, 0, 0, FIRST),
            (EQUAL, 2, 0, user),
            (LOAD, 0, 0, SECOND),
            (EQUAL, 0, 1, 1),
            (ANSWER, 0, 0, REFUSE),
            (ANSWER, 0, 0, ALLOW),
        ]
    for call in scheduling:
        rules += [
            (EQUAL, 0, 4, call),
            (LOAD, 0, 0, FIRST),
            (EQUAL, 0, 1, 1),
            (ANSWER, 0, 0, REFUSE),
            (ANSWER, 0, 0, ALLOW),
        ]
    rules.append((ANSWER, 0, 0, ALLOW))
    return b"".join(struct.pack("HBBI", *rule) for rule in rules)
