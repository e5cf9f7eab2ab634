"""What our compiled ReAct graph costs over a hand-written LangGraph loop, and the middleware over none.

Both play the same BabyAI episodes with the same zero-latency model and no memory; the floor
is the loop that anybody would write first. `python -m langgraft.benchmarks.performance`.
"""

import asyncio
import itertools
import json
import operator
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Final, Literal, NotRequired, Protocol

from langchain.agents import create_agent
from langchain.agents.middleware import AgentMiddleware, AgentState
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.callbacks import CallbackManagerForLLMRun
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langgraph.graph import START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.store.memory import InMemoryStore
from pydantic import SecretStr
from typing_extensions import TypedDict, override

from langgraft._core.canonical import JSON
from langgraft.benchmarks.continual.plan import Condition, ContinualPlan
from langgraft.benchmarks.continual.study import ContinualStudy
from langgraft.benchmarks.harness.directory import places_in_memory
from langgraft.benchmarks.harness.limits import CallLimits
from langgraft.benchmarks.harness.models import run_models
from langgraft.benchmarks.harness.plans import PreparedPlan, prepare
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.study import (
    SIMULATED,
    BankPlace,
    BankSource,
    ItemOutcome,
    Plan,
    PlanLogReader,
    Report,
    RunSession,
    RunSpec,
    Study,
)
from langgraft.benchmarks.harness.usage import metered
from langgraft.benchmarks.performance.lexical_search import queries
from langgraft.benchmarks.performance.timing import cpu_seconds, in_turns
from langgraft.environments.babyai import BabyAI
from langgraft.environments.text import TextEnvironment
from langgraft.graphs.react import build_react_agent
from langgraft.memory.model import Episode, MemoryDelta, Outcome, SetState, Step
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import TrajectoryMemory
from langgraft.nodes.middleware import MemoryMiddleware

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


