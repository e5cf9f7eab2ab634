"""Memory in a run: asked as an attempt begins, and taught of executions.

`recall` makes an event of what memory says. `diagnose`, `judge` and `remember` file an execution that
failed, or put a failure right; which one that is `langgraft.nodes.workbench.failures` says.
"""

from dataclasses import asdict
from typing import Any, Final, Literal

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program
from langgraft._core.errors import SettingsError
from langgraft._core.texts import Prompt
from langgraft.memory.model import Episode, MemoryDelta
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget, RecallContext
from langgraft.nodes.competition_run import domain, instruction
from langgraft.nodes.diagnose import diagnosing
from langgraft.nodes.dialogue import Dialogue, Model, dialogue_node, responding
from langgraft.nodes.judge import answering_all, judgments_json
from langgraft.nodes.memory import filed, provided, questions_about, recalled_parts
from langgraft.nodes.node import Node, Update
from langgraft.nodes.workbench.deps import RunDeps, metered
from langgraft.nodes.workbench.failures import (
    episode_of,
    failure_of,
    last_execution,
    put_right,
    verified_error,
)
from langgraft.nodes.workbench.log import (
    DIAGNOSIS,
    RECALL,
    RESOLUTION,
    Action,
    EventLog,
    append_events,
    recall_of,
)
from langgraft.nodes.workbench.state import RunState

_GIVEN: Final = frozenset({"errors", "verdicts"})
"""What an agent that works step by step gives to memory."""


@checked
def recall_run_node(
    deps: RunDeps, memory: MemoryProvider[Any], *, budget: Budget | None = None
) -> Node[RunState]:
    """Make the node that asks memory as an attempt begins; what it says becomes an event.

    In an attempt that has its recall already, nothing is asked.
    """
    query = instruction(deps.competition)

    def recall(state: RunState) -> Program[Call, Update]:
        log = deps.log(state)
        if recalled_in(log) is not None:
            return {}
        recalled = yield from provided(memory, query, _context(deps, state), budget)
        event = Action(
            id=len(log.events),
            source="environment",
            name=RECALL,
            arguments=recalled_parts(recalled),
        )
        return {"log": append_events(deps.artifacts, log.reference, [event])}

    return Node.running("recall", recall, in_threads=True)


def recalled_in(log: EventLog) -> str | None:
    """Return what memory said in the attempt that goes on; `None` where it was not asked yet."""
    event = recall_of(log.events)
    return None if event is None else str(event.arguments.get("text", ""))


def memory_needs(memory: MemoryProvider[Any] | None, *, learn: bool) -> frozenset[str]:
    """Return what memory needs for filing.

    Raises:
        SettingsError: It needs what an agent that works step by step does not have.
    """
    if memory is None:
        return frozenset()
    needs = frozenset(memory.needs)
    if "draft" in needs:
        msg = (
            f"{type(memory).__name__} wants a tentative answer before it is asked, to look for"
            " contradictions, and an agent that works step by step has none. Turn that off in its"
            " settings (gate=False)"
        )
        raise SettingsError(msg)
    if learn and not needs <= _GIVEN:
        msg = (
            f"{type(memory).__name__} learns from {', '.join(sorted(needs - _GIVEN))}, and an agent"
            " that works step by step files errors alone: attach it with learn=False, or take"
            " CodingMemory"
        )
        raise SettingsError(msg)
    return needs if learn else frozenset()


def _context(deps: RunDeps, state: RunState) -> RecallContext:
    return RecallContext(
        domain=domain(deps.competition),
        task_id=deps.competition.id,
        episode_id=f"{state['episode_id']}/attempt-{state.get('attempt', 0)}",
        stage="start",
        step=state.get("steps", 0),
    )


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

    def begin(state: RunState) -> Dialogue[Update]:
        failed = last_execution(deps.log(state))
        if failed is None or not failed.seen.failed:
            return {"diagnosed": ""}
        found = yield from metered(deps, state, diagnosing(failure_of(failed), prompt))
        return {"diagnosed": deps.keep(found.value.to_json()), "spent": found.spent}

    return dialogue_node("diagnose", model, begin, lambda state: _whose(deps, state))


@checked
def judge_run_node(deps: RunDeps, memory: MemoryProvider[Any], model: Model) -> Node[RunState]:
    """Make the node that answers what memory asks about the agent's last action."""

    def judge(state: RunState) -> Program[Call, Update]:
        episode = _episode(deps, state)
        if episode is None:
            return {"judged": ""}
        asked = yield from questions_about(memory, episode)
        lessons = [lesson.text for lesson in episode.lessons]
        dialogue = metered(deps, state, answering_all(asked, lessons))
        judged = yield from responding(dialogue, model, _whose(deps, state))
        kept = deps.keep(judgments_json(judged.value)) if asked else ""
        return {"judged": kept, "spent": judged.spent}

    return Node.running("judge", judge, in_threads=True)


@checked
def remember_run_node(deps: RunDeps, memory: MemoryProvider[Any]) -> Node[RunState]:
    """Make the node that files the agent's last action in memory, and what that changed in the log.

    So the bank is the fold of the log. A crash in between files the episode again, which changes
    nothing in a bank that was restored from the log (`langgraft.nodes.workbench.start`).
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
    diagnosed = deps.read(state.get("diagnosed"))
    now = last_execution(log)
    if not diagnosed or now is None:
        return []
    judged = deps.read(state.get("judged")).get("judging", [])
    return [_noted(log, DIAGNOSIS, now.action.id, {**diagnosed, "judging": judged})]


def _resolution(log: EventLog) -> list[Action]:
    now, before = last_execution(log), put_right(log)
    if now is None or before is None:
        return []
    fixed = verified_error(log, before, now)
    error = None if fixed is None else asdict(fixed)
    resolution = {"resolves": before.action.id, "error": error}
    return [_noted(log, RESOLUTION, now.action.id, resolution)]


def _noted(log: EventLog, name: str, cause: int, arguments: dict[str, Any]) -> Action:
    return Action(
        id=len(log.events), source="environment", cause=cause, name=name, arguments=arguments
    )
