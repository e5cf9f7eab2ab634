"""Worlds: tasks, observations, rewards and grades. They know nothing of memory or models."""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.environments.babyai import BabyAI, BabyAIEnvironment
    from langgraft.environments.text import (
        Reset,
        TextEnvironment,
        TextTask,
        TextWorldFactory,
        Transition,
    )

__all__ = [
    "BabyAI",
    "BabyAIEnvironment",
    "Reset",
    "TextEnvironment",
    "TextTask",
    "TextWorldFactory",
    "Transition",
]

_TEXT = "langgraft.environments.text"
_BABYAI = "langgraft.environments.babyai"
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "BabyAI": _BABYAI,
        "BabyAIEnvironment": _BABYAI,
        "Reset": _TEXT,
        "TextEnvironment": _TEXT,
        "TextTask": _TEXT,
        "TextWorldFactory": _TEXT,
        "Transition": _TEXT,
    },
)
