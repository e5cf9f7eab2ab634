"""What model calls cost: counted per item through a scope; and which replicate asks.

A `UsageFile` keeps the counts of an item that several processes work through, one after the other.
"""

import json
import os
import threading
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol, TypeGuard

from langchain_core.runnables.config import var_child_runnable_config

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.errors import RunDirectoryError
from langgraft._core.files import disk_errors, make_directory, whole_lines, write_all

_REPLICATE: ContextVar[str] = ContextVar("langgraft_replicate", default="")

MOST_TOKENS: Final = 10**9
"""Of one reply; who counts more counts something else."""


@contextmanager
def replicate_scope(name: str) -> Iterator[str]:
    """Ask as one replicate: requests in this context share answers only under the same name.

    Scopes nest, and their names are joined by a slash: `run-0` and `test` give `run-0/test`.

    Args:
        name: What tells this repetition from others of the same requests.

    Yields:
        The full name.
    """
    outer = _REPLICATE.get()
    full = f"{outer}/{name}" if outer else name
    token = _REPLICATE.set(full)
    try:
        yield full
    finally:
        _REPLICATE.reset(token)


def current_replicate() -> str:
    """Return the name of the replicate that is asking; empty outside of any scope."""
    return _REPLICATE.get()


def is_count(value: object) -> TypeGuard[int]:
    """Say whether a number of tokens is one: providers give texts, fractions and less than none."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= MOST_TOKENS


@dataclass(frozen=True, slots=True)
class TokenCounts:
    """Tokens of one reply, as the provider counted them."""

    prompt: int = 0
    completion: int = 0
    cached_prompt: int = 0
    """Prompt tokens the provider read from its own cache, at its lower price."""
    reasoning: int = 0
    """Completion tokens nobody gets to see."""

    def __add__(self, other: "TokenCounts") -> "TokenCounts":
        return TokenCounts(
            self.prompt + other.prompt,
            self.completion + other.completion,
            self.cached_prompt + other.cached_prompt,
            self.reasoning + other.reasoning,
        )

    @property
    def total(self) -> int:
        """Prompt and completion together."""
        return self.prompt + self.completion

    def as_json(self) -> dict[str, JSON]:
        """Write the counts as JSON."""
        return {
            "prompt_tokens": self.prompt,
            "completion_tokens": self.completion,
            "cached_prompt_tokens": self.cached_prompt,
            "reasoning_tokens": self.reasoning,
        }


@dataclass(frozen=True, slots=True)
class _NodeUse:
    """What one node's used replies amount to."""

    replies: int = 0
    tokens: int = 0

    def and_one(self, tokens: TokenCounts | None) -> "_NodeUse":
        """Return the use with one more reply."""
        return _NodeUse(self.replies + 1, self.tokens + (tokens or TokenCounts()).total)


class Used:
    """What used replies amount to, as a whole and by the nodes that asked."""

    def __init__(self) -> None:
        self._replies = 0
        self._uncounted = 0
        self._simulated = 0
        self._tokens = TokenCounts()
        self._by_node: dict[str, _NodeUse] = {}

    def add(self, tokens: TokenCounts | None, node: str, *, simulated: bool) -> None:
        """Add a reply; `tokens` is `None` where the provider did not say."""
        self._replies += 1
        self._uncounted += tokens is None
        self._simulated += simulated
        self._tokens += tokens or TokenCounts()
        if node:
            self._by_node[node] = self._by_node.get(node, _NodeUse()).and_one(tokens)

    def totals(self) -> dict[str, JSON]:
        """Write the sums as JSON."""
        return {
            "replies": self._replies,
            "replies_without_usage": self._uncounted,
            "simulated_replies": self._simulated,
            **self._tokens.as_json(),
            "by_node": {
                node: {"replies": use.replies, "tokens": use.tokens}
                for node, use in sorted(self._by_node.items())
            },
        }


