"""One episode of BabyAI, the factory of episodes by task id, and minigrid's worlds: built fresh, and quiet."""

import importlib
import math
import os
import re
import sys
import threading
from dataclasses import dataclass
from functools import cache
from importlib import resources
from types import FunctionType, MethodType, ModuleType
from typing import Any, Final, Literal, Self, TypeAlias, get_args

from langgraft._core.arguments import check_whole, did_you_mean
from langgraft._core.canonical import JSON
from langgraft._core.errors import SettingsError
from langgraft._core.lazy import require
from langgraft.environments.babyai.scene import Options, Plan, describe, look, options_in
from langgraft.environments.babyai.tasks import instance_of, parse_task_id, task_of, tasks_of
from langgraft.environments.text import Reset, TextTask, Transition

Semantics: TypeAlias = Literal["compat", "fixed"]
"""`compat` plays as AgentGym's wrapper does, to the letter; `fixed` puts its slips right."""

MAX_ROUNDS = 20
"""Replies an agent has in AgentGym's evaluation of BabyAI (notes §2.6)."""

_BANNER = "PYGAME_HIDE_SUPPORT_PROMPT"
_IMPORTING = threading.Lock()

# Current minigrid registers this level with another room size under `-v1` and drops `-v0`;
# AgentGym's `-v0` is a room of size 4.
_RENAMED: dict[str, tuple[str, dict[str, int]]] = {
    "BabyAI-GoToObjS6-v0": ("BabyAI-GoToObjS6-v1", {"room_size": 4}),
}

_NOT_IN_ACTIONS = re.compile("[^a-z0-9, ]+")
_NO_CHANGE = "No change in state."
_UNKNOWN = "The action is not recognized. Please check valid actions."


