"""Worlds: tasks, observations, rewards and grades. They know nothing of memory or models."""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.environments.babyai import BabyAI, BabyAIEnvironment
    from langgraft.environments.competitions import (
        Board,
        Competition,
        CompetitionReport,
        GradingReport,
        Registry,
        Thresholds,
        Validity,
        check_submission,
        grade_jsonl,
        grade_submission,
        prepare_competition,
    )
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
    "Board",
    "Competition",
    "CompetitionReport",
    "GradingReport",
    "Registry",
    "Reset",
    "TextEnvironment",
    "TextTask",
    "TextWorldFactory",
    "Thresholds",
    "Transition",
    "Validity",
    "check_submission",
    "grade_jsonl",
    "grade_submission",
    "prepare_competition",
]

_TEXT = "langgraft.environments.text"
_BABYAI = "langgraft.environments.babyai"
_COMPETITIONS = "langgraft.environments.competitions"
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
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
        "check_submission": _COMPETITIONS,
        "grade_jsonl": _COMPETITIONS,
        "grade_submission": _COMPETITIONS,
        "prepare_competition": _COMPETITIONS,
    },
)
