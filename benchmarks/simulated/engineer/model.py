"""The chat model: messages in, a call of a tool, or a reply in the asked form, out."""

from collections.abc import Sequence
from dataclasses import replace

from langchain_core.messages import BaseMessage
from pydantic import Field

from langgraft.benchmarks.simulated.chat import Reply, Sampling, SimulatedChatModel
from langgraft.benchmarks.simulated.conversation import Dice
from langgraft.benchmarks.simulated.data_scientist.model import answer
from langgraft.benchmarks.simulated.data_scientist.notes import habits_for
from langgraft.benchmarks.simulated.data_scientist.tasks import (
    FilledPrompt,
    dice_for,
    read_prompt,
)
from langgraft.benchmarks.simulated.data_scientist.writer import Writer, writer_for
from langgraft.benchmarks.simulated.engineer.moves import next_move, read_conversation
from langgraft.benchmarks.simulated.engineer.researching import (
    AUXILIARY,
    auxiliary_reply,
    next_reply,
    read_window,
)

MODEL_NAME = "simulated-engineer"


class SimulatedEngineer(SimulatedChatModel):
    """A rule-based engineer that works step by step. It is not a language model.

    `model_name` is what logs call it.

        model = SimulatedEngineer(seed=42)
        agent = build_chain_agent(model, competition=…, sandbox=…, memory=memory)

    It reads messages only: the task, notes recalled from memory where there are any, and what
    came of what it did. What it can do, and what it gets wrong, is in
    `docs/simulated-models.md`.
    """

    ignorance: float = Field(default=1.0, ge=0, le=2)
    """Factor on the rates of its habits and slips: 0 makes no mistake, 1 those documented."""
    model_name: str = MODEL_NAME

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str | Reply:
        """Do the next step, or answer what is asked aside."""
        now = read_conversation(messages)
        texts = [message.text for message in messages[:1]] if now is None else now.texts
        dice = dice_for(sampling.seed, texts, sampled=sampling.sampled, sample=sampling.sample)
        if now is not None:
            move = next_move(now, engineer_writer(now.asked, dice, self.ignorance))
            offered = all(call.name in sampling.tools for call in move.calls)
            return move if offered else move.text
        first = "".join(texts)
        if (window := read_window(first)) is not None:
            return next_reply(window, engineer_writer(window.asked, dice, self.ignorance))
        if (asked := read_prompt(first, AUXILIARY)) is not None:
            return auxiliary_reply(asked, dice, self.ignorance)
        return answer(messages, sampling, self.ignorance)


def engineer_writer(asked: FilledPrompt, dice: Dice, ignorance: float) -> Writer:
    """Read the task of an engineer."""
    # In front of `$memory` a blank line ends a part; what comes before memory goes on there.
    after = asked.part("memory")
    task, data = asked.part("task"), asked.part("data")
    chain = asked.kind == "chain_task"
    parts = {
        "task": f"{task}\n\n{after}" if chain else task,
        "data": data if chain else f"{data}\n\n{after}",
        "rules": f"installed, among others: {asked.part('packages')}",
    }
    writer = writer_for(FilledPrompt(asked.kind, parts, asked.notes), dice, ignorance)
    return replace(writer, habits=habits_for(writer.task, endless=False))
