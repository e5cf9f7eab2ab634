"""How soon a run of a step agent had a validation metric, and how good it became."""

import math
from collections.abc import Sequence

from langgraft.benchmarks.mle.behaviour.progress import FirstValid, oriented
from langgraft.benchmarks.mle.behaviour.step_bugs import is_successful
from langgraft.nodes.workbench.projection import StepRecord


def valid_metric(step: StepRecord) -> float | None:
    """Return the validation metric that a successful execution reported, if it is a number."""
    metric = step.metric
    return metric if metric is not None and math.isfinite(metric) and is_successful(step) else None


def first_valid_step(steps: Sequence[StepRecord], *, longest: int = 0) -> FirstValid:
    """Find the first step with a valid metric, from 0.

    A run without one is censored at its number of steps, or at `longest` if that is more: runs end
    where their agent ends them, and by its own length one that gave up at once would look quick.
    """
    for place, step in enumerate(steps):
        if valid_metric(step) is not None:
            return FirstValid(place, censored=False)
    return FirstValid(max(len(steps), longest), censored=True)


def best_metric_so_far(steps: Sequence[StepRecord], *, lower_is_better: bool) -> tuple[float, ...]:
    """Return the best valid metric up to each step, so that more is better; NaN before the first."""
    curve, best = [], math.nan
    for step in steps:
        if (metric := valid_metric(step)) is not None:
            value = oriented(metric, lower_is_better=lower_is_better)
            best = value if math.isnan(best) else max(best, value)
        curve.append(best)
    return tuple(curve)
