"""The occurrences of many terms in arrays: made of many documents at once, or read from files."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from langgraft.memory.rankers.documents import Occurrences, mapped

END: Final = "\x00"
"""Stands behind the words of a text; in none of them."""

_LOOKS: Final = 32
"""Terms sought in the text of a file before a dictionary of all is made."""


class Columns:
    """The occurrences of many terms, term after term: made in bulk, or read from files.

    Each is handed out once: from then on whoever took it keeps it.

    Args:
        places: Which of them a term is; or the terms one after the other, each between line breaks. Of
            these a dictionary is made once more than a few are asked for: it takes as long as hundreds
            of looks.
        starts: Where in `slots` and `counts` each begins, and where the last one ends.
        slots: Of the documents that hold a term, ascending.
        counts: How often they hold it.
        present: How many of them are there.
    """

    def __init__(
        self,
        places: dict[str, int] | str,
        starts: NDArray[Any],
        slots: NDArray[Any],
        counts: NDArray[Any],
        present: NDArray[Any],
    ) -> None:
        self._places = places
        self._looked: set[str] = set()
        self._starts = starts
        self._slots = slots
        self._counts = counts
        self._present = present

    @classmethod
    def of(cls, words: Sequence[str], first: int) -> tuple["Columns", NDArray[np.intp]]:
        """Count the terms of documents in slots from `first` on, and the tokens of each.

        Args:
            words: Of all documents, one after the other, with `END` behind each.
            first: The slot of the first one.
        """
        vocabulary: defaultdict[str, int] = defaultdict(None, {END: 0})
        vocabulary.default_factory = vocabulary.__len__  # a new term gets the next number
        numbers = np.fromiter(map(vocabulary.__getitem__, words), np.uint32, count=len(words))
        lengths = np.diff(np.flatnonzero(numbers == 0), prepend=-1) - 1
        slots = np.repeat(np.arange(first, first + len(lengths), dtype=np.int32), lengths)
        terms = numbers[numbers != 0]
        order = _stably_sorted(terms)
        terms, slots = terms[order], slots[order]
        # Slots rise within a term, so that all occurrences in a document are side by side.
        fresh = np.ones(len(terms), dtype=bool)
        fresh[1:] = (terms[1:] != terms[:-1]) | (slots[1:] != slots[:-1])
        heads = np.flatnonzero(fresh)
        present = np.bincount(terms[heads], minlength=len(vocabulary))
        counts = np.diff(heads, append=len(terms))
        starts = np.concatenate([[0], np.cumsum(present)])
        places = dict(vocabulary)
        del places[END]
        return cls(places, starts, slots[heads], counts, present), lengths

    def take(self, term: str) -> Occurrences | None:
        """Return the occurrences of a term, once."""
        place = self._place(term)
        if place is None:
            return None
        part = slice(self._starts[place], self._starts[place + 1])
        slots, counts = self._slots[part].astype(np.intp), self._counts[part].astype(np.float64)
        return Occurrences(slots, counts, int(self._present[place]))

    def terms(self) -> list[str]:
        """List the terms that were not taken."""
        return list(self._all())

    def _place(self, term: str) -> int | None:
        if isinstance(self._places, dict) or len(self._looked) == _LOOKS:
            return self._all().pop(term, None)
        at = -1 if term in self._looked else self._places.find(f"\n{term}\n")
        self._looked.add(term)
        return None if at < 0 else self._places.count("\n", 0, at)

    def _all(self) -> dict[str, int]:
        """Return which of them each term is that was not taken."""
        if isinstance(self._places, str):
            terms = self._places.split("\n")[1:-1]
            places = dict(zip(terms, range(len(terms)), strict=True))
            for term in self._looked:
                places.pop(term, None)
            self._places = places
        return self._places

    @staticmethod
    def save(folder: Path, terms: Mapping[str, Occurrences]) -> None:
        """Write the occurrences of all terms."""
        columns = terms.values()
        (folder / "terms.txt").write_text("\n".join(terms), encoding="utf-8")
        starts = np.cumsum([0, *(each.slots.size for each in columns)], dtype=np.int64)
        np.save(folder / "starts.npy", starts)
        none = np.empty(0)
        for name in ("slots", "counts"):
            parts = (getattr(each, name) for each in columns)
            whole = np.concatenate([none, *parts]).astype(np.int32)
            least = np.min_scalar_type(int(whole.max(initial=0)))  # counts nearly always fit a byte
            np.save(folder / f"{name}.npy", whole.astype(least))
        present = [each.documents for each in columns]
        np.save(folder / "present.npy", np.array(present, dtype=np.int32))

    @classmethod
    def load(cls, folder: Path) -> "Columns":
        """Return what `save` wrote; the files are read where a term is asked for."""
        words = (folder / "terms.txt").read_text(encoding="utf-8")
        names = ("starts", "slots", "counts", "present")
        columns = (mapped(folder / f"{name}.npy") for name in names)
        return cls(f"\n{words}\n" if words else "\n", *columns)


def _stably_sorted(numbers: NDArray[np.uint32]) -> NDArray[np.intp]:
    """Return the places of numbers in their order, those of equal ones ascending.

    By halves: numpy sorts numbers of 16 bits by their digits, several times as fast as others.
    """
    order = np.argsort(numbers.astype(np.uint16), kind="stable")
    upper = (numbers >> 16).astype(np.uint16)
    if upper.any():
        order = order[np.argsort(upper[order], kind="stable")]
    return order
