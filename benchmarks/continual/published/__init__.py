"""Published figures of continual-memory, recomputed: what comes out of the others, what does not.

`docs/published-continual.md` sets them beside our definitions; reports show them beside ours.

printed     what is printed, table by table
findings    a figure, and what comes of recomputing it
transfers   Tables 2, 3 and 5: differences, counts, sums over easy and hard items
backward    Tables 4 and 6
retrieval   Figure 11, appendix C and D, appendix F
"""

from functools import cache

from langgraft.benchmarks.continual.published.backward import tables_4_and_6
from langgraft.benchmarks.continual.published.findings import Finding
from langgraft.benchmarks.continual.published.retrieval import (
    appendix_c,
    appendix_d,
    figure_13,
)
from langgraft.benchmarks.continual.published.transfers import (
    beyond_baseline,
    table_2,
    tables_3_and_5,
)

__all__ = ["Finding", "findings"]


@cache
def findings() -> tuple[Finding, ...]:
    """Recompute the published figures, in the paper's order."""
    return (
        *table_2(),
        *tables_3_and_5(),
        *tables_4_and_6(),
        *beyond_baseline(),
        *appendix_c(),
        *appendix_d(),
        *figure_13(),
    )
