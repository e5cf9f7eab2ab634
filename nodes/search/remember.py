"""`judge` and `remember`: after the branches, one program after the other goes into the journal.

Branches work at the same time and memory is written by one at a time, in the order of the steps:
what memory asks about a program is asked when all before it are filed, so that what is filed never
depends on which branch was done first.
"""

from pathlib import Path
from typing import Any, Literal

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program
from langgraft.memory.deltas import MemoryDelta
from langgraft.memory.episodes import Episode
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.questions import Verdict
from langgraft.nodes.chat_models import Model
from langgraft.nodes.judge import answering_all
from langgraft.nodes.memory import filed, questions_about
from langgraft.nodes.model_dialogue import held_with
from langgraft.nodes.node import Node, Update
from langgraft.nodes.search.best import keep_best
from langgraft.nodes.search.choose import candidates
from langgraft.nodes.search.deps import SearchDeps
from langgraft.nodes.search.episode import episode_of, node_of, submission_of
from langgraft.nodes.search.journal import append_record
from langgraft.nodes.search.state import TreeState, Work


@checked
def judge_program_node(
    deps: SearchDeps, memory: MemoryProvider[Any], model: Model
) -> Node[TreeState]:
    """Make the node that answers what memory asks about the program that is filed next.

    Args:
        deps: What all nodes of the search depend on.
        memory: The provider that asks.
        model: Any chat model.
    """

    def judge(state: TreeState) -> Program[Call, Update]:
        episode = _episode(deps, state)
        asked = yield from questions_about(memory, episode)
        answers = yield from held_with(answering_all(episode, asked), model, *_whose(state))
        return {"judged": deps.keep(answers)} if answers else {}

    return Node.running("judge", judge, in_threads=True)


@checked
def remember_program_node(
    deps: SearchDeps, memory: MemoryProvider[Any] | None, *, folder: Path | None
) -> Node[TreeState]:
    """Make the node that files one program: in memory, then in the journal.

    The journal's record holds what memory changed, so that the bank is the fold of the journal.
    A crash in between files the episode again, which changes nothing in a bank that was restored
    from the journal (`langgraft.nodes.search.start`).

    Args:
        deps: What all nodes of the search depend on.
        memory: The provider to teach; `None` files in the journal alone.
        folder: Where the best solution is written at each improvement; `None` writes none.
    """

    def remember(state: TreeState) -> Program[Call, Update]:
        work, delta = state["finished"][0], MemoryDelta()
        if memory is not None:
            delta = yield from filed(memory, _episode(deps, state))
        reference = append_record(
            deps.artifacts,
            state["journal"],
            node_of(deps, work, deps.read(state.get("judged"))),
            submission=submission_of(deps, work),
            deltas=[delta] if delta else [],
        )
        if folder is not None:
            _write_best(deps, reference, work, folder)
        update: Update = {"journal": reference, "finished": work["step"]}
        return {**update, "judged": ""} if state.get("judged") else update

    return Node.running("remember", remember, in_threads=True)


def after_filing(state: TreeState) -> Literal["more", "all"]:
    """Say whether branches have brought more."""
    return "more" if state["finished"] else "all"


def _whose(state: TreeState) -> tuple[str, str]:
    return state["episode_id"], state["finished"][0]["id"]


def _episode(deps: SearchDeps, state: TreeState) -> Episode:
    verdicts = [
        Verdict(**verdict) for verdict in deps.read(state.get("judged")).get("verdicts", ())
    ]
    earlier = deps.nodes(state["journal"])
    return episode_of(deps, state["episode_id"], state["finished"][0], earlier, verdicts)


def _write_best(deps: SearchDeps, journal: str, work: Work, folder: Path) -> None:
    """Write the best solution into a folder, where the latest program is it."""
    search = deps.search(journal)
    best = candidates(search.nodes, count=1, lower_is_better=deps.lower_is_better)
    if best and best[0].id == work["id"]:
        reference = search.submission(best[0])
        submission = deps.artifacts.read(reference) if reference else None
        keep_best(folder, best[0], submission)
