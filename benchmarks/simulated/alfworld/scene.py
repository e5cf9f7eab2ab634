"""What the learner knows at one moment of an episode: what it saw, holds and did."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from langgraft.benchmarks.simulated.alfworld.goals import Goal
from langgraft.benchmarks.simulated.alfworld.observations import View, kind_of

_GO = "go to "


@dataclass(frozen=True, slots=True)
class Turn:
    """One action and what came of it."""

    action: str
    view: View


@dataclass(slots=True)
class _Memory:
    at: str = ""
    held: str = ""
    seen: dict[str, tuple[str, ...]] = field(default_factory=dict)
    closed: set[str] = field(default_factory=set)
    treated: set[tuple[str, str]] = field(default_factory=set)
    set_down: list[tuple[str, str]] = field(default_factory=list)
    lit: set[str] = field(default_factory=set)

    def take_in(self, turn: Turn) -> None:
        view = turn.view
        if turn.action.startswith(_GO) and not view.refused:
            self.at = turn.action.removeprefix(_GO)
        self.seen.update(view.inside)
        self.closed.discard(view.opened)
        if view.closed:
            self.closed.add(view.closed)
        if view.taken:
            thing, place = view.taken
            self.held = thing
            self.seen[place] = tuple(name for name in self.seen.get(place, ()) if name != thing)
        if view.set_down:
            thing, place = view.set_down
            self.held = ""
            self.set_down.append(view.set_down)
            self.seen[place] = (*self.seen.get(place, ()), thing)
        if view.treated:
            self.treated.add(view.treated)
        if view.lit:
            self.lit.add(view.lit)


@dataclass(frozen=True, slots=True)
class Scene:
    """What the learner knows at one moment of an episode."""

    goal: Goal
    room: tuple[str, ...]
    """What stands around, in the order in which it was told."""
    turns: Sequence[Turn]
    at: str
    """Where it stands; empty at the start."""
    held: str
    """What it holds; empty for nothing."""
    seen: Mapping[str, tuple[str, ...]]
    """What lay there when it last looked."""
    closed: frozenset[str]
    """What it found closed and has not opened."""
    treated: frozenset[tuple[str, str]]
    """What it has done to things: `("clean", "mug 1")`."""
    set_down: tuple[tuple[str, str], ...]
    """Things it has put down, and where, in order."""
    lit: frozenset[str]
    """Lamps it has switched on."""

    @property
    def holds_wanted(self) -> bool:
        """Whether it holds a thing that the goal asks for."""
        return kind_of(self.held) == self.goal.thing

    def of_kind(self, kind: str) -> list[str]:
        """Return what of a kind stands around."""
        return [name for name in self.room if kind_of(name) == kind]

    def lying(self, kind: str) -> Iterator[tuple[str, str]]:
        """Yield things of a kind that it has seen, and where they are."""
        for place, names in self.seen.items():
            for name in names:
                if kind_of(name) == kind:
                    yield name, place

    def refusals(self, action: str) -> int:
        """Count how often an action changed nothing."""
        return sum(1 for turn in self.turns if turn.action == action and turn.view.refused)

    def tried(self, action: str) -> bool:
        """Say whether it has done something before."""
        return any(turn.action == action for turn in self.turns)


def scene_of(goal: Goal, first: View, turns: Sequence[Turn]) -> Scene:
    """Go through an episode from its beginning."""
    memory = _Memory()
    room = first.room
    for turn in turns:
        memory.take_in(turn)
        room = room or turn.view.room
    return Scene(
        goal=goal,
        room=room,
        turns=turns,
        at=memory.at,
        held=memory.held,
        seen=memory.seen,
        closed=frozenset(memory.closed),
        treated=frozenset(memory.treated),
        set_down=tuple(memory.set_down),
        lit=frozenset(memory.lit),
    )
