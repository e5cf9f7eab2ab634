"""Names of instances: task families, splits, and the ids that join them."""

import re

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
