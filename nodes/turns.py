"""Turns of a conversation: the question that is answered, what came of it, and the episode that it is.

A turn begins with what a person says and lasts until the next such message. Summaries that take the
place of older messages look like human ones and are none (`lc_source`, as LangChain marks them).
"""

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from langgraph.errors import GraphBubbleUp

from langgraft._core.arguments import check_argument
from langgraft._core.canonical import JSON, canonical_json, digest
from langgraft._core.effects import Call, Program
from langgraft._core.errors import BankConflictError, ForkError, InputError, SettingsError
from langgraft._core.texts import Prompt, without_secrets
from langgraft.memory.model import (
    Episode,
    Lesson,
    MemoryDelta,
    Outcome,
    Question,
    Receipt,
    Step,
    Verdict,
    strip_block,
)
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget, Recall, RecallContext
from langgraft.memory.sources import ROOTS, combined, kind_of, source
from langgraft.nodes.dialogue import (
    ChatModel,
    Dialogue,
    Model,
    Request,
    chat_model,
    responding,
)
from langgraft.nodes.extract import extracting
from langgraft.nodes.judge import Judgment, answering_all, drafting
from langgraft.nodes.memory import draft_questions, filed, provided, questions_about, traced
from langgraft.nodes.reflect import MAX_LESSONS, parse_lessons, reflection_messages
from langgraft.nodes.replies import encodable, reply_text
from langgraft.nodes.tools import SEARCH_MEMORY, tools_in

_SILENT: Final = "nostream"
"""Tag of model calls whose tokens are not the agent's answer, as LangGraph has it."""

SUMMARY: Final = "lc_source"
"""Key of `additional_kwargs` by which LangChain marks a message that it put there itself."""

Ended: TypeAlias = Outcome | bool
"""How a turn ended, or no more than whether it succeeded."""

JudgeOutcome: TypeAlias = Callable[[Any], Ended | Awaitable[Ended]]
"""Says how a turn ended, from the state of an agent or a graph, or the messages of a chain."""

M = TypeVar("M", bound=BaseMessage)


@dataclass(frozen=True, slots=True)
class Turn:
    """A question, and the messages since."""

    asked: HumanMessage
    rest: Sequence[AnyMessage]
    before: AnyMessage | None = None
    """The message before the question."""

    @property
    def task(self) -> str:
        """The question, without what was recalled for it."""
        return strip_block(reply_text(self.asked)).strip()


def is_question(message: BaseMessage) -> bool:
    """Say whether a message is of a person."""
    return isinstance(message, HumanMessage) and SUMMARY not in message.additional_kwargs


def last_turn(messages: Sequence[AnyMessage]) -> Turn | None:
    """Return the turn that the last question began; `None` where nobody asked anything.

    Raises:
        InputError: The question has no id.
    """
    for position in range(len(messages) - 1, -1, -1):
        if is_question(messages[position]):
            return _turn_at(messages, position)
    return None


def turn_of(messages: Sequence[AnyMessage], asked: str, task: str) -> Turn:
    """Return the turn that a message began, up to the next question.

    Where a summary took the question's place, it is what came after that, up to the next.
    """
    end = len(messages)
    for position in range(end - 1, -1, -1):
        if messages[position].id == asked:
            return _turn_at(messages[:end], position)
        if is_question(messages[position]):
            end = position
    humans = [n for n, message in enumerate(messages) if isinstance(message, HumanMessage)]
    since = max((n + 1 for n in humans if not is_question(messages[n])), default=0)
    until = next((n for n in humans if n >= since), len(messages))
    return Turn(HumanMessage(task, id=asked), messages[since:until])


def _turn_at(messages: Sequence[AnyMessage], position: int) -> Turn:
    asked = messages[position]
    assert isinstance(asked, HumanMessage)
    if not asked.id:
        msg = "the human message has no id: use `add_messages` for the state's `messages`"
        raise InputError(msg)
    before = messages[position - 1] if position else None
    return Turn(asked, messages[position + 1 :], before)


# Identity ---------------------------------------------------------------------------------


def thread_of(runtime: Any) -> str:
    """Return the id of the thread that a runtime is of; empty where there is none."""
    info = getattr(runtime, "execution_info", None)
    return str(info.thread_id or "") if info is not None else ""


def is_tip(config: Any) -> bool:
    """Say whether a configuration means a thread as it is now; writing to a checkpoint would fork it."""
    return "checkpoint_id" not in (config or {}).get("configurable", {})


def question_id(thread: str, turn: Turn) -> str:
    """Name a question: the same however often it is edited or answered anew in its thread.

    Outside of threads message ids need not be unique, and what was asked counts as well.
    """
    return _name(
        "question", thread, turn.asked.id, "" if thread else [encodable(turn.task), _seen(turn)]
    )


def turn_id(thread: str, turn: Turn, parent: str = "") -> str:
    """Name a turn by thread, message, content and ancestry: an edit or a fork makes another one.

    Args:
        thread: The thread's id; empty where there is no checkpointer.
        turn: The turn.
        parent: The name of the turn before, where it is known; it stands for all before.
    """
    return _name("turn", thread, turn.asked.id, encodable(turn.task), parent or _seen(turn))


