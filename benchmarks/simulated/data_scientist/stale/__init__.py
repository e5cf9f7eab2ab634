"""Habits from libraries as they used to be: what the sandbox's versions no longer take.

Each one was run in the sandbox (scikit-learn 1.9, pandas 3.1, numpy 2.4, lightgbm 4.7, xgboost
3.2) and fails there as its `error` says, and so does each wrong repair, in one way or another.
"""

from typing import Final

from langgraft.benchmarks.simulated.data_scientist.habits import Habit
from langgraft.benchmarks.simulated.data_scientist.stale.arrays import NUMPY, PANDAS
from langgraft.benchmarks.simulated.data_scientist.stale.boosters import BOOSTERS
from langgraft.benchmarks.simulated.data_scientist.stale.estimators import ESTIMATORS
from langgraft.benchmarks.simulated.data_scientist.stale.scikit_learn import SCIKIT_LEARN
from langgraft.benchmarks.simulated.data_scientist.stale.trees import TREES

STALE: Final[tuple[Habit, ...]] = (*SCIKIT_LEARN, *ESTIMATORS, *TREES, *PANDAS, *NUMPY, *BOOSTERS)
"""All of them, in the order in which a program is spoiled."""
