"""How long a text is, in tokens."""

import math
from typing import Protocol

CHARACTERS_PER_TOKEN = 4.0
"""The rule of thumb of `langchain_core.messages.utils.count_tokens_approximately`."""


class TokenCounter(Protocol):
    """Anything that counts the tokens of a text: a tokenizer's `lambda t: len(encode(t))`."""

    def __call__(self, text: str, /) -> int:
        """Return the number of tokens of `text`."""
        ...


def count_tokens_approximately(text: str, /) -> int:
    """Count tokens at four characters each, without a tokenizer or a download."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)
