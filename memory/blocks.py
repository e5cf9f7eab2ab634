"""A block of recalled text: the markers around it, and texts that can neither end it nor begin another.

Stored text must not end the block early or begin another one. To a language model
`< / Recalled-Memory >` ends it, and so do fullwidth letters, letters of other scripts that look the
same, and letters with invisible characters between them. Texts are therefore compared by their
*skeleton*: each character as what Unicode says it stands for, in lower case, without blanks,
accents and what cannot be seen, and then as what it looks like.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache
from itertools import islice
from typing import Final

NAME: Final = "recalled_memory"
"""What stands in both markers of a block."""

BLOCK_START: Final = f"<{NAME}>"
BLOCK_END: Final = f"</{NAME}>"

_BLOCK = re.compile(rf"{re.escape(BLOCK_START)}.*?(?:{re.escape(BLOCK_END)}\n?|\Z)", re.DOTALL)

DEFUSED: Final = "[marker removed]"
"""What stands in a text where it held a marker."""

# Written as escapes: a reader could not tell them from what they look like.
_LOOKS_LIKE: Final = {
    "<": "\u2039\xab\u3008\u2329\u27e8\u27ea\u300a\u276c\u276e\u2770\u227a\u1438\u02c2\u29fc",
    ">": "\u203a\xbb\u3009\u232a\u27e9\u27eb\u300b\u276d\u276f\u2771\u227b\u1433\u02c3\u29fd",
    "/": "\\\u2044\u2215\u29f8\u2571\u27cb\u3033\u4e3f\u2216\u29f5\u29f9\u2572\u27cd",
    "_": "-.:~\xb7\u2010\u2011\u2012\u2013\u2014\u2015\u2212\u203f\u2022\u23af\u30fc",
    "a": "@\u0430\u03b1\u0251\u13aa\u1d00\ua4ee\u2c81\u2c65",
    "c": "\u0441\u03f2\u1d04\u13df\ua4da\u2ca5\u0188\u023c",
    "d": "\u0501\u1d05\u13a0\ua4d3\u0111\u0256\u0257",
    "e": "\u0435\u03b5\u025b\u04bd\u1d07\u13ac\ua4f0\u2c89\u0247",
    "l": "1i|!\u0131\u03b9\u0456\u04cf\u01c0\u029f\u13de\ua4e1\u0142\u019a\u026b\u026d",
    "m": "\u043c\u1d0d\u13b7\ua4df\u2c99\u0271",
    "o": "0\u043e\u03bf\u03c3\u0585\u1d0f\u13be\ua4f3\u2c9f\xf8\u0275",
    "r": "\u0433\u1d26\u0280\u13a1\ua4e3\u024d\u027c\u027d\u027e",
    "y": "\u0443\u04af\u03b3\u028f\u13a9\ua4ec\u2ca9\u01b4\u024f\u1eff",
}
"""A character → others that pass for it and are not its forms in Unicode."""
_DRAWN: Final = {
    chr(first + place): chr(ord("a") + place)
    for first in (0x1F150, 0x1F170, 0x1F1E6)  # letters on black disks, on black squares, of flags
    for place in range(26)
}
_ALIKE: Final = _DRAWN | {
    other: one for one, others in _LOOKS_LIKE.items() for other in others.casefold()
}
_UNSEEN_KINDS: Final = frozenset({"Mn", "Me", "Cf", "Cc", "Zs", "Zl", "Zp"})
_UNSEEN: Final = frozenset("\u115f\u1160\u2800\u3164\uffa0")

_OPENING: Final = re.compile(
    rf"[<\u226e\u2280\ufe3d\ufe3f\ufe64\uff1c{_LOOKS_LIKE['<']}]|&(?:lt|#0*60|#x0*3c)(?![a-z0-9]);?",
    re.IGNORECASE,
)
_CLOSE: Final = "(?:>|&(?:gt|#o*62|#xo*3e);?)"
_MARKED: Final = "recalled_*(?:m|rn)e(?:m|rn)ory"
_REST: Final = re.compile(rf"/+{_MARKED}{_CLOSE}?|{_MARKED}/*(?:[^<>]*=[^<>]*)?{_CLOSE}")
"""What follows an opening bracket, as a skeleton: a marker that ends the block, whole or not, or
a whole one that begins it."""
_LONGEST: Final = 160
"""Characters of a skeleton that are looked at behind an opening bracket."""


def strip_block(text: str) -> str:
    """Take recalled blocks out of a text, so that memory never feeds on itself.

    Of a block that is not ended, such as one quoted in a reply that was cut, all is taken. What
    is left holds no block: where the two sides of one would make a marker, a blank parts them.
    """
    first, *others = _BLOCK.split(text)
    kept, end = [first], first
    for piece in others:
        if BLOCK_START in end[1 - len(BLOCK_START) :] + piece[: len(BLOCK_START) - 1]:
            kept.append(" ")
            end = ""
        kept.append(piece)
        end = end[1 - len(BLOCK_START) :] + piece
    return "".join(kept)


def without_markers(text: str) -> str:
    """Put `DEFUSED` where a text holds a marker, or what looks like one, and change nothing else.

    Doing so again changes nothing at all.
    """
    kept: list[str] = []
    done = 0
    for opening in _OPENING.finditer(text):
        end = _marker_end(text, opening.end())
        if end is not None:
            kept += (text[done : opening.start()], DEFUSED)
            done = end
    return "".join((*kept, text[done:]))


def _marker_end(text: str, start: int) -> int | None:
    """Return where the marker ends whose opening bracket ends at `start`, if it is one."""
    seen = list(islice(_seen(text, start), 1))
    if not seen or seen[0][0] not in "/r":
        return None  # nearly all brackets
    seen = list(islice(_seen(text, start), _LONGEST))
    marker = _REST.match("".join(letter for letter, _ in seen))
    return None if marker is None else seen[marker.end() - 1][1]


def _seen(text: str, start: int) -> Iterator[tuple[str, int]]:
    """Yield each character of the skeleton with the place behind what it stands for.

    It ends at the next opening bracket, so that no text is gone through more than twice.
    """
    for at in range(start, len(text)):
        skeleton = _skeleton(text[at])
        if skeleton == "<":
            return
        for letter in skeleton:
            yield letter, at + 1


@lru_cache(maxsize=4096)
def _skeleton(character: str) -> str:
    """Return what a character looks like; empty where it shows nothing."""
    return "".join(
        _ALIKE.get(letter, letter)
        for letter in unicodedata.normalize("NFKD", character).casefold()
        if letter not in _UNSEEN and unicodedata.category(letter) not in _UNSEEN_KINDS
    )


def looks_like(text: str) -> str:
    """Return a text in the plain letters that it passes for, without what cannot be seen; blanks stay."""
    return "".join(
        letter if letter.isspace() or letter.isascii() else _skeleton(letter) for letter in text
    )
