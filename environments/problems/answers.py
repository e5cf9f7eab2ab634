r"""What a reply gives as its answer, and an answer's parts: the conventions, before any mathematics.

    final_answer(r"So $x = \boxed{\frac12}$.")   # r"\frac12"
    readings(r"30^\circ, 150^\circ")             # one: a set of two expressions, each in degrees

An answer is an expression, words, or made of answers: a tuple or an interval (in order, with its
brackets), a matrix, a set (in any order; what is listed without braces is one), a union. docs/problems.md
has the conventions.
"""

import re
import unicodedata
from dataclasses import dataclass
from typing import Final, TypeAlias

from langgraft._core.untrusted import unreadable_as

LONGEST: Final = 2_000
"""Characters of an answer that are read; what is longer is no answer."""

_DEEPEST: Final = 20
"""Brackets within brackets that are taken apart."""


@dataclass(frozen=True, slots=True)
class Expression:
    """Mathematics that is compared by its value."""

    text: str
    """LaTeX, without its unit."""
    unit: str = ""
    """As it is called in `_UNITS`; empty where there is none, or one that is not known."""
    percent: bool = False
    names: str = ""
    """What it is said to be the value of, as `y` in `y = 2x`."""


@dataclass(frozen=True, slots=True)
class Words:
    """A name, a choice, a date or a time, in lower case and without blanks or full stops."""

    text: str


@dataclass(frozen=True, slots=True)
class Several:
    """Answers that make one."""

    kind: str
    """`set` and `union` have no order; others do: `row` of a matrix, `matrix`, or a pair of brackets."""
    parts: "tuple[Answer, ...]"


Answer: TypeAlias = Expression | Words | Several

_SYMBOLS: Final = {
    "\u2212": "-",
    "\u2013": "-",
    "\u00d7": r"\times ",
    "·": r"\cdot ",
    "÷": "/",
    "°": r"^\circ ",
    "π": r"\pi ",
    "θ": r"\theta ",
    "∞": r"\infty ",
    "±": r"\pm ",
    "\u222a": r"\cup ",
    "∈": r"\in ",
    "∅": r"\emptyset ",
    "≤": r"\le ",
    "≥": r"\ge ",
    "≠": r"\ne ",
    "!=": r"\ne ",
    "≈": r"\approx ",
    "½": r"\frac{1}{2}",
    "¼": r"\frac{1}{4}",
    "¾": r"\frac{3}{4}",
    "\u00a0": " ",
    "€": "",
    "£": "",
    r"\leqslant": r"\le ",
    r"\geqslant": r"\ge ",
    r"\dots": r"\ldots",
    r"\lg ": r"\log_{10} ",
}
_POWERS: Final = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_LARGE: Final = re.compile(
    rf"(?<=\d)\s*(?:\\text\s*\{{)?\s*({'|'.join(_POWERS)})(?![a-z])\s*\}}?", re.IGNORECASE
)
_CASES: Final = re.compile(r"\\begin\{cases\}([^&]*)\\end\{cases\}")
_CHOSEN: Final = re.compile(r"\\text(?:bf|rm)?\s*\{\s*(\([A-Z]\))\s*\}\s*(\S.*)")
_IN_PARENTHESES: Final = re.compile(r"(?:\^|\\sqrt(?:\s*\[[^\[\]]*\])?)\s*\(")
_SQUARE_ROOT: Final = re.compile(r"√\s*(\d+|\([^()]*\))|(?<![\\a-z])sqrt\(([^()]*)\)")

