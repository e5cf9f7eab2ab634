"""Which errors a run met, and whether it met them again (mle-agent-memory App. B, Table 7)."""

from collections import Counter
from typing import Final

from langgraft.nodes.search.journal import Journal, JournalNode

EARLY: Final = 10
"""Steps that are early: 0 to 9, as in Tables 7 and 9."""

TIMEOUT: Final = "TimeoutError"
"""The class that AIDE's interpreter gives a program that ran out of time."""

EXHAUSTED: Final = "MemoryError"
"""The class for a program that ran out of memory and was ended from outside."""


def error_type(node: JournalNode) -> str | None:
    """Return the class of the exception that ended a program; `None` where none did.

    The paper's "error type" could be the class or class and message; its traces print both. It is
    the class here: messages name columns and line numbers, and hardly ever recur. A program that
    was ended from outside left no exception; it gets the class of what it ran out of. A buggy
    program that ended by itself, without a metric or a valid submission, has no class.
    """
    if not node.is_buggy:
        return None
    if node.exc_type:  # tracebacks name the module of a package's own, AIDE's journals do not
        return node.exc_type.rpartition(".")[2] or node.exc_type
    return TIMEOUT if node.timed_out else EXHAUSTED if node.oom else None


def error_types(journal: Journal) -> Counter[str]:
    """Count the buggy programs by the class of their exception; those without one are left out."""
    return Counter(name for node in journal.nodes if (name := error_type(node)))


def recurring_errors(journal: Journal, *, split: int = EARLY) -> frozenset[str]:
    """Return the classes met both before step `split` and from it on (Table 7)."""
    early = {error_type(node) for node in journal.nodes[:split]}
    late = {error_type(node) for node in journal.nodes[split:]}
    return frozenset(name for name in early & late if name)


def errors_recur(journal: Journal, *, split: int = EARLY) -> bool | None:
    """Say whether any class recurs; `None` for a run that has no late steps."""
    return bool(recurring_errors(journal, split=split)) if len(journal.nodes) > split else None
