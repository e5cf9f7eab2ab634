"""`recall` and `remember`, what nodes of memory are made of, and episodes on their way into banks.

How memory is asked, questioned and taught stands here once, as programs that serve sync and async. An
agent with a state of its own says how that becomes a `RecallContext` or an `Episode`, and what of
memory's answer it keeps: `nodes/turns.py` for messages, `nodes/search/` and `nodes/workbench/` for
agents whose programs and logs are kept by reference.
"""

import asyncio
import threading
import traceback
from collections import Counter, OrderedDict
from collections.abc import Awaitable, Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextvars import Context
from dataclasses import asdict, replace
from functools import partial
from typing import (
    Any,
    Final,
    Generic,
    ParamSpec,
    Protocol,
    TypeAlias,
    TypeVar,
    cast,
    runtime_checkable,
)

from langchain_core.runnables import Runnable
from langchain_core.runnables.config import (
    get_async_callback_manager_for_config,
    get_callback_manager_for_config,
    var_child_runnable_config,
)
from langsmith.utils import tracing_is_enabled
from opentelemetry import trace
from opentelemetry.trace import Span, Status, StatusCode

from langgraft._core.arguments import checked
from langgraft._core.canonical import JSON
from langgraft._core.confidential import without_secrets
from langgraft._core.effects import Call, Program, ado, arun, do, run
from langgraft._core.forks import at_fork, renewed
from langgraft.memory.bank import bank_namespace
from langgraft.memory.facts import Fact
from langgraft.memory.model import (
    Attempt,
    Episode,
    ErrorRecord,
    Feedback,
    ItemType,
    Lesson,
    MemoryDelta,
    Outcome,
    Question,
    Receipt,
    Remove,
    Verdict,
)
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget, Recall, RecallContext
from langgraft.memory.sources import combined, source
from langgraft.memory.stores.programs import Namespace
from langgraft.nodes.dialogue import Node, Update
from langgraft.nodes.identity import claimed_user
from langgraft.nodes.redaction import Redact, redacted, redactor
from langgraft.nodes.reflect import episode_steps
from langgraft.nodes.state import AgentState

P = ParamSpec("P")
T = TypeVar("T")

_TRACER: Final = trace.get_tracer("langgraft")


def traced(
    name: str,
    inputs: Mapping[str, Any],
    program: Program[Call, T],
    outputs: Callable[[T], Mapping[str, Any]],
) -> Program[Call, T]:
    """Carry out a program as a span: a run of LangChain's tracers, and one of OpenTelemetry's.

    Spans hold ids, counts, tokens and reasons, and no text that memory holds.

    Args:
        name: What the span is called, after `langgraft.`.
        inputs: What was asked. OpenTelemetry has its numbers and names as attributes.
        program: What is carried out.
        outputs: Says what came of it, as `inputs` does.
    """
    run = yield Call(_begin_run, _abegin_run, f"langgraft.{name}", inputs)
    # Never the current span: a program goes on in whatever thread drives it, with a context of its own.
    span = _TRACER.start_span(f"langgraft.{name}")
    _describe(span, inputs)
    try:
        result = yield from program
        told = outputs(result)
        _describe(span, told)
    except Exception as error:
        shown = _without_secrets(error)
        span.record_exception(shown)
        span.set_status(Status(StatusCode.ERROR, type(error).__name__))
        if run is not None:
            yield Call(run.on_chain_error, run.on_chain_error, shown)  # async where the run is
        raise
    finally:
        span.end()
    if run is not None:
        yield Call(run.on_chain_end, run.on_chain_end, told)
    return result


def _without_secrets(error: Exception) -> Exception:
    """Return what traces are shown of an error, which they keep with its message, traceback and causes."""
    told = "".join(traceback.format_exception(error))
    if without_secrets(told) == told:
        return error
    return RuntimeError(f"{type(error).__name__}: {without_secrets(str(error))}")


def _begin_run(name: str, inputs: Mapping[str, Any]) -> Any:
    config = var_child_runnable_config.get() or {}
    if not config.get("callbacks") and not tracing_is_enabled():
        return None
    manager = get_callback_manager_for_config(config)
    return manager.on_chain_start({}, dict(inputs), name=name)


async def _abegin_run(name: str, inputs: Mapping[str, Any]) -> Any:
    config = var_child_runnable_config.get() or {}
    if not config.get("callbacks") and not tracing_is_enabled():
        return None
    manager = get_async_callback_manager_for_config(config)
    return await manager.on_chain_start({}, dict(inputs), name=name)