_UNITS: Final = {
    name: unit
    for unit, names in {
        "mm": "mm millimeter millimetre",
        "cm": "cm centimeter centimetre",
        "m": "m meter metre",
        "km": "km kilometer kilometre",
        "in": "in inch inche",
        "ft": "ft foot feet",
        "yd": "yd yard",
        "mi": "mi mile",
        "g": "g gram",
        "kg": "kg kilogram",
        "lb": "lb pound",
        "oz": "oz ounce",
        "ml": "ml milliliter millilitre",
        "l": "l liter litre",
        "s": "s sec second",
        "min": "min minute",
        "h": "h hr hour",
        "day": "day",
        "week": "week",
        "month": "month",
        "year": "yr year",
        "dollar": "dollar usd",
        "cent": "cent",
        "mph": "mph mi/h milesperhour",
        "m/s": "m/s meterspersecond",
        "degree": "degree deg",
        "radian": "radian rad",
    }.items()
    for name in names.split()
}
_KNOWN_WORDS: Final = frozenset(
    [
        "sin",
        "cos",
        "tan",
        "cot",
        "sec",
        "csc",
        "arcsin",
        "arccos",
        "arctan",
        "sinh",
        "cosh",
        "tanh",
        "log",
        "ln",
        "lg",
        "exp",
        "sqrt",
        "pi",
        "theta",
        "alpha",
        "beta",
        "gamma",
        "max",
        "min",
        "gcd",
        "lcm",
        "mod",
        "det",
        "infty",
        "inf",
        "binom",
        "frac",
        "dim",
        "deg",
    ]
)
"""What in an expression looks like words, and is none."""

_TEXT: Final = re.compile(
    r"\\(?:text(?:bf|it|rm|sf|tt|normal)?|mbox|hbox|mathrm|mathbf|mathit|textrm|operatorname)\s*\{([^{}]*)\}"
)
_SPACE: Final = re.compile(
    r"(?<!\\)\\[,;:! ]|\\q?quad(?![a-zA-Z])|\\displaystyle|\\textstyle|(?<!\\)~"
)
_SIZE: Final = re.compile(r"\\(?:left|right|[bB]igg?[lrm]?)(?![a-zA-Z])\s*\.?")
_THOUSANDS: Final = re.compile(
    r"(?<![\d.,])(\d{1,3}(?:(?:\{,\}|,|\\,| )(?:\\!)?\s?\d{3})+)(?!\d|,\d| ?/)"
)
_COMMA_INSIDE: Final = re.compile(r"frac\s*(?:\{[^{}]*\})?\s*\{[^{}]*\d,")
"""A comma in a fraction, which parts thousands and no list."""
_DEGREE: Final = re.compile(r"\s*\^\s*\{?\s*\\circ\s*\}?|\s*\\degree(?![a-zA-Z])")
_TRIGONOMETRY: Final = re.compile(r"\\?(?:sin|cos|tan|cot|sec|csc)(?![a-z])")
_SHORT_FRACTION: Final = re.compile(r"\\[dtc]?frac\s*(\d)\s*(\d)")
_HALF_SHORT: Final = re.compile(r"\\[dtc]?frac\s*(?:(\d)\s*(?=\{)|(\{[^{}]*\})\s*(\d))")
_OVER: Final = re.compile(r"\{\s*([^{}]*?)\s*\\over(?![a-zA-Z])\s*([^{}]*?)\s*\}")
_MIXED: Final = re.compile(
    r"(?<![\w.^}\\])(-?)\s*(\d+)\s*(?:\\frac\{(\d+)\}\{(\d+)\}|\s(\d+)/(\d+))(?![\d/])"
)
_REPEATING: Final = re.compile(r"(\d*)\.(\d*)\\(?:overline|bar|dot)\s*\{?(\d+)\}?")
_SCIENTIFIC: Final = re.compile(r"(?<![\w.])(\d+(?:\.\d*)?|\.\d+)[eE]([+-]?\d{1,3})(?!\w)")
_NAMED: Final = re.compile(
    r"^(?:(?:\\angle|\\triangle)\s*)?(\(?\s*(?:\\?[a-zA-Z]+|\\(?:math(?:bf|rm)|vec)\{\w+\}|P\([^()=]*\)|\\frac\{d\w\}\{d\w\})(?:_(?:\w+|\{\w+\}))?(?:\s*,\s*\\?[a-zA-Z]+)*\s*\)?"
    r"(?:\(\s*[a-zA-Z]\s*\))?)\s*(?:=|\\in(?![a-zA-Z]))\s*(?=\S)"
)
_JOINED: Final = re.compile(
    r"\s*,?\s*(?:;|\\text\s*\{\s*,?\s*(?:and|or)\s*\}|(?<![a-zA-Z\\])(?:and|or)(?![a-zA-Z]))\s*"
)
_MATRIX: Final = re.compile(
    r"\\begin\{([pbvBV]?matrix|array)\}(?:\s*\{[clr|\s]*\})?(.*?)\\end\{\1\}", re.DOTALL
)
_COMPARED: Final = re.compile(r"\\leq?(?![a-z])|\\geq?(?![a-z])|\\lt(?![a-z])|\\gt(?![a-z])|[<>]=?")
_FLIPPED: Final = {"<": ">", "<=": ">=", ">": "<", ">=": "<="}
_EMPTY: Final = re.compile(
    r"\\(?:emptyset|varnothing)|\\\{\s*\\\}|(?:\\text\s*\{)?\s*(?:there (?:is|are) )?no (?:real )?solutions?\s*\}?",
    re.IGNORECASE,
)
_LETTERS: Final = re.compile(r"[a-zA-Z]{3,}")
_RATIO: Final = re.compile(r" ?: ?")
_NAMED_RATIO: Final = re.compile(r"^[A-Za-z][\w{}]*\s*:\s*[A-Za-z][\w{}]*\s*=\s*")
_TIME: Final = re.compile(r"\d{1,2}:[0-5]\d")
_REALS: Final = re.compile(
    r"\\mathbb\s*\{?\s*R\s*\}?|\\Re|(?:\\text\s*\{)?\s*all (?:reals|real (?:numbers|values))(?: of [a-z])?\s*\}?",
    re.IGNORECASE,
)
_BUILT: Final = re.compile(
    r"\\\{\s*(\w)\s*(?:\\in\s*\\mathbb\s*\{?\s*R\s*\}?\s*)?(?:\\mid|\\vert|[|:])\s*(\S.*)\\\}"
)
"""Set-builder notation over the reals: its variable and its condition."""
_EXCEPT: Final = re.compile(
    r"(?:\\?[a-zA-Z]+\s*\\neq?(?![a-z])|\\mathbb\s*\{?R\}?\s*\\(?:setminus|backslash)\s*\\\{(?=[^,]*\\\}$))"
    r"\s*(.+?)(?:\\\})?"
)
_NUMERALS: Final = {
    word: str(number)
    for number, word in enumerate(
        [
            "zero",
            "one",
            "two",
            "three",
            "four",
            "five",
            "six",
            "seven",
            "eight",
            "nine",
            "ten",
            "eleven",
            "twelve",
            "thirteen",
            "fourteen",
            "fifteen",
            "sixteen",
            "seventeen",
            "eighteen",
            "nineteen",
            "twenty",
        ]
    )
}
_OPENING: Final = "([{⟨"
_CLOSING: Final = ")]}⟩"


