"""Worlds: tasks, observations, rewards and grades. They know nothing of memory or models."""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.environments.alfworld import ALFWorld, AlfworldEnvironment, GeneratedALFWorld
    from langgraft.environments.babyai import BabyAI, BabyAIEnvironment
    from langgraft.environments.competitions import (
        Attempt,
        Board,
        Competition,
        CompetitionReport,
        GradingReport,
        Registry,
        Thresholds,
        Validity,
        aattempt,
        attempt,
        check_submission,
        grade_jsonl,
        grade_submission,
        prepare_competition,
    )
    from langgraft.environments.sandboxes import (
        CachedSandbox,
        Command,
        DockerSandbox,
        ExecutionResult,
        Frame,
        Job,
        Kernel,
        Limits,
        ProgramError,
        PythonProgram,
        Sandbox,
        SubprocessSandbox,
        write_files,
    )
    from langgraft.environments.text import (
        Reset,
        TextEnvironment,
        TextTask,
        TextWorldFactory,
        Transition,
    )

__all__ = [
    "ALFWorld",
    "AlfworldEnvironment",
    "Attempt",
    "BabyAI",
    "BabyAIEnvironment",
    "Board",
    "CachedSandbox",
    "Command",
    "Competition",
    "CompetitionReport",
    "DockerSandbox",
    "ExecutionResult",
    "Frame",
    "GeneratedALFWorld",
    "GradingReport",
    "Job",
    "Kernel",
    "Limits",
    "ProgramError",
    "PythonProgram",
    "Registry",
    "Reset",
    "Sandbox",
    "SubprocessSandbox",
    "TextEnvironment",
    "TextTask",
    "TextWorldFactory",
    "Thresholds",
    "Transition",
    "Validity",
    "aattempt",
    "attempt",
    "check_submission",
    "grade_jsonl",
    "grade_submission",
    "prepare_competition",
    "write_files",
]

_TEXT = "langgraft.environments.text"
_ALFWORLD = "langgraft.environments.alfworld"
_BABYAI = "langgraft.environments.babyai"
_SANDBOXES = "langgraft.environments.sandboxes"
_COMPETITIONS = "langgraft.environments.competitions"
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "ALFWorld": _ALFWORLD,
        "AlfworldEnvironment": _ALFWORLD,
        "GeneratedALFWorld": _ALFWORLD,
        "Attempt": _COMPETITIONS,
        "BabyAI": _BABYAI,
        "BabyAIEnvironment": _BABYAI,
        "Board": _COMPETITIONS,
        "Competition": _COMPETITIONS,
        "CompetitionReport": _COMPETITIONS,
        "GradingReport": _COMPETITIONS,
        "Registry": _COMPETITIONS,
        "Reset": _TEXT,
        "TextEnvironment": _TEXT,
        "TextTask": _TEXT,
        "TextWorldFactory": _TEXT,
        "Thresholds": _COMPETITIONS,
        "Transition": _TEXT,
        "Validity": _COMPETITIONS,
        "aattempt": _COMPETITIONS,
        "attempt": _COMPETITIONS,
        "check_submission": _COMPETITIONS,
        "grade_jsonl": _COMPETITIONS,
        "grade_submission": _COMPETITIONS,
        "prepare_competition": _COMPETITIONS,
        "CachedSandbox": _SANDBOXES,
        "Command": _SANDBOXES,
        "DockerSandbox": _SANDBOXES,
        "ExecutionResult": _SANDBOXES,
        "Frame": _SANDBOXES,
        "Job": _SANDBOXES,
        "Kernel": _SANDBOXES,
        "Limits": _SANDBOXES,
        "ProgramError": _SANDBOXES,
        "PythonProgram": _SANDBOXES,
        "Sandbox": _SANDBOXES,
        "SubprocessSandbox": _SANDBOXES,
        "write_files": _SANDBOXES,
    },
)