def _describe(span: Span, told: Mapping[str, Any]) -> None:
    for name, value in told.items():
        if isinstance(value, str | int | float):
            span.set_attribute(f"langgraft.{name}", value)
        elif isinstance(value, Mapping):
            _describe(span, {f"{name}.{key}": each for key, each in value.items()})


def provided(
    memory: MemoryProvider[Any], query: str, context: RecallContext, budget: Budget | None
) -> Program[Call, Recall]:
    """Ask memory."""

    def outputs(recalled: Recall) -> Mapping[str, Any]:
        reasons = Counter(drop.reason for drop in recalled.dropped)
        ids = [item.id for item in recalled.items]
        return {
            "items": len(ids),
            "ids": ids,
            "scores": list(recalled.scores),
            "tokens": recalled.tokens,
            "dropped": dict(reasons),
        }

    asking = _called(memory.provide, memory.aprovide, query, context, budget)
    return traced("recall", {**_whose(memory), "step": context.step}, asking, outputs)


def _called(
    function: Callable[P, T], twin: Callable[P, Awaitable[T]], *args: P.args, **kwargs: P.kwargs
) -> Program[Call, T]:
    result: T = yield Call(function, twin, *args, **kwargs)
    return result


def _whose(memory: MemoryProvider[Any]) -> dict[str, Any]:
    return {"provider": memory.name, "bank": "/".join(bank_namespace(memory.namespace))}


def questions_about(
    memory: MemoryProvider[Any], episode: Episode
) -> Program[Call, Sequence[Question]]:
    """Return what memory asks about an episode."""
    asked: Sequence[Question] = yield Call(memory.questions, memory.aquestions, episode)
    return asked


def draft_questions(
    memory: MemoryProvider[Any], query: str, context: RecallContext
) -> Program[Call, Sequence[Question]]:
    """Return what memory asks about a draft."""
    asked: Sequence[Question] = yield Call(
        memory.draft_questions, memory.adraft_questions, query, context
    )
    return asked


def filed(
    memory: MemoryProvider[Any], episode: Episode, generation: str | None = None
) -> Program[Call, MemoryDelta]:
    """Hand an episode to memory, and return what that changed.

    Args:
        memory: The provider.
        episode: The episode.
        generation: The bank's generation when the episode began, if it was read.
    """

    def outputs(delta: MemoryDelta) -> Mapping[str, Any]:
        removed = Counter(change.reason for change in delta if isinstance(change, Remove))
        return {
            "changes": dict(Counter(type(each).__name__ for each in delta)),
            "removed": removed,
            "pending": memory.filings.pending,
            "failed": memory.filings.failed,
        }

    inputs = {
        **_whose(memory),
        "episode": episode.id,
        "success": str(episode.outcome.success),
        "lessons": len(episode.lessons),
        "verdicts": len(episode.verdicts),
    }
    began: dict[str, Any] = {} if generation is None else {"generation": generation}
    file, afile = partial(memory.file, **began), partial(memory.afile, **began)
    return traced("file", inputs, _called(file, afile, episode), outputs)


def recalled_parts(recalled: Recall) -> dict[str, JSON]:
    """Return of a recall what agents for competitions keep: its text, kinds of items, and receipt."""
    return {
        "text": recalled.text,
        "kinds": [str(item.metadata.get("kind", "")) for item in recalled.items],
        "receipt": recalled.receipt.to_json(),
    }


def verified(error: Mapping[str, Any] | None, fix: str) -> ErrorRecord | None:
    """Return a failure's error with a fix that is known to work; `None` without either."""
    if error is None or not fix:
        return None
    return replace(ErrorRecord(**error), fix=fix, verified=True)


def journal(delta: MemoryDelta) -> list[list[JSON]]:
    """Return what a delta adds to a state's `deltas`: nothing where it changes nothing."""
    return [delta.to_json()] if delta else []


# In text worlds ---------------------------------------------------------------------------


@checked
def recall_node(
    memory: MemoryProvider[Any], *, budget: Budget | None = None, wanted: ItemType | None = None
) -> Runnable[AgentState, Update]:
    """Make the node that asks memory; what it recalls replaces what was recalled before.

    Args:
        memory: The provider to ask.
        budget: Room for recalled text; `None`: that of `Budget()`.
        wanted: The kind of item wanted (`RecallContext.type`), which some memory prefers.
    """

    def recall(state: AgentState) -> Program[Call, Update]:
        context = replace(recall_context(state), type=wanted)
        recalled = yield from provided(memory, state["instruction"], context, budget)
        return {"recalled": recalled.text, "receipts": [recalled.receipt.to_json()]}

    return Node.running("recall", recall)


