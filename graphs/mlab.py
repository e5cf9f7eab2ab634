"""MLAB: an agent that replies in six fields and sees its last three steps, with memory grafted on.

    start → recall → think → (consult) → act → (summarize) → (diagnose → judge → remember) → think …
                       └→ submit

Memory's nodes are there where memory asks for what they give, and run for executions that failed,
or put a failure right. The state holds references and numbers only; events, programs and outputs
lie in `artifacts`.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, TypeAlias

from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer

from langgraft._core.arguments import check_whole, checked
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.submissions import sample_file
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.graphs.building import (
    add_chain,
    check_seconds,
    contents_of,
    package_names,
)
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget
from langgraft.nodes.artifacts import Artifacts
from langgraft.nodes.competition_run import Gpus
from langgraft.nodes.dialogue import ChatModel, Node, chat_model
from langgraft.nodes.mlab.deps import MLABDeps, MLABPrompts
from langgraft.nodes.mlab.step import (
    act_node,
    consult_node,
    is_long,
    needs_model,
    summarize_node,
    think_node,
)
from langgraft.nodes.mlab.tools import CHANGING, performer
from langgraft.nodes.workbench.deps import RunDeps
from langgraft.nodes.workbench.limits import RunLimits, TokenPrices, check_limits
from langgraft.nodes.workbench.log import RunInput, RunOutput, RunState
from langgraft.nodes.workbench.memory import (
    after_acting,
    diagnose_run_node,
    judge_run_node,
    memory_needs,
    recall_run_node,
    remember_run_node,
)
from langgraft.nodes.workbench.sessions import Workspaces
from langgraft.nodes.workbench.start import start_run_node, submit_node

Graph: TypeAlias = "StateGraph[RunState, None, RunInput, RunOutput]"

Teaching: TypeAlias = dict[str, Node[RunState]]
"""Nodes by name that teach memory what came of an execution, in the order they run."""

MLAB_LIMITS: Final = RunLimits(steps=2000, hours=24.0)
"""MLE-bench's figures for MLAB."""
_NODES_A_STEP: Final = 7


