"""The actions on offer, what each one runs, and why others are refused (notes §2.4, §2.5).

An option is a line of text and a plan: the primitive moves it runs one after the other.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from langgraft.environments.babyai.paths import (
    FORWARD,
    LEFT,
    RIGHT,
    Routes,
    agentgym_routes,
    tidy_routes,
)
from langgraft.environments.babyai.scene import Scene, Thing

PICKUP, DROP, TOGGLE, NOTHING = 3, 4, 5, 6
CHECK = "check available actions"

Plan: TypeAlias = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Options:
    """What can be done in one scene."""

    plans: dict[str, Plan] = field(default_factory=dict)
    """Option → primitive moves, in the order AgentGym lists them."""
    refusals: dict[str, str] = field(default_factory=dict)
    """Known but impossible action → the sentence that says why."""


def options_in(scene: Scene, *, fixed: bool) -> Options:
    """List what can be done in a scene.

    Args:
        scene: What the agent sees and carries.
        fixed: Put right what AgentGym gets wrong (see the package's table).
    """
    routes = tidy_routes(scene) if fixed else agentgym_routes(scene)
    movable = [t for t in scene.things if t.kind not in {"wall", "door", "goal"}]
    approachable = [t for t in scene.things if t.kind not in {"wall", "goal"}]
    options = Options({"turn left": (LEFT,), "turn right": (RIGHT,)})
    _offer_step(options, scene, fixed=fixed)
    if scene.load is None:
        _offer_each(options, "pickup", movable, routes, (PICKUP,), fixed=fixed)
    _offer_drop(options, scene, fixed=fixed)
    _offer_doors(options, scene, routes, fixed=fixed)
    _offer_goal(options, scene, routes)
    _offer_each(options, "go to", approachable, routes, (), fixed=fixed)
    options.plans[CHECK] = ()
    return options


def _offer_step(options: Options, scene: Scene, *, fixed: bool) -> None:
    """`move forward`; AgentGym offers it against closed doors, keys and balls too."""
    if fixed:
        free = not any(t.cell == scene.front and not t.walkable for t in scene.things)
    else:
        free = scene.barrier is None or scene.barrier.ahead > 1
    if free:
        options.plans["move forward"] = (FORWARD,)
    else:
        options.refusals["move forward"] = (
            "There is a barrier in front of you, you can't move forward."
        )


def _offer_each(
    options: Options,
    verb: str,
    things: Iterable[Thing],
    routes: Routes,
    ending: Plan,
    *,
    fixed: bool,
) -> None:
    """Offer `verb` for each thing there is a way to.

    AgentGym counts ids over the things reached so far, which can differ from the ids in the
    description; a thing out of reach takes the id that the next one in reach gets.
    """
    reached: dict[str, int] = {}
    for thing in things:
        number = thing.number if fixed else reached.get(thing.name, 0) + 1
        action = f"{verb} {thing.name} {number}"
        way = routes.facing(thing.cell)
        if way is None:
            options.refusals[action] = f"You cannot {action}, as there is no path leading to it."
            continue
        reached[thing.name] = number
        # With nothing to run, the mission would never be checked: let one empty step pass.
        options.plans[action] = (way + ending) or ((NOTHING,) if fixed else ())


def _offer_drop(options: Options, scene: Scene, *, fixed: bool) -> None:
    """`drop`; AgentGym overlooks a door or a goal in the way."""
    overlooked = set() if fixed else {"door", "goal"}
    if scene.load is None:
        why = "you are not carrying anything"
    elif any(t.cell == scene.front and t.kind not in overlooked for t in scene.things):
        why = "there is already an object in front of you"
    else:
        options.plans["drop"] = (DROP,)
        return
    options.refusals["drop"] = f"You cannot drop the object, as {why}."


def _offer_doors(options: Options, scene: Scene, routes: Routes, *, fixed: bool) -> None:
    counts: dict[str, int] = {}
    for door in scene.things:
        if door.kind != "door":
            continue
        counts[door.name] = door.number
        label = f"{door.name} {door.number}"
        if door.door == "open":
            _offer_passage(options, label, routes.onto(door.cell))
            continue
        if door.door == "closed":
            options.refusals[f"go through {label}"] = (
                f"You cannot go through {label}, as it is closed. You should toggle it first."
            )
        # AgentGym prints its table of counts where the id belongs.
        told = label if fixed else f"{door.name} {counts}"
        lock = _lock(scene, door)
        if lock is not None:
            options.refusals[f"toggle and go through {label}"] = (
                f"You cannot toggle and go through {label}, as {lock}."
            )
        else:
            _offer_opening(options, label, told, routes.facing(door.cell))


def _offer_passage(options: Options, label: str, way: Plan | None) -> None:
    if way is None:
        why = f"You cannot go through {label}, as there is no path leading to it."
        options.refusals[f"go through {label}"] = why
    else:
        options.plans[f"go through {label}"] = way


def _offer_opening(options: Options, label: str, told: str, way: Plan | None) -> None:
    """Offer to open a door and pass, and to open it only when standing before it."""
    if way is None:
        options.refusals[f"toggle and go through {label}"] = (
            f"You cannot toggle and go through {told}, as there is no path leading to it."
        )
        return
    options.plans[f"toggle and go through {label}"] = (*way, TOGGLE, FORWARD)
    if not way:
        options.plans["toggle"] = (TOGGLE,)


def _offer_goal(options: Options, scene: Scene, routes: Routes) -> None:
    for thing in scene.things:
        if thing.kind != "goal":
            continue
        way = routes.onto(thing.cell)
        if way is None:
            options.refusals["go to goal"] = (
                "You cannot go to the goal, as there is no path leading to it."
            )
        else:
            options.plans["go to goal"] = way


def _lock(scene: Scene, door: Thing) -> str | None:
    """Say why a door cannot be opened with what the agent carries."""
    if door.door != "locked":
        return None
    if scene.load is None or scene.load[0] != "key":
        return "you are not carrying a key"
    if scene.load[1] != door.color:
        return "the color of the key you are carrying does not match the color of door"
    return None
