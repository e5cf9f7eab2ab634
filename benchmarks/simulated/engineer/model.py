"""The chat model: messages in, a call of a tool, or a reply in the asked form, out."""

import json
from collections.abc import Sequence

from langchain_core.messages import BaseMessage
from pydantic import Field

from langgraft._core.canonical import text_digest
from langgraft.benchmarks.simulated.chat import Reply, Sampling, SimulatedChatModel
from langgraft.benchmarks.simulated.data_scientist.asked import read_prompt
from langgraft.benchmarks.simulated.data_scientist.dice import Dice
from langgraft.benchmarks.simulated.data_scientist.model import answer
from langgraft.benchmarks.simulated.engineer.asides import ASIDES, aside
from langgraft.benchmarks.simulated.engineer.bench import bench_of
from langgraft.benchmarks.simulated.engineer.conversation import Conversation, read_conversation
from langgraft.benchmarks.simulated.engineer.moves import next_move
from langgraft.benchmarks.simulated.engineer.researching import next_reply
from langgraft.benchmarks.simulated.engineer.window import read_window
from langgraft.benchmarks.simulated.engineer.writing import engineer_desk

MODEL_NAME = "simulated-engineer"


class SimulatedEngineer(SimulatedChatModel):
    """A rule-based engineer that works step by step. It is not a language model.

        model = SimulatedEngineer(seed=42)
        agent = build_chain_agent(model, competition=…, sandbox=…, memory=memory)

    It reads messages only: the task, notes recalled from memory where there are any, and what
    came of what it did. The package's docstring says what it can do and what it gets wrong.
    """

    ignorance: float = Field(default=1.0, ge=0, le=2)
    """Factor on the rates of its habits and slips: 0 makes no mistake, 1 those documented."""
    model_name: str = MODEL_NAME

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str | Reply:
        """Do the next step, or answer what is asked aside."""
        now = read_conversation(messages)
        if now is not None:
            return self._work(now, sampling)
        if messages and (window := read_window(messages[0].text)) is not None:
            dice = Dice(sampling.seed, sampling.sampled, window.digest, sampling.sample)
            return next_reply(window, engineer_desk(window.asked, dice, self.ignorance))
        if messages and (asked := read_prompt(messages[0].text, ASIDES)) is not None:
            digest = text_digest(json.dumps(messages[0].text))
            return aside(
                asked,
                Dice(sampling.seed, sampling.sampled, digest, sampling.sample),
                self.ignorance,
            )
        return answer(
            messages,
            seed=sampling.seed,
            sampled=sampling.sampled,
            ignorance=self.ignorance,
            sample=sampling.sample,
        )

    def _work(self, now: Conversation, sampling: Sampling) -> str | Reply:
        dice = Dice(sampling.seed, sampling.sampled, now.digest, sampling.sample)
        desk = engineer_desk(now.asked, dice, self.ignorance)
        move = next_move(now, desk, bench_of(now.turns))
        offered = all(call.name in sampling.tools for call in move.calls)
        return move if offered else move.text
