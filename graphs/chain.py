"""The chain agent: one action after another by tool calls, with memory grafted on.

    start → recall → think → act → (diagnose → judge → remember) → watch ⇢ think …
              ↑         └→ submit ←───────────────────────────────────┤
              └───────────────────── another attempt ─────────────────┘

Memory's nodes are there where memory asks for what they give, and run for executions that failed,
or put a failure right. The state holds references and numbers only; events, programs and outputs
lie in `artifacts`.
"""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias, cast

from langchain_core.language_models import BaseChatModel
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Checkpointer

from langgraft._core.arguments import check_whole, checked
from langgraft._core.errors import SettingsError
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
from langgraft.nodes.chain.deps import Browse, ChainDeps, ChainPrompts, Instructions
from langgraft.nodes.chain.step import CHANGING, act_node, performer, repeater, think_node
from langgraft.nodes.chain.stuck import OnStuck, after_thinking, after_watching, watch_node
from langgraft.nodes.chain.tools import Schema, tool_schemas
from langgraft.nodes.chain.visible_history import Condenser, ObservationMasking, ObservationTrimming
from langgraft.nodes.competition_run import Gpus
from langgraft.nodes.dialogue import ChatModel, Model, Node, chat_model, takes_one_call
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

CHAIN_LIMITS: Final = RunLimits(steps=500, hours=24.0)
"""MLE-bench's figures for OpenHands."""
_NODES_A_STEP: Final = 7