class Ledger(Protocol):
    """Notes used replies so that they outlive the process (see `langgraft.benchmarks.harness.usage`)."""

    def note(self, request: str, node: str, tokens: TokenCounts | None, *, simulated: bool) -> None:
        """Note the reply to a request; one that is noted again replaces the one before."""
        ...

    def used(self) -> Used:
        """Return what all that is noted amounts to."""
        ...


class UsageMeter:
    """Counts the model calls made inside a `metered` scope; safe to use from many threads."""

    def __init__(self, ledger: "Ledger | None" = None) -> None:
        self.ledger = ledger
        self._lock = threading.Lock()
        self._used = Used()
        self._attempts = 0
        self._hits = 0
        self._billed = TokenCounts()
        self._cost: Counter[str] = Counter()
        self._failures: Counter[str] = Counter()
        self._told: dict[str, str] = {}
        self._waited = 0.0
        self._calls: list[JSON] = []
        self._embedded: Counter[str] = Counter()

    def count_attempt(self) -> None:
        """Count a call that is about to be made."""
        with self._lock:
            self._attempts += 1

    def count_reply(
        self,
        tokens: TokenCounts | None,
        *,
        hit: bool,
        simulated: bool = False,
        node: str = "",
        request: str = "",
    ) -> None:
        """Count a reply that was used.

        Args:
            tokens: Its tokens; `None` if the provider did not say.
            hit: It came from the response cache and cost nothing.
            simulated: It says that no language model wrote it.
            node: The graph's node that asked; empty outside of graphs.
            request: Key of the request; needed where there is a ledger.
        """
        with self._lock:
            if self.ledger is None:
                self._used.add(tokens, node, simulated=simulated)
            else:
                self.ledger.note(request, node, tokens, simulated=simulated)
            if hit:
                self._hits += 1

    def count_billed(self, tokens: TokenCounts, picodollars: int = 0, *, node: str = "") -> None:
        """Count tokens and money that a node's call cost, whether its reply is used or not."""
        with self._lock:
            self._billed += tokens
            self._cost[node] += picodollars

    def note_calls(self, ids: Sequence[str], reason: str, tokens: TokenCounts) -> None:
        """Note the requests that an attempt sent: the last one's reply is what the attempt cost.

        Args:
            ids: What the server was told that they are called.
            reason: Why the attempt failed; empty where it did not.
            tokens: What it cost.
        """
        with self._lock:
            for place, name in enumerate(ids, 1):
                cost = tokens if place == len(ids) else TokenCounts()
                self._calls.append([name, reason, cost.prompt, cost.completion])

    def count_failure(self, reason: str, *, wait: float = 0.0, detail: str = "") -> None:
        """Count a failed attempt, the seconds waited after it, and keep what was last said of such."""
        with self._lock:
            self._failures[reason] += 1
            if detail:
                self._told[reason] = detail
            self._waited += wait

    def count_embedded(self, texts: int, characters: int) -> None:
        """Count texts that a call has embedded; providers do not say how many tokens they were."""
        with self._lock:
            self._embedded += Counter(embedded_texts=texts, embedded_characters=characters)

    def totals(self) -> dict[str, JSON]:
        """Return what the used replies amount to, wherever they came from.

        The same replies give the same totals, whether called for or found in the cache: this
        may stand in a canonical result. `by_node` says which nodes of a graph asked for them, so
        that what memory itself asks of a model (draft, judge, reflect …) is told apart.
        """
        with self._lock:
            return (self._used if self.ledger is None else self.ledger.used()).totals()

    def billing(self) -> dict[str, JSON]:
        """Return what this process really asked and paid for; it differs between repetitions.

        `calls` has the requests that were sent by HTTP clients of ours, in their order: the id that
        the server was told, why it failed or nothing, prompt and completion tokens. `picodollars_by_node`
        parts the money by the nodes that asked, what was asked outside of graphs under no name.
        """
        with self._lock:
            paid: dict[str, JSON] = {}
            if cost := self._cost.total():
                by_node = {node: each for node, each in sorted(self._cost.items()) if each}
                paid = {"picodollars": cost, "picodollars_by_node": by_node}
            calls: dict[str, JSON] = {"calls": [*self._calls]} if self._calls else {}
            return {
                "attempts": self._attempts,
                "cache_hits": self._hits,
                "failures": dict(sorted(self._failures.items())),
                "waited_seconds": round(self._waited, 3),
                **({"failures_told": dict(self._told)} if self._told else {}),
                **self._billed.as_json(),
                **paid,
                **calls,
                **self._embedded,
            }


