"""A plan through ChatOpenAI against `langgraft serve-simulated`, whose calls go wrong by a script.

Two processes, as a user has them; afterwards the server's call log is held against what the run
directory's events tell of each request that was sent.
"""

import asyncio
import contextlib
import json
import socket
import time
from collections import Counter
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any, Final
from unittest.mock import patch

import yaml
from warm_python import ran, started

from langgraft.benchmarks.harness import models, replies
from langgraft.benchmarks.harness.log import PlanLog, read_events, run_folder

CALL_SECONDS: Final = 10.0
"""The plan's deadline of a call: what stalls and drips costs as much."""

BROKEN: Final[tuple[Mapping[str, Any], ...]] = (
    {"kind": "status", "status": 429, "name": "429"},
    {"kind": "status", "status": 429, "headers": {"retry-after": "1"}, "name": "429, retry after"},
    {"kind": "status", "status": 500, "name": "500"},
    {"kind": "status", "status": 503, "name": "503"},
    {"kind": "stall"},
    {"kind": "drip"},
    {"kind": "reset"},
    {"kind": "truncated_json"},
    {"kind": "html"},
    {"kind": "error_in_reply", "code": "rate_limit_exceeded"},
    {"kind": "empty_choices"},
    {"kind": "large", "size": 50_000_000},
)
"""No answer: it is asked again."""
ODD: Final[tuple[Mapping[str, Any], ...]] = (
    {"kind": "slow_first_byte", "seconds": 0.2},
    {"kind": "wrong_model"},
    {"kind": "finish_reason", "reason": "length", "name": "length"},
)
"""An answer, and the same one."""
LATE: Final[tuple[Mapping[str, Any], ...]] = (
    {"kind": "slow_first_byte", "seconds": 1.0, "rate": 0.8},
    {"kind": "status", "status": 429, "rate": 0.04, "name": "429"},
    {"kind": "status", "status": 500, "rate": 0.04, "name": "500"},
    {"kind": "status", "status": 503, "rate": 0.02, "name": "503"},
    {"kind": "truncated_json", "rate": 0.05},
)
"""Replies take a second, so that many are under way at once, and one call in seven is made again."""
PRICE: Final = {"prompt": 1.0, "completion": 10.0}
"""Of the simulated model, in dollars a million tokens: somebody has to pay."""
OTHER: Final[tuple[Mapping[str, Any], ...]] = (
    {"kind": "finish_reason", "reason": "content_filter", "name": "content_filter"},
    {"kind": "missing_usage"},
    {"kind": "odd_usage"},
)
"""An answer, and another one: wrong, or without its tokens. It is what an item says."""


def label(fault: Mapping[str, Any]) -> str:
    """Return what the call log calls a fault."""
    return str(fault.get("name") or fault["kind"])


def write_script(
    path: Path, faults: Sequence[Mapping[str, Any]], *, every: int = 5, calls: int = 15_000
) -> Path:
    """Write a script in which every so many calls one goes wrong, in all ways in turn."""
    places = [
        range(every - 1 + every * turn, calls, every * len(faults)) for turn in range(len(faults))
    ]
    listed = [{**fault, "at": [*at]} for fault, at in zip(faults, places, strict=True)]
    path.write_text(json.dumps({"faults": listed}))
    return path


def write_plan(path: Path, *, runs: int, items: int, **more: object) -> Path:
    """Write a plan of a memory and none: 9 runs a repetition; `more` are other fields."""
    plan = {
        "study": "continual",
        "title": "In a storm",
        "model": "openai:simulated",
        "call_seconds": CALL_SECONDS,
        "prices": {"openai:simulated": PRICE},
        "seed": 42,
        "train_items": items,
        "test_items": items,
        "runs": runs,
        "baseline_runs": runs,
        "rerun": False,
        "sequences": ["A>B"],
        "conditions": [{"name": "agg", "provider": "insight"}],
        **more,
    }
    path.write_text(yaml.safe_dump(plan))
    return path


@contextlib.contextmanager
def kept_port() -> Iterator[int]:
    """Yield a port that nobody listens on, and that nobody else gets: whoever is told may serve there."""
    with socket.socket() as keeper:
        keeper.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        keeper.bind(("127.0.0.1", 0))
        yield keeper.getsockname()[1]


