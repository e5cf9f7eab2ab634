"""Memory for an agent of `create_agent`, or for a graph of your own: one middleware.

    agent = create_agent(
        model, tools,
        middleware=[MemoryMiddleware("trajectory", user=lambda runtime: runtime.context.user_id)],
        store=store,
    )

When the model is called, memory is asked about the question. What it recalls is added to the request to the
model only: never to `messages`, streams, checkpoints or a pause for approval. When the turn has ended, it is
filed as the state holds it then, so redacted text is filed redacted. A turn that could not be filed is retried
in the thread's next turn, or the user's.

In a `StateGraph` of your own the same object has two nodes, and returns what to send to the model:

    def assistant(state: MemoryState):
        return {"messages": [model.invoke(memory.messages(state))]}

    graph.add_node("recall", memory.recall_node)  # where a turn begins
    graph.add_node("assistant", assistant)
    graph.add_node("remember", memory.remember_node)  # where it has ended
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias, TypeVar, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import (
    ExtendedModelResponse,
    PrivateStateAttr,
    ToolCallRequest,
)
from langchain_core.messages import AnyMessage, ToolMessage
from langgraph.errors import GraphBubbleUp
from langgraph.graph import MessagesState
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from langgraph.types import Command
from typing_extensions import TypedDict, override

from langgraft._core.arguments import checked
from langgraft._core.confidential import without_secrets
from langgraft._core.effects import Call, Program, ado, arun, do, run
from langgraft._core.errors import ForkError, InputError, SettingsError
from langgraft._core.forks import renewed
from langgraft._core.texts import Prompt
from langgraft.memory.bank import bank_namespace
from langgraft.memory.banks import Banks
from langgraft.memory.model import Episode, Outcome
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import provider_class, provider_settings
from langgraft.memory.recall import Budget, Recall, RecallContext
from langgraft.memory.settings import ProviderSettings
from langgraft.memory.stores.programs import Namespace
from langgraft.nodes.conversation import (
    Asked,
    End,
    FromPerson,
    Turn,
    after,
    asked_in,
    current_turn,
    end_of,
    episode_id,
    find,
    is_from_person,
    is_reply,
    placed,
    question_id,
    questions_in,
    rest_after_summary,
    turn_id,
    turn_of,
)
from langgraft.nodes.dialogue import ChatModel, Node, Update
from langgraft.nodes.identity import user_of_runtime
from langgraft.nodes.memory import Filings
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.redaction import Redact, redacted, redactor
from langgraft.nodes.seals import Seals
from langgraft.nodes.turns import (
    JudgeOutcome,
    begun_in,
    check_provider,
    context_of,
    ending,
    episode_of_turn,
    fault_of_memory,
    is_tip,
    learning,
    memory_model,
    present,
    recalling,
    thread_of,
    told_before,
    told_by,
    warn_of_notes,
)

logger = logging.getLogger(__name__)

TURNS: Final = "langgraft_turns"
"""The private key of the agent's state that holds the current turn, and those that are not filed yet."""

SHOWN_AT_ONCE: Final = 4096
"""Turns under way whose recalled text a process keeps; for others memory is asked again."""

K = TypeVar("K")
V = TypeVar("V")

Memory: TypeAlias = MemoryProvider[Any] | Banks | type[MemoryProvider[Any]] | str
"""One bank, those of many users, or the provider that each bank is opened with, by class or name."""


class TurnRecord(TypedDict):
    """What the state knows of a turn: ids and receipts, never what was recalled.

    A client may write the state. A record counts only with its signature (`langgraft.nodes.seals`), and only
    in runs of its own user.
    """

    turn: str
    """Its name."""
    parent: str
    """The turn before; empty where there was none."""
    asked: Asked
    """Where the question stood when the turn began."""
    end: NotRequired[End]
    """Where the conversation ended with it. What software has added up to there is no new question."""
    question: str
    """The name of the question, which an edit or another answer keeps."""
    user: str | int | None
    """Whose bank it belongs to."""
    receipts: list[Any]
    task: NotRequired[str]
    """The question as the model was last sent it, for when a summary takes its place."""
    waits: NotRequired[bool]
    """The model of an agent has not answered in this turn yet. Nothing of such a turn is filed."""
    again: NotRequired[bool]
    """The question was sent again after the turn was filed (`on_refile`)."""
    told: NotRequired[list[str]]
    """What its thread was told, and by whom, where memory has `trust` settings."""
    ended: NotRequired[dict[str, Any] | None]
    """How it ended, where it did."""
    filed: NotRequired[str]
    """The episode that it was filed as; empty: there was nothing to file."""
    replaces: NotRequired[list[str]]
    """Episodes whose place it takes, filed or perhaps filed (`on_refile`)."""
    at: NotRequired[str]
    """When it began, for memory that keeps facts in time."""
    generation: NotRequired[str]
    """The bank's generation when it began: memory that was cleared since does not get it back."""
    episode: NotRequired[dict[str, Any]]
    """What is still to be filed: messages may be summarized or deleted before that succeeds."""
    signature: NotRequired[str]
    """Shows that this application wrote the record, for this thread."""


class _AgentMemoryState(AgentState[Any]):
    langgraft_turns: NotRequired[Annotated[list[TurnRecord], PrivateStateAttr]]


