"""Names of instances: task families, splits, the ids that join them, and AgentGym's own numbering.

AgentGym's index counts through its forty levels first and the seeds second (notes §2.1), so that
`data_idx = 40 * seed + place of the level in the table`.
"""

import re

from langgraft._core.arguments import check_whole
from langgraft._core.errors import SettingsError
from langgraft.environments.text import TextTask

FAMILIES: dict[str, str] = {
    "babyai/action_obj_door": "BabyAI-ActionObjDoor-v0",
    "babyai/find_obj": "BabyAI-FindObjS7-v0",
    "babyai/pickup_loc": "BabyAI-PickupLoc-v0",
}
"""Task family → level id. FindObjS7 is the one of the three sizes that AgentGym uses."""

SPLITS: dict[str, range] = {"train": range(200), "test": range(200, 300)}
"""Split → seeds. AgentGym has about 22 instances a level, too few: these are fresh (notes §2.1)."""


def domain_of(level: str) -> str:
    """Return the task family of a level: a family's own name, or the level's in snake case."""
    for domain, name in FAMILIES.items():
        if name == level:
            return domain
    plain = level.removeprefix("BabyAI-").removesuffix("-v0")
    words = re.findall(r"[A-Z][a-z]+|[A-Z]+(?![a-z])\d*|[A-Z]\d+|\d+|[a-z]+", plain)
    return "babyai/" + "_".join(words).lower()


def task_of(level: str, seed: int) -> TextTask:
    """Name the instance of a level with a seed; seeds past the training ones count as `test`."""
    domain = domain_of(level)
    split = "train" if seed in SPLITS["train"] else "test"
    return TextTask(id=f"{domain}/{seed}", domain=domain, split=split)


def tasks_of(domain: str, split: str) -> tuple[TextTask, ...]:
    """List a family's instances in one split, by seed.

    Raises:
        SettingsError: There is no such family or split.
    """
    if domain not in FAMILIES:
        raise SettingsError(f"no task family {domain!r}; there are {', '.join(FAMILIES)}")
    if split not in SPLITS:
        raise SettingsError(f"no split {split!r} of {domain}; there are {', '.join(SPLITS)}")
    return tuple(task_of(FAMILIES[domain], seed) for seed in SPLITS[split])


def parse_task_id(task_id: str) -> tuple[str, int]:
    """Return the level id and seed of a task id such as `babyai/find_obj/17`.

    Raises:
        SettingsError: There is no such task.
    """
    domain, _, seed = str(task_id).rpartition("/")
    last = SPLITS["test"][-1]
    if domain not in FAMILIES or not re.fullmatch(r"0|[1-9][0-9]{0,3}", seed) or int(seed) > last:
        raise SettingsError(
            f"no task {task_id!r}; tasks are <family>/<seed> with a family of"
            f" {', '.join(FAMILIES)} and a seed from 0 to {last}"
        )
    return FAMILIES[domain], int(seed)


_NAMES = """
    GoToRedBallGrey GoToRedBall GoToRedBallNoDists GoToObjS6 GoToLocalS8N7
    GoToObjMazeS7 GoToImpUnlock GoToSeqS5R2 GoToRedBlueBall GoToDoor
    GoToObjDoor Open OpenRedDoor OpenDoorLoc OpenRedBlueDoorsDebug
    OpenDoorsOrderN4Debug Pickup UnblockPickup PickupLoc PickupDistDebug
    PickupAbove PutNextLocalS6N4 PutNextS7N4Carrying Unlock UnlockLocalDist
    KeyInBox UnlockPickupDist BlockedUnlockPickup UnlockToUnlock ActionObjDoor
    FindObjS7 KeyCorridorS6R3 OneRoomS20 MoveTwoAcrossS8N9 SynthS5R2
    SynthLoc SynthSeq MiniBossLevel BossLevel BossLevelNoUnlock
"""

LEVELS: tuple[str, ...] = tuple(f"BabyAI-{name}-v0" for name in _NAMES.split())
"""Level ids in AgentGym's order; its level number is the position plus one."""


def instance_of(data_idx: int) -> tuple[str, int]:
    """Return the level id and the seed that AgentGym's `data_idx` stands for.

    Raises:
        SettingsError: `data_idx` is not a whole number from 0 up.
    """
    check_whole("data_idx", data_idx, 0)
    seed, place = divmod(data_idx, len(LEVELS))
    return LEVELS[place], seed


def data_index(level: str, seed: int) -> int:
    """Return AgentGym's `data_idx` of an instance: the inverse of `instance_of`.

    Raises:
        SettingsError: `level` is not one of the forty, or `seed` is not a whole number from 0 up.
    """
    if level not in LEVELS:
        raise SettingsError(f"level {level!r} is not one of AgentGym's: {', '.join(LEVELS)}")
    check_whole("seed", seed, 0)
    return seed * len(LEVELS) + LEVELS.index(level)
