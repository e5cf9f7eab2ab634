"""How far a plan is that others run: read from the events of its runs, as they are written.

Whoever writes may be one process or many, on this machine or on others. Nothing is locked, changed or
waited for, and nothing that is read is trusted: lines have checksums, and values are taken for what they are.
"""

import fcntl
import heapq
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import Any, Final, Literal, TypeAlias

from langgraft._core.effects import Clock, SystemClock
from langgraft._core.errors import InputError
from langgraft._core.files import each_whole_line, whole_lines
from langgraft.benchmarks.harness.budget import read_all_spent
from langgraft.benchmarks.harness.log import LOCK, PROCESS, PlanLog, read_checked, run_folder
from langgraft.benchmarks.harness.progress import Counts, condition_names, moment, whole_number
from langgraft.benchmarks.harness.study import PlannedRun, RunSpec
from langgraft.benchmarks.harness.verify import read_plan_fields


def groups_of(runs: Iterable[RunSpec]) -> dict[str, tuple[str, str]]:
    """Return the condition and the kind of each run, by its name, as people are shown them."""
    listed = list(runs)
    named = condition_names(listed)
    kinds = (str(run.factors.get("kind", run.factors.get("phase", ""))) for run in listed)
    return {run.name: (named[run.name], kind) for run, kind in zip(listed, kinds, strict=True)}


def is_held(out: Path) -> bool:
    """Say whether anybody works on a plan, on all of it or on a shard; nothing is changed.

    Where that cannot be told, as on a file system without locks, somebody is taken to.
    """
    return any(map(_is_locked, (out / LOCK, *out.glob(f"{PROCESS}*.lock"))))


def _is_locked(path: Path) -> bool:
    try:
        with path.open("rb") as file:  # closing it gives the lock back
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False


RunState: TypeAlias = Literal["waiting", "under way", "stopped", "done"]
"""`waiting`, never opened; `stopped`, closed before its end, or left by a process that died."""


@dataclass(slots=True)
class WatchedRun:
    """A run, as far as its events tell."""

    run: PlannedRun
    counts: Counts
    state: RunState = "waiting"
    last: float = 0.0
    """When its last event was written, in seconds since the epoch."""
    problem: str = ""
    """What stopped it last."""
    opened: float = 0.0
    fresh: int = 0
    """Items since it was opened."""
    read: int = 0
    """Bytes of its events that were read."""

    def seconds_left(self) -> float | None:
        """Estimate the seconds until its end from its items since it was opened."""
        if not self.fresh or self.state != "under way":
            return None
        return (
            max(0.0, self.last - self.opened)
            / self.fresh
            * (self.counts.planned - self.counts.done)
        )


@dataclass(slots=True)
class WatchedGroup:
    """The runs of one condition and kind."""

    condition: str
    kind: str
    counts: Counts = field(default_factory=Counts)
    states: Counter[RunState] = field(default_factory=Counter)


_OPEN: Final[tuple[RunState, ...]] = ("under way", "stopped")
_RECENT: Final = 20
"""Events that are remembered as the last ones."""
_MOST_SHOWN: Final = 200
"""Runs on a page."""
_PACE: Final = 200
"""Items that the time left is estimated from."""
_QUIET_SECONDS: Final = 60.0
"""After so long without a run under way a plan is taken to have stopped."""