def readings(text: str) -> tuple[Answer, ...]:
    """Read an answer in each way that it can be meant: `30,150` is one number, or else two.

    Returns:
        Nothing where there is no answer, or one of more than `LONGEST` characters.
    """
    if len(text) > LONGEST:
        return ()
    ways = dict.fromkeys([_joined_thousands(text)])
    if not _COMMA_INSIDE.search(text):
        ways[re.sub(r"(?<=\d),(?=\d)", ", ", text)] = None
    plain = [_plain(way) for way in ways]
    plain += [_RATIO.sub("/", way) for way in plain if _is_ratio(way)]
    if chosen := _CHOSEN.fullmatch(plain[0]):
        plain += chosen.groups()  # a choice with what it says: either will do
    read = (_read(way, 0) for way in plain)
    return tuple(dict.fromkeys(each for each in read if each is not None))


def _is_ratio(text: str) -> bool:
    """Say whether a text is two whole numbers with a colon between them, and no time of day."""
    return re.fullmatch(r"\d+ ?: ?\d+", text) is not None and not _TIME.fullmatch(text)


def _joined_thousands(text: str) -> str:
    return _THOUSANDS.sub(lambda found: re.sub(r"[^\d]", "", found[1]), text)


def _plain(text: str) -> str:
    """Write what is written in several ways in one of them."""
    text = unicodedata.normalize("NFC", text)
    for symbol, latex in _SYMBOLS.items():
        text = text.replace(symbol, latex)
    text = _SQUARE_ROOT.sub(lambda found: rf"\sqrt{{{(found[1] or found[2]).strip('()')}}}", text)
    text = re.sub(r"(?<![\\a-z])sqrt\s*(?=\()", r"\\sqrt", text)
    text = re.sub(r"(?<!\\)\\[()\[\]](?![a-zA-Z])", " ", re.sub(r"(?<!\\)\$", " ", text))
    text = re.sub(r"(?<=[\w)}])\*\*(?=[\w({-])", "^", text)
    text = re.sub(r"\*\*|__", " ", text)
    text = _SIZE.sub(" ", _SPACE.sub(" ", text))
    text = text.replace(r"\langle", "⟨").replace(r"\rangle", "⟩")
    text = re.sub(r"\\lbrace(?![a-zA-Z])", r"\\{", re.sub(r"\\rbrace(?![a-zA-Z])", r"\\}", text))
    text = re.sub(
        r"\\(?:math(?:rm|bf|it)|boldsymbol|bm)\s*\{\s*([ie]|-?\d[\d.]*)\s*\}", r"\1", text
    )
    text = re.sub(
        r"\\(?:operatorname|mathrm|text)\s*\{\s*((?:arc)?(?:sin|cos|tan|cot|sec|csc)|ln|log)\s*\}",
        r"\\\1 ",
        text,
    )
    text = re.sub(r"\\sqrt\s*(\[[^\[\]]*\])\s*(\w)", r"\\sqrt\1{\2}", text)
    text = re.sub(r"\\underline\s*\{([^{}]*)\}", r"\1", text)
    text = re.sub(r"\s*\\pmod\s*\{[^{}]*\}$", "", text)
    text = re.sub(r"\}\s*/\s*\\(?:text|mathrm)\s*\{\s*", "/", text)
    text = re.sub(r"(?<=\d)\\text\s*\{([A-Z])\}(?=\w*_)", r"\1", text)
    text = _CASES.sub(lambda found: found[1].replace(r"\\", ","), text)
    text = _LARGE.sub(lambda found: rf"\cdot 10^{{{_POWERS[found[1].casefold()]}}}", text)
    text = re.sub(r"_\s*\{?\s*\\text\s*\{\s*(\w+)\s*\}\s*\}?", _subscript, text)
    text = re.sub(r"\\[dtc]frac", r"\\frac", _OVER.sub(r"\\frac{\1}{\2}", text))
    text = re.sub(r"\\frac\s*(\\pi|\w)\s*(\\pi(?![a-z])|\w)", r"\\frac{\1}{\2}", text)
    text = _SHORT_FRACTION.sub(r"\\frac{\1}{\2}", text)
    text = _HALF_SHORT.sub(
        lambda found: rf"\frac{{{found[1]}}}" if found[1] else rf"\frac{found[2]}{{{found[3]}}}",
        text,
    )
    text = _REPEATING.sub(_repeating, text)
    text = _SCIENTIFIC.sub(r"\1\\cdot 10^{\2}", text)
    return re.sub(r"\s+", " ", _braced(text)).strip().rstrip(".,;").strip()


