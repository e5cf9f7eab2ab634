"""What is measured of agents that work step by step (mle-agent-memory Tables 3 and 9)."""

from typing import Final

from langgraft.benchmarks.mle import measure as of_all
from langgraft.benchmarks.mle.behaviour.step_summary import StepBehavior
from langgraft.benchmarks.mle.measure import Measure, longest, share
from langgraft.benchmarks.mle.run_record import Search
from langgraft.benchmarks.mle.run_set import Searches


def _run(search: Search) -> StepBehavior:
    assert isinstance(search.behavior, StepBehavior)
    return search.behavior


def _all_tools(searches: Searches) -> float:
    """Count the actions that any run of the study took."""
    return float(len({name for run in searches.step_runs for name in run.behavior.tools}))


def _most_commands(searches: Searches) -> float:
    """Return the commands of the run that issued most: no run has more kinds than commands."""
    return float(max((run.behavior.commands for run in searches.step_runs), default=0))


_TOOLS: Final = Measure(
    "tools", "N_eff of tools", "actions", lambda s: _run(s).tools_number, _all_tools
)
_COMMANDS: Final = Measure(
    "commands",
    "N_eff of commands",
    "commands",
    lambda s: _run(s).commands_number,
    _most_commands,
)
_NORMALIZED: Final = Measure(
    "normalized_commands",
    "N_eff of commands, normalized",
    "commands",
    lambda s: _run(s).normalized_commands_number,
    _most_commands,
    confirmatory=False,
)
_OTHERS: Final = (
    of_all.ABOVE_MEDIAN,
    of_all.VALID_SUBMISSION,
    of_all.ERROR_RECURRENCE,
    share(
        "execution_bug_rate",
        "bug rate of executions",
        lambda s: _run(s).execution_bug_rate,
        "lower",
        confirmatory=False,
    ),
    share(
        "failed_steps",
        "failed steps",
        lambda s: _run(s).failed_step_rate,
        "lower",
        confirmatory=False,
    ),
    share(
        "late_error_rate",
        "late-phase errors, of late steps",
        lambda s: _run(s).late_error_rate,
        "lower",
        confirmatory=False,
    ),
    Measure(
        "steps_used",
        "steps used",
        "steps",
        lambda s: s.behavior.steps,
        longest,
        confirmatory=False,
    ),
)

CHAIN_MEASURES: Final = (
    of_all.BUG_RATE,
    of_all.first_valid("first valid step"),
    _TOOLS,
    _COMMANDS,
    of_all.OPERATORS,
    of_all.PACKAGES,
    of_all.LATE_ERRORS,
    of_all.BEST_METRIC,
    of_all.ANY_MEDAL,
    *_OTHERS,
    _NORMALIZED,
)
"""The declared family comes first."""

MLAB_MEASURES: Final = tuple(
    each for each in CHAIN_MEASURES if each not in {_COMMANDS, _NORMALIZED}
)
"""The same but for commands: MLAB's tools take names of files, and no code."""
