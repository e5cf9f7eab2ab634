"""One episode of ALFWorld by script, with memory, checkpointed; a killed one is gone on with.

python -m acceptance.alfworld_worker FOLDER TASK [think|act ROUND]

With a place and a round the process kills itself there: `think` before the model answers, `act`
after the world has moved and before the graph knows it.
"""

import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from langchain_core.messages import BaseMessage, SystemMessage
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from typing_extensions import override

from acceptance.reply_scripts import reply_due
from langgraft.benchmarks.simulated.chat import Reply, Sampling, SimulatedChatModel
from langgraft.environments.alfworld import ALFWorld, AlfworldEnvironment, GeneratedALFWorld, plan
from langgraft.environments.text import TextTask, Transition
from langgraft.graphs.react import build_react_agent
from langgraft.memory.bank_format import write_items
from langgraft.memory.model import MemoryItem
from langgraft.memory.providers.insight import InsightMemory, InsightSettings

CONFIG: Final[Any] = {"configurable": {"thread_id": "episode"}}
_ADVICE: Final = ("Open what is closed.", "Clean things in a sink.", "A lamp wants to be used.")
_LESSONS: Final = '[{"when_to_use": "a thing is to be moved", "lesson": "Look around first."}]'

Death = Callable[[str, int], None]
"""Called at each place with the round; may not return."""


def never(_place: str, _round: int) -> None:
    """Live on."""


@dataclass(frozen=True, slots=True)
class Dies:
    """Kills the process at a place in a round."""

    place: str
    round: int

    def __call__(self, place: str, number: int) -> None:
        """Kill, if this is where."""
        if (place, number) == (self.place, self.round):
            os.kill(os.getpid(), signal.SIGKILL)


class Player(SimulatedChatModel):
    """Says what a script says in each round; the round it reads from the messages."""

    model_name: str = "scripted"
    script: tuple[str, ...]
    death: Death = never

    @override
    def reply(self, messages: Sequence[BaseMessage], sampling: Sampling) -> Reply:
        """Return the reply of this round, or lessons."""
        if not isinstance(messages[0], SystemMessage):
            return Reply(_LESSONS)
        said = reply_due(self.script, messages)
        self.death("think", said)
        return Reply(self.script[said])


class _Mortal:
    """A world in which a step may be the last thing that the process does."""

    def __init__(self, world: AlfworldEnvironment, death: Death) -> None:
        self._world = world
        self._death = death
        self._taken = 0
        self.task, self.instructions = world.task, world.instructions
        self.max_rounds = world.max_rounds
        self.reset, self.close = world.reset, world.close

    def step(self, action: str) -> Transition:
        """Take an action, and perhaps die before anyone is told."""
        transition = self._world.step(action)
        self._death("act", self._taken)
        self._taken += 1
        return transition


@dataclass(frozen=True, slots=True)
class _MortalWorlds:
    worlds: ALFWorld
    death: Death

    def __call__(self, task_id: str) -> _Mortal:
        return _Mortal(self.worlds(task_id), self.death)

    def tasks(self, domain: str, split: str) -> tuple[TextTask, ...]:
        return self.worlds.tasks(domain, split)


def worlds_of(task: str) -> ALFWorld:
    """Return what builds the world of a task."""
    return GeneratedALFWorld() if task.startswith("alfworld-generated/") else ALFWorld()


def script_of(worlds: ALFWorld, task: str) -> tuple[str, ...]:
    """Write the replies that win a game, with others between them that come to nothing."""
    game = worlds(task).game
    *way, last = game.walkthrough or plan(game)
    half = len(way) // 2
    return (
        *map(_act, ["inventory", "dance"]),
        "I do not say what I do.",
        *map(_act, way[:half]),
        f"{_act('look')}\n{_act('help')}",
        _act("look"),
        *map(_act, way[half:]),
        _act("look\ud83d"),
        _act(_otherwise(last)),
    )


def play(
    task: str, folder: Path, death: Death = never, worlds: ALFWorld | None = None
) -> dict[str, Any]:
    """Play an episode, or go on with the one whose checkpoint is in the folder."""
    worlds = worlds or worlds_of(task)
    model = Player(script=script_of(worlds, task), death=death)
    with SqliteSaver.from_conn_string(str(folder / "checkpoints.sqlite")) as saver:
        agent = build_react_agent(
            model,
            environment=_MortalWorlds(worlds, death),
            memory=_memory(folder),
            checkpointer=saver,
        )
        begun = agent.get_state(CONFIG).created_at is not None
        given: Any = None if begun else {"task_id": task, "episode_id": "e"}
        return dict(agent.invoke(given, CONFIG, durability="sync"))


def _memory(folder: Path) -> InsightMemory:
    """Make a memory that knows something, and is asked again every four rounds."""
    settings = InsightSettings(granularity="individual", top_k=1, requery_interval=4)
    memory = InsightMemory(InMemoryStore(), settings=settings)
    bank = folder / f"advice-{os.getpid()}.jsonl"
    write_items(
        bank,
        [
            MemoryItem(
                id=f"advice-{number}",
                text=text,
                type="strategic",
                source_domain="alfworld/pick_and_place",
                episode_id="before",
                success=True,
                order_index=number,
            )
            for number, text in enumerate(_ADVICE)
        ],
    )
    memory.import_items(bank)
    return memory


def _act(action: str) -> str:
    return f"Thought: I try.\nAction: {action}"


def _otherwise(command: str) -> str:
    """Say a command in the other dialect, where it is one that sets something down."""
    if command.startswith("move "):
        return command.replace("move ", "put ", 1).replace(" to ", " in/on ", 1)
    return command.replace("put ", "move ", 1).replace(" in/on ", " to ", 1)


if __name__ == "__main__":
    place, number = (*sys.argv[3:], "never", "0")[:2]
    ended = play(sys.argv[2], Path(sys.argv[1]), Dies(place, int(number)))
    sys.stdout.write(json.dumps(ended, sort_keys=True))
