"""A state machine over a run directory: processes begin, commit, mark and die between any two system calls."""

import asyncio
import atexit
import functools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, ClassVar

import hypothesis
import hypothesis.strategies as st
import pytest
from chain_study import ChainStudy, chain_plan, log_bytes
from hypothesis import Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)
from typing_extensions import override

from langgraft._core.canonical import JSON
from langgraft._core.effects import SystemClock
from langgraft._core.errors import RunDirectoryError
from langgraft.benchmarks.harness.directory import hold_directory, places_in_memory
from langgraft.benchmarks.harness.execute import RunStream, is_done
from langgraft.benchmarks.harness.log import (
    LogWriter,
    PlanLog,
    read_events,
    read_log,
    run_folder,
)
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.study import ItemOutcome, RunSession
from langgraft.benchmarks.harness.verify import verify_directory
from langgraft.memory.model import BankContent, fold

ITEMS = 4
STUDY = ChainStudy()
PLAN = chain_plan(streams=1, items=ITEMS, probes=())
PREPARED = prepare(STUDY, PLAN)

CHANGING = ("write", "fsync", "replace", "mkdir", "ftruncate", "unlink")
"""Calls before each of which a process can die; it can also die when it has opened a new file."""

Death = tuple[int, str]
"""At which call, from 1 on; and how: `before` it, `torn` within a write, or by a power loss (`lost`)."""


def deaths(most: int) -> st.SearchStrategy[Death | None]:
    """Draw how a process fares that makes about so many calls."""
    ways = st.sampled_from(["before", "torn", "lost"])
    return st.none() | st.tuples(st.integers(1, most), ways)


class _DiedError(BaseException):
    """The process is dead; nothing that is raised on the way out does anything any more."""