class BabyAIEnvironment:
    """An instance of a BabyAI level, seen and played as text.

    `task` is the level as a task of a text world, `instructions` how it is played.

        world = BabyAIEnvironment("BabyAI-ActionObjDoor-v0", seed=17)
        print(world.reset().observation)
        transition = world.step("go to grey closed door 1")

    An episode belongs to one thread at a time; any number of them can run side by side.

    Args:
        level: A level id known to minigrid, such as those in `LEVELS`.
        seed: Which world of the level. For seeds 0-299 of the paper's two families it is the same
            one in minigrid 2.3.1, 3.0.0 and 3.2.0 (notes §1).
        semantics: `compat` or `fixed`; the package's docstring lists how they differ.
        max_rounds: How many replies the agent has. Whoever runs the episode counts them.

    Raises:
        SettingsError: An argument is not usable.
        MissingExtraError: minigrid or gymnasium is not installed.
    """

    def __init__(
        self,
        level: str,
        seed: int,
        semantics: Semantics = "compat",
        max_rounds: int = MAX_ROUNDS,
    ) -> None:
        check_semantics(semantics)
        check_whole("max_rounds", max_rounds)
        check_whole("seed", seed, 0)
        check_level(level)
        self.level = level
        self.seed = seed
        self.semantics = semantics
        self.task = task_of(level, seed)
        self.instructions = _instructions()
        self.max_rounds = max_rounds
        self._fixed = semantics == "fixed"
        self._world: Any = None
        self._options = Options()
        self._mark: tuple[object, ...] = ()
        self._reward = self._score = 0.0
        self._done = self._success = False

    @classmethod
    def from_data_idx(
        cls, data_idx: int, semantics: Semantics = "compat", max_rounds: int = MAX_ROUNDS
    ) -> Self:
        """Build the instance that AgentGym's servers know by `data_idx`.

        Raises:
            SettingsError: An argument is not usable.
        """
        level, seed = instance_of(data_idx)
        return cls(level, seed, semantics, max_rounds)

    def reset(self) -> Reset:
        """Start the episode again from the beginning; the same every time."""
        self.close()
        world = build(self.level)
        observation, _ = world.reset(seed=self.seed)
        if self._fixed:
            # A level that starts with a full hand shows that thing on the floor as well.
            observation = world.gen_obs()
        self._world = world
        self._reward = self._score = 0.0
        self._done = self._success = False
        state = self._look(observation)
        goal = world.mission.replace("then", "and").replace("after you", "and")
        text = f"Your goal: {goal}\n{self._with_actions(state)}"
        return Reset(instruction=goal, observation=text, actions=tuple(self._options.plans))

    def step(self, action: str) -> Transition:
        """Take one action, written as text.

        Input that is no available action is answered in words, costs a round and leaves the
        world as it is. `Transition.info` tells whether the action was `valid`, the running
        `score` that AgentGym's client reports, and the primitive `steps` so far of `max_steps`.

        Raises:
            RuntimeError: Called before `reset` or after the episode ended.
        """
        if self._world is None:
            raise RuntimeError(f"{self.task.id}: call reset() before step()")
        if self._done:
            raise RuntimeError(f"{self.task.id}: the episode has ended; call reset() to play again")
        valid, state = self._act(self._normalized(action))
        self._score += self._reward
        return Transition(
            observation=self._with_actions(state),
            reward=self._reward,
            done=self._done,
            success=self._success,
            actions=tuple(self._options.plans),
            info=self._info(valid=valid),
        )

    def close(self) -> None:
        """Free the world; `reset` builds it again."""
        if self._world is not None:
            self._world.close()
            self._world = None

    def _normalized(self, action: str) -> str:
        # AgentGym's client takes everything else off before the server sees it.
        text = " ".join(_NOT_IN_ACTIONS.sub("", action.lower()).split())
        if self._fixed and text.startswith("pick up "):
            return text.replace("pick up", "pickup", 1)
        return text

    def _act(self, action: str) -> tuple[bool, str]:
        """Answer one line of input: whether it was valid, and the state to show."""
        if self._fixed:
            self._reward = 0.0  # AgentGym repeats the last action's reward
        if "check" in action:
            return True, "You can take the following actions: " + ", ".join(self._options.plans)
        if action == "":
            return False, _NO_CHANGE
        plan = self._options.plans.get(action)
        if plan is None:
            return False, self._options.refusals.get(action, _UNKNOWN)
        if not plan:
            return True, _NO_CHANGE
        return True, self._run(plan)

    def _run(self, plan: Plan) -> str:
        """Run an option's primitive moves until one changes nothing, then look around."""
        for move in plan:
            before = self._mark
            observation, reward, terminated, truncated, _ = self._world.step(move)
            self._mark = self._snapshot(observation)
            if self._mark == before or (self._fixed and (terminated or truncated)):
                break
        self._reward = float(reward)
        won = bool(terminated and reward > 0)
        self._success = self._success or won
        state = self._look(observation)
        if self._fixed:
            self._done = bool(terminated or truncated)
            return state + _ending(won=won, failed=terminated, out_of_time=truncated)
        # What comes late is worth half or less, and AgentGym then plays on.
        self._done = bool(terminated and reward > 0.5)  # noqa: PLR2004
        return state + _ending(won=terminated)

    def _look(self, observation: Any) -> str:
        """Take in an observation and return it in words."""
        self._mark = self._snapshot(observation)
        scene = look(self._world, observation)
        self._options = options_in(scene, fixed=self._fixed)
        return describe(scene)

    def _snapshot(self, observation: Any) -> tuple[object, ...]:
        """Return what has to differ for a move to count as done.

        AgentGym compares the picture alone, which can stay the same in a turn or a step.
        """
        picture = observation["image"].tobytes()
        if not self._fixed:
            return (picture,)
        x, y = self._world.agent_pos
        return (picture, int(x), int(y), int(self._world.agent_dir))

    def _with_actions(self, state: str) -> str:
        listed = ", ".join(f'"{action}"' for action in self._options.plans)
        return f"{state}\nAvailable actions: [{listed}]"

    def _info(self, *, valid: bool) -> dict[str, JSON]:
        return {
            "valid": valid,
            "score": self._score,
            "steps": int(self._world.step_count),
            "max_steps": int(self._world.max_steps),
        }


def check_semantics(semantics: str) -> None:
    """Make sure that `semantics` is one of the two.

    Raises:
        SettingsError: It is not.
    """
    if semantics not in get_args(Semantics):
        raise SettingsError(f"semantics {semantics!r} is not one of compat, fixed")


def _ending(*, won: bool, failed: bool = False, out_of_time: bool = False) -> str:
    if won:
        return "\n The task is completed."
    if failed:
        return "\n The task has failed."
    return "\n The time is up." if out_of_time else ""


@cache
def _instructions() -> str:
    """Read how the world is played; the reply format is the agent's affair."""
    file = resources.files("langgraft.environments.babyai") / "instructions.md"
    return file.read_text(encoding="utf-8").strip()


