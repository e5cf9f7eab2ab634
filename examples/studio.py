"""A module-level graph for `langgraph dev` and LangGraph Studio (see `langgraph.json`).

Uses the simulated learner; put any LangChain chat model in its place.
"""

from langgraph.store.memory import InMemoryStore

from langgraft import BabyAI, InsightMemory, build_react_agent
from langgraft.benchmarks.simulated import SimulatedBabyAI

graph = build_react_agent(
    SimulatedBabyAI(seed=1),
    environment=BabyAI(),
    memory=InsightMemory(InMemoryStore()),
)
