"""Items made of episodes, and a queue that keeps the order they came in.

One item stands for one episode: a short note, or the whole trajectory.

Memory-transplants gives capacities and cadences, and not what an item says. Here a note says

* the task;
* how it ended, and why, as far as anybody can tell;
* the lessons, if some were drawn, each on a line of its own; or else what the agent thought and
  did last, which where an answer is asked for is the answer.

A note holds one turn at most, and of a long task or turn what its settings allow (`excerpt`): a
problem of a contest is longer than all that was learned of it, and a note of 400 tokens fits no
budget of 400. Both kinds are retrieved by the whole task, unless a provider
gives another key.

LangGraph stores list records in no promised order, and filters of a plain listing do not reach
into an item. So providers that forget or recall by age keep a queue of items in their bookkeeping
(`FifoOrder`), one place a record. Joining writes two records, reading an end reads a few, and
pruning reads as many as there may be: a bank keeps marks of all episodes ever filed, and none of
them is read. The queue is a function of the log, as all bookkeeping is; imported items join it as
they settle (`MemoryProvider._settle`).
"""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final, TypeVar, cast

from langgraph.store.base import GetOp, Item
from pydantic import Field as SettingsField
from typing_extensions import override

from langgraft.memory import bank
from langgraft.memory.bank import with_free_ids
from langgraft.memory.model import (
    Add,
    BankContent,
    Change,
    Episode,
    ItemType,
    Lesson,
    MemoryItem,
    Remove,
    Result,
    Scalar,
    SetState,
    Step,
)
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import item_of
from langgraft.memory.settings import RankedSettings
from langgraft.memory.stores.programs import Namespace, Program

_TYPES: Final[Mapping[bool | None, ItemType]] = {
    True: "strategic",
    False: "error_trace",
    None: "other",
}
_RESULTS: Final[Mapping[bool | None, Result]] = {True: "success", False: "failure", None: ""}


def note_of(episode: Episode, order_index: int, *, part_characters: int) -> MemoryItem:
    """Make the note of an episode, of each of whose parts it says so many characters at most.

    Its type is that of memory-transplants §4.2 (`LIGHTWEIGHT_MEMORY`): `strategic` after a
    success, `error_trace` after a failure; `other`, ours, where nobody can tell. One with lessons
    by rules says so in its metadata.
    """
    text = render_note(episode, part_characters=part_characters)
    note = _item(episode, "note", text, _TYPES[episode.outcome.success], order_index)
    return note.model_copy(update={"metadata": authors(episode.lessons)})


def render_note(episode: Episode, *, part_characters: int) -> str:
    """Write what a note says: the task, the end, and the lessons or else the last turn."""
    lines = [f"Task: {excerpt(episode.task, part_characters)}", _ending(episode)]
    if episode.lessons:
        lines += map(render_lesson, episode.lessons)
    else:
        lines.append(_last_turn(episode, part_characters))
    return "\n".join(line for line in lines if line)


