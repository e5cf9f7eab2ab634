"""The chat model: messages in, a reply in the asked form out."""

from collections.abc import Sequence

from langchain_core.messages import BaseMessage
from pydantic import Field

from langgraft._core.canonical import text_digest
from langgraft.benchmarks.simulated.chat import Sampling, SimulatedChatModel
from langgraft.benchmarks.simulated.data_scientist.asked import Asked, read_prompt
from langgraft.benchmarks.simulated.data_scientist.desk import desk_for
from langgraft.benchmarks.simulated.data_scientist.dice import Dice
from langgraft.benchmarks.simulated.data_scientist.drafting import write_draft
from langgraft.benchmarks.simulated.data_scientist.improving import write_improvement
from langgraft.benchmarks.simulated.data_scientist.repairing import write_repair
from langgraft.benchmarks.simulated.data_scientist.reviewing import (
    write_diagnosis,
    write_novelty,
    write_review,
)
from langgraft.benchmarks.simulated.judging import judging_reply, shown_novelty
from langgraft.memory.recall import strip_block

MODEL_NAME = "simulated-data-scientist"


class SimulatedDataScientist(SimulatedChatModel):
    """A rule-based writer of machine-learning programs. It is not a language model.

        model = SimulatedDataScientist(seed=42)
        agent = build_tree_agent(model, competition=…, sandbox=…, memory=memory)

    It reads messages only: the task, the data's preview, notes recalled from memory where there
    are any, and what came of a program. The package's docstring says what it can do and what it
    gets wrong.
    """

    ignorance: float = Field(default=1.0, ge=0, le=2)
    """Factor on the rates of its habits: 0 makes no mistake, 1 those that are documented."""
    model_name: str = MODEL_NAME

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str:
        """Write a program, review one, diagnose or judge."""
        return answer(
            messages,
            seed=sampling.seed,
            sampled=sampling.sampled,
            ignorance=self.ignorance,
            sample=sampling.sample,
        )


def answer(
    messages: Sequence[BaseMessage],
    *,
    seed: int,
    sampled: bool,
    ignorance: float = 1.0,
    sample: str = "",
) -> str:
    """Return the reply to a conversation.

    Args:
        messages: The whole conversation.
        seed: Picks the draws.
        sampled: Whether to draw at all, or to take what is most likely.
        ignorance: Factor on the rates of habits.
        sample: Name of the model call; another name is another draw.
    """
    texts = [message.text for message in messages]
    for text in texts:
        if (shown := shown_novelty(text)) is not None:
            return write_novelty(shown)
        if (judged := judging_reply(text)) is not None:
            return judged
        if (asked := read_prompt(text)) is not None:
            return _replied(asked, _dice(texts, seed, sampled=sampled, sample=sample), ignorance)
    return _harmless("\n".join(texts))


def _replied(asked: Asked, dice: Dice, ignorance: float) -> str:
    if asked.kind == "diagnose":
        return write_diagnosis(asked)
    if asked.kind == "tree_review":
        return write_review(asked, dice)
    desk = desk_for(asked, dice, ignorance)
    if asked.kind == "tree_debug":
        return write_repair(desk, asked.part("code"), asked.part("output"))
    if asked.kind == "tree_improve":
        return write_improvement(desk, asked.part("code"), asked.part("attempts"))
    return write_draft(desk, asked.part("attempts"))


def _dice(texts: Sequence[str], seed: int, *, sampled: bool, sample: str) -> Dice:
    # Without what notes leave behind, a blank line: with and without them draws are the same.
    read = " ".join(" ".join(strip_block(text).split()) for text in texts)
    digest = text_digest(read.encode("utf-8", "replace").decode("utf-8"))
    return Dice(seed, sampled, digest, sample)


def _harmless(prompt: str) -> str:
    """Answer what it does not understand, in the form that is asked for."""
    words = prompt.lower()
    if "json list" in words or "json array" in words:
        return "[]"
    if "json" in words:
        return "{}"
    return "I can only work on machine-learning competitions, and I do not understand this."
