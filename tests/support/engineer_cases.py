"""Conversations with an engineer, runs of it, and prompts of six fields."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from scientist_cases import PACKAGES, Case, told_bounds
from tree_cases import toy

from langgraft.benchmarks.simulated import SimulatedEngineer
from langgraft.environments.competitions.competition import Competition
from langgraft.memory.recall import render_block
from langgraft.nodes.chain.tools import tool_schemas
from langgraft.nodes.dialogue import SAMPLE
from langgraft.nodes.mlab.tools import Reply, described_tools, read_reply
from langgraft.nodes.prompts import prompt

LOOKED = ("run_bash", {"command": "ls input/"}, "Look.", "train.csv")
MEASURED = ("run_python", {"code": "print(1)"}, "Measure.", "1")
Done = tuple[str, dict[str, Any], str, str]
"""A call: its tool, its arguments, what was said beside it, what it showed."""


def _noted(notes: Sequence[str]) -> str:
    block = render_block(tuple(notes))
    return f"{block}\n" if block else ""


def conversation(
    case: Case, *done: Done, notes: Sequence[str] = (), left: int = 20, last: str = ""
) -> list[BaseMessage]:
    """Write what the chain's model is sent after some calls.

    Args:
        case: The competition.
        done: The calls so far.
        notes: What memory recalled.
        left: Steps that are left.
        last: What the user said last, if anything.
    """
    first = prompt("chain_task").render(
        task=case.description.strip(),
        memory=_noted(notes),
        data=case.preview,
        packages=PACKAGES,
    )
    messages: list[BaseMessage] = [
        SystemMessage(prompt("chain_system").render(ending="", shell="")),
        HumanMessage(first),
    ]
    for at, (tool, arguments, said, seen) in enumerate(done):
        call = {"name": tool, "args": arguments, "id": f"call-{at}", "type": "tool_call"}
        messages.append(AIMessage(said, tool_calls=[call]))
        messages.append(ToolMessage(seen, tool_call_id=f"call-{at}"))
    if last:
        messages.append(HumanMessage(last))
    end = told_bounds(left)
    messages[-1] = messages[-1].model_copy(update={"content": f"{messages[-1].text}\n\n{end}"})
    return messages


def replied(messages: list[BaseMessage], sample: str = "", **settings: Any) -> AIMessage:
    """Return the reply of an engineer that has the chain's tools."""
    model = SimulatedEngineer(**settings).bind_tools(tool_schemas())
    return model.invoke(messages, config={"metadata": {SAMPLE: sample}})


def program_of(reply: AIMessage) -> str:
    """Return the program that a reply writes, however it is run; empty where it writes none."""
    for call in reply.tool_calls:
        told = call["args"]
        if call["name"] == "run_bash" and "PROGRAM" in told["command"]:
            return str(told["command"]).partition("'PROGRAM'\n")[2].partition("\nPROGRAM\n")[0]
        return str(told.get("code") or told.get("file_text") or told.get("new_str") or "")
    return ""


def six_prompt(case: Case, *steps: str, notes: Sequence[str] = (), left: int = 20) -> str:
    """Write what MLAB's model is sent after some steps."""
    form = prompt("mlab_format").render()
    task = prompt("mlab_task").render(
        task=case.description.strip(),
        tools=described_tools(),
        data=case.preview,
        memory=_noted(notes),
        packages=PACKAGES,
        ending="",
        window="3",
        format=form,
    )
    turn = prompt("mlab_turn").render(
        steps="\n\n".join(steps) or "(none yet)",
        bounds=told_bounds(left),
        number=str(len(steps)),
    )
    return f"{task.strip()}\n\n{turn.strip()}\n"


def step(reply: str, seen: str) -> str:
    """Write a step as the window shows it."""
    return f"## Step 0\n{reply.strip()}\nObservation:\n```\n{seen}\n```"


def six_reply(text: str, sample: str = "", **settings: Any) -> tuple[str, Reply]:
    """Return a reply in six fields, and what it says."""
    model = SimulatedEngineer(**settings)
    said = model.invoke(text, config={"metadata": {SAMPLE: sample}}).text
    return said, read_reply(said)


def edited(code: str, instruction: str, sample: str = "", **settings: Any) -> str:
    """Return a script after an edit."""
    asked = prompt("mlab_edit").render(name="train_1.py", code=code, instruction=instruction)
    model = SimulatedEngineer(**settings)
    said = model.invoke(asked, config={"metadata": {SAMPLE: sample}}).text
    return said.partition("```python\n")[2].rpartition("```")[0]


def competition_of(case: Case, folder: Path) -> Competition:
    """Make a competition of a case; its answers are not even there."""
    sample = case.folder / "sample_submission.csv"
    return replace(
        toy(folder),
        description=case.description,
        public_dir=case.folder,
        sample_submission=sample,
    )
