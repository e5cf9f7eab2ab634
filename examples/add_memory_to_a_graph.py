"""Graft memory onto a LangGraph graph you already have: two nodes, and what its model is sent.

What is recalled is in what the model is sent, and never in the graph's state.

Runs without a key: a scripted chat model stands in. Put any LangChain chat model in its place.
"""

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from langgraft import MemoryMiddleware, MemoryState, TrajectoryMemory

model = GenericFakeChatModel(
    messages=iter(
        [
            AIMessage("Restart the router, then renew the DHCP lease: that brought it back."),
            AIMessage("Last time the router restart and a new lease fixed it; try that first."),
        ]
    )
)
bank = TrajectoryMemory(InMemoryStore())
memory = MemoryMiddleware(bank)


def assistant(state: MemoryState) -> MessagesState:
    """Answer: the node that was there before, but for `MemoryState` and `memory.messages`."""
    return {"messages": [model.invoke(memory.messages(state))]}


graph = StateGraph(MessagesState)
graph.add_node("recall", memory.recall_node)
graph.add_node("assistant", assistant)
graph.add_node("remember", memory.remember_node)
graph.add_edge(START, "recall")
graph.add_edge("recall", "assistant")
graph.add_edge("assistant", "remember")
graph.add_edge("remember", END)
app = graph.compile()


if __name__ == "__main__":
    for question in ("The office wifi is down", "Wifi is down again in the office"):
        final = app.invoke({"messages": [HumanMessage(question)]})
        print(question, "→", final["messages"][-1].text)
    for item in bank.content().items.values():
        print("kept:", item.text.splitlines()[0])
