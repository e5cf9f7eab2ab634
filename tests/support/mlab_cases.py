"""Replies in six fields, and runs of MLAB with models that give them by rule."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tree_cases import RuleModel, sandbox

from langgraft.environments.competitions.competition import Competition
from langgraft.graphs.mlab import build_mlab_agent
from langgraft.nodes.artifacts import Artifacts, MemoryArtifacts
from langgraft.nodes.workbench.log import EventLog, read_log
from langgraft.nodes.workbench.state import RunInput, RunOutput

INPUT: RunInput = {"episode_id": "run"}


def six(tool: str, given: Mapping[str, Any] | str = "", thought: str = "So I do it.") -> str:
    """Write a reply in six fields."""
    written = given if isinstance(given, str) else json.dumps(given)
    return (
        "Reflection: It went as it did.\n"
        "Research Plan and Status: 1. Look. 2. Try.\n"
        "Fact Check: Nothing is guessed.\n"
        f"Thought: {thought}\n"
        f"Action: {tool}\n"
        f"Action Input: {written or '{}'}\n"
    )


def edit(script: str, instruction: str = "Write it.") -> str:
    """Write the reply that has a script edited in place."""
    given = {"script_name": script, "edit_instruction": instruction, "save_name": script}
    return six("Edit Script (AI)", given)


def execute(script: str, thought: str = "So I run it.") -> str:
    """Write the reply that runs a script."""
    return six("Execute Script", {"script_name": script}, thought)


FINAL = six("Final Answer", {"final_answer": "Done."})


def fenced(code: str) -> str:
    """Write the reply of an editor."""
    return f"```python\n{code}```\n"


def stepping(*replies: str, aside: Sequence[str] = (), **others: str) -> RuleModel:
    """Make a model that gives a reply for each step, and then ends the run.

    Args:
        replies: For each step the reply of the agent.
        aside: What it says to an edit, one after the other.
        others: What it says to other questions: `understand`, `summarize`, `diagnose`, `judge`.
    """
    edits = iter(aside)

    def rule(_text: str, sample: str) -> str:
        _, step, what, *_ = sample.split("/")
        if what == "edit":
            return next(edits)
        if what in others:
            return others[what]
        return replies[int(step)] if int(step) < len(replies) else FINAL

    return RuleModel(rule=rule)


def ran(
    competition: Competition,
    model: RuleModel,
    *,
    artifacts: Artifacts | None = None,
    **settings: Any,
) -> tuple[RunOutput, EventLog]:
    """Run MLAB to its end."""
    kept = artifacts or MemoryArtifacts()
    with sandbox(competition) as place:
        agent = build_mlab_agent(
            model, competition=competition, sandbox=place, artifacts=kept, **settings
        )
        out: Any = agent.invoke(INPUT)
    return out, read_log(kept, out["log"])
