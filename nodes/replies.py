"""What a model said, as text that can be kept, and as a part of a conversation.

A conversation shows a reply word for word, blanks included, and nothing that was not said: what is
wrong with it is for the turn after it to say. A reply that holds nothing has no turn at all, since
providers refuse empty ones. Reasoning between `<think>` and `</think>`, which some servers leave in
the text, is no part of a reply: it is neither read nor sent back.
"""

import re
from collections.abc import Sequence
from typing import Final

from langchain_core.messages import AIMessage, BaseMessage, merge_message_runs

FIX_SENTENCES: Final = 2
"""Of what was said beside a repair, which are filed as the fix that worked."""
_REASONING: Final = re.compile(r"<think(?:ing)?>.*?(?:</think(?:ing)?>\s*|\Z)", re.DOTALL)
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[^\s\d])|\n\s*\n")


def reply_text(message: BaseMessage) -> str:
    """Return the text of a message; of a model's reply, without its reasoning."""
    text = encodable(str(message.text))
    return _REASONING.sub("", text) if isinstance(message, AIMessage) else text


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
