"""One output stream of a program: its head is passed on at once, its tail is kept."""

from __future__ import annotations


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
