"""Names of instances: task families, splits, the ids that join them, and AgentGym's own numbering.

AgentGym's index counts through its forty levels first and the seeds second (notes §2.1), so that
`data_idx = 40 * seed + place of the level in the table`.
"""

import re

from langgraft._core.arguments import check_whole, did_you_mean
from langgraft._core.errors import SettingsError
from langgraft.environments.text import TextTask

_AGENTGYM = """
    GoToRedBallGrey GoToRedBall GoToRedBallNoDists GoToObjS6 GoToLocalS8N7
    GoToObjMazeS7 GoToImpUnlock GoToSeqS5R2 GoToRedBlueBall GoToDoor
    GoToObjDoor Open OpenRedDoor OpenDoorLoc OpenRedBlueDoorsDebug
    OpenDoorsOrderN4Debug Pickup UnblockPickup PickupLoc PickupDistDebug
    PickupAbove PutNextLocalS6N4 PutNextS7N4Carrying Unlock UnlockLocalDist
    KeyInBox UnlockPickupDist BlockedUnlockPickup UnlockToUnlock ActionObjDoor
    FindObjS7 KeyCorridorS6R3 OneRoomS20 MoveTwoAcrossS8N9 SynthS5R2
    SynthLoc SynthSeq MiniBossLevel BossLevel BossLevelNoUnlock
"""

_OTHERS = """
    FindObjS5 FindObjS6 GoTo GoToLocal GoToLocalS5N2 GoToLocalS6N2 GoToLocalS6N3
    GoToLocalS6N4 GoToLocalS7N4 GoToLocalS7N5 GoToLocalS8N2 GoToLocalS8N3 GoToLocalS8N4
    GoToLocalS8N5 GoToLocalS8N6 GoToObj GoToObjMaze GoToObjMazeOpen GoToObjMazeS4
    GoToObjMazeS4R2 GoToObjMazeS5 GoToObjMazeS6 GoToObjS4 GoToObjS6-v1 GoToOpen GoToSeq
    KeyCorridor KeyCorridorS3R1 KeyCorridorS3R2 KeyCorridorS3R3 KeyCorridorS4R3
    KeyCorridorS5R3 MoveTwoAcrossS5N2 OneRoomS12 OneRoomS16 OneRoomS8 OpenDoor OpenDoorColor
    OpenDoorDebug OpenDoorsOrderN2 OpenDoorsOrderN2Debug OpenDoorsOrderN4 OpenRedBlueDoors
    OpenTwoDoors PickupDist PutNextLocal PutNextLocalS5N3 PutNextS4N1 PutNextS5N1
    PutNextS5N2 PutNextS5N2Carrying PutNextS6N3 PutNextS6N3Carrying PutNextS7N4 Synth
    UnlockLocal UnlockPickup
"""

LEVELS: tuple[str, ...] = tuple(f"BabyAI-{name}-v0" for name in _AGENTGYM.split())
"""Level ids in AgentGym's order; its level number is the position plus one."""


def _family(level: str) -> str:
    """Return the name of a level's family by rule: its own in snake case, and a version that is not 0."""
    plain, _, version = level.removeprefix("BabyAI-").rpartition("-v")
    words = re.findall(r"[A-Z][a-z]+|[A-Z]+(?![a-z])\d*|[A-Z]\d+|\d+|[a-z]+", plain)
    return "babyai/" + "_".join([*words, *([] if version == "0" else [f"v{version}"])]).lower()


_NAMED: dict[str, str] = {"BabyAI-FindObjS7-v0": "babyai/find_obj"}
"""Level id → family, where the rule names it otherwise: it is the one of three sizes that AgentGym uses."""

FAMILIES: dict[str, str] = {
    _NAMED.get(level) or _family(level): level
    for level in (
        *LEVELS,
        *(f"BabyAI-{name}" if "-v" in name else f"BabyAI-{name}-v0" for name in _OTHERS.split()),
    )
}
"""Task family → level id, of every level that minigrid 3.2.0 has, and of AgentGym's `GoToObjS6-v0`.

`BabyAI-GoToLocalS5N2-v0` is `babyai/go_to_local_s5_n2`; `find_obj` is FindObjS7."""

SPLITS: dict[str, range] = {"train": range(200), "test": range(200, 300)}
"""Split → seeds. AgentGym has about 22 instances a level, too few: these are fresh (notes §2.1)."""


def domain_of(level: str) -> str:
    """Return the task family of a level, known here or not."""
    return _NAMED.get(level) or _family(level)


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
        raise SettingsError(f"no task family {domain!r:.80}: {_hint(domain)}")
    if split not in SPLITS:
        raise SettingsError(f"no split {split!r} of {domain}; there are {', '.join(SPLITS)}")
    return tuple(task_of(FAMILIES[domain], seed) for seed in SPLITS[split])


def _hint(domain: str) -> str:
    """Say which family may have been meant."""
    rule = "families are the levels in snake case, such as 'babyai/go_to_red_ball'"
    return did_you_mean(domain, FAMILIES, rule)


def parse_task_id(task_id: str) -> tuple[str, int]:
    """Return the level id and seed of a task id such as `babyai/find_obj/17`.

    Raises:
        SettingsError: There is no such task.
    """
    domain, _, seed = str(task_id).rpartition("/")
    last = SPLITS["test"][-1]
    if domain not in FAMILIES or not re.fullmatch(r"0|[1-9][0-9]{0,3}", seed) or int(seed) > last:
        why = (
            f"a seed from 0 to {last}"
            if domain in FAMILIES
            else f"a known family ({_hint(domain)})"
        )
        raise SettingsError(f"no task {task_id!r:.80}; tasks are <family>/<seed> with {why}")
    return FAMILIES[domain], int(seed)


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
