"""Searches in processes that are killed, and taken up again.

Usage: tree_worker.py FOLDER SEED KILLS
       tree_worker.py FOLDER merges

One search runs undisturbed. Another one runs in a child process that is killed (SIGKILL) a random
time after one of its first calls of a model, and again in the next one, KILLS times; then one ends
by itself. With `merges`, both
evolve programs, and a child kills itself the first time that the first or second merge is written
or reviewed. Prints a JSON object: what both made, and where each child found the search that it
went on with.
"""

import json
import os
import random
import signal
import sys
import threading
import time
import warnings
from pathlib import Path
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.store.memory import InMemoryStore
from tree_cases import Rule, feedback, mixed, reviewing, sandbox, toy, writing

from langgraft._core.canonical import canonical_json
from langgraft.graphs.tree import build_tree_agent
from langgraft.memory.providers import make_provider
from langgraft.nodes.artifacts import FolderArtifacts
from langgraft.nodes.search.aira import EvolutionPolicy
from langgraft.nodes.search.deps import TreeInput
from langgraft.nodes.search.ends import restore_memory
from langgraft.nodes.search.journal import node_json, read_search
from langgraft.nodes.search.memory import read_best
from langgraft.nodes.search.policy import SearchPolicy

STEPS = 10
THREAD: RunnableConfig = {"configurable": {"thread_id": "t"}}
SETTINGS: dict[str, Any] = {"stages": ["draft", "debug", "improve"]}


EVOLVING = EvolutionPolicy(generation=2, crossover=1.0, crossover_from=1, debug_depth=1)
MERGES = 2
"""Merges that kill their process, each as it is written and as it is reviewed."""


class Deadly:
    """Kills the process at moments of the first merges, each moment once."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._folder.mkdir(exist_ok=True)
        self._one = threading.Lock()

    def at(self, rule: Rule) -> Rule:
        """Make a rule that kills at its moments, and replies at others."""

        def reply(text: str, sample: str) -> Any:
            _, program, what = sample.split("/")[:3]
            if what == "write" and "# Second solution" in text:
                (self._folder / f"{program}.merge").touch()
            merges = sorted(each.stem for each in self._folder.glob("*.merge"))[:MERGES]
            if program in merges and what in ("write", "review"):
                with (
                    self._one
                ):  # no other branch uses up its moment while this one ends the process
                    try:
                        (self._folder / f"{program}.{what}").touch(exist_ok=False)
                    except FileExistsError:
                        return rule(text, sample)
                    os.kill(os.getpid(), signal.SIGKILL)
            return rule(text, sample)

        return reply


class Timed:
    """Kills the process some seconds after a call of a model, and lets few more be answered until then.

    Args:
        call: Which one, from 1.
        seconds: How long after it.
    """

    def __init__(self, call: int, seconds: float) -> None:
        self._left = call
        self._seconds = seconds
        self._one = threading.Lock()

    def at(self, rule: Rule) -> Rule:
        """Make a rule that waits for the end once there were enough calls."""

        def reply(text: str, sample: str) -> Any:
            with self._one:
                self._left -= 1
                if self._left == 0:
                    ending = (os.getpid(), signal.SIGKILL)
                    threading.Timer(self._seconds, os.kill, ending).start()
                late = self._left < -_FURTHER
            while late:
                time.sleep(1)
            return rule(text, sample)

        return reply


_FURTHER = 3
"""Calls that are answered between the one that a kill is due after and the kill."""


def work(
    folder: Path, policy: SearchPolicy | None = None, deadly: Deadly | Timed | None = None
) -> None:
    """Begin a search, or go on with what is there; write down what came of it."""
    writes, reviews = (mixed, feedback) if deadly is None else map(deadly.at, (mixed, feedback))
    competition = toy(folder / "toy")
    artifacts = FolderArtifacts(folder / "artifacts")
    memory = make_provider("coding", InMemoryStore(), settings=SETTINGS)
    database = str(folder / "checkpoints.sqlite")
    with SqliteSaver.from_conn_string(database) as saver, sandbox(competition) as place:
        agent = build_tree_agent(
            writing(writes), feedback_model=reviewing(reviews), competition=competition, sandbox=place,
            memory=memory, artifacts=artifacts, folder=folder, steps=STEPS, width=2,
            candidates=2, seconds=60, checkpointer=saver, policy=policy,
        )  # fmt: skip
        found = agent.get_state(THREAD, subgraphs=True)
        with (folder / "found.jsonl").open("a") as file:
            stages = [work["stage"] for work in found.values.get("wave", ())]
            file.write(json.dumps([*map(_place, found.tasks), *stages]) + "\n")
        restore_memory(memory, artifacts, found.values)
        given: TreeInput | None = None
        if not found.values.get("begun"):  # killed before anything was saved
            given = {"episode_id": "s", "seed": 3}
        out = agent.invoke(given, THREAD, durability="sync")
    search = read_search(artifacts, out["journal"])
    best = read_best(folder)
    journal = [node_json(node) for node in search.nodes]
    made = {
        "out": out,
        "journal": canonical_json(journal),
        "bank": memory.content().to_bytes().decode(),
        "best": best.node.id if best is not None else None,
    }
    (folder / "made.json").write_text(json.dumps(made))


def _place(task: Any) -> str:
    """Say where a task is: its node, and in a branch the node of that."""
    inner = getattr(task.state, "next", ())
    return "/".join([task.name, *inner])


def live(folder: Path, *given: Any) -> bool:
    """Work in a child process, which may be killed; say whether it ended."""
    with warnings.catch_warnings():
        # Libraries may have begun threads of their own, which a search has no use for.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if not child:
        try:
            work(folder, *given)
        except BaseException as error:  # noqa: BLE001 - nothing of the parent's may run here
            sys.stderr.write(f"{type(error).__name__}: {error}\n")
            sys.stderr.flush()
            os._exit(1)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return False
    if os.WEXITSTATUS(status):
        raise SystemExit("the search failed")
    return True


def main(folder: Path, seed: int, kills: int) -> None:
    """Run both searches."""
    chance = random.Random(seed)
    for name in ("whole", "killed"):
        (folder / name).mkdir(parents=True)
    live(folder / "whole")
    killed = 0
    for _ in range(kills):
        timed = Timed(chance.randint(1, 5), chance.uniform(0, 0.2))
        killed += not live(folder / "killed", None, timed)
    live(folder / "killed")
    tell(folder, killed)


def main_of_merges(folder: Path) -> None:
    """Run both searches, of which one is killed while merges are under way."""
    for name in ("whole", "killed"):
        (folder / name).mkdir(parents=True)
    live(folder / "whole", EVOLVING)
    deadly, killed = Deadly(folder / "moments"), 0
    while not live(folder / "killed", EVOLVING, deadly):
        killed += 1
    tell(folder, killed)


def tell(folder: Path, killed: int) -> None:
    """Print what both searches made."""
    made = {
        name: json.loads((folder / name / "made.json").read_text()) for name in ("whole", "killed")
    }
    found = (folder / "killed" / "found.jsonl").read_text().splitlines()
    json.dump({**made, "kills": killed, "found": list(map(json.loads, found))}, sys.stdout)


if __name__ == "__main__":
    warnings.simplefilter("error")
    if sys.argv[2] == "merges":
        main_of_merges(Path(sys.argv[1]))
    else:
        main(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
