"""ALFWorld: household tasks in words, played by the real TextWorld engine.

    from langgraft.environments.alfworld import ALFWorld, GeneratedALFWorld

    worlds = GeneratedALFWorld()  # task ids: alfworld-generated/pick_and_place/17
    episode = worlds("alfworld-generated/pick_clean_then_place/203")
    released = ALFWorld()  # task ids: alfworld/pick_and_place/trial_T20190907_174127_043461
    held_out = released.tasks("alfworld/pick_and_place", "test")

Needs the extra `alfworld` (TextWorld and its planner; parts of it are GPL and are compiled);
nothing of it is imported before a game is generated or played. Where released games come from,
`open_library` says. What an agent scores on generated games is no ALFWorld score.

**Four semantics**, by name; `max_rounds` is theirs where none is given:

| what | `compat` (AgentGym) | `listed` (AgentBench) | `react` (ReAct, Reflexion) |
|---|---|---|---|
| first text | room, task, list of actions | room, task, list | room, task |
| later texts | the engine's words | the engine's words, list | the engine's words |
| list | a line `AVAILABLE ACTIONS: a,b` | ` AVAILABLE ACTIONS: `, one a line | none |
| replies | 30 | 20 | 49 |
| taken off an action | blanks around it, `</s>` | blanks, capitals, further lines | blanks, further lines |
| `think: …` | `Nothing happens.` | `Nothing happens.` | `OK.`, and the world is as it was |
| not taken over | the last of several `Action:` | the nearest action by BLEU; an end after 3 same replies | its example episodes |

`current` is `compat` with the list of now behind the latest text only (`shown_now`), as the fork of
continual-memory's authors has it.

In all: an action that is not admissible is answered `Nothing happens.`, costs a round and changes
nothing; the reward is 1 with the command that wins, which ends the episode and is not lost again;
the engine knows no other end, and whoever runs the episode counts the replies. (ALFWorld's own 50
steps are beyond all these limits.)

**Two dialects.** Games of release json_2.1.1 want `put X in/on Y`, later ones `move X to Y`; the
game decides. `put|place|move X in/on|in|on|to|into Y` is taken for the admissible command of the
same X and Y, letter for letter; anything else is passed on as it is.

**Cost.** CPU time on 2 cores, six games each: a released game takes 0.4 s the first time, then 5 ms
a reset and 0.5 ms a step (TextWorld as it is: 1.6 s, 0.8 s and 68 ms); a generated one 0.15 s, 1.4
ms and 0.3 ms.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.environments.alfworld.engine import plan
    from langgraft.environments.alfworld.environment import (
        ALFWorld,
        AlfworldEnvironment,
        GeneratedALFWorld,
    )
    from langgraft.environments.alfworld.game_files import PackLibrary, TreeLibrary, open_library
    from langgraft.environments.alfworld.games import FAMILIES, Game, Library
    from langgraft.environments.alfworld.generated import GeneratedLibrary
    from langgraft.environments.alfworld.semantics import Semantics

__all__ = [
    "FAMILIES",
    "ALFWorld",
    "AlfworldEnvironment",
    "Game",
    "GeneratedALFWorld",
    "GeneratedLibrary",
    "Library",
    "PackLibrary",
    "Semantics",
    "TreeLibrary",
    "open_library",
    "plan",
]

_MODULES = {
    "engine": ("plan",),
    "environment": ("ALFWorld", "AlfworldEnvironment", "GeneratedALFWorld"),
    "game_files": ("PackLibrary", "TreeLibrary", "open_library"),
    "games": ("FAMILIES", "Game", "Library"),
    "generated": ("GeneratedLibrary",),
    "semantics": ("Semantics",),
}
__getattr__, __dir__ = lazy_exports(
    __name__,
    {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names},
)
