"""What the learner knows at one moment and does next; as a chat model: messages in, a reply out."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from typing_extensions import override

from langgraft.benchmarks.simulated.babyai.advice import LOOK_AROUND, Turn, counsel_for, form_of
from langgraft.benchmarks.simulated.babyai.habits import (
    DOOR_KINDS,
    Door,
    Goal,
    Habits,
    Kind,
    Search,
    Seen,
    Spelling,
    View,
    is_target,
    parse_goal,
    parse_view,
    read_plan,
    settle,
    state_plan,
)
from langgraft.benchmarks.simulated.babyai.reflect import lessons_of, parse_review, score_lessons
from langgraft.benchmarks.simulated.chat import Sampling
from langgraft.benchmarks.simulated.conversation import Conversation, Dice, Opening, WorldLearner
from langgraft.benchmarks.simulated.reflecting import in_form


@dataclass(frozen=True, slots=True)
class Scene:
    """What the learner knows at one moment of an episode."""

    goal: Goal
    first: View
    turns: Sequence[Turn]

    @property
    def view(self) -> View:
        """What is in sight: the last description, since refusals leave the world as it was."""
        for turn in reversed(self.turns):
            if turn.view.described:
                return turn.view
        return self.first if self.first.described else parse_view("")

    @property
    def actions(self) -> tuple[str, ...]:
        """The actions on offer."""
        for turn in reversed(self.turns):
            if turn.view.actions:
                return turn.view.actions
        return self.first.actions

    @property
    def targets(self) -> list[Seen]:
        """The things in sight that the goal asks for."""
        return [thing for thing in self.view.things if is_target(self.goal, thing)]

    def listed(self, verb: str, thing: Seen) -> str | None:
        """Return the listed action with a verb for a thing; its number may differ."""
        wanted = f"{verb} {thing.label}"
        if wanted in self.actions:
            return wanted
        name = wanted.rpartition(" ")[0] + " "
        return next((a for a in self.actions if a.startswith(name)), None)


_STEP_AFTER = 5
"""Turning in place, it takes a step before every fifth turn, for another angle."""

_NEAR = 3
"""How far the view reaches to either side."""


def search_step(scene: Scene, habits: Habits, dice: Dice, blind: str) -> str:
    """Decide where to look next, in the way the habits say; `blind` is the goal as an action."""
    count = len(scene.turns)
    match habits.search:
        case Search.LEAVE:
            return _next_room(scene, dice)
        case Search.SURVEY:
            surveying = count < LOOK_AROUND and not _passes(scene.turns)
            return "turn left" if surveying else _next_room(scene, dice)
        case Search.WANDER:
            return nudge(scene.actions, count, dice)
        case Search.GUESS if count % 2 == 0:
            return blind
    if habits.search is Search.STAY and count % _STEP_AFTER == _STEP_AFTER - 1:
        return _forward(scene.actions)
    return "turn left"


def nudge(actions: tuple[str, ...], count: int, dice: Dice) -> str:
    """Step or turn, without a plan."""
    roll = dice.fraction(f"nudge {count}")
    if roll < 0.6 and "move forward" in actions:  # noqa: PLR2004  (mostly ahead)
        return "move forward"
    return "turn left" if roll < 0.8 else "turn right"  # noqa: PLR2004


def _next_room(scene: Scene, dice: Dice) -> str:
    """Open the nearest closed door; without one, look around; then go back the way least used.

    A closed door has never been passed, so no map is needed.
    """
    view, actions, turns = scene.view, scene.actions, scene.turns
    entered = _passes(turns)
    since = len(turns) - (entered[-1] + 1 if entered else 0)
    if _stuck(turns):
        return nudge(actions, len(turns), dice)
    if closed := _listed(view, actions, "toggle and go through "):
        return closed[0]
    if not entered:
        return _look_around(view, actions, since)
    back = _listed(view, actions, "go through ")
    returned = turns[entered[-1]].action.startswith("go through ")
    looked = returned if since == 0 else _has_looked(turns[-since:], view)
    if back and looked:
        used = [turns[i].action for i in entered]
        return min(back, key=lambda action: _times_used(action, used))
    if since == 0:
        return _forward(actions)
    return "turn left" if since <= 2 * LOOK_AROUND else nudge(actions, len(turns), dice)


def _look_around(view: View, actions: tuple[str, ...], since: int) -> str:
    """Turn until a door shows; after a full turn, move to see from elsewhere."""
    if since <= LOOK_AROUND or view.barrier <= _NEAR or since % (LOOK_AROUND + 2) == 0:
        return "turn left"
    return _forward(actions)


def _has_looked(since: Sequence[Turn], view: View) -> bool:
    """Say whether all of a room was seen: the entry shows the nearer side wall, a turn the other.

    A wall at least `_NEAR` steps away after the first turn is the farther one.
    """
    turned = sum(1 for turn in since if turn.action.startswith("turn "))
    return turned >= LOOK_AROUND or (turned == 1 and view.barrier >= _NEAR)


def _listed(view: View, actions: tuple[str, ...], verb: str) -> list[str]:
    """Return the listed ways through doors, the nearest door first."""
    doors = sorted((t for t in view.things if t.type == "door"), key=lambda t: t.ahead + t.aside)
    return [action for door in doors if (action := verb + door.label) in actions]


def _times_used(action: str, used: Sequence[str]) -> int:
    color = action.removeprefix("go through ").partition(" ")[0]
    return sum(1 for past in used if f"through {color} " in past)


def _passes(turns: Sequence[Turn]) -> list[int]:
    return [
        i
        for i, turn in enumerate(turns)
        if form_of(turn.action) is Door.PASS and not turn.view.refused
    ]


def _stuck(turns: Sequence[Turn]) -> bool:
    """Say whether the last action was refused, or did nothing and was tried again."""
    if turns and turns[-1].view.refused:
        return True
    return len(turns) > 1 and turns[-1].action == turns[-2].action != "turn left"


def _forward(actions: tuple[str, ...]) -> str:
    return "move forward" if "move forward" in actions else "turn left"


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


MODEL_NAME = "simulated-babyai"


class SimulatedBabyAI(WorldLearner):
    """A rule-based learner that plays BabyAI in words. It is not a language model.

    `model_name` is what logs call it.

        model = SimulatedBabyAI(seed=42)
        agent = build_react_agent(model, environment=BabyAI(), memory=memory)

    It reads messages only: instructions in the system prompt, the goal, notes recalled from
    memory where there are any, what it sees, and what it did before. What it can do,
    and what it does not know, is in `docs/simulated-models.md`.
    """

    model_name: str = MODEL_NAME
    world: ClassVar = "babyai"
    idle: ClassVar = "check available actions"
    at_a_loss: ClassVar = "I can only play BabyAI in words, and I do not understand this."

    @override
    def scores(self, prompt: str, dice: Dice) -> str | None:
        return score_lessons(prompt, dice)

    @override
    def lessons(self, prompt: str, dice: Dice) -> str | None:
        review = parse_review(prompt)
        return None if review is None else in_form(prompt, lessons_of(review, dice))

    @override
    def played(
        self, conversation: Conversation, opening: Opening, sampling: Sampling
    ) -> str | None:
        seen = opening.observation
        goal = parse_goal(seen) if "goal:" in seen.lower() else None
        if goal is None:
            return None
        turns = [Turn(each.action, parse_view(each.observation)) for each in conversation.exchanges]
        scene = Scene(goal, parse_view(seen), turns)
        dice = self.dice(opening.whole, sampling)
        declared = read_plan(conversation.thoughts)
        taking = goal.kind is Kind.TAKE
        known = declared.or_else(_instructed(conversation.system)) if taking else declared
        habits = settle(goal, counsel_for(goal.kind, opening.notes), known, dice)
        thought = state_plan(goal, habits, declared)
        return f"Thought: {thought}\nAction: {next_action(scene, habits, dice)}"


def _instructed(system: str) -> Habits:
    """Take the spelling from the instructions, where they have the right one."""
    words = system.lower()
    joined = "pickup" in words and "pick up <" not in words
    return Habits(spelling=Spelling.JOINED if joined else None)
