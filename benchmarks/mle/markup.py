"""HTML and SVG from Python: whatever is not markup itself is escaped, and made visible."""

import html
import re
from collections.abc import Iterable, Mapping
from typing import Final

_VOID: Final = {"br", "hr", "meta"}
_UNSEEN: Final = re.compile(
    r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069"
    r"\ufeff\ufffe\uffff\ud800-\udfff]"
)
"""What a browser shows as nothing, reorders a line by, or cannot hold: control characters but tab
and line feed, marks of direction, characters without width, lone surrogates."""


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def visible(text: str) -> str:
    r"""Write a text so that a reader sees all that is in it: `\u202e` for a mark of direction."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", plain)


def escaped(content: str) -> Markup:
    """Return a text as HTML; markup stays as it is."""
    if isinstance(content, Markup):
        return content
    return Markup(html.escape(visible(content), quote=True))


def joined(parts: Iterable[str]) -> Markup:
    """Put parts together, each escaped unless it is markup."""
    return Markup("".join(escaped(part) for part in parts))


def tag(name: str, *content: str, attributes: Mapping[str, str] | None = None) -> Markup:
    """Return an element.

    Args:
        name: Of the element.
        content: What is in it.
        attributes: Escaped as well, and written in this order.
    """
    given = "".join(f' {key}="{escaped(value)}"' for key, value in (attributes or {}).items())
    if name in _VOID:
        return Markup(f"<{name}{given}>")
    return Markup(f"<{name}{given}>{joined(content)}</{name}>")


def classed(name: str, css: str, *content: str) -> Markup:
    """Return an element of a CSS class."""
    return tag(name, *content, attributes={"class": css})
