"""Published figures of mle-agent-memory, recomputed by our own functions: what is off.

`docs/published-mle.md` sets them beside our definitions.

forms       what a printed figure can have come from: counts, errors, differences
outcomes    Tables 1 and 5, §4.2
behavior    Tables 2, 3 and 6, Figure 3, §4.3 and 4.4
errors      Tables 7 and 9, appendix B
timelines   appendix C
cases       §4.6
"""

from functools import cache

from langgraft.benchmarks.published import Finding
from recomputed.mle.behavior import (
    section_4_3,
    section_4_4,
    table_2,
    table_3,
    table_6,
)
from recomputed.mle.cases import section_4_6
from recomputed.mle.errors import appendix_b, table_7, table_9
from recomputed.mle.outcomes import section_4_2, table_1, table_5
from recomputed.mle.timelines import appendix_c


@cache
def findings() -> tuple[Finding, ...]:
    """Recompute the published figures, in the paper's order."""
    return (
        *table_1(),
        *section_4_2(),
        *section_4_3(),
        *table_2(),
        *table_3(),
        *section_4_4(),
        *table_5(),
        *section_4_6(),
        *table_6(),
        *table_7(),
        *table_9(),
        *appendix_b(),
        *appendix_c(),
    )
