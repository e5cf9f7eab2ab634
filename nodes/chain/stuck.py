"""Whether the agent goes in circles: rules over what it did, and the node `watch` that applies them.

=================  ========================================================  =====
rule               fires where the last turns are                            turns
=================  ========================================================  =====
`pairs`            the same action with the same observation                 4
`errors`           the same action, which failed each time                   3
`messages`         the same message, with no action between                  3
`alternation`      two pairs by turns: A, B, A, B, A, B                       6
`condensations`    none: the prompt was shortened over and over instead      10
=================  ========================================================  =====

(OpenHands 0.62's; its 2.1.0 wants four of the same errors and has not the last rule.)

The same means: the same but for process ids and addresses in memory, which differ between two
runs of one program. What a model says beside an action makes no difference.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from langgraft._core.arguments import checked
from langgraft._core.canonical import canonical_json
from langgraft.nodes.chain.deps import ChainDeps
from langgraft.nodes.chain.visible_history import AgentTurn, turns_of
from langgraft.nodes.dialogue import Node, Update
from langgraft.nodes.workbench.log import (
    CONDENSATION,
    MESSAGE,
    RECOVERY,
    Action,
    Event,
    RunState,
    append_events,
)

OnStuck: TypeAlias = Literal["stop", "recover"]
STUCK: Final = "stuck"
CONDENSATIONS: Final = "condensations"
MOST_CONDENSATIONS: Final = 10
_PAIRS: Final = 4
_ERRORS: Final = 3
_MESSAGES: Final = 3
_ALTERNATION: Final = 6


@dataclass(frozen=True, slots=True)
class Stuck:
    """The agent goes in circles."""

    rule: str
    first: int
    """The event that the circles begin with."""


def find_stuck(events: Sequence[Event]) -> Stuck | None:
    """Say whether the agent goes in circles since the attempt began; `None` where it does not."""
    since = _attempt(events)
    if (first := first_condensation(since)) is not None:
        return Stuck(CONDENSATIONS, first)
    turns = turns_of(since)
    for rule, (count, holds) in _RULES.items():
        last = turns[-count:]
        if len(last) == count and holds(last):
            return Stuck(rule, last[0].action.id)
    return None


def same_text(text: str) -> str:
    """Return a text without what differs between two runs of the same: pids, addresses."""
    text = _ADDRESS.sub("0x…", text)
    text = _JOB.sub(r"\1…", text)
    return _PID.sub(r"\1…", text)


_ADDRESS: Final = re.compile(r"\b0x[0-9a-fA-F]{4,}\b")
_PID: Final = re.compile(
    r"(\b(?:p?pid|process(?: id)?)\b['\"]?\s{0,3}[:=#(]?\s{0,3})\d+", re.IGNORECASE
)
_JOB: Final = re.compile(r"^(\[\d{1,4}\][+-]?\s{1,3})\d+$", re.MULTILINE)
"""What a shell says as it starts a job: `[1] 4711`."""


def _attempt(events: Sequence[Event]) -> Sequence[Event]:
    """Return the events since the last recovery."""
    for place in range(len(events) - 1, -1, -1):
        event = events[place]
        if isinstance(event, Action) and event.name == RECOVERY:
            return events[place + 1 :]
    return events


def first_condensation(events: Sequence[Event]) -> int | None:
    """Return the first of too many condensations in a row; `None` where there are not so many."""
    last = events[-MOST_CONDENSATIONS:]
    each = all(isinstance(event, Action) and event.name == CONDENSATION for event in last)
    return last[0].id if each and len(last) == MOST_CONDENSATIONS else None


def _pairs(turns: Sequence[AgentTurn]) -> bool:
    return turns[0].observation is not None and len({_pair(turn) for turn in turns}) == 1


def _errors(turns: Sequence[AgentTurn]) -> bool:
    failed = all(turn.observation is not None and turn.observation.failed for turn in turns)
    return failed and len({_act(turn) for turn in turns}) == 1


def _messages(turns: Sequence[AgentTurn]) -> bool:
    spoke = all(turn.action.name == MESSAGE for turn in turns)
    return spoke and len({_act(turn) for turn in turns}) == 1


def _alternation(turns: Sequence[AgentTurn]) -> bool:
    even, odd = ({_pair(turn) for turn in turns[start::2]} for start in (0, 1))
    return len(even) == len(odd) == 1


_RULES: Final = {
    "pairs": (_PAIRS, _pairs),
    "errors": (_ERRORS, _errors),
    "messages": (_MESSAGES, _messages),
    "alternation": (_ALTERNATION, _alternation),
}


def _act(turn: AgentTurn) -> tuple[str, str]:
    return turn.action.name, same_text(canonical_json(turn.action.arguments))


def _pair(turn: AgentTurn) -> tuple[str, str, str]:
    seen = turn.observation
    if seen is not None and seen.running:  # who waits for a job does not go in circles
        return *_act(turn), str(turn.action.id)
    return *_act(turn), "" if seen is None else same_text(seen.text)


@checked
def watch_node(deps: ChainDeps, *, on_stuck: OnStuck, recoveries: int) -> Node[RunState]:
    """Make the node that looks for circles after each step.

    Args:
        deps: What the nodes of the chain agent depend on.
        on_stuck: `stop` ends the run. `recover` takes the circles out of what the agent sees, tells
            it so, and begins another attempt.
        recoveries: How often at most; then the run is ended.
    """
    run = deps.run

    def watch(state: RunState) -> Update:
        if state.get("ended"):
            return {}
        log = run.log(state)
        stuck = find_stuck(log.events)
        if stuck is None:
            return {}
        attempt = state.get("attempt", 0)
        if on_stuck == "stop" or attempt >= recoveries:
            return {"ended": f"{STUCK}: {stuck.rule}"}
        arguments = {"rule": stuck.rule, "first_hidden": stuck.first}
        place = len(log.events)
        event = Action(id=place, source="environment", name=RECOVERY, arguments=arguments)
        longer = append_events(run.artifacts, log.reference, [event])
        return {"log": longer, "attempt": attempt + 1}

    return Node("watch", watch)


def after_thinking(state: RunState) -> Literal["act", "end"]:
    """Say where to go after `think`: a run that may not go on has nothing to do."""
    return "end" if state.get("ended") else "act"


def after_watching(deps: ChainDeps, state: RunState) -> Literal["think", "recover", "end"]:
    """Say where to go after `watch`: another attempt asks memory again."""
    if state.get("ended"):
        return "end"
    last = deps.run.log(state).events[-1]
    return "recover" if isinstance(last, Action) and last.name == RECOVERY else "think"
