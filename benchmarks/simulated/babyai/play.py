"""The next action: simple rules over what was seen, the history, and the learner's habits."""

from collections.abc import Sequence

from langgraft.benchmarks.simulated.babyai.attempts import form_of
from langgraft.benchmarks.simulated.babyai.habits import Door, Habits, Spelling
from langgraft.benchmarks.simulated.babyai.scene import Scene
from langgraft.benchmarks.simulated.babyai.search import nudge, search_step
from langgraft.benchmarks.simulated.babyai.sight import DOOR_KINDS, Goal, Kind, Seen
from langgraft.benchmarks.simulated.dice import Dice

_VARIANTS = ("pick up {0}", "go to {0}", "pick up the {1}", "take {0}", "pick up {1}", "grab {0}")


def next_action(scene: Scene, habits: Habits, dice: Dice) -> str:
    """Decide on the next action."""
    targets = scene.targets
    if not targets:
        blind = _blind(scene.goal, habits)
        return search_step(scene, habits, dice, blind)
    if scene.goal.kind is Kind.TAKE:
        action = _take(scene, targets, habits)
    elif scene.goal.kind in DOOR_KINDS:
        action = _door(scene, targets, habits)
    else:
        action = _face(scene, targets)
    return action or nudge(scene.actions, len(scene.turns), dice)


def _face(scene: Scene, targets: Sequence[Seen]) -> str | None:
    """Go to a target; where it is faced already, turn away first, so that it can be gone to."""
    last = scene.turns[-1] if scene.turns else None
    if last is not None and last.action.startswith("go to ") and last.view.unchanged:
        return "turn left"
    return _first_listed(scene, "go to", targets)


def _take(scene: Scene, targets: Sequence[Seen], habits: Habits) -> str | None:
    refused = [turn for turn in scene.turns if turn.failed and _is_taking(turn.action)]
    noticed = habits.spelling is Spelling.NOTICE and refused
    if habits.spelling is Spelling.JOINED or noticed:
        return _first_listed(scene, "pickup", targets)
    tried = sum(1 for turn in scene.turns if _is_taking(turn.action) or turn.action[:5] == "go to")
    variant = _VARIANTS[tried % len(_VARIANTS)]
    return variant.format(targets[0].label, scene.goal.name)


def _is_taking(action: str) -> bool:
    return isinstance(form_of(action), Spelling)


def _door(scene: Scene, targets: Sequence[Seen], habits: Habits) -> str | None:
    closed = [door for door in targets if door.state != "open"]
    if habits.door is Door.PASS:
        through = _first_listed(scene, "toggle and go through", closed)
        return through or _first_listed(scene, "go through", targets)
    if scene.goal.kind is Kind.OPEN and habits.door is Door.TOGGLE:
        if "toggle" in scene.actions and any(door.at_hand for door in closed):
            return "toggle"
        return _face(scene, closed or targets)
    return _face(scene, targets)


def _first_listed(scene: Scene, verb: str, things: Sequence[Seen]) -> str | None:
    return next((action for thing in things if (action := scene.listed(verb, thing))), None)


def _blind(goal: Goal, habits: Habits) -> str:
    """Word the goal as an action, for want of anything in sight."""
    if goal.kind is not Kind.TAKE:
        return f"go to {goal.name} 1"
    verb = "pickup" if habits.spelling is Spelling.JOINED else "pick up"
    return f"{verb} {goal.name} 1"
