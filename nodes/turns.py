"""Turns of a conversation: the question that is answered, what came of it, and the episode that it is.

A turn begins with what a person says and lasts until the next such message. Summaries that take the
place of older messages look like human ones and are none (`lc_source`, as LangChain marks them).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, TypeAlias

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage

from langgraft._core.canonical import JSON, canonical_json, digest
from langgraft._core.effects import Call, Program
from langgraft._core.errors import BankConflictError, InputError, SettingsError
from langgraft._core.texts import Prompt
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
from langgraft.nodes.dialogue import Dialogue, Model, Request, responding
from langgraft.nodes.judge import Judgment, answering_all, drafting
from langgraft.nodes.memory import draft_questions, filed, provided, questions_about, traced
from langgraft.nodes.reflect import MAX_LESSONS, parse_lessons, reflection_messages
from langgraft.nodes.replies import encodable, reply_text
from langgraft.nodes.tools import SEARCH_MEMORY

SUMMARY: Final = "lc_source"
"""Key of `additional_kwargs` by which LangChain marks a message that it put there itself."""

Ended: TypeAlias = Outcome | bool
"""How a turn ended, or no more than whether it succeeded."""


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


def turn_asked_by(messages: Sequence[AnyMessage], asked: str) -> Turn | None:
    """Return the turn that a message began, up to the next question; `None` where it is not there."""
    end = len(messages)
    for position in range(end - 1, -1, -1):
        if messages[position].id == asked:
            return _turn_at(messages[:end], position)
        if is_question(messages[position]):
            end = position
    return None


def _turn_at(messages: Sequence[AnyMessage], position: int) -> Turn:
    asked = messages[position]
    assert isinstance(asked, HumanMessage)
    if not asked.id:
        msg = "the human message has no id: use `add_messages` for the state's `messages`"
        raise InputError(msg)
    before = messages[position - 1] if position else None
    return Turn(asked, messages[position + 1 :], before)


# Identity ---------------------------------------------------------------------------------


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
        SettingsError: It needs error records, or lessons or verdicts and there is no model.
    """
    if "errors" in memory.needs:
        msg = (
            f"{type(memory).__name__} learns from error records, and a turn of messages has none:"
            f" diagnose in a node of your own and file the episode with `file`"
        )
        raise SettingsError(msg)
    needed = sorted({"lessons", "verdicts"} & memory.needs)
    if needed and model is None:
        msg = f"{type(memory).__name__} needs {' and '.join(needed)}: pass `model` to {what} to have them"
        raise SettingsError(msg)


def context_of(turn: Turn, domain: str, task_id: str, episode: str) -> RecallContext:
    """Tell memory where the agent stands in a turn."""
    rest = turn.rest
    return RecallContext(
        domain=domain,
        task_id=task_id,
        episode_id=episode,
        stage="step" if rest else "start",
        step=sum(isinstance(message, AIMessage) for message in rest),
        observation=reply_text(rest[-1]) if rest else "",
    )


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


def learning(
    memory: MemoryProvider[Any], episode: Episode, model: Model | None, template: Prompt
) -> Program[Call, MemoryDelta]:
    """Draw lessons and verdicts as far as memory needs any, and file the episode."""
    if "lessons" in memory.needs:
        episode = yield from responding(_reflecting(episode, template), model)
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
    ended: Ended,
    *,
    name: str,
    task_id: str,
    receipts: Sequence[Mapping[str, Any]] = (),
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
        outcome=ended if isinstance(ended, Outcome) else Outcome(success=bool(ended)),
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
