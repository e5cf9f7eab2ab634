"""Play ALFWorld with memory: what was learned in the first episodes is there in later ones.

Runs without a key and without data: the model is a simulated learner, the games are generated.
Needs the engine: pip install 'langgraft[alfworld]'. With games of your own (docs/alfworld.md), put
`ALFWorld()` in the place of `GeneratedALFWorld()`.
"""

from langgraph.store.memory import InMemoryStore

from langgraft import InsightMemory, build_react_agent
from langgraft.benchmarks.simulated.alfworld import SimulatedALFWorld
from langgraft.environments.alfworld import GeneratedALFWorld

DOMAIN = "alfworld-generated/pick_clean_then_place"


def main() -> None:
    """Learn from some games, and play others on what was learned."""
    worlds = GeneratedALFWorld()
    model = SimulatedALFWorld(seed=1)
    memory = InsightMemory(InMemoryStore())

    learner = build_react_agent(model, environment=worlds, memory=memory)
    for task in worlds.tasks(DOMAIN, "train")[:5]:
        episode = learner.invoke({"task_id": task.id})
        print(episode["steps"][0]["observation"].splitlines()[1], "→", episode["reason"])
    print(f"{len(memory.content().items)} items in memory")

    tasks = worlds.tasks(DOMAIN, "test")[:5]
    for name, known in (("without memory", None), ("with memory", memory)):
        agent = build_react_agent(model, environment=worlds, memory=known, learn=False)
        won = sum(agent.invoke({"task_id": task.id})["success"] for task in tasks)
        print(f"{name}: {won} of {len(tasks)} held-out games won")


if __name__ == "__main__":
    main()
