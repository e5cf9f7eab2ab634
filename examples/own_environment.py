"""An environment of your own: a safe with a code that memory can learn (docs/your-own-world.md has more).

`reset` and `step` with text are all it takes to let an agent play; a factory says which tasks there are. Runs
without a key: the simulated player tries codes in turn, unless memory shows one that worked.
"""

import re
from collections.abc import Sequence

from langchain_core.messages import BaseMessage
from langgraph.store.memory import InMemoryStore

from langgraft import TrajectoryMemory, build_react_agent
from langgraft.benchmarks.simulated.chat import Sampling, SimulatedChatModel
from langgraft.environments import Reset, TextTask, Transition
from langgraft.memory.model import BLOCK_END

CODES = {"red": 4, "blue": 2, "green": 5}


class Safe:
    """One safe; its color says which digit opens it."""

    instructions = "Open the safe by its digit: `dial 0` to `dial 5`. Reply with one such line."
    max_rounds = 6

    def __init__(self, task: TextTask) -> None:
        """Take a task, such as `safe/red/1`."""
        self.task, self.color = task, task.id.split("/")[1]

    def reset(self) -> Reset:
        """Begin, anew each time."""
        return Reset(f"open the {self.color} safe", f"You stand before a {self.color} safe.")

    def step(self, action: str) -> Transition:
        """Take one line of the agent."""
        won = action == f"dial {CODES[self.color]}"
        said = "It opens." if won else "It stays shut."
        return Transition(said, reward=float(won), done=won, success=won)

    def close(self) -> None:
        """Nothing was opened that has to be closed."""


class Safes:
    """Makes safes, and says which tasks there are."""

    def __call__(self, task_id: str) -> Safe:
        """Return the episode of a task."""
        return Safe(TextTask(task_id, task_id.rpartition("/")[0], "train"))

    def tasks(self, domain: str, split: str) -> tuple[TextTask, ...]:
        """List tasks of a family (a color) in a split."""
        numbers = range(5) if split == "train" else range(5, 10)
        return tuple(TextTask(f"{domain}/{n}", domain, split) for n in numbers)


class Player(SimulatedChatModel):
    """Dials what opened a safe of this color before, or one digit after the other."""

    model_name: str = "player"

    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> str:  # noqa: ARG002
        """Dial."""
        recalled, _, seen = messages[1].text.rpartition(BLOCK_END)
        color = re.findall(r"a (\w+) safe", seen)[0]
        worked = re.search(
            rf"a {color} safe(?:.*\n)+?Action: dial (\d)\nObservation: It op", recalled
        )
        tried = sum("stays shut" in message.text for message in messages)
        return f"Thought: I try a digit.\nAction: dial {worked[1] if worked else tried}"


if __name__ == "__main__":
    memory = TrajectoryMemory(InMemoryStore())
    safes = Safes()
    agent = build_react_agent(Player(), environment=safes, memory=memory)
    for family in ("safe/red", "safe/green"):
        for task in safes.tasks(family, "train")[:2]:
            episode = agent.invoke({"task_id": task.id})
            print(task.id, "→", episode["reason"], "in", len(episode["steps"]), "steps")
