"""What an agent tells memory of the competition that it works at."""

from typing import Final

from langgraft.environments.competitions.competition import Competition
from langgraft.nodes.replies import encodable

LONGEST_INSTRUCTION: Final = 500
"""Most characters of the task as memory is asked about it, and keeps it with each episode."""


def domain(competition: Competition) -> str:
    """Return the domain of a competition's episodes."""
    return f"mle/{competition.id}"


def instruction(competition: Competition) -> str:
    """Return the task in a line: its name, its metric and how its description begins."""
    text = f"{competition.name} (metric: {competition.grader.name}). {competition.description}"
    line = " ".join(encodable(text).split())
    if len(line) <= LONGEST_INSTRUCTION:
        return line
    return line[: LONGEST_INSTRUCTION - 1].rstrip() + "…"
