"""A state machine that commits, crashes and damages tails in any order."""

import asyncio
import atexit
import functools
import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
from chain_study import ChainStudy, chain_plan
from hypothesis import settings
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from langgraft._core.effects import SystemClock
from langgraft.benchmarks.harness.directory import places_in_memory
from langgraft.benchmarks.harness.execute import RunStream
from langgraft.benchmarks.harness.log import PlanLog, encode_record, read_log, run_folder
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.study import ItemOutcome, RunSession
from langgraft.memory.model import BankContent, MemoryDelta, fold

ITEMS = 12
STUDY = ChainStudy()
PLAN = chain_plan(streams=1, items=ITEMS, probes=())
PREPARED = prepare(STUDY, PLAN)


class CrashMachine(RuleBasedStateMachine):
    """The second stream of a chain, worked through by processes that keep dying.

    The model is the list of outcomes that an undisturbed process commits: whatever happens,
    the log holds a beginning of it, and an item sees the bank folded from what precedes it.
    """

    expected: list[ItemOutcome]
    start: list[MemoryDelta]

    @initialize()
    def prepare_directory(self) -> None:
        """Finish the first stream, and work out what the second one must become."""
        self.base = Path(tempfile.mkdtemp())
        self.out = self.base / "out"
        shutil.copytree(_finished()[0], self.out)
        self.run = PREPARED.graph["0/second"]
        self.log = run_folder(self.out, self.run) / "items.jsonl"
        self.start = [delta for item in PlanLog(self.out).deltas("0/first") for delta in item]
        self.stream: RunStream | None = None
        self.session: RunSession | None = None

    @precondition(lambda self: self.stream is None)
    @rule()
    def open(self) -> None:
        """A process takes the run up."""
        self.stream = RunStream(self.out, PREPARED.graph, self.run, SystemClock())
        model = STUDY.simulated_model(PLAN, self.run.spec)
        place = places_in_memory().of(self.run)
        self.session = STUDY.open(PLAN, self.run.spec, self.stream.deltas, model, place)

    @precondition(lambda self: self.stream is not None and self.stream.committed < ITEMS)
    @rule()
    def commit(self) -> None:
        """It works through an item and commits it."""
        assert self.stream is not None
        self.stream.commit(self._next_outcome(), seconds=0.0)

    @precondition(lambda self: self.stream is not None)
    @rule()
    def crash(self) -> None:
        """It dies between two items."""
        assert self.stream is not None
        self.stream.close()
        self.stream = self.session = None

    @precondition(lambda self: self.stream is not None and self.stream.committed < ITEMS)
    @rule(share=st.floats(0, 1, exclude_max=True))
    def crash_while_writing(self, share: float) -> None:
        """It dies with part of a record written."""
        assert self.stream is not None
        index, item = self.stream.committed, self.run.spec.item_ids[self.stream.committed]
        outcome = self._next_outcome()
        line = encode_record(index, item, outcome.result, outcome.deltas)
        self.crash()
        with self.log.open("ab") as stream:
            stream.write(line[: int(share * len(line))])

    @precondition(lambda self: self.stream is None and self.log.exists())
    @rule(lost=st.integers(0, 3_000), noise=st.binary(max_size=12))
    def lose_tail(self, lost: int, noise: bytes) -> None:
        """A power loss takes the end of the file and leaves noise instead."""
        data = self.log.read_bytes()
        self.log.write_bytes(data[: max(0, len(data) - lost)] + noise)

    @invariant()
    def items_saw_the_right_bank(self) -> None:
        """Each committed item saw the bank that the items before it make."""
        if not hasattr(self, "log") or not self.log.exists():
            return
        bank: BankContent = fold(self.start)
        for index, record in enumerate(read_log(self.log).records):
            assert record.index == index
            assert record.result["bank"] == bank.digest
            bank = fold(record.deltas(), bank)

    def _next_outcome(self) -> ItemOutcome:
        assert self.stream is not None
        assert self.session is not None
        index = self.stream.committed
        return asyncio.run(self.session.run_item(index, self.run.spec.item_ids[index]))

    def teardown(self) -> None:
        """Finish the plan: it ends with the same bytes as one that nothing disturbed."""
        if not hasattr(self, "base"):
            return
        if self.stream is not None:
            self.crash()
        asyncio.run(run_plan(PREPARED, self.out, model_for=STUDY.simulated_model))
        assert self.log.read_bytes() == _finished()[1]
        shutil.rmtree(self.base)


@functools.cache
def _finished() -> tuple[Path, bytes]:
    """A directory whose first stream is done and second not begun, and the log that must come."""
    base = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, base)
    out = base / "out"
    asyncio.run(run_plan(PREPARED, out, model_for=STUDY.simulated_model))
    folder = run_folder(out, PREPARED.graph["0/second"])
    whole = (folder / "items.jsonl").read_bytes()
    shutil.rmtree(folder)
    return out, whole


TestCrashMachine = CrashMachine.TestCase
TestCrashMachine.settings = settings(max_examples=20, stateful_step_count=25, deadline=None)