@dataclass(frozen=True, slots=True)
class BabyAI:
    """Builds episodes by task id, and lists the tasks there are.

        worlds = BabyAI()
        episode = worlds("babyai/action_obj_door/17")
        held_out = worlds.tasks("babyai/find_obj", "test")
        agent.invoke({"task_id": held_out[0].id})

    Raises:
        SettingsError: A setting is not usable.
    """

    semantics: Semantics = "compat"
    """`compat` for AgentGym's behavior, `fixed` to have its slips put right."""
    max_rounds: int = MAX_ROUNDS
    """How many replies the agent has in an episode."""

    def __post_init__(self) -> None:
        check_semantics(self.semantics)
        check_whole("max_rounds", self.max_rounds)

    def __call__(self, task_id: str) -> BabyAIEnvironment:
        """Return a fresh environment for one task instance.

        Raises:
            SettingsError: There is no such task.
            MissingExtraError: minigrid or gymnasium is not installed.
        """
        level, seed = parse_task_id(task_id)
        return BabyAIEnvironment(level, seed, self.semantics, self.max_rounds)

    def tasks(self, domain: str, split: str) -> tuple[TextTask, ...]:
        """List the instances of a family in one split, by seed.

        Raises:
            SettingsError: There is no such family or split.
        """
        return tasks_of(domain, split)

    def difficulty(self, task_id: str) -> float:
        """Return how many moves minigrid's solver takes to the goal, infinite where it never gets there.

        Raises:
            SettingsError: There is no such task.
            MissingExtraError: minigrid or gymnasium is not installed.
        """
        return _moves_to_win(*parse_task_id(task_id))


def gymnasium() -> ModuleType:
    """Import gymnasium with minigrid's levels registered, without pygame's banner.

    Raises:
        MissingExtraError: minigrid or gymnasium is not installed.
    """
    with _IMPORTING:
        # The banner is pygame's, and shows once, when minigrid brings it in.
        hidden = sys.modules.get("pygame") is None and _BANNER not in os.environ
        if hidden:
            os.environ[_BANNER] = "1"
        try:
            require("minigrid", extra="babyai", purpose="The BabyAI environment")
            return require("gymnasium", extra="babyai", purpose="The BabyAI environment")
        finally:
            if hidden:
                del os.environ[_BANNER]


def check_level(level: str) -> None:
    """Make sure that minigrid knows the level.

    Raises:
        SettingsError: It does not, or it is no BabyAI level.
        MissingExtraError: minigrid or gymnasium is not installed.
    """
    known = {*gymnasium().registry, *_RENAMED}
    if level not in known or not level.startswith("BabyAI-"):
        levels = sorted(name for name in known if name.startswith("BabyAI-"))
        hint = did_you_mean(level, levels, "one is 'BabyAI-ActionObjDoor-v0'")
        raise SettingsError(f"minigrid has no BabyAI level {level!r}: {hint}")


def build(level: str) -> Any:
    """Build a world of its own for one episode, without gymnasium's wrappers.

    A fresh world for every reset keeps an episode from inheriting anything from the one
    before it: in some minigrid versions a level remembers its last locked room.
    """
    gym = gymnasium()
    name, settings = (level, {}) if level in gym.registry else _RENAMED[level]
    world = gym.make(name, disable_env_checker=True, **settings).unwrapped
    _silence(world)
    return world


def _silence(world: Any) -> None:
    """Keep `world` from printing each rejected mission on stdout.

    Redirecting stdout would catch what other threads print meanwhile. So this one world gets
    minigrid's own generator back with a `print` that says nothing; nothing shared changes.
    """
    base = importlib.import_module("minigrid.envs.babyai.core.roomgrid_level").RoomGridLevel
    noisy = base._gen_grid  # noqa: SLF001
    if not isinstance(world, base) or type(world)._gen_grid is not noisy:  # noqa: SLF001
        return
    names = {**noisy.__globals__, "print": lambda *_: None}
    quiet = FunctionType(noisy.__code__, names, noisy.__name__, None, noisy.__closure__)
    world._gen_grid = MethodType(quiet, world)  # noqa: SLF001


MOST_PLANS: Final = 2_000
"""Subgoals after which the solver is taken to be lost: it never ends where two of them make each other."""


class _LostError(Exception):
    """The solver goes round in circles."""


class _Subgoals(list[Any]):
    """The solver's stack, which counts what is laid on it."""

    laid = 0

    def append(self, subgoal: Any) -> None:
        self.laid += 1
        if self.laid > MOST_PLANS:
            raise _LostError
        super().append(subgoal)


@cache
def _moves_to_win(level: str, seed: int) -> float:
    """Return how many of minigrid's moves its solver takes to the goal; infinite where it gets there never.

    The solver (`BabyAIBot`) sees what an agent sees and explores as it has to. It knows no boxes and
    fails a level that begins with a full hand. Moves are turns and steps: one action of an agent here is
    several of them.
    """
    world = build(level)
    world.reset(seed=seed)
    solver = importlib.import_module("minigrid.utils.baby_ai_bot").BabyAIBot(world)
    solver.stack = _Subgoals(solver.stack)
    move, moves = None, 0
    try:
        while True:
            move = solver.replan(move)
            _, reward, won, out_of_time, _ = world.step(move)
            moves += 1
            if won or out_of_time:
                return float(moves) if reward > 0 else math.inf
    except Exception:  # noqa: BLE001  (it ends with bare assertions of its own where it is at a loss)
        return math.inf
    finally:
        world.close()
