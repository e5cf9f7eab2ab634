"""What a run prints, how long it takes and what its workspace on disk holds, watched together with
all else the supervisor waits for.
"""  # noqa: D205

from __future__ import annotations

import errno
import os
import select
import stat
import time
from collections.abc import Callable, Iterable, Iterator

from langgraft.environments.sandboxes.inside.frames import (
    BEAT,
    CHUNK,
    INTERRUPT,
    STDERR,
    STDOUT,
    Host,
    KernelChild,
    pack,
    unpack_json,
)
from langgraft.environments.sandboxes.inside.processes import Processes

PIPE_SIZE = 1 << 20
BEAT_SECONDS = 1.0

LOOK_SECONDS = 0.25
"""From the end of one look at a small workspace to the next."""
SLICE_SECONDS = 0.02
"""How long a look may keep the supervisor from all else."""

_LEAST = 4096
"""Bytes that an entry counts at the least, a block: one without content takes room, too."""
_LINKS = 200_000
"""Files of several names that are counted once; more are counted for each name."""
_ENDLESS = 1 << 62


class Relay:
    """Counts a stream and keeps of it what the host is to have, in bounded memory.

    Args:
        limit: Bytes the host gets in all: half from the head, the rest from the tail.
    """

    def __init__(self, limit: int) -> None:
        self.count = 0
        self._head = limit // 2
        # Never 0, which would make a slice from the end a slice of all.
        self._room = max(1, limit - limit // 2)
        self._tail = bytearray()

    def feed(self, data: bytes) -> bytes:
        """Take what was printed; return the part to send on now."""
        head = data[: max(0, self._head - self.count)]
        self.count += len(data)
        rest = memoryview(data)[len(head) :][-self._room :]
        self._tail += rest
        if len(self._tail) > 2 * self._room + (1 << 16):
            del self._tail[: -self._room]
        return head

    def tail(self) -> bytes:
        """Return what follows the head, or the end of it."""
        return bytes(self._tail[-self._room :])


class Output:
    """What one run prints, on its way to the host, or to nobody."""

    def __init__(self, host: Host | None, descriptors: tuple[int, ...], limit: int) -> None:
        self._host = host
        self._relays = {
            descriptor: (kind, Relay(limit))
            for descriptor, kind in zip(descriptors, (STDOUT, STDERR))  # noqa: B905 - Python 3.8
        }
        self.open = set(descriptors)

    @property
    def count(self) -> int:
        """Bytes printed so far."""
        return sum(relay.count for _, relay in self._relays.values())

    def read(self, descriptor: int) -> int:
        """Take what is there of a stream; return how many bytes."""
        try:
            data = os.read(descriptor, PIPE_SIZE)
        except BlockingIOError:
            return 0
        if not data:
            self.open.discard(descriptor)
            return 0
        kind, relay = self._relays[descriptor]
        head = relay.feed(data)
        if head:
            self._send(kind, head)
        return len(data)

    def finish(self) -> list[int]:
        """Take what was printed before now, send the tails, return the bytes of both streams."""
        for descriptor in list(self.open):
            # No more than a pipe holds: a background process may go on printing for ever.
            room = PIPE_SIZE
            while room > 0:
                taken = self.read(descriptor)
                if not taken:
                    break
                room -= taken
        for kind, relay in self._relays.values():
            self._send(kind, relay.tail())
        return [relay.count for _, relay in self._relays.values()] or [0, 0]

    def _send(self, kind: int, data: bytes) -> None:
        if self._host is None:
            return
        for start in range(0, len(data), CHUNK):
            self._host.send(pack(kind, data[start : start + CHUNK]))


class Clock:
    """When a run must end, and why it was ended."""

    def __init__(self, seconds: float, flood: int) -> None:
        self.begun = time.monotonic()
        self.deadline = self.begun + seconds
        self.flood = flood
        self.stopped: str | None = None
        self.duration = 0.0

    def stop(self) -> None:
        """Note how long the run took."""
        self.duration = time.monotonic() - self.begun

    def check(self, printed: int) -> bool:
        """Return whether the run has to be ended for a reason that is new."""
        if self.stopped is None and printed > self.flood:
            self.stopped = "output"
            return True
        if self.stopped is None and time.monotonic() >= self.deadline:
            self.stopped = "timeout"
            return True
        return False


def reserve(total: int) -> int:
    """Return the bytes that are to be left on a disk of so many, whatever programs write."""
    return min(1 << 30, total // 20)


class Disk:
    """Watches how much a workspace on disk holds.

    No kernel holds such a bound without the help of root, so that it is held by looking: at what
    lies in the workspace, at files that were deleted and are still open, and at what the disk has
    left. A look goes on in slices between the supervisor's other duties, and takes a fifth of a
    processor at most.

    Args:
        path: Of the workspace.
        most: Bytes that it may hold.
        mounted: What is mounted in it, by paths from it: not looked into.
    """

    def __init__(self, path: str, most: int, mounted: Iterable[str]) -> None:
        self._folder = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
        self._device = os.fstat(self._folder).st_dev
        self._most = self._allowed = most
        self._mounted = frozenset(mounted)
        self._free = self._left()[0]
        self._look: Iterator[int] | None = None
        self._found = 0
        self._spent = 0.0
        self._next = 0.0
        self._full = False

    def begin(self) -> None:
        """Let a program begin: where more is there than may be, it may remain and not grow."""
        self._free = self._left()[0]
        self._look = None
        self._next = 0.0
        self._allowed = self._most
        if self._full:
            self._allowed = max(self._most, sum(self._sizes()))
            self._full = self._allowed > self._most

    def over(self) -> str:
        """Look on for a moment.

        Returns:
            Why what runs has to be ended: `disk`, as it wrote too much, or `full`, as the disk is,
            and this workspace is not what filled it; nothing where it may go on.
        """
        free, short = self._left()
        if short:
            return "disk" if self._free - free > self._most else "full"
        now = time.monotonic()
        if self._look is None:
            if now < self._next:
                return ""
            self._look, self._found, self._spent = self._sizes(), 0, 0.0
        for size in self._look:
            self._found += size
            if self._found > self._allowed:
                self._look, self._full = None, True
                return "disk"
            if time.monotonic() - now > SLICE_SECONDS:
                self._spent += time.monotonic() - now
                self._next = time.monotonic() + SLICE_SECONDS
                return ""
        self._spent += time.monotonic() - now
        self._look = None
        self._next = time.monotonic() + max(LOOK_SECONDS, 4 * self._spent)
        return ""

    @property
    def pause(self) -> float:
        """Seconds in which there is nothing to do here, but to see what the disk has left."""
        return max(0.0, min(self._next - time.monotonic(), LOOK_SECONDS))

    def _left(self) -> tuple[int, bool]:
        """Return the bytes that are left on the disk, and whether that is too little."""
        disk = os.fstatvfs(self._folder)
        free = disk.f_bavail * disk.f_frsize
        few = disk.f_files > 0 and disk.f_favail < disk.f_files // 50
        return free, few or free < reserve(disk.f_blocks * disk.f_frsize)

    def _sizes(self) -> Iterator[int]:
        """Yield what entries take of the disk; now and then nothing."""
        seen: set[int] = set()
        yield from self._named(seen)
        yield from self._nameless(seen)

    def _named(self, seen: set[int]) -> Iterator[int]:
        """Yield the sizes of what lies in the workspace, with one folder open at a time."""
        folders = [""]
        while folders:
            prefix = folders.pop()
            try:
                folder = self._opened(prefix)
            except OSError as error:
                # Deeper than any path reaches: nobody could look there.
                yield _ENDLESS if error.errno == errno.ENAMETOOLONG else 0
                continue
            try:
                with os.scandir(folder) as entries:
                    for entry in entries:
                        yield self._entry(entry.name, folder, prefix, folders, seen)
            except OSError:
                yield 0
            finally:
                os.close(folder)

    def _entry(
        self, name: str, folder: int, prefix: str, folders: list[str], seen: set[int]
    ) -> int:
        """Return the size of an entry, and note a folder, to be looked into later."""
        path = prefix + name
        if path in self._mounted:
            return 0
        try:
            found = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except OSError:
            return 0  # gone meanwhile
        if found.st_dev != self._device:
            return 0
        if stat.S_ISDIR(found.st_mode):
            folders.append(f"{path}/")
        elif found.st_nlink > 1:
            if found.st_ino in seen:
                return _LEAST
            if len(seen) < _LINKS:
                seen.add(found.st_ino)
        return max(found.st_blocks * 512, _LEAST)

    def _opened(self, path: str) -> int:
        """Open a folder, also one that its program has closed to itself: it has the same user."""
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW
        try:
            return os.open(path or ".", flags, dir_fd=self._folder)
        except PermissionError:
            os.chmod(path, 0o700, dir_fd=self._folder)
            return os.open(path, flags, dir_fd=self._folder)

    def _nameless(self, seen: set[int]) -> Iterator[int]:
        """Yield the sizes of files that were deleted and are open."""
        for pid in os.listdir("/proc"):
            if not pid.isdigit() or int(pid) == os.getpid():
                continue
            try:
                opened = os.listdir(f"/proc/{pid}/fd")
            except OSError:
                continue  # gone, or closed to others: the disk's reserve bounds what that one hides
            for number in opened:
                try:
                    found = os.stat(f"/proc/{pid}/fd/{number}")
                except OSError:
                    continue
                mine = found.st_dev == self._device and found.st_ino not in seen
                if mine and stat.S_ISREG(found.st_mode) and found.st_nlink == 0:
                    seen.add(found.st_ino)
                    yield found.st_blocks * 512
                else:
                    yield 0


class Watch:
    """The one place where the supervisor waits.

    Attributes:
        host: Hears what the host asks, and takes what it is told, at any time.
        processes: Reaped at any time.
        kernel: Takes what it was told and has not taken yet, at any time.
        cancelled: The host has called off what runs.
        disk: The workspace where it lies on disk, looked at as long as anything runs.
        overfull: What a kernel left running was ended between cells, as it wrote too much.
    """

    def __init__(self, host: Host, processes: Processes, disk: Disk | None = None) -> None:
        self.host = host
        self.processes = processes
        self.disk = disk
        self.overfull = ""
        self.kernel: KernelChild | None = None
        self.cancelled = False
        self._running: object = None
        self._asked: list[tuple[int, bytes]] = []
        self._beat = 0.0

    def next(self) -> tuple[int, bytes]:
        """Wait for what the host asks next."""
        while not self._asked:
            self.wait((), 2.0 if self.kernel is None or self.disk is None else BEAT_SECONDS)
            if self.kernel is not None and self.disk is not None and not self.overfull:
                self.overfull = self.disk.over()
                if self.overfull:
                    self.processes.clear(self.kernel.pid)
        return self._asked.pop(0)

    def begin(self, number: object) -> None:
        """Note which run or cell may be called off from now on."""
        self._running, self.cancelled = number, False
        if self.disk is not None:
            self.disk.begin()

    def end(self) -> None:
        """Note that nothing runs."""
        self._running, self.cancelled = None, False

    def wait(self, descriptors: Iterable[int], seconds: float) -> set[int]:
        """Wait until a descriptor can be read, the host speaks, a process ends, or time is up."""
        host, kernel = self.host, self.kernel
        poll = select.poll()
        for descriptor in (host.source, self.processes.wakeup, *descriptors):
            poll.register(descriptor, select.POLLIN)
        if host.unsent:
            poll.register(host.sink, select.POLLOUT)
        if kernel is not None and kernel.unsent:
            poll.register(kernel.control, select.POLLOUT)
        # Rounded up, or the last millisecond before a deadline would be spent waiting for 0.
        ready = {descriptor for descriptor, _ in poll.poll(max(0.0, seconds) * 1000 + 0.5)}
        self.processes.reap()
        host.push()
        if kernel is not None:
            kernel.push()
        self._hear(ready)
        return ready

    def tick(self) -> None:
        """Show a sign of life now and then."""
        now = time.monotonic()
        if now >= self._beat + BEAT_SECONDS:
            self._beat = now
            self._hear({self.host.source})
            if not self.host.unsent:
                self.host.send(pack(BEAT))

    def attend(
        self, output: Output, clock: Clock, reports: set[int], over: Callable[[set[int]], bool]
    ) -> None:
        """Relay a run's output until it is over or has to be ended."""
        ready: set[int] = set()
        while not over(ready):
            if self.cancelled and clock.stopped is None:
                clock.stopped = "cancelled"
                return
            if clock.check(output.count):
                return
            left = min(clock.deadline - time.monotonic(), BEAT_SECONDS)
            if self.disk is not None and clock.stopped is None:
                clock.stopped = self.disk.over() or None
                if clock.stopped is not None:
                    return
                left = min(left, self.disk.pause)
            self.tick()
            ready = self.wait(output.open | reports, left)
            for descriptor in output.open & ready:
                output.read(descriptor)

    def _hear(self, ready: set[int]) -> None:
        if self.host.source in ready:
            self.host.hear()
        self.host.check()
        while True:
            frame = self.host.next()
            if frame is None:
                return
            if frame[0] != INTERRUPT:
                self._asked.append(frame)
            elif self._running is not None:
                self.cancelled |= unpack_json(frame[1]).get("id") == self._running
