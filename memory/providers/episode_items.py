"""One item for one episode: a short note, or the whole trajectory.

Memory-transplants gives capacities and cadences, and not what an item says. Here a note says

* the task;
* how it ended, and why, as far as anybody can tell;
* the lessons, if some were drawn, each on a line of its own; or else what the agent thought and
  did last, which where an answer is asked for is the answer.

Nothing is cut: a note is short because it holds one turn at most. Both kinds are retrieved by the
task, unless a provider gives another key.
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from langgraft.memory.episodes import Episode, Result, Step, render_trajectory
from langgraft.memory.items import ItemType, MemoryItem
from langgraft.memory.providers.insight import authors, render_lesson

_TYPES: Final[Mapping[bool | None, ItemType]] = {
    True: "strategic",
    False: "error_trace",
    None: "other",
}
_RESULTS: Final[Mapping[bool | None, Result]] = {True: "success", False: "failure", None: ""}


def note_of(episode: Episode, order_index: int) -> MemoryItem:
    """Make the note of an episode.

    Its type is that of memory-transplants §4.2 (`LIGHTWEIGHT_MEMORY`): `strategic` after a
    success, `error_trace` after a failure; `other`, ours, where nobody can tell. One with lessons
    by rules says so in its metadata.
    """
    lines = [f"Task: {episode.task}", _ending(episode)]
    if episode.lessons:
        lines += map(render_lesson, episode.lessons)
    else:
        lines.append(_last_turn(episode))
    text = "\n".join(line for line in lines if line)
    note = _item(episode, "note", text, _TYPES[episode.outcome.success], order_index)
    return note.model_copy(update={"metadata": authors(episode.lessons)})


def trajectory_of(episode: Episode, order_index: int, *, key: str | None = None) -> MemoryItem:
    """Make an item of an episode as it happened, turn by turn; it is found by `key`, or the task."""
    trajectory = render_trajectory(episode.steps, result=_RESULTS[episode.outcome.success])
    text = f"Task: {episode.task}\n{trajectory}"
    return _item(episode, "trajectory", text, "operational", order_index, key=key)


def _ending(episode: Episode) -> str:
    result = _RESULTS[episode.outcome.success]
    reason = episode.outcome.reason
    if not (result or reason):
        return ""
    return f"Result: {result or 'not known'}" + (f" ({reason})" if reason else "")


def _last_turn(episode: Episode) -> str:
    turns = [each for each in episode.steps if (each.thought or each.action) and not each.malformed]
    last = [replace(turns[-1], observation="")] if turns else list[Step]()
    return render_trajectory(last, result="")


def _item(
    episode: Episode,
    name: str,
    text: str,
    kind: ItemType,
    order_index: int,
    *,
    key: str | None = None,
) -> MemoryItem:
    return MemoryItem(
        id=f"{episode.id}/{name}",
        text=text,
        type=kind,
        source_domain=episode.domain,
        episode_id=episode.id,
        success=episode.outcome.success,
        order_index=order_index,
        task_id=episode.task_id,
        key=episode.task if key is None else key,
    )
