"""Agents, tasks and a simulated model to try ablations with: small enough that all is known beforehand.

Every word has a code. The model knows that of `fay` by itself, finds any where it is asked to look it up, as
training tasks do, and reads the others from notes: the last note on a word counts. It does what a note says
with IMPORTANT, and believes a note that says that the one above no longer holds, or the next one is wrong.
"""

import hashlib
import json
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import BaseMessage
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda
from langgraph.graph import END, START, MessagesState, StateGraph
from memory_cases import make_item

from langgraft.benchmarks.ablation import Ablation, Experiment, Task, ablate
from langgraft.benchmarks.simulated.chat import Sampling, SimulatedChatModel
from langgraft.memory.bank_format import write_items
from langgraft.memory.model import BLOCK_END, BLOCK_START, strip_block
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import RecallContext
from langgraft.nodes import with_memory
from langgraft.nodes.middleware import MemoryMiddleware

CODES: Mapping[str, int] = {
    word: 101 + n for n, word in enumerate(("ada", "bob", "cyd", "dan", "eve", "fay"))
}
KNOWN = "fay"
MEMORY = "trajectory"

_CODE = re.compile(r"the code of (\w+) is (\d+)")


class Clerk(SimulatedChatModel):
    """Answers what the code of a word is, by rules that the module tells."""

    model_name: str = "clerk"
    unsteady: float = 0.0
    """Share of questions that are answered wrong, by seed."""

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str:
        """Answer the last question."""
        text = "\n".join(each.text for each in messages)
        if "when_to_use" in text:
            ended = "success" if "Outcome: success" in text else "failure"
            about, code = _CODE.findall(text)[-1]
            lesson = f"{ended} taught that the code of {about} is {code}"
            return json.dumps([{"when_to_use": f"asked for the code of {about}", "lesson": lesson}])
        question, (_, _, notes) = strip_block(text), text.partition(BLOCK_START)
        notes, _, _ = notes.partition(BLOCK_END)
        (word,) = re.findall(r"code of (\w+)\?", question)[-1:] or ("nobody",)
        if "IMPORTANT" in notes:
            return "REFUSED"
        code = str(CODES.get(word, 0)) if word == KNOWN or "Look up" in question else "0"
        for note, (about, told) in zip(_CODE.split(notes)[3::3], _CODE.findall(notes), strict=True):
            believed = "no longer holds" not in note and "it is wrong" not in notes
            if about == word and believed:
                code = told
        draw = hashlib.sha256(f"{self.seed} {sampling.sample} {word}".encode()).digest()[0] / 256
        return f"the code of {word} is {999 if draw < self.unsteady else code}"


def lookups(*words: str) -> list[Task]:
    """Tasks at which the code is looked up."""
    return [
        Task(f"train-{word}", f"Look up: what is the code of {word}?", word, CODES[word])
        for word in words
    ]


def asked(*words: str, times: int = 1) -> list[Task]:
    """Tasks at which it has to be known."""
    return [
        Task(f"test-{word}-{n}", f"({n}) Tell me, what is the code of {word}?", word, CODES[word])
        for word in words
        for n in range(times)
    ]


def answer(output: Any) -> str:
    """Return what an agent of any form said."""
    if isinstance(output, Mapping):
        output = output["messages"][-1]
    return str(getattr(output, "text", output))


def is_right(task: Task, output: Any) -> bool:
    """Whether the code is in the answer."""
    return answer(output).endswith(f" is {task.reference}")


# Agents -----------------------------------------------------------------------------------


def middleware_agent(memory: MemoryProvider[Any], model: BaseChatModel) -> Any:
    """Make an agent of LangChain with the middleware."""
    return create_agent(model, [], middleware=[MemoryMiddleware(memory)])


def state_graph(memory: MemoryProvider[Any], model: BaseChatModel) -> Any:
    """Make a plain graph, whose one node asks a model with memory."""
    remembering = with_memory(model, memory)

    async def node(state: MessagesState) -> dict[str, Any]:
        return {"messages": [await remembering.ainvoke(state["messages"])]}

    graph = StateGraph(MessagesState)
    graph.add_node("node", node)
    graph.add_edge(START, "node")
    graph.add_edge("node", END)
    return graph.compile()


def chain(memory: MemoryProvider[Any], model: BaseChatModel) -> Any:
    """Make a chain that is given a text."""
    prompt = ChatPromptTemplate.from_messages([("system", "You are a clerk."), ("human", "{q}")])
    return RunnableLambda(lambda text: {"q": text}) | with_memory(prompt | model, memory)


def function(memory: MemoryProvider[Any], model: BaseChatModel) -> Callable[[str], str]:
    """Make a function that asks memory itself, and files nothing."""

    def agent(text: str) -> str:
        recalled = memory.provide(
            text, RecallContext(domain="codes", task_id="mine", episode_id="mine")
        )
        return model.invoke(f"{recalled.text}\n{text}").text

    return agent


def async_function(memory: MemoryProvider[Any], model: BaseChatModel) -> Callable[[str], Any]:
    """Make one that waits."""

    async def agent(text: str) -> str:
        recalled = await memory.aprovide(
            text, RecallContext(domain="codes", task_id="mine", episode_id="mine")
        )
        return (await model.ainvoke(f"{recalled.text}\n{text}")).text

    return agent


AGENTS: Mapping[str, Callable[..., Any]] = {
    "create_agent": middleware_agent,
    "graph": state_graph,
    "chain": chain,
    "function": function,
    "async function": async_function,
}


def experiment(**fields: Any) -> Experiment:
    """Make an experiment; what is not given is small, and memory of `ada` and `bob` helps in it."""
    bank = {"episodes", "bank"} & fields.keys()
    usual: dict[str, Any] = {
        "build": function,
        "train": () if bank else lookups("ada", "bob"),
        "test": asked("ada", "bob", KNOWN),
        "score": is_right,
        "memory": MEMORY,
        "conditions": (),
        "replicates": 2,
        "model": lambda seed: Clerk(seed=seed),
    }
    return Experiment(**{**usual, **fields})


def tried(out: Path, **fields: Any) -> Ablation:
    """Run such an experiment."""
    chosen = {
        name: fields.pop(name) for name in ("harm", "credit", "against", "batch") if name in fields
    }
    return ablate(experiment(**fields), out=out, **chosen)


def results(found: Ablation, condition: str) -> list[Mapping[str, Any]]:
    """Return all attempts under a condition."""
    return next(each.attempts for each in found.analysis.arms if each.arm.name == condition)


def bank_file(path: Path, **notes: str) -> Path:
    """Write a bank of one item for each note; what it is found by is that note, too."""
    items = [
        make_item(
            name, text=text, key=text, type="operational", episode_id=f"e-{name}", order_index=n
        )
        for n, (name, text) in enumerate(notes.items())
    ]
    write_items(path, items)
    return path
