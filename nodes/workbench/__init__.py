"""What agents that work step by step share: an event log, a live workspace, limits, memory.

events, steps           what happens, and a run as the list of its steps
log, projection         a log by reference, as JSON Lines, and as steps
state, desk             what the graph's state holds, and what all nodes share
kernel_calls            talking with a live workspace, sync or async
performing              from an action to its observation
files, inside           files of a workspace, and what is done with them inside the sandbox
sessions                workspaces, kept between steps and built anew where they are gone
live_kernels, holding   the table of their kernels, and sync and async talks with them
limits, metering        steps, hours, money
start, recall           the beginning of a run, and of each attempt
failures, remember      what memory is taught of executions
validation, submit,     the end: what is submitted, and the program that made it
solution
restoring               memory, where a run goes on
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.nodes.artifacts import Artifacts, FolderArtifacts, MemoryArtifacts
    from langgraft.nodes.workbench.events import Action, Event, Observation
    from langgraft.nodes.workbench.limits import RunLimits, TokenPrices
    from langgraft.nodes.workbench.log import EventLog, log_lines, read_log
    from langgraft.nodes.workbench.projection import steps_of
    from langgraft.nodes.workbench.restoring import (
        arestore_run_memory,
        restore_run_memory,
        run_bank,
    )
    from langgraft.nodes.workbench.solution import solution_of
    from langgraft.nodes.workbench.state import RunInput, RunOutput, RunState
    from langgraft.nodes.workbench.steps import StepRecord

__all__ = [
    "Action",
    "Artifacts",
    "Event",
    "EventLog",
    "FolderArtifacts",
    "MemoryArtifacts",
    "Observation",
    "RunInput",
    "RunLimits",
    "RunOutput",
    "RunState",
    "StepRecord",
    "TokenPrices",
    "arestore_run_memory",
    "log_lines",
    "read_log",
    "restore_run_memory",
    "run_bank",
    "solution_of",
    "steps_of",
]

_HERE = "langgraft.nodes.workbench"
_ARTIFACTS = "langgraft.nodes.artifacts"
_EVENTS = f"{_HERE}.events"
_LIMITS = f"{_HERE}.limits"
_LOG = f"{_HERE}.log"
_RESTORING = f"{_HERE}.restoring"
_STATE = f"{_HERE}.state"
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "Action": _EVENTS,
        "Artifacts": _ARTIFACTS,
        "Event": _EVENTS,
        "EventLog": _LOG,
        "FolderArtifacts": _ARTIFACTS,
        "MemoryArtifacts": _ARTIFACTS,
        "Observation": _EVENTS,
        "RunInput": _STATE,
        "RunLimits": _LIMITS,
        "RunOutput": _STATE,
        "RunState": _STATE,
        "StepRecord": f"{_HERE}.steps",
        "TokenPrices": _LIMITS,
        "arestore_run_memory": _RESTORING,
        "log_lines": _LOG,
        "read_log": _LOG,
        "restore_run_memory": _RESTORING,
        "run_bank": _RESTORING,
        "solution_of": f"{_HERE}.solution",
        "steps_of": f"{_HERE}.projection",
    },
)
