"""Parts of the installed packages replaced for the length of a call, for the calling thread alone."""

import io
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Any, Self, TextIO


@contextmanager
def replaced(owner: Any, name: str, ours: Callable[..., Any]) -> Iterator[None]:
    """Put `ours` in the place of a function while the block runs.

    Others who call it from their own threads meanwhile get what was there. Where there is no such
    function, as another version may have none, nothing is done.
    """
    theirs = getattr(owner, name, None)
    if theirs is None:
        yield
        return
    here = threading.get_ident()

    def chosen(*args: Any, **kwargs: Any) -> Any:
        return (ours if threading.get_ident() == here else theirs)(*args, **kwargs)

    setattr(owner, name, chosen)
    try:
        yield
    finally:
        setattr(owner, name, theirs)


class Quiet(list[str]):
    """Keeps what this thread prints; what others print meanwhile goes where it should.

    PDDL's translator takes `sys.stdout` from the whole process for as long as it works.
    """

    def __enter__(self) -> Self:
        """Begin to keep."""
        self._split = sys.stdout = _Split(sys.stdout)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """Give back what was taken."""
        self.extend(self._split.end())
        if sys.stdout is self._split:
            sys.stdout = self._split.before


class _Split(io.TextIOBase):
    def __init__(self, before: TextIO) -> None:
        super().__init__()
        self.before = before
        self._kept: io.StringIO | None = io.StringIO()
        self._here = threading.get_ident()

    def write(self, text: str) -> int:
        if self._kept is not None and threading.get_ident() == self._here:
            return self._kept.write(text)
        return self.before.write(text)

    def flush(self) -> None:
        if self._kept is None or threading.get_ident() != self._here:
            self.before.flush()

    def end(self) -> list[str]:
        kept, self._kept = self._kept, None
        return kept.getvalue().splitlines() if kept else []

    def __getattr__(self, name: str) -> Any:
        return getattr(self.before, name)
