"""BabyAI in words: AgentGym's text wrapper, re-implemented on current minigrid.

    from langgraft.environments.babyai import BabyAI, BabyAIEnvironment

    worlds = BabyAI()  # task ids: babyai/action_obj_door/17, babyai/find_obj/203
    sweep = worlds.tasks("babyai/go_to_local_s5_n2", "train")  # any level is a family
    episode = worlds("babyai/action_obj_door/17")
    boss = BabyAIEnvironment("BabyAI-BossLevel-v0", seed=3)
    other = BabyAIEnvironment.from_data_idx(29)  # AgentGym's own numbering

**Families.** Each level that minigrid registers is one, under its name in snake case: seeds 0-199 of
`BabyAI-GoToLocalS5N2-v0` are `babyai/go_to_local_s5_n2/0` to `/199`, those for training, and 200-299
those for tests. Two names are not by that rule: `find_obj` is FindObjS7, the size that AgentGym uses,
and a level of version 1 ends in `_v1`.

Needs the extra `babyai` (minigrid, gymnasium); nothing of it is imported before an episode
is built.

**Two semantics.** `compat`, the default, answers as AgentGym's server does, slips included:
published scores were produced with them. `fixed` puts the slips right:

| what | `compat` | `fixed` |
|---|---|---|
| success | judged on an option's last move: `toggle and go through` loses what the toggle won | an option stops when the episode ends; what was won stays won |
| a success later than 0.556 of the steps | counts, but the episode goes on | ends the episode |
| a failed mission | `The task is completed.`, and goes on | `The task has failed.`, and ends |
| out of steps | goes on | `The time is up.`, and ends |
| reward of a refused action, or of `check` | the last action's, once more | 0 |
| ids in the list of actions | `pickup` and `go to` count reachable things only | those of the description |
| spelling | `pickup` alone, though the instructions say `pick up` | `pickup` and `pick up` |
| ways | through unseen cells and closed doors, a row or column beyond the view, with detours | shortest, over seen cells and open doors: every option ends as its name says |
| an option stops early | when the picture stays the same | when picture, place and heading stay the same |
| `go to` what one already faces | `No change in state.`, so that a go-to mission stays open | lets one empty step pass, which completes it |
| `move forward` | offered against closed doors, keys and balls | offered where a step is possible |
| `drop` | offered in front of doors and goals | offered where there is room |
| no path to a closed door | the sentence prints a Python dict | the sentence names the door |
| starting with a full hand (PutNext…Carrying) | the thing is also seen on the floor | it is not |

In both, `Transition.success` tells whether a mission was completed with a reward above 0 at
any time so far: AgentGym-RL's rule, score > 0.

**Equivalence, measured.** `compat` was played against AgentGym's server code (minigrid 2.3.1,
gymnasium 0.29.1) with random options and about 15 % bad input: 68,063 turns of 2,228 episodes,
over all forty levels, FindObjS5 and S6, UnlockPickup and eight MiniGrid levels with goals or
lava (started from a plain tuple, as AgentGym's search needs), identical in every observation,
list and order of actions, plan, refusal, reward, score and `done`. Two more instances (SynthLoc and SynthSeq, seed 3) get another mission: minigrid
has since mended a generator that carried a locked room over from one reset to the next. With
AgentGym's code on the same minigrid 3.2.0, 240 episodes of the six generated levels were
identical, 1,810 turns of 1,810. In `fixed`, 4,199 options in 240 random episodes of all levels
ended as their names say.

**Cost.** About 0.5 ms of CPU for a turn and 3 ms for a reset, most of both inside minigrid.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft.environments.babyai.environment import BabyAI, BabyAIEnvironment, Semantics
    from langgraft.environments.babyai.tasks import (
        FAMILIES,
        LEVELS,
        SPLITS,
        data_index,
        instance_of,
    )

__all__ = [
    "FAMILIES",
    "LEVELS",
    "SPLITS",
    "BabyAI",
    "BabyAIEnvironment",
    "Semantics",
    "data_index",
    "instance_of",
]

_MODULES = {
    "environment": ("BabyAI", "BabyAIEnvironment", "Semantics"),
    "tasks": ("FAMILIES", "LEVELS", "SPLITS", "data_index", "instance_of"),
}
__getattr__, __dir__ = lazy_exports(
    __name__,
    {name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names},
)
