"""The transplant study: what of a memory helps in another domain, its mechanism or its content (memory-transplants).

plan      what is compared: systems, architectures, contents, modes, budgets, solvers, controls
domains   where the problems of a domain come from, and their splits
session   one run: a solver at a stream of problems
study     the study as the harness sees it
analysis  what the runs show
report    the page
trial     without a plan: one transplant between two agents, measured
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.benchmarks.transplant.trial import (
        TransplantTrial,
        ameasure_transplant,
        measure_transplant,
    )
    from langgraft.memory.transplanting import Transplant, transplant, transplant_items

_MODULES = {
    "langgraft.benchmarks.transplant.trial": (
        "TransplantTrial",
        "ameasure_transplant",
        "measure_transplant",
    ),
    "langgraft.memory.transplanting": ("Transplant", "transplant", "transplant_items"),
}

__getattr__, __dir__ = lazy_exports(
    __name__, {name: module for module, names in _MODULES.items() for name in names}
)

__all__ = [
    "Transplant",
    "TransplantTrial",
    "ameasure_transplant",
    "measure_transplant",
    "transplant",
    "transplant_items",
]
