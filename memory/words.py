"""Words of a text, of scripts with spaces between words and without, and its approximate tokens."""

import math
import re
import unicodedata
from collections.abc import Sequence
from itertools import pairwise
from typing import Final

_WORD = re.compile(r"\w+")

BETWEEN = str.maketrans({code: " " for code in range(128) if not _WORD.match(chr(code))})
"""Blanks in the place of all ASCII characters that no word holds."""

# Letters and marks, without digits and punctuation. Written as escapes: readers lack the fonts.
_UNSPACED: Final = (
    "\u0e01-\u0e3a\u0e40-\u0e4e"  # Thai
    "\u0e81-\u0ebd\u0ec0-\u0ece\u0edc-\u0edf"  # Lao
    "\u0f00\u0f18\u0f19\u0f35\u0f37\u0f39\u0f40-\u0f84\u0f86-\u0fbc"  # Tibetan
    "\u1000-\u103f\u1050-\u108f\u109a-\u109d\ua9e0-\ua9ef\ua9fa-\ua9fe\uaa60-\uaa7f"  # Myanmar
    "\u1100-\u11ff\u3131-\u318e\ua960-\ua97c\uac00-\ud7fb"  # Hangul
    "\u1780-\u17d3\u17d7\u17dc\u17dd"  # Khmer
    "\u1950-\u1974\u1980-\u19c9\u1a20-\u1a7c\uaa80-\uaadd"  # Tai
    "\u3041-\u3096\u3099\u309a\u309d-\u309f\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # kana
    "\u3105-\u312f\u31a0-\u31bf\ua000-\ua48c"  # Bopomofo, Yi
    "\u3005-\u3007\u3021-\u3029\u303b\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"  # Han
    "\U00020000-\U0003fffd"
    "\uff66-\uffdc"  # kana and Hangul of half width
)
"""Characters of scripts that are written without spaces, and Hangul, as Lucene's CJK analyzer has it."""

_MARKED: Final = "\u0900-\u0963\u0966-\u096f\u0971-\u0df3"
"""Scripts of India: `\\w` leaves out their vowel signs, which are part of the word."""

SPACED: Final = rf"[^\W{_UNSPACED}]"
"""What `\\w` matches, without the characters of such scripts, for regular expressions."""

_RUN = re.compile(rf"[{_UNSPACED}]+")
_WORD_OR_RUN = re.compile(rf"{_RUN.pattern}|(?:{SPACED}|[{_MARKED}])+")
_OTHERS = re.compile("[\u0900-\u1cff\u2e80-\U0010ffff]")
"""Scripts of Asia and all that comes with them; Latin, Greek, Cyrillic and their like are elsewhere."""
_OTHER_WIDTH = re.compile(r"[\uff01-\uffdc]+")


def tokenize(text: str) -> list[str]:
    r"""Return the lowercase words of `text`, in order, repeats included.

    A word is a maximal run of Unicode letters, digits and underscores (`\w+`), after letters and
    their accents were put together (NFC), so that both ways to write "é" are one. Digits and
    one-character words stay, because "fridge 1" and "fridge 2" are different places; there is no
    stop-word list, because "not" and "then" carry meaning in instructions.

    A run of Chinese, Japanese, Korean, Thai, Lao, Khmer, Burmese or Tibetan gives its character
    bigrams instead, as in Lucene's CJK analyzer; a run of one character gives that character.
    Letters of full and half width are the usual ones.
    """
    if text.isascii():  # the same in half the time
        return text.lower().translate(BETWEEN).split()
    if not _OTHERS.search(text):
        return _WORD.findall(unicodedata.normalize("NFC", text.lower()))
    words = _WORD_OR_RUN.findall(_normal(text))
    return [token for word in words for token in _bigrams(word)]


def hidden_characters(text: str) -> list[str]:
    """Return the characters that `tokenize` shows in bigrams only, in order, repeats included.

    An index has them too, so that a query of one character finds the texts that hold it. They do
    not count in the length of a text.
    """
    found = runs(_normal(text)) if runs(text) else []
    return [character for run in found if len(run) > 1 for character in run]


def runs(text: str) -> list[str]:
    """Return the maximal runs of characters of scripts without spaces."""
    return [] if text.isascii() or not _OTHERS.search(text) else _RUN.findall(text)


def _normal(text: str) -> str:
    text = _OTHER_WIDTH.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    return unicodedata.normalize("NFC", text.lower())


def _bigrams(word: str) -> Sequence[str]:
    if len(word) == 1 or not _RUN.match(word):
        return (word,)
    return [first + second for first, second in pairwise(word)]


CHARACTERS_PER_TOKEN: Final = 4.0
"""The rule of thumb of `langchain_core.messages.utils.count_tokens_approximately`."""


def count_tokens_approximately(text: str, /) -> int:
    """Count tokens without a tokenizer or a download: four characters each.

    Tokenizers of models give about one token to each character of Chinese, Japanese, Korean, Thai
    and other scripts without spaces, so such characters count as one token each.
    """
    alone = sum(map(len, runs(text)))
    return math.ceil(alone + (len(text) - alone) / CHARACTERS_PER_TOKEN)
