"""What a model said, as text that can be kept, and as a part of a conversation.

A conversation shows a reply word for word, blanks included, and nothing that was not said: what is
wrong with it is for the turn after it to say. A reply that holds nothing has no turn at all, since
providers refuse empty ones. Reasoning up to `</think>`, which some servers leave in the text, is no
part of a reply: it is neither read, kept, reflected on nor sent back.

JSON is found in a reply among prose and fences, and made fit to be kept.
"""

import json
import math
import re
from collections.abc import Iterator, Sequence
from typing import Any, Final

from langchain_core.messages import AIMessage, BaseMessage, merge_message_runs
from langchain_core.utils.json import parse_json_markdown

from langgraft._core.untrusted import bounded, unreadable_as
from langgraft.memory.model import BLOCK_END, BLOCK_START, strip_block

FIX_SENTENCES: Final = 2
"""Of what was said beside a repair, which are filed as the fix that worked."""
_REASONING: Final = re.compile(
    r"(?P<begin><think(?:ing)?>|\[THINK\]|<\|channel\|>analysis<\|message\|>)"
    r"|(?:</think(?:ing)?>|\[/THINK\]|<\|channel\|>final<\|message\|>)\s*",
    re.IGNORECASE,
)
"""Its marks, as DeepSeek's, Qwen's and most others' have them, Mistral's, and OpenAI's open models'."""
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[^\s\d])|\n\s*\n")


@unreadable_as(lambda _: "")
def reply_text(message: BaseMessage) -> str:
    """Return the text of a message; of a model's reply, without its reasoning and within bounds."""
    if not isinstance(message, AIMessage):
        return encodable(str(message.text))
    return bounded(_without_reasoning(encodable(str(message.text))))


def _without_reasoning(text: str) -> str:
    """Cut reasoning: what stands between its marks, and what is never ended.

    Where a prompt opens it for the model, as templates of reasoning models do, only the end is in
    the text; and reasoning itself may speak of its marks, one at a time or in pairs.
    """
    outside: list[str] = []
    inside, ended = False, 0
    for mark in _REASONING.finditer(text):
        if not mark["begin"]:
            if not inside:  # It was begun by the prompt, or went on behind an end it only spoke of.
                outside = outside[:1] or [""]
            inside, ended = False, mark.end()
        elif not inside:
            outside.append(text[ended : mark.start()])
            inside = True
    return "".join(outside if inside else [*outside, text[ended:]])


def in_turns(messages: Sequence[BaseMessage]) -> list[BaseMessage]:
    """Return a conversation whose roles take turns, as some servers want them.

    Replies that hold nothing go, and what a user says twice in a row becomes one message.
    """
    holding = [
        message
        for message in messages
        if not isinstance(message, AIMessage) or message.text.strip() or message.tool_calls
    ]
    return merge_message_runs(holding, chunk_separator="\n\n")


def encodable(text: str) -> str:
    """Replace lone surrogates by question marks.

    They reach a reply through a JSON escape cut in two, and no file, log or store holds them.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def first_sentences(text: str, count: int = FIX_SENTENCES) -> str:
    """Return the first sentences of a text, on one line."""
    sentences = (" ".join(part.split()) for part in _SENTENCE.split(text))
    return " ".join([part for part in sentences if part][:count])


LONGEST_INTEGER = 300
"""Digits of an integer that a float can still hold."""
MOST_BROKEN = 1000
"""Broken lists and objects after which a text is searched no further: `json` counts the lines of
the whole text for each."""

_OPENING = re.compile(rf"[\[{{]|{re.escape(BLOCK_START)}")


_LIST = re.compile(r"\[\s*\{")
_NEXT_ENTRY = re.compile(r"\s*,\s*\{")


def json_values(text: str) -> Iterator[Any]:
    """Find the JSON values in a text: the whole text, what a fence holds, or lists and objects.

    What stands in a value that is cut off or broken, or in memory that is quoted, is not a value
    of its own.

    Raises:
        RecursionError: A value is nested more deeply than Python can follow.
    """
    try:
        yield _whole(text)
    except json.JSONDecodeError:
        yield from _embedded(text)


def _whole(text: str) -> Any:
    # Where memory is quoted, the fence may be one of its own.
    if BLOCK_START in text:
        return _DECODER.decode(text.strip())
    return parse_json_markdown(text, parser=_DECODER.decode)


def _embedded(text: str) -> Iterator[Any]:
    position = broken = 0
    while broken < MOST_BROKEN and (opening := _OPENING.search(text, position)):
        start = opening.start()
        if opening.group() == BLOCK_START:
            end = text.find(BLOCK_END, start)
            position = len(text) if end < 0 else end
            continue
        try:
            value, position = _DECODER.raw_decode(text, start)
        except json.JSONDecodeError as error:
            position, broken = max(start + 1, error.pos), broken + 1
        else:
            yield value


def entries_of_cut_list(text: str) -> list[Any]:
    """Return the objects of a list that is never closed: those that are whole.

    Raises:
        RecursionError: One is nested more deeply than Python can follow.
    """
    opening = _LIST.search(text)
    if opening is None or BLOCK_START in text:
        return []
    entries: list[Any] = []
    position = opening.end() - 1
    while True:
        try:
            entry, position = _DECODER.raw_decode(text, position)
        except json.JSONDecodeError:
            return entries
        entries.append(entry)
        following = _NEXT_ENTRY.match(text, position)
        if following is None:
            return [] if text[position:].lstrip().startswith("]") else entries
        position = following.end() - 1


def _integer(digits: str) -> float:
    return int(digits) if len(digits) <= LONGEST_INTEGER else math.inf


# Line breaks within strings are a common slip; a value that is cut off is not repaired.
_DECODER = json.JSONDecoder(strict=False, parse_int=_integer)


def cleaned(value: Any) -> Any:
    """Take out of a value what cannot be stored, and memory that was quoted.

    Raises:
        ValueError: A number is not finite.
    """
    match value:
        case str():
            return _clean(value)
        case list():
            return [cleaned(part) for part in value]
        case dict():
            return {_clean(name): cleaned(part) for name, part in value.items()}
        case float() if not math.isfinite(value):
            msg = "a number is not finite"
            raise ValueError(msg)
    return value


def _clean(text: str) -> str:
    return strip_block(encodable(text)).strip()
