"""What is measured of every run, whatever its agent."""

import math
from collections import Counter
from dataclasses import dataclass

from langgraft.benchmarks.mle.behaviour.progress import FirstValid


@dataclass(frozen=True)
class RunBehavior:
    """How one run behaved, in the numbers that all agents have."""

    steps: int
    valid: int
    """Steps whose program worked: of a tree valid programs, else successful executions."""
    buggy: int
    """Steps that failed, by `bugs` or `step_bugs`."""
    bug_rate: float | None
    cumulative_bugs: tuple[int, ...]
    best_so_far: tuple[float, ...]
    """More is better; NaN before the first valid metric."""
    first_valid: FirstValid
    package_imports_pooled: float
    operators_pooled: float
    late_errors: int | None
    """`None`: there is no such number."""
    errors_recur: bool | None
    """`None` for a run without late steps."""
    error_types: Counter[str]
    package_steps: Counter[str]

    @property
    def final(self) -> float | None:
        """The best validation metric at the end, more is better; `None` without any."""
        last = self.best_so_far[-1] if self.best_so_far else math.nan
        return None if math.isnan(last) else last
