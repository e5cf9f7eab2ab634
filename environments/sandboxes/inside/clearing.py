"""Which processes there are beneath one, from /proc."""

from __future__ import annotations

import os


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
