"""What a model said, as text that can be kept."""

import re
from typing import Final

from langchain_core.messages import BaseMessage

FIX_SENTENCES: Final = 2
"""Of what was said beside a repair, which are filed as the fix that worked."""
_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+(?=[^\s\d])|\n\s*\n")


def reply_text(message: BaseMessage) -> str:
    """Return the text of a model's reply."""
    return encodable(str(message.text))


def encodable(text: str) -> str:
    """Replace lone surrogates by question marks.

    They reach a reply through a JSON escape cut in two, and no file, log or store holds them.
    """
    return text.encode("utf-8", "replace").decode("utf-8")


def first_sentences(text: str, count: int = FIX_SENTENCES) -> str:
    """Return the first sentences of a text, on one line."""
    sentences = (" ".join(part.split()) for part in _SENTENCE.split(text))
    return " ".join([part for part in sentences if part][:count])