def _braced(text: str) -> str:
    """Write powers and roots that stand in parentheses in braces, also within each other.

    The parser of LaTeX ends them at the first `)`: to it `2^(2^(2^2))` begins with `2^{2^(2^2}`.
    """
    begins = {found.end() - 1 for found in _IN_PARENTHESES.finditer(text)}
    signs, opened = list(text), list[int]()
    for at, sign in enumerate(text):
        if sign == "(":
            opened.append(at)
        elif sign == ")" and opened and (start := opened.pop()) in begins:
            signs[start], signs[at] = "{", "}"
    return "".join(signs)


def _subscript(found: re.Match[str]) -> str:
    return rf"_{{{_NUMERALS.get(found[1].casefold(), found[1])}}}"


def _repeating(found: re.Match[str]) -> str:
    whole, fixed, period = found[1], found[2], found[3]
    below = int("9" * len(period) + "0" * len(fixed))
    above = int(f"{whole}{fixed}{period}") - int(f"{whole}{fixed}" or "0")
    return rf"\frac{{{above}}}{{{below}}}"


def _read(text: str, depth: int) -> Answer | None:
    text = re.sub(r"^\\approx\s*", "", text.strip())
    if not text or depth > _DEEPEST:
        return None
    if _EMPTY.fullmatch(text):
        return Several("set", ())
    if _REALS.fullmatch(text):
        return _several("()", [r"-\infty", r"\infty"], depth)
    if built := _BUILT.fullmatch(text):
        return _read(built[2], depth + 1)
    text = _NAMED_RATIO.sub("", text)
    if ":" in text:
        return Words(_words(text))
    inner = _TEXT.fullmatch(text)
    if inner and not _is_unit_like(inner[1]):
        return _read_words(inner[1], depth)
    if matrix := _MATRIX.search(text):
        return _read_matrix(text, matrix, depth)
    name, text = _name_of(text)
    if parts := _parts(text):
        return _several(*parts, depth)
    if re.fullmatch(r"\(\s*[A-Za-z]\s*\)", text):
        return Words(_words(text[1:-1]))
    return _interval(text, depth) or _read_single(name, text)


