"""`diagnose`, `judge` and `remember`: an execution that failed, or put a failure right, is filed."""

from dataclasses import asdict, replace
from typing import Any, Literal

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON
from langgraft._core.effects import Call, Program
from langgraft._core.prompts import Prompt
from langgraft.memory.deltas import MemoryDelta
from langgraft.memory.episodes import Episode
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.chat_models import Model
from langgraft.nodes.diagnose import diagnosing
from langgraft.nodes.judge import answering_all
from langgraft.nodes.memory import filed, questions_about
from langgraft.nodes.model_dialogue import Talk, dialogue_node, held_with, spoken
from langgraft.nodes.node import Node, Update
from langgraft.nodes.workbench.deps import RunDeps, metered
from langgraft.nodes.workbench.failures import (
    episode_of,
    failure_of,
    last_execution,
    put_right,
    verified_error,
)
from langgraft.nodes.workbench.log import DIAGNOSIS, RESOLUTION, Action, EventLog, append_events
from langgraft.nodes.workbench.state import RunState


def after_acting(deps: RunDeps, state: RunState) -> Literal["failed", "resolving", "other"]:
    """Say what memory is to be taught of the agent's last action, if anything.

    Nothing where the run had less time left than an execution gets: that tells of no program.
    """
    log = deps.log(state)
    now = last_execution(log)
    if now is None or (now.seen.allowed is not None and now.seen.allowed < deps.seconds):
        return "other"
    if now.seen.failed:
        return "failed"
    return "other" if put_right(log) is None else "resolving"


@checked
def diagnose_run_node(
    deps: RunDeps, model: Model, *, prompt: Prompt | None = None
) -> Node[RunState]:
    """Make the node that turns a failed execution into an error record.

    What a limit ended is an error of the kind `resource`, whatever a model calls it. For what did
    not fail it does nothing.

    Args:
        deps: What all nodes share.
        model: Any chat model.
        prompt: In place of the one that ships; see `langgraft.nodes.diagnose`.
    """

    def begin(state: RunState) -> Talk[Update]:
        failed = last_execution(deps.log(state))
        if failed is None or not failed.seen.failed:
            return {"diagnosed": ""}
        asked = spoken(diagnosing(failure_of(failed), prompt), "diagnose")
        metering = yield from metered(deps, state, asked)
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
        return {"diagnosed": deps.keep(told), "spent": metering.spent}

    return dialogue_node("diagnose", model, begin, lambda state: _whose(deps, state))


@checked
def judge_run_node(deps: RunDeps, memory: MemoryProvider[Any], model: Model) -> Node[RunState]:
    """Make the node that answers what memory asks about the agent's last action.

    Args:
        deps: What all nodes share.
        memory: The provider that asks.
        model: Any chat model.
    """

    def judge(state: RunState) -> Program[Call, Update]:
        episode = _episode(deps, state)
        if episode is None:
            return {"judged": ""}
        asked = yield from questions_about(memory, episode)
        dialogue = metered(deps, state, answering_all(episode, asked))
        answers = yield from held_with(dialogue, model, *_whose(deps, state))
        kept = deps.keep(answers.value) if answers.value else ""
        return {"judged": kept, "spent": answers.spent}

    return Node.running("judge", judge, in_threads=True)


@checked
def remember_run_node(deps: RunDeps, memory: MemoryProvider[Any]) -> Node[RunState]:
    """Make the node that files the agent's last action in memory, and what that changed in the log.

    So the bank is the fold of the log. A crash in between files the episode again, which changes
    nothing in a bank that was restored from the log (`langgraft.nodes.workbench.start`).

    Args:
        deps: What all nodes share.
        memory: The provider to teach.
    """

    def remember(state: RunState) -> Program[Call, Update]:
        episode = _episode(deps, state)
        delta = MemoryDelta()
        if episode is not None:
            delta = yield from filed(memory, episode)
        log = deps.log(state)
        events = [*_diagnosis(deps, state, log), *_resolution(log)]
        reference = log.reference
        if events or delta:
            deltas = [delta] if delta else []
            reference = append_events(deps.artifacts, reference, events, deltas=deltas)
        return {"log": reference, "diagnosed": "", "judged": ""}

    return Node.running("remember", remember, in_threads=True)


def _whose(deps: RunDeps, state: RunState) -> tuple[str, str]:
    """Name the sample of a call: the run, and the action it is about."""
    now = last_execution(deps.log(state))
    return state["episode_id"], "" if now is None else str(now.action.id)


def _episode(deps: RunDeps, state: RunState) -> Episode | None:
    error = deps.read(state.get("diagnosed")).get("error")
    verdicts = deps.read(state.get("judged")).get("verdicts", ())
    return episode_of(deps, state["episode_id"], deps.log(state), error, verdicts)


def _diagnosis(deps: RunDeps, state: RunState, log: EventLog) -> list[Action]:
    told = deps.read(state.get("diagnosed"))
    now = last_execution(log)
    if not told or now is None:
        return []
    judged = deps.read(state.get("judged")).get("judging", [])
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