class MemoryState(MessagesState):
    """What a node is given that sends its model what memory recalled, beside what a subclass adds.

    `langgraft_turns` is the middleware's own record of turns.
    """

    langgraft_turns: NotRequired[list[TurnRecord]]


class _Held(TypedDict):
    """What memory's own nodes are given: whatever `messages` are in the graph, and the key they bring."""

    messages: NotRequired[list[AnyMessage]]
    langgraft_turns: NotRequired[list[TurnRecord]]


class _MemoryNode(Node[_Held]):
    def __call__(self, state: _Held) -> Update:
        """Do as `invoke` does; by this LangGraph knows what state the node is given."""
        return self.invoke(state)


@dataclass(slots=True)
class _Shown:
    """What a turn is shown, as long as it lasts."""

    recall: Recall | None
    """`None`: memory failed, and is not asked again for each call of the model."""
    context: RecallContext
    task: str
    """The question as the model was sent it."""
    later: list[Any] = field(default_factory=list)
    """Receipts of what was recalled since the state has been written."""
    told: set[str] = field(default_factory=set)
    """What it was told meanwhile: messages may be summarized before it ends."""
    rest: Sequence[AnyMessage] = ()
    """The turn up to the last reply: middleware may remove its messages before it ends."""
    end: End | None = None
    """The end of the conversation when the model was last asked."""