class PlanWatch:
    """Follows a run directory without touching it; each `look` reads what was written since the last one.

    Counted are the events of runs, which a process writes after it has committed an item: after a crash the last
    item of a run may be missing here until the run is opened again.

    Args:
        out: The run directory.
        clock: Where the time comes from.

    Raises:
        RunDirectoryError: It is none, or is damaged.
    """

    def __init__(self, out: Path, clock: Clock | None = None) -> None:
        self.out = out
        self._clock = clock or SystemClock()
        log = PlanLog(out)
        self.title = str(read_plan_fields(out).get("title") or f"A {log.study} study")
        self._graph = log.graph
        self._names = groups_of(run.spec for run in self._graph)
        self._forget()

    def _forget(self) -> None:
        self.all = Counts()
        self.groups: dict[tuple[str, str], WatchedGroup] = {}
        self.runs: list[WatchedRun] = []
        self.states: Counter[RunState] = Counter()
        self.held = True
        """Whether anybody works on the plan."""
        self.damaged = 0
        """Lines that could not be read."""
        self._recent: list[tuple[float, int, str, str]] = []
        self._pace: list[float] = []
        self._seen = 0
        for run in self._graph:
            name = self._names[run.name]
            group = self.groups.setdefault(name, WatchedGroup(*name))
            self.runs.append(WatchedRun(run, Counts(planned=run.length)))
            self.states["waiting"] += 1
            group.states["waiting"] += 1
            for counts in (group.counts, self.all):
                counts.planned += run.length
        self._left = self.runs

    def look(self) -> None:
        """Read what is new."""
        try:
            there = {each.name for each in (self.out / "runs").iterdir()}
        except OSError:
            return  # not there yet, or not at the moment
        if any(each.read and each.run.id not in there for each in self._left):
            self._forget()  # somebody deleted a run to do it again
        for each in self._left:
            if each.run.id in there and not self._read(each):
                self._forget()
                return
        # After reading: who holds the directory now may have opened more, and nobody had it before.
        self.held = is_held(self.out)
        for each in self._left:
            if each.state == "under way" and not self.held:
                self._turn(each, "stopped")
        self._left = [each for each in self._left if each.state != "done"]

    def _read(self, run: WatchedRun) -> bool:
        """Read the new events of a run; say whether they go on from where they were."""
        folder = run_folder(self.out, run.run)
        try:
            done = (
                folder / "DONE.json"
            ).exists()  # looked at first: no event comes after it but its own
            with (folder / "events.jsonl").open("rb") as file:
                if file.seek(0, 2) < run.read:
                    return False
                file.seek(run.read)
                data = whole_lines(file.read())
        except OSError:
            return True
        run.read += len(data)
        for line in each_whole_line(data):
            event = read_checked(line)
            if event is None:
                self.damaged += 1
            else:
                self._take(run, event)
        if done:
            self._commit(run, run.counts.planned)
            self._turn(run, "done")
        return True

    def _take(self, run: WatchedRun, event: Mapping[str, Any]) -> None:
        told, group = str(event.get("text", "")), self.groups[self._names[run.run.name]]
        time = moment(event.get("time"))
        run.last = max(run.last, time)
        match event.get("event"):
            case "opened":
                run.opened, run.fresh, run.problem = time, 0, ""
                self._commit(run, whole_number(event.get("committed")))
                self._turn(run, "under way")
                told = f"opened by process {event.get('pid')} on {event.get('host')}"
            case "item":
                run.fresh += 1
                for counts in (run.counts, group.counts, self.all):
                    counts.take_item(event)
                self._commit(run, whole_number(event.get("index")) + 1)
                self._keep(self._pace, time, _PACE)
                told = f"committed {event.get('item_id')}"
            case "failed":
                run.problem = told
                for counts in (run.counts, group.counts, self.all):
                    counts.take_failure(event)
            case "closed":
                self._turn(run, "stopped")
                told = "closed before its end"
            case "done":
                told = "done"
            case other:
                told = f"{other}: {told}"
        self._seen += 1
        self._keep(self._recent, (time, self._seen, run.run.name, told), _RECENT)

    @staticmethod
    def _keep(newest: list[Any], value: Any, most: int) -> None:
        if len(newest) < most:
            heapq.heappush(newest, value)
        else:
            heapq.heappushpop(newest, value)

    def _commit(self, run: WatchedRun, done: int) -> None:
        more = min(done, run.counts.planned) - run.counts.done
        for counts in (run.counts, self.groups[self._names[run.run.name]].counts, self.all):
            counts.done += max(0, more)

    def _turn(self, run: WatchedRun, state: RunState) -> None:
        for states in (self.states, self.groups[self._names[run.run.name]].states):
            states[run.state] -= 1
            states[state] += 1
        run.state = state

    @property
    def recent(self) -> list[tuple[float, str, str]]:
        """The last events, the latest first: when, of which run, what happened."""
        return [(time, run, told) for time, _, run, told in sorted(self._recent, reverse=True)]

    @property
    def complete(self) -> bool:
        """Whether every run is done."""
        return not self._left

    @property
    def quiet(self) -> float:
        """Seconds since the last event; infinite where there was none."""
        return self._clock.time() - max(self._recent)[0] if self._recent else float("inf")

    @property
    def stopped(self) -> bool:
        """Whether runs were opened, none is under way, and none was opened for a minute."""
        idle = not self.complete and bool(self._recent) and not self.states["under way"]
        return idle and self.quiet > _QUIET_SECONDS

    def seconds_left(self) -> float | None:
        """Estimate the seconds until the end from the pace of the last items, whoever did them.

        A rest, such as a night between two commands, is not the pace.
        """
        times = sorted(self._pace)
        if len(times) < 2 or self.complete:  # noqa: PLR2004 - a gap lies between two
            return None
        gaps = sorted(after - before for before, after in pairwise(times))
        most = 3 * gaps[-min(3, len(gaps) // 2 + 1)]  # one or two rests
        took = sum(min(gap, most) for gap in gaps)
        return took / len(gaps) * (self.all.planned - self.all.done)

    def spent(self) -> dict[str, float] | None:
        """Return what real models were asked for, items under way and failed ones included.

        `None` where that was nothing, or is being written to.
        """
        try:
            return read_all_spent(self.out)
        except InputError:
            return None

    def shown(self) -> tuple[list[WatchedRun], int]:
        """Return the runs that a page shows, and how many more there are."""
        begun = [each for each in self.runs if each.state != "waiting"]
        order: dict[RunState, int] = {"under way": 0, "stopped": 1}
        begun.sort(key=lambda each: (order.get(each.state, 2), -each.last))
        return begun[:_MOST_SHOWN], len(self.runs) - len(begun[:_MOST_SHOWN])

    def line(self) -> str:
        """Return how far the plan is in one line."""
        done = f"{self.states['done']}/{len(self.runs)} runs done"
        open_ones = (f"{self.states[each]} {each}" for each in _OPEN if self.states[each])
        nobody = () if self.held or self.complete or not self._recent else ("nobody is running it",)
        tens = 0 if self.complete or not self._recent else int(self.quiet // 600)
        quiet = (f"no event for {tens}0 min",) if tens else ()
        return self.all.line(self.seconds_left(), done, *open_ones, *nobody, *quiet)
