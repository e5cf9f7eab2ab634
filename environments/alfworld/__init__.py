"""ALFWorld: household tasks in words, played by the real TextWorld engine."""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.environments.alfworld.environment import AlfworldEnvironment
    from langgraft.environments.alfworld.factory import ALFWorld, GeneratedALFWorld
    from langgraft.environments.alfworld.games import FAMILIES, Game
    from langgraft.environments.alfworld.generated import GeneratedLibrary
    from langgraft.environments.alfworld.library import Library, open_library
    from langgraft.environments.alfworld.planner import plan
    from langgraft.environments.alfworld.semantics import Semantics

__all__ = [
    "FAMILIES",
    "ALFWorld",
    "AlfworldEnvironment",
    "Game",
    "GeneratedALFWorld",
    "GeneratedLibrary",
    "Library",
    "Semantics",
    "open_library",
    "plan",
]

_HERE = "langgraft.environments.alfworld"
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "ALFWorld": f"{_HERE}.factory",
        "AlfworldEnvironment": f"{_HERE}.environment",
        "FAMILIES": f"{_HERE}.games",
        "Game": f"{_HERE}.games",
        "GeneratedALFWorld": f"{_HERE}.factory",
        "GeneratedLibrary": f"{_HERE}.generated",
        "Library": f"{_HERE}.library",
        "Semantics": f"{_HERE}.semantics",
        "open_library": f"{_HERE}.library",
        "plan": f"{_HERE}.planner",
    },
)
