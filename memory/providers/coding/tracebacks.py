"""Reading Python's tracebacks, and the one form in which an error is kept.

It knows the formats in which Python itself and IPython tell of an exception, and no library's
messages: plain and chained tracebacks, syntax errors, exception groups, colored output, and
output that was cut so that only the last line is left. And it knows `Exception: KeyError: 'x'`, as
agents are told of what ended their program, with or without the stack on the lines below.
"""

import builtins
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

LONGEST_ERROR: Final = 1000
"""Most characters of a canonical error: a message, not the value it quotes."""
_READ: Final = 4 * LONGEST_ERROR
"""Most characters that are masked for it: masks shorten."""
_LONGEST_FRAME: Final = 2000
"""Most characters of a line that can be a frame in the forms that name no `File "…"`."""


@dataclass(frozen=True, slots=True)
class Frame:
    """One line of a stack. A `line` of a `file`; `None` where it is not told."""

    file: str
    line: int | None
    function: str
    """Empty where the format does not tell."""
    code: str = ""
    """The failing line, where it is shown."""


@dataclass(frozen=True, slots=True)
class Raised:
    """An exception as a traceback tells it. `message` is what the exception says."""

    exception: str
    """The class as printed, with its module: `lightgbm.basic.LightGBMError`."""
    message: str
    frames: tuple[Frame, ...] = ()
    """Outermost first; empty where only the last line was found."""
    causes: tuple["Raised", ...] = ()
    """Exceptions that led to this one, first one first; of a group, its further members."""

    @property
    def name(self) -> str:
        """The class without its module."""
        return self.exception.rpartition(".")[2]

    @property
    def module(self) -> str:
        """The module of the class, or nothing for builtins and where it is not told."""
        return self.exception.rpartition(".")[0]


_RULE: Final = "| Traceback (most recent call last):"
_HEADER = re.compile(
    r"^(?P<indent>[| ]*)(?:Exception Group )?Traceback \(most recent call last\):?$"
)
_IPYTHON_HEADER = re.compile(
    r"^(?P<cls>[A-Za-z_][\w.]*)\s+Traceback \(most recent call last\)\s*$", re.MULTILINE
)
_GROUP_BAR = re.compile(r"^\s*(?:[|+]\s?)+")
_MEMBER = re.compile(r"^[ |]*\+(?:-\+)?-{10,}(?: (?:\d+|\.\.\.) -{10,})?$")
"""The rule above each member of an exception group, and below the last."""
_FRAME = re.compile(r'^\s+File "(?P<file>.+?)", line (?P<line>\d{1,18})(?:, in (?P<function>.+))?$')
_IPYTHON_FRAME = re.compile(
    r"^(?:File )?(?P<file>(?:Cell )?\S[^\n]*?)"
    r"(?::(?P<line>\d{1,18})|, line (?P<cell>\d{1,18}))?(?:,? in (?P<function>[\w.<>]+)(?:\([^\n]*\))?)?:?$"
)
_ARROW = re.compile(r"^-+>\s*(?P<line>\d{1,18}+)\s?(?P<code>.*)$")
_RAISED = re.compile(r"^(?P<cls>[^\W\d][\w.]*)(?::(?: (?P<message>.*)|\s*))?$")
_TOLD = re.compile(r"^(?P<cls>[^\W\d][\w.]*)(?:: (?P<message>.*))?$", re.DOTALL)
"""What follows `Exception: ` where the class of an exception is told after that word."""
_TOLD_FRAME = re.compile(
    r"^ {2}(?P<file>[^\n]+?), line (?P<line>\d{1,18}), in (?P<function>[^:\n]+)(?:: (?P<code>.*))?$"
)
_LINKS = (
    "During handling of the above exception, another exception occurred:",
    "The above exception was the direct cause of the following exception:",
)
_BUILTINS: Final = frozenset(
    name
    for name, value in vars(builtins).items()
    if isinstance(value, type) and issubclass(value, BaseException)
)
_EXCEPTION_NAME = re.compile(r"_?[A-Z]\w*(?:Error|Exception|Exit|Interrupt|Expired|Timeout|Fault)$")
_GROUPS: Final = ("ExceptionGroup", "BaseExceptionGroup")


