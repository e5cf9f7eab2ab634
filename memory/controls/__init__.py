"""Controls: providers that wrap another one and take away what should matter.

=============  ==========================================  ======================================
name           takes away                                  keeps (memory-transplants §4.5)
=============  ==========================================  ======================================
`random`       relevance: random items of the same bank    how many items, and about how many
                                                           tokens
`random-own`   relevance, and what other domains left:     how many items, while the bank has
               random items of the domain that asks        them, and about how many tokens
`placebo`      meaning: neutral filler                     how many items, and how many tokens
`shuffled`     relevance: the items least like the query   how many items
`write_only`   retrieval: nothing is recalled              reflection, filing and upkeep
`frozen`       learning; recall too, if asked              the bank, as it is
=============  ==========================================  ======================================

The first four recall in place of the provider they wrap, by a seed, and file nothing: they are
for evaluation on a bank that is there. A difference to that provider is then due to *what* is
recalled.
"""

from collections.abc import Mapping
from typing import Final

from langgraft.memory.controls.base import Control, Frozen, WriteOnly
from langgraft.memory.controls.replacements import (
    FILLER,
    Placebo,
    RandomOwn,
    RandomRetrieval,
    Replacement,
    Shuffled,
)

__all__ = [
    "CONTROLS",
    "FILLER",
    "REPLACEMENTS",
    "Control",
    "Frozen",
    "Placebo",
    "RandomOwn",
    "RandomRetrieval",
    "Replacement",
    "Shuffled",
    "WriteOnly",
]

REPLACEMENTS: Final[Mapping[str, type[Replacement]]] = {
    control.name: control for control in (RandomRetrieval, RandomOwn, Placebo, Shuffled)
}
"""The controls that recall something else, by name; each is made with a seed."""

CONTROLS: Final[Mapping[str, type[Control]]] = {
    **REPLACEMENTS,
    WriteOnly.name: WriteOnly,
    Frozen.name: Frozen,
}
"""All controls by name."""