def _parts(text: str) -> tuple[str, list[str]] | None:
    """Return the kind and the parts of a union, a list, a set, a tuple or an interval."""
    unions = _split(text, r"\cup")
    if len(unions) > 1:
        return "union", unions
    listed = _JOINED.sub(",", text)
    parts = _split(listed, ",")
    if len(parts) > 1:
        # Inequalities that "or" joins are all of their intervals.
        either = "or" in text and all(map(_COMPARED.search, parts))
        return "union" if either else "set", parts
    if text.startswith(r"\{") and text.endswith(r"\}"):
        return "set", _split(listed[2:-2], ",")
    if re.fullmatch(r"\{[^{}]*,[^{}]*\}", text):
        return "set", _split(listed[1:-1], ",")
    if _is_enclosed(text) and len(parts := _split(text[1:-1], ",")) > 1:
        return _bracket(text[0]) + _bracket(text[-1]), parts
    return None


def _name_of(text: str) -> tuple[str, str]:
    """Return what an answer says it is the value of, and the rest."""
    named = _NAMED.match(text)
    if named is None or "=" in text[named.end() :]:
        return "", text
    return re.sub(r"\s", "", named[1]), text[named.end() :]


def _bracket(one: str) -> str:
    return {"⟨": "(", "⟩": ")"}.get(one, one)


def _is_enclosed(text: str) -> bool:
    """Say whether one pair of brackets, maybe of an interval, holds all."""
    if text[0] not in "([⟨" or text[-1] not in ")]⟩":
        return False
    level = 0
    for at, each in enumerate(text):
        level += (each in _OPENING) - (each in _CLOSING)
        if not level:
            return at == len(text) - 1
    return False


def _split(text: str, separator: str) -> list[str]:
    """Split where no bracket is open."""
    parts, level, start, at = [], 0, 0, 0
    while at < len(text):
        level += (text[at] in _OPENING) - (text[at] in _CLOSING)
        if level == 0 and text.startswith(separator, at):
            parts.append(text[start:at])
            at += len(separator)
            start = at
        else:
            at += 1
    return [*parts, text[start:]]


def _several(kind: str, parts: list[str], depth: int) -> Answer | None:
    read = [_read(part, depth + 1) for part in parts]
    if None in read:
        return None
    answers = [each for each in read if each is not None]
    if kind == "set":
        # A list in a list is one: `\{\pm 1\}`, and each side of a `\pm` is an answer of its own.
        answers = [
            one
            for each in answers
            for one in (each.parts if isinstance(each, Several) and each.kind == "set" else (each,))
        ]
        if len(answers) == 1:
            return answers[0]
    return Several(kind, tuple(answers))


def _read_matrix(text: str, found: re.Match[str], depth: int) -> Answer | None:
    around = _NAMED.sub("", text[: found.start()] + "M" + text[found.end() :])
    if re.sub(r"[\s()\[\]]", "", around) != "M":
        return Expression(text)
    rows = [row for row in re.split(r"\\\\(?:\[[^\]]*\])?", found[2]) if row.strip()]
    read = [_several("row", row.split("&"), depth) for row in rows]
    if not rows or None in read:
        return None
    if len(rows) > 1 and not any("&" in row for row in rows):
        return _several("()", rows, depth)  # a column is a vector, as `(1,2)` is
    return Several("matrix", tuple(each for each in read if each is not None))


