"""What agents that work step by step share: an event log, a live workspace, limits, memory.

log                       what happens, by reference and as JSON Lines; a run as the list of its steps; the graph's state
deps                      what all nodes depend on, and pay for models
limits                    steps, hours, money
sessions                  live workspaces, kept between steps, and rebuilt
performing                what is asked of them: from an action to its observation
files, file_tool_program  files of a workspace, and the program in the sandbox that tools run
start                     the beginning of a run, and its end: what is submitted, and the program that made it
memory                    what memory is asked as an attempt begins, and taught of executions
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.nodes.artifacts import Artifacts, FolderArtifacts, MemoryArtifacts
    from langgraft.nodes.workbench.limits import RunLimits, TokenPrices
    from langgraft.nodes.workbench.log import (
        Action,
        Event,
        EventLog,
        Observation,
        RunInput,
        RunOutput,
        RunState,
        StepRecord,
        log_lines,
        read_log,
        steps_of,
    )
    from langgraft.nodes.workbench.start import (
        arestore_run_memory,
        restore_run_memory,
        run_bank,
        solution_of,
    )

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

_MODULES = {
    "artifacts": ("Artifacts", "FolderArtifacts", "MemoryArtifacts"),
    "workbench.limits": ("RunLimits", "TokenPrices"),
    "workbench.log": (
        "Action",
        "Event",
        "EventLog",
        "Observation",
        "RunInput",
        "RunOutput",
        "RunState",
        "StepRecord",
        "log_lines",
        "read_log",
        "steps_of",
    ),
    "workbench.start": ("arestore_run_memory", "restore_run_memory", "run_bank", "solution_of"),
}
__getattr__, __dir__ = lazy_exports(
    __name__,
    {name: f"langgraft.nodes.{module}" for module, names in _MODULES.items() for name in names},
)