class ToolCallingModel(ZeroLatencyModel):
    """Does the same by calling a tool, as agents of `create_agent` act."""

    @override
    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        return self

    @override
    def _generate(
        self,
        messages: list[BaseMessage],
        stop: list[str] | None = None,
        run_manager: CallbackManagerForLLMRun | None = None,
        **kwargs: Any,
    ) -> ChatResult:
        if messages[-1].text == _OVER:
            message = AIMessage("done")
        else:
            action = TURNS[len(messages) // 2 % len(TURNS)]
            call = {"name": "act", "args": {"action": action}, "id": str(len(messages))}
            message = AIMessage("go on", tool_calls=[call])
        return ChatResult(generations=[ChatGeneration(message=message)])


_OVER: Final = "the episode is over"


def _play_with_create_agent(environment: TextEnvironment) -> None:
    """Play an episode by LangChain's own agent, whose one tool acts in the world."""
    rounds = 0

    def act(action: str) -> str:
        """Act in the world."""
        nonlocal rounds
        rounds += 1
        result = environment.step(action)
        over = result.done or rounds >= environment.max_rounds
        return _OVER if over else result.observation

    first = environment.reset()
    agent: Any = create_agent(ToolCallingModel(), [act], system_prompt=environment.instructions)
    agent.invoke({"messages": [HumanMessage(first.observation)]}, {"recursion_limit": 200})


def episode_times(names: Sequence[str], *, episodes: int, rounds: int) -> dict[str, list[float]]:
    """Measure CPU milliseconds an episode, in turns.

    Args:
        names: Of `langgraft`, `create_agent` and `hand-written`.
        episodes: Played by each in a round.
        rounds: How often.
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

    def play_peer(task_id: str) -> None:
        _play_with_create_agent(world(task_id))

    plays = {"langgraft": play_ours, "hand-written": play_floor, "create_agent": play_peer}
    found: dict[str, list[float]] = {name: [] for name in names}
    for name in names:
        for task_id in ids[:5]:
            plays[name](task_id)
    for _ in range(rounds):
        for name in names:
            found[name].append(_play_seconds(plays[name], ids) / episodes * 1e3)
    return found


def episode_ratio(*, episodes: int = 40, rounds: int = 5) -> tuple[float, float, float]:
    """Measure CPU time of an episode, ours over the floor's, alternating between the two.

    Returns:
        The ratio of the medians, and CPU milliseconds per episode of ours and of the floor.
    """
    found = episode_times(("langgraft", "hand-written"), episodes=episodes, rounds=rounds)
    ours, floor = (_median(found[name]) for name in ("langgraft", "hand-written"))
    return ours / floor, ours, floor


@dataclass(frozen=True, slots=True)
class TurnCost:
    """CPU milliseconds of a turn of a `create_agent` agent, medians."""

    bare: float
    """Without middleware."""
    hooks: float
    """With one that has the same hooks, and keeps a number in private state: what LangGraph takes for that."""
    ours: float
    """With memory."""
    provider: float
    """Of `ours`: inside the provider's own calls."""

    @property
    def overhead(self) -> float:
        """What memory costs beside the provider."""
        return self.ours - self.provider - self.bare


def turn_cost(items: int, *, history: int = 0, rounds: int = 100) -> TurnCost:
    """Measure a turn with `MemoryMiddleware` over a bank of so many items, in turns with the same without.

    Args:
        items: Items of the bank; trajectories of 12 words of 3,000.
        history: Messages before the question.
        rounds: Turns of each agent.
    """
    draw, spent = random.Random(0), [0.0]  # noqa: S311 - no secret
    words = [f"word{number}" for number in range(3_000)]
    memory = TrajectoryMemory(InMemoryStore())
    for number in range(items):
        memory.file(_turn_of(number, " ".join(draw.choices(words, k=12))))
    for name in ("provide", "questions", "file"):
        setattr(memory, name, _timed(getattr(memory, name), spent))
    model = ZeroLatencyModel()
    agents: dict[str, Any] = {
        "bare": create_agent(model, []),
        "hooks": create_agent(model, [], middleware=[_Hooks()]),
        "ours": create_agent(model, [], middleware=[MemoryMiddleware(memory)]),
    }
    kinds = (HumanMessage, AIMessage)
    before = [kinds[number % 2](f"said {number}", id=f"h{number}") for number in range(history)]
    times: dict[str, list[float]] = {name: [] for name in (*agents, "provider")}
    for number in range(rounds + 3):
        asked = " ".join(draw.choices(words, k=6))
        for name, agent in agents.items():
            spent[0] = 0.0
            given = [*before, HumanMessage(asked, id=f"{name}{number}")]
            took = cpu_seconds(partial(agent.invoke, {"messages": given}))
            if number >= 3:  # noqa: PLR2004 - the first ones warm up
                times[name].append(took)
                times["provider"] += [spent[0]] if name == "ours" else []
    return TurnCost(**{name: _median(each) * 1e3 for name, each in times.items()})


class Searching(Protocol):
    """A memory that a middleware asks, as those of `contenders` are."""

    def write(self, records: Sequence[tuple[str, str]]) -> None: ...  # noqa: D102
    def search(self, query: str) -> list[str]: ...  # noqa: D102


class _Asking(AgentMiddleware[Any, Any]):
    """What one writes by hand: searches before the model is asked, shows it what was found, writes after it."""

    def __init__(self, memory: Searching) -> None:
        super().__init__()
        self._memory = memory
        self._numbers = itertools.count()

    @override
    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        found = self._memory.search(request.messages[-1].text)
        told = SystemMessage("Notes:\n" + "\n".join(found))
        return handler(request.override(system_message=told))

    @override
    def after_agent(self, state: Any, runtime: Any) -> None:
        said = f"{state['messages'][-2].text} {next(self._numbers)}"
        self._memory.write([(said, said)])


def turn_times(
    memories: Mapping[str, MemoryProvider[Any] | Searching], *, rounds: int
) -> dict[str, tuple[float, ...]]:
    """Measure CPU milliseconds of a turn of `create_agent` with each memory, in turns.

    Args:
        memories: By name. A provider of ours is there by `MemoryMiddleware`, any other memory by a
            middleware that searches and writes as often.
        rounds: Turns of each; the question of a turn is the same for all.

    Returns:
        By name, and of an agent without memory as `no memory`, of one with hooks that do nothing as `hooks`.
    """
    model = ZeroLatencyModel()
    middleware: dict[str, AgentMiddleware[Any, Any] | None] = {"no memory": None, "hooks": _Hooks()}
    for name, memory in memories.items():
        ours = isinstance(memory, MemoryProvider)
        middleware[name] = MemoryMiddleware(memory) if ours else _Asking(memory)  # type: ignore[arg-type]
    agents: dict[str, Any] = {
        name: create_agent(model, [], middleware=[each] if each else [])
        for name, each in middleware.items()
    }

    def ask(name: str, question: str) -> None:
        agents[name].invoke({"messages": [HumanMessage(question)]})

    asks = {name: partial(ask, name) for name in agents}
    found = in_turns(asks, queries(rounds), rounds=1, seconds=_TURNS_PATIENCE)
    return {name: times.cpu for name, times in found.items()}


_TURNS_PATIENCE: Final = 15.0
"""Seconds of CPU."""


class _Kept(AgentState[Any]):
    kept: NotRequired[Annotated[int, PrivateStateAttr]]


class _Hooks(AgentMiddleware[Any, Any]):
    """Has the hooks that memory has, and private state."""

    state_schema = _Kept

    @override
    def before_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"kept": 1}

    @override
    def wrap_model_call(self, request: Any, handler: Callable[[Any], Any]) -> Any:
        return handler(request)

    @override
    def after_agent(self, state: Any, runtime: Any) -> dict[str, Any]:
        return {"kept": 2}


