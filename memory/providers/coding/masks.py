"""Masks: what differs between two runs of the same error is written the same.

Paths, addresses, temporary names, digests, users and numbers say where and when a program ran.
Names that the program or a library chose (functions, arguments, columns, files) say what went
wrong, and stay.
"""

import re
from typing import Final

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
_FILE = re.compile(r"[^\\/]*\.[A-Za-z]\w{0,4}$")
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