@checked
def build_mlab_agent(
    model: ChatModel,
    *,
    competition: Competition,
    sandbox: Sandbox,
    feedback_model: ChatModel | None = None,
    edit_model: ChatModel | None = None,
    memory: MemoryProvider[Any] | None = None,
    learn: bool = True,
    artifacts: Artifacts | None = None,
    folder: Path | str | None = None,
    limits: RunLimits = MLAB_LIMITS,
    prices: TokenPrices | None = None,
    seconds: float = 7200.0,
    use_all_time: bool = True,
    window: int = 3,
    retries: int = 10,
    budget: Budget | None = None,
    packages: Sequence[str] | None = None,
    gpus: Gpus = None,
    weights: Sequence[str] = (),
    prompts: MLABPrompts | None = None,
    checkpointer: Checkpointer = None,
    clock: Callable[[], float] = time.monotonic,
    name: str = "mlab",
) -> CompiledStateGraph[RunState, None, RunInput, RunOutput]:
    """Build MLAB, the research agent of MLAgentBench as MLE-bench runs it.

    Invoke it with `{"episode_id": …, "seed": 0}`, both optional. It returns the reference of the
    event log (`read_log(artifacts, reference)` reads it), why the run ended, and the submission.

    ==================  ===========================  =========  ================  ==============
    setting             meaning                      here       MLAB as MLE-      MLAgentBench
                                                                bench runs it
    ==================  ===========================  =========  ================  ==============
    `model`             replies in six fields        -          gpt-4o            claude-v1
    `edit_model`        rewrites scripts             the agent  gpt-4o            claude-v1
                                                     model
    `feedback_model`    reads files, shortens        the agent  gpt-4o            claude-v1
                        observations, diagnoses,     model
                        answers memory
    `limits`            steps, hours, dollars        2000, 24   2000, 24          50, 5
    `seconds`           wall clock of one script     7200       none of its own   none
    `use_all_time`      asked to use all steps and   `True`     yes               -
                        hours
    `window`            steps a prompt shows         3          3                 3
    `retries`           replies without the form     10         10                5
                        before the run ends
    `memory`            a provider; `None` has no    -          -                 a research log
                        memory nodes at all
    `learn`             file failures in it          `True`     -                 -
    ==================  ===========================  =========  ================  ==============

    Each script that fails is one episode of memory, `<episode_id>/<event>`, in the domain
    `mle/<competition>`; one that runs after it failed puts that failure right. What memory recalls
    stands in the prompt of every step, as the run began with it.

    Going on: with a checkpointer a run that was stopped or killed is continued by
    `invoke(None, config)`. Contents must be on disk then (`folder`), memory is put back first
    (`restore_run_memory` in `langgraft.nodes.workbench`), and the run goes with
    `durability="sync"`. Its workspace is built anew by doing again what the log says was done.

    Args:
        model: Any LangChain chat model, or the name of one (`openai:gpt-4.1-mini`).
        competition: Prepared.
        sandbox: Made with `inputs={"input": competition.input_dir}`.
        feedback_model: `None` takes `model`.
        edit_model: `None` takes `model`.
        memory: The provider; `None` leaves recall, diagnose, judge and filing out of the graph.
        learn: Take episodes in. `False` evaluates on memory as it stands.
        artifacts: Where contents are kept; `None` takes `<folder>/artifacts`, and without a folder
            this process, where they end with it.
        folder: The run's own: log, submission and program are written there at the end.
        limits: What the run may use.
        use_all_time: Ask the agent to go on until steps and hours are used; `False` lets it
            finish when it sees nothing left that is worth trying.
        prices: What tokens cost, where `limits` has dollars. All three models count by them.
        seconds: Of wall clock, for one script.
        window: At least 1.
        retries: At least 0.
        budget: Room for recalled text; `None`: that of `Budget()`.
        packages: `None` takes what the image of `langgraft sandbox build` is asked to hold, by
            name; of another image, `installed_packages(sandbox)` asks it (`langgraft.environments.
            sandboxes.image.packages`), or give your own, also with versions.
        gpus: Of a program, as the sandbox was made; prompts name them.
        weights: Names of pretrained weights that programs find, as the sandbox was made; prompts name
            them.
        prompts: `None` takes those that ship.
        checkpointer: Any LangGraph checkpointer.
        clock: Seconds that go on.
        name: Name of the graph in traces.

    Raises:
        SettingsError: A number is out of its range, a prompt cannot be filled in, the model is
            none, or memory needs what this agent cannot give.
        CompetitionError: The data is not prepared.
        InputError: It is no competition.
    """
    model = chat_model(model, "`model` of build_mlab_agent")
    feedback = chat_model(feedback_model, "`feedback_model` of build_mlab_agent") or model
    check_limits(limits, prices)
    check_whole("window", window)
    check_whole("retries", retries, 0)
    check_seconds(seconds)
    sample_file(competition)
    needs = memory_needs(memory, learn=learn)
    folder = None if folder is None else Path(folder)
    workspaces = Workspaces(
        sandbox,
        performer(competition),
        changing=CHANGING,
        metric=competition.grader.name,
        seconds=seconds,
    )
    run = RunDeps(
        competition,
        contents_of(artifacts, folder),
        workspaces,
        limits,
        prices,
        clock,
        gpus,
        tuple(weights),
    )
    editing = chat_model(edit_model, "`edit_model` of build_mlab_agent") or model
    prompts = prompts or MLABPrompts()
    deps = MLABDeps(run, prompts, package_names(packages), window, use_all_time)

    graph: Graph = StateGraph(RunState, input_schema=RunInput, output_schema=RunOutput)
    graph.add_node("start", start_run_node(run, memory=memory if learn else None))
    graph.add_node("think", think_node(deps, model, retries=retries))
    graph.add_node("consult", consult_node(deps, editing, feedback))
    graph.add_node("act", act_node(deps))
    graph.add_node("summarize", summarize_node(deps, feedback))
    graph.add_node("submit", submit_node(run, folder=folder))

    teaching: Teaching = {}
    if "errors" in needs:
        teaching["diagnose"] = diagnose_run_node(run, feedback, prompt=prompts.diagnose)
    if memory is not None and "verdicts" in needs:
        teaching["judge"] = judge_run_node(run, memory, feedback)
    if memory is not None and learn:
        teaching["remember"] = remember_run_node(run, memory)
    recall = None if memory is None else recall_run_node(run, memory, budget=budget)
    _begin(graph, recall)
    _wire(graph, run, teaching)
    compiled = graph.compile(checkpointer=checkpointer, name=name)
    return compiled.with_config(recursion_limit=_NODES_A_STEP * limits.steps + 20)


def _begin(graph: Graph, recall: Node[RunState] | None) -> None:
    """Wire what comes before the first step."""
    graph.add_edge(START, "start")
    if recall is None:
        graph.add_edge("start", "think")
        return
    graph.add_node("recall", recall)
    graph.add_edge("start", "recall")
    graph.add_edge("recall", "think")


def _wire(graph: Graph, run: RunDeps, teaching: Teaching) -> None:
    """Wire the loop: think, do, teach memory what came of it, and so on until it ends."""
    *_, last = ["", *teaching]
    first = next(iter(teaching), "")

    def thought(state: RunState) -> str:
        if not state.get("said"):
            return "submit"
        return "consult" if needs_model(run, state) else "act"

    def done(state: RunState) -> str:
        return "summarize" if is_long(run, state) else shown(state)

    def shown(state: RunState) -> str:
        return first if first and after_acting(run, state) != "other" else further(state)

    def further(state: RunState) -> str:
        return "submit" if state.get("ended") else "think"

    leads_on = [*list(teaching)[:1], "think", "submit"]
    graph.add_conditional_edges("think", thought, ["consult", "act", "submit"])
    graph.add_edge("consult", "act")
    graph.add_conditional_edges("act", done, ["summarize", *leads_on])
    graph.add_conditional_edges("summarize", shown, leads_on)
    add_chain(graph, teaching)
    if last:
        graph.add_conditional_edges(last, further, ["think", "submit"])
    graph.add_edge("submit", END)
