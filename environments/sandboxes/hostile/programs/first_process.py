"""Stop, kill, read or cripple the first process, which watches this one."""

import ctypes
import fcntl
import os
import resource
import signal

from attempts import attempt, call, done, system_call

PTRACE_ATTACH, PTRACE_SEIZE = 16, 0x4206
F_SETSIG = 10


class Piece(ctypes.Structure):
    _fields_ = [("base", ctypes.c_void_p), ("size", ctypes.c_size_t)]


def opened(path, how):
    descriptor = os.open(path, how | os.O_NONBLOCK)
    os.close(descriptor)


def write(path):
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, b"0")
    finally:
        os.close(descriptor)


def read_memory():
    buffer = ctypes.create_string_buffer(8)
    own = Piece(ctypes.addressof(buffer), 8)
    theirs = Piece(ctypes.addressof(buffer), 8)
    return call("process_vm_readv", 1, ctypes.byref(own), 1, ctypes.byref(theirs), 1, 0)


def take_descriptor():
    process = os.pidfd_open(1)
    return system_call({"x86_64": 438, "aarch64": 438}, process, 1, 0)


def signal_by_pipe(number):
    reading, writing = os.pipe()
    fcntl.fcntl(reading, F_SETSIG, number)
    fcntl.fcntl(reading, fcntl.F_SETOWN, 1)
    fcntl.fcntl(reading, fcntl.F_SETFL, os.O_ASYNC | os.O_NONBLOCK)
    os.write(writing, b"x")


# The kernel drops these silently: that the run goes on is what proves it.
for number in (
    signal.SIGKILL,
    signal.SIGSTOP,
    signal.SIGTSTP,
    signal.SIGTERM,
    signal.SIGINT,
    signal.SIGHUP,
    signal.SIGALRM,
    signal.SIGPIPE,
    signal.SIGUSR1,
    signal.SIGCHLD,
    signal.SIGSEGV,
    signal.SIGRTMAX,
):
    os.kill(1, number)
    signal.pidfd_send_signal(os.pidfd_open(1), number)
for number in (signal.SIGKILL, signal.SIGSTOP):
    signal_by_pipe(number)

for folder in ("fd", "map_files"):
    attempt(f"list its {folder}", lambda: os.listdir(f"/proc/1/{folder}"))
for name in ("mem", "environ", "maps", "auxv", "stack", "syscall"):
    attempt(f"read its {name}", lambda: open(f"/proc/1/{name}", "rb").read(8))
for name in ("mem", "oom_score_adj", "coredump_filter", "timerslack_ns", "clear_refs", "uid_map"):
    attempt(f"write its {name}", lambda: write(f"/proc/1/{name}"))
for number in range(16):
    attempt(f"write its descriptor {number}", lambda: opened(f"/proc/1/fd/{number}", os.O_WRONLY))
for name in ("exe", "cwd", "root"):
    attempt(f"follow its {name}", lambda: os.readlink(f"/proc/1/{name}"))
attempt("trace it", lambda: call("ptrace", PTRACE_ATTACH, 1, None, None))
attempt("seize it", lambda: call("ptrace", PTRACE_SEIZE, 1, None, None))
attempt("read its memory", read_memory)
attempt("take a descriptor of it", take_descriptor)
attempt("starve it", lambda: os.sched_setscheduler(1, os.SCHED_IDLE, os.sched_param(0)))
attempt("put it last", lambda: os.setpriority(os.PRIO_PROCESS, 1, 19))
attempt("put all of our user last", lambda: os.setpriority(os.PRIO_USER, os.getuid(), 19))
attempt("have its disk last", lambda: system_call({"x86_64": 251, "aarch64": 30}, 1, 1, 3 << 13))
attempt("bind it", lambda: os.sched_setaffinity(1, os.sched_getaffinity(0)))
attempt("take its descriptors", lambda: resource.prlimit(1, resource.RLIMIT_NOFILE, (0, 0)))
attempt("take its memory", lambda: resource.prlimit(1, resource.RLIMIT_AS, (0, 0)))
# A limit of CPU time that is reached has the kernel kill even the first process.
attempt("take its time", lambda: resource.prlimit(1, resource.RLIMIT_CPU, (0, 0)))
done()
