r"""Final answers as texts state them: `\boxed{…}` or `the answer is …`."""

import re
from fractions import Fraction

_BOXED = re.compile(r"\\boxed\s*\{")
_STATED = re.compile(r"\banswer\s*(?:is|:|=)\s*:?[ \t]*(\S[^\n]*)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.;!?](?:\s|$)")
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,40}(?:,\d{3})*(?:\.\d{1,40})?(?:/\d{1,40})?(?![\w])")
_THEN_WORDS = re.compile(rf"[$*`]*({_NUMBER.pattern})[$*`]*,?\s+[^\W\d_]{{2,}}")
"""A number with words after it: a unit, or a reason."""
_BARE = str.maketrans("", "", "$* \t`\"'")


def final_answer(text: str) -> str:
    r"""Return the last answer that a text states, in a form that can be compared, or nothing.

    A boxed one counts before one that is called the answer. A number that is neither is no
    answer: advice is full of them. Equal numbers are equal however written: `0.50`, `1/2` and
    `$1/2$`, and `5 apples` is 5.
    """
    return _normal(_boxed(text) or _stated(text))


def _boxed(text: str) -> str:
    starts = [opened.end() for opened in _BOXED.finditer(text)]
    if not starts:
        return ""
    depth = 1
    for position in range(starts[-1], len(text)):
        depth += {"{": 1, "}": -1}.get(text[position], 0)
        if depth == 0:
            return text[starts[-1] : position]
    return ""


def _stated(text: str) -> str:
    found = _STATED.findall(text)
    answer = _SENTENCE_END.split(found[-1], maxsplit=1)[0] if found else ""
    number = _THEN_WORDS.match(answer)
    return number.group(1) if number else answer


def _normal(answer: str) -> str:
    bare = answer.translate(_BARE).rstrip(".,;:").casefold()
    number = bare.replace(",", "")
    if not _NUMBER.fullmatch(number):
        return bare
    try:
        return str(Fraction(number))
    except (ValueError, ZeroDivisionError):
        return bare
