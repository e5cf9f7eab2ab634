"""Minigrid's worlds: imported late, built fresh, and quiet."""

import importlib
import os
import sys
import threading
from types import FunctionType, MethodType, ModuleType
from typing import Any

from langgraft._core.arguments import did_you_mean
from langgraft._core.errors import SettingsError
from langgraft._core.lazy import require

_BANNER = "PYGAME_HIDE_SUPPORT_PROMPT"
_IMPORTING = threading.Lock()

# Current minigrid registers this level with another room size under `-v1` and drops `-v0`;
# AgentGym's `-v0` is a room of size 4.
_RENAMED: dict[str, tuple[str, dict[str, int]]] = {
    "BabyAI-GoToObjS6-v0": ("BabyAI-GoToObjS6-v1", {"room_size": 4}),
}


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
