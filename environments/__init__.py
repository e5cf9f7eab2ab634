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
    from langgraft.environments.textworld import TextWorldGames

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
    "TextWorldGames",
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

_MODULES = {
    "alfworld": ("ALFWorld", "AlfworldEnvironment", "GeneratedALFWorld"),
    "babyai": ("BabyAI", "BabyAIEnvironment"),
    "competitions": (
        *("Attempt", "Board", "Competition", "CompetitionReport", "GradingReport", "Registry"),
        *("Thresholds", "Validity", "aattempt", "attempt", "check_submission", "grade_jsonl"),
        *("grade_submission", "prepare_competition"),
    ),
    "sandboxes": (
        *("CachedSandbox", "Command", "DockerSandbox", "ExecutionResult", "Frame", "Job", "Kernel"),
        *("Limits", "ProgramError", "PythonProgram", "Sandbox", "SubprocessSandbox", "write_files"),
    ),
    "text": ("Reset", "TextEnvironment", "TextTask", "TextWorldFactory", "Transition"),
    "textworld": ("TextWorldGames",),
}
__getattr__, __dir__ = lazy_exports(
    __name__,
    {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names},
)
