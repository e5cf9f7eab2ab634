"""A module-level graph for `langgraph dev` and LangGraph Studio (see `langgraph.json`).

Its memory lies in a Chroma database, in a folder, and is there again when Studio reloads this file or is
started anew. Uses the simulated learner; put any LangChain chat model in its place.
"""

import chromadb
from chromadb.config import Settings

from langgraft import BabyAI, ChromaStore, InsightMemory, build_react_agent
from langgraft.benchmarks.simulated import SimulatedBabyAI

# A client, and no `ChromaStore.open`: that would refuse the folder to this file when it is reloaded.
client = chromadb.PersistentClient("runs/studio-memory", Settings(anonymized_telemetry=False))

graph = build_react_agent(
    SimulatedBabyAI(seed=1),
    environment=BabyAI(),
    memory=InsightMemory(ChromaStore.from_client(client)),
)