@contextlib.asynccontextmanager
async def clients_closed() -> AsyncIterator[None]:
    """Close what clients of models that were made in the block keep open, where their event loop still runs.

    They are cached: thrown out and collected with an open connection, they would fail whatever test runs then.
    """
    made: list[Mapping[str, Any]] = []
    make, here = replies.bounded_clients, asyncio.get_running_loop()

    def noted(*given: Any) -> Mapping[str, Any]:
        found = make(*given)
        (made if given[-1] is here else _OF_OTHER_LOOPS).append(found)
        return found

    with patch.object(models, "bounded_clients", noted):
        yield
    for each in made:
        await each["http_async_client"].aclose()


_OF_OTHER_LOOPS: Final[list[Mapping[str, Any]]] = []
"""Clients that cannot be closed any more: they are never collected."""


@contextlib.contextmanager
def served(plan: str | Path, *options: object) -> Iterator[str]:
    """Serve the simulated models of a plan in a process of its own; yield the URL."""
    with started("serve-simulated", plan, "--port", 0, "--json", *options) as process:
        try:
            yield json.loads(process.stdout.readline())["base_url"]
        finally:
            process.terminate()


@dataclass(frozen=True, slots=True)
class Weathered:
    """What came of a plan."""

    code: int
    said: str
    """Standard error."""
    seconds: float
    """Wall time."""
    items: Mapping[str, bytes]
    """The log of each run."""
    asked: Sequence[Mapping[str, Any]]
    """The server's call log."""
    sent: Mapping[str, tuple[str, int, int]]
    """What the run directory tells of each request: why it failed, and its tokens."""
    counted_twice: int
    """Ids that events name more than once."""
    waited: float
    """Seconds between attempts, added up."""

    @property
    def faults(self) -> Counter[str]:
        """How often each fault was met."""
        return Counter(call["fault"] for call in self.asked if call["fault"])

    @property
    def tokens(self) -> tuple[int, int]:
        """Tokens of prompts and of replies, by the server's log."""
        both = ("prompt_tokens", "completion_tokens")
        prompt, made = (sum(call[name] or 0 for call in self.asked) for name in both)
        return prompt, made

    @property
    def spent(self) -> Mapping[str, float]:
        """What each cap is on, by the server's log."""
        prompt, made = self.tokens
        dollars = (prompt * PRICE["prompt"] + made * PRICE["completion"]) / 1e6
        return {"calls": len(self.asked), "tokens": prompt + made, "cost": dollars}

    @property
    def most_at_once(self) -> int:
        """Most calls that the server had under way."""
        begun = [(call["time"], 1) for call in self.asked]
        ended = [(call["time"] + call["seconds"], -1) for call in self.asked]
        return max(accumulate(change for _, change in sorted(begun + ended)), default=0)

    def disagreements(self) -> list[str]:
        """Return the requests of which server and run directory tell two things."""
        wrong = [] if not self.counted_twice else [f"{self.counted_twice} ids noted twice"]
        told = {call["id"]: call for call in self.asked}
        wrong += [f"{len(self.asked) - len(told)} ids sent twice"] * (len(told) != len(self.asked))
        for name in sorted(told.keys() ^ self.sent.keys(), key=str):
            wrong.append(f"{name} is known to one side only")
        broken = {label(fault) for fault in BROKEN} | {"content_filter"}
        for name in told.keys() & self.sent.keys():
            call, (reason, *tokens) = told[name], self.sent[name]
            said = [call["prompt_tokens"] or 0, call["completion_tokens"] or 0]
            if said != tokens or (call["fault"] in broken) != bool(reason):
                wrong.append(f"{call}: {reason!r}, {tokens}")
        return wrong


def weathered(folder: Path, plan: Path, script: Path | None, *options: object) -> Weathered:
    """Run a plan against the server of its simulated models."""
    folder.mkdir()
    log, out = folder / "calls.jsonl", folder / "out"
    faults = () if script is None else ("--faults", script)
    with served(plan, "--call-log", log, *faults) as url:
        began = time.monotonic()
        done = ran("run", plan, "--out", out, "--base-url", url, *options)
        seconds = time.monotonic() - began
    asked = [json.loads(line) for line in log.read_text().splitlines()]
    usages = [
        event["data"]["usage"]
        for run in PlanLog(out).graph
        for event in read_events(run_folder(out, run) / "events.jsonl")
        if event["event"] == "item"
    ]
    calls = [call for usage in usages for call in usage.get("calls", ())]
    sent = {name: (reason, prompt, made) for name, reason, prompt, made in calls}
    items = {path.parent.name: path.read_bytes() for path in out.rglob("items.jsonl")}
    waited = sum(usage["waited_seconds"] for usage in usages)
    return Weathered(
        done.returncode, done.stderr, seconds, items, asked, sent, len(calls) - len(sent), waited
    )
