"""Answering all that memory asks about an episode, as a part of a talk."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from langgraft.memory.episodes import Episode
from langgraft.memory.questions import Question
from langgraft.nodes.judge import answering
from langgraft.nodes.talking import Talk, spoken


def answering_all(episode: Episode, asked: Sequence[Question]) -> Talk[dict[str, Any]]:
    """Answer questions about an episode.

    Returns:
        `verdicts`, and in `judging` how each question was answered; nothing where none was asked.
    """
    lessons = [lesson.text for lesson in episode.lessons]
    verdicts: list[Any] = []
    judging: list[Any] = []
    for question in asked:
        judgment = yield from spoken(answering(question, lessons), "judge")
        told = asdict(judgment)
        verdicts += told.pop("verdicts")
        judging.append(told)
    return {"verdicts": verdicts, "judging": judging} if asked else {}
