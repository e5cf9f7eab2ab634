"""Memory for an agent of `create_agent`, or for a graph of your own: one middleware.

    agent = create_agent(
        model, tools,
        middleware=[MemoryMiddleware("trajectory", user=lambda runtime: runtime.context.user_id)],
        store=store,
    )

When a turn begins, memory is asked about it; what it recalls stands behind the question in what the model
is sent, and nowhere else: not in `messages`, streams, checkpoints or a pause for approval. When the turn has
ended, it is filed. A turn that failed or was abandoned is filed by the thread's next one, and one that
could not be filed by the user's next one.

In a `StateGraph` of your own the same object has two nodes, and what the model is to be sent:

    def assistant(state: MemoryState):
        return {"messages": [model.invoke(memory.messages(state))]}

    graph.add_node("recall", memory.recall_node)  # where a turn begins
    graph.add_node("assistant", assistant)
    graph.add_node("remember", memory.remember_node)  # where it has ended
"""

import logging
import threading
from collections import OrderedDict
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import partial
from types import MappingProxyType
from typing import Annotated, Any, Final, Literal, NotRequired, TypeAlias, cast

from langchain.agents.middleware import AgentMiddleware, AgentState, ModelRequest, ModelResponse
from langchain.agents.middleware.types import PrivateStateAttr
from langchain_core.messages import AnyMessage
from langgraph.graph import MessagesState
from langgraph.runtime import get_runtime
from langgraph.store.base import BaseStore
from langgraph.store.memory import InMemoryStore
from typing_extensions import TypedDict, override

from langgraft._core.arguments import checked
from langgraft._core.effects import Call, Program, ado, arun, do, run
from langgraft._core.errors import ForkError, InputError, SettingsError
from langgraft._core.forks import renewed
from langgraft._core.texts import Prompt, without_secrets
from langgraft.memory.banks import Banks
from langgraft.memory.model import Episode, Outcome
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import provider_class, provider_settings
from langgraft.memory.recall import Budget, Recall, RecallContext
from langgraft.memory.settings import ProviderSettings
from langgraft.memory.stores.programs import Namespace
from langgraft.nodes.dialogue import ChatModel, Node, Update
from langgraft.nodes.memory import Filings
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.turns import (
    JudgeOutcome,
    Turn,
    check_recalls,
    check_remembers,
    context_of,
    ending,
    episode_id,
    episode_of_turn,
    fault_of_memory,
    is_question,
    is_tip,
    last_turn,
    learning,
    memory_model,
    placed,
    present,
    question_id,
    recalling,
    thread_of,
    told_before,
    told_by,
    turn_id,
    turn_of,
)

logger = logging.getLogger(__name__)

TURNS: Final = "langgraft_turns"
"""The private key of the agent's state that holds the current turn, and those that are not filed yet."""

SHOWN_AT_ONCE: Final = 4096
"""Turns under way whose recalled text a process keeps; for others memory is asked again."""

Memory: TypeAlias = MemoryProvider[Any] | Banks | type[MemoryProvider[Any]] | str
"""One bank, those of many users, or the provider that each bank is opened with, by class or name."""


class TurnRecord(TypedDict):
    """What the state knows of a turn: ids and receipts, never what was recalled."""

    turn: str
    """Its name."""
    parent: str
    """The turn before; empty where there was none."""
    asked: str
    """The id of the question."""
    question: str
    """The name of the question, which an edit or another answer keeps."""
    task: str
    user: str | int | None
    """Whose bank it belongs to."""
    receipts: list[Any]
    told: NotRequired[list[str]]
    """What its thread was told, and by whom, where memory has `trust` settings."""
    ended: NotRequired[dict[str, Any] | None]
    """How it ended, where it did."""
    filed: NotRequired[str]
    """The episode that it was filed as."""
    replaces: NotRequired[list[str]]
    """Episodes whose place it takes, filed or perhaps filed (`on_refile`)."""
    at: NotRequired[str]
    """When it began, for memory that keeps facts in time."""
    episode: NotRequired[dict[str, Any]]
    """What is still to be filed: messages may be summarized or deleted before that succeeds."""


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
    later: list[Any] = field(default_factory=list)
    """Receipts of what was recalled since the state has been written."""
    told: set[str] = field(default_factory=set)
    """What it was told meanwhile: messages may be summarized before it ends."""


