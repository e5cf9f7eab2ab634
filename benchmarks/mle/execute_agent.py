"""One run of an agent, from its beginning or from where a process was killed.

Whatever a run needs to go on lies in one folder:

    <folder>/checkpoints.sqlite   the graph's checkpoints: references and numbers
    <folder>/artifacts/           programs, outputs, submissions and the log, by reference
    <folder>/usage.jsonl          the tokens of each used reply

Memory lies elsewhere and is only a cache of what was filed: it is made anew of the bank that the
run began with and the deltas that its log holds.
"""

import asyncio
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from langchain_core.runnables import RunnableConfig

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft._core.files import make_directory
from langgraft._core.lazy import require
from langgraft.benchmarks.harness.usage import UsageFile, metered
from langgraft.benchmarks.mle.agents import agent_named
from langgraft.benchmarks.mle.agents.base import (
    Agent,
    AgentProgress,
    AgentResult,
    Graph,
    Left,
    Parts,
    Place,
)
from langgraft.benchmarks.mle.sandboxes import Lent, packages_of, weights_of
from langgraft.graphs.building import ARTIFACTS
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.artifacts import FolderArtifacts

Listener = Callable[[AgentProgress], None]
"""Is told of each program or step once it is done."""


@dataclass(frozen=True)
class Found:
    """What a run came to."""

    came: AgentResult
    submission: bytes | None
    usage: Mapping[str, JSON]
    """Of all used replies, those of killed processes included."""
    billing: Mapping[str, JSON]
    """What this process paid for."""
    resumed: bool
    """Whether this process went on with what another one had begun."""


async def find(
    parts: Parts,
    folder: Path,
    *,
    episode_id: str,
    seed: int,
    best: Path | None = None,
    listen: Listener | None = None,
) -> Found:
    """Run an agent, or go on with the run whose files lie in a folder.

    Args:
        parts: What the run is made of.
        folder: Where its files lie; made where it is not there.
        episode_id: Its name, the same each time: samples of the model are drawn by it.
        seed: Of the agent's chance.
        best: Where it may show what it has while it goes on; `None`: nowhere.
        listen: Told of each program or step once it is done; of all of them again on going on.
            `None`: nobody is told, and nothing is read for it.

    Raises:
        MissingExtraError: The checkpointer is not installed.
        InfrastructureError: A model, engine or disk failed; calling again goes on.
        InputError: The folder is damaged, or something cannot be used.
    """
    await asyncio.to_thread(make_directory, folder)
    artifacts = FolderArtifacts(folder / ARTIFACTS)
    purpose = "A search that can be resumed"
    require("langgraph.checkpoint.sqlite.aio", extra="mle", purpose=purpose)
    from langgraft.benchmarks.mle import checkpoints  # noqa: PLC0415  (the extra)

    agent = agent_named(parts.settings.name)
    begin = {"episode_id": episode_id, "seed": seed}
    with closing(UsageFile(folder / "usage.jsonl")) as ledger, metered(ledger) as usage:
        async with (
            checkpoints.open_checkpoints(folder / "checkpoints.sqlite") as saver,
            Lent(parts.sandbox) as sandbox,
        ):
            told = await asyncio.to_thread(packages_of, parts.plan, sandbox)
            found = await asyncio.to_thread(weights_of, parts.plan)
            parts = replace(parts, sandbox=sandbox, packages=told, weights=found)
            graph = agent.graph(parts, Place(artifacts, saver, best))
            before = await graph.aget_state(_CONFIG)
            resumed = bool(before.tasks or before.values)
            begun = "begun" in before.values  # or memory is still as it was given
            # Not `next`, which lacks a node whose writes are kept.
            if before.tasks and begun and parts.learn and parts.memory is not None:
                left = Left(artifacts, before.values)
                await _refuse_strangers(agent, parts.memory, left, episode_id)
                await agent.restore(parts.memory, left)
            telling = _Telling(agent, artifacts, listen)
            final = await _run(graph, None if resumed else begin, telling)
        came = await asyncio.to_thread(agent.read, Left(artifacts, final), episode_id)
        return Found(
            came=came,
            submission=artifacts.read(came.submission) if came.submission else None,
            usage=usage.totals(),
            billing=usage.billing(),
            resumed=resumed,
        )


_CONFIG: Final = RunnableConfig(configurable={"thread_id": "search"})
"""A folder holds one run."""


async def _run(
    graph: Graph, begin: Mapping[str, Any] | None, telling: "_Telling"
) -> Mapping[str, Any]:
    """Run a graph to its end; what it ended with is the last it says."""
    final: Mapping[str, Any] = (await graph.aget_state(_CONFIG)).values
    if begin is None and final.get("done"):
        telling.tell(final)
        return final
    async for final in graph.astream(begin, _CONFIG, stream_mode="values", durability="sync"):
        telling.tell(final)
    return final


class _Telling:
    """Tells of each program or step once."""

    def __init__(self, agent: Agent, artifacts: FolderArtifacts, listen: Listener | None) -> None:
        self._agent = agent
        self._artifacts = artifacts
        self._listen = listen
        self._told = 0

    def tell(self, state: Mapping[str, Any]) -> None:
        if self._listen is None:
            return
        done = self._agent.told(Left(self._artifacts, state))
        for each in done[self._told :]:
            self._listen(each)
        self._told = len(done)


async def _refuse_strangers(
    agent: Agent, memory: MemoryProvider[Any], left: Left, name: str
) -> None:
    """Refuse to take a bank back to where a run was if others have learned from it since.

    Raises:
        InputError: They have: what they learned would be lost.
    """
    known = (await asyncio.to_thread(agent.bank_of, left)).items
    found = (await memory.acontent()).items.values()
    others = {
        item.episode_id
        for item in found
        if item.id not in known and not item.episode_id.startswith(f"{name}/")
    }
    if others:
        msg = (
            f"memory has learned from others since the search {name!r} was stopped, such as"
            f" {min(others)!r}: going on would take that back; search anew in another folder"
        )
        raise InputError(msg)