class Disk:
    """Counts what a process does to files, has it die, and undoes what a power loss would undo.

    That is all that no `fsync` has made durable: what was appended, names of new files, and
    files that took the place of others.
    """

    def __init__(self) -> None:
        self._undo: list[tuple[str, str, Callable[[], None]]] = []
        self._opened: set[int] = set()
        self._death: Death | None = None
        self._calls = 0
        self._dead = False

    @contextmanager
    def process(self, death: Death | None = None) -> Iterator[None]:
        """Be the system under a process, which dies where that is said."""
        before = {name: getattr(os, name) for name in (*CHANGING, "open", "close")}
        self._death, self._calls, self._dead = death, 0, False
        for name, call in before.items():
            setattr(os, name, functools.partial(self._called, name, call))
        try:
            yield
        finally:
            for name, call in before.items():
                setattr(os, name, call)

    def power_loss(self) -> None:
        """Undo what is not durable, the last first."""
        for _, _, undo in reversed(self._undo):
            undo()
        self.end()

    def end(self) -> None:
        """Close what the process that died had open; what it wrote is on its way to the disk."""
        for descriptor in self._opened:
            os.close(descriptor)
        self._opened.clear()
        self._undo.clear()

    def _called(self, name: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        if name == "close":
            self._opened.discard(args[0])
            return call(*args, **kwargs)
        if self._dead:
            raise _DiedError
        creates = name == "open" and args[1] & os.O_CREAT and not Path(args[0]).exists()
        self._calls += bool(creates) or name != "open"
        if self._death is not None and self._calls == self._death[0] and name != "open":
            if self._death[1] == "torn" and name == "write":
                call(args[0], bytes(args[1])[: len(args[1]) // 2])
            self._dead = True
            raise _DiedError
        if name in {"write", "replace"}:
            self._note(name, args)
        result = call(*args, **kwargs)
        if name == "open":
            self._opened.add(result)
        if creates:
            path = str(args[0])
            self._undo.append(("name", os.path.dirname(path), _unlinking(path)))  # noqa: PTH120
        if name == "fsync":
            done = _path(args[0])
            self._undo = [each for each in self._undo if each[1] != done]
        return result

    def _note(self, name: str, args: tuple[Any, ...]) -> None:
        if name == "write":
            path, size = _path(args[0]), os.fstat(args[0]).st_size
            self._undo.append(("data", path, _truncating(path, size)))
            return
        source, target = (Path(each) for each in args)
        old = target.read_bytes() if target.exists() else None
        del source

        def undo() -> None:
            target.unlink(missing_ok=True)
            if old is not None:
                target.write_bytes(old)

        self._undo.append(("name", str(target.parent), undo))


def _path(descriptor: int) -> str:
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


def _unlinking(path: str) -> Callable[[], None]:
    return lambda: Path(path).unlink(missing_ok=True)


def _truncating(path: str, size: int) -> Callable[[], None]:
    def undo() -> None:
        with suppress(FileNotFoundError):  # it was a draft
            os.truncate(path, size)

    return undo


class CrashMachine(RuleBasedStateMachine):
    """The second stream of a chain, worked through by processes that keep dying.

    The model is the list of outcomes that an undisturbed process commits: whatever happens, the
    log holds a beginning of it, with all that a commit has returned from; an item sees the bank
    folded from what precedes it; and no other file is ahead of the log.
    """

    stream_class: ClassVar[type[RunStream]] = RunStream

    @initialize()
    def prepare_directory(self) -> None:
        """Work out what the stream must become."""
        self.base = Path(tempfile.mkdtemp())
        self.out = self.base / "out"
        self.out.mkdir()
        self.disk = Disk()
        self.run = PREPARED.graph["0/second"]
        self.folder = run_folder(self.out, self.run)
        self.log = self.folder / "items.jsonl"
        self.stream: RunStream | None = None
        self.session: RunSession | None = None
        self.begun = self.damaged = False
        self.sure = 0
        """Items whose commit has returned."""

    @precondition(lambda self: not self.begun)
    @rule(death=deaths(18))
    def begin(self, death: Death | None) -> None:
        """A process begins the plan, and has the first stream finished."""

        def write_first_files() -> None:
            with hold_directory(self.out, PREPARED):
                pass

        if self._done(write_first_files, death):
            self.begun = True
            first = PREPARED.graph["0/first"]
            shutil.copytree(run_folder(_finished(), first), run_folder(self.out, first))
            deltas = PlanLog(self.out).deltas("0/first")
            self.start = [delta for item in deltas for delta in item]

    @precondition(lambda self: self.begun and self.stream is None and not self._marked)
    @rule(death=deaths(12))
    def open(self, death: Death | None) -> None:
        """A process takes the run up."""

        def take_up() -> None:
            self.stream = self.stream_class(self.out, PREPARED.graph, self.run, SystemClock())

        if self._done(take_up, death):
            assert self.stream is not None
            model = STUDY.simulated_model(PLAN, self.run.spec)
            place = places_in_memory().of(self.run)
            self.session = STUDY.open(PLAN, self.run.spec, self.stream.deltas, model, place)

    @precondition(lambda self: self.stream is not None and self.stream.committed < ITEMS)
    @rule(death=deaths(4))
    def commit(self, death: Death | None) -> None:
        """It works through an item and commits it."""
        stream, outcome = self.stream, self._next_outcome()
        assert stream is not None

        def work() -> None:
            stream.commit(outcome, seconds=0.0)

        if self._done(work, death):
            self.sure = stream.committed

    @precondition(lambda self: self.stream is not None and self.stream.committed == ITEMS)
    @rule(death=deaths(6))
    def finish(self, death: Death | None) -> None:
        """It marks the run as done."""
        assert self.stream is not None
        if self._done(self.stream.finish, death):
            self._die()

    @precondition(lambda self: self.stream is not None)
    @rule(power=st.booleans())
    def crash(self, power: bool) -> None:
        """It dies between two items."""
        self._die(power=power)

    @precondition(lambda self: self.stream is None and self.log.exists() and not self._marked)
    @rule(name=st.sampled_from(["items.jsonl", "events.jsonl"]), lost=st.integers(0, 3_000))
    def truncate(self, name: str, lost: int) -> None:
        """A disk loses the end of a file, and has noise instead."""
        path = self.folder / name
        if path.exists():
            data = path.read_bytes()
            path.write_bytes(data[: max(0, len(data) - lost)] + b"\0\xff"[: lost % 3])
        self.sure = min(self.sure, len(read_log(self.log).records))
        self.damaged = True

    @precondition(lambda self: self.begun)
    @rule()
    def verify(self) -> None:
        """Somebody looks: what a crash leaves behind is no damage."""
        findings = [str(each) for each in verify_directory(self.out) if not each.interrupted]
        assert self.damaged or findings == []

    @invariant()
    def log_holds_what_was_committed(self) -> None:
        """What a commit returned from is there, and each item saw the bank of those before it."""
        if not hasattr(self, "log"):
            return
        records = read_log(self.log).records
        assert len(records) >= self.sure
        bank: BankContent = fold(self.start) if records else fold(())
        for index, record in enumerate(records):
            assert record.index == index
            assert record.result["bank"] == bank.digest
            bank = fold(record.deltas(), bank)

    @invariant()
    def no_file_is_ahead_of_the_log(self) -> None:
        """A run that is marked is whole, and events tell of committed items alone."""
        if not hasattr(self, "log"):
            return
        assert is_done(self.out, self.run) == self._marked
        if not self.damaged:
            events = read_events(self.folder / "events.jsonl")
            told = [each["index"] for each in events if each["event"] == "item"]
            assert max(told, default=-1) < len(read_log(self.log).records)

    @property
    def _marked(self) -> bool:
        return (self.folder / "DONE.json").exists()

    def _done(self, work: Callable[[], None], death: Death | None) -> bool:
        """Have a process work; return whether it lives."""
        try:
            with self.disk.process(death):
                work()
        except _DiedError:
            assert death is not None
            self._die(power=death[1] == "lost")
            return False
        return True

    def _die(self, *, power: bool = False) -> None:
        if power:
            self.disk.power_loss()
        else:
            self.disk.end()
        self.stream = self.session = None

    def _next_outcome(self) -> ItemOutcome:
        assert self.stream is not None
        assert self.session is not None
        index = self.stream.committed
        return asyncio.run(self.session.run_item(index, self.run.spec.item_ids[index]))

    def teardown(self) -> None:
        """Finish the plan: it ends with the same bytes as one that nothing disturbed."""
        if not hasattr(self, "base"):
            return
        self._die()
        asyncio.run(run_plan(PREPARED, self.out, model_for=STUDY.simulated_model))
        assert log_bytes(self.out) == log_bytes(_finished())
        assert verify_directory(self.out) == []
        shutil.rmtree(self.base)


@functools.cache
def _finished() -> Path:
    """Return a directory that nothing disturbed."""
    base = Path(tempfile.mkdtemp())
    atexit.register(shutil.rmtree, base)
    asyncio.run(run_plan(PREPARED, base / "out", model_for=STUDY.simulated_model))
    return base / "out"


TestCrashMachine = CrashMachine.TestCase
TestCrashMachine.settings = settings(max_examples=25, stateful_step_count=25, deadline=None)


class _LateLog(LogWriter):
    """A log that keeps its last line back."""

    line: bytes | None = None

    @override
    def append(self, line: bytes) -> None:
        self.line = line

    def release(self) -> None:
        """Write it."""
        assert self.line is not None
        super().append(self.line)
        self.line = None

    @property
    @override
    def sha256(self) -> str:
        whole = self._sha256.copy()
        whole.update(self.line or b"")
        return whole.hexdigest()


class _EventsFirst(RunStream):
    """Tells of an item in `events.jsonl` before it is in `items.jsonl`."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._log.__class__ = _LateLog

    @override
    def commit(
        self, outcome: ItemOutcome, seconds: float, success: bool | None = None
    ) -> Mapping[str, JSON]:
        told = super().commit(outcome, seconds, success)
        assert isinstance(self._log, _LateLog)
        self._log.release()
        return told


class _MarkFirst(_EventsFirst):
    """Marks a run as done before its last item is in `items.jsonl`."""

    @override
    def commit(
        self, outcome: ItemOutcome, seconds: float, success: bool | None = None
    ) -> Mapping[str, JSON]:
        told = RunStream.commit(self, outcome, seconds, success)
        if self.committed == ITEMS:
            self.finish()
        assert isinstance(self._log, _LateLog)
        self._log.release()
        return told

    @override
    def finish(self) -> None:
        if not self._marked:
            super().finish()

    @property
    def _marked(self) -> bool:
        return (self.folder / "DONE.json").exists()


class _NoSync(LogWriter):
    """A log that leaves it to the system when a line is on disk."""

    @override
    def append(self, line: bytes) -> None:
        os.write(self._descriptor, line)
        self._sha256.update(line)


class _Unsynced(RunStream):
    """Says that an item is committed before it is on disk."""

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self._log.__class__ = _NoSync


@pytest.mark.kill
@pytest.mark.parametrize("planted", [_EventsFirst, _MarkFirst, _Unsynced])
def test_machine_when_files_are_written_in_another_order_then_finds_it(
    planted: type[RunStream],
) -> None:
    """The machine is not blind: two writes swapped, or a sync left out, and it fails."""

    class Planted(CrashMachine):
        stream_class = planted

    hypothesis.seed(0)(Planted)  # finds each within seconds; others take up to a minute
    with pytest.raises((AssertionError, RunDirectoryError)):
        run_state_machine_as_test(
            Planted,
            settings=settings(
                TestCrashMachine.settings,
                max_examples=1000,
                phases=[Phase.generate],
                database=None,
            ),
        )