def _interval(text: str, depth: int) -> Answer | None:
    """Read inequalities of one variable as the interval that they say."""
    if but := _EXCEPT.fullmatch(text):
        sides = [rf"(-\infty,{but[1]})", rf"({but[1]},\infty)"]
        return _several("union", sides, depth)
    signs = _COMPARED.findall(text)
    if not 1 <= len(signs) <= 2:  # noqa: PLR2004  (one-sided, two-sided)
        return None
    signs = [{"\\l": "<", "\\g": ">"}.get(each[:2], each[0]) + _equal(each) for each in signs]
    sides = [each.strip() for each in _COMPARED.split(text)]
    if len(signs) == 1 and not _is_variable(sides[0].lstrip("-")):
        sides, signs = sides[::-1], [_FLIPPED[signs[0]]]
    if len(signs) == 1 and sides[0].startswith("-"):
        sides, signs = [sides[0][1:], f"-({sides[1]})"], [_FLIPPED[signs[0]]]
    if len(signs) == 1:
        variable, ends = sides[0], ("", sides[1]) if signs[0][0] == "<" else (sides[1], "")
        closed = (False, signs[0] == "<=") if ends[1] else (signs[0] == ">=", False)
    else:
        if signs[0][0] != signs[1][0]:
            return None
        if signs[0][0] == ">":
            sides, signs = sides[::-1], [_FLIPPED[each] for each in reversed(signs)]
        variable, ends = sides[1], (sides[0], sides[2])
        closed = signs[0] == "<=", signs[1] == "<="
    if not _is_variable(variable):
        return None
    low, high = ends[0] or r"-\infty", ends[1] or r"\infty"
    brackets = ("[" if closed[0] else "(") + ("]" if closed[1] else ")")
    return _several(brackets, [low, high], depth)


def _equal(sign: str) -> str:
    return "=" if sign.endswith(("=", "e", "q")) else ""


def _is_variable(text: str) -> bool:
    variable = r"\\?[a-zA-Z]+(?:_\{?\w\}?)?(?:\([a-z]\))?"
    return re.fullmatch(variable, text) is not None and text != r"\infty"


def _read_words(text: str, depth: int) -> Answer | None:
    """Read what stands in a `text`: words, or a list of them."""
    parts = _JOINED.sub(",", text).split(",")
    if len(parts) > 1:
        return _several("set", [rf"\text{{{part.strip()}}}" for part in parts], depth)
    return _word(text)


def _word(text: str) -> Answer:
    """Read words, or the number that they spell."""
    words = _words(text)
    return Expression(_NUMERALS[words]) if words in _NUMERALS else Words(words)


def _words(text: str) -> str:
    text = _TEXT.sub(r" \1 ", text)
    return re.sub(r"[\s.\\{}]|^\(|\)$", "", text.strip()).casefold()


def _is_unit_like(text: str) -> bool:
    return _measured(f"1 {text}") is not None and not text.strip()[:1].isalpha()


_AMOUNT: Final = re.compile(
    r"^(?P<amount>.*?[\d})!]|.*?\\(?:pi|infty))\s*"
    r"(?P<unit>\\(?:text(?:bf|it|rm|normal)?|mbox|mathrm|hbox)\s*\{[^{}]*\}|(?<![a-zA-Z\\])[a-zA-Z][a-zA-Z/ ]*[a-zA-Z])"
    r"\s*(?:\^\s*\{?\s*[23]\s*\}?)?$"
)


def _measured(text: str) -> tuple[str, str] | None:
    """Return an amount and what is said to be its unit."""
    found = _AMOUNT.match(text)
    if found is None:
        return None
    unit = _TEXT.sub(r"\1", found["unit"]).strip()
    plain = unit == found["unit"]
    if plain and (
        unit.casefold() in _KNOWN_WORDS
        or (len(re.sub(r"\W", "", unit)) < 3 and not _unit(unit))  # noqa: PLR2004  (`6xy` has no unit)
        or (not text[0].isdigit() and text[0] not in "-+.$\\")
    ):
        return None
    return found["amount"], unit


def _unit(said: str) -> str:
    """Return a unit as it is called here; empty where it is not known."""
    word = re.sub(r"\b(?:square|cubic|sq|cu)\b|[\s.]|\^?[23]$", "", said.casefold())
    return _UNITS.get(word) or _UNITS.get(word.removesuffix("s")) or ""


