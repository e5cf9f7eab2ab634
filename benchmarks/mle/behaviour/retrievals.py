"""What memory put into the prompts of a run (mle-agent-memory §4.6)."""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from langgraft.memory.items import MemoryItem
from langgraft.nodes.search.journal import Journal, JournalNode

RESOURCE: Final = "resource"
"""The kind of entries that tell of time or memory running out; the paper's "timeout errors"."""


@dataclass(frozen=True, slots=True)
class Share:
    """A share and what it is a share of."""

    count: int
    of: int

    @property
    def value(self) -> float | None:
        """The share, 0 to 1; `None` of nothing."""
        return self.count / self.of if self.of else None

    def __add__(self, other: "Share") -> "Share":
        """Pool two shares: counts are added, so that long runs weigh more."""
        return Share(self.count + other.count, self.of + other.of)


NONE: Final = Share(0, 0)


def retrieved(node: JournalNode) -> bool:
    """Say whether a program was written with recalled memory in its prompt."""
    return bool(node.recalled)


def written_with_memory(journal: Journal) -> Share:
    """Return the share of buggy programs that were written with recalled memory.

    One reading of "retrieved frequently (74% of buggy nodes)": the retrieval belongs to the
    prompt that the buggy program came from, and did not keep it from failing.
    """
    return Share(sum(map(retrieved, journal.buggy)), len(journal.buggy))


def repaired_with_memory(journal: Journal) -> Share:
    """Return the share of buggy programs that a repair was written for with recalled memory.

    The other reading: the retrieval is made *for* the buggy program, when it is debugged. All
    buggy programs are counted, those that the search never came back to included.
    """
    helped = {node.parent_id for node in journal.nodes if retrieved(node)}
    return Share(sum(node.id in helped for node in journal.buggy), len(journal.buggy))


def resource_retrievals(journal: Journal) -> Share:
    """Return the share of retrievals with at least one resource entry among what they found."""
    return _resource(journal.nodes)


def resource_retrievals_of_buggy(journal: Journal) -> Share:
    """The same, of the retrievals that buggy programs were written with ("55/95 retrievals")."""
    return _resource(journal.buggy)


def resource_retrievals_for_buggy(journal: Journal) -> Share:
    """The same, of the retrievals made to repair a buggy program: the other reading."""
    return _resource(node for node in journal.nodes if journal.stage(node) == "debug")


def _resource(nodes: Iterable[JournalNode]) -> Share:
    found = [node for node in nodes if retrieved(node)]
    return Share(sum(RESOURCE in node.recalled_kinds for node in found), len(found))


def entry_kinds(items: Iterable[MemoryItem]) -> Counter[str]:
    """Count the entries of a store by kind; those that have none are `other`."""
    return Counter(str(item.metadata.get("kind") or "other") for item in items)


def resource_entries(items: Iterable[MemoryItem]) -> Share:
    """Return the share of a store's entries that are resource entries ("548 of 1,348")."""
    kinds = entry_kinds(items)
    return Share(kinds[RESOURCE], kinds.total())
