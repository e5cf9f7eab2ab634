"""Memory for a graph you already have: two nodes for any state with `messages`.

    graph.add_node("recall", recall_for_messages(memory))
    graph.add_node("remember", remember_messages(memory))
    graph.add_edge(START, "recall")
    graph.add_edge("recall", "agent")  # the graph as it was
    …
    graph.add_edge("remember", END)

Recalled memory is put before the text of the last human message, under the same message id, so
neither the state's schema nor the agent's own nodes change. `remember_messages` takes it out
again: the history of a conversation never fills up with memory, and memory never feeds on
itself. The state's `messages` must be merged by id, as LangGraph's `add_messages` in `MessagesState`
does: where they are not, the nodes refuse to run, as the history would be lost.
"""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Final, TypeAlias

from langchain_core.messages import AnyMessage, HumanMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.graph import MessagesState

from langgraft._core.arguments import check_argument, checked
from langgraft._core.effects import Call, Program, ado, arun, do, run
from langgraft._core.errors import InputError
from langgraft._core.texts import Prompt
from langgraft.memory.model import MemoryDelta, Outcome, strip_block
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget, Recall
from langgraft.nodes.dialogue import ChatModel, chat_model
from langgraft.nodes.node import Update
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.turns import (
    Ended,
    Turn,
    check_recalls,
    check_remembers,
    context_of,
    episode_id,
    episode_of_turn,
    last_turn,
    learning,
    question_id,
    recalling,
    turn_id,
)

JudgeOutcome: TypeAlias = Callable[[Any], Ended | Awaitable[Ended]]
"""Says how the turn ended, from the state of the graph."""

_READ: Final = "__pregel_read"
"""What a node's configuration reads the graph's channels by."""

RECEIPTS = "langgraft_receipts"
"""Where the receipts wait, in the human message's `additional_kwargs`, until it is remembered."""


@checked
def recall_for_messages(
    memory: MemoryProvider[Any],
    *,
    domain: str = "chat",
    budget: Budget | None = None,
    model: ChatModel | None = None,
) -> Runnable[MessagesState, Update]:
    """Make the node that asks memory about the last human message.

    Placed in a loop, it asks again and replaces what was recalled before.

    Args:
        memory: The provider to ask.
        domain: The task family, where an application has several.
        budget: Room for recalled text; `None`: that of `Budget()`.
        model: Drafts an answer and judges what contradicts it, for providers that need a draft.

    Raises:
        SettingsError: The provider needs a draft and there is no model to write it.
    """
    model = chat_model(model, "`model` of recall_for_messages")
    check_recalls(memory, model, "recall_for_messages")

    def recall(state: MessagesState, config: RunnableConfig) -> Program[Call, Update]:
        messages = _messages(state, config)
        turn, thread = _turn(messages), _thread(config)
        context = context_of(turn, domain, question_id(thread, turn), turn_id(thread, turn))
        recalled = yield from recalling(memory, turn.task, context, budget, model)
        return _with_memory(messages, turn.asked, recalled)

    return _node("recall", recall)


@checked
def remember_messages(
    memory: MemoryProvider[Any],
    *,
    domain: str = "chat",
    outcome: JudgeOutcome | None = None,
    model: ChatModel | None = None,
    prompt: Prompt | None = None,
) -> Runnable[MessagesState, Update]:
    """Make the node that files the turn since the last human message as one episode.

    Thread, message, text and answer name the episode (`langgraft.nodes.turns`): a turn is filed once,
    however often it is resumed, and an edit or another answer is another episode. The update also
    holds `deltas`, which a state that declares that key can journal.

    Args:
        memory: The provider to hand the episode to.
        domain: The task family, where an application has several.
        outcome: A function of the graph's state that says how the turn ended: an `Outcome`, or
            whether it succeeded. It may be async where the graph is run with `ainvoke`. `None`:
            nobody can tell.
        model: Reflects on the turn and answers what memory asks, for providers that need it.
        prompt: Prompt with `$task`, `$outcome`, `$trajectory` and `$limit`.

    Raises:
        SettingsError: The provider needs lessons or verdicts and there is no model to ask, or
            it needs error records, which a turn has not; or `outcome` cannot be called.

    The node raises `InputError`, and files nothing, where `outcome` returns anything else, or the
    state's `messages` are not merged by id.
    """
    model = chat_model(model, "`model` of remember_messages")
    check_remembers(memory, model, "remember_messages")
    template = prompt or shipped("reflect")

    judge: JudgeOutcome = outcome or (lambda _: Outcome(success=None))

    def ended(state: MessagesState) -> object:
        if inspect.iscoroutinefunction(judge):
            msg = "`outcome` of remember_messages is async: run the graph with `ainvoke`"
            raise InputError(msg)
        return judge(state)

    async def aended(state: MessagesState) -> object:
        result: object = judge(state)
        return await result if inspect.isawaitable(result) else result

    def remember(state: MessagesState, config: RunnableConfig) -> Program[Call, Update]:
        turn, thread = _turn(_messages(state, config)), _thread(config)
        result = yield Call(ended, aended, state)
        check_argument("what `outcome` of remember_messages returns", result, Ended)
        episode = episode_of_turn(
            domain,
            turn.task,
            turn.rest,
            result,
            name=episode_id(turn_id(thread, turn), turn.rest),
            task_id=question_id(thread, turn),
            receipts=turn.asked.additional_kwargs.get(RECEIPTS, ()),
        )
        delta = yield from learning(memory, episode, model, template)
        return _without_memory(turn.asked, delta)

    return _node("remember", remember)


