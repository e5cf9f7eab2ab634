"""What the core alone does: run by a Python that has the wheel and its dependencies, and nothing else."""

import asyncio
import importlib
import pkgutil
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from langchain.agents import create_agent
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatResult
from langchain_core.prompts import ChatPromptTemplate

import langgraft
from langgraft import MemoryMiddleware, open_memory, with_memory

EXTRAS = ("matplotlib", "minigrid", "pandas", "psycopg", "pytest", "scipy", "sklearn")


class Told(GenericFakeChatModel):
    """A chat model that keeps what it was sent."""

    seen: list[str] = []  # noqa: RUF012  (a field of pydantic)

    def _generate(self, messages: list[BaseMessage], *args: Any, **kwargs: Any) -> ChatResult:
        self.seen.append(" ".join(str(message.content) for message in messages))
        return super()._generate(messages, *args, **kwargs)


def scripted() -> Told:
    """Return a model with two answers."""
    return Told(messages=iter([AIMessage("Restart the router."), AIMessage("As on Monday.")]))


def agents_remember(folder: Path) -> None:
    """An agent is told in its second turn what it did in the first, sync and async, over a file."""
    model = scripted()
    with open_memory(folder / "memory.sqlite") as memory:
        agent: Any = create_agent(model, [], middleware=[MemoryMiddleware(memory)])
        agent.invoke({"messages": [("user", "The wifi is down")]})
        asyncio.run(agent.ainvoke({"messages": [("user", "The wifi is down again")]}))
        assert "Restart the router." not in model.seen[0]
        assert "Restart the router." in model.seen[1]
        memory.export_items(folder / "bank.jsonl")
    said = run("memory", "show", str(folder / "bank.jsonl"))
    assert "Restart the router." in said, said


def chains_remember(folder: Path) -> None:
    """So is a chain."""
    model = scripted()
    prompt = ChatPromptTemplate.from_messages([("user", "{input}")])
    with open_memory(folder / "chain.sqlite") as memory:
        chain = with_memory(prompt | model, memory)
        chain.invoke({"input": "The wifi is down"})
        chain.invoke({"input": "The wifi is down again"})
    assert "Restart the router." in model.seen[1]


def run(*arguments: str) -> str:
    """Run a command as users do; return what it printed."""
    command = [sys.executable, "-m", "langgraft", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout


def core_imports() -> int:
    """Import all modules of the rooms that need no extra; return how many there are.

    `langgraft.memory.testing` is what `langgraft.testing` shows, which is an extra.
    """
    count = 0
    for room in ("_core", "cli", "graphs", "memory", "nodes"):
        package = importlib.import_module(f"langgraft.{room}")
        for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not found.name.startswith("langgraft.memory.testing"):
                importlib.import_module(found.name)
                count += 1
    return count


if __name__ == "__main__":
    assert not [name for name in EXTRAS if find_spec(name)], "this environment is not bare"
    assert "site-packages" in langgraft.__file__, langgraft.__file__
    for name in langgraft.__all__:
        getattr(langgraft, name)
    with tempfile.TemporaryDirectory() as place:
        agents_remember(Path(place))
        chains_remember(Path(place))
    run("--help")
    run("plans")
    version = sys.version.split()[0]
    told = f"langgraft {langgraft.__version__} on Python {version}: memory works, {core_imports()}"
    print(told, "modules import without an extra")