def _read_single(name: str, text: str) -> Answer | None:
    text, unit, percent = text.strip(), "", False
    if dollars := re.match(r"^(-?)\s*\\\$\s*", text):
        text, unit = dollars[1] + text[dollars.end() :], "dollar"
    if _DEGREE.search(text) and not _TRIGONOMETRY.search(text):
        text = re.sub(
            r"\\(?:text|mathrm)\s*\{\s*[CFK]\s*\}$|(?<=\s)[CFK]$", "", _DEGREE.sub(" ", text)
        ).strip()
        unit = "degree"
    elif _TRIGONOMETRY.search(text):
        text = re.sub(rf"(\d+(?:\.\d+)?){_DEGREE.pattern}", r"(\1\\frac{\\pi}{180})", text)
    if marked := re.search(r"\s*\\?%$", text):
        text, percent = text[: marked.start()], True
    elif measured := _measured(text):
        text, said = measured
        percent = said.casefold() in {"percent", "per cent"}
        unit = unit or _unit(said)
    text = text.strip()
    if not text:
        return None
    if _TEXT.search(text) or (not unit and _is_prose(text)) or _is_unbalanced(text):
        return _word(text)
    return Expression(_MIXED.sub(_as_sum, text), unit, percent, name)


def _is_unbalanced(text: str) -> bool:
    """Say whether brackets do not match, as those of half-open intervals do not."""
    return any(text.count(each) != text.count(other) for each, other in ("()", "[]"))


def _is_prose(text: str) -> bool:
    words = _LETTERS.findall(re.sub(r"\\[a-zA-Z]+", " ", text))
    return any(word.casefold() not in _KNOWN_WORDS for word in words)


def _as_sum(found: re.Match[str]) -> str:
    above, below = found[3] or found[5], found[4] or found[6]
    return rf"{found[1]}({found[2]}+\frac{{{above}}}{{{below}}})"


_BOX: Final = re.compile(r"\\(?:boxed|fbox)\s*(?:\{|(?=[^\s{]))")
_BOX_OR_BRACE: Final = re.compile(_BOX.pattern + "|[{}]")
_END: Final = 20_000
"""Characters at the end of a reply that are looked at."""
_APART: Final = 60
"""Characters between boxes of one list."""
_BETWEEN: Final = re.compile(
    r"(?:[\s$,;.]|\\q?quad|\\[()\[\]])*(?:and|or|\\text\{\s*(?:and|or)\s*\})?(?:[\s$,;]|\\q?quad|\\[()\[\]]|\w+ =)*"
)
_FORMULA: Final = re.compile(
    r"\$\$(.{1,2000}?)\$\$|\$([^$]+)\$|\\\((.{1,2000}?)\\\)|\\\[(.{1,2000}?)\\\]", re.DOTALL
)
"""At most `LONGEST` characters: looking for ends that are not there would take quadratic time."""
_NO_PROSE: Final = re.compile(_TEXT.pattern + r"|\\(?:begin|end)\s*\{\w+\}(?:\{[clr|\s]*\})?")
_AFTER: Final = 80
"""Characters that may follow a formula that is an answer: to the end of its sentence."""
_SAID: Final = re.compile(r"(?:####|\banswer\s?(?:is|:|=)\s?:?[ *]*)[ \t]*([^\n]+)", re.IGNORECASE)
_TOKEN: Final = re.compile(
    r"-?(?:\d[\d,]*(?:\.\d+)?|\.\d+)(?:\s*/\s*\d+)?|\\[a-z]+\{[^\s]{0,2000}\}"
)


@unreadable_as(lambda _: "")
def final_answer(reply: str) -> str:
    r"""Return what a reply gives as its answer, empty where there is none.

    The last `\boxed{}`; boxes that only `and`, `or` or a comma part are one list. Without a box, what
    stands after the last "answer is", "Answer:" or `####`; else all of a reply that is nothing but
    an answer; else the formula a reply ends with; else what stands after the last `=` of the last line that
    has one; else the last number. Only the end of a long reply is looked at.
    """
    reply = reply[-_END:]
    if boxes := _boxes(reply):
        start, _, last = boxes[-1]
        found = [last]
        for begin, end, content in reversed(boxes[:-1]):
            if start - end > _APART or not _BETWEEN.fullmatch(reply, end, start):
                break
            found.insert(0, content)
            start = begin
        return ", ".join(found)
    if said := _SAID.findall(reply):
        return _stated(said[-1])
    bare = reply.strip().removesuffix(".")
    if "\n" not in bare and not _FORMULA.search(bare) and not _is_prose(_NO_PROSE.sub(" ", bare)):
        return _value(bare)
    if formula := _FORMULA.fullmatch(bare):
        return _value(_inside(formula))
    if ended := _last_formula(reply):
        return ended
    lines = [line for line in reply.splitlines() if "=" in line]
    if lines and not _is_prose(stated := _stated(lines[-1].rsplit("=", 1)[1])):
        return stated
    return last_token(reply)