def _node(
    name: str, begin: Callable[[MessagesState, RunnableConfig], Program[Call, Update]]
) -> Runnable[MessagesState, Update]:
    def call(state: MessagesState, config: RunnableConfig) -> Update:
        return run(begin(state, config), do)

    async def acall(state: MessagesState, config: RunnableConfig) -> Update:
        return await arun(begin(state, config), ado)

    return RunnableLambda(call, afunc=acall, name=name)


def _messages(state: Any, config: RunnableConfig) -> Sequence[AnyMessage]:
    """Return the history of a state, whatever its schema is, where a message in it can be replaced.

    Nodes do not see reducers; the channels are taken from where LangGraph's `ToolNode` has them.
    """
    read = config.get("configurable", {}).get(_READ)
    channel = None if read is None else read.args[1].get("messages")
    if channel is not None:
        tried = channel.from_checkpoint([HumanMessage("", id="0"), HumanMessage("", id="1")])
        tried.update([[HumanMessage("new", id="0")]])
        if [message.text for message in tried.get()] != ["new", ""]:
            msg = (
                "recalled memory would replace or repeat the history: the state's `messages` need"
                " a reducer that goes by message ids. Declare `messages: Annotated[list[AnyMessage],"
                " add_messages]`, as in LangGraph's MessagesState"
            )
            raise InputError(msg)
    held = state.get("messages") if isinstance(state, Mapping) else state.messages
    return held or []


def _turn(messages: Sequence[AnyMessage]) -> Turn:
    """Return the last human message and what came after it."""
    turn = last_turn(messages)
    if turn is None:
        msg = "there is no human message to recall memory for, or to remember"
        raise InputError(msg)
    return turn


def _thread(config: RunnableConfig) -> str:
    return str(config.get("configurable", {}).get("thread_id", ""))


def _with_memory(messages: Sequence[AnyMessage], asked: HumanMessage, recalled: Recall) -> Update:
    """Put what was recalled before the question, and take it out of turns that broke off."""
    receipts = [*asked.additional_kwargs.get(RECEIPTS, ()), recalled.receipt.to_json()]
    extra = {**asked.additional_kwargs, RECEIPTS: receipts}
    left = [
        _cleaned(message)
        for message in messages
        if isinstance(message, HumanMessage)
        and message.id != asked.id
        and RECEIPTS in message.additional_kwargs
    ]
    return {"messages": [*left, _replaced(asked, _content(asked, recalled.text), extra)]}


def _without_memory(asked: HumanMessage, delta: MemoryDelta) -> Update:
    journal = [delta.to_json()] if delta else []
    return {"messages": [_cleaned(asked)], "deltas": journal}


def _cleaned(asked: HumanMessage) -> HumanMessage:
    extra = {name: value for name, value in asked.additional_kwargs.items() if name != RECEIPTS}
    return _replaced(asked, _content(asked, ""), extra)


def _replaced(asked: HumanMessage, content: Any, extra: Mapping[str, Any]) -> HumanMessage:
    return asked.model_copy(update={"content": content, "additional_kwargs": dict(extra)})


def _content(asked: HumanMessage, block: str) -> Any:
    """Return a message's content with `block`, and no other, before it."""
    content = asked.content
    if isinstance(content, str):
        return block + strip_block(content)
    ours = {"type": "text", "text": block}
    return [*([ours] if block else []), *(part for part in content if not _is_block(part))]


def _is_block(part: Any) -> bool:
    text = part.get("text") if isinstance(part, Mapping) else part
    return isinstance(text, str) and bool(text) and not strip_block(text)
