"""`choose` and `rescore`: which program is submitted."""

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Literal

from langgraft._core.arguments import checked
from langgraft.environments.competitions.attempts import Attempt, aattempt, attempt
from langgraft.environments.sandboxes.programs import PythonProgram
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.search.execute import SPLIT_SEED
from langgraft.nodes.search.place import Place
from langgraft.nodes.search.selection import Candidate, candidates, choose
from langgraft.nodes.search.state import TreeState

FRESH_SPLITS = (1, 2)
"""Values of `SPLIT_SEED` that the best programs are run again with; the search has 0."""


@checked
def choose_node(place: Place, *, count: int) -> GraphNode[TreeState]:
    """Make the node that lists the programs that may be submitted, and then chooses one.

    With one there is nothing to choose between: it is the best validation metric, as in AIDE.
    Otherwise `rescore` runs them again, and this node has the last word.

    Args:
        place: The competition, and where contents are kept.
        count: How many of the best programs are run again.
    """

    def list_or_choose(state: TreeState) -> Update:
        listed = [_candidate(each) for each in state.get("candidates", ())]
        if not listed:
            nodes = place.nodes(state["journal"])
            best = candidates(nodes, count=count, lower_is_better=place.lower_is_better)
            listed = [Candidate(node.id, _metric(node.metric)) for node in best]
            if len(listed) > 1:
                return {"candidates": [each.to_json() for each in listed]}
        chosen = choose(listed, lower_is_better=place.lower_is_better)
        if chosen is None:
            return {"chosen": "", "metric": None, "submission": "", "candidates": [], "done": True}
        return {
            "candidates": [each.to_json() for each in listed],
            "chosen": chosen.node,
            "metric": chosen.metric,
            "submission": place.search(state["journal"]).submission(chosen.node),
            "done": True,
        }

    return GraphNode("choose", list_or_choose)


@checked
def rescore_node(place: Place, sandbox: Sandbox, *, seconds: float) -> GraphNode[TreeState]:
    """Make the node that runs one candidate on one fresh split; the graph comes back for more.

    A program that leaves no valid submission there, or no metric, has none on that split.
    """

    def program(state: TreeState) -> tuple[int, PythonProgram, dict[str, str]]:
        number, candidate = _next(state)
        nodes = place.nodes(state["journal"])
        node = next(node for node in nodes if node.id == candidate.node)
        split = FRESH_SPLITS[len(candidate.metrics)]
        return number, PythonProgram(node.code), {SPLIT_SEED: str(split)}

    def rescore(state: TreeState) -> Update:
        number, code, environment = program(state)
        made = attempt(code, place.competition, sandbox, seconds=seconds, environment=environment)
        return _with_metric(state, number, made)

    async def arescore(state: TreeState) -> Update:
        number, code, environment = await asyncio.to_thread(program, state)
        made = await aattempt(
            code, place.competition, sandbox, seconds=seconds, environment=environment
        )
        return _with_metric(state, number, made)

    return GraphNode("rescore", rescore, arescore)


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


def _with_metric(state: TreeState, number: int, made: Attempt) -> Update:
    listed = [_candidate(each) for each in state["candidates"]]
    worked = made.result.ok and made.submission_valid
    fresh = made.metric if worked else None
    listed[number] = replace(listed[number], metrics=(*listed[number].metrics, fresh))
    return {"candidates": [each.to_json() for each in listed]}


def _candidate(written: Mapping[str, Any]) -> Candidate:
    return Candidate(written["node"], written["metric"], tuple(written["metrics"]))


def _metric(metric: float | None) -> float:
    assert metric is not None
    return metric
