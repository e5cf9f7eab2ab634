"""Texts and files by reference: what a checkpoint must not hold."""

from typing import Protocol


class Artifacts(Protocol):
    """Keeps contents by their SHA-256; keeping the same content twice keeps it once."""

    def keep(self, content: bytes) -> str:
        """Keep a content and return its reference: the SHA-256, in hexadecimal digits."""
        ...

    def read(self, reference: str) -> bytes:
        """Return a content.

        Raises:
            InputError: Nothing is kept under that reference, or it is damaged.
        """
        ...
