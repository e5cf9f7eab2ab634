"""Starting processes, learning how they ended, and leaving none behind."""

from __future__ import annotations

import ctypes
import errno
import fcntl
import os
import resource
import signal
import time

from langgraft.environments.sandboxes.inside.sealing import seal_supervisor

CLEARING_SECONDS = 10.0
"""A process that is killed and does not go for so long is stuck in the operating system."""

_PR_GET_DUMPABLE, _PR_SET_DUMPABLE, _PR_SET_CHILD_SUBREAPER = 3, 4, 36
_REAPED_AT_ONCE = 1000
_FIRST_PASSED = 50
"""Descriptors passed to a program get numbers from here, out of the way of its own."""

_OOM_COUNTERS = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")
"""Of cgroup v2 and v1, as a container sees its own."""


def set_process(option: int, value: int = 0) -> int:
    """Call prctl; -1 where there is none."""
    try:
        return int(ctypes.CDLL(None).prctl(option, value, 0, 0, 0))
    except (AttributeError, OSError):
        return -1


def oom_kills() -> int:
    """Return how many processes of this container were killed for want of memory so far."""
    for path in _OOM_COUNTERS:
        try:
            with open(path, encoding="ascii") as file:
                for line in file:
                    name, _, value = line.partition(" ")
                    if name == "oom_kill":
                        return int(value)
        except (OSError, ValueError):
            continue
    return 0


def pass_on(descriptor: int) -> int:
    """Return a copy of a descriptor with a number that programs do not use; closes it."""
    copy = fcntl.fcntl(descriptor, fcntl.F_DUPFD_CLOEXEC, _FIRST_PASSED)
    os.close(descriptor)
    return copy


class Streams:
    """What a process to be started gets: its three streams, and descriptors kept by number."""

    def __init__(self, stdout: int, stderr: int, kept: tuple[int, ...] = ()) -> None:
        self.stdout = stdout
        self.stderr = stderr
        self.kept = kept

    def close(self) -> None:
        """Close the ends that only the process is to hold."""
        for descriptor in (self.stdout, self.stderr, *self.kept):
            os.close(descriptor)


class Processes:
    """All processes beneath this one, which adopts what others leave.

    Args:
        isolated: This is the first process of a pid namespace: all others are its own.
        file: Bytes a process may write to one file.
        open_files: Files a process may have open.
    """

    def __init__(self, *, isolated: bool, file: int, open_files: int) -> None:
        self.isolated = isolated
        self.exits: dict[int, int] = {}
        """Wait statuses of processes that were started here and not forgotten."""
        self._watched: set[int] = set()
        self._unstarted = -1
        self._limits = (
            (resource.RLIMIT_CORE, 0),
            (resource.RLIMIT_FSIZE, file),
            (resource.RLIMIT_NOFILE, open_files),
        )
        set_process(_PR_SET_DUMPABLE)
        self.dumpable = set_process(_PR_GET_DUMPABLE) != 0
        # Of this machine's processes some are not ours to be kept from anything.
        self.sealed = isolated and seal_supervisor()
        set_process(_PR_SET_CHILD_SUBREAPER, 1)
        self._traceable = has_proc()
        self.wakeup, writing = os.pipe()
        os.set_blocking(self.wakeup, False)
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda _number, _frame: None)
        # For the first process of a namespace the kernel drops signals left at their default.
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    def start(
        self, argv: list[str], environment: dict[str, str], directory: str, streams: Streams
    ) -> int:
        """Start a process in a session of its own and return its id.

        Where it cannot be started it ends as in a shell: 127 if not found, else 126. Where there
        may be no further process at all, the id is one that no process has.
        """
        try:
            pid = os.fork()
        except OSError as error:
            _say_unstarted(argv[0], error, streams.stderr)
            streams.close()
            self._unstarted -= 1
            self.exits[self._unstarted] = 126 << 8
            return self._unstarted
        if pid == 0:
            self._become(argv, environment, directory, streams)
        self._watched.add(pid)
        streams.close()
        return pid

    def forget(self, pid: int) -> None:
        """Drop what is known of a process."""
        self._watched.discard(pid)
        self.exits.pop(pid, None)

    def _become(
        self, argv: list[str], environment: dict[str, str], directory: str, streams: Streams
    ) -> None:
        code = 126
        try:
            os.setsid()
            null = os.open(os.devnull, os.O_RDONLY)
            os.dup2(null, 0)
            os.dup2(streams.stdout, 1)
            os.dup2(streams.stderr, 2)
            for descriptor in streams.kept:
                os.set_inheritable(descriptor, True)
            signal.set_wakeup_fd(-1)
            for number in (signal.SIGCHLD, signal.SIGPIPE, signal.SIGXFSZ):
                signal.signal(number, signal.SIG_DFL)
            _die_first_of_hunger()
            for limit, value in self._limits:
                hard = resource.getrlimit(limit)[1]
                most = value if hard == resource.RLIM_INFINITY else min(value, hard)
                resource.setrlimit(limit, (most, most))
            os.chdir(directory)
            os.execvpe(argv[0], argv, environment)  # noqa: S606
        except (FileNotFoundError, NotADirectoryError) as error:
            code = 127
            _say_unstarted(argv[0], error, 2)
        except (OSError, ValueError) as error:
            _say_unstarted(argv[0], error, 2)
        finally:
            os._exit(code)

    def reap(self) -> None:
        """Note how processes ended, those adopted as well."""
        # Once, and not until there is no more: a program may send its signals without end.
        try:
            os.read(self.wakeup, 1 << 16)
        except BlockingIOError:
            pass
        for _ in range(_REAPED_AT_ONCE):
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid in self._watched:
                self._watched.discard(pid)
                self.exits[pid] = status

    def everyone(self) -> frozenset[tuple[int, str]]:
        """Return all processes there are now, to be spared by `clear`."""
        if not self._traceable:
            return frozenset()
        return frozenset(descendants(os.getpid(), frozenset()))

    def clear(self, leader: int, spared: frozenset[tuple[int, str]] = frozenset()) -> bool:
        """Kill all processes but those spared, what these started, and this one.

        Where there is no /proc and no pid namespace (macOS) only the leader's process group is
        reached.

        Returns:
            Whether all of them are gone.
        """
        until = time.monotonic() + CLEARING_SECONDS
        # What comes into being after these were stopped was started by what is spared.
        only = self._stop(spared, until) if spared else None
        pause = 0.0005
        while time.monotonic() < until:
            left = self._strike(leader, only, until)
            self.reap()
            if not left:
                return True
            time.sleep(pause)
            pause = min(2 * pause, 0.05)
        return False

    def _strike(self, leader: int, only: set[tuple[int, str]] | None, until: float) -> bool:
        """Kill some processes, or all; return whether there were any."""
        if self.isolated and only is None:
            # At once and for all, also for what forks faster than it could be listed.
            return _kill(-1)
        if not self._traceable:
            return _kill_group(leader) and leader in self._watched
        if only is None:
            left = self._stop(frozenset(), until)
        else:
            left = only & descendants(os.getpid(), frozenset())
        for pid, _ in left:
            _kill(pid)
        return bool(left)

    def _stop(self, spared: frozenset[tuple[int, str]], until: float) -> set[tuple[int, str]]:
        """Stop all processes but those spared: what is stopped starts nothing new."""
        seen: set[tuple[int, str]] = set()
        while time.monotonic() < until:
            new = descendants(os.getpid(), spared) - seen
            if not new:
                break
            for pid, _ in new:
                _kill(pid, signal.SIGSTOP)
            seen |= new
        return seen


