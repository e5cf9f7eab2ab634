"""How far a plan is, for people or programs (a bar, plain lines, or JSON), how it ended, and what was spent."""

import json
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal, Protocol, TextIO, TypeAlias

from langgraft._core.canonical import JSON, at_path
from langgraft._core.effects import Clock, SystemClock
from langgraft._core.errors import BudgetExceededError
from langgraft._core.files import each_whole_line, read_bytes
from langgraft._core.texts import in_a_line, printable
from langgraft.benchmarks.harness.budget import in_dollars
from langgraft.benchmarks.harness.log import PlanLog, read_events, run_folder
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
    """How one run ended. `name` is the run's, `status` how it stands, `planned` how many items it has."""

    name: str
    status: RunStatus
    done: int
    """Committed items."""
    planned: int
    message: str = ""
    """What stopped the run; names the item."""


@dataclass(frozen=True, slots=True)
class PlanOutcome:
    """How a plan ended; what is not done is done by running the plan again. `runs` tells of each run."""

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

    @property
    def reasons(self) -> tuple[str, ...]:
        """What stopped the plan, a line each; a cap that is reached stops all runs, and is told once."""
        failed = [f"{run.name}: {run.message}" for run in self.problems if run.status == "failed"]
        capped = [run.message for run in self.problems if run.status == "capped"]
        return (*failed, *capped[:1])

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
    """One thing that happened. `kind` says what."""

    kind: EventKind
    run: str
    """Name of the run; empty for the plan as a whole."""
    done: int
    """Committed items of the run, or of the plan."""
    total: int
    """Items of the run, or of the plan."""
    text: str = ""
    """The item committed, the reason of a failure, the status of a run, the summary."""
    data: Mapping[str, JSON] = field(default_factory=dict)
    """Of an item, and of a failure: what `events.jsonl` holds of it."""


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


@dataclass(slots=True)
class Counts:
    """What is counted of a run, of several, or of a plan; taken from events, which others may have written."""

    planned: int = 0
    done: int = 0
    """Committed items."""
    scored: int = 0
    """Of those counted here, items that went well or did not."""
    successes: int = 0
    calls: int = 0
    """Asked of models, failed ones included, for committed items."""
    tokens: int = 0
    """Sent and replied."""
    picodollars: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    """Failed calls, and items that could not be done, by the short name of the reason."""
    examples: dict[str, str] = field(default_factory=dict)
    """What was last said of each of them."""

    def take_item(self, event: Mapping[str, Any]) -> None:
        """Count what a committed item took."""
        success = event.get("success")
        self.scored += isinstance(success, bool)
        self.successes += success is True
        usage = _mapping(_mapping(event.get("data")).get("usage"))
        self.calls += whole_number(usage.get("attempts"))
        self.tokens += whole_number(usage.get("prompt_tokens")) + whole_number(
            usage.get("completion_tokens")
        )
        self.picodollars += whole_number(usage.get("picodollars"))
        for reason, count in _mapping(usage.get("failures")).items():
            self.errors[reason] += whole_number(count)
        for reason, said in _mapping(usage.get("failures_told")).items():
            self.examples[reason] = str(said)

    def take_failure(self, event: Mapping[str, Any]) -> None:
        """Count an item that could not be done."""
        reason = str(event.get("reason") or "failed")
        self.errors[reason] += 1
        self.examples[reason] = str(event.get("text", ""))

    @property
    def score(self) -> str:
        """How many items went well, as a count; nothing where none was scored."""
        return f"{self.successes} of {self.scored}" if self.scored else ""

    @property
    def dollars(self) -> str:
        """Money; nothing where no price is known."""
        return f"{in_dollars(self.picodollars):,.2f}" if self.picodollars else ""

    def spend(self) -> str:
        """Return what was asked of models in words; nothing where it was nothing."""
        if not self.calls:
            return ""
        money = f", {self.dollars} dollars" if self.picodollars else ""
        return f"{self.calls:,} calls, {self.tokens:,} tokens{money}"

    def line(self, left: float | None, *more: str) -> str:
        """Return all of it in one line.

        Args:
            left: Seconds until the end, by estimate; `None` if it cannot be told.
            more: What is to stand after the items.
        """
        share = f"{self.done / self.planned:.0%}" if self.planned else "100%"
        parts = [f"{self.done}/{self.planned} items ({share})", *more]
        if left is not None and self.done < self.planned:
            parts.append(f"about {format_seconds(left)} left")
        errors = ", ".join(f"{count} {reason}" for reason, count in self.errors.most_common(5))
        return "; ".join(each for each in (", ".join(parts), self.spend(), errors) if each)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def whole_number(value: object) -> int:
    """Return a number of something that an event tells; 0 for what is none."""
    return value if type(value) is int and 0 < value < _MOST else 0


