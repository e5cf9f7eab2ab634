"""Outcomes of conditions to verdicts: estimates, contrasts, corrections, controls, power.

It knows items, runs and conditions, and nothing of memory, logs or plans. `compare` takes outcomes
in any form and returns a `Comparison`; docs/statistics.md says what its numbers mean. Of numbers with
another range than 0 to 1, or of several at once, ask `compare_measures`.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.benchmarks.comparison.contrasts import Comparison, Contrast, compare
    from langgraft.benchmarks.comparison.estimates import (
        Estimate,
        OrderEffects,
        mean_estimate,
        order_effects,
        paired_difference,
        proportion,
    )
    from langgraft.benchmarks.comparison.measures import (
        Measure,
        MeasureContrast,
        Measured,
        compare_measures,
    )
    from langgraft.benchmarks.comparison.outcomes import Metric, Spread, spread_of
    from langgraft.benchmarks.comparison.power import detectable_difference, planned_difference
    from langgraft.benchmarks.comparison.verdicts import Gate, Verdict, holm

_MODULES = {
    "contrasts": ("Comparison", "Contrast", "compare"),
    "estimates": (
        "Estimate",
        "OrderEffects",
        "mean_estimate",
        "order_effects",
        "paired_difference",
        "proportion",
    ),
    "measures": ("Measure", "MeasureContrast", "Measured", "compare_measures"),
    "outcomes": ("Metric", "Spread", "spread_of"),
    "power": ("detectable_difference", "planned_difference"),
    "verdicts": ("Gate", "Verdict", "holm"),
}

__getattr__, __dir__ = lazy_exports(
    __name__, {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names}
)

__all__ = [
    "Comparison",
    "Contrast",
    "Estimate",
    "Gate",
    "Measure",
    "MeasureContrast",
    "Measured",
    "Metric",
    "OrderEffects",
    "Spread",
    "Verdict",
    "compare",
    "compare_measures",
    "detectable_difference",
    "holm",
    "mean_estimate",
    "order_effects",
    "paired_difference",
    "planned_difference",
    "proportion",
    "spread_of",
]