def is_exception_name(name: str) -> bool:
    """Say whether a name is that of an exception class, by itself: builtin, or named like one."""
    last = name.rpartition(".")[2]
    known = last in _BUILTINS and not last.endswith("Warning")
    return known or _EXCEPTION_NAME.match(last) is not None


def parse_traceback(text: str) -> Raised | None:
    """Read the last exception in a program's output, with those that led to it.

    Of an exception group the first member is returned, of groups in groups the first that is
    none: what a group says itself is only how many there are. Without any traceback the last line
    that reads like the end of one counts.

    Returns:
        The exception, or `None` where the output tells of none.
    """
    lines = [_without_bars(line) for line in plain(text).split("\n")]
    found = _chained(lines) or _ipython(lines)
    return found if found is not None else _last_line(lines)


def canonical_error(text: str) -> str:
    """Write an error in the form that is kept and compared: class and message, masked.

    Where the message is empty the failing line stands in for it. A text without an exception
    is masked as a whole.
    """
    raised = parse_traceback(text)
    return canonical(raised) if raised is not None else _short(masked(text.strip()[:_READ]))


def canonical(raised: Raised) -> str:
    """Write an exception in the form that is kept."""
    if raised.message:
        return _short(f"{raised.name}: {masked(raised.message[:_READ])}")
    code = raised.frames[-1].code if raised.frames else ""
    return _short(f"{raised.name} at {masked(code[:_READ])}" if code else raised.name)


def _short(text: str) -> str:
    text = "\n".join(line.rstrip() for line in text.strip().split("\n"))
    return text if len(text) <= LONGEST_ERROR else text[: LONGEST_ERROR - 1].rstrip() + "…"


def _without_bars(line: str) -> str:
    """Take away the margin that a group's members are set in; a rule becomes a header.

    A member that was never raised by itself has no header of its own.
    """
    if not line.lstrip().startswith(("|", "+")):
        return line
    return _RULE if _MEMBER.match(line) else _GROUP_BAR.sub("", line, count=1)


def _chained(lines: Sequence[str]) -> Raised | None:
    """Read the tracebacks of the last chain."""
    starts = [(i, match) for i, line in enumerate(lines) if (match := _HEADER.match(line))]
    stops = [start for start, _ in starts[1:]] + [len(lines)]
    chain: list[Raised] = []
    end = 0
    for (start, match), stop in zip(starts, stops, strict=False):
        section = _section(lines[start + 1 : stop], len(match["indent"]))
        if section is None:
            continue
        raised, length = section
        linked = any(line.strip() in (*_LINKS, _RULE) for line in lines[end : start + 1])
        if not linked:
            chain = []
        chain.append(raised)
        end = start + 1 + length
    if not chain:
        return _syntax_error(lines)
    # Of what came later only the end may be left, where the output was cut.
    later, last = _last_line(lines[end:]), _joined(chain)
    return last if later is None or _again(later, last) else later


def _again(later: Raised, told: Raised) -> bool:
    """Say whether a last line tells once more of an exception that was told in full."""
    first, second = (raised.message.split("\n", 1)[0] for raised in (later, told))
    same = first == second or (bool(first) and first == second[: len(first)])
    return later.name == told.name and same


def _joined(chain: Sequence[Raised]) -> Raised:
    grouped = [raised.name in _GROUPS for raised in chain]
    if True in grouped and False in grouped[grouped.index(True) :]:
        # A group, then its members: the first of them is told, the others go along.
        first = grouped.index(False, grouped.index(True))
        return replace(chain[first], causes=(*chain[:first], *chain[first + 1 :]))
    return replace(chain[-1], causes=tuple(chain[:-1]))