def _turn_of(number: int, task: str) -> Episode:
    steps = (Step("", "", ""), Step("", f"answer {number}", ""))
    name = f"e{number}"
    outcome = Outcome(success=True)
    return Episode(id=name, domain="chat", task_id=name, task=task, steps=steps, outcome=outcome)


def _timed(function: Callable[..., Any], spent: list[float]) -> Callable[..., Any]:
    def call(*args: Any, **kwargs: Any) -> Any:
        started = time.process_time()
        try:
            return function(*args, **kwargs)
        finally:
            spent[0] += time.process_time() - started

    return call


def _play_seconds(play: Callable[[str], None], task_ids: list[str]) -> float:
    started = time.process_time()
    for task_id in task_ids:
        play(task_id)
    return time.process_time() - started


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


# The harness -----------------------------------------------------------------------------

Outcomes = Mapping[str, Sequence[ItemOutcome]]
"""What each run's items gave, by the run's name."""


class ReplayedStudy(ContinualStudy):
    """The continual study with its episodes played already."""

    def __init__(self, outcomes: Outcomes) -> None:
        self._outcomes = outcomes

    @override
    def open(
        self,
        plan: ContinualPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: BaseChatModel,
        place: BankPlace,
    ) -> RunSession:
        return ReplayedSession(self._outcomes[run.name])


class ReplayedSession:
    """Gives back what the items of one run gave."""

    def __init__(self, outcomes: Sequence[ItemOutcome]) -> None:
        self._outcomes = outcomes

    async def run_item(self, index: int, item_id: str) -> ItemOutcome:  # noqa: ARG002  (protocol)
        """Return the outcome of an item."""
        return self._outcomes[index]

    async def aclose(self) -> None:
        """Do nothing."""


def _plan(study: ContinualStudy, items: int) -> PreparedPlan[ContinualPlan]:
    plan = ContinualPlan(
        train_items=items,
        test_items=1,
        runs=1,
        baseline_runs=1,
        rerun=False,
        sequences=("A>B",),
        conditions=(Condition(name="agg", provider="insight"),),
    )
    return prepare(study, plan)


def overhead_per_item(*, items: int = 40, rounds: int = 5) -> tuple[float, float]:
    """Measure CPU milliseconds of the harness per item, and those of the item itself.

    Args:
        items: Training items a phase.
        rounds: How often the harness runs the plan; the best round counts.
    """
    played = _plan(ContinualStudy(), items)
    count = sum(run.length for run in played.graph)
    started = time.process_time()
    outcomes = asyncio.run(_play(played))
    item = (time.process_time() - started) / count * 1e3
    replayed = _plan(ReplayedStudy(outcomes), items)
    costs = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            costs.append(_cpu(lambda: _through_harness(replayed, Path(folder))))
    return min(costs) / count * 1e3, item


