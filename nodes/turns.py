"""What memory is told about the turns of a conversation: where the agent stands, and the episode at the end."""

import inspect
import logging
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, Final, TypeAlias

from langchain_core.messages import AIMessage, AnyMessage, ToolMessage
from langgraph.errors import GraphBubbleUp

from langgraft._core.arguments import check_argument
from langgraft._core.canonical import canonical_json
from langgraft._core.confidential import without_secrets
from langgraft._core.effects import Call, Program
from langgraft._core.errors import (
    BankClearedError,
    BankConflictError,
    ForkError,
    InputError,
    SettingsError,
)
from langgraft._core.texts import Prompt
from langgraft.memory.facts import Fact
from langgraft.memory.model import (
    Episode,
    Lesson,
    MemoryDelta,
    Outcome,
    Question,
    Receipt,
    Step,
    Verdict,
)
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.recall import Budget, Recall, RecallContext
from langgraft.memory.sources import ROOTS, combined, kind_of, source
from langgraft.nodes.conversation import said
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
from langgraft.nodes.redaction import Redactor, redacted
from langgraft.nodes.reflect import MAX_LESSONS, parse_lessons, reflection_messages
from langgraft.nodes.replies import encodable, reply_text
from langgraft.nodes.tools import SEARCH_MEMORY, tools_in

logger = logging.getLogger(__name__)

_SILENT: Final = "nostream"
"""Tag of model calls whose tokens are not the agent's answer, as LangGraph has it."""

Ended: TypeAlias = Outcome | bool
"""How a turn ended, or no more than whether it succeeded."""

JudgeOutcome: TypeAlias = Callable[[Any], Ended | Awaitable[Ended]]
"""Says how a turn ended, from the state of an agent or a graph, or the messages of a chain."""


def thread_of(runtime: Any) -> str:
    """Return the id of the thread that a runtime is of; empty where there is none."""
    info = getattr(runtime, "execution_info", None)
    return str(info.thread_id or "") if info is not None else ""


def is_tip(config: Any) -> bool:
    """Say whether a configuration means a thread as it is now; writing to a checkpoint would fork it."""
    return "checkpoint_id" not in (config or {}).get("configurable", {})


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
        "Memory failed, the agent answers without it: %s (%s: %s)",
        what,
        type(error).__name__,
        without_secrets(str(error)),
    )


# What memory is told ----------------------------------------------------------------------


def check_provider(memory: MemoryProvider[Any], what: str) -> None:
    """Refuse a provider that learns from what no turn has.

    Raises:
        SettingsError: It learns from error records.
    """
    if "errors" in memory.needs:
        msg = (
            f"{type(memory).__name__} learns from error records, and a turn of messages has none: {what} cannot"
            " use it. Diagnose errors in a node of your own and file the episode with `file`"
        )
        raise SettingsError(msg)


_WARNED: Final[set[tuple[type, str]]] = set()


def warn_of_notes(memory: MemoryProvider[Any], model: Model | None, what: str) -> None:
    """Warn, once in a process, that a provider gets plain notes for want of a model."""
    needed = sorted({"facts", "lessons", "verdicts"} & memory.needs) if model is None else []
    if needed and (type(memory), what) not in _WARNED:
        _WARNED.add((type(memory), what))
        logger.warning(
            "%s needs %s, which only a model can write: each turn is filed as a plain note. Pass `model` to %s",
            type(memory).__name__,
            " and ".join(needed),
            what,
        )


