"""How far a plan is, for people or programs (a bar, plain lines, or JSON), how it ended, and what was spent."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol, TextIO, TypeAlias

from langgraft._core.canonical import JSON
from langgraft._core.effects import Clock, SystemClock
from langgraft._core.texts import printable
from langgraft.benchmarks.harness.budget import in_dollars
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.study import PlanLogReader, RunSpec

RunStatus: TypeAlias = Literal["done", "failed", "capped", "interrupted", "blocked", "waiting"]
"""`done`; `failed` by infrastructure; `capped` by a budget; `interrupted` on request;
`blocked` by a source that did not get far enough; `waiting`, never started."""

EXIT_COMPLETE = 0
EXIT_INCOMPLETE = 1
EXIT_INTERRUPTED = 130
"""What shells report for a process ended by SIGINT."""


@dataclass(frozen=True, slots=True)
class RunOutcome:
    """How one run ended."""

    name: str
    status: RunStatus
    done: int
    """Committed items."""
    planned: int
    message: str = ""
    """What stopped the run; names the item."""


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """How a plan ended; what is not done is done by running the plan again."""

    runs: tuple[RunOutcome, ...]
    interrupted: bool = False
    """Whether someone asked to stop before the end."""

    @property
    def complete(self) -> bool:
        """Whether every run is done."""
        return all(run.status == "done" for run in self.runs)

    @property
    def exit_code(self) -> int:
        """0 complete, 1 incomplete, 130 interrupted."""
        if self.complete:
            return EXIT_COMPLETE
        return EXIT_INTERRUPTED if self.interrupted else EXIT_INCOMPLETE

    @property
    def problems(self) -> tuple[RunOutcome, ...]:
        """The runs that something stopped."""
        return tuple(run for run in self.runs if run.status in {"failed", "capped"})

    def summary(self) -> str:
        """Return the outcome in one line."""
        counts = Counter(run.status for run in self.runs)
        states = ", ".join(f"{count} {status}" for status, count in counts.items())
        done, planned = sum(run.done for run in self.runs), sum(run.planned for run in self.runs)
        return f"{done} of {planned} items committed; runs: {states or 'none'}"


EventKind: TypeAlias = Literal["plan", "run", "item", "note", "failed", "run_end", "end"]
"""`plan`, once at the start; `run` started; `item` committed; `note`; `failed`, an item;
`run_end`; `end`, once, with the summary."""

ProgressMode: TypeAlias = Literal["auto", "bar", "plain", "json", "none"]


@dataclass(frozen=True, slots=True)
class ProgressEvent:
    """One thing that happened."""

    kind: EventKind
    run: str
    """Name of the run; empty for the plan as a whole."""
    done: int
    """Committed items of the run, or of the plan."""
    total: int
    """Items of the run, or of the plan."""
    text: str = ""
    """The item committed, the reason of a failure, the status of a run, the summary."""


class Progress(Protocol):
    """Is told what happens while a plan runs."""

    def report(self, event: ProgressEvent) -> None:
        """Take note of an event."""
        ...

    def close(self) -> None:
        """Leave the terminal as it was."""
        ...


class NoProgress:
    """Says nothing."""

    def report(self, event: ProgressEvent) -> None:
        """Take note of an event."""

    def close(self) -> None:
        """Leave the terminal as it was."""


class JsonProgress:
    """One JSON object a line for each event, in ASCII, which steers no terminal."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    def report(self, event: ProgressEvent) -> None:
        """Write the event."""
        row: dict[str, JSON] = {
            "event": event.kind,
            "run": event.run,
            "done": event.done,
            "total": event.total,
            "text": event.text,
        }
        self._stream.write(json.dumps(row, sort_keys=True, separators=(",", ":")) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Leave the stream open; it is the caller's."""


class Tally:
    """Counts items of the whole plan and estimates the time left.

    Args:
        clock: Where the time comes from.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.monotonic()
        self._found = 0
        self.done = 0
        self.total = 0
        self.failures = 0

    def count(self, event: ProgressEvent) -> None:
        """Take an event into account."""
        match event.kind:
            case "plan":
                self._since = self._clock.monotonic()
                self._found = self.done = event.done
                self.total = event.total
            case "item":
                self.done += 1
            case "failed":
                self.failures += 1

    def seconds_left(self) -> float | None:
        """Estimate the seconds until the end from the items of this process alone."""
        fresh = self.done - self._found
        if not fresh:
            return None
        return (self._clock.monotonic() - self._since) / fresh * (self.total - self.done)

    def line(self) -> str:
        """Return the state in one line."""
        share = f"{self.done / self.total:.0%}" if self.total else "100%"
        left = self.seconds_left()
        parts = [f"{self.done}/{self.total} items ({share})"]
        if left is not None and self.done < self.total:
            parts.append(f"about {format_seconds(left)} left")
        if self.failures:
            parts.append(f"{self.failures} failed")
        return ", ".join(parts)


def format_seconds(seconds: float) -> str:
    """Write a duration for people: `42 s`, `3 min 05 s`, `2 h 10 min`."""
    whole = round(seconds)
    if whole < 60:  # noqa: PLR2004 - seconds in a minute
        return f"{whole} s"
    if whole < 3600:  # noqa: PLR2004 - seconds in an hour
        return f"{whole // 60} min {whole % 60:02} s"
    return f"{whole // 3600} h {whole % 3600 // 60:02} min"


class PlainProgress:
    """Plain lines, for logs and pipes: failures at once, the count every few seconds.

    Args:
        stream: Where to write.
        every: Seconds between two counts.
        clock: Where the time comes from.
    """

    def __init__(self, stream: TextIO, every: float = 5.0, clock: Clock | None = None) -> None:
        self._stream = stream
        self._every = every
        self._clock = clock or SystemClock()
        self._tally = Tally(self._clock)
        self._last = self._clock.monotonic()

    def report(self, event: ProgressEvent) -> None:
        """Write a line where one is due."""
        self._tally.count(event)
        if event.kind in {"failed", "note"}:
            self._write(f"{event.run}: {event.text}")
        elif event.kind == "end":
            self._write(event.text)
        elif event.kind == "plan" or self._clock.monotonic() - self._last >= self._every:
            self._last = self._clock.monotonic()
            self._write(self._tally.line())

    def _write(self, line: str) -> None:
        self._stream.write(f"{printable(line)}\n")
        self._stream.flush()

    def close(self) -> None:
        """Leave the stream open; it is the caller's."""


class BarProgress:
    """A bar on a terminal, with the runs under way and the time left.

    Args:
        stream: The terminal.
        clock: Where the time comes from.
    """

    def __init__(self, stream: TextIO, clock: Clock | None = None) -> None:
        from rich.console import Console  # noqa: PLC0415 - only a terminal needs rich
        from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

        self._tally = Tally(clock or SystemClock())
        self._running: dict[str, None] = {}
        self._bar = Progress(
            BarColumn(bar_width=30),
            TextColumn("{task.fields[state]}", markup=False),
            TextColumn("{task.fields[runs]}", style="dim", markup=False),
            console=Console(file=stream, markup=False, highlight=False),
        )
        self._task = self._bar.add_task("items", total=None, state="", runs="")
        self._bar.start()

    def report(self, event: ProgressEvent) -> None:
        """Redraw the bar."""
        self._tally.count(event)
        match event.kind:
            case "run":
                self._running[event.run] = None
            case "run_end":
                self._running.pop(event.run, None)
            case "failed" | "note":
                self._bar.console.print(printable(f"{event.run}: {event.text}"))
            case "end":
                self._bar.console.print(printable(event.text))
        self._bar.update(
            self._task,
            completed=self._tally.done,
            total=self._tally.total,
            state=self._tally.line(),
            runs=printable(next(reversed(self._running), "")),
        )

    def close(self) -> None:
        """Stop the bar and show the cursor again."""
        self._bar.stop()


def make_progress(mode: ProgressMode = "auto", stream: TextIO | None = None) -> Progress:
    """Make a progress display.

    Args:
        mode: `auto` is a bar on a terminal and plain lines elsewhere.
        stream: Where to write; `None` is standard output for `json`, standard error otherwise.
    """
    match mode:
        case "none":
            return NoProgress()
        case "json":
            return JsonProgress(stream or sys.stdout)
        case "plain":
            return PlainProgress(stream or sys.stderr)
        case "bar":
            return BarProgress(stream or sys.stderr)
        case "auto":
            target = stream or sys.stderr
            return BarProgress(target) if target.isatty() else PlainProgress(target)


# What was spent ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Spent:
    """What a condition's committed items took of a model, by the node that asked."""

    condition: str
    node: str
    """Empty: outside of graphs, or the item's line does not say."""
    calls: int
    """Replies that results rest on; those found in the cache, too."""
    tokens: int
    """Of these replies, prompts included."""
    dollars: float | None
    """What was paid for them, failed calls included; `None` where no price was known, or nothing paid."""


def condition_names(runs: Sequence[RunSpec]) -> dict[str, str]:
    """Return what each run's condition is called, by the run's name: `babyai/agg`, `chain/warm`.

    Pairs, agents and solvers stand before it, where a plan has several.
    """
    before = [
        factor
        for factor in ("pair", "agent", "solver")
        if len({run.factors.get(factor) for run in runs}) > 1
    ]
    names = {}
    for run in runs:
        condition = run.factors.get("condition", run.factors.get("memory", ""))
        parts = [run.factors.get(factor) for factor in before]
        names[run.name] = "/".join(str(part) for part in (*parts, condition) if part is not None)
    return names


def spending(log: PlanLogReader) -> tuple[Spent, ...]:
    """Add up what was spent, in the order of the plan's conditions; nothing where items do not say.

    Money is in `events.jsonl`, so that a log which is no run directory has none.

    Raises:
        RunDirectoryError: A log is damaged.
    """
    named = condition_names(log.runs)
    totals: dict[str, dict[str, list[int]]] = {name: {} for name in named.values()}
    for run in log.runs:
        found = totals[named[run.name]]
        if isinstance(log, PlanLog):
            _add_used(found, log.usages(run.name))
            for billing in log.billings(run.name):
                for node, pico in _mapping(billing.get("picodollars_by_node")).items():
                    found.setdefault(node, [0, 0, 0])[2] += pico if isinstance(pico, int) else 0
        else:
            _add_used(found, (_mapping(each.get("usage")) for each in log.results(run.name)))
    return tuple(
        Spent(condition, node, calls, tokens, in_dollars(pico) if pico else None)
        for condition, nodes in totals.items()
        for node, (calls, tokens, pico) in sorted(nodes.items())
    )


def _add_used(found: dict[str, list[int]], usages: Iterable[Mapping[str, Any]]) -> None:
    """Add what used replies amount to, node by node; a line that says something else is passed over."""
    for usage in usages:
        try:
            calls = usage.get("replies", 0)
            tokens = usage.get("prompt_tokens", 0) + usage.get("completion_tokens", 0)
            uses = [
                (n, use["replies"], use["tokens"]) for n, use in usage.get("by_node", {}).items()
            ]
            rest = calls - sum(use[1] for use in uses), tokens - sum(use[2] for use in uses)
        except (TypeError, KeyError, AttributeError):
            continue
        for node, of_node, used in (*uses, ("", *rest)):
            if of_node > 0 or used > 0:
                sums = found.setdefault(node, [0, 0, 0])
                sums[0] += max(of_node, 0)
                sums[1] += max(used, 0)


def _mapping(value: JSON) -> Mapping[str, JSON]:
    return value if isinstance(value, Mapping) else {}
