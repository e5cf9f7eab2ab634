"""Conversations: which messages are a user's question, what came of it, and where recalled text goes.

A question is all that a person has said since the last reply. Other messages look like a person's and are
not: summaries, reminders, task notifications, media that a tool returned. LangChain and deepagents mark
theirs. An application that writes others passes a predicate.

Applications change their histories. They redact, summarize, replace ids, or use no ids at all. A question is
therefore found by the id of its last message, otherwise by its text, otherwise by its place.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, TypeAlias, TypeVar

from langchain_core.messages import AIMessage, AnyMessage, BaseMessage, HumanMessage, ToolMessage
from typing_extensions import TypedDict

from langgraft._core.canonical import JSON, canonical_json, digest
from langgraft.memory.model import strip_block
from langgraft.nodes.replies import encodable, reply_text

FromPerson: TypeAlias = Callable[[HumanMessage], bool]
"""Says whether a human message was written by a person."""

_SUMMARY: Final = "lc_source"
_MARKS: Final = (
    _SUMMARY,  # LangChain and deepagents: summaries, pinned skills, graders
    "deepagents_notification",  # deepagents: a background task has news
    "read_file_media_result",  # deepagents: the file that a tool has read
    "hide_from_ui",  # deer-flow: reminders
)
"""Keys of `additional_kwargs` by which software marks a human message that it wrote."""

_SHOWN_AS: Final[Mapping[str, str]] = {
    "image": "image",
    "image_url": "image",
    "input_image": "image",
    "audio": "audio",
    "input_audio": "audio",
    "video": "video",
    "file": "file",
    "document": "file",
    "input_file": "file",
    "text-plain": "file",
}
"""What stands for a part of a message that is no text, by its type."""

M = TypeVar("M", bound=BaseMessage)


def is_marked(message: BaseMessage) -> bool:
    """Say whether a message bears the mark of the software that wrote it."""
    return any(message.additional_kwargs.get(mark) for mark in _MARKS)


def is_from_person(message: BaseMessage, judge: FromPerson | None = None) -> bool:
    """Say whether a message is a person's.

    Args:
        message: Any message.
        judge: The application's predicate; `None`: a human message without a mark is a person's.
    """
    if not isinstance(message, HumanMessage) or is_marked(message):
        return False
    return judge is None or bool(judge(message))


def is_reply(message: BaseMessage) -> bool:
    """Say whether a message is the model's, or what a tool returned to it."""
    return isinstance(message, AIMessage | ToolMessage)


def said(message: BaseMessage) -> str:
    """Return what a message says, without recalled text; `[image]` and the like for other content."""
    text = strip_block(reply_text(message)).strip()
    if isinstance(message.content, str):
        return text
    shown = [each for part in message.content if (each := _placeholder(part))]
    return "\n".join(filter(None, (text, " ".join(shown))))


def _placeholder(part: object) -> str:
    kind = part.get("type") if isinstance(part, Mapping) else None
    shown = _SHOWN_AS.get(kind) if isinstance(kind, str) else None
    if shown is None:
        return ""
    assert isinstance(part, Mapping)
    inner = part.get("file")
    held = {**part, **inner} if isinstance(inner, Mapping) else part
    names = (held.get(key) for key in ("filename", "file_name", "name", "title"))
    name = next((each for each in names if isinstance(each, str) and each.strip()), "")
    return f"[{shown} {encodable(name.strip())[:80]}]" if name else f"[{shown}]"


# Turns ------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Turn:
    """A question, and the messages since."""

    question: Sequence[BaseMessage]
    """The messages of the question, at least one."""
    rest: Sequence[AnyMessage]
    """The messages after it, up to the next question."""
    place: int = 0
    """The position of the question's last message in the conversation."""
    before: AnyMessage | None = None
    """The message before the question."""

    @property
    def task(self) -> str:
        """The question as a text."""
        return "\n\n".join(filter(None, map(said, self.question)))

    @property
    def id(self) -> str:
        """The id of the question's last message; empty where messages have none."""
        return str(self.question[-1].id or "")

    @property
    def is_answered(self) -> bool:
        """Whether the last thing that the model said is an answer, and no call of a tool."""
        replies = [each for each in self.rest if isinstance(each, AIMessage)]
        return bool(replies) and not replies[-1].tool_calls


