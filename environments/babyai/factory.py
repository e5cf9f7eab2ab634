"""BabyAI's task families, by task id."""

from dataclasses import dataclass

from langgraft._core.arguments import check_whole
from langgraft.environments.babyai.environment import (
    MAX_ROUNDS,
    BabyAIEnvironment,
    Semantics,
    check_semantics,
)
from langgraft.environments.babyai.tasks import parse_task_id, tasks_of
from langgraft.environments.text import TextTask


@dataclass(frozen=True, slots=True)
class BabyAI:
    """Builds episodes by task id, and lists the task ids there are.

        worlds = BabyAI()
        episode = worlds("babyai/action_obj_door/17")
        held_out = worlds.tasks("babyai/find_obj", "test")

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
