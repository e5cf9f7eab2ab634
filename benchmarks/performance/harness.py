"""The harness against what keeps the same number of calls in flight and does nothing else."""

import asyncio
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage
from langchain_core.outputs import ChatResult
from typing_extensions import override

from langgraft._core.canonical import JSON
from langgraft.benchmarks.harness.inflight import CallLimits
from langgraft.benchmarks.harness.models import run_models
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.study import (
    SIMULATED,
    BankPlace,
    BankSource,
    ItemOutcome,
    Plan,
    PlanLogReader,
    Report,
    RunSpec,
    Study,
)
from langgraft.benchmarks.harness.usage import metered
from langgraft.benchmarks.performance.react_agent import ZeroLatencyModel
from langgraft.memory.model import MemoryDelta, SetState

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

    model = ChatOpenAI(model=SIMULATED, base_url=url, api_key=lambda: "none", max_retries=0)
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