class MemoryMiddleware(AgentMiddleware[_AgentMemoryState, Any]):
    """Gives an agent memory: recalled when its model is called, filed when the turn has ended.

    `recall_node` and `remember_node` are its nodes for a graph of your own.

    A turn begins when a run brings new input from a person, and lasts until the next one. Its question is all
    that the person said since the last reply. Its name is made of the thread's id, the question's id and text,
    and the turn before: resumed after a crash or a pause it is the same turn, and is filed once; an edit, a
    fork or another answer is another one. A turn without an answer is not filed.

    Turns that the model still sees in the conversation are not recalled. What memory learned from a question is
    not shown to the same question again (`same_task` in a provider's settings allows it).

    Args:
        memory: A provider's class, or its name in plans: a bank is opened in the graph's store. Or
            `Banks`, or one provider, as they are.
        user: Says whose bank it is, from the runtime: `lambda runtime: runtime.context.user_id`. On a
            LangGraph server with authentication it is called without the context, which clients write:
            `lambda runtime: runtime.server_info.user.identity`. `None`: all share one bank, which is an error
            with `Banks`.
        settings: The provider's settings, where it is given by class or name.
        store: Where banks lie; `None`: the graph's store (`create_agent(…, store=…)`).
        domain: The task family, where an application has several.
        budget: Room for recalled text; `None`: that of `Budget()`.
        outcome: Says from the agent's state how a turn ended: an `Outcome`, or whether it succeeded. It
            may be async where the agent is run so. `None`: nobody can tell.
        model: Writes drafts, reflects and judges, for providers that need it. Its tokens are not streamed.
            Without it, such a provider gets the turn itself as a plain note.
        prompt: For lessons, with `$task`, `$outcome`, `$trajectory` and `$limit`.
        remember: File turns before the agent's run ends (`inline`), or meanwhile (`background`), or not
            at all (`no`). What a process had no time to file when it died the next turn files.
        on_error: `warn`: a fault of memory is logged, and the agent answers without memory. `raise`: it
            fails the turn. What could not be filed is filed by the user's next turn.
        now: What time it is, for memory that keeps facts in time; `None`: by the system's clock.
        on_refile: What becomes of a turn whose message is sent again with the same id, after it was
            filed: the first episode is kept (`skip`), or the latest takes its place (`replace`).
        from_person: Says whether a human message was written by a person. `None`: all are, except those that
            bear a known mark of software (summaries, reminders, notifications, media of tools).
        redact: A function of a text, or LangChain's `RedactionRule`s. Every text goes through it before memory
            is asked about it or writes it. A turn that cannot be redacted is not filed.

    Raises:
        SettingsError: The provider learns from what a turn has not; or the arguments do not go together.
    """

    state_schema = _AgentMemoryState

    @checked
    def __init__(
        self,
        memory: Memory,
        *,
        user: Callable[[Any], Any] | None = None,
        settings: Mapping[str, Any] | ProviderSettings = MappingProxyType({}),
        store: BaseStore | None = None,
        domain: str = "chat",
        budget: Budget | None = None,
        outcome: JudgeOutcome | None = None,
        model: ChatModel | None = None,
        prompt: Prompt | None = None,
        remember: Literal["inline", "background", "no"] = "inline",
        on_error: Literal["warn", "raise"] = "warn",
        on_refile: Literal["skip", "replace"] = "skip",
        now: Callable[[], datetime] | None = None,
        from_person: FromPerson | None = None,
        redact: Redact | None = None,
    ) -> None:
        super().__init__()
        self._banks = _Opened(memory, settings, store, user)
        self._domain, self._budget, self._outcome = domain, budget, outcome
        self._model = memory_model(model, "`model` of MemoryMiddleware")
        self._template = prompt or shipped("reflect")
        self._remember, self._on_error, self._on_refile = remember, on_error, on_refile
        self._checked, self._now = False, now
        self._from_person = from_person
        self._redact = redactor(redact, "`redact` of MemoryMiddleware")
        self._met: OrderedDict[Namespace, str] | None = OrderedDict()
        self._recent: OrderedDict[tuple[Namespace, str], Asked] = OrderedDict()
        self._shown: OrderedDict[tuple[Any, str], _Shown] = OrderedDict()
        self._lock = renewed(threading.Lock())
        self._filings: Filings[TurnRecord] = Filings()
        self._seals = Seals()
        self.recall_node = _node("recall", self._begin)
        self.remember_node = _node("remember", self._end)
        if self._banks.example is not None:
            self._check(self._banks.example)

    @property
    @override
    def name(self) -> str:
        # What an agent's nodes are called; deepagents has a MemoryMiddleware of its own.
        return "LanggraftMemory"

    # Hooks --------------------------------------------------------------------------------

    @override
    def before_agent(self, state: _AgentMemoryState, runtime: Any) -> Update | None:
        return run(self._begin(state, runtime, waits=True), do)

    @override
    async def abefore_agent(self, state: _AgentMemoryState, runtime: Any) -> Update | None:
        return await arun(self._begin(state, runtime, waits=True), ado)

    @override
    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        asked = run(self._asked(request.state, request.messages, request.runtime), do)
        response = handler(request.override(messages=asked.messages))
        return self._answered(asked, response)

    @override
    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        asked = await arun(self._asked(request.state, request.messages, request.runtime), ado)
        response = await handler(request.override(messages=asked.messages))
        return self._answered(asked, response)

    @override
    def wrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], ToolMessage | Command[Any]],
    ) -> ToolMessage | Command[Any]:
        result = handler(request)
        if _hands_off(result):
            run(self._end(request.state, request.runtime), do)
        return result

    @override
    async def awrap_tool_call(
        self,
        request: ToolCallRequest,
        handler: Callable[[ToolCallRequest], Awaitable[ToolMessage | Command[Any]]],
    ) -> ToolMessage | Command[Any]:
        result = await handler(request)
        if _hands_off(result):
            await arun(self._end(request.state, request.runtime), ado)
        return result

    @override
    def after_agent(self, state: _AgentMemoryState, runtime: Any) -> Update | None:
        return run(self._end(state, runtime), do)

    @override
    async def aafter_agent(self, state: _AgentMemoryState, runtime: Any) -> Update | None:
        return await arun(self._end(state, runtime), ado)

    def flush(self, agent: Any = None, config: Any = None) -> None:
        """Wait for what is filed in the background; file what this process could not, and a thread has left.

        Args:
            agent: The agent or graph; with `config`, answered turns that its thread could not file are filed now.
            config: The thread's, as the agent is invoked with. The user of a turn is known from its record.
                With a `checkpoint_id`, such as the end of an abandoned branch, what is left there is filed and
                the thread stays as it is.
        """
        self._filings.wait()
        run(self._catch_up(), do)
        if agent is not None:
            update = run(self._left(agent.get_state(config).values, agent, config), do)
            if update is not None and is_tip(config):
                agent.update_state(config, update, as_node=self._ends(agent))

    async def aflush(self, agent: Any = None, config: Any = None) -> None:
        """Do as `flush` does, asynchronously."""
        await self._filings.await_all()
        await arun(self._catch_up(), ado)
        if agent is not None:
            state = await agent.aget_state(config)
            update = await arun(self._left(state.values, agent, config), ado)
            if update is not None and is_tip(config):
                await agent.aupdate_state(config, update, as_node=self._ends(agent))

    def _ends(self, agent: Any) -> str:
        """Return the name of the node that remembers."""
        builder = getattr(agent, "builder", None)  # a remote agent has none
        nodes = builder.nodes.items() if builder is not None else ()
        mine = (name for name, node in nodes if node.runnable is self.remember_node)
        return next(mine, f"{self.name}.after_agent")

    def messages(self, state: MemoryState) -> list[AnyMessage]:
        """Return the messages of a state with what was recalled behind the question, to send a model.

        It is for a node of a graph of your own, after `recall_node`. Nothing of it is to be put into the
        state; what stands before or is left out of the messages is up to the node.

        Raises:
            InputError: What the node is given holds no turn.
        """
        asking = self._asked(_with_turn(state), state["messages"], get_runtime())
        return run(asking, do).messages

    async def amessages(self, state: MemoryState) -> list[AnyMessage]:
        """Do as `messages` does, asynchronously."""
        asking = self._asked(_with_turn(state), state["messages"], get_runtime())
        return (await arun(asking, ado)).messages

    # A turn -------------------------------------------------------------------------------

    def _begin(
        self, state: Mapping[str, Any], runtime: Any, *, waits: bool = False
    ) -> Program[Call, Update | None]:
        """Begin a turn if a person asked something, and file what earlier ones left."""
        if not any(map(is_from_person, state.get("messages", []))):
            return None
        user = self._banks.user(runtime)  # a fault of the application's function is its own
        with self._faults("the turn has no memory"):
            return (yield from self._begun(state, runtime, user, waits=waits))
        return {TURNS: [*_records(state), _UNKNOWN]}

    def _begun(
        self, state: Mapping[str, Any], runtime: Any, user: str | int | None, *, waits: bool
    ) -> Program[Call, Update | None]:
        messages, thread = state.get("messages", []), thread_of(runtime)
        memory, store = self._banks.of(user, runtime), self._banks.store(runtime)
        self._check(memory)
        if thread:  # without a thread no state outlives this run, nor this process
            yield from self._seals.load(store)
        held: list[TurnRecord] = self._seals.signed(store, thread, _records(state))
        last = held[-1] if held else None
        turn = self._new_turn(held, messages, (memory.namespace, thread))
        again = turn is None and last is not None
        if turn is None and last is not None:
            turn = turn_of(messages, last["asked"], self._from_person)
            again = turn is not None and self._is_same(last, thread, turn, messages)
        if turn is None:
            return None
        parent = last["turn"] if last else ""
        of_others = [each for each in held if each["user"] != user and not _is_filed(each)]
        held = [each for each in held if each["user"] == user]
        if last is not None and again and last["user"] == user:
            held = held[:-1]
            record = yield from self._gone_on(last, messages, runtime)
        else:
            record = TurnRecord(
                turn=turn_id(thread, turn, parent),
                parent=parent,
                asked=asked_in(turn),
                question=question_id(thread, turn),
                user=user,
                receipts=[],
            )
            if waits:
                record["waits"] = True
        self._warn_of_threads(memory, thread or record["turn"])
        yield from self._dated(memory, record)
        left = yield from self._file_left(held, messages, runtime, record["asked"])
        if not left:
            yield from self._catch_up(memory.namespace)
        if memory.settings.trust is not None and "told" not in record:
            record["told"] = told_before(last, messages)
        with self._lock:  # this run asks memory itself, and the turn before is over
            for name in (record["turn"], parent):
                self._shown.pop((memory.namespace, name), None)
            _keep_latest(self._recent, (memory.namespace, thread), record["asked"])
        return self._written(store, thread, [*of_others, *left, record])

    def _written(self, store: BaseStore, thread: str, records: Iterable[TurnRecord]) -> Update:
        return {TURNS: [self._seals.sign(store, thread, record) for record in records]}

    def _current(
        self, state: Mapping[str, Any], runtime: Any
    ) -> Program[Call, tuple[list[TurnRecord], TurnRecord | None]]:
        """Return the records of a thread that this application wrote, and the turn of the run's user among them."""
        told = _records(state)
        if not told:
            return [], None
        thread, store = thread_of(runtime), self._banks.store(runtime)
        held = self._seals.signed(store, thread, told)
        if thread and len(held) < len(told):  # another process may have signed
            yield from self._seals.load(store)
            held = self._seals.signed(store, thread, told)
        # The last one may be a client's, or stand for a turn that memory failed to begin.
        mine = bool(held) and held[-1] is told[-1] and held[-1]["user"] == self._banks.user(runtime)
        return held, held[-1] if mine else None

    def _dated(self, memory: MemoryProvider[Any], record: TurnRecord) -> Program[Call, None]:
        """Note when a turn began, and in which generation of the bank."""
        if "at" not in record and (began := present(memory, self._now)):
            record["at"] = began
        if "generation" not in record and self._remember != "no":
            generation = yield from begun_in(memory)
            if generation is not None:
                record["generation"] = generation

    def _gone_on(
        self, record: TurnRecord, messages: Sequence[AnyMessage], runtime: Any
    ) -> Program[Call, TurnRecord]:
        """Return the record of a turn in which another run begins."""
        if "episode" in record:
            record = yield from self._settled(record, messages, runtime)
        if ("filed" in record or "episode" in record) and is_reply(messages[-1]):
            return {**record, "again": True}  # no software has added a message: it was sent again
        return record

    def _asked(
        self, state: Mapping[str, Any], messages: list[AnyMessage], runtime: Any
    ) -> Program[Call, "_Asked"]:
        """Return the request's messages with what was recalled after the question."""
        with self._faults("nothing was recalled"):
            return (yield from self._recalled(state, messages, runtime))
        return _Asked(messages)

    def _recalled(
        self, state: Mapping[str, Any], messages: list[AnyMessage], runtime: Any
    ) -> Program[Call, "_Asked"]:
        held, record = yield from self._current(state, runtime)
        if record is None:
            return _Asked(messages)
        memory = self._banks.of(record["user"], runtime)
        key = memory.namespace, record["turn"]
        shown = self._shown.get(key)
        turn = turn_of(state["messages"], record["asked"], self._from_person)
        rest = rest_after_summary(state["messages"]) if turn is None else turn.rest
        task = record.get("task", shown.task if shown else "")
        if turn is not None:
            task = self._text(turn.task)
        context = self._context(record, rest, self._visible(messages, record, thread_of(runtime)))
        # It began in another process, or memory wants to be asked again.
        if shown is None or (rest and memory.asks_again(task, context, shown.context)):
            shown = yield from self._recall(memory, task, context, shown)
            self._keep_shown(key, shown)
        shown.task, shown.rest, shown.end = task, rest, end_of(state["messages"])
        if "told" in record:
            shown.told.update(told_by(None, rest))
        store, thread = self._banks.store(runtime), thread_of(runtime)
        asked = _Asked(messages, shown, partial(self._written, store, thread), held)
        if shown.recall is not None and shown.recall.text:
            asked.messages = placed(messages, record["asked"], shown.recall.text)
        return asked

    def _recall(
        self,
        memory: MemoryProvider[Any],
        task: str,
        context: RecallContext,
        before: _Shown | None = None,
    ) -> Program[Call, _Shown]:
        """Ask memory. Where it fails, the turn keeps what it was shown before."""
        try:
            recalled = yield from recalling(memory, task, context, self._budget, self._model)
        except Exception as error:  # noqa: BLE001 - whatever its store, embedder or model raises
            self._fault("nothing was recalled", error)
            return replace(before or _Shown(None, context, task), context=context)
        later, told = (before.later, before.told) if before else ([], set[str]())
        return _Shown(recalled, context, task, [*later, recalled.receipt.to_json()], told)

    def _keep_shown(self, key: tuple[Namespace, str], shown: _Shown) -> None:
        with self._lock:
            _keep_latest(self._shown, key, shown)

    def _answered(
        self, asked: "_Asked", response: ModelResponse[Any]
    ) -> ModelResponse[Any] | ExtendedModelResponse[Any]:
        """Return a model's response, with the record of the turn where that has changed."""
        shown = asked.shown
        if shown is None or asked.written is None:
            return response
        shown.rest = [*shown.rest, *cast("list[AnyMessage]", response.result)]
        *earlier, before = asked.held
        record = self._with_shown(before, shown)
        record["task"] = shown.task
        record.pop("waits", None)
        if record == before:
            return response
        return ExtendedModelResponse(response, Command(update=asked.written([*earlier, record])))

    def _with_shown(self, record: TurnRecord, shown: _Shown | None) -> TurnRecord:
        """Return the record of a turn with what it was shown since it was written."""
        record = record.copy()
        if shown is not None:
            record["receipts"] = [*record["receipts"], *shown.later]
            shown.later = []
            if "told" in record:
                record["told"] = [*told_by(None, (), {*record["told"], *shown.told})]
        return record

    def _context(
        self, record: TurnRecord, rest: Sequence[AnyMessage], visible: Iterable[str]
    ) -> RecallContext:
        return context_of(
            rest,
            self._domain,
            record["question"],
            record["turn"],
            user=record["user"],
            at=record.get("at", ""),
            in_conversation=visible,
        )

    def _visible(
        self, messages: Sequence[AnyMessage], record: TurnRecord, thread: str
    ) -> Iterator[str]:
        """Yield the names of earlier questions that the model sees in a request."""
        for each in questions_in(messages, self._from_person):
            name = question_id(thread, each)
            if name != record["question"]:
                yield name

    def _new_turn(
        self,
        held: Sequence[TurnRecord],
        messages: Sequence[AnyMessage],
        place: tuple[Namespace, str],
    ) -> Turn | None:
        """Return the turn that a run begins; `None` if it brings nothing new from a person."""
        if not held:
            # The state of an agent within another graph is gone after each run.
            recent = self._recent.get(place) if place[1] else None
            return current_turn(messages, self._from_person, [recent] if recent else ())
        last = held[-1]
        shown = self._shown.get((place[0], last["turn"]))
        end = last.get("end") or (shown.end if shown else None)
        known = [each["asked"] for each in held]
        turn = current_turn(messages, self._from_person, known, after(messages, end))
        if turn is None or find(messages, last["asked"]) == turn.place:
            return None
        return turn

    def _is_same(
        self, last: TurnRecord, thread: str, turn: Turn, messages: Sequence[AnyMessage]
    ) -> bool:
        """Say whether the question of the last turn on record is what it was; edited, it is another."""
        if last["turn"] == turn_id(thread, turn, last["parent"]):
            return True
        # Its text has changed. Where it was redacted by the application, it is the same question.
        news = turn.place < len(messages) - 1 and not is_reply(messages[-1])
        return news or last.get("task") == self._text(turn.task)

    def _text(self, text: str) -> str:
        return text if self._redact is None else self._redact(text)

    def _end(self, state: Mapping[str, Any], runtime: Any) -> Program[Call, Update | None]:
        """End a turn, and file it; ended once more, after a jump back, its last answer is filed."""
        with self._faults("the turn was not filed"):
            return (yield from self._ended(state, runtime))
        return None

    def _ended(self, state: Mapping[str, Any], runtime: Any) -> Program[Call, Update | None]:
        held, record = yield from self._current(state, runtime)
        if record is None:
            return None
        earlier = held[:-1]
        memory = self._banks.of(record["user"], runtime)
        shown = self._shown.get((memory.namespace, record["turn"]))
        record = self._with_shown(record, shown)
        record["end"] = end_of(state["messages"])
        written = partial(self._written, self._banks.store(runtime), thread_of(runtime))
        if self._remember == "no":
            return written([*earlier, record])
        yield from self._wait_for(memory, record)
        if self._on_refile == "replace" or "again" not in record:
            pending = record.get("episode", {}).get("id")  # it may be there for all we know
            name = self._name(record, state["messages"], shown)
            if name is not None and name == record.get("filed"):
                return written([*earlier, record])
            record.pop("episode", None)
            before = filter(None, (record.pop("filed", None), pending))
            record["replaces"] = [*record.get("replaces", ()), *before]
        result = yield from ending(
            self._outcome, state, "`outcome` of MemoryMiddleware", self._fault
        )
        record["ended"] = asdict(result)
        if self._remember == "background":
            record, episode = self._taken(record, state["messages"], shown)
            if episode is not None:
                record["episode"] = episode.to_json()
                filing = self._filing(memory, record, episode)
                missed = partial(self._not_filed, memory, record)
                place = memory.namespace, episode.id
                memory.filings.begin(episode.id)
                yield Call(self._filings.start, self._filings.astart, place, filing, missed)
            return written([*earlier, record])
        record = yield from self._filed(memory, record, state["messages"], shown=shown)
        return written([*earlier, record])

    def _wait_for(self, memory: MemoryProvider[Any], record: TurnRecord) -> Program[Call, None]:
        """Wait until a turn is not being filed in the background any more."""
        if "episode" in record:
            job = self._filings.running((memory.namespace, record["episode"]["id"]))
            if job is not None:
                yield Call(job.wait, job.await_it)

    # Filing -------------------------------------------------------------------------------

    def _file_left(
        self,
        held: Sequence[TurnRecord],
        messages: Sequence[AnyMessage],
        runtime: Any,
        following: Asked | None,
    ) -> Program[Call, list[TurnRecord]]:
        """File turns that were not, and return those that still are not, the one that failed last.

        Memory that fails is not tried with the others: reflection may have been paid for by then.
        """
        if self._remember == "no":
            return []
        ends = [*(each["asked"] for each in held[1:]), following][: len(held)]
        for number, (record, end) in enumerate(zip(held, ends, strict=True)):
            after = yield from self._settled(record, messages, runtime, end)
            if not _is_filed(after):
                waiting = [
                    (self._kept(each, messages, then))
                    for each, then in zip(held[number + 1 :], ends[number + 1 :], strict=True)
                    if not _is_filed(each)
                ]
                return [*waiting, after]
        return []

    def _left(
        self, values: Mapping[str, Any], agent: Any, config: Any
    ) -> Program[Call, dict[str, Any] | None]:
        """File what a thread has left; its last turn stays on record, as the next one's parent."""
        told = _records(values)
        if self._remember == "no" or not told:
            return None
        thread = str((config or {}).get("configurable", {}).get("thread_id", ""))
        store = self._banks.store(agent)
        yield from self._seals.load(store)
        held: list[TurnRecord] = self._seals.signed(store, thread, told)
        if not held:
            return None
        *earlier, last = held
        left = yield from self._file_left(earlier, values["messages"], agent, last["asked"])
        if not _is_filed(last):
            settled = yield from self._settled(last, values["messages"], agent)
            if settled.get("filed") != "":  # otherwise it waits, for an approval say
                last = settled
        if [*left, last] == held:
            return None
        return self._written(store, thread, [*left, last])

    def _settled(
        self,
        record: TurnRecord,
        messages: Sequence[AnyMessage],
        runtime: Any,
        following: Asked | None = None,
    ) -> Program[Call, TurnRecord]:
        """Return the record of a turn that is not being filed any more: filed, if that can be done."""
        memory = self._banks.of(record["user"], runtime)
        if "episode" in record:
            yield from self._wait_for(memory, record)
            place = memory.namespace, record["episode"]["id"]
            record = self._filings.result(place) or record
        if _is_filed(record):
            return record
        shown = self._shown.get((memory.namespace, record["turn"]))
        return (yield from self._filed(memory, record, messages, following, shown))

    def _filed(
        self,
        memory: MemoryProvider[Any],
        record: TurnRecord,
        messages: Sequence[AnyMessage],
        following: Asked | None = None,
        shown: _Shown | None = None,
    ) -> Program[Call, TurnRecord]:
        """File a turn, and return its record: as filed, or with what is to be filed where memory failed."""
        if memory.settings.trust is not None:  # it may have begun before there were such settings
            record = {**record, "told": record.get("told", [])}
        record, episode = self._taken(record, messages, shown, following)
        if episode is None:
            return record
        try:
            filed = yield from self._filing(memory, record, episode)
        except Exception as error:
            record = {**record, "episode": episode.to_json()}
            self._not_filed(memory, record, error)
            if self._on_error == "raise" or isinstance(error, ForkError):
                raise
            return record
        self._filings.filed((memory.namespace, episode.id), filed)
        return filed

    def _catch_up(self, namespace: Namespace | None = None) -> Program[Call, None]:
        """File what this process could not, in one bank or in all, whatever became of its threads."""
        for memory, record in self._filings.missed(namespace):
            after = yield from self._filed(memory, record, ())
            if namespace is not None and not _is_filed(after):
                return

    def _kept(
        self, record: TurnRecord, messages: Sequence[AnyMessage], following: Asked | None
    ) -> TurnRecord:
        """Return the record of a turn with what is to be filed of it."""
        record, episode = self._taken(record, messages, following=following)
        return record if episode is None else {**record, "episode": episode.to_json()}

    def _taken(
        self,
        record: TurnRecord,
        messages: Sequence[AnyMessage],
        shown: _Shown | None = None,
        following: Asked | None = None,
    ) -> tuple[TurnRecord, Episode | None]:
        """Return a turn's record and what is to be filed of it; `None` and a settled record if nothing is."""
        if "episode" in record:
            return record, Episode.from_json(record["episode"])
        if "filed" in record:
            return record, None
        nothing: TurnRecord = {**record, "filed": ""}
        task, rest = self._said(record, messages, shown, following)
        ended = record.get("ended")
        answered = Turn((), rest).is_answered if ended is None else any(map(is_reply, rest))
        if "waits" in record or not answered or not task.strip():
            return nothing, None
        episode = episode_of_turn(
            self._domain,
            task,
            rest,
            Outcome(**(ended or {"success": None})),
            name=episode_id(record["turn"], rest),
            task_id=record["question"],
            receipts=record["receipts"],
            sources=told_by(record["user"], rest, record["told"]) if "told" in record else (),
            at=record.get("at", ""),
        )
        try:
            return record, redacted(episode, self._redact)
        except Exception as error:  # noqa: BLE001 - the application's own code, and rules that block
            kind = type(error).__name__  # its message may quote the text
            logger.warning("A turn was not filed, since it could not be redacted (%s)", kind)
            return nothing, None

    def _said(
        self,
        record: TurnRecord,
        messages: Sequence[AnyMessage],
        shown: _Shown | None,
        following: Asked | None = None,
    ) -> tuple[str, Sequence[AnyMessage]]:
        """Return the question of a turn and what came of it, as the conversation holds them."""
        turn = turn_of(messages, record["asked"], self._from_person, following)
        if turn is not None:
            task, rest = turn.task, turn.rest
        else:
            task = record.get("task", shown.task if shown else "")
            rest = rest_after_summary(messages, following)
        if shown is not None and not any(map(is_reply, rest)):  # removed before the turn ended
            rest = shown.rest
        return task, rest

    def _name(
        self, record: TurnRecord, messages: Sequence[AnyMessage], shown: _Shown | None
    ) -> str | None:
        _, rest = self._said(record, messages, shown)
        return episode_id(record["turn"], rest) if rest else None

    def _filing(
        self, memory: MemoryProvider[Any], record: TurnRecord, episode: Episode
    ) -> Program[Call, TurnRecord]:
        yield from learning(
            memory,
            episode,
            self._model,
            self._template,
            redact=self._redact,
            generation=record.get("generation"),
        )
        filed: TurnRecord = {**record, "filed": episode.id}
        filed.pop("episode", None)
        replaced = set(filed.pop("replaces", ())) - {episode.id}
        for name in replaced:
            self._filings.drop((memory.namespace, name))
            memory.filings.end(name)
        if replaced:
            content = yield Call(memory.content, memory.acontent)
            for item in content.items.values():
                if item.episode_id in replaced:
                    with suppress(InputError):  # it went with another one
                        yield Call(memory.forget, memory.aforget, item.id)
        return filed

    # What can go wrong --------------------------------------------------------------------

    def _check(self, memory: MemoryProvider[Any]) -> None:
        if self._checked:
            return
        self._checked = True
        if self._remember == "no":
            return
        check_provider(memory, "MemoryMiddleware")
        warn_of_notes(memory, self._model, "MemoryMiddleware")

    def _warn_of_threads(self, memory: MemoryProvider[Any], thread: str) -> None:
        """Warn once that what tools return in one thread is recalled in others, where nobody settled that."""
        if self._met is None or memory.settings.trust is not None or self._remember == "no":
            return
        if memory.namespace not in self._met:
            _keep_latest(self._met, memory.namespace, thread)
        if self._met[memory.namespace] == thread:
            return
        self._met = None
        logger.warning(
            "The bank %s serves several conversations and has no `trust` settings: text that a tool or a page"
            " returned in one of them can be recalled in another. Give each user a bank, and set `trust` to {}"
            " to withhold such text, or to {'tool': 'trusted', 'web': 'trusted'} to allow it (docs/trust.md)",
            "/".join(bank_namespace(memory.namespace)),
        )

    @contextmanager
    def _faults(self, what: str) -> Iterator[None]:
        """Let no fault of memory reach the caller, where `on_error` says so; mistakes of set-up are raised."""
        try:
            yield
        except (SettingsError, InputError, GraphBubbleUp):
            raise
        except Exception as error:  # noqa: BLE001 - whatever a store, a history or our own code raises
            self._fault(what, error)

    def _fault(self, what: str, error: Exception) -> None:
        fault_of_memory(logger, self._on_error, what, error)

    def _not_filed(
        self, memory: MemoryProvider[Any], record: TurnRecord, error: BaseException
    ) -> None:
        self._filings.miss((memory.namespace, record["episode"]["id"]), memory, record)
        told = f"{type(error).__name__}: {without_secrets(str(error))}"
        logger.warning("A turn was not filed, a later one files it (%s)", told)


