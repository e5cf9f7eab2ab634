"""What a measurement is given, and what it gives back."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Figure:
    """One line of the page: a promise, and what was measured of it."""

    promise: str
    """In our words."""
    how: str
    """Command and size."""
    figure: str
    bound: str
    """What the figure is held against; empty where it is only reported."""
    passed: bool | None
    """`None`: reported, not judged."""


@dataclass(frozen=True, slots=True)
class Setting:
    """Where and how large to measure."""

    work: Path
    """An empty folder to work in."""
    checkout: Path
    """The git checkout that langgraft is imported from."""
    reduced: bool
    """Small sizes, for a check in minutes."""
    say: Callable[[str], None]
    """Tell of progress, in a line."""

    def size(self, full: int, reduced: int) -> int:
        """Return the size to use."""
        return reduced if self.reduced else full


def share(good: int, total: int, wrong: list[str] | None = None) -> str:
    """Write `good of total`, and name what is wrong."""
    named = f": {'; '.join(wrong[:5])}" if wrong else ""
    return f"{good:,} of {total:,}{named}"
