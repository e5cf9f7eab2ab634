"""The words of a text, as the lexical rankers see them."""

import re

TOKENIZER = "lowercase unicode words"
"""What `tokenize` does, as it appears in manifests."""

_WORD = re.compile(r"\w+")


def tokenize(text: str) -> list[str]:
    r"""Return the lowercase words of `text`, in order, repeats included.

    A word is a maximal run of Unicode letters, digits and underscores (`\w+`). Digits and
    one-character words stay, because "fridge 1" and "fridge 2" are different places; there is no
    stop-word list, because "not" and "then" carry meaning in instructions.
    """
    return _WORD.findall(text.lower())