def moment(value: object) -> float:
    """Return seconds, also since the epoch, that an event tells; 0 for what cannot be that."""
    return float(value) if isinstance(value, int | float) and 0 < value < _LATEST else 0.0


_LATEST: Final = 1e11
_MOST: Final = 10**24
"""Picodollars, too: whoever tells more than a million million dollars tells nothing."""


class Tally:
    """Counts what happens in a plan that this process runs, and estimates the time left.

    Args:
        clock: Where the time comes from.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._since = clock.monotonic()
        self._found = 0
        self.all = Counts()
        self.under_way: dict[str, Counts] = {}
        """By the names of runs."""

    def is_news(self, event: ProgressEvent) -> bool:
        """Say whether an event that was counted is worth a line: all runs meet the same cap."""
        if event.kind == "failed" and event.data.get("reason") == _CAPPED:
            return self.all.errors[_CAPPED] == 1
        return event.kind in {"failed", "note"}

    def count(self, event: ProgressEvent) -> None:
        """Take an event into account."""
        match event.kind:
            case "plan":
                self._since = self._clock.monotonic()
                self._found = event.done
                self.all = Counts(planned=event.total, done=event.done)
            case "run":
                self.under_way[event.run] = Counts(planned=event.total)
            case "run_end":
                self.under_way.pop(event.run, None)
            case "item":
                self.all.done += 1
                self.all.take_item(event.data)
                if run := self.under_way.get(event.run):
                    run.done = event.done
                    run.take_item(event.data)
            case "failed":
                self.all.take_failure(event.data)

    @property
    def seconds(self) -> float:
        """Seconds since the plan was taken up."""
        return self._clock.monotonic() - self._since

    def seconds_left(self) -> float | None:
        """Estimate the seconds until the end from the items of this process alone."""
        fresh = self.all.done - self._found
        return self.seconds / fresh * (self.all.planned - self.all.done) if fresh else None

    def line(self) -> str:
        """Return the state in one line."""
        return self.all.line(self.seconds_left())


class JsonProgress:
    """One JSON object a line for each event, in ASCII, which steers no terminal.

    Args:
        stream: Where to write.
        clock: Where the time comes from.
    """

    def __init__(self, stream: TextIO, clock: Clock | None = None) -> None:
        self._stream = stream
        self._tally = Tally(clock or SystemClock())

    def report(self, event: ProgressEvent) -> None:
        """Write the event, and what was spent and failed in the plan until then."""
        self._tally.count(event)
        row: dict[str, JSON] = {
            "event": event.kind,
            "run": event.run,
            "done": event.done,
            "total": event.total,
            "text": event.text,
        }
        if event.kind in {"item", "failed", "end"}:
            spent, left = self._tally.all, self._tally.seconds_left()
            row |= {
                "calls": spent.calls,
                "tokens": spent.tokens,
                "dollars": in_dollars(spent.picodollars),
                "errors": dict(spent.errors),
                "seconds_left": None if left is None else round(left, 1),
            }
        self._stream.write(json.dumps(row, sort_keys=True, separators=(",", ":")) + "\n")
        self._stream.flush()

    def close(self) -> None:
        """Leave the stream open; it is the caller's."""


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
        every: Seconds between two counts; they become more the longer it takes, a hundredth of it.
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
        if self._tally.is_news(event):
            self._write(f"{event.run or 'plan'}: {event.text}")
        elif event.kind == "end":
            self._write(event.text)
        elif event.kind != "failed" and (
            event.kind == "plan"
            or self._clock.monotonic() - self._last >= max(self._every, self._tally.seconds / 100)
        ):
            self._last = self._clock.monotonic()
            self._write(self._tally.line())

    def _write(self, line: str) -> None:
        self._stream.write(f"{printable(line)}\n")
        self._stream.flush()

    def close(self) -> None:
        """Leave the stream open; it is the caller's."""


