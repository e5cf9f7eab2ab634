"""Become more than an ordinary user."""

import ctypes
import os
import resource
import socket
import stat
import subprocess
import time

from attempts import attempt, call, done, system_call

NAMESPACES = {
    "mount": 0x20000,
    "cgroup": 0x2000000,
    "network": 0x40000000,
    "pid": 0x20000000,
    "user": 0x10000000,
    "time": 0x80,
}


def write(path, content):
    descriptor = os.open(path, os.O_WRONLY)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


def rewrite(path):
    with open(path, "rb") as stream:
        content = stream.read()
    write(path, content)


def held():
    status = dict(line.split(":\t", 1) for line in open("/proc/self/status") if ":\t" in line)
    held = {
        name: status[name].strip() for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb")
    }
    if any(int(value, 16) for value in held.values()) or status["NoNewPrivs"].strip() != "1":
        return held, status["NoNewPrivs"]
    if status["Seccomp"].strip() != "2":
        return "no filter of system calls"
    raise OSError("no capability, none to be had, system calls filtered")


def setuid_programs():
    found = []
    for root in ("/usr", "/bin", "/sbin", "/opt"):
        for folder, _, names in os.walk(root):
            for name in names:
                path = os.path.join(folder, name)
                try:
                    mode = os.lstat(path).st_mode
                except OSError:
                    continue
                if stat.S_ISREG(mode) and mode & (stat.S_ISUID | stat.S_ISGID):
                    found.append(path)
    for path in found:
        ask = [path, "-c", "id -u"] if path.endswith("/su") else [path]
        told = subprocess.run(ask, capture_output=True, stdin=subprocess.DEVNULL, timeout=2)
        if told.stdout.strip() == b"0":
            return path
    raise OSError(f"{len(found)} found, none helps")


attempt("have capabilities", held)
attempt("become root", lambda: os.setuid(0))
attempt("become root for good", lambda: os.setresuid(0, 0, 0))
attempt("join root's group", lambda: os.setgid(0))
attempt("join groups", lambda: os.setgroups([0]))
attempt("use a setuid program", setuid_programs)
open("mine", "w").close()
attempt("give a file away", lambda: os.chown("mine", 0, 0))
attempt("make a disk", lambda: os.mknod("disk", stat.S_IFBLK | 0o600, os.makedev(8, 0)))
attempt("make a device", lambda: os.mknod("mem", stat.S_IFCHR | 0o600, os.makedev(1, 1)))
attempt("change the root", lambda: os.chroot("."))
attempt("mount", lambda: call("mount", b"none", b"/tmp", b"tmpfs", 0, None))
attempt("mount writable", lambda: call("mount", None, b"/", None, 0x20 | 0x1000, None))
attempt("unmount", lambda: call("umount2", b"/proc/sys", 2))
for name, flag in NAMESPACES.items():
    attempt(f"have a {name} namespace", lambda: call("unshare", flag))
attempt("join a namespace", lambda: call("setns", os.open("/proc/self/ns/net", os.O_RDONLY), 0))
attempt("name the host", lambda: call("sethostname", b"hostile", 7))
attempt("set the clock", lambda: time.clock_settime(time.CLOCK_REALTIME, time.time()))
attempt("have more files", lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (1 << 20, 1 << 20)))
attempt("have larger files", lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1)))
attempt("have precedence", lambda: os.setpriority(os.PRIO_PROCESS, 0, -10))
attempt("have real time", lambda: os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(1)))
attempt("load a module", lambda: system_call({"x86_64": 175, "aarch64": 105}, None, 0, b""))
attempt(
    "load a program for the kernel",
    lambda: system_call({"x86_64": 321, "aarch64": 280}, 0, None, 0),
)
attempt("use the kernel's keys", lambda: system_call({"x86_64": 250, "aarch64": 219}, 0, -3, 1))
attempt("trap page faults", lambda: system_call({"x86_64": 323, "aarch64": 282}, 0))
attempt(
    "open files by their number",
    lambda: system_call(
        {"x86_64": 304, "aarch64": 265}, -100, b"\x08\0\0\0\x01\0\0\0" + bytes(8), 0
    ),
)
attempt(
    "have calls made by a ring",
    lambda: system_call({"x86_64": 425, "aarch64": 425}, 1, ctypes.create_string_buffer(256)),
)
attempt("use the ports", lambda: call("iopl", 3))
for path in (
    "/proc/sys/kernel/core_pattern",
    "/proc/sys/kernel/hostname",
    "/proc/sys/vm/overcommit_memory",
    "/proc/sys/kernel/modprobe",
):
    attempt(f"set {path}", lambda: rewrite(path))
for path in (
    "/sys/kernel/uevent_helper",
    "/sys/fs/cgroup/release_agent",
    "/sys/fs/cgroup/memory/release_agent",
):
    attempt(f"open {path} to write", lambda: write(path, b""))
for folder in (
    "/sys/fs/cgroup",
    "/sys/fs/cgroup/memory",
    "/sys/fs/cgroup/pids",
    "/sys/fs/cgroup/cpu",
):
    attempt(f"make a group in {folder}", lambda: os.mkdir(f"{folder}/hostile"))
for path in (
    "/sys/fs/cgroup/memory/memory.limit_in_bytes",
    "/sys/fs/cgroup/memory.max",
    "/sys/fs/cgroup/pids/pids.max",
    "/sys/fs/cgroup/pids.max",
):
    attempt(f"raise {path}", lambda: write(path, b"-1\n" if path.endswith("bytes") else b"max\n"))
done()