def _section(lines: Sequence[str], indent: int) -> tuple[Raised, int] | None:
    """Read the frames and the last line below a header, and how many lines that takes."""
    frames: list[Frame] = []
    for number, raw in enumerate(lines):
        line = raw[indent:] if not raw[:indent].strip() else raw
        if match := _FRAME.match(line):
            frames.append(Frame(match["file"], int(match["line"]), match["function"] or ""))
        elif line.startswith((" ", "\t")) or not line.strip():
            if frames and not frames[-1].code and set(line.strip()) - set("^~ "):
                frames[-1] = replace(frames[-1], code=line.strip())
        elif match := _RAISED.match(line):
            message, taken = _message(match["message"] or "", lines[number + 1 :])
            return Raised(match["cls"], message, tuple(frames)), number + 1 + taken
        else:
            return None
    return None


def _message(first: str, rest: Sequence[str]) -> tuple[str, int]:
    """Return a message of one or more lines.

    What a program prints after it looks the same as more of it. Lines go on that are indented,
    or up to a blank one where the first ends with a colon.
    """
    open_ended = first.rstrip().endswith(":")
    more: list[str] = []
    for line in rest:
        if not line.strip() or line.strip() in _LINKS or _HEADER.match(line):
            break
        if not (open_ended or line.startswith((" ", "\t"))):
            break
        more.append(f"  {line.strip()}")  # read again, they are still part of the message
    return "\n".join([first.strip(), *more]), len(more)


def _syntax_error(lines: Sequence[str]) -> Raised | None:
    """Read a syntax error that comes without a header, as compiling a program gives it."""
    for number in range(len(lines) - 1, -1, -1):
        match = _RAISED.match(lines[number])
        if match is None or not match["cls"].endswith(
            ("SyntaxError", "IndentationError", "TabError")
        ):
            continue
        for above in range(number - 1, max(-1, number - 5), -1):
            if frame := _FRAME.match(lines[above]):
                code = lines[above + 1].strip() if above + 1 < number else ""
                at = Frame(frame["file"], int(frame["line"]), "", code)
                return Raised(match["cls"], (match["message"] or "").strip(), (at,))
    return None


def _ipython(lines: Sequence[str]) -> Raised | None:
    """Read a traceback as IPython shows it: the class above, arrows at the failing lines."""
    starts = [(i, m) for i, line in enumerate(lines) if (m := _IPYTHON_HEADER.match(line))]
    if not starts:
        return None
    start, header = starts[-1]
    frames: list[Frame] = []
    wanted = header["cls"].rpartition(".")[2]
    for number, line in enumerate(lines[start + 1 :], start=start + 1):
        if arrow := _ARROW.match(line):
            if frames:
                at = int(arrow["line"])
                frames[-1] = replace(frames[-1], line=at, code=arrow["code"].strip())
            continue
        match = _RAISED.match(line)
        if match and match["cls"].rpartition(".")[2] == wanted:
            message, _ = _message(match["message"] or "", lines[number + 1 :])
            return Raised(match["cls"], message, tuple(frames))
        frames += _ipython_frame(line)
    return Raised(header["cls"], "", tuple(frames))


def _ipython_frame(line: str) -> Iterator[Frame]:
    where = line.startswith(("File ", "Cell In[", "Input In ", "<ipython-input")) or " in " in line
    if not where or line.startswith((" ", "\t")) or len(line) > _LONGEST_FRAME:
        return
    if match := _IPYTHON_FRAME.match(line):
        number = match["line"] or match["cell"]
        yield Frame(match["file"], int(number) if number else None, match["function"] or "")


def _last_line(lines: Sequence[str]) -> Raised | None:
    """Read the last line of a traceback whose beginning was cut off."""
    for number in range(len(lines) - 1, -1, -1):
        match = _RAISED.match(lines[number].strip())
        if match is None or not is_exception_name(match["cls"]):
            continue
        if match["message"] is None and ":" in lines[number]:
            continue
        if match["cls"] == "Exception" and (told := _told(match, lines[number + 1 :])):
            return told
        message, _ = _message(match["message"] or "", lines[number + 1 :])
        return Raised(match["cls"], message)
    return None