_METERS: ContextVar[tuple[UsageMeter, ...]] = ContextVar("langgraft_meters", default=())


@contextmanager
def metered(ledger: Ledger | None = None) -> Iterator[UsageMeter]:
    """Count every model call made in this context, in tasks and threads started from it too.

    Scopes nest: an inner scope's calls count in the outer ones as well.

    Args:
        ledger: Where used replies are noted, so that a later process goes on counting.
    """
    meter = UsageMeter(ledger)
    token = _METERS.set((*_METERS.get(), meter))
    try:
        yield meter
    finally:
        _METERS.reset(token)


def asking_node() -> str:
    """Return the name of the LangGraph node that the caller runs in, or nothing."""
    config = var_child_runnable_config.get() or {}
    return str(config.get("metadata", {}).get("langgraph_node", ""))


def current_meters() -> tuple[UsageMeter, ...]:
    """Return the meters of the scopes around the caller."""
    return _METERS.get()


class UsageFile:
    """A ledger in a file: a line for each used reply.

    An item that goes on from a checkpoint does not ask again what it asked before it was killed,
    so that a meter in memory would miss it; and it does ask again what it had asked since the
    checkpoint. Here both count once: by request, the last line of each.

    Args:
        path: The file; made with its folder. A line that a crash left unfinished is dropped.

    Raises:
        RunDirectoryError: It cannot be read or written, or is damaged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._noted: dict[str, tuple[str, TokenCounts | None, bool]] = {}
        make_directory(path.parent)
        with disk_errors("read", path):
            data = path.read_bytes() if path.exists() else b""
        whole = whole_lines(data)
        for number, line in enumerate(whole.splitlines(), 1):
            try:
                request, node, tokens, simulated = _read(line)
            except (ValueError, TypeError, KeyError) as error:
                msg = f"line {number} is damaged; remove its folder to begin anew"
                raise RunDirectoryError(msg, path=path) from error
            self._noted[request] = (node, tokens, simulated)
        with disk_errors("open for writing", path):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
            os.ftruncate(self._descriptor, len(whole))

    def note(self, request: str, node: str, tokens: TokenCounts | None, *, simulated: bool) -> None:
        """Note the reply to a request; it survives the process once this returns.

        Raises:
            RunDirectoryError: The file cannot be written.
        """
        counted = None if tokens is None else tokens.as_json()
        line = canonical_json([request, node, counted, simulated]).encode() + b"\n"
        with disk_errors("write", self._path):
            write_all(self._descriptor, line)
        self._noted[request] = (node, tokens, simulated)

    def used(self) -> Used:
        """Return what all that is noted amounts to."""
        used = Used()
        for node, tokens, simulated in self._noted.values():
            used.add(tokens, node, simulated=simulated)
        return used

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


def _read(line: bytes) -> tuple[str, str, TokenCounts | None, bool]:
    request, node, counted, simulated = json.loads(line)
    tokens = None
    if counted is not None:
        tokens = TokenCounts(*(counted[f"{name}_tokens"] for name in _COUNTS))
    return request, node, tokens, simulated


_COUNTS = ("prompt", "completion", "cached_prompt", "reasoning")
"""In the order of `TokenCounts`."""
