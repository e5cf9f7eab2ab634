"""The solver of problems: pose → (draft → gate) → recall → solve → grade → reflect → judge → remember."""

from typing import Any

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer

from langgraft._core.arguments import checked
from langgraft._core.texts import Prompt
from langgraft.environments.problems.domain import ProblemDomain
from langgraft.graphs.building import add_chain, after_episode, before_recall
from langgraft.memory.model import ItemType
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget
from langgraft.nodes.dialogue import ChatModel, chat_model
from langgraft.nodes.memory import recall_node
from langgraft.nodes.problem import grade_node, pose_node, solve_node
from langgraft.nodes.state import AgentInput, SolverOutput, SolverState


@checked
def build_solver(
    model: ChatModel,
    *,
    domain: ProblemDomain,
    memory: MemoryProvider[Any] | None = None,
    learn: bool = True,
    reflection_model: ChatModel | None = None,
    judge_model: ChatModel | None = None,
    budget: Budget | None = None,
    wanted: ItemType | None = "strategic",
    prompt: Prompt | None = None,
    reflect_prompt: Prompt | None = None,
    checkpointer: Checkpointer = None,
    name: str = "solver",
) -> CompiledStateGraph[SolverState, None, AgentInput, SolverOutput]:
    """Build an agent that solves a problem by one call of a model, with memory grafted on.

    Invoke it with `{"task_id": <problem>}`; it returns how the attempt went, with receipts of what was
    recalled and the memory deltas it caused. Outcomes are an oracle's word: a memory that learns has
    to declare it (`feedback="oracle"` in its settings). Reflection sees success or failure and what
    the grader says of it, and never the right answer.

    Args:
        model: Any LangChain chat model, or the name of one.
        domain: The problems and their grader.
        memory: The provider; `None` leaves recall, reflect and remember out of the graph.
        learn: Take episodes in. `False` evaluates on memory as it stands.
        reflection_model: The model that reflects; `None` takes `model` (the solver itself).
        judge_model: The model that answers what memory asks; `None` takes `model`.
        budget: Room for recalled text; `None`: that of `Budget()`.
        wanted: The kind of item that memory is asked for, where it prefers one.
        prompt: Template with `$memory` and `$task`; `None`: the one that ships.
        reflect_prompt: Prompt with `$task`, `$outcome`, `$trajectory` and `$limit`.
        checkpointer: Any LangGraph checkpointer.
        name: Name of the graph in traces.

    Raises:
        SettingsError: A prompt cannot be filled in, or memory is to learn from error records, which
            a grader does not give.
    """
    model = chat_model(model, "`model` of build_solver")
    reflecting = chat_model(reflection_model, "`reflection_model` of build_solver") or model
    judge = chat_model(judge_model, "`judge_model` of build_solver") or model
    graph = StateGraph(SolverState, input_schema=AgentInput, output_schema=SolverOutput)
    nodes: dict[str, Any] = {"pose": pose_node(domain)}
    if memory is not None:
        nodes |= before_recall(memory, model, judge)
        nodes["recall"] = recall_node(memory, budget=budget, wanted=wanted)
    nodes |= {"solve": solve_node(model, prompt=prompt), "grade": grade_node(domain)}
    if memory is not None and learn:
        nodes |= after_episode(memory, reflecting, judge, reflect_prompt, "plain")
    add_chain(graph, nodes, after=START)
    graph.add_edge(next(reversed(nodes)), END)
    return graph.compile(checkpointer=checkpointer, name=name)
