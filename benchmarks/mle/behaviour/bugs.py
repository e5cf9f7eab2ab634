"""How many programs failed, and when (mle-agent-memory §4.3, §4.4, App. B)."""

from langgraft.nodes.search.journal import Journal


def bug_rate(journal: Journal) -> float | None:
    """Return the share of a run's steps that are buggy, 0 to 1; `None` for a run without steps."""
    return len(journal.buggy) / len(journal.nodes) if journal.nodes else None


def cumulative_bugs(journal: Journal, steps: int | None = None) -> tuple[int, ...]:
    """Count the buggy programs up to each step.

    The paper's Figure 3 does not say what becomes of runs that end early. Here the last count is
    carried forward: a run that ended makes no more bugs, and leaving it out would make a mean
    over runs fall.

    Args:
        journal: The run.
        steps: Length of the answer; `None` for that of the run.
    """
    length = len(journal.nodes) if steps is None else steps
    counts, count = [], 0
    for place in range(length):
        count += place < len(journal.nodes) and journal.nodes[place].is_buggy
        counts.append(count)
    return tuple(counts)


def late_errors(journal: Journal, *, split: int = 10) -> int:
    """Count the buggy programs from step `split` on (Table 9: from 10).

    Steps are places in the journal, from 0.
    """
    return sum(node.is_buggy for node in journal.nodes[split:])