class Asked(TypedDict):
    """Where a turn's question stood when the turn began."""

    id: str
    """The id of its last message; empty: it had none."""
    place: int
    """The position of its last message."""
    messages: int
    """How many messages it had."""
    text: str
    """A digest of the text of its last message."""


class End(TypedDict):
    """The last message of a conversation when a turn ended, or when its model was last asked."""

    id: str
    place: int


def end_of(messages: Sequence[BaseMessage]) -> End:
    """Return by what the end of a conversation is found again."""
    last = messages[-1].id if messages else None
    return End(id=str(last or ""), place=len(messages) - 1)


def after(messages: Sequence[BaseMessage], end: End | None) -> int:
    """Return the position of the first message after an end; 0 if the end cannot be found."""
    if end is None:
        return 0
    if end["id"]:
        places = (n for n in range(len(messages) - 1, -1, -1) if messages[n].id == end["id"])
        return next(places, -1) + 1
    place = end["place"]
    return place + 1 if 0 <= place < len(messages) and not messages[place].id else 0


def asked_in(turn: Turn) -> Asked:
    """Return by what a turn's question is found again."""
    return Asked(
        id=turn.id, place=turn.place, messages=len(turn.question), text=_digest(turn.question[-1])
    )


def _digest(message: BaseMessage) -> str:
    return digest(encodable(strip_block(message.text)))[:16]


def current_turn(
    messages: Sequence[AnyMessage],
    judge: FromPerson | None = None,
    known: Sequence[Asked] = (),
    since: int = 0,
) -> Turn | None:
    """Return the turn that a conversation's last question began; `None` where nobody asked anything.

    Args:
        messages: The conversation.
        judge: The application's predicate of a person's messages.
        known: Questions of earlier turns. They stay out of this one, answered or not.
        since: The position from which on messages are new.
    """
    for place in range(len(messages) - 1, since - 1, -1):
        if is_from_person(messages[place], judge):
            break
    else:
        return None
    own = [place]
    others = {found for each in known if (found := _same_message(messages, each)) is not None}
    for position in range(place - 1, since - 1, -1):
        if is_reply(messages[position]) or position in others:
            break
        if is_from_person(messages[position], judge):
            own.insert(0, position)
    return _turn(messages, own, len(messages))


def turn_of(
    messages: Sequence[AnyMessage],
    asked: Asked,
    judge: FromPerson | None = None,
    following: Asked | None = None,
) -> Turn | None:
    """Return the turn of a question; `None` where the conversation does not hold it any more.

    Args:
        messages: The conversation.
        asked: By what the question is found.
        judge: The application's predicate of a person's messages.
        following: The question of the next turn, which ends this one; `None`: it is the last turn.
    """
    place = find(messages, asked)
    last = None if following is None else find(messages, following)
    if place is None or place == last:
        return None
    own = [place]
    for position in range(place - 1, -1, -1):
        if len(own) == asked["messages"] or is_reply(messages[position]):
            break
        if is_from_person(messages[position], judge):
            own.insert(0, position)
    end = len(messages)
    if following is not None and last is not None and last > place:
        end = last - following["messages"] + 1
    return _turn(messages, own, end)


def rest_after_summary(
    messages: Sequence[AnyMessage], following: Asked | None = None
) -> Sequence[AnyMessage]:
    """Return what is left of a turn whose question a summary has taken."""
    summaries = [n for n, each in enumerate(messages) if each.additional_kwargs.get(_SUMMARY)]
    since = summaries[-1] + 1 if summaries else 0
    end = None if following is None else find(messages, following)
    return messages[since : len(messages) if end is None else end]


