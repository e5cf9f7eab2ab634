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
from dataclasses import replace
from typing import Any, Final, TypeAlias

from langchain_core.messages import AIMessage, AnyMessage, HumanMessage, ToolMessage
from langchain_core.runnables import Runnable, RunnableConfig, RunnableLambda
from langgraph.graph import MessagesState

from langgraft._core.arguments import check_argument, checked
from langgraft._core.canonical import canonical_json
from langgraft._core.effects import Call, Program, ado, arun, do, run
from langgraft._core.errors import InputError, SettingsError
from langgraft._core.texts import Prompt
from langgraft.memory.model import (
    Episode,
    Lesson,
    MemoryDelta,
    Outcome,
    Receipt,
    Step,
    Verdict,
    strip_block,
)
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget, Recall, RecallContext
from langgraft.nodes.dialogue import ChatModel, Dialogue, Request, chat_model, responding
from langgraft.nodes.judge import Judgment, answering_all, drafting
from langgraft.nodes.memory import (
    draft_questions,
    filed,
    provided,
    questions_about,
)
from langgraft.nodes.node import Update
from langgraft.nodes.prompts import prompt as shipped
from langgraft.nodes.reflect import MAX_LESSONS, parse_lessons, reflection_messages
from langgraft.nodes.replies import encodable, reply_text

Ended: TypeAlias = Outcome | bool
"""How a turn ended, or no more than whether it succeeded."""
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
    drafts = "draft" in memory.needs
    if drafts and model is None:
        msg = f"{type(memory).__name__} compares with a draft: pass `model` to have one written"
        raise SettingsError(msg)

    def recall(state: MessagesState, config: RunnableConfig) -> Program[Call, Update]:
        messages = _messages(state, config)
        asked, rest = _turn(messages)
        task, context = _task(asked), _context(domain, asked, rest)
        if drafts:
            draft = yield from responding(drafting(task), model)
            context = replace(context, draft=draft)
            questions = yield from draft_questions(memory, task, context)
            judged = yield from responding(answering_all(questions), model)
            context = replace(context, verdicts=_verdicts(judged))
        return _with_memory(messages, (yield from provided(memory, task, context, budget)))

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

    The message's id names the episode, so a turn is filed once. The update also holds
    `deltas`, which a state that declares that key can journal.

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
    if "errors" in memory.needs:
        msg = (
            f"{type(memory).__name__} learns from error records, and a turn of messages has none:"
            f" diagnose in a node of your own and file the episode with `file`"
        )
        raise SettingsError(msg)
    model = chat_model(model, "`model` of remember_messages")
    needed = sorted({"lessons", "verdicts"} & memory.needs)
    if needed and model is None:
        msg = f"{type(memory).__name__} needs {' and '.join(needed)}: pass `model` to have them"
        raise SettingsError(msg)
    template = prompt or shipped("reflect")

    judge: JudgeOutcome = outcome or (lambda _: Outcome(success=None))

    def turn(messages: Sequence[AnyMessage], ended: object) -> tuple[HumanMessage, Episode]:
        check_argument("what `outcome` of remember_messages returns", ended, Ended)
        asked, rest = _turn(messages)
        result = ended if isinstance(ended, Outcome) else Outcome(success=bool(ended))
        return asked, _episode(domain, asked, rest, result)

    def ended(state: MessagesState) -> object:
        if inspect.iscoroutinefunction(judge):
            msg = "`outcome` of remember_messages is async: run the graph with `ainvoke`"
            raise InputError(msg)
        return judge(state)

    async def aended(state: MessagesState) -> object:
        result: object = judge(state)
        return await result if inspect.isawaitable(result) else result

    def remember(state: MessagesState, config: RunnableConfig) -> Program[Call, Update]:
        messages = _messages(state, config)
        asked, episode = turn(messages, (yield Call(ended, aended, state)))
        if "lessons" in memory.needs:
            episode = yield from responding(_reflecting(episode, template), model)
        questions = yield from questions_about(memory, episode)
        lessons = [lesson.text for lesson in episode.lessons]
        judged = yield from responding(answering_all(questions, lessons), model)
        episode = replace(episode, verdicts=_verdicts(judged))
        return _without_memory(asked, (yield from filed(memory, episode)))

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


def _turn(messages: Sequence[AnyMessage]) -> tuple[HumanMessage, Sequence[AnyMessage]]:
    """Return the last human message and what came after it."""
    for position in range(len(messages) - 1, -1, -1):
        message = messages[position]
        if isinstance(message, HumanMessage):
            if not message.id:
                msg = "the human message has no id: use `add_messages` for the state's `messages`"
                raise InputError(msg)
            return message, messages[position + 1 :]
    msg = "there is no human message to recall memory for, or to remember"
    raise InputError(msg)


def _task(asked: HumanMessage) -> str:
    return strip_block(reply_text(asked)).strip()


def _context(domain: str, asked: HumanMessage, rest: Sequence[AnyMessage]) -> RecallContext:
    return RecallContext(
        domain=domain,
        task_id=str(asked.id),
        episode_id=str(asked.id),
        stage="step" if rest else "start",
        step=sum(isinstance(message, AIMessage) for message in rest),
        observation=reply_text(rest[-1]) if rest else "",
    )


def _with_memory(messages: Sequence[AnyMessage], recalled: Recall) -> Update:
    """Put what was recalled before the question, and take it out of turns that broke off."""
    asked, _ = _turn(messages)
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


def _episode(
    domain: str, asked: HumanMessage, rest: Sequence[AnyMessage], outcome: Outcome
) -> Episode:
    # The first step is what an agent sees before it acts: here nothing but the task.
    steps = [Step("", "", "")]
    for message in rest:
        if isinstance(message, AIMessage):
            steps.append(_step(message))
        elif isinstance(message, ToolMessage):
            last = steps[-1]
            seen = "\n".join(filter(None, (last.observation, strip_block(reply_text(message)))))
            steps[-1] = Step(last.thought, last.action, seen)
    receipts = asked.additional_kwargs.get(RECEIPTS, ())
    return Episode(
        id=str(asked.id),
        domain=domain,
        task_id=str(asked.id),
        task=_task(asked),
        steps=tuple(steps),
        outcome=outcome,
        recalls=tuple(Receipt(**receipt) for receipt in receipts),
    )


def _step(message: AIMessage) -> Step:
    """Read a reply: with tool calls its text is the thought, without it is the answer."""
    text = strip_block(reply_text(message)).strip()
    if not message.tool_calls:
        return Step("", text, "")
    calls = [
        f"{call['name']}({encodable(canonical_json(call['args']))})" for call in message.tool_calls
    ]
    return Step(text, "; ".join(calls), "")


def _reflecting(episode: Episode, template: Prompt) -> Dialogue[Episode]:
    """Draw the lessons of a turn."""
    messages = reflection_messages(
        template, episode.task, episode.steps, episode.outcome, MAX_LESSONS
    )
    reply = yield Request(messages, "reflect")
    drawn, _ = parse_lessons(reply.text, MAX_LESSONS)
    return replace(
        episode, lessons=tuple(Lesson(lesson["text"], lesson["when_to_use"]) for lesson in drawn)
    )


def _verdicts(judged: Sequence[Judgment]) -> tuple[Verdict, ...]:
    return tuple(verdict for judgment in judged for verdict in judgment.verdicts)