@checked
def build_chain_agent(
    model: ChatModel,
    *,
    competition: Competition,
    sandbox: Sandbox,
    feedback_model: ChatModel | None = None,
    memory: MemoryProvider[Any] | None = None,
    learn: bool = True,
    artifacts: Artifacts | None = None,
    folder: Path | str | None = None,
    limits: RunLimits = CHAIN_LIMITS,
    prices: TokenPrices | None = None,
    seconds: float = 7200.0,
    soft_seconds: float | None = None,
    use_all_time: bool = True,
    context: int | None = None,
    condensers: Sequence[Condenser] | None = None,
    on_stuck: OnStuck = "stop",
    recoveries: int = 3,
    browse: Browse | None = None,
    budget: Budget | None = None,
    packages: Sequence[str] | None = None,
    gpus: Gpus = None,
    weights: Sequence[str] = (),
    preload: Sequence[str] = (),
    prompts: ChainPrompts | None = None,
    checkpointer: Checkpointer = None,
    clock: Callable[[], float] = time.monotonic,
    name: str = "chain",
) -> CompiledStateGraph[RunState, None, RunInput, RunOutput]:
    """Build an agent that works at a competition step by step, like OpenHands' CodeActAgent.

    Invoke it with `{"episode_id": …, "seed": 0}`, both optional. It returns the reference of the
    event log (`read_log(artifacts, reference)` reads it), why the run ended, and the submission.

    =================  ==============================  =============  ==============  ============
    setting            meaning                         here           OpenHands       OpenHands
                                                                      2.1.0, as MLE-  0.62
                                                                      bench runs it
    =================  ==============================  =============  ==============  ============
    `model`            calls tools                     -              gpt-4o          any
    `feedback_model`   diagnoses failures, answers     the agent's    -               -
                       what memory asks                model
    `soft_seconds`     after which a command goes on   `None`         no              120, 10
                       as a job
    `limits`           steps, hours, dollars           500, 24, none  500, 24, none   500, -, none
    `seconds`          wall clock of one execution     7200           86400           10, soft
    `use_all_time`     asked to use all steps and      `True`         yes             -
                       hours
    `context`          tokens the model can read       not known      not known       not known
    `condensers`       what is shown of observations:  10,000         10,000          30,000
                       characters of each, and how     characters,    characters,     characters,
                       many                            newest 100     all             all
    `on_stuck`         what follows circles            `"stop"`       stop            stop, or
                                                                                      recover
    `recoveries`       further attempts at most        3              -               -
    `browse`           reads the web                   none           a browsing      a browser
                                                                      agent
    `memory`           a provider; `None` has no       -              -               microagents
                       memory nodes at all
    `learn`            file failures in it             `True`         -               -
    =================  ==============================  =============  ==============  ============

    Memory is asked as the run begins, and again with each further attempt; what it says stands in
    the first message. Each execution that fails is one episode of memory, `<episode_id>/<event>`,
    in the domain `mle/<competition>`; one that tries the same again and works puts it right.

    Going on: with a checkpointer a run that was stopped or killed is continued by
    `invoke(None, config)`. Contents must be on disk then (`folder`), memory is put back first
    (`restore_run_memory` in `langgraft.nodes.workbench.start`), and the run goes with
    `durability="sync"`. Its workspace is built anew by doing again what the log says was done. It
    ends with the same log as if it had not been stopped, as far as models and executions do the
    same again.

    Args:
        model: Any LangChain chat model that calls tools, or the name of one (`openai:gpt-4.1-mini`).
        competition: Prepared.
        sandbox: Made with `inputs={"input": competition.input_dir}`.
        feedback_model: `None` takes `model`.
        memory: The provider; `None` leaves recall, diagnose, judge and filing out of the graph.
        learn: Take episodes in. `False` evaluates on memory as it stands.
        artifacts: Where contents are kept; `None` takes `<folder>/artifacts`, and without a folder
            this process, where they end with it.
        folder: The run's own: log, submission and program are written there at the end.
        limits: What the run may use.
        use_all_time: Ask the agent to go on until steps and hours are used; `False` lets it
            finish when it sees nothing left that is worth trying.
        prices: What tokens cost, where `limits` has dollars.
        seconds: Of wall clock, for one execution.
        soft_seconds: After which a command of `run_bash` goes on as a job, which the agent can look
            at, send input or interrupt (tool `job`); `None` waits for it, for `seconds` at most.
        context: A prompt that is estimated to be longer is made shorter before it is sent. A model
            that says so itself is heard in any case.
        condensers: Applied to what the agent sees, in order; `None` takes
            `(ObservationTrimming(), ObservationMasking())`.
        on_stuck: `"stop"` ends the run where the agent goes in circles. `"recover"` takes them out
            of what it sees, tells it so, and begins another attempt.
        recoveries: At least 0.
        browse: Reads a page, given its address. It runs in this process, not in the sandbox.
        budget: ChainDeps for recalled text; `None`: that of `Budget()`.
        packages: `None` takes what the image of `langgraft sandbox build` is asked to hold, by
            name; of another image, `installed_packages(sandbox)` asks it (`langgraft.environments.
            sandboxes.image.packages`), or give your own, also with versions.
        gpus: Of a program, as the sandbox was made; prompts name them.
        weights: Names of pretrained weights that programs find, as the sandbox was made; prompts name
            them.
        preload: Modules that the interpreter imports beforehand.
        prompts: `None` takes those that ship.
        checkpointer: Any LangGraph checkpointer.
        clock: Seconds that go on.
        name: Name of the graph in traces.

    Raises:
        SettingsError: A number is out of its range, a prompt cannot be filled in, the model calls
            no tools, or memory needs what this agent cannot give.
        CompetitionError: The data is not prepared.
        InputError: It is no competition.
    """
    model = chat_model(model, "`model` of build_chain_agent")
    feedback = chat_model(feedback_model, "`feedback_model` of build_chain_agent") or model
    check_limits(limits, prices)
    _check(seconds, context, recoveries)
    if soft_seconds is not None:
        check_seconds(soft_seconds, "soft_seconds")
    sample_file(competition)
    needs = memory_needs(memory, learn=learn)
    folder = None if folder is None else Path(folder)
    workspaces = Workspaces(
        sandbox,
        performer(competition, soft_seconds),
        repeat=repeater(competition, soft_seconds),
        changing=CHANGING,
        metric=competition.grader.name,
        preload=preload,
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
    prompts, tools = (
        prompts or ChainPrompts(),
        tool_schemas(browse=browse is not None, jobs=soft_seconds is not None),
    )
    names = package_names(packages)
    instructions = Instructions(prompts, competition.description, names, use_all_time, soft_seconds)
    shown = _CONDENSERS if condensers is None else tuple(condensers)
    deps = ChainDeps(run, instructions, tools, shown, context, browse)

    teaching: Teaching = {}
    if "errors" in needs:
        teaching["diagnose"] = diagnose_run_node(run, feedback, prompt=prompts.diagnose)
    if memory is not None and "verdicts" in needs:
        teaching["judge"] = judge_run_node(run, memory, feedback)
    if memory is not None and learn:
        teaching["remember"] = remember_run_node(run, memory)

    graph: Graph = StateGraph(RunState, input_schema=RunInput, output_schema=RunOutput)
    graph.add_node("start", start_run_node(run, memory=memory if learn else None))
    graph.add_node("think", think_node(deps, _with_tools(model, tools)))
    graph.add_node("act", act_node(deps))
    graph.add_node("watch", watch_node(deps, on_stuck=on_stuck, recoveries=recoveries))
    graph.add_node("submit", submit_node(run, folder=folder))
    recall = None if memory is None else recall_run_node(run, memory, budget=budget)
    _wire(graph, deps, recall, teaching)
    compiled = graph.compile(checkpointer=checkpointer, name=name)
    return compiled.with_config(recursion_limit=_NODES_A_STEP * limits.steps + recoveries + 20)


_CONDENSERS: Final[tuple[Condenser, ...]] = (ObservationTrimming(), ObservationMasking())


def _wire(graph: Graph, deps: ChainDeps, recall: Node[RunState] | None, teaching: Teaching) -> None:
    """Wire the loop: think, act, teach memory what came of it, watch, and so on until it ends."""
    attempt = "think"
    if recall is not None:
        attempt = "recall"
        graph.add_node("recall", recall)
        graph.add_edge("recall", "think")
    graph.add_edge(START, "start")
    graph.add_edge("start", attempt)
    graph.add_conditional_edges("think", after_thinking, {"act": "act", "end": "submit"})
    _teach(graph, deps, teaching)
    graph.add_conditional_edges(
        "watch",
        lambda state: after_watching(deps, state),
        {"think": "think", "recover": attempt, "end": "submit"},
    )
    graph.add_edge("submit", END)


def _teach(graph: Graph, deps: ChainDeps, teaching: Teaching) -> None:
    """Wire what lies between `act` and `watch`: memory's nodes, for what it is to be taught."""
    if not teaching:
        graph.add_edge("act", "watch")
        return
    add_chain(graph, teaching)
    first, last = next(iter(teaching)), next(reversed(teaching))
    graph.add_edge(last, "watch")

    def acted(state: RunState) -> Literal["teach", "watch"]:
        return "watch" if after_acting(deps.run, state) == "other" else "teach"

    graph.add_conditional_edges("act", acted, {"teach": first, "watch": "watch"})


def _with_tools(model: Model, tools: Sequence[Schema]) -> Model:
    """Bind the tools to a model, asking for one call a reply where its provider can.

    Raises:
        SettingsError: It calls none.
    """
    one: dict[str, Any] = {"parallel_tool_calls": False} if takes_one_call(model) else {}
    try:
        return cast("BaseChatModel", model).bind_tools(tools, **one)
    except (AttributeError, NotImplementedError) as error:
        msg = (
            f"{type(model).__name__} calls no tools, which is how the chain agent acts: give a"
            " model that does, or take build_mlab_agent, whose model replies in text"
        )
        raise SettingsError(msg) from error


def _check(seconds: float, context: int | None, recoveries: int) -> None:
    check_seconds(seconds)
    check_whole("recoveries", recoveries, 0)
    if context is not None:
        check_whole("context", context)
