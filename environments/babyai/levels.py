"""AgentGym's forty BabyAI levels, and how its data index names an instance.

Notes §2.1: the index counts through the levels first and the seeds second, so that
`data_idx = 40 * seed + place of the level in the table`.
"""

from langgraft._core.arguments import check_whole
from langgraft._core.errors import SettingsError

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