def episode_id(turn: str, rest: Sequence[AnyMessage]) -> str:
    """Name what came of a turn: answered anew, it is another episode; resumed, the same."""
    return _name("episode", turn, [_said(message) for message in rest])


def _said(message: AnyMessage) -> JSON:
    # Ids of replies may be drawn anew each time a state is read, and say nothing.
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    asked = [[call["name"], encodable(canonical_json(call["args"]))] for call in calls]
    return [message.type, encodable(message.text), asked]


def _name(*parts: JSON) -> str:
    return f"{parts[0]}-{digest([*parts[1:]])[:32]}"


def _seen(turn: Turn) -> JSON:
    return [turn.before.type, encodable(strip_block(turn.before.text))] if turn.before else []


# What a model and an application are told, and say -----------------------------------------


def with_block(message: M, block: str) -> M:
    """Return a message with what was recalled behind what it says."""
    content = message.content
    ours: Any = {"type": "text", "text": block}
    told: Any = f"{content}\n\n{block}" if isinstance(content, str) else [*content, ours]
    return message.model_copy(update={"content": told})


def placed(messages: Sequence[AnyMessage], asked: str, block: str) -> list[AnyMessage]:
    """Put a block behind a question, or behind what a person or a summary said last.

    What comes before stays as it was in the turn before, and what comes after as long as the turn lasts,
    as caches of prompts want it.
    """
    told, place = list(messages), None
    for position in range(len(told) - 1, -1, -1):
        if told[position].id == asked:
            place = position
            break
        if place is None and isinstance(told[position], HumanMessage):
            place = position
    if place is None:
        return [*told, HumanMessage(block)]
    told[place] = with_block(told[place], block)
    return told


def memory_model(model: ChatModel | None, what: str) -> Model | None:
    """Return the model that memory asks; its tokens are not streamed as the agent's answer.

    Raises:
        SettingsError: Its name is nobody's, or its package or key is missing.
    """
    asked = chat_model(model, what)
    return None if asked is None else asked.with_config(tags=[_SILENT])


def ending(
    judge: JudgeOutcome | None, state: Any, what: str, fault: Callable[[str, Exception], None]
) -> Program[Call, Outcome]:
    """Have an application say how a turn ended; unknown where it has no function for that, or one that fails.

    Args:
        judge: The function.
        state: What it is given.
        what: What it was given as, for messages.
        fault: Is told of an error that it raises.

    Raises:
        InputError: The function is async and the run is not, or it returns anything else.
    """
    if judge is None:
        return Outcome(success=None)

    def ended() -> object:
        if inspect.iscoroutinefunction(judge):
            msg = f"{what} is async: run with `ainvoke`"
            raise InputError(msg)
        return judge(state)

    async def aended() -> object:
        result: object = judge(state)
        return await result if inspect.isawaitable(result) else result

    try:
        result = yield Call(ended, aended)
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001 - the application's own code
        fault(f"how the turn ended is not known: {what} failed", error)
        return Outcome(success=None)
    check_argument(f"what {what} returns", result, Ended)
    return result if isinstance(result, Outcome) else Outcome(success=bool(result))


def fault_of_memory(logger: logging.Logger, on_error: str, what: str, error: Exception) -> None:
    """Log a fault of memory, so that it costs no answer; raise it where `on_error` says so.

    What LangGraph itself raises to stop or pause a graph always passes, and so does memory that can
    never work in this process.
    """
    if on_error == "raise" or isinstance(error, GraphBubbleUp | ForkError):
        raise error
    logger.warning(
        "Memory failed, the agent goes on: %s (%s: %s)",
        what,
        type(error).__name__,
        without_secrets(str(error)),
    )


# What memory is told ----------------------------------------------------------------------


def check_recalls(memory: MemoryProvider[Any], model: Model | None, what: str) -> None:
    """Refuse a provider that is asked with a draft where nothing writes one.

    Raises:
        SettingsError: There is no model.
    """
    if "draft" in memory.needs and model is None:
        msg = f"{type(memory).__name__} compares with a draft: pass `model` to {what} to have one written"
        raise SettingsError(msg)


def check_remembers(memory: MemoryProvider[Any], model: Model | None, what: str) -> None:
    """Refuse a provider that needs of a turn what nothing makes.

    Raises:
        SettingsError: It needs error records, or facts, lessons or verdicts and there is no model.
    """
    if "errors" in memory.needs:
        msg = (
            f"{type(memory).__name__} learns from error records, and a turn of messages has none:"
            f" diagnose in a node of your own and file the episode with `file`"
        )
        raise SettingsError(msg)
    needed = sorted({"facts", "lessons", "verdicts"} & memory.needs)
    if needed and model is None:
        msg = f"{type(memory).__name__} needs {' and '.join(needed)}: pass `model` to {what} to have them"
        raise SettingsError(msg)


