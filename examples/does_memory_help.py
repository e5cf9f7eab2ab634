"""Does memory help a help desk agent? `langgraft ablate examples.does_memory_help:experiment`.

The agent tries fixes until one works. The model is simulated: it tries them in a random order, unless its
prompt shows which one has worked on that device. With `model="openai:gpt-4.1-mini"` a language model plays.
"""

import random
import re
from collections.abc import Sequence
from typing import Any

from langchain.agents import create_agent
from langchain_core.messages import BaseMessage

from langgraft import MemoryMiddleware, MemoryProvider
from langgraft.benchmarks.ablation import Experiment, Task
from langgraft.benchmarks.simulated.chat import Reply, Sampling, SimulatedChatModel, ToolUse
from langgraft.memory.model import BLOCK_START

FIXES = ("restart it", "update it", "replace the cable", "clear the cache", "call the vendor")
WORKS = {
    device: FIXES[place % 5] for place, device in enumerate(("wifi", "printer", "phone", "vpn"))
}


def try_fix(device: str, fix: str) -> str:
    """Try a fix on a device."""
    return "it works again" if WORKS.get(device) == fix else "still broken"


def build(memory: MemoryProvider[Any], model: Any) -> Any:
    """The agent; `memory` is the only thing that differs between conditions."""
    return create_agent(model, [try_fix], middleware=[MemoryMiddleware(memory)])


def score(task: Task, output: Any) -> bool:  # noqa: ARG001
    """Whether the first fix worked."""
    tried = [message for message in output["messages"] if message.type == "tool"]
    return bool(tried) and tried[0].text == "it works again"


class TriesFixes(SimulatedChatModel):
    """Tries fixes in an order by its seed, and what has worked before first."""

    model_name: str = "tries-fixes"

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> Reply:
        """Try the next fix, or say that it is done."""
        if messages[-1].text == "it works again":
            return Reply("Fixed.")
        prompt = next(message.text for message in messages if message.type == "human")
        asked, _, notes = prompt.partition(BLOCK_START)
        device = next(each for each in WORKS if each in asked)
        told = re.findall(rf'"device":"{device}","fix":"([\w ]+)"\}}\)\n.*works again', notes)
        draw = random.Random(f"{sampling.seed} {asked.strip()}")  # noqa: S311
        order = draw.sample(FIXES, len(FIXES))
        tried = sum(message.type == "tool" for message in messages)
        fix = list(dict.fromkeys([*told, *order]))[min(tried, len(FIXES) - 1)]
        return Reply("", (ToolUse("try_fix", {"device": device, "fix": fix}),))


def _tasks(day: str) -> list[Task]:
    return [Task(f"{day}-{each}", f"It is {day} and the {each} is down", each) for each in WORKS]


experiment = Experiment(
    build=build,
    train=_tasks("monday"),
    test=[task for day in ("tuesday", "friday", "sunday") for task in _tasks(day)],
    score=score,
    model=lambda seed: TriesFixes(seed=seed),
    calls=4,
)
