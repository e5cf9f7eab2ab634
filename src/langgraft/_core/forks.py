"""What must not cross a fork: locks of other threads, thread pools, connections and open databases.

`os.fork` copies the memory of a process, but only the thread that calls it. In the child a lock that
another thread held stays locked, a thread pool has no threads, and a SQLite connection has lost the
locks that it counts on. Objects that have any of these say here what to do about it.
"""

import itertools
import os
from collections.abc import Callable
from typing import Any, Final, Literal, TypeAlias, TypeVar
from weakref import WeakMethod, ref

# Imported for its hooks. They must be registered first, so that ours run before they stop all file
# locks: a thread that we wait for may need one.
import filelock  # noqa: F401

from langgraft._core.errors import ForkError

LockT = TypeVar("LockT")
_Moment: TypeAlias = Literal["before", "in_parent", "in_child"]

_KEYS: Final = itertools.count()
_LOCKS: Final[dict[int, ref[Any]]] = {}
_CALLS: Final[dict[_Moment, dict[int, WeakMethod[Callable[[], None]]]]] = {
    "before": {},
    "in_parent": {},
    "in_child": {},
}


def renewed(lock: LockT) -> LockT:
    """Return a lock which is free in a forked child, even if another thread of the parent held it."""
    key = next(_KEYS)
    _LOCKS[key] = ref(lock, lambda _: _LOCKS.pop(key, None))
    return lock


def at_fork(moment: _Moment, method: Callable[[], None]) -> None:
    """Have a method called at every fork, as long as its object lives.

    Args:
        moment: When. `in_child` runs before locks are renewed, so the method must not take any;
            `lock.locked()` tells whether a thread of the parent was at work.
        method: A bound method that raises nothing.
    """
    calls, key = _CALLS[moment], next(_KEYS)
    calls[key] = WeakMethod(method, lambda _: calls.pop(key, None))


def fork_error(what: str, instead: str) -> ForkError:
    """Return the error for an object that cannot be used after a fork.

    Args:
        what: The object, as the subject of a sentence.
        instead: What works in every process.
    """
    return ForkError(
        f"{what} was opened before this process was forked, and cannot be used in the child. Open it"
        " in each worker (gunicorn: in `post_fork`, or without `--preload`; Celery: in"
        f" `worker_process_init`; multiprocessing: in the pool's `initializer`), or {instead}"
    )


def _call(moment: _Moment) -> None:
    for method in list(_CALLS[moment].values()):  # other threads may add some
        call = method()
        if call is not None:
            call()


def _in_child() -> None:
    _call("in_child")
    for lock in list(_LOCKS.values()):
        held = lock()
        if held is not None:
            held._at_fork_reinit()  # noqa: SLF001 - as Python's own modules renew theirs


if hasattr(os, "register_at_fork"):  # there are no forks on Windows
    os.register_at_fork(
        before=lambda: _call("before"),
        after_in_parent=lambda: _call("in_parent"),
        after_in_child=_in_child,
    )