async def _play(prepared: PreparedPlan[ContinualPlan]) -> Outcomes:
    study, plan = prepared.study, prepared.plan
    deltas: dict[str, list[MemoryDelta]] = {}
    outcomes: dict[str, list[ItemOutcome]] = {}
    for run in prepared.graph:
        source = run.spec.source
        before = [] if source is None else deltas[source.run]
        model = study.simulated_model(plan, run.spec)
        session = study.open(plan, run.spec, before, model, places_in_memory().of(run))
        outcomes[run.name] = [
            await session.run_item(index, item_id)
            for index, item_id in enumerate(run.spec.item_ids)
        ]
        made = [delta for outcome in outcomes[run.name] for delta in outcome.deltas]
        deltas[run.name] = [*before, *made]
        await session.aclose()
    return outcomes


async def _through_harness(prepared: PreparedPlan[ContinualPlan], folder: Path) -> None:
    outcome = await run_plan(prepared, folder, model_for=prepared.study.simulated_model)
    assert outcome.complete


def _cpu(work: Callable[[], Coroutine[Any, Any, None]]) -> float:
    started = time.process_time()
    asyncio.run(work())
    return time.process_time() - started


# The harness -----------------------------------------------------------------------------

SECONDS: Final = 1.0
"""What a call takes at the model."""
CALLS: Final = 3
"""Calls of an item, one after the other."""
_ROUNDS: Final = 6
"""Items for each that may be under way."""
_STREAM: Final = 4
"""Items of a stream that learns."""


class LoadPlan(Plan):
    """Items that only call a model."""

    frozen: int = 0
    """Items of runs with a frozen bank, 50 a run."""
    streams: int = 0
    """Streams that learn, of `_STREAM` items each, with a frozen test of as many after each."""


class LoadStudy(Study[LoadPlan]):
    """Calls a model, and nothing else."""

    name = "load"
    plan_model = LoadPlan

    @override
    def expand(self, plan: LoadPlan) -> tuple[RunSpec, ...]:
        """List the runs of a plan."""
        runs = []
        for number, start in enumerate(range(0, plan.frozen, 50)):
            items = tuple(map(str, range(start, min(start + 50, plan.frozen))))
            runs.append(RunSpec(self.name, f"test {number}", {}, items, frozen=True))
        items = tuple(map(str, range(_STREAM)))
        for number in range(plan.streams):
            runs.append(RunSpec(self.name, f"stream {number}", {}, items))
            source = BankSource(f"stream {number}")
            runs.append(RunSpec(self.name, f"after {number}", {}, items, source, frozen=True))
        return tuple(runs)

    @override
    def fingerprints(self, plan: LoadPlan) -> Mapping[str, JSON]:
        """Return nothing: there is nothing beside the plan."""
        return {}

    @override
    def open(
        self,
        plan: LoadPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: BaseChatModel,
        place: BankPlace,
    ) -> "_Load":
        """Start a run."""
        return _Load(run, model)

    @override
    def simulated_model(self, plan: LoadPlan, run: RunSpec) -> BaseChatModel:
        """Return a model that takes its time, in this process."""
        return SlowModel()

    @override
    def most_calls(self, plan: LoadPlan, run: RunSpec) -> int:
        """Return how many model calls a run makes."""
        return run.length * CALLS

    @override
    def report(self, plan: LoadPlan, log: PlanLogReader, out: Path) -> Report:
        """Write nothing worth reading."""
        return Report(out, "Load", (), ())