_CAPPED: Final = BudgetExceededError.__name__
"""Reason of an item that a cap stopped."""
_SHOWN: Final = 6
"""Runs under way that a terminal shows."""


class BarProgress:
    """A bar on a terminal for the plan, and one for each of a few runs under way.

    Args:
        stream: The terminal.
        clock: Where the time comes from.
    """

    def __init__(self, stream: TextIO, clock: Clock | None = None) -> None:
        from rich.console import Console  # noqa: PLC0415 - only a terminal needs rich
        from rich.progress import BarColumn, Progress, TaskID, TextColumn  # noqa: PLC0415

        self._tally = Tally(clock or SystemClock())
        self._runs: dict[str, TaskID] = {}
        self._bar = Progress(
            BarColumn(bar_width=20),
            TextColumn("{task.fields[state]}", markup=False),
            console=Console(file=stream, markup=False, highlight=False),
        )
        self._task = self._bar.add_task("items", total=None, state="")
        self._bar.start()

    def report(self, event: ProgressEvent) -> None:
        """Redraw the bars."""
        self._tally.count(event)
        if self._tally.is_news(event):
            self._bar.console.print(printable(f"{event.run or 'plan'}: {event.text}"))
        elif event.kind == "end":
            self._bar.console.print(printable(event.text))
        self._draw(self._task, self._tally.all, self._tally.line())
        self._choose_runs()
        if event.run in self._runs:
            counts = self._tally.under_way[event.run]
            self._draw(self._runs[event.run], counts, _told(event.run, counts))

    def _choose_runs(self) -> None:
        """Show the runs that are longest under way, as far as there is room."""
        for name in [each for each in self._runs if each not in self._tally.under_way]:
            self._bar.remove_task(self._runs.pop(name))
        for name, counts in self._tally.under_way.items():
            if len(self._runs) == _SHOWN:
                break
            if name not in self._runs:
                self._runs[name] = self._bar.add_task(name, total=None, state="")
                self._draw(self._runs[name], counts, _told(name, counts))

    def _draw(self, task: Any, counts: Counts, state: str) -> None:
        told = printable(state)
        self._bar.update(task, completed=counts.done, total=counts.planned, state=told)

    def close(self) -> None:
        """Stop the bar and show the cursor again."""
        self._bar.stop()


def _told(name: str, counts: Counts) -> str:
    return f"{in_a_line(name, 30)}: {counts.line(None)}"


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
    named, folders, paid = condition_names(log.runs), {}, False
    if isinstance(log, PlanLog):
        folders = {run.name: run_folder(log.path, run) for run in log.graph}
        paid = any(log.path.glob("spent*.sqlite"))  # else no event has a price
    totals: dict[str, dict[str, list[int]]] = {name: {} for name in named.values()}
    for run in log.runs:
        found = totals[named[run.name]]
        if folders:
            _add_used(found, used(folders[run.name] / "items.jsonl"))
        else:
            _add_used(found, (_mapping(each.get("usage")) for each in log.results(run.name)))
        for event in read_events(folders[run.name] / "events.jsonl") if paid else ():
            for node, pico in _mapping(at_path(event, "data.usage.picodollars_by_node")).items():
                found.setdefault(node, [0, 0, 0])[2] += whole_number(pico)
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


_USAGE: Final = b'"usage":{'
"""How what replies took begins in a line: one of the last entries of a result, as keys are sorted. A text
cannot hold it, as its quotes are escaped."""
_DECODER: Final = json.JSONDecoder()


def used(items: Path) -> Iterator[Mapping[str, JSON]]:
    """Yield what the replies behind each committed item took, where its result says it under `usage`.

    Nothing else of the items is read: a status of thousands of runs asks for it.

    Args:
        items: An `items.jsonl`.
    """
    for line in each_whole_line(read_bytes(items)) if items.exists() else ():
        place = line.rfind(_USAGE)
        if place >= 0:
            with suppress(ValueError, RecursionError):
                yield _mapping(_DECODER.raw_decode(line[place + len(_USAGE) - 1 :].decode())[0])