def trajectory_of(
    episode: Episode,
    order_index: int,
    *,
    key: str | None = None,
    characters: int | None = None,
) -> MemoryItem:
    """Make an item of an episode as it happened, turn by turn; it is found by `key`, or the task.

    Of `characters`, where there is a limit, the task has a third at most.
    """
    text = render_trajectory(episode.steps, result=_RESULTS[episode.outcome.success])
    task = episode.task
    if characters is not None:
        task = excerpt(task, characters // 3)
        text = excerpt(text, characters - len(f"Task: {task}\n"))
    text = f"Task: {task}\n{text}"
    return _item(episode, "trajectory", text, "operational", order_index, key=key)


def render_trajectory(steps: Sequence[Step], *, result: Result) -> str:
    """Write a trajectory as text: each thought, action and observation on lines of its own.

    Parts that hold nothing leave no line. Of a malformed reply only what was said to it is shown,
    and of several in a row to the last: a trajectory is read by models, who do as they are shown.
    """
    lines: list[str] = []
    for step, following in zip_longest(steps, steps[1:]):
        if step.malformed and following is not None and following.malformed:
            continue
        parts = {
            "Thought": "" if step.malformed else step.thought,
            "Action": step.action,
            "Observation": step.observation,
        }
        lines += [f"{name}: {text}" for name, text in parts.items() if text]
    if result:
        lines.append(f"Result: {result}")
    return "\n".join(lines)


def excerpt(text: str, characters: int) -> str:
    """Leave out the middle of a text that is longer: how it begins and how it ends tell the most.

    What stands for the middle counts too.
    """
    if len(text) <= characters:
        return text
    mark = "\n[… {} characters left out …]\n"
    kept = characters - len(mark.format(len(text)))
    if kept <= 0:
        return text[: max(0, characters)]
    end = kept // 2
    left_out = mark.format(len(text) - kept)
    return text[: kept - end] + left_out + text[len(text) - end :]


def _ending(episode: Episode) -> str:
    result = _RESULTS[episode.outcome.success]
    reason = episode.outcome.reason
    if not (result or reason):
        return ""
    return f"Result: {result or 'not known'}" + (f" ({reason})" if reason else "")


def _last_turn(episode: Episode, characters: int) -> str:
    turns = [each for each in episode.steps if (each.thought or each.action) and not each.malformed]
    last = [
        Step(excerpt(turn.thought, characters), excerpt(turn.action, characters), "")
        for turn in turns[-1:]
    ]
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


def render_lesson(lesson: Lesson) -> str:
    """Write a lesson as text: the situation first, then the advice."""
    if not lesson.when_to_use:
        return f"- {lesson.text}"
    return f"- When {lesson.when_to_use}: {lesson.text}"


def authors(lessons: Sequence[Lesson]) -> dict[str, Scalar]:
    """Return metadata that says `by: rules` where rules stood in for a model."""
    return {"by": "rules"} if any(lesson.by == "rules" for lesson in lessons) else {}


_QUEUES: Final = "arrivals/"  # as banks and logs have it
_BLOCK = 64
"""Ids read at a time, at least."""


def places_left(content: BankContent, item: MemoryItem) -> list[Change]:
    """Say what gives up the places of an item in the queues of its bank, where it is forgotten."""
    place = [item.id, item.order_index]
    return [
        SetState(key, None)
        for key, held in content.state.items()
        if key.startswith(_QUEUES) and held == place
    ]


def places_closed(content: BankContent) -> list[Change]:
    """Say what closes the gaps in the queues of a bank, as if what left had never stood in them."""
    changes: list[Change] = []
    for key, held in content.state.items():
        name = key.removeprefix(_QUEUES)
        if name == key or "/" in name:
            continue
        first, end = cast("list[int]", held)
        places = [f"{key}/{number}" for number in range(first, end)]
        standing = [content.state[place] for place in places if place in content.state]
        filled = dict(zip(places, standing, strict=False))
        changes += [SetState(place, filled.get(place)) for place in places]
        bounds = [first, first + len(standing)]
        changes.append(SetState(key, bounds if standing or first else None))
    return changes


@dataclass(frozen=True, slots=True)
class FifoOrder:
    """Items in the order they came, so that the oldest and the newest are found without a scan.

    Items that something else removed, a policy or an import that replaces them, leave their
    place empty and are passed over; one of the same name that comes later has its own.

    Args:
        namespace: The bank.
        name: Which queue of the bank it is.
    """

    namespace: Namespace
    name: str = "items"

    def add(self, item: MemoryItem) -> Program[list[Change]]:
        """Say what a new item changes: it enters the bank, and joins the queue.

        The queue holds names as the bank does, where an imported item may have this one's. Ask
        once in a delta: the next place is read off the bank.
        """
        changes = yield from with_free_ids(self.namespace, [Add(item)])
        added = [change.item for change in changes if isinstance(change, Add)]
        return [*changes, *(yield from self.join(added))]

    def join(self, items: Sequence[MemoryItem]) -> Program[list[SetState]]:
        """Say what changes when items join the end of the queue."""
        first, end = yield from self._bounds()
        return self._placed(items, first, end) if items else []

    def overflow(self, limit: int) -> Program[list[Change]]:
        """Say what changes when the oldest leave, until there are `limit` (FIFO).

        Empty places are cleared away only with items, or where they are as many as items may be:
        what another policy forgets after this one makes no upkeep due.
        """
        first, end = yield from self._bounds()
        if end - first <= limit:
            return []
        held = yield from self._held(first, end)
        surplus = max(0, len(held) - limit)
        if not surplus and end - first <= 2 * limit:
            return []
        gone, kept = held[:surplus], held[surplus:]
        removed = [Remove(item.id, f"over the capacity of {limit}") for _, item in gone]
        start = kept[0][0] if kept else end
        if end - start <= 2 * limit:
            return [*removed, *self._vacated(first, start), self._set_bounds(start, end)]
        # Too many empty places between the items: they get new places.
        moved = self._placed([item for _, item in kept], end, end)
        return [*removed, *self._vacated(first, end), *moved]

    def newest(
        self, limit: int, *, where: Callable[[MemoryItem], bool] = lambda _: True
    ) -> Program[list[MemoryItem]]:
        """Read the last `limit` items that pass `where`, newest first."""
        first, end = yield from self._bounds()
        found: list[MemoryItem] = []
        width = max(limit, _BLOCK)
        while end > first and len(found) < limit:
            start = max(first, end - width)
            block = yield from self._held(start, end)
            found += [item for _, item in reversed(block) if where(item)]
            end, width = start, 2 * width
        return found[:limit]

    def oldest(self) -> Program[MemoryItem | None]:
        """Read the first item that is still there."""
        first, end = yield from self._bounds()
        for start in range(first, end, _BLOCK):
            block = yield from self._held(start, min(start + _BLOCK, end))
            if block:
                return block[0][1]
        return None

    @property
    def _key(self) -> str:
        return f"{_QUEUES}{self.name}"

    def _place(self, number: int) -> str:
        return f"{self._key}/{number}"

    def _bounds(self) -> Program[tuple[int, int]]:
        """Return the number of the first place in use, and of the first behind the queue."""
        (held,) = yield from bank.read_state(self.namespace, [self._key])
        first, end = cast("list[int]", held or [0, 0])
        return first, end

    def _set_bounds(self, first: int, end: int) -> SetState:
        return SetState(self._key, [first, end])

    def _placed(self, items: Sequence[MemoryItem], first: int, end: int) -> list[SetState]:
        """Put items behind a queue of these bounds."""
        places = [
            SetState(self._place(number), [item.id, item.order_index])
            for number, item in enumerate(items, end)
        ]
        return [*places, self._set_bounds(first, end + len(items))]

    def _vacated(self, start: int, end: int) -> list[SetState]:
        return [SetState(self._place(number), None) for number in range(start, end)]

    def _held(self, start: int, end: int) -> Program[list[tuple[int, MemoryItem]]]:
        """Read the items that are at their places, with the numbers of these."""
        keys = [self._place(number) for number in range(start, end)]
        values = cast("list[list[Any] | None]", (yield from bank.read_state(self.namespace, keys)))
        # A reader has no lock: a place may have been given up since.
        places = [(number, *held) for number, held in enumerate(values, start) if held]
        records = yield [GetOp(self.namespace, bank.item_key(name)) for _, name, _ in places]
        items = [
            None if record is None else item_of(record)
            for record in cast("Sequence[Item | None]", records)
        ]
        return [
            (number, item)
            for (number, _, order), item in zip(places, items, strict=True)
            if item is not None and item.order_index == order
        ]


class NoteSettings(RankedSettings):
    """Settings of providers that keep notes."""

    part_characters: int = SettingsField(default=400, ge=1)
    """Most characters that a note says of the task, and of the last turn's thought and action where
    it tells them; of a longer one the middle is left out. 400 are about 100 tokens, of the 178 that
    half a block of 400 has room for (memory-transplants §4.4)."""


class LatestNotesSettings(NoteSettings):
    """Settings of a bank that holds the latest notes."""

    max_items: int = SettingsField(ge=1)
    """Items the bank holds; the first in is the first out."""


NotesT = TypeVar("NotesT", bound=LatestNotesSettings)


class LatestNotes(MemoryProvider[NotesT]):
    """Base of providers that keep a note of every episode, and differ in how they recall them."""

    @property
    @override
    def revokes_exactly(self) -> bool:
        return True

    @property
    def _fifo(self) -> FifoOrder:
        return FifoOrder(self.namespace)

    @override
    def _learn(
        self, episode: Episode, position: int, order_index: int
    ) -> Program[Sequence[Change]]:
        note = note_of(episode, order_index, part_characters=self.settings.part_characters)
        return self._fifo.add(note)

    @override
    def _maintain(self) -> Program[Sequence[Change]]:
        return self._fifo.overflow(self.settings.max_items)

    @override
    def _settle(self, items: Sequence[MemoryItem]) -> Program[Sequence[Change]]:
        return self._fifo.join(items)

    @override
    def _follow(
        self, content: BankContent, old: MemoryItem, new: MemoryItem | None
    ) -> Sequence[Change]:
        return () if new else places_left(content, old)

    @override
    def _withdraw(self, left: BankContent, episodes: Collection[str]) -> Sequence[Change]:
        return places_closed(left)
