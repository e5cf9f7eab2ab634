"""Replies in six fields, and runs of MLAB with models that give them by rule."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from tree_cases import RuleModel, sandbox

from langgraft.environments.competitions.competition import Competition
from langgraft.graphs.mlab import build_mlab_agent
from langgraft.nodes.artifacts import Artifacts, MemoryArtifacts
from langgraft.nodes.mlab.tools import CHANGING, performer
from langgraft.nodes.workbench.log import (
    Action,
    EventLog,
    Observation,
    RunInput,
    RunOutput,
    append_events,
    read_log,
)
from langgraft.nodes.workbench.sessions import Workspaces

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


def edit(script: str, instruction: str = "Write it.", thought: str = "So I do it.") -> str:
    """Write the reply that has a script edited in place."""
    given = {"script_name": script, "edit_instruction": instruction, "save_name": script}
    return six("Edit Script (AI)", given, thought)


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
        number = int(step.removeprefix("step-"))
        return replies[number] if number < len(replies) else FINAL

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


class Bench:
    """A live workspace, and the log of what is done in it."""

    def __init__(self, competition: Competition, *, seconds: float = 20.0) -> None:
        self.sandbox = sandbox(competition)
        self.workspaces = Workspaces(
            self.sandbox,
            performer(competition),
            changing=CHANGING,
            metric="auc-roc",
            seconds=seconds,
        )
        self.artifacts = MemoryArtifacts()
        self.log = EventLog("")

    def do(self, tool: str, *, answer: Any = None, **given: Any) -> Observation:
        """Do an action, and note it."""
        arguments: dict[str, Any] = {"input": given} | ({"answer": answer} if answer else {})
        place = len(self.log.events)
        action = Action(id=place, source="agent", name=tool, arguments=arguments)
        seen = self.workspaces.run("bench", self.log, action)
        reference = append_events(self.artifacts, self.log.reference, [action, seen])
        self.log = read_log(self.artifacts, reference)
        return seen

    def edit(self, path: str, code: str) -> Observation:
        """Have a script edited in place."""
        return self.do(
            "Edit Script (AI)", answer=code, script_name=path, edit_instruction="", save_name=path
        )

    def run(self, code: str) -> Observation:
        """Run a program."""
        self.edit("do.py", code)
        return self.do("Execute Script", script_name="do.py")

    def close(self) -> None:
        """End it."""
        self.workspaces.close()
        self.sandbox.close()
