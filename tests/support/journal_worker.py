"""Processes that work through items with a graph of parallel branches, and are killed.

Usage: journal_worker.py FOLDER KILL_AT...

For each KILL_AT, a child process works in `FOLDER/KILL_AT` until it dies there, and a second
one goes on from what the first left.

Each item runs a three-node graph: `plan` files an episode, two `work` branches run side by
side and each brings one, and `merge` files those in task order and then its own. The deltas
are journaled in the graph's checkpoint and committed to the log with the item. A child
kills itself before or after a node run (KILL_AT counts both), like a power cut.
"""

import json
import operator
import os
import random
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

from file_store import FileStore
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Send
from typing_extensions import TypedDict

from langgraft._core.canonical import canonical_json
from langgraft.memory.model import BankContent, Episode, Lesson, MemoryDelta, Outcome, Step, fold
from langgraft.memory.providers import InsightMemory, InsightSettings
from langgraft.memory.recall import RecallContext

ITEMS = ("one", "two")
NEVER = 10_000


class State(TypedDict, total=False):
    """State of one item."""

    item: str
    branch: int
    brought: Annotated[list[dict[str, Any]], operator.add]
    deltas: Annotated[list[list[Any]], operator.add]


class Fuse:
    """Counts half node runs and pulls the plug at one of them."""

    def __init__(self, at: int) -> None:
        self._left = at
        self._lock = threading.Lock()

    def tick(self) -> None:
        """Die if this is the moment."""
        with self._lock:
            self._left -= 1
            if self._left == 0:
                os.kill(os.getpid(), signal.SIGKILL)


def episode(memory: InsightMemory, item: str, name: str) -> Episode:
    """Make an episode whose lesson depends on what memory held."""
    context = RecallContext(domain="toy", task_id=item, episode_id=f"{item}/{name}")
    known = memory.provide("what is known", context)
    lesson = Lesson(f"{item}/{name} saw {list(known.receipt.item_ids)}", "known")
    steps = (Step("", "", "start"), Step("t", name, "done"))
    outcome = Outcome(success=True)
    return Episode(f"{item}/{name}", "toy", item, f"do {item}", steps, outcome, (lesson,))


def build(
    memory: InsightMemory, fuse: Fuse, saver: SqliteSaver
) -> CompiledStateGraph[State, None, State, State]:
    """Build the three-node graph."""

    def fused(node: Callable[[State], dict[str, Any]]) -> Any:
        def run(state: State) -> dict[str, Any]:
            fuse.tick()
            update = node(state)
            fuse.tick()
            return update

        return run

    def plan(state: State) -> dict[str, Any]:
        delta = memory.file(episode(memory, state["item"], "plan"))
        return {"deltas": [delta.to_json()]}

    def work(state: State) -> dict[str, Any]:
        time.sleep(random.random() / 100)  # branches end in any order
        brought = episode(memory, state["item"], f"work-{state['branch']}")
        return {"brought": [brought.to_json()]}

    def merge(state: State) -> dict[str, Any]:
        episodes = [Episode.from_json(each) for each in state["brought"]]
        deltas = [memory.file(each) for each in sorted(episodes, key=lambda each: each.id)]
        deltas.append(memory.file(episode(memory, state["item"], "merge")))
        return {"deltas": [delta.to_json() for delta in deltas]}

    def branches(state: State) -> list[Send]:
        return [Send("work", {"item": state["item"], "branch": number}) for number in (0, 1)]

    graph = StateGraph(State)
    graph.add_node("plan", fused(plan))
    graph.add_node("work", fused(work))
    graph.add_node("merge", fused(merge))
    graph.add_edge(START, "plan")
    graph.add_conditional_edges("plan", branches, ["work"])
    graph.add_edge("work", "merge")
    graph.add_edge("merge", END)
    return graph.compile(checkpointer=saver)


def deltas_of(values: dict[str, Any]) -> list[MemoryDelta]:
    """Read the journal of a graph's state."""
    return [MemoryDelta.from_json(delta) for delta in values.get("deltas", [])]


def read_log(path: Path) -> tuple[list[str], BankContent]:
    """Return the items committed, and the bank they fold to."""
    if not path.exists():
        return [], BankContent()
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    deltas = [MemoryDelta.from_json(delta) for row in rows for delta in row["deltas"]]
    return [row["item"] for row in rows], fold(deltas)


def main(folder: Path, kill_at: int) -> None:
    """Work through what the log does not hold yet."""
    log = folder / "items.jsonl"
    memory = InsightMemory(
        FileStore(folder / "store.json"),
        settings=InsightSettings(granularity="individual", top_k=9),
    )
    with SqliteSaver.from_conn_string(str(folder / "checkpoints.sqlite")) as saver:
        graph = build(memory, Fuse(kill_at), saver)
        done, bank = read_log(log)
        for item in ITEMS[len(done) :]:
            config: Any = {"configurable": {"thread_id": item}}
            journal = graph.get_state(config)
            # The store may be ahead of the journal or behind it: it is only a cache.
            memory.restore(fold(deltas_of(journal.values), bank))
            start: Any = None if journal.next else {"item": item}
            if not journal.created_at or journal.next:
                graph.invoke(start, config, durability="sync")
            deltas = deltas_of(graph.get_state(config).values)
            with log.open("a") as file:
                row = {"item": item, "deltas": [delta.to_json() for delta in deltas]}
                file.write(canonical_json(row) + "\n")
            bank = fold(deltas, bank)
    (folder / "bank.json").write_bytes(memory.content().to_bytes())


def in_child(folder: Path, kill_at: int) -> int:
    """Work in a child process; return the signal that ended it, or 0."""
    child = os.fork()
    if child == 0:
        main(folder, kill_at)
        os._exit(0)
    _, status = os.waitpid(child, 0)
    return os.WTERMSIG(status)


if __name__ == "__main__":
    ended = {}
    for moment in map(int, sys.argv[2:]):
        place = Path(sys.argv[1]) / str(moment)
        place.mkdir()
        ended[moment] = [in_child(place, moment), in_child(place, NEVER)]
    sys.stdout.write(json.dumps(ended))