@dataclass(slots=True)
class _Asked:
    """A request to the model, and what is written once it has answered."""

    messages: list[AnyMessage]
    shown: _Shown | None = None
    written: Callable[[Iterable[TurnRecord]], Update] | None = None
    held: Sequence[TurnRecord] = ()


def _keep_latest(kept: "OrderedDict[K, V]", key: K, value: V) -> None:
    kept[key] = value
    kept.move_to_end(key)
    while len(kept) > SHOWN_AT_ONCE:
        kept.popitem(last=False)


def _hands_off(result: object) -> bool:
    """Say whether a tool ends the agent's run, since another agent of the graph around it takes over."""
    results = result if isinstance(result, list) else [result]
    return any(isinstance(each, Command) and each.graph == Command.PARENT for each in results)


_UNKNOWN: Final = TurnRecord(
    turn="",
    parent="",
    asked=Asked(id="", place=-1, messages=0, text=""),
    question="",
    user=None,
    receipts=[],
)
"""Stands for a turn that memory failed to begin; without a signature, so nothing is recalled or filed for it."""


def _node(
    name: str, begin: Callable[[Mapping[str, Any], Any], Program[Call, Update | None]]
) -> Node[Any]:
    """Make a node of a graph of somebody's own."""

    def program(state: _Held) -> Program[Call, Update]:
        return (yield from begin(state, get_runtime())) or {}

    return _MemoryNode.running(name, program)