def _kill(pid: int, number: int = signal.SIGKILL) -> bool:
    if pid == -1 and os.getpid() != 1:
        msg = "only the first process of a pid namespace may kill all others"
        raise AssertionError(msg)
    try:
        os.kill(pid, number)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def _kill_group(leader: int) -> bool:
    if leader <= 0:
        return False
    try:
        os.killpg(leader, signal.SIGKILL)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _die_first_of_hunger() -> None:
    """Let the OOM killer take this process and what it starts before the supervisor or host."""
    # Files of /proc/self belong to root as long as the process is closed to others.
    set_process(_PR_SET_DUMPABLE, 1)
    try:
        descriptor = os.open("/proc/self/oom_score_adj", os.O_WRONLY)
        os.write(descriptor, b"1000")
        os.close(descriptor)
    except OSError:
        pass


def _say_unstarted(name: str, error: Exception, stderr: int) -> None:
    number = getattr(error, "errno", None)
    reason = os.strerror(number) if number else str(error)
    if number == errno.E2BIG:
        reason += " (the system's bound on arguments and environment together)"
    os.write(stderr, f"{name}: {reason}\n".encode("utf-8", "backslashreplace"))


def has_proc() -> bool:
    """Return whether this system tells its processes in /proc (macOS does not)."""
    return os.path.exists("/proc/self/stat")


def descendants(root: int, spared: frozenset[tuple[int, str]]) -> set[tuple[int, str]]:
    """Return all living processes beneath `root` but those spared and what is beneath them.

    A process is its id and its start, since ids come back. Daemons that were left by their
    parent are beneath the supervisor, which adopts them.
    """
    children: dict[int, list[tuple[int, str]]] = {}
    for name in os.listdir("/proc"):
        if name.isdigit():
            found = _parent_and_start(name)
            if found is not None:
                children.setdefault(found[0], []).append((int(name), found[1]))
    beneath: set[tuple[int, str]] = set()
    unseen = [root]
    while unseen:
        for process in children.get(unseen.pop(), ()):
            if process not in spared and process not in beneath:
                beneath.add(process)
                unseen.append(process[0])
    return beneath


def _parent_and_start(pid: str) -> tuple[int, str] | None:
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            stat = file.read()
    except OSError:
        return None
    # The name in parentheses may hold anything, also parentheses and spaces.
    fields = stat[stat.rfind(b")") + 2 :].split()
    return int(fields[1]), fields[19].decode("ascii")
