"""Graft memory onto a LangGraph graph you already have: its model gets memory, and nothing else changes.

What is recalled is in what the model is sent, and never in the graph's state. Where recalling and filing are
to be nodes of their own, there are `recall_for_messages` and `remember_messages`.

Runs without a key: a scripted chat model stands in. Put any LangChain chat model in its place.
"""

from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.store.memory import InMemoryStore

from langgraft import TrajectoryMemory, with_memory

model = GenericFakeChatModel(
    messages=iter(
        [
            AIMessage("Restart the router, then renew the DHCP lease: that brought it back."),
            AIMessage("Last time the router restart and a new lease fixed it; try that first."),
        ]
    )
)
memory = TrajectoryMemory(InMemoryStore())
model_with_memory = with_memory(model, memory)


def assistant(state: MessagesState) -> MessagesState:
    """Answer: the node that was there before."""
    return {"messages": [model_with_memory.invoke(state["messages"])]}


graph = StateGraph(MessagesState)
graph.add_node("assistant", assistant)
graph.add_edge(START, "assistant")
graph.add_edge("assistant", END)
app = graph.compile()


if __name__ == "__main__":
    for question in ("The office wifi is down", "Wifi is down again in the office"):
        final = app.invoke({"messages": [HumanMessage(question)]})
        print(question, "→", final["messages"][-1].text)
    for item in memory.content().items.values():
        print("kept:", item.text.splitlines()[0])
