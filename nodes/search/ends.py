"""`start`, and `choose` and `rescore`: the two ends of a search.

`start` checks what a search needs before a model is paid, and looks at the data. Also how a process that goes on with a search gets memory back as the search has it.

At the end the best program is submitted, or the best of several scored again.
A search's best validation metric is partly luck: the more programs were tried on one split, the
more. So the `k` best may be run again on fresh splits, and the one with the best mean of these
fresh metrics is submitted.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any, Final, Literal

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.effects import Call, Program, ado, arun, do, run
from langgraft._core.errors import InputError
from langgraft.environments.competitions.attempts import Attempt
from langgraft.memory.model import BankContent
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.artifacts import Artifacts
from langgraft.nodes.competition_run import bank_after, beginning, restoring
from langgraft.nodes.dialogue import Node, Update
from langgraft.nodes.search.deps import SearchDeps, TreeState
from langgraft.nodes.search.journal import JournalNode, read_search
from langgraft.nodes.search.policy import SearchPolicy, identity_of
from langgraft.nodes.search.programs import attempted


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


FRESH_SPLITS = (1, 2)
"""Values of `SPLIT_SEED` that the best programs are run again with; the search has 0."""


@dataclass(frozen=True, slots=True)
class Candidate:
    """A program that may be submitted, with what it reached on fresh splits."""

    node: str
    """Id of its node."""
    metric: float
    """Its validation metric in the search."""
    metrics: tuple[float | None, ...] = ()
    """One for each fresh split, in order; `None`: the program failed there, or gave none."""

    @property
    def mean(self) -> float | None:
        """Mean of the fresh metrics; `None` where it was not run again, or failed once."""
        finite = [each for each in self.metrics if each is not None and math.isfinite(each)]
        return fmean(finite) if finite and len(finite) == len(self.metrics) else None

    def to_json(self) -> dict[str, JSON]:
        """Return the candidate as JSON."""
        fresh = [None if each is None or not math.isfinite(each) else each for each in self.metrics]
        return {"node": self.node, "metric": self.metric, "metrics": fresh}


def candidates(
    nodes: Sequence[JournalNode], *, count: int, lower_is_better: bool
) -> tuple[JournalNode, ...]:
    """Return the `count` best working programs by metric, best first, of equal ones the earlier.

    Args:
        nodes: All programs of the search, in the order of their steps.
        count: How many at most; fewer work in many searches, and none in some.
        lower_is_better: The metric's direction, from the competition's board.
    """
    working = [
        node
        for node in nodes
        if not node.is_buggy and node.metric is not None and math.isfinite(node.metric)
    ]
    working.sort(key=lambda node: _ordered(node.metric, lower_is_better))  # stable
    return tuple(working[: max(count, 0)])


def choose(scored: Sequence[Candidate], *, lower_is_better: bool) -> Candidate | None:
    """Return the candidate to submit: the best mean of fresh metrics, of equal ones the earlier.

    One that failed on a fresh split is passed over for one that did not; where none has all its
    metrics, or nothing was run again, the first candidate stands: the best of the search.

    Args:
        scored: As `candidates` orders them.
        lower_is_better: The metric's direction, from the competition's board.
    """
    whole = [each for each in scored if each.mean is not None]
    if not whole:
        return scored[0] if scored else None
    return min(whole, key=lambda each: _ordered(each.mean, lower_is_better))


def _ordered(metric: float | None, lower_is_better: bool) -> float:
    assert metric is not None
    return metric if lower_is_better else -metric


@checked
def choose_node(deps: SearchDeps, *, count: int) -> Node[TreeState]:
    """Make the node that lists the programs that may be submitted, and then chooses one.

    With one there is nothing to choose between: it is the best validation metric, as in AIDE.
    Otherwise `rescore` runs them again, and this node has the last word. Where the hours of the
    search are over, nothing is run again.

    Args:
        deps: What all nodes of the search depend on.
        count: How many of the best programs are run again.
    """

    def list_or_choose(state: TreeState) -> Update:
        listed = [_candidate(each) for each in state.get("candidates", ())]
        if not listed:
            nodes = deps.nodes(state["journal"])
            best = candidates(nodes, count=count, lower_is_better=deps.lower_is_better)
            listed = [Candidate(node.id, _metric(node.metric)) for node in best]
            if len(listed) > 1 and not deps.bounds.over(state.get("seconds", 0.0)):
                return {"candidates": [each.to_json() for each in listed]}
        chosen = choose(listed, lower_is_better=deps.lower_is_better)
        if chosen is None:
            return {"chosen": "", "metric": None, "submission": "", "candidates": [], "done": True}
        return {
            "candidates": [each.to_json() for each in listed],
            "chosen": chosen.node,
            "metric": chosen.metric,
            "submission": deps.search(state["journal"]).submission(chosen.node),
            "done": True,
        }

    return Node("choose", list_or_choose)


@checked
def rescore_node(deps: SearchDeps) -> Node[TreeState]:
    """Make the node that runs one candidate on one fresh split; the graph comes back for more.

    A program that leaves no valid submission there, or no metric, has none on that split.
    """

    def rescore(state: TreeState) -> Program[Call, Update]:
        number, candidate = _next(state)
        nodes = deps.nodes(state["journal"])
        code = next(node.code for node in nodes if node.id == candidate.node)
        split = FRESH_SPLITS[len(candidate.metrics)]
        before = state.get("seconds", 0.0)
        allowed, began = deps.bounds.allowed(before), deps.clock()
        made = yield from attempted(deps, code, split=split, seconds=allowed)
        seconds = before + max(deps.clock() - began, made.result.duration)
        update = _with_metric(state, number, made, invalid_is_bug=deps.invalid_is_bug)
        return {**update, "seconds": round(seconds, 3)}

    return Node.running("rescore", rescore, in_threads=True)


def after_choosing(state: TreeState) -> Literal["rescore", "end"]:
    """Say whether candidates are to be run again first."""
    return "end" if state.get("done") else "rescore"


def after_rescoring(state: TreeState) -> Literal["rescore", "choose"]:
    """Say whether a candidate lacks a metric on a fresh split."""
    lacking = any(len(each["metrics"]) < len(FRESH_SPLITS) for each in state["candidates"])
    return "rescore" if lacking else "choose"


def _next(state: TreeState) -> tuple[int, Candidate]:
    listed = [_candidate(each) for each in state["candidates"]]
    return next(
        (number, each)
        for number, each in enumerate(listed)
        if len(each.metrics) < len(FRESH_SPLITS)
    )


def _with_metric(state: TreeState, number: int, made: Attempt, *, invalid_is_bug: bool) -> Update:
    listed = [_candidate(each) for each in state["candidates"]]
    left = made.submission_valid if invalid_is_bug else made.submission_present
    worked = made.result.ok and left
    fresh = made.metric if worked else None
    listed[number] = replace(listed[number], metrics=(*listed[number].metrics, fresh))
    return {"candidates": [each.to_json() for each in listed]}


def _candidate(written: Mapping[str, Any]) -> Candidate:
    return Candidate(written["node"], written["metric"], tuple(written["metrics"]))


def _metric(metric: float | None) -> float:
    assert metric is not None
    return metric
