"""The chat model: messages in, a reply in the asked form out."""

from collections.abc import Sequence
from typing import Final

from langchain_core.messages import BaseMessage
from pydantic import Field

from langgraft.benchmarks.simulated.chat import Sampling, SimulatedChatModel
from langgraft.benchmarks.simulated.conversation import Dice, harmless_reply
from langgraft.benchmarks.simulated.data_scientist.reviewing import (
    write_diagnosis,
    write_novelty,
    write_review,
)
from langgraft.benchmarks.simulated.data_scientist.tasks import (
    FilledPrompt,
    dice_for,
    read_prompt,
)
from langgraft.benchmarks.simulated.data_scientist.writer import writer_for
from langgraft.benchmarks.simulated.judging import judging_reply, shown_novelty

MODEL_NAME = "simulated-data-scientist"
KINDS: Final = (
    "tree_draft",
    "tree_improve",
    "tree_debug",
    "tree_merge",
    "tree_draft_current",
    "tree_improve_current",
    "tree_debug_current",
    "tree_review",
    "diagnose",
    "diagnose_by_example",
)
"""Prompts that are understood, by the names they ship under."""
_AT_A_LOSS: Final = (
    "I can only work on machine-learning competitions, and I do not understand this."
)


class SimulatedDataScientist(SimulatedChatModel):
    """A rule-based writer of machine-learning programs. It is not a language model.

        model = SimulatedDataScientist(seed=42)
        agent = build_tree_agent(model, competition=…, sandbox=…, memory=memory)

    It reads messages only: the task, the data's preview, notes recalled from memory where there
    are any, and what came of a program. What it can do, and what it gets wrong, is
    in `docs/simulated-models.md`.
    """

    ignorance: float = Field(default=1.0, ge=0, le=2)
    """Factor on the rates of its habits: 0 makes no mistake, 1 those that are documented."""
    model_name: str = MODEL_NAME

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str:
        """Write a program, review one, diagnose or judge."""
        return answer(messages, sampling, self.ignorance)


def answer(messages: Sequence[BaseMessage], sampling: Sampling, ignorance: float) -> str:
    """Return the reply to a conversation, in the form that is asked for."""
    texts = [message.text for message in messages]
    for text in texts:
        if (shown := shown_novelty(text)) is not None:
            return write_novelty(shown)
        if (judged := judging_reply(text)) is not None:
            return judged
        if (asked := read_prompt(text, KINDS)) is not None:
            dice = dice_for(sampling.seed, texts, sampled=sampling.sampled, sample=sampling.sample)
            return _replied(asked, dice, ignorance)
    return harmless_reply("\n".join(texts), "", _AT_A_LOSS)


def _replied(asked: FilledPrompt, dice: Dice, ignorance: float) -> str:
    if asked.kind.startswith("diagnose"):
        return write_diagnosis(asked)
    if asked.kind == "tree_review":
        return write_review(asked, dice)
    writer = writer_for(asked, dice, ignorance)
    stage = asked.kind.removeprefix("tree_").removesuffix("_current")
    if stage == "debug":
        program = writer.repair(asked.part("code"), asked.part("output"))
    elif stage == "improve":
        program = writer.improve(asked.part("code"), asked.part("attempts"))
    elif stage == "merge":
        program = writer.merge(asked.part("code"), asked.part("partner"), asked.part("attempts"))
    else:
        program = writer.draft(asked.part("attempts"))
    return f"{program.plan}\n\n```python\n{program.code.rstrip()}\n```\n"
