"""The smallest study whose results depend on memory: for testing backends, and as an example.

Each result holds a digest of the whole bank, so an item that saw the wrong memory shows in
every byte that follows. No language model takes part.
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from langchain_core.language_models import BaseChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from typing_extensions import override

from langgraft._core.canonical import JSON, digest
from langgraft.benchmarks.harness.log import PlanLog, run_folder
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.progress import PlanOutcome
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.study import (
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
from langgraft.memory.model import (
    Add,
    Annotate,
    Change,
    MemoryDelta,
    MemoryItem,
    Remove,
    SetState,
    fold,
)

CAPACITY = 4
"""Items a bank holds before the oldest leaves."""


class ChainPlan(Plan):
    """Streams that learn, one from another, and probes of their banks."""

    streams: int = 2
    """Chains of three streams: `first`, `second` from its bank, `third` from half of `second`."""
    items: int = 6
    """Items of a stream."""
    probes: tuple[int, ...] = (0, 3)
    """After how many items of `first` its bank is probed."""
    pause: float = 0.0
    """Seconds an item takes."""


def go_on(_run: str, _item: str) -> None:
    """Do nothing before an item."""


class ChainStudy(Study[ChainPlan]):
    """Three streams in a row, with probes of the first one's bank, frozen.

    Args:
        before_item: Called with run and item before each item; may raise.
    """

    name = "chain"
    plan_model = ChainPlan

    def __init__(self, before_item: Callable[[str, str], None] = go_on) -> None:
        self._before_item = before_item

    @override
    def expand(self, plan: ChainPlan) -> tuple[RunSpec, ...]:
        """List the runs of a plan."""
        runs = []
        items = tuple(f"item-{number}" for number in range(plan.items))
        for chain in range(plan.streams):
            factors: dict[str, JSON] = {"chain": chain}
            first, second, third = (f"{chain}/{name}" for name in ("first", "second", "third"))
            half = BankSource(second, plan.items // 2)
            runs.append(RunSpec(self.name, first, factors, items))
            runs.append(RunSpec(self.name, second, factors, items, BankSource(first)))
            runs.append(RunSpec(self.name, third, factors, items, half))
            runs.extend(
                RunSpec(
                    self.name,
                    f"{chain}/probe-{after}",
                    factors,
                    items,
                    BankSource(first, after),
                    frozen=True,
                )
                for after in plan.probes
            )
        return tuple(runs)

    @override
    def fingerprints(self, plan: ChainPlan) -> Mapping[str, JSON]:
        """Return what the results depend on beside the plan."""
        return {"rule": {"capacity": CAPACITY}}

    @override
    def open(
        self,
        plan: ChainPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: BaseChatModel,
        place: BankPlace,
    ) -> RunSession:
        """Start or resume a run."""
        return ChainSession(plan, run, deltas, self._before_item)

    @override
    def simulated_model(self, plan: ChainPlan, run: RunSpec) -> BaseChatModel:
        """Return a model that is never asked."""
        return FakeListChatModel(responses=["unused"])

    @override
    def most_calls(self, plan: ChainPlan, run: RunSpec) -> int:
        """Return how many model calls a run makes at the most."""
        return 0

    @override
    def report(self, plan: ChainPlan, log: PlanLogReader, out: Path) -> Report:
        """Write a digest of the results of each run."""
        rows = tuple((run.name, digest(list(log.results(run.name)))) for run in log.runs)
        page = out / "report.txt"
        page.write_text("".join(f"{' '.join(row)}\n" for row in rows), encoding="utf-8")
        return Report(page, "Digests of results", ("run", "digest"), rows)


class ChainSession:
    """A run of `ChainStudy` under way."""

    def __init__(
        self,
        plan: ChainPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        before_item: Callable[[str, str], None],
    ) -> None:
        self._plan = plan
        self._run = run
        self._bank = fold(deltas)
        self._before_item = before_item
        self._under_way = 0
        self.closed = False

    async def run_item(self, index: int, item_id: str) -> ItemOutcome:
        """Work through one item."""
        self._under_way += 1
        if self._under_way > 1 and not self._run.frozen:
            msg = "two items of a stream that learns are under way at once"
            raise RuntimeError(msg)
        try:
            return await self._work(index, item_id)
        finally:
            self._under_way -= 1

    async def _work(self, index: int, item_id: str) -> ItemOutcome:
        # Probes differ in duration, so that side by side they end in another order.
        share = (index * 7 % 5) / 4 if self._run.frozen else 1.0
        await asyncio.sleep(self._plan.pause * share)
        self._before_item(self._run.name, item_id)
        seen = self._bank.digest
        answer = digest([self._run.name, item_id, index, seen])
        result = {"answer": answer, "bank": seen, "known": list(self._bank.items)}
        deltas = () if self._run.frozen else self._learn(index, item_id, answer)
        return ItemOutcome(result, deltas, {"slept": self._plan.pause * share})

    def _learn(self, index: int, item_id: str, answer: str) -> tuple[MemoryDelta, ...]:
        identity = f"{self._run.name}/{index}"
        oldest = next(iter(self._bank.items), None)
        changes: list[Change] = [Add(self._item(identity, item_id, answer))]
        if oldest is not None:
            changes.append(Annotate(oldest, {"uses": index, "last": answer[:6]}))
        if oldest is not None and len(self._bank.items) >= CAPACITY:
            changes.append(Remove(oldest, "oldest"))
        deltas = (MemoryDelta(tuple(changes)), MemoryDelta((SetState("episodes", index + 1),)))
        self._bank = fold(deltas, self._bank)
        return deltas

    def _item(self, identity: str, item_id: str, answer: str) -> MemoryItem:
        state = self._bank.state.get("written", 0)
        return MemoryItem(
            id=identity,
            text=f"«{item_id}»\n→ {answer}",
            type="other",
            source_domain="chain",
            episode_id=identity,
            success=int(answer[0], 16) % 2 == 0,
            order_index=len(self._bank.items) + (state if isinstance(state, int) else 0),
        )

    async def aclose(self) -> None:
        """Free what the run holds."""
        self.closed = True


def chain_plan(**fields: Any) -> ChainPlan:
    """Make a plan of `ChainStudy`."""
    return ChainPlan(study=ChainStudy.name, **fields)


async def run_chain(
    out: Path, plan: ChainPlan | None = None, study: ChainStudy | None = None, **options: Any
) -> PlanOutcome:
    """Run a plan of `ChainStudy`; `options` go to `run_plan`."""
    chosen = study or ChainStudy()
    prepared = prepare(chosen, plan or chain_plan())
    return await run_plan(prepared, out, model_for=chosen.simulated_model, **options)


def log_bytes(out: Path) -> dict[str, bytes]:
    """Return the commit log of each run: what two repetitions must have in common."""
    log = PlanLog(out)
    return {run.name: (run_folder(out, run) / "items.jsonl").read_bytes() for run in log.graph}
