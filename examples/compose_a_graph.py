"""Compose an agent from langgraft's nodes: here, one that never reflects mid-way.

Runs without a key: the model is the simulated BabyAI learner.
"""

from langgraph.graph import END, START, StateGraph
from langgraph.store.memory import InMemoryStore

from langgraft import BabyAI, InsightMemory
from langgraft.benchmarks.simulated import SimulatedBabyAI
from langgraft.nodes import (
    AgentState,
    EnvironmentSessions,
    act_node,
    recall_node,
    reflect_node,
    remember_node,
    start_node,
    think_node,
)


def main() -> None:
    """Play a few episodes; the agent is the graph below."""
    model = SimulatedBabyAI(seed=1)
    memory = InsightMemory(InMemoryStore())
    sessions = EnvironmentSessions(BabyAI())

    graph = StateGraph(AgentState)
    graph.add_node("start", start_node(sessions))
    graph.add_node("recall", recall_node(memory))
    graph.add_node("think", think_node(model))
    graph.add_node("act", act_node(sessions))
    graph.add_node("reflect", reflect_node(model, max_lessons=2))
    graph.add_node("remember", remember_node(memory))
    graph.add_edge(START, "start")
    graph.add_edge("start", "recall")
    graph.add_edge("recall", "think")
    graph.add_edge("think", "act")
    graph.add_conditional_edges("act", lambda state: "reflect" if state["done"] else "think")
    graph.add_edge("reflect", "remember")
    graph.add_edge("remember", END)
    agent = graph.compile()

    for number in range(5):
        episode = agent.invoke({"task_id": f"babyai/action_obj_door/{number}"})
        lessons = [lesson["text"] for lesson in episode["lessons"]]
        print(episode["instruction"], "→", episode["reason"], lessons)
    print(f"{len(memory.content().items)} items in memory")


if __name__ == "__main__":
    main()
