"""Copies of the planner's library, each of which keeps the state of one game at a time."""

from collections import OrderedDict, deque
from collections.abc import Callable
from typing import Any, Final

MOST: Final = 16
"""How many copies serve the games of the fast engine: each takes 34 MB that is never given back."""


class Libraries:
    """Hands copies out, and takes them back: once loaded, a copy stays in the process.

    The library keeps its state in globals, so games that run side by side need a copy each; and it
    cannot be unloaded (it defines unique symbols), so that a copy per game would pile up. All
    methods but `leave` want the engine's lock to be held.
    """

    def __init__(self, load: Callable[[], Any]) -> None:
        self._load = load
        self._free: list[Any] = []
        self._held: OrderedDict[object, Any] = OrderedDict()
        self._left: deque[object] = deque()

    def hold(self, holder: object) -> tuple[Any, bool]:
        """Return the holder's copy, and whether it still knows the holder's game.

        With more holders than copies, the one that was idle for longest loses its copy.
        """
        self._collect()
        library = self._held.pop(holder, None)
        known = library is not None
        if library is None:
            library = self._spare()
        self._held[holder] = library
        return library, known

    def leave(self, holder: object) -> None:
        """Give the holder's copy back; from any thread, and while garbage is collected."""
        self._left.append(holder)

    def borrow(self) -> Any:
        """Take a copy that nobody else gets until it is given back."""
        self._collect()
        return self._free.pop() if self._free else self._load()

    def give_back(self, library: Any) -> None:
        """Return a borrowed copy."""
        self._free.append(library)

    def _spare(self) -> Any:
        if self._free:
            return self._free.pop()
        if len(self._held) < MOST:
            return self._load()
        return self._held.popitem(last=False)[1]

    def _collect(self) -> None:
        while self._left:
            library = self._held.pop(self._left.popleft(), None)
            if library is not None:
                self._free.append(library)
