"""The words of a text, as the lexical rankers see them."""

import re
import unicodedata

TOKENIZER = "lowercase unicode words, NFC"
"""What `tokenize` does, as it appears in manifests."""

_WORD = re.compile(r"\w+")


def tokenize(text: str) -> list[str]:
    r"""Return the lowercase words of `text`, in order, repeats included.

    A word is a maximal run of Unicode letters, digits and underscores (`\w+`), after letters and
    their accents were put together (NFC), so that both ways to write "é" are one. Digits and
    one-character words stay, because "fridge 1" and "fridge 2" are different places; there is no
    stop-word list, because "not" and "then" carry meaning in instructions.
    """
    return _WORD.findall(unicodedata.normalize("NFC", text.lower()))
