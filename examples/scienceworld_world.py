"""ScienceWorld as a world of the continual study, outside the package (docs/your-own-world.md).

Needs `pip install scienceworld` and a Java runtime. Families are its tasks, in its own splits:
`world: scienceworld_world:WORLD`, `tasks: {A: scienceworld/find-plant, B: scienceworld/find-animal}`.
"""

from functools import cache
from typing import Any

from scienceworld import ScienceWorldEnv

from langgraft.environments import Reset, TextTask, Transition

SIMPLIFIED = (
    "easy"  # ScienceWorld's name for: one may teleport, doors are open, pots water themselves
)
SOLVED = 100


class Episode:
    """One variation of a task; a Java process of its own plays it."""

    instructions = """You do experiments in a house. Actions are short commands: `look around`,
`look in X`, `teleport to kitchen`, `pick up X`, `move X to Y`, `use X on Y`, `wait1`, and `focus on X`,
which says what your answer is: a wrong one ends the episode."""
    max_rounds = 30

    def __init__(self, task: TextTask) -> None:
        """Take the task; nothing is started yet."""
        self.task = task
        self._env: Any = None

    def reset(self) -> Reset:
        """Begin, anew each time."""
        self._env = self._env or ScienceWorldEnv("", envStepLimit=self.max_rounds)
        _, name, variation = self.task.id.split("/")
        self._env.load(name, int(variation), SIMPLIFIED)
        seen, info = self._env.reset()
        goal = " ".join(info["taskDesc"].split())
        return Reset(goal, f"{goal}\n\n{seen}")

    def step(self, action: str) -> Transition:
        """Take one action; what no command matches changes nothing."""
        seen, reward, done, info = self._env.step(action)
        valid, won = not seen.startswith("No known action"), info["score"] >= SOLVED
        return Transition(seen, reward / SOLVED, done or won, success=won, info={"valid": valid})

    def close(self) -> None:
        """End the process."""
        if self._env is not None:
            self._env.close()
            self._env = None


class ScienceWorld:
    """Lists variations, and makes their episodes."""

    packages = ("scienceworld",)

    def __call__(self, task_id: str) -> Episode:
        """Return the episode of a task."""
        return Episode(next(t for t in _tasks(task_id.rpartition("/")[0]) if t.id == task_id))

    def tasks(self, domain: str, split: str) -> tuple[TextTask, ...]:
        """List the variations of a task in one of ScienceWorld's splits."""
        return tuple(task for task in _tasks(domain) if task.split == split)


@cache
def _tasks(domain: str) -> list[TextTask]:
    env = ScienceWorldEnv("")
    env.load(domain.partition("/")[2], 0, SIMPLIFIED)
    splits = {"train": env.get_variations_train(), "test": env.get_variations_test()}
    env.close()
    return [TextTask(f"{domain}/{n}", domain, s) for s, numbers in splits.items() for n in numbers]


WORLD = ScienceWorld()

if __name__ == "__main__":
    first = WORLD(WORLD.tasks("scienceworld/find-plant", "train")[0].id)
    print(first.reset().observation, first.step("teleport to greenhouse").observation, sep="\n")
    first.close()
