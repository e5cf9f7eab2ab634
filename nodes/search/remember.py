"""`judge` and `remember`: after the branches, one program after the other goes into the journal.

Branches work at the same time and memory is written by one at a time, in the order of the steps:
what memory asks about a program is asked when all before it are filed, so that what is filed never
depends on which branch was done first.
"""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

from langgraft._core.arguments import checked
from langgraft.memory.deltas import MemoryDelta
from langgraft.memory.episodes import Episode
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.questions import Question, Verdict
from langgraft.nodes.chat_models import Model
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.search.best import keep_best
from langgraft.nodes.search.gathering import episode_of, node_of, submission_of
from langgraft.nodes.search.place import Place
from langgraft.nodes.search.records import append_record
from langgraft.nodes.search.selection import candidates
from langgraft.nodes.search.state import TreeState, Work
from langgraft.nodes.talking import Talk, atalk, talk
from langgraft.nodes.verdicts import answering_all


@checked
def judge_program_node(
    place: Place, memory: MemoryProvider[Any], model: Model
) -> GraphNode[TreeState]:
    """Make the node that answers what memory asks about the program that is filed next.

    Args:
        place: The competition, and where contents are kept.
        memory: The provider that asks.
        model: Any chat model.
    """

    def judge(state: TreeState) -> Update:
        episode = _episode(place, state)
        asked = memory.questions(episode)
        return talk(_judging(place, episode, asked), model, *_whose(state))

    async def ajudge(state: TreeState) -> Update:
        episode = await asyncio.to_thread(_episode, place, state)
        asked = await memory.aquestions(episode)
        return await atalk(_judging(place, episode, asked), model, *_whose(state))

    return GraphNode("judge", judge, ajudge)


def _judging(place: Place, episode: Episode, asked: Sequence[Question]) -> Talk[Update]:
    answers = yield from answering_all(episode, asked)
    return {"judged": place.keep(answers)} if answers else {}


@checked
def remember_program_node(
    place: Place, memory: MemoryProvider[Any] | None, *, folder: Path | None
) -> GraphNode[TreeState]:
    """Make the node that files one program: in memory, then in the journal.

    The journal's record holds what memory changed, so that the bank is the fold of the journal.
    A crash in between files the episode again, which changes nothing in a bank that was restored
    from the journal (`langgraft.nodes.search.restoring`).

    Args:
        place: The competition, and where contents are kept.
        memory: The provider to teach; `None` files in the journal alone.
        folder: Where the best solution is written at each improvement; `None` writes none.
    """

    def remember(state: TreeState) -> Update:
        delta = MemoryDelta()
        if memory is not None:
            delta = memory.file(_episode(place, state))
        return _filed(place, state, delta, folder)

    async def aremember(state: TreeState) -> Update:
        delta = MemoryDelta()
        if memory is not None:
            delta = await memory.afile(await asyncio.to_thread(_episode, place, state))
        return await asyncio.to_thread(_filed, place, state, delta, folder)

    return GraphNode("remember", remember, aremember)


def after_filing(state: TreeState) -> Literal["more", "all"]:
    """Say whether branches have brought more."""
    return "more" if state["finished"] else "all"


def _whose(state: TreeState) -> tuple[str, str]:
    return state["episode_id"], state["finished"][0]["id"]


def _episode(place: Place, state: TreeState) -> Episode:
    verdicts = [
        Verdict(**verdict) for verdict in place.read(state.get("judged")).get("verdicts", ())
    ]
    earlier = place.nodes(state["journal"])
    return episode_of(place, state["episode_id"], state["finished"][0], earlier, verdicts)


def _filed(place: Place, state: TreeState, delta: MemoryDelta, folder: Path | None) -> Update:
    work = state["finished"][0]
    journal = append_record(
        place.artifacts,
        state["journal"],
        node_of(place, work, place.read(state.get("judged"))),
        submission=submission_of(place, work),
        deltas=[delta] if delta else [],
    )
    if folder is not None:
        _write_best(place, journal, work, folder)
    filed: Update = {"journal": journal, "finished": work["step"]}
    return {**filed, "judged": ""} if state.get("judged") else filed


def _write_best(place: Place, journal: str, work: Work, folder: Path) -> None:
    """Write the best solution into a folder, where the latest program is it."""
    search = place.search(journal)
    best = candidates(search.nodes, count=1, lower_is_better=place.lower_is_better)
    if best and best[0].id == work["id"]:
        reference = search.submission(best[0])
        submission = place.artifacts.read(reference) if reference else None
        keep_best(folder, best[0], submission)