def find(messages: Sequence[BaseMessage], asked: Asked) -> int | None:
    """Return the position of a question's last message, or `None`."""
    humans = [n for n, message in enumerate(messages) if isinstance(message, HumanMessage)]
    if asked["id"]:
        for place in reversed(humans):
            if messages[place].id == asked["id"]:
                return place
    elif asked["place"] in humans and not messages[asked["place"]].id:
        return asked["place"]
    for place in reversed(humans):
        if _digest(messages[place]) == asked["text"] and not is_marked(messages[place]):
            return place
    place = asked["place"]
    return place if place in humans and not is_marked(messages[place]) else None


def _same_message(messages: Sequence[BaseMessage], asked: Asked) -> int | None:
    """Return the position of a question's last message, by its id, or by its place and text."""
    if asked["id"]:
        return next((n for n, each in enumerate(messages) if each.id == asked["id"]), None)
    place = asked["place"]
    found = 0 <= place < len(messages) and _digest(messages[place]) == asked["text"]
    return place if found else None


def _turn(messages: Sequence[AnyMessage], own: Sequence[int], end: int) -> Turn:
    first, last = own[0], own[-1]
    return Turn(
        question=[messages[each] for each in own],
        rest=messages[last + 1 : end],
        place=last,
        before=messages[first - 1] if first else None,
    )


def questions_in(messages: Sequence[AnyMessage], judge: FromPerson | None = None) -> Iterator[Turn]:
    """Yield the question of each turn that a conversation still shows, first the oldest; `rest` is empty."""
    own: list[int] = []
    for place, message in enumerate(messages):
        if is_reply(message):
            if own:
                yield _turn(messages, own, own[-1] + 1)
            own = []
        elif is_from_person(message, judge):
            own.append(place)
    if own:
        yield _turn(messages, own, own[-1] + 1)


# Names ------------------------------------------------------------------------------------


def question_id(thread: str, turn: Turn) -> str:
    """Name a question: the same however often it is edited or answered again in its thread.

    Outside of threads message ids need not be unique, so what was asked counts as well.
    """
    return _name(
        "question",
        thread,
        turn.id or turn.place,
        "" if thread and turn.id else [encodable(turn.task), _seen(turn)],
    )


def turn_id(thread: str, turn: Turn, parent: str = "") -> str:
    """Name a turn by thread, message, content and ancestry: an edit or a fork makes another one.

    Args:
        thread: The thread's id; empty where there is no checkpointer.
        turn: The turn.
        parent: The name of the turn before, where it is known; it stands for all before.
    """
    return _name("turn", thread, turn.id or turn.place, encodable(turn.task), parent or _seen(turn))


def episode_id(turn: str, rest: Sequence[AnyMessage]) -> str:
    """Name what came of a turn: answered differently, it is another episode; resumed, the same."""
    return _name("episode", turn, [_content(message) for message in rest])


def _content(message: AnyMessage) -> JSON:
    # Ids of replies may differ each time that a state is read, and say nothing.
    calls = message.tool_calls if isinstance(message, AIMessage) else []
    asked = [[call["name"], encodable(canonical_json(call["args"]))] for call in calls]
    return [message.type, encodable(message.text), asked]


def _name(*parts: JSON) -> str:
    return f"{parts[0]}-{digest([*parts[1:]])[:32]}"


def _seen(turn: Turn) -> JSON:
    return [turn.before.type, encodable(strip_block(turn.before.text))] if turn.before else []


# Recalled text ----------------------------------------------------------------------------


def with_block(message: M, block: str) -> M:
    """Return a message with a recalled block after its text."""
    content = message.content
    ours: Any = {"type": "text", "text": block}
    told: Any = f"{content}\n\n{block}" if isinstance(content, str) else [*content, ours]
    return message.model_copy(update={"content": told})


def placed(messages: Sequence[AnyMessage], asked: Asked, block: str) -> list[AnyMessage]:
    """Put a block after a question, or after the last human message where the question is gone.

    The messages before it stay as they were in the turn before, and the block keeps its place as long as the
    turn lasts, which keeps prompt caches valid.
    """
    told, place = list(messages), find(messages, asked)
    if place is None:
        humans = (n for n, message in enumerate(told) if isinstance(message, HumanMessage))
        place = max(humans, default=None)
    if place is None:
        return [*told, HumanMessage(block)]
    told[place] = with_block(told[place], block)
    return told
