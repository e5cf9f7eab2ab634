"""The ReAct agent: recall → think ⇄ act (→ recall again) → reflect → remember.

With `distillation="by_outcome"` lessons come of counterpart → reflect → validate → deduplicate.
What a provider needs beside that is in the graph where it says so (`MemoryProvider.needs`): draft
and gate before recall, judge before remember.
"""

from collections.abc import Callable
from typing import Any, Literal

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer

from langgraft._core.arguments import checked
from langgraft._core.errors import SettingsError
from langgraft._core.texts import Prompt
from langgraft.environments.text import TextWorldFactory
from langgraft.graphs.building import Chain, Distillation, add_chain, after_episode, before_recall
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget, Place
from langgraft.nodes.dialogue import ChatModel, chat_model
from langgraft.nodes.memory import asks_again, recall_node
from langgraft.nodes.state import AgentInput, AgentOutput, AgentState
from langgraft.nodes.text_world import EnvironmentSessions, act_node, start_node, think_node

LONGEST_EPISODE = 1000
"""Rounds after which a graph stops whatever the world says: a runaway guard."""


@checked
def build_react_agent(
    model: ChatModel,
    *,
    environment: TextWorldFactory,
    memory: MemoryProvider[Any] | None = None,
    learn: bool = True,
    reflection_model: ChatModel | None = None,
    judge_model: ChatModel | None = None,
    budget: Budget | None = None,
    max_rounds: int | None = None,
    act_prompt: Prompt | None = None,
    place: Place = "end",
    reflect_prompt: Prompt | None = None,
    distillation: Distillation = "plain",
    checkpointer: Checkpointer = None,
    name: str = "react",
) -> CompiledStateGraph[AgentState, None, AgentInput, AgentOutput]:
    """Build an agent that plays a text world, with memory grafted on.

    Invoke it with `{"task_id": …}`; it returns how the episode went, with receipts of all
    recalls and the memory deltas it caused.

    Args:
        model: Any LangChain chat model, or the name of one (`openai:gpt-4.1-mini`).
        environment: Makes the world of a task.
        memory: The provider; `None` leaves recall, reflect and remember out of the graph.
        learn: Take episodes in. `False` evaluates on memory as it stands.
        reflection_model: The model that reflects, for providers that want lessons; `None`
            takes `model`.
        judge_model: The model that answers what memory asks, for providers that ask; `None`
            takes `model`.
        budget: Room for recalled text; `None`: that of `Budget()`.
        max_rounds: How many replies the agent has; `None` takes the world's rule.
        act_prompt: System prompt with `$instructions`.
        place: Where what memory recalls later in an episode stands in the conversation: before the
            latest observation (`end`), so that all before it stays as it was, or before the first
            (`start`), in place of what was recalled there.
        reflect_prompt: Prompt with `$task`, `$outcome`, `$trajectory` and `$limit`; for `plain`.
        distillation: How lessons come of an episode, for providers that want lessons: `plain`,
            `by_outcome`: two model calls an episode, four where both replies have to be corrected; or
            `strategies`, as `ReasoningBank` has them: one, two where the reply has to be corrected.
        checkpointer: Any LangGraph checkpointer; an interrupted episode is continued by
            invoking again with `None` and the same `thread_id`.
        name: Name of the graph in traces.

    Raises:
        SettingsError: `max_rounds` is below 1, a prompt cannot be filled in or would not be asked,
            there is no such distillation, or memory is to learn from error records, which a text
            world does not give.
    """
    _check_distillation(distillation, reflect_prompt)
    model = chat_model(model, "`model` of build_react_agent")
    reflecting = chat_model(reflection_model, "`reflection_model` of build_react_agent") or model
    judge = chat_model(judge_model, "`judge_model` of build_react_agent") or model
    sessions = EnvironmentSessions(environment)
    graph = StateGraph(AgentState, input_schema=AgentInput, output_schema=AgentOutput)
    graph.add_node("start", start_node(sessions, max_rounds=max_rounds))
    graph.add_node("think", think_node(model, prompt=act_prompt, place=place))
    graph.add_node("act", act_node(sessions))
    graph.add_edge(START, "start")
    graph.add_edge("think", "act")
    if memory is None:
        graph.add_edge("start", "think")
        graph.add_conditional_edges("act", _until_done, {"go on": "think", "end": END})
    else:
        asked = {"recall": recall_node(memory, budget=budget)}
        add_chain(graph, {**before_recall(memory, model, judge), **asked}, after="start")
        graph.add_edge("recall", "think")
        learning: Chain = {}
        if learn:
            learning = after_episode(memory, reflecting, judge, reflect_prompt, distillation)
            add_chain(graph, learning)
            graph.add_edge("remember", END)
        graph.add_conditional_edges(
            "act",
            _asking_again(memory),
            {"go on": "think", "ask again": "recall", "end": next(iter(learning), END)},
        )
    limit = 3 * (max_rounds or LONGEST_EPISODE) + 10
    compiled = graph.compile(checkpointer=checkpointer, name=name)
    return compiled.with_config(recursion_limit=limit)


def _check_distillation(distillation: str, prompt: Prompt | None) -> None:
    if prompt is not None and distillation != "plain":
        msg = (
            f"reflect_prompt {prompt.name!r} would not be asked with distillation"
            f" {distillation!r}: leave one of them out"
        )
        raise SettingsError(msg)


def _until_done(state: AgentState) -> Literal["go on", "end"]:
    return "end" if state["done"] else "go on"


def _asking_again(memory: MemoryProvider[Any]) -> Callable[[AgentState], str]:
    def after_act(state: AgentState) -> str:
        if state["done"]:
            return "end"
        return "ask again" if asks_again(memory, state) else "go on"

    return after_act