def _with_turn(state: MemoryState) -> MemoryState:
    if TURNS in state or not any(map(is_from_person, state["messages"])):
        return state
    msg = (
        f"the node's state holds no `{TURNS}`, by which memory knows the turn: declare the state of"
        " the node that asks the model as `MemoryState`, or a subclass, and put `recall_node` before it"
    )
    raise InputError(msg)


def _records(state: Mapping[str, Any]) -> list[Any]:
    """Return the records in a state, as a client may have written them."""
    held = state.get(TURNS)
    return held if isinstance(held, list) else []


def _is_filed(record: TurnRecord) -> bool:
    return "filed" in record and "episode" not in record


class _Opened:
    """Whose bank is asked: one that is given, or one that is opened in the graph's store."""

    def __init__(
        self,
        memory: Memory,
        settings: Mapping[str, Any] | ProviderSettings,
        store: BaseStore | None,
        user: Callable[[Any], Any] | None,
    ) -> None:
        self.example: MemoryProvider[Any] | None = None
        """A provider of the kind, where it is known before the first turn."""
        self._user, self._store = user, store
        self._given = memory if isinstance(memory, MemoryProvider | Banks) else None
        if self._given is not None and (settings or store is not None):
            name = "settings" if settings else "store"
            msg = f"`{name}` of MemoryMiddleware is for a provider's class or name; {type(memory).__name__} has its own"
            raise SettingsError(msg)
        if isinstance(memory, Banks):
            if user is None:
                msg = "MemoryMiddleware over Banks needs `user`, which says whose bank it is"
                raise SettingsError(msg)
        elif isinstance(memory, MemoryProvider):
            if user is not None and memory.settings.trust is None:
                msg = "`user` of MemoryMiddleware has no meaning with one provider without `trust`: give its class, or Banks"
                raise SettingsError(msg)
            self.example = memory
        else:
            self._kind = provider_class(memory)
            self._settings = _settings_of(self._kind, memory, settings)
            self.example = self._kind(InMemoryStore(), settings=self._settings)
        self._opened: tuple[BaseStore, Banks | MemoryProvider[Any]] | None = None

    def user(self, runtime: Any) -> str | int | None:
        """Say whose turn it is."""
        try:
            return None if self._user is None else user_of_runtime(self._user, runtime)
        except (AttributeError, TypeError) as error:
            if getattr(runtime, "context", None) is not None:
                raise  # the application's own
            msg = "`user` of MemoryMiddleware failed, as the turn has no context: invoke the agent with `context=…`"
            raise InputError(f"{msg} ({error})") from error

    def of(self, user: str | int | None, runtime: Any) -> MemoryProvider[Any]:
        """Return the provider of a user.

        Raises:
            SettingsError: There is no store.
            InputError: The user has no name that a bank can have.
        """
        held = self._given or self._in_store(runtime)
        if isinstance(held, Banks):
            return held[cast("str | int", user)]
        return held

    def store(self, runtime: Any) -> BaseStore:
        """Return the store that holds the banks.

        Raises:
            SettingsError: There is none.
        """
        return (self._given or self._in_store(runtime)).store

    def _in_store(self, runtime: Any) -> Banks | MemoryProvider[Any]:
        opened = self._opened
        store = self._store or getattr(runtime, "store", None) or (opened[0] if opened else None)
        if store is None:
            msg = "memory has no store: pass `store` to create_agent or to MemoryMiddleware"
            raise SettingsError(msg)
        if opened is None or opened[0] is not store:
            kind, settings, one = self._kind, self._settings, self._user is None
            made = kind(store, settings=settings) if one else Banks(store, kind, settings)
            self._opened = opened = (store, made)
        return opened[1]


def _settings_of(
    kind: type[MemoryProvider[Any]],
    memory: type[MemoryProvider[Any]] | str,
    settings: Mapping[str, Any] | ProviderSettings,
) -> ProviderSettings:
    if isinstance(settings, ProviderSettings):
        return settings

    def made(fields: Mapping[str, Any]) -> ProviderSettings:
        if isinstance(memory, str):
            return provider_settings(memory, fields)
        return kind.settings_model(**fields)

    try:
        return made({"same_task": "exclude", **settings})
    except SettingsError:  # as they are given they may do, or else say what is wrong with them
        return made(settings)
