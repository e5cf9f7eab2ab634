"""Attempts that a memory keeps for comparison: found again by likeness, never recalled.

They are the bank's own bookkeeping, not items. So they are in the deltas and survive whatever the
bank survives, while rankers, controls, exports and reports see the lessons alone, exactly as if
there were none. An import starts afresh with them, as with all that is not content.

For each domain and outcome there are so many slots, filled in turn: each episode rewrites one,
and the oldest attempt is the one that goes.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from langgraft._core.canonical import JSON
from langgraft.memory import bank
from langgraft.memory.model import (
    Attempt,
    BankContent,
    Change,
    Episode,
    Outcome,
    SetState,
    Step,
)
from langgraft.memory.rankers.diversity import TfIdf
from langgraft.memory.stores.programs import Namespace, Program

ATTEMPTS: Final = "attempts/"
"""Bookkeeping: prefix of the attempts kept, and of how many there were."""
LONGEST_TEXT: Final = 1_000
"""Most characters kept of one thought, action or observation."""
LONGEST_ATTEMPT: Final = 8_000
"""Most characters kept of one attempt: about 2,000 tokens of a prompt that compares two."""
LEAST_LIKE: Final = 0.5
"""Least cosine of the keys of two attempts at different tasks that are compared."""

_OPENING = 0.4
"""Part of the room that the first turns have; the last ones, where things are decided, have more."""


def keep_attempt(
    namespace: Namespace, episode: Episode, key: str, position: int, slots: int
) -> Program[Sequence[Change]]:
    """Say what keeping an episode for comparison changes.

    Nothing is kept of one whose outcome nobody can tell, or is told by gold answers: lessons that
    come of a comparison say nothing of where the other attempt's outcome is from.

    Args:
        namespace: The bank.
        episode: The attempt.
        key: What it is compared by.
        position: How many episodes were taken in before.
        slots: How many are kept per domain and outcome.
    """
    success, feedback = episode.outcome.success, episode.outcome.feedback
    if not slots or success is None or feedback == "oracle":
        return ()
    shelf = _shelf(episode.domain, success=success)
    (held,) = yield from bank.read_state(namespace, [shelf])
    count = cast("int", held or 0)
    kept: dict[str, JSON] = {
        "episode_id": episode.id,
        "task_id": episode.task_id,
        "task": _encodable(episode.task)[:LONGEST_TEXT],
        "key": _encodable(key)[:LONGEST_TEXT],
        "position": position,
        "reason": _encodable(episode.outcome.reason)[:LONGEST_TEXT],
        "steps": [[s.thought, s.action, s.observation] for s in shortened(episode.steps)],
    }
    return [SetState(f"{shelf}/{count % slots}", kept), SetState(shelf, count + 1)]


def attempts_left(content: BankContent, episode_id: str) -> list[Change]:
    """Say what drops the attempts kept of an episode: they are no items, and have no ids to name."""
    return [
        SetState(key, None)
        for key, held in content.state.items()
        if key.startswith(ATTEMPTS) and isinstance(held, dict) and held["episode_id"] == episode_id
    ]


def find_counterpart(
    namespace: Namespace, episode: Episode, key: str, slots: int
) -> Program[Attempt | None]:
    """Find the attempt of the same domain that ended the other way, and is most like this one.

    One at the same task comes first; of several the newest. `None` where none is like it enough.
    """
    success = episode.outcome.success
    if not slots or success is None:
        return None
    shelf = _shelf(episode.domain, success=not success)
    held = yield from bank.read_state(namespace, [f"{shelf}/{slot}" for slot in range(slots)])
    found = [cast("Mapping[str, Any]", each) for each in held if each is not None]
    likeness = TfIdf.of([_encodable(key), *(each["key"] for each in found)]).similarities(0)[1:]
    ranked = [
        (each["task_id"] == episode.task_id, float(like), each["position"], slot)
        for slot, (each, like) in enumerate(zip(found, likeness, strict=True))
    ]
    same, like, _, slot = max(ranked, default=(False, 0.0, 0, 0))
    return _attempt(found[slot], success=not success) if same or like >= LEAST_LIKE else None


def shortened(steps: Sequence[Step]) -> tuple[Step, ...]:
    """Return steps cut to the room there is: each text, and the turns in the middle."""
    cut = [Step(_cut(s.thought), _cut(s.action), _cut(s.observation)) for s in steps]
    if sum(map(_size, cut)) <= LONGEST_ATTEMPT:
        return tuple(cut)
    head = _fitting(cut, round(LONGEST_ATTEMPT * _OPENING))
    tail = _fitting(cut[:head:-1], LONGEST_ATTEMPT - sum(map(_size, cut[:head])))
    gap = Step("", "", f"({len(cut) - head - tail} turns are left out here)")
    return (*cut[:head], gap, *cut[len(cut) - tail :])


def _shelf(domain: str, *, success: bool) -> str:
    return f"{ATTEMPTS}{domain}/{'success' if success else 'failure'}"


def _attempt(held: Mapping[str, Any], *, success: bool) -> Attempt:
    return Attempt(
        tuple(Step(*step) for step in held["steps"]),
        Outcome(success, reason=held["reason"]),
        task=held["task"],
        episode_id=held["episode_id"],
    )


def _fitting(steps: Sequence[Step], room: int) -> int:
    """Return how many of the first steps fit."""
    for number, step in enumerate(steps):
        room -= _size(step)
        if room < 0:
            return number
    return len(steps)


def _size(step: Step) -> int:
    return len(step.thought) + len(step.action) + len(step.observation)


def _cut(text: str) -> str:
    text = _encodable(text)
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _encodable(text: str) -> str:
    """Return a text without lone surrogates, which no log can hold."""
    return text.encode("utf-8", "replace").decode("utf-8")
