"""What our compiled ReAct graph costs over a hand-written LangGraph loop.

Both play the same BabyAI episodes with the same zero-latency model and no memory; the floor
is the loop that anybody would write first. `python -m langgraft.benchmarks.performance`.
"""

import operator
import time
from collections.abc import Callable
from typing import Annotated, Any, Literal

from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from typing_extensions import TypedDict, override

from langgraft.environments.babyai import BabyAI
from langgraft.environments.text import TextEnvironment
from langgraft.graphs.react import build_react_agent

TURNS = ("turn left", "move forward", "turn right", "move forward")


class ZeroLatencyModel(BaseChatModel):
    """Answers at once, going round in circles."""

    @property
    def _llm_type(self) -> str:
        return "zero-latency"

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        action = TURNS[len(messages) // 2 % len(TURNS)]
        message = AIMessage(f"Thought: go on\nAction: {action}")
        return ChatResult(generations=[ChatGeneration(message=message)])


class LoopState(TypedDict):
    """State of the hand-written loop."""

    messages: Annotated[list[BaseMessage], operator.add]
    done: bool


def hand_written_loop(
    model: BaseChatModel, environment: TextEnvironment
) -> CompiledStateGraph[LoopState, None, LoopState, LoopState]:
    """Build the two-node loop one writes first: messages in the state, nothing else."""

    def think(state: LoopState) -> dict[str, Any]:
        return {"messages": [model.invoke(state["messages"])]}

    def act(state: LoopState) -> dict[str, Any]:
        action = state["messages"][-1].text.split("Action:")[1].strip()
        result = environment.step(action)
        rounds = len(state["messages"]) // 2
        return {
            "messages": [HumanMessage(result.observation)],
            "done": result.done or rounds >= environment.max_rounds,
        }

    def after(state: LoopState) -> Literal["think", "__end__"]:
        return "__end__" if state["done"] else "think"

    graph = StateGraph(LoopState)
    graph.add_node("think", think)
    graph.add_node("act", act)
    graph.add_edge(START, "think")
    graph.add_edge("think", "act")
    graph.add_conditional_edges("act", after)
    return graph.compile()


def episode_ratio(*, episodes: int = 40, rounds: int = 5) -> tuple[float, float, float]:
    """Measure CPU time of an episode, ours over the floor's, alternating between the two.

    Returns:
        The ratio of the medians, and CPU milliseconds per episode of ours and of the floor.
    """
    model, world = ZeroLatencyModel(), BabyAI()
    ours = build_react_agent(model, environment=world)
    ids = [task.id for task in world.tasks("babyai/action_obj_door", "train")[:episodes]]

    def play_ours(task_id: str) -> None:
        ours.invoke({"task_id": task_id, "episode_id": task_id})

    def play_floor(task_id: str) -> None:
        environment = world(task_id)
        first = environment.reset()
        start: LoopState = {
            "messages": [
                SystemMessage(environment.instructions),
                HumanMessage(first.observation),
            ],
            "done": False,
        }
        loop = hand_written_loop(model, environment)
        loop.invoke(start, {"recursion_limit": 100})

    for task_id in ids[:5]:
        play_ours(task_id)
        play_floor(task_id)
    mine, floor = [], []
    for _ in range(rounds):
        mine.append(_cpu(play_ours, ids))
        floor.append(_cpu(play_floor, ids))
    ours_ms, floor_ms = _median(mine) / episodes * 1e3, _median(floor) / episodes * 1e3
    return ours_ms / floor_ms, ours_ms, floor_ms


def _cpu(play: Callable[[str], None], task_ids: list[str]) -> float:
    started = time.process_time()
    for task_id in task_ids:
        play(task_id)
    return time.process_time() - started


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]