def asks_again(memory: MemoryProvider[Any], state: AgentState) -> bool:
    """Say whether memory should be asked again now; it was asked in this episode before.

    Where the agent stood then is read off the last receipt, so no state is kept for it.
    """
    last = state["receipts"][-1]["step"]
    now, then = recall_context(state), recall_context(state, last)
    return memory.asks_again(state["instruction"], now, then)


def recall_context(state: AgentState, turn: int | None = None) -> RecallContext:
    """Tell where the agent stands, or stood after a turn; replies without an action are none."""
    turns = [step for step in state["steps"] if step["valid"]]
    taken = len(turns) - 1 if turn is None else turn
    return RecallContext(
        domain=state["domain"],
        task_id=state["task_id"],
        episode_id=state["episode_id"],
        episode_index=state.get("episode_index"),
        stage="step" if taken else "start",
        step=taken,
        observation=turns[taken]["observation"],
        draft=state.get("draft", ""),
        verdicts=tuple(Verdict(**verdict) for verdict in state.get("draft_verdicts", ())),
        at=state.get("at", ""),
        user=claimed_user(state.get("user", "")),
    )


@checked
def remember_node(
    memory: MemoryProvider[Any], *, redact: Redact | None = None
) -> Runnable[AgentState, Update]:
    """Make the node that files an episode, and journals what that changed.

    Args:
        memory: The provider that takes the episode in.
        redact: A function of a text, or LangChain's `RedactionRule`s. Every text of the episode goes through it.
    """
    apply = redactor(redact, "`redact` of remember_node")

    def remember(state: AgentState) -> Program[Call, Update]:
        episode = redacted(episode_of(state), apply)
        return {"deltas": journal((yield from filed(memory, episode)))}

    return Node.running("remember", remember)


def episode_of(state: AgentState) -> Episode:
    """Put the episode together from a graph's state."""
    return Episode(
        id=state["episode_id"],
        domain=state["domain"],
        task_id=state["task_id"],
        task=state["instruction"],
        steps=episode_steps(state["steps"]),
        outcome=Outcome(
            state["success"],
            state["score"],
            state["reason"],
            cast("Feedback", state.get("feedback") or "environment"),
        ),
        lessons=tuple(Lesson(**lesson) for lesson in state["lessons"]),
        errors=tuple(ErrorRecord(**error) for error in state.get("errors", ())),
        verdicts=tuple(Verdict(**verdict) for verdict in state.get("verdicts", ())),
        recalls=tuple(Receipt(**receipt) for receipt in state.get("receipts", [])),
        facts=tuple(Fact(**fact) for fact in state.get("facts", ())),
        at=state.get("at", ""),
        sources=_told(state),
    )


def _told(state: AgentState) -> tuple[str, ...]:
    user, sources = claimed_user(state.get("user", "")), tuple(state.get("sources", ()))
    return combined(sources, [source("user", user)]) if user else sources


@runtime_checkable
class KeepsAttempts(Protocol):
    """Memory that keeps attempts for comparison, such as `InsightMemory`."""

    def counterpart(self, episode: Episode) -> Attempt | None:
        """Return an attempt that ended the other way; changes nothing."""

    async def acounterpart(self, episode: Episode) -> Attempt | None:
        """Do as `counterpart` does, asynchronously."""


@checked
def counterpart_node(memory: KeepsAttempts) -> Runnable[AgentState, Update]:
    """Make the node that asks memory for an attempt that ended the other way.

    What it finds `reflect_by_outcome_node` takes from the state: what the two are compared by is
    decided once, whatever else happens before the model is asked. Its update holds the
    `counterpart`, and in `compared_with` the episode that it was; both are empty where there is none.
    """

    def counterpart(state: AgentState) -> Program[Call, Update]:
        found: Attempt | None = yield Call(
            memory.counterpart, memory.acounterpart, episode_of(state)
        )
        if found is None:
            return {"counterpart": {}, "compared_with": ""}
        held = {**asdict(found), "steps": [asdict(step) for step in found.steps]}
        return {"counterpart": held, "compared_with": found.episode_id}

    return Node.running("counterpart", counterpart)


