"""Memory in a run: asked as an attempt begins, and taught of executions.

`recall` makes an event of what memory says. `diagnose`, `judge` and `remember` file an execution that
failed, or put a failure right.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache
from typing import Any, Final, Literal

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program
from langgraft._core.errors import SettingsError
from langgraft._core.texts import Prompt
from langgraft.memory.model import (
    Episode,
    ErrorRecord,
    MemoryDelta,
    Outcome,
    Receipt,
    Step,
    Verdict,
)
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget, RecallContext
from langgraft.nodes.competition_run import domain, instruction
from langgraft.nodes.diagnose import Failure, diagnosing, execution_failure
from langgraft.nodes.dialogue import Dialogue, Model, Node, Update, dialogue_node, responding
from langgraft.nodes.judge import answering_all, judgments_json
from langgraft.nodes.memory import filed, provided, questions_about, recalled_parts, verified
from langgraft.nodes.replies import first_sentences
from langgraft.nodes.tracebacks import parse_traceback
from langgraft.nodes.workbench.deps import RunDeps, metered
from langgraft.nodes.workbench.log import (
    DIAGNOSIS,
    RECALL,
    RESOLUTION,
    Action,
    EventLog,
    Observation,
    RunState,
    append_events,
    command_of,
    recall_of,
)
from langgraft.nodes.workbench.performing import script_of

SIMILAR: Final = 0.5
"""Least part of their words that a program and its repair share (Jaccard)."""
LOOKED_BACK: Final = 20
"""Failures that a success may put right, counted back from it."""
_WORD: Final = re.compile(r"\w+")
_EDITING: Final = frozenset({"edit_file", "Edit Script (AI)", "Undo Edit Script", "Copy File"})
"""Actions that change files; of `edit_file` all but `view`."""


@dataclass(frozen=True, slots=True)
class Execution:
    """Something that the agent ran, and what came of it."""

    action: Action
    seen: Observation
    error: Mapping[str, Any] | None = None
    """The diagnosis of its failure, as an `ErrorRecord`."""

    @property
    def command(self) -> str:
        """What was issued."""
        return command_of(self.action)


def last_execution(log: EventLog) -> Execution | None:
    """Return what the agent's last action ran; `None` where it ran nothing."""
    return next(_executions(log, last=True), None)


def put_right(log: EventLog) -> Execution | None:
    """Return the failure that the agent's last action puts right, if it does.

    It does where it ran to its end, and tries again what failed before (`retries`): the last such
    failure counts, unless another success has put it right already. A program that had worked
    before that failure, and is merely run again, puts nothing right; nor does one that shows an
    error: the end of a pipe ends well whatever came before it.
    """
    now = last_execution(log)
    if now is None or now.seen.failed:
        return None
    resolved = {
        event.arguments.get("resolves")
        for event in log.events
        if isinstance(event, Action) and event.name == RESOLUTION
    }
    looked_at = 0
    for before in _executions(log):
        if before.action.id == now.action.id or not before.seen.failed:
            continue
        if retries(before, now):
            known = before.action.id in resolved or _worked_before(log, now, before)
            unproven = known or before.error is None or parse_traceback(now.seen.text) is not None
            return None if unproven else before
        looked_at += 1
        if looked_at == LOOKED_BACK:
            return None
    return None


def _worked_before(log: EventLog, now: Execution, failed: Execution) -> bool:
    return bool(now.seen.program) and any(
        each.action.id < failed.action.id
        and not each.seen.failed
        and each.seen.program == now.seen.program
        for each in _executions(log)
    )


def retries(before: Execution, now: Execution) -> bool:
    """Whether an execution tries again what an earlier one tried.

    It does with the same command, with the same script, or with a program of about the same words.
    """
    if before.action.name == now.action.name and before.command == now.command:
        return True
    script = script_of(now.command)
    if script and script == script_of(before.command):
        return True
    ours, theirs = _words(now.seen.program), _words(before.seen.program)
    together = len(ours | theirs)
    return together > 0 and len(ours & theirs) / together >= SIMILAR


def failure_of(execution: Execution) -> Failure:
    """Return a failed execution as what a diagnosis is made of."""
    seen = execution.seen
    limit = seen.timed_out or seen.oom
    return execution_failure(seen.text, seen.program, seen.exception, seen.message, limit=limit)


