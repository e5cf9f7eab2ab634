"""`diagnose`, `judge` and `remember`: an execution that failed, or put a failure right, is filed."""

import asyncio
from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any, Literal

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON
from langgraft._core.prompts import Prompt
from langgraft.memory.deltas import MemoryDelta
from langgraft.memory.episodes import Episode
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.questions import Question
from langgraft.nodes.chat_models import Model
from langgraft.nodes.diagnose import diagnosing
from langgraft.nodes.graph_node import GraphNode, Update
from langgraft.nodes.talking import Talk, atalk, spoken, talk, talking_node
from langgraft.nodes.verdicts import answering_all
from langgraft.nodes.workbench.desk import Desk
from langgraft.nodes.workbench.events import DIAGNOSIS, RESOLUTION, Action
from langgraft.nodes.workbench.failures import (
    episode_of,
    failure_of,
    last_execution,
    put_right,
    verified_error,
)
from langgraft.nodes.workbench.log import EventLog, append_events
from langgraft.nodes.workbench.metering import metered
from langgraft.nodes.workbench.state import RunState


def after_acting(desk: Desk, state: RunState) -> Literal["failed", "resolving", "other"]:
    """Say what memory is to be taught of the agent's last action, if anything.

    Nothing where the run had less time left than an execution gets: that tells of no program.
    """
    log = desk.log(state)
    now = last_execution(log)
    if now is None or (now.seen.allowed is not None and now.seen.allowed < desk.seconds):
        return "other"
    if now.seen.failed:
        return "failed"
    return "other" if put_right(log) is None else "resolving"


@checked
def diagnose_run_node(
    desk: Desk, model: Model, *, prompt: Prompt | None = None
) -> GraphNode[RunState]:
    """Make the node that turns a failed execution into an error record.

    What a limit ended is an error of the kind `resource`, whatever a model calls it. For what did
    not fail it does nothing.

    Args:
        desk: What all nodes share.
        model: Any chat model.
        prompt: In place of the one that ships; see `langgraft.nodes.diagnose`.
    """

    def begin(state: RunState) -> Talk[Update]:
        failed = last_execution(desk.log(state))
        if failed is None or not failed.seen.failed:
            return {"diagnosed": ""}
        asked = spoken(diagnosing(failure_of(failed), prompt), "diagnose")
        metering = yield from metered(desk, state, asked)
        found = metering.value
        record = found.record
        if record is not None and (failed.seen.timed_out or failed.seen.oom):
            record = replace(record, kind="resource")
        told: dict[str, JSON] = {
            "error": None if record is None else asdict(record),
            "by": "" if record is None else record.by,
            "why": found.why,
            "calls": found.calls,
        }
        return {"diagnosed": desk.keep(told), "spent": metering.spent}

    return talking_node("diagnose", model, begin, lambda state: _whose(desk, state))


@checked
def judge_run_node(desk: Desk, memory: MemoryProvider[Any], model: Model) -> GraphNode[RunState]:
    """Make the node that answers what memory asks about the agent's last action.

    Args:
        desk: What all nodes share.
        memory: The provider that asks.
        model: Any chat model.
    """

    def judge(state: RunState) -> Update:
        episode = _episode(desk, state)
        asked = () if episode is None else memory.questions(episode)
        return talk(_judging(desk, state, episode, asked), model, *_whose(desk, state))

    async def ajudge(state: RunState) -> Update:
        episode = await asyncio.to_thread(_episode, desk, state)
        asked = () if episode is None else await memory.aquestions(episode)
        whose = await asyncio.to_thread(_whose, desk, state)
        return await atalk(_judging(desk, state, episode, asked), model, *whose)

    return GraphNode("judge", judge, ajudge)


@checked
def remember_run_node(desk: Desk, memory: MemoryProvider[Any]) -> GraphNode[RunState]:
    """Make the node that files the agent's last action in memory, and what that changed in the log.

    So the bank is the fold of the log. A crash in between files the episode again, which changes
    nothing in a bank that was restored from the log (`langgraft.nodes.workbench.restoring`).

    Args:
        desk: What all nodes share.
        memory: The provider to teach.
    """

    def remember(state: RunState) -> Update:
        episode = _episode(desk, state)
        return _filed(desk, state, MemoryDelta() if episode is None else memory.file(episode))

    async def aremember(state: RunState) -> Update:
        episode = await asyncio.to_thread(_episode, desk, state)
        delta = MemoryDelta() if episode is None else await memory.afile(episode)
        return await asyncio.to_thread(_filed, desk, state, delta)

    return GraphNode("remember", remember, aremember)


def _judging(
    desk: Desk, state: RunState, episode: Episode | None, asked: Sequence[Question]
) -> Talk[Update]:
    if episode is None:
        return {"judged": ""}
    answers = yield from metered(desk, state, answering_all(episode, asked))
    kept = desk.keep(answers.value) if answers.value else ""
    return {"judged": kept, "spent": answers.spent}


def _whose(desk: Desk, state: RunState) -> tuple[str, str]:
    """Name the sample of a call: the run, and the action it is about."""
    now = last_execution(desk.log(state))
    return state["episode_id"], "" if now is None else str(now.action.id)


def _episode(desk: Desk, state: RunState) -> Episode | None:
    error = desk.read(state.get("diagnosed")).get("error")
    verdicts = desk.read(state.get("judged")).get("verdicts", ())
    return episode_of(desk, state["episode_id"], desk.log(state), error, verdicts)


def _filed(desk: Desk, state: RunState, delta: MemoryDelta) -> Update:
    log = desk.log(state)
    changed = [delta] if delta else []
    events = [*_diagnosis(desk, state, log), *_resolution(log)]
    reference = log.reference
    if events or changed:
        reference = append_events(desk.artifacts, reference, events, deltas=changed)
    return {"log": reference, "diagnosed": "", "judged": ""}


def _diagnosis(desk: Desk, state: RunState, log: EventLog) -> list[Action]:
    told = desk.read(state.get("diagnosed"))
    now = last_execution(log)
    if not told or now is None:
        return []
    judged = desk.read(state.get("judged")).get("judging", [])
    return [_noted(log, DIAGNOSIS, now.action.id, {**told, "judging": judged})]


def _resolution(log: EventLog) -> list[Action]:
    now, before = last_execution(log), put_right(log)
    if now is None or before is None:
        return []
    fixed = verified_error(log, before, now)
    told = {"resolves": before.action.id, "error": None if fixed is None else asdict(fixed)}
    return [_noted(log, RESOLUTION, now.action.id, told)]


def _noted(log: EventLog, name: str, cause: int, arguments: dict[str, Any]) -> Action:
    return Action(
        id=len(log.events), source="environment", cause=cause, name=name, arguments=arguments
    )
