"""`start`: check what a search needs before a model is paid, and look at the data.

Also how a process that goes on with a search gets memory back as the search has it.
"""

from collections.abc import Mapping
from typing import Any, Final

from langgraft._core.arguments import checked
from langgraft._core.canonical import canonical_json
from langgraft._core.effects import Call, Program, ado, arun, do, run
from langgraft._core.errors import InputError
from langgraft.memory.model import BankContent
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.artifacts import Artifacts
from langgraft.nodes.competition_run import bank_after, beginning, restoring
from langgraft.nodes.node import Node, Update
from langgraft.nodes.search.deps import SearchDeps, TreeState
from langgraft.nodes.search.journal import read_search
from langgraft.nodes.search.policy import SearchPolicy, identity_of


@checked
def start_search_node(
    deps: SearchDeps, *, memory: MemoryProvider[Any] | None, policy: SearchPolicy
) -> Node[TreeState]:
    """Make the node that begins a search, or goes on with one.

    An input with the `episode_id` of the search that the thread has goes on with it: what is in
    the journal stays, and the search is continued up to the steps that the agent was built with.

    Args:
        deps: What all nodes of the search depend on.
        memory: The provider that the search teaches, if it does: what it holds is noted, so that
            it can be restored.
        policy: The policy that the search follows. What it says of itself is noted, and a search
            that another one began is refused.
    """
    identity = identity_of(policy)

    def start(state: TreeState) -> Program[Call, Update]:
        begun, journal = yield from beginning(
            deps, deps.sandbox, memory, state, what="search", chain="journal"
        )
        deps.search(journal)  # what goes on must be there
        was = state["begun"].get("policy", identity) if journal else identity
        if was != identity:
            msg = (
                f"the search {begun['episode_id']!r:.80} was begun with the policy"
                f" {canonical_json(was)}, and this agent has {canonical_json(identity)}: go on with"
                " the first, or begin another search"
            )
            raise InputError(msg)
        left_over = {key: value for key, value in _NOTHING.items() if state.get(key)}
        name, seed = begun["episode_id"], state.get("seed", 0)
        return {
            **left_over,
            **({} if journal else {"seconds": 0.0}),
            "episode_id": name,
            "seed": seed,
            "begun": {**begun, "policy": identity},
            "journal": journal,
        }

    return Node.running("start", start, in_threads=True)


_NOTHING: Final[Update] = {
    "finished": None,
    "judged": "",
    "chosen": "",
    "metric": None,
    "submission": "",
    "candidates": [],
    "done": False,
}
"""What the end of a search, or a crash in it, leaves in a thread."""


def bank_of(artifacts: Artifacts, state: Mapping[str, Any]) -> BankContent:
    """Return what memory holds as a search has it: what it began with, and all it learned.

    Args:
        artifacts: Where the search is kept.
        state: The search's state: what `get_state(config).values` of its graph gives.

    Raises:
        InputError: A record or the bank is missing or damaged.
    """
    search = read_search(artifacts, state.get("journal", ""))
    return bank_after(artifacts, state, search.deltas)


def restore_memory(
    memory: MemoryProvider[Any], artifacts: Artifacts, state: Mapping[str, Any]
) -> None:
    """Make a bank what it is to be where a search goes on after a crash.

    A process may die after memory took in a program and before that was noted, and a bank in
    memory dies with it. Called before `invoke(None, config)`, this makes the bank hold exactly
    what the search began with and what its journal says it learned. The bank has to be the
    search's own: what others wrote to it meanwhile goes.

        state = agent.get_state(config).values
        restore_memory(memory, artifacts, state)
        agent.invoke(None, config, durability="sync")

    Nothing is changed where the search has not begun or teaches nothing (`learn=False`), and where
    the bank is right already.

    Raises:
        InputError: A record or the bank is missing or damaged.
        ReadOnlyStoreError: The bank is another one, and frozen.
    """
    run(restoring(memory, artifacts, state, bank_of), do)


async def arestore_memory(
    memory: MemoryProvider[Any], artifacts: Artifacts, state: Mapping[str, Any]
) -> None:
    """Do what `restore_memory` does, asynchronously."""
    await arun(restoring(memory, artifacts, state, bank_of), ado, in_threads=True)