def context_of(
    turn: Turn,
    domain: str,
    task_id: str,
    episode: str,
    *,
    user: str | int | None = None,
    at: str = "",
) -> RecallContext:
    """Tell memory where the agent stands in a turn."""
    rest = turn.rest
    return RecallContext(
        domain=domain,
        task_id=task_id,
        episode_id=episode,
        stage="step" if rest else "start",
        step=sum(isinstance(message, AIMessage) for message in rest),
        observation=reply_text(rest[-1]) if rest else "",
        user="" if user is None else str(user),
        at=at,
    )


def told_by(
    user: str | int | None, rest: Iterable[Any], before: Iterable[str] = ()
) -> tuple[str, ...]:
    """Return what a turn was learned from: its user, the tools and pages whose output it holds, what was before.

    What memory said itself, the receipts know.
    """
    users = () if user in (None, "") else (source("user", encodable(str(user))),)
    return combined(users, tools_in(rest), before)


def told_before(turn: Mapping[str, Any] | None, messages: Sequence[AnyMessage]) -> list[str]:
    """Return whom and what a thread has heard, by its messages and the record of its last turn.

    A model sees them again in later turns, as they are or in a summary, so these follow from them.
    """
    if turn is None:
        return list(told_by(None, messages))
    recalled = (receipt.get("sources", ()) for receipt in turn["receipts"])
    every = combined(turn.get("told", ()), told_by(turn["user"], messages), *recalled)
    return [each for each in every if kind_of(each) in ROOTS]


def recalling(
    memory: MemoryProvider[Any],
    task: str,
    context: RecallContext,
    budget: Budget | None,
    model: Model | None,
) -> Program[Call, Recall]:
    """Ask memory about a question; a draft is written first where it compares with one."""
    if "draft" in memory.needs:
        draft = yield from responding(drafting(task), model)
        context = replace(context, draft=draft)
        questions = yield from draft_questions(memory, task, context)
        judged = yield from _judged(questions, (), model)
        context = replace(context, verdicts=_verdicts(judged))
    recalled = yield from provided(memory, task, context, budget)
    return recalled


def present(memory: MemoryProvider[Any], now: Callable[[], datetime] | None) -> str:
    """Return what time it is, for memory that keeps facts in time; nothing for other memory.

    Args:
        memory: The memory.
        now: The application's clock; `None`: the system's.
    """
    if "facts" not in memory.needs:
        return ""
    return (datetime.now(UTC) if now is None else now()).isoformat(timespec="seconds")


def learning(
    memory: MemoryProvider[Any], episode: Episode, model: Model | None, template: Prompt
) -> Program[Call, MemoryDelta]:
    """Draw lessons, facts and verdicts as far as memory needs any, and file the episode."""
    if "lessons" in memory.needs:
        episode = yield from responding(_reflecting(episode, template), model)
    if "facts" in memory.needs:
        extracted = yield from responding(extracting(episode, memory.attributes), model)
        episode = replace(episode, facts=extracted.facts)
    questions = yield from questions_about(memory, episode)
    lessons = [lesson.text for lesson in episode.lessons]
    judged = yield from _judged(questions, lessons, model)
    episode = replace(episode, verdicts=_verdicts(judged))
    try:
        delta = yield from filed(memory, episode)
    except BankConflictError:
        # Another process of the application served the user meanwhile, and the store has no lock.
        memory.refresh()
        delta = yield from filed(memory, episode)
    return delta


def _judged(
    questions: Sequence[Question], lessons: Sequence[str], model: Model | None
) -> Program[Call, Sequence[Judgment]]:
    """Have what memory asks answered."""

    def outputs(judged: Sequence[Judgment]) -> Mapping[str, Any]:
        return {"verdicts": len(_verdicts(judged))}

    answering = responding(answering_all(questions, lessons), model)
    if not questions:
        return answering
    return traced("judge", {"questions": len(questions)}, answering, outputs)


def episode_of_turn(
    domain: str,
    task: str,
    rest: Sequence[AnyMessage],
    ended: Outcome,
    *,
    name: str,
    task_id: str,
    receipts: Sequence[Mapping[str, Any]] = (),
    sources: Sequence[str] = (),
    at: str = "",
) -> Episode:
    """Put together the episode that a turn is; what the agent itself found in memory is left out.

    Args:
        domain: The task family.
        task: The question.
        rest: The messages since.
        ended: How it ended.
        name: The episode's id.
        task_id: The question's.
        receipts: Of what was recalled for it.
        sources: What it was learned from, where anybody asks.
        at: When it was.
    """
    # The first step is what an agent sees before it acts: here nothing but the task.
    steps = [Step("", "", "")]
    for message in rest:
        if isinstance(message, AIMessage):
            steps.append(_step(message))
        elif isinstance(message, ToolMessage) and message.name != SEARCH_MEMORY:
            last = steps[-1]
            seen = "\n".join(filter(None, (last.observation, strip_block(reply_text(message)))))
            steps[-1] = Step(last.thought, last.action, seen)
    return Episode(
        id=name,
        domain=domain,
        task_id=task_id,
        task=task,
        steps=tuple(steps),
        outcome=ended,
        recalls=tuple(Receipt(**receipt) for receipt in receipts),
        sources=tuple(sources),
        at=at,
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