def verified_error(log: EventLog, failed: Execution, now: Execution) -> ErrorRecord | None:
    """Return a failure's error with what the model said as it put it right; else `None`."""
    return verified(failed.error, _remedy(log, failed, now))


def _remedy(log: EventLog, failed: Execution, now: Execution) -> str:
    """Return what the model said beside the last change of a file since a failure.

    Of a script that was edited and run again, "run it again" is no remedy. Where no file was
    edited, or another program stands in the action itself, that is what changed. Where nothing
    did, nobody said what put it right.
    """
    new_program = now.seen.program in now.command and now.command != failed.command
    edits = () if now.seen.program and new_program else tuple(_edits(log, failed, now))
    same = now.command == failed.command and now.seen.program == failed.seen.program
    if same and not edits:
        return ""
    texts = (first_sentences(each.thought) or _instruction(each) for each in edits)
    return next(filter(None, texts), first_sentences(now.action.thought))


def _edits(log: EventLog, failed: Execution, now: Execution) -> Iterator[Action]:
    """Yield the edits between two executions, the last first."""
    for event in reversed(log.events[failed.action.id : now.action.id]):
        if (
            isinstance(event, Action)
            and event.name in _EDITING
            and event.arguments.get("command") != "view"
            and (seen := log.observation(event)) is not None
            and not seen.failed
        ):
            yield event


def _instruction(action: Action) -> str:
    given = action.arguments.get("input")
    asked = given.get("edit_instruction") if isinstance(given, dict) else None
    return first_sentences(asked) if isinstance(asked, str) else ""


def episode_of(
    deps: RunDeps,
    run: str,
    log: EventLog,
    error: Mapping[str, Any] | None,
    verdicts: Sequence[Mapping[str, Any]] = (),
) -> Episode | None:
    """Put the episode of the agent's last action together; `None` where there is nothing to teach.

    Args:
        deps: What all nodes share.
        run: Name of the run.
        log: Up to the action and what was observed of it.
        error: The diagnosis, where it failed.
        verdicts: Answers to memory's questions about it.
    """
    now = last_execution(log)
    if now is None:
        return None
    before = put_right(log)
    errors = [] if error is None else [ErrorRecord(**error)]
    if before is not None and (fixed := verified_error(log, before, now)) is not None:
        errors.append(fixed)
    if not errors and before is None:
        return None
    return Episode(
        id=execution_id(run, now),
        domain=domain(deps.competition),
        task_id=deps.competition.id,
        task=instruction(deps.competition),
        steps=(Step(now.action.thought, now.seen.program or now.command, now.seen.text),),
        outcome=_outcome(now.seen),
        errors=tuple(errors),
        verdicts=tuple(Verdict(**verdict) for verdict in verdicts),
        recalls=_recalls(log),
        resolves=() if before is None else (execution_id(run, before),),
    )


def _recalls(log: EventLog) -> tuple[Receipt, ...]:
    """Return the receipt of what the attempt began with: it counts once, whatever carries it."""
    event = recall_of(log.events)
    receipt: Any = None if event is None else event.arguments.get("receipt")
    return (Receipt(**receipt),) if receipt else ()


def execution_id(run: str, execution: Execution) -> str:
    """Name the episode of an execution: each is one."""
    return f"{run}/{execution.action.id}"


def _outcome(seen: Observation) -> Outcome:
    reason = "it ran to its end"
    if seen.failed:
        reason = f"it ended with {seen.exception or f'exit code {seen.exit_code}'}"
    return Outcome(not seen.failed, seen.metric, reason)


def _executions(log: EventLog, *, last: bool = False) -> Iterator[Execution]:
    """Yield what the agent ran, the last first; only its last action's, or none, if `last`."""
    seen: dict[int | None, Observation] = {}
    errors: dict[int | None, Any] = {}
    for event in reversed(log.events):
        if isinstance(event, Observation):
            seen[event.cause] = event
        elif event.name == DIAGNOSIS:
            errors[event.cause] = event.arguments.get("error")
        elif event.source == "agent":
            found = seen.get(event.id)
            if found is not None and found.executed:
                yield Execution(event, found, errors.get(event.id))
            if last:
                return


@lru_cache(maxsize=64)
def _words(program: str) -> frozenset[str]:
    return frozenset(_WORD.findall(program))


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