class MemoryMiddleware(AgentMiddleware[_AgentMemoryState, Any]):
    """Gives an agent memory: recalled when a turn begins, filed when it has ended.

    `recall_node` and `remember_node` are its nodes for a graph of your own.

    A turn lasts from a question to the next one. Its name is made of the thread's id, the question's id
    and text, and the turn before: resumed after a crash or a pause it is the same turn, and is filed
    once; an edit, a fork or another answer is another one. What memory learned from a question is not
    shown to the same question again (`same_task` in a provider's settings allows it).

    Args:
        memory: A provider's class, or its name in plans: a bank is opened in the graph's store. Or
            `Banks`, or one provider, as they are.
        user: Says whose bank it is, from the runtime: `lambda runtime: runtime.context.user_id`. `None`:
            all share one bank, which is an error with `Banks`.
        settings: The provider's settings, where it is given by class or name.
        store: Where banks lie; `None`: the graph's store (`create_agent(…, store=…)`).
        domain: The task family, where an application has several.
        budget: Room for recalled text; `None`: that of `Budget()`.
        outcome: Says from the agent's state how a turn ended: an `Outcome`, or whether it succeeded. It
            may be async where the agent is run so. `None`: nobody can tell.
        model: Writes drafts, reflects and judges, for providers that need it. Its tokens are not streamed.
        prompt: For lessons, with `$task`, `$outcome`, `$trajectory` and `$limit`.
        remember: File turns before the agent's run ends (`inline`), or meanwhile (`background`), or not
            at all (`no`). What a process had no time to file when it died the next turn files.
        on_error: Whether a fault of memory is a warning, and the user is answered all the same, or
            fails the turn. What could not be filed is filed by the user's next turn.
        now: What time it is, for memory that keeps facts in time; `None`: by the system's clock.
        on_refile: What becomes of a turn whose message is sent again with the same id, after it was
            filed: the first episode is kept (`skip`), or the latest takes its place (`replace`).

    Raises:
        SettingsError: The provider needs what a turn has not, or a model that is not given; or the
            arguments do not go together.
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
    ) -> None:
        super().__init__()
        self._banks = _Opened(memory, settings, store, user)
        self._domain, self._budget, self._outcome = domain, budget, outcome
        self._model = memory_model(model, "`model` of MemoryMiddleware")
        self._template = prompt or shipped("reflect")
        self._remember, self._on_error, self._on_refile = remember, on_error, on_refile
        self._checked, self._now = False, now
        self._shown: OrderedDict[tuple[Any, str], _Shown] = OrderedDict()
        self._lock = renewed(threading.Lock())
        self._filings: Filings[TurnRecord] = Filings()
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
        return run(self._begin(state, runtime), do)

    @override
    async def abefore_agent(self, state: _AgentMemoryState, runtime: Any) -> Update | None:
        return await arun(self._begin(state, runtime), ado)

    @override
    def wrap_model_call(
        self, request: ModelRequest[Any], handler: Callable[[ModelRequest[Any]], ModelResponse[Any]]
    ) -> ModelResponse[Any]:
        told = run(self._told(request.state, request.messages, request.runtime), do)
        return handler(request.override(messages=told))

    @override
    async def awrap_model_call(
        self,
        request: ModelRequest[Any],
        handler: Callable[[ModelRequest[Any]], Awaitable[ModelResponse[Any]]],
    ) -> ModelResponse[Any]:
        told = await arun(self._told(request.state, request.messages, request.runtime), ado)
        return await handler(request.override(messages=told))

    @override
    def after_agent(self, state: _AgentMemoryState, runtime: Any) -> Update | None:
        return run(self._end(state, runtime), do)

    @override
    async def aafter_agent(self, state: _AgentMemoryState, runtime: Any) -> Update | None:
        return await arun(self._end(state, runtime), ado)

    def flush(self, agent: Any = None, config: Any = None) -> None:
        """Wait for what is filed in the background; file what this process could not, and a thread has left.

        Args:
            agent: The agent or graph; with `config`, what its thread could not file, or did not finish,
                is filed now. A turn that waits for an approval is filed as it stands: flush what is over.
            config: The thread's, as the agent is invoked with. The user of an unfinished turn is known
                from its record. With a `checkpoint_id`, such as the end of a branch that nobody went on
                from, what is left there is filed and the thread stays as it is.
        """
        self._filings.wait()
        run(self._catch_up(), do)
        if agent is not None:
            update = run(self._left(agent.get_state(config).values, agent), do)
            if update is not None and is_tip(config):
                agent.update_state(config, update, as_node=self._ends(agent))

    async def aflush(self, agent: Any = None, config: Any = None) -> None:
        """Do as `flush` does, asynchronously."""
        await self._filings.await_all()
        await arun(self._catch_up(), ado)
        if agent is not None:
            state = await agent.aget_state(config)
            update = await arun(self._left(state.values, agent), ado)
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
        return run(self._told(_with_turn(state), state["messages"], get_runtime()), do)

    async def amessages(self, state: MemoryState) -> list[AnyMessage]:
        """Do as `messages` does, asynchronously."""
        return await arun(self._told(_with_turn(state), state["messages"], get_runtime()), ado)

    # A turn -------------------------------------------------------------------------------

    def _begin(self, state: Mapping[str, Any], runtime: Any) -> Program[Call, Update | None]:
        messages, held = state.get("messages", []), state.get(TURNS, [])
        turn = last_turn(messages)
        if turn is None:
            return None
        thread, user = thread_of(runtime), self._banks.user(runtime)
        last = held[-1] if held else None
        parent = last["turn"] if last else ""
        again = last is not None and last["turn"] == turn_id(thread, turn, last["parent"])
        if last is not None and again and last["user"] == user:
            held = held[:-1]
            record = (
                (yield from self._settled(last, messages, runtime)) if "episode" in last else last
            )
        else:
            record = TurnRecord(
                turn=turn_id(thread, turn, parent),
                parent=parent,
                asked=str(turn.asked.id),
                question=question_id(thread, turn),
                task=turn.task,
                user=user,
                receipts=[],
            )
        memory = self._banks.of(record["user"], runtime)
        self._check(memory)
        if "at" not in record and (began := present(memory, self._now)):
            record["at"] = began
        left = yield from self._file_left(held, messages, runtime)
        if not left:
            yield from self._catch_up(memory.namespace)
        shown = yield from self._recall(memory, record, turn)
        record = {**record, "receipts": shown.later}
        if memory.settings.trust is not None:
            record.setdefault("told", told_before(last, messages))
        shown.later = []
        return {TURNS: [*left, record]}

    def _recall(
        self,
        memory: MemoryProvider[Any],
        record: TurnRecord,
        turn: Turn,
        before: _Shown | None = None,
    ) -> Program[Call, _Shown]:
        """Ask memory, and keep what the model is to be shown as long as the turn lasts.

        Where memory fails, that is what was shown before.
        """
        context = self._context(record, turn)
        try:
            recalled = yield from recalling(
                memory, record["task"], context, self._budget, self._model
            )
        except Exception as error:  # noqa: BLE001 - whatever its store, embedder or model raises
            self._fault("nothing was recalled", error)
            shown = replace(before or _Shown(None, context), context=context)
        else:
            later, told = (before.later, before.told) if before else ([], set[str]())
            shown = _Shown(recalled, context, [*later, recalled.receipt.to_json()], told)
        with self._lock:
            self._shown[memory.namespace, record["turn"]] = shown
            while len(self._shown) > SHOWN_AT_ONCE:
                self._shown.popitem(last=False)
        return shown

    def _told(
        self, state: Mapping[str, Any], messages: list[AnyMessage], runtime: Any
    ) -> Program[Call, list[AnyMessage]]:
        """Return messages with what was recalled behind the question."""
        held = cast("list[TurnRecord]", state.get(TURNS, []))
        if not held:
            return messages
        record = held[-1]
        turn = turn_of(state["messages"], record["asked"], record["task"])
        memory = self._banks.of(record["user"], runtime)
        shown = self._shown.get((memory.namespace, record["turn"]))
        # It began in another process, or memory wants to be asked again.
        if shown is None or self._asks_again(memory, record, turn, shown):
            shown = yield from self._recall(memory, record, turn, shown)
        if "told" in record:
            shown.told.update(told_by(None, turn.rest))
        if shown.recall is None or not shown.recall.text:
            return messages
        return placed(messages, record["asked"], shown.recall.text)

    def _context(self, record: TurnRecord, turn: Turn) -> RecallContext:
        user, at = record["user"], record.get("at", "")
        return context_of(turn, self._domain, record["question"], record["turn"], user=user, at=at)

    def _asks_again(
        self, memory: MemoryProvider[Any], record: TurnRecord, turn: Turn, shown: _Shown
    ) -> bool:
        if not turn.rest:
            return False
        now = self._context(record, turn)
        return memory.asks_again(record["task"], now, shown.context)

    def _end(self, state: Mapping[str, Any], runtime: Any) -> Program[Call, Update | None]:
        held: list[TurnRecord] = state.get(TURNS, [])
        if not held:
            return None
        *earlier, record = held
        memory = self._banks.of(record["user"], runtime)
        with self._lock:
            shown = self._shown.pop((memory.namespace, record["turn"]), None)
        record = {**record, "receipts": [*record["receipts"], *(shown.later if shown else [])]}
        if shown and "told" in record:
            record["told"] = [*told_by(None, (), {*record["told"], *shown.told})]
        if self._on_refile == "replace":
            pending = record.pop("episode", {}).get("id")  # it may be there for all we know
            before = filter(None, (record.pop("filed", None), pending))
            record["replaces"] = [*record.get("replaces", ()), *before]
        if self._remember == "no":
            return {TURNS: [record]}
        result = yield from ending(
            self._outcome, state, "`outcome` of MemoryMiddleware", self._fault
        )
        record["ended"] = {
            "success": result.success,
            "score": result.score,
            "reason": result.reason,
            "feedback": result.feedback,
        }
        if self._remember == "background":
            episode = self._episode(record, state["messages"])
            if episode is not None:
                record["episode"] = episode.to_json()
                filing = self._filing(memory, record, episode)
                missed = partial(self._not_filed, memory, record)
                place = memory.namespace, episode.id
                yield Call(self._filings.start, self._filings.astart, place, filing, missed)
            return {TURNS: [*earlier, record]}
        record = yield from self._filed(memory, record, state["messages"])
        return {TURNS: [*earlier, record]}

    # Filing -------------------------------------------------------------------------------

    def _file_left(
        self, held: Iterable[TurnRecord], messages: Sequence[AnyMessage], runtime: Any
    ) -> Program[Call, list[TurnRecord]]:
        """File turns that were not, and return those that still are not, the one that failed last.

        Memory that fails is not tried with the others: reflection may have been paid for by then.
        """
        open_ones = list(held) if self._remember != "no" else []
        while open_ones:
            after = yield from self._settled(open_ones.pop(0), messages, runtime)
            if not _is_filed(after):
                waiting = (each for each in open_ones if not _is_filed(each))
                return [*(self._kept(each, messages) for each in waiting), after]
        return []

    def _left(self, values: Mapping[str, Any], agent: Any) -> Program[Call, dict[str, Any] | None]:
        """File what a thread has left; its last turn stays on record, as the next one's parent."""
        held = cast("list[TurnRecord]", values.get(TURNS, []))
        if self._remember == "no" or all(_is_filed(record) for record in held):
            return None
        left = yield from self._file_left(held[:-1], values["messages"], agent)
        last = yield from self._settled(held[-1], values["messages"], agent)
        return {TURNS: [*left, last]}

    def _settled(
        self, record: TurnRecord, messages: Sequence[AnyMessage], runtime: Any
    ) -> Program[Call, TurnRecord]:
        """Return the record of a turn once nobody files it any more: filed, if that can be done."""
        memory = self._banks.of(record["user"], runtime)
        if "episode" in record:
            place = memory.namespace, record["episode"]["id"]
            job = self._filings.running(place)
            if job is not None:
                yield Call(job.wait, job.await_it)
            record = self._filings.result(place) or record
        if _is_filed(record):
            return record
        return (yield from self._filed(memory, record, messages))

    def _filed(
        self, memory: MemoryProvider[Any], record: TurnRecord, messages: Sequence[AnyMessage]
    ) -> Program[Call, TurnRecord]:
        """File a turn, and return its record: as filed, or with what is to be filed where memory failed."""
        if memory.settings.trust is not None:  # it may have begun before there were such settings
            record = {**record, "told": record.get("told", [])}
        episode = self._episode(record, messages)
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

    def _kept(self, record: TurnRecord, messages: Sequence[AnyMessage]) -> TurnRecord:
        """Return the record of a turn with what is to be filed of it."""
        episode = self._episode(record, messages)
        return record if episode is None else {**record, "episode": episode.to_json()}

    def _episode(self, record: TurnRecord, messages: Sequence[AnyMessage]) -> Episode | None:
        """Return what is to be filed of a turn, if anything is."""
        if "episode" in record:
            return Episode.from_json(record["episode"])
        if "filed" in record:
            return None
        rest = turn_of(messages, record["asked"], record["task"]).rest
        return episode_of_turn(
            self._domain,
            record["task"],
            rest,
            Outcome(**(record.get("ended") or {"success": None})),
            name=episode_id(record["turn"], rest),
            task_id=record["question"],
            receipts=record["receipts"],
            sources=told_by(record["user"], rest, record["told"]) if "told" in record else (),
            at=record.get("at", ""),
        )

    def _filing(
        self, memory: MemoryProvider[Any], record: TurnRecord, episode: Episode
    ) -> Program[Call, TurnRecord]:
        yield from learning(memory, episode, self._model, self._template)
        filed: TurnRecord = {**record, "filed": episode.id}
        filed.pop("episode", None)
        replaced = set(filed.pop("replaces", ())) - {episode.id}
        for name in replaced:
            self._filings.drop((memory.namespace, name))
        if replaced:
            content = yield Call(memory.content, memory.acontent)
            for item in content.items.values():
                if item.episode_id in replaced:
                    with suppress(InputError):  # it went with another one
                        yield Call(memory.forget, memory.aforget, item.id)
        return filed

    # What can go wrong --------------------------------------------------------------------

    def _check(self, memory: MemoryProvider[Any]) -> None:
        if not self._checked:
            check_recalls(memory, self._model, "MemoryMiddleware")
            if self._remember != "no":
                check_remembers(memory, self._model, "MemoryMiddleware")
            self._checked = True

    def _fault(self, what: str, error: Exception) -> None:
        fault_of_memory(logger, self._on_error, what, error)

    def _not_filed(
        self, memory: MemoryProvider[Any], record: TurnRecord, error: BaseException
    ) -> None:
        self._filings.miss((memory.namespace, record["episode"]["id"]), memory, record)
        told = f"{type(error).__name__}: {without_secrets(str(error))}"
        logger.warning("A turn was not filed, a later one files it (%s)", told)


def _node(
    name: str, begin: Callable[[Mapping[str, Any], Any], Program[Call, Update | None]]
) -> Node[Any]:
    """Make a node of a graph of somebody's own."""

    def program(state: _Held) -> Program[Call, Update]:
        return (yield from begin(state, get_runtime())) or {}

    return _MemoryNode.running(name, program)


def _with_turn(state: MemoryState) -> MemoryState:
    if TURNS in state or not any(map(is_question, state["messages"])):
        return state
    msg = (
        f"the node's state holds no `{TURNS}`, by which memory knows the turn: declare the state of"
        " the node that asks the model as `MemoryState`, or a subclass, and put `recall_node` before it"
    )
    raise InputError(msg)


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
            return None if self._user is None else self._user(runtime)
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