def context_of(
    rest: Sequence[AnyMessage],
    domain: str,
    task_id: str,
    episode: str,
    *,
    user: str | int | None = None,
    at: str = "",
    in_conversation: Iterable[str] = (),
) -> RecallContext:
    """Tell memory where the agent stands in a turn."""
    return RecallContext(
        domain=domain,
        task_id=task_id,
        episode_id=episode,
        stage="step" if rest else "start",
        step=sum(isinstance(message, AIMessage) for message in rest),
        observation=reply_text(rest[-1]) if rest else "",
        user="" if user is None else str(user),
        at=at,
        in_conversation=tuple(in_conversation),
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
    """Ask memory about a question; a draft is written first where it compares with one and there is a model."""
    if "draft" in memory.needs and model is not None:
        draft = yield from responding(drafting(task), model)
        context = replace(context, draft=draft)
        questions = yield from draft_questions(memory, task, context)
        judged = yield from _judged(questions, (), model)
        context = replace(context, verdicts=_verdicts(judged))
    recalled = yield from provided(memory, task, context, budget)
    return recalled


def begun_in(memory: MemoryProvider[Any]) -> Program[Call, str | None]:
    """Return the generation of a bank in which a turn begins; `None` where the store does not answer."""
    try:
        generation: str = yield Call(memory.generation, memory.ageneration)
    except ForkError:
        raise
    except Exception:  # noqa: BLE001 - whatever a database raises; recalling from it reports the fault
        return None
    return generation


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
    memory: MemoryProvider[Any],
    episode: Episode,
    model: Model | None,
    template: Prompt,
    *,
    redact: Redactor | None = None,
    generation: str | None = None,
) -> Program[Call, MemoryDelta]:
    """Draw the lessons, facts and verdicts that memory needs, and file the episode.

    Without a model, the turn itself is the lesson or the fact, as a plain note, and rules judge. If the bank was
    cleared after the episode began, nothing is filed.

    Args:
        memory: The provider.
        episode: What is filed.
        model: Reflects, extracts and judges; `None`: rules do.
        template: The prompt for lessons.
        redact: Redacts every text before it is written.
        generation: The bank's generation when the episode began, if it was read.
    """
    memory.filings.begin(episode.id)
    try:
        delta = yield from _learning(
            memory, episode, model, template, redact=redact, generation=generation
        )
    except BankClearedError as error:
        logger.info(
            "A turn was not filed, since its user's memory was deleted meanwhile (%s)", error
        )
        delta = MemoryDelta()
    except BaseException as error:
        memory.filings.fail(error)
        raise
    memory.filings.end(episode.id)
    return delta


def _learning(
    memory: MemoryProvider[Any],
    episode: Episode,
    model: Model | None,
    template: Prompt,
    *,
    redact: Redactor | None,
    generation: str | None,
) -> Program[Call, MemoryDelta]:
    if model is None:
        episode = _noted(episode, memory.needs)
    elif "lessons" in memory.needs:
        episode = yield from responding(_reflecting(episode, template), model)
    if "facts" in memory.needs and model is not None:
        extracted = yield from responding(extracting(episode, memory.attributes), model)
        episode = replace(episode, facts=extracted.facts)
    episode = redacted(episode, redact)
    questions = yield from questions_about(memory, episode)
    lessons = [lesson.text for lesson in episode.lessons]
    judged = yield from _judged(questions, lessons, model)
    episode = redacted(replace(episode, verdicts=_verdicts(judged)), redact)
    try:
        delta = yield from filed(memory, episode, generation)
    except BankConflictError:
        # Another process of the application served the user meanwhile, and the store has no lock.
        memory.refresh()
        delta = yield from filed(memory, episode, generation)
    return delta


def _noted(episode: Episode, needs: Iterable[str]) -> Episode:
    """Return an episode with a plain note of what was asked and answered, for what only a model could draw."""
    answer = episode.steps[-1].action if episode.steps else ""
    needs = set(needs)
    if needs & {"lessons", "verdicts"} and "facts" not in needs and not episode.lessons:
        note = "\n".join(filter(None, (episode.task, answer)))
        episode = replace(episode, lessons=(Lesson(note, episode.task, by="rules"),))
    if "facts" in needs and not episode.facts and episode.task:
        said_so = Fact("user", "said", episode.task, quote=episode.task, by="rules")
        episode = replace(episode, facts=(said_so,))
    return episode


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
            seen = "\n".join(filter(None, (last.observation, said(message))))
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
    text = said(message)
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