Place: TypeAlias = tuple[Namespace, str]
"""The bank that an episode is filed in, and the episode: other answers and users may share a turn's name."""

Failed: TypeAlias = Callable[[BaseException], None]
"""Is told why an episode was not filed."""

KEPT: Final = 4096
"""Episodes of each kind that a process remembers: the latest."""


class Filing:
    """An episode that is filed meanwhile: in a thread, or as a task of an event loop."""

    def __init__(self, work: "Future[Any] | asyncio.Task[Any]") -> None:
        self.work = work

    def wait(self) -> None:
        """Wait for its end, whatever that is; a task ends where its event loop runs."""
        if isinstance(self.work, Future):
            wait([self.work])

    async def await_it(self) -> None:
        """Do as `wait` does, asynchronously."""
        work = self.work
        if isinstance(work, Future):
            await asyncio.wait([asyncio.wrap_future(work)])
        elif work.get_loop() is asyncio.get_running_loop():
            await asyncio.wait([work])


class Filings(Generic[T]):
    """What a process knows of the episodes that it files; `T` is the record of a turn."""

    def __init__(self) -> None:
        self._running: dict[Place, Filing] = {}
        self._results: OrderedDict[Place, T] = OrderedDict()
        self._missed: OrderedDict[Place, tuple[MemoryProvider[Any], T]] = OrderedDict()
        self._lock = renewed(threading.Lock())
        self._pool: ThreadPoolExecutor | None = None
        at_fork("in_child", self._in_child)

    def _in_child(self) -> None:
        # The parent ends what it has begun. Filed here too, an episode is kept once.
        self._running, self._pool = {}, None

    def start(self, place: Place, program: Program[Call, T], failed: Failed) -> None:
        """File an episode in a thread, for which Python waits when it ends."""
        with self._lock:
            self._pool = self._pool or ThreadPoolExecutor(4, "langgraft-filing")
        self._started(place, self._pool.submit(run, program, do), failed)

    async def astart(self, place: Place, program: Program[Call, T], failed: Failed) -> None:
        """File an episode in a task of this event loop, which does not wait for it when it ends."""
        # In a context of its own, as a thread has it: the run that it comes from, and its trace, have ended.
        work = asyncio.create_task(arun(program, ado), context=Context())
        self._started(place, work, failed)

    def _started(self, place: Place, work: "Future[T] | asyncio.Task[T]", failed: Failed) -> None:
        with self._lock:
            self._running[place] = Filing(work)
        work.add_done_callback(lambda work: self._ended(place, work, failed))

    def _ended(self, place: Place, work: Any, failed: Failed) -> None:
        error = asyncio.CancelledError() if work.cancelled() else work.exception()
        if error is None:
            self.filed(place, work.result())
        else:
            failed(error)
        with self._lock:
            self._running.pop(place, None)

    def running(self, place: Place) -> Filing | None:
        """Return what files an episode, as long as it runs."""
        return self._running.get(place)

    def result(self, place: Place) -> T | None:
        """Return the record of a turn that was filed in the background, or late."""
        return self._results.get(place)

    def filed(self, place: Place, record: T) -> None:
        """Remember that an episode is filed."""
        with self._lock:
            self._missed.pop(place, None)
            _keep(self._results, place, record)

    def miss(self, place: Place, memory: MemoryProvider[Any], record: T) -> None:
        """Remember an episode that could not be filed, as the last to be tried again."""
        with self._lock:
            _keep(self._missed, place, (memory, record))

    def missed(self, namespace: Namespace | None = None) -> list[tuple[MemoryProvider[Any], T]]:
        """Return what could not be filed yet, in one bank or in all; first what failed first."""
        with self._lock:
            return [
                each
                for (bank, _), each in self._missed.items()
                if namespace is None or bank == namespace
            ]

    def drop(self, place: Place) -> None:
        """Forget an episode that is not to be filed any more."""
        with self._lock:
            self._missed.pop(place, None)

    def wait(self) -> None:
        """Wait for all that is filed in the background."""
        for filing in list(self._running.values()):
            filing.wait()

    async def await_all(self) -> None:
        """Do as `wait` does, asynchronously."""
        for filing in list(self._running.values()):
            await filing.await_it()


def _keep(kept: "OrderedDict[Place, Any]", place: Place, what: Any) -> None:
    kept[place] = what
    kept.move_to_end(place)
    while len(kept) > KEPT:
        kept.popitem(last=False)