class _Load:
    def __init__(self, run: RunSpec, model: BaseChatModel) -> None:
        self._run = run
        self._model = model

    async def run_item(self, index: int, item_id: str) -> ItemOutcome:
        """Call the model, one call after the other."""
        with metered() as usage:
            for turn in range(CALLS):
                await self._model.ainvoke(messages(self._run.name, item_id, turn))
            deltas = () if self._run.frozen else (MemoryDelta((SetState("seen", index + 1),)),)
            return ItemOutcome({"usage": usage.totals()}, deltas, {"usage": usage.billing()})

    async def aclose(self) -> None:
        """Nothing is open."""


class SlowModel(ZeroLatencyModel):
    """Answers after `SECONDS`."""

    @override
    async def _agenerate(
        self, messages: list[BaseMessage], *args: Any, **kwargs: Any
    ) -> ChatResult:
        await asyncio.sleep(SECONDS)
        return self._generate(messages)


def messages(run: str, item: str, turn: int) -> list[BaseMessage]:
    """Return what a call sends: an instruction and a few turns, some 1,000 tokens."""
    told: list[BaseMessage] = [SystemMessage("You look records up. " * 60)]
    for step in range(8):
        told += [HumanMessage(f"Record {step}: " + "value " * 40), AIMessage("Thought: on.")]
    return [*told, HumanMessage(f"{run}, {item}, {turn}: go on.")]


def calls_in_process(in_flight: int) -> float:
    """Return the share of the ideal that a model in this process is asked at, so many at once."""
    plan = LoadPlan(study="load", frozen=in_flight * _ROUNDS)
    seconds = _played(plan, in_flight)
    return _ROUNDS * CALLS * SECONDS / seconds


def calls_over_http(in_flight: int, *, mixed: bool) -> tuple[float, float]:
    """Return calls a second through ChatOpenAI: of the harness, and of `asyncio.gather` alone.

    Args:
        in_flight: Calls at once.
        mixed: Half of the items are of streams that learn, enough to keep all slots busy.
    """
    name = "openai:simulated"
    with _served() as url:
        if mixed:
            plan = LoadPlan(study="load", model=name, base_url=url, streams=in_flight * 3 // 2)
            items = plan.streams * _STREAM * 2
        else:
            plan = LoadPlan(study="load", model=name, base_url=url, frozen=in_flight * _ROUNDS)
            items = plan.frozen
        floor = asyncio.run(_bare(url, items * CALLS, in_flight))
        return items * CALLS / _played(plan, in_flight), items * CALLS / floor


def _played(plan: LoadPlan, in_flight: int) -> float:
    study = LoadStudy()
    prepared = prepare(study, plan)
    with tempfile.TemporaryDirectory() as folder:
        out, limits = Path(folder), CallLimits(in_flight)
        with run_models(study, plan, out, None, limits) as model_for:
            began = time.perf_counter()
            asyncio.run(run_plan(prepared, out, model_for=model_for, concurrency=in_flight))
            return time.perf_counter() - began


async def _bare(url: str, calls: int, in_flight: int) -> float:
    from langchain_openai import ChatOpenAI  # noqa: PLC0415  (a second, and not always needed)

    # A key that is a function is asked for in a thread, at every call.
    key = SecretStr("none")
    model = ChatOpenAI(model=SIMULATED, base_url=url, api_key=key, max_retries=0)
    slots = asyncio.Semaphore(in_flight)

    async def call(number: int) -> None:
        async with slots:
            await model.ainvoke(messages("bare", str(number), 0))

    began = time.perf_counter()
    await asyncio.gather(*map(call, range(calls)))
    return time.perf_counter() - began


@contextmanager
def _served() -> Iterator[str]:
    """Serve a simulated model that takes its time, in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        script = Path(folder) / "slow.json"
        slow = {"kind": "slow_first_byte", "seconds": SECONDS, "rate": 1.0}
        script.write_text(json.dumps({"faults": [slow]}), "utf-8")
        command = [sys.executable, "-m", "langgraft", "serve-simulated", "--port", "0", "--json"]
        with subprocess.Popen(  # noqa: S603 - ours
            [*command, "--faults", str(script)], stdout=subprocess.PIPE, text=True
        ) as process:
            try:
                assert process.stdout is not None
                yield str(json.loads(process.stdout.readline())["base_url"])
            finally:
                process.terminate()