def _stated(said: str) -> str:
    """Return the answer at the beginning of what is said: its formula, or else its first sentence."""
    said = said.strip()
    while again := _SAID.search(said):
        said = again[1].strip()
    if formula := _FORMULA.match(said):
        return _inside(formula)
    sentence = re.split(r"\.(?:\s|$)", said, maxsplit=1)[0].strip()
    if sentence[:1].isalpha() and _is_prose(sentence) and re.search(r"\d", sentence):
        return _last_formula(sentence) or last_token(sentence)
    return sentence


def _last_formula(reply: str) -> str:
    """Return the formula that a reply ends with, if it has a value and no number comes after it."""
    formulas = list(_FORMULA.finditer(reply))
    if not formulas:
        return ""
    said_to_be = re.search(r"\b(?:is|are)[:\s]*$", reply[: formulas[-1].start()])
    if not said_to_be and not re.search(r"[\d=<>]|\\(?!text)[a-z]", formulas[-1][0]):
        return ""
    after = reply[formulas[-1].end() :]
    if len(after) > _AFTER or re.search(r"[\d=]", after):
        return ""
    return _value(_inside(formulas[-1]))


def _inside(formula: re.Match[str]) -> str:
    """Return what stands between the delimiters of a formula."""
    return "".join(each or "" for each in formula.groups()).strip()


def _value(formula: str) -> str:
    """Return what a formula comes to: all of it, unless it is a chain of calculations."""
    parts = _split(formula, "=")
    if len(parts) == 1 or re.search(r"[<>!,;]|\\(?:le|ge|ne|text|and|or)", formula):
        return formula
    names = re.search(r"(?<![a-zA-Z\\])[a-zA-Z](?![a-zA-Z])", formula)
    return formula if names and len(parts) == 2 else parts[-1].strip()  # noqa: PLR2004  (sides)


@unreadable_as(lambda _: "")
def last_token(reply: str) -> str:
    """Return the last number or symbolic token of a reply: the paper's own rule (memory-transplants §4.1)."""
    tokens = _TOKEN.findall(reply[-_END:])
    return tokens[-1].strip() if tokens else ""


def _boxes(reply: str) -> list[tuple[int, int, str]]:
    """Return where outermost boxes begin and end, and what is in them: of boxes within, the last.

    A box that is not ended goes to the end.
    """
    boxes: list[tuple[int, int, str]] = []
    opened: list[_Opened] = []
    level = at = 0

    def ended(start: int, end: int, content: str) -> None:
        if opened:
            opened[-1].inner = content
        else:
            boxes.append((start, end, content))

    while found := _BOX_OR_BRACE.search(reply, at):
        at, sign = found.end(), found[0][-1]
        last = bool(opened) and opened[-1].level == level
        if found[0] == "{":
            level += 1
        elif found[0] == "}":
            level -= 1
            if last:
                box = opened.pop()
                ended(box.start, at, box.content(reply, at - 1))
        elif sign == "{":
            level += 1
            opened.append(_Opened(found.start(), at, level))
        elif not (last and reply[at] == "}"):  # a box of one sign
            level -= reply[at] == "}"
            at += 1
            ended(found.start(), at, reply[at - 1])
    while opened:
        box = opened.pop()
        ended(box.start, len(reply), box.content(reply, len(reply)))
    return boxes


@dataclass(slots=True)
class _Opened:
    """A box that is not ended yet: where it and its content begin, and how many braces are open."""

    start: int
    begin: int
    level: int
    inner: str | None = None

    def content(self, reply: str, end: int) -> str:
        return reply[self.begin : end] if self.inner is None else self.inner