def _told(match: re.Match[str], rest: Sequence[str]) -> Raised | None:
    """Read `Exception: KeyError: 'x'` and, below it, where it came from."""
    found = _TOLD.match(match["message"] or "")
    if found is None or not is_exception_name(found["cls"]):
        return None
    stops = (i for i, line in enumerate(rest) if _told_frame(line) or not line.strip())
    end = next(stops, len(rest))
    message, _ = _message(found["message"] or "", rest[:end])
    frames: list[Frame] = []
    for line in rest[end:]:
        if frame := _told_frame(line):
            frames.append(
                Frame(frame["file"], int(frame["line"]), frame["function"], frame["code"] or "")
            )
        elif not re.match(r"\[\d+ more calls\]$", line.strip()):
            break
    return Raised(found["cls"], message, tuple(frames))


def _told_frame(line: str) -> re.Match[str] | None:
    return _TOLD_FRAME.match(line) if len(line) <= _LONGEST_FRAME else None


# Masks: what differs between two runs of the same error is written the same. Paths, addresses,
# temporary names, digests, users and numbers say where and when a program ran; names that the
# program or a library chose (functions, arguments, columns, files) say what went wrong, and stay.

_ANSI = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\-_])")
"""Escape sequences of ECMA-48: colors, cursor moves, window titles."""

# A path has no spaces here: a message rarely quotes one that has, and prose would be eaten.
_NAME = r"[\w.@+~%-]+"
_PATH = re.compile(
    rf"(?<![\w<>./\\@+~%-])(?:"  # not within a name: that would also take quadratic time
    rf"(?:(?:~[\w.-]*|\.{{1,2}})?/|[A-Za-z]:[\\/]|\\\\)(?:{_NAME}[\\/])*{_NAME}[\\/]?"  # rooted
    rf"|{_NAME}(?:[\\/]{_NAME})+\.[A-Za-z]\w{{0,4}}\b"  # relative, to a file with an ending
    rf")"
)
_FILE = re.compile(r"(?<![^\\/])[^\\/]*\.[A-Za-z]\w{0,4}$")
_TEMPORARY = re.compile(r"\btmp(?=\w*\d|\w*_)\w{6,}")
"""Names as `tempfile` makes them: eight random characters."""

_MASKS: Final = (
    (re.compile(r"\b(?:https?|ftp|s3|gs|file)://[^\s'\"<>()\]]+"), "<url>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b"), "<address>"),
    (
        re.compile(
            r"\b[0-9a-fA-F]{8}-(?:[0-9a-fA-F]{4}-){3}[0-9a-fA-F]{12}\b"
            r"|\b(?=[0-9a-f]*[a-f])(?=[a-f]*[0-9])[0-9a-f]{12,}\b"
        ),
        "<id>",
    ),
    (re.compile(r"(?<![\w<.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)*"), "<user>"),
)
_NUMBER = re.compile(r"(?<![\w<])(?<!\w\.)[+-]?(?:\d[\d_,]*\d|\d)(?:\.\d+)*(?:[eE][+-]?\d+)?(?!\w)")
"""A number that is no part of a name: `float64`, `ResNet50` and `conv2d` stay."""
_WITH_UNIT = re.compile(r"(?<![\w<])\d+(?:\.\d+)?(?=(?:[KMGT]i?B|ms|us|ns|s|h)\b)")


def plain(text: str) -> str:
    """Take terminal escapes out of a text, and bring line ends to one form."""
    return _ANSI.sub("", text).replace("\r\n", "\n").replace("\r", "\n")


def masked(text: str) -> str:
    """Write a text without what changes from run to run; masking twice changes nothing more.

    A path is cut down to the file's name, where that has an ending: `<path>/train.csv`.
    """
    text = plain(text)
    for pattern, mask in _MASKS:
        text = pattern.sub(mask, text)
    text = _PATH.sub(_masked_path, text)
    text = _TEMPORARY.sub("<temporary>", text)
    return _NUMBER.sub("<n>", _WITH_UNIT.sub("<n>", text))


def _masked_path(match: re.Match[str]) -> str:
    found = _FILE.search(match.group())
    if found is None or not found.group().strip("."):
        return "<path>"
    return f"<path>/{found.group()}"
