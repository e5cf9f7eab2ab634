"""Read what is on the host, and reach its engine."""

import glob
import os
import socket

from attempts import attempt, done

CANARY = os.environ["HOSTILE_CANARY"]


def read(path):
    with open(path, "rb") as stream:
        return stream.read(64)


def write(path):
    os.close(os.open(path, os.O_WRONLY))


def ask_engine(path):
    with socket.socket(socket.AF_UNIX) as connection:
        connection.settimeout(1)
        connection.connect(path)


attempt("read a file of the host", lambda: read(CANARY))
for process in ("1", "self"):
    attempt(f"read it through process {process}", lambda: read(f"/proc/{process}/root{CANARY}"))
    attempt(
        f"read it beside process {process}",
        lambda: read(f"/proc/{process}/cwd/../../..{CANARY}/../{CANARY}"),
    )
for path in ("/host", "/mnt", "/rootfs", "/media"):
    attempt(f"read it in {path}", lambda: read(path + CANARY))
for path in (
    "/var/run/docker.sock",
    "/run/docker.sock",
    "/run/containerd/containerd.sock",
    "/run/podman/podman.sock",
):
    attempt(f"ask {path}", lambda: ask_engine(path))
for path in (
    "/etc/shadow",
    "/root/.ssh/id_rsa",
    "/root/.bashrc",
    "/proc/kcore",
    "/proc/kmsg",
    "/dev/mem",
    "/dev/kmsg",
):
    attempt(f"read {path}", lambda: read(path))
for path in (
    "/proc/sysrq-trigger",
    "/proc/acpi/wakeup",
    "/proc/1/oom_score_adj",
    "/sys/power/state",
):
    attempt(f"open {path} to write", lambda: write(path))


def find(what, pattern):
    found = glob.glob(pattern)
    if not found:
        raise OSError("there is none")
    return [read(path) for path in found]


attempt("read a disk", lambda: find("disks", "/dev/[svhx]d[a-z]*") + find("disks", "/dev/nvme*"))


def foreign_processes():
    found = []
    for name in os.listdir("/proc"):
        if name.isdigit() and int(name) not in (1, os.getpid(), os.getppid()):
            found.append(name)
    if not found:
        raise OSError("only our own")
    return found


attempt("see processes of others", foreign_processes)


def bound_from_outside():
    own = ("overlay", "proc", "tmpfs", "devpts", "sysfs", "mqueue", "cgroup", "cgroup2", "shm")
    found = []
    for line in open("/proc/self/mountinfo"):
        before, after = line.split(" - ")
        place, options = before.split()[4:6]
        if after.split()[0] not in own and "rw" in options.split(","):
            found.append(place)
    if not found:
        raise OSError("nothing that can be written")
    return found


attempt("find a folder of the host that can be written", bound_from_outside)
done()
