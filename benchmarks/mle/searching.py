"""One search of the tree agent, from its beginning or from where a process was killed.

Whatever a search needs to go on lies in one folder:

    <folder>/checkpoints.sqlite   the graph's checkpoints: references and numbers
    <folder>/artifacts/           programs, outputs, submissions and the journal, by reference
    <folder>/usage.jsonl          the tokens of each used reply

Memory lies elsewhere and is only a cache of what was filed: it is made anew of the bank that the
search began with and the deltas that its journal holds.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.graph.state import CompiledStateGraph

from langgraft._core.canonical import JSON
from langgraft._core.errors import InputError
from langgraft._core.extras import require
from langgraft.benchmarks.harness.files import make_directory
from langgraft.benchmarks.harness.ledger import UsageFile
from langgraft.benchmarks.harness.usage import metered
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.graphs.tree import ARTIFACTS, build_tree_agent
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget
from langgraft.nodes.artifacts import FolderArtifacts
from langgraft.nodes.search.aide_policy import AIDEPolicy
from langgraft.nodes.search.journal import JournalNode
from langgraft.nodes.search.records import Search, read_search
from langgraft.nodes.search.restoring import arestore_memory, bank_of

Listener = Callable[[JournalNode], None]
"""Is told of each program once it is in the journal."""


@dataclass(frozen=True)
class Agent:
    """What a search is made of."""

    plan: MlePlan
    competition: Competition
    sandbox: Sandbox
    code_model: BaseChatModel
    feedback_model: BaseChatModel | None = None
    memory: MemoryProvider[Any] | None = None
    """What is asked, holding what the search begins with; `None`: the search has no memory."""
    learn: bool = True
    """Whether the search files what it meets."""


@dataclass(frozen=True)
class Found:
    """What a search came to."""

    search: Search
    chosen: str
    validation: float | None
    candidates: Sequence[Mapping[str, JSON]]
    submission: bytes | None
    usage: Mapping[str, JSON]
    """Of all used replies, those of killed processes included."""
    billing: Mapping[str, JSON]
    """What this process paid for."""
    resumed: bool
    """Whether this process went on with what another one had begun."""

    @property
    def solution(self) -> JournalNode | None:
        """The program that was chosen."""
        return next((node for node in self.search.nodes if node.id == self.chosen), None)


async def find(
    agent: Agent,
    folder: Path,
    *,
    episode_id: str,
    seed: int,
    best: Path | None = None,
    listen: Listener = lambda _: None,
) -> Found:
    """Search, or go on with the search whose files lie in a folder.

    Args:
        agent: What the search is made of.
        folder: Where its files lie; made where it is not there.
        episode_id: Its name, the same each time: samples of the model are drawn by it.
        seed: Of the policy's chance.
        best: Where `best/` shows the best solution while the search goes on; `None`: nowhere.
        listen: Told of each program once it is in the journal; of all of them again on going on.

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

    begin: dict[str, Any] = {"episode_id": episode_id, "seed": seed}
    with closing(UsageFile(folder / "usage.jsonl")) as ledger, metered(ledger) as usage:
        async with checkpoints.open_checkpoints(folder / "checkpoints.sqlite") as saver:
            graph = build_agent(agent, artifacts, saver, best)
            left = await graph.aget_state(_CONFIG)
            resumed = bool(left.tasks or left.values)
            begun = "begun" in left.values  # or memory is still as it was given
            # Not `next`, which lacks a node whose writes are kept.
            if left.tasks and begun and agent.learn and agent.memory is not None:
                await _refuse_strangers(agent.memory, artifacts, left.values, episode_id)
                await arestore_memory(agent.memory, artifacts, left.values)
            final = await _run(graph, None if resumed else begin, artifacts, listen)
        search = read_search(artifacts, str(final["journal"]), run=episode_id)
        kept = str(final.get("submission") or "")
        return Found(
            search=search,
            chosen=str(final.get("chosen") or ""),
            validation=final.get("metric"),
            candidates=final.get("candidates") or (),
            submission=artifacts.read(kept) if kept else None,
            usage=usage.totals(),
            billing=usage.billing(),
            resumed=resumed,
        )


_CONFIG: Final = RunnableConfig(configurable={"thread_id": "search"})
"""A folder holds one search."""


def build_agent(
    agent: Agent,
    artifacts: FolderArtifacts,
    saver: BaseCheckpointSaver[Any] | None,
    best: Path | None = None,
) -> "CompiledStateGraph[Any, None, Any, Any]":
    """Build the graph that a plan describes."""
    plan = agent.plan
    return build_tree_agent(
        agent.code_model,
        competition=agent.competition,
        sandbox=agent.sandbox,
        feedback_model=agent.feedback_model,
        memory=agent.memory,
        learn=agent.learn,
        artifacts=artifacts,
        folder=best,
        policy=AIDEPolicy(
            plan.drafts,
            plan.debug_probability,
            plan.debug_depth,
            published_depth=plan.published_depth,
        ),
        steps=plan.steps,
        seconds=plan.seconds,
        folds=plan.folds,
        width=plan.width,
        candidates=plan.candidates,
        budget=Budget(plan.memory_tokens),
        checkpointer=saver,
    )


async def _run(
    graph: "CompiledStateGraph[Any, None, Any, Any]",
    begin: Mapping[str, Any] | None,
    artifacts: FolderArtifacts,
    listen: Listener,
) -> Mapping[str, Any]:
    """Run a graph to its end; what it ended with is the last it says."""
    told = 0
    final: Mapping[str, Any] = (await graph.aget_state(_CONFIG)).values
    if begin is None and final.get("done"):
        for node in read_search(artifacts, str(final["journal"])).nodes:
            listen(node)
        return final
    async for final in graph.astream(begin, _CONFIG, stream_mode="values", durability="sync"):
        nodes = read_search(artifacts, str(final.get("journal") or "")).nodes
        for node in nodes[told:]:
            listen(node)
        told = len(nodes)
    return final


async def _refuse_strangers(
    memory: MemoryProvider[Any], artifacts: FolderArtifacts, state: Mapping[str, Any], name: str
) -> None:
    """Refuse to take a bank back to where a search was if others have learned from it since.

    Raises:
        InputError: They have: what they learned would be lost.
    """
    known = bank_of(artifacts, state).items
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
