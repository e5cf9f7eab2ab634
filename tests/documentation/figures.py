"""Figures of the documentation, drawn from a few words each: the same bytes on every machine."""

from collections.abc import Sequence
from html import escape
from typing import Final

INK, QUIET, LINE = "#1f2933", "#52606d", "#33506b"
PALE, MEMORY, GOOD, BAD = "#eef3f8", "#dcefe9", "#0b6e4f", "#b23a1e"
_STYLE: Final = f'font-family="Helvetica, Arial, sans-serif" fill="{INK}"'


def _svg(width: int, height: int, title: str, parts: Sequence[str]) -> str:
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" {_STYLE}>\n'
        f"<title>{escape(title)}</title>\n"
        '<defs><marker id="tip" viewBox="0 0 10 10" refX="9" refY="5" markerWidth="7" markerHeight="7"'
        f' orient="auto"><path d="M0 0L10 5L0 10z" fill="{LINE}"/></marker></defs>\n'
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>\n'
        + "\n".join(parts)
        + "\n</svg>\n"
    )


def _text(x: float, y: float, said: str, size: int = 14, *, color: str = INK, anchor: str = "start",
          bold: bool = False) -> str:  # fmt: skip
    weight = ' font-weight="bold"' if bold else ""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill="{color}" text-anchor="{anchor}"{weight}>'
        f"{escape(said)}</text>"
    )


def _box(x: float, y: float, width: float, height: float, fill: str = PALE) -> str:
    return (
        f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}" rx="6" fill="{fill}"'
        f' stroke="{LINE}"/>'
    )


def _line(x: float, y: float, to_x: float, to_y: float, *, tip: bool = True, color: str = LINE,
          width: float = 1.5) -> str:  # fmt: skip
    end = ' marker-end="url(#tip)"' if tip else ""
    return f'<path d="M{x:g} {y:g}L{to_x:g} {to_y:g}" stroke="{color}" stroke-width="{width:g}" fill="none"{end}/>'


def turn() -> str:
    """Draw a turn of an agent with memory: what stands before the model, and what after it."""
    parts = []
    for place, (name, said) in enumerate(
        (("message", "what the user says"), ("recall", "finds items that fit"), ("model", "sees both"),
         ("remember", "files the turn, once"), ("answer", "what the user gets"))
    ):  # fmt: skip
        x = 20 + place * 170
        parts.append(_box(x, 30, 140, 62, MEMORY if name in {"recall", "remember"} else PALE))
        parts.append(_text(x + 70, 56, name, 16, anchor="middle", bold=True))
        parts.append(_text(x + 70, 78, said, 12, anchor="middle", color=QUIET))
        if place < 4:
            parts.append(_line(x + 142, 61, x + 168, 61))
    parts += [
        _box(190, 160, 480, 56, MEMORY),
        _text(430, 184, "bank: items in a LangGraph store", 15, anchor="middle", bold=True),
        _text(
            430, 204, "never in messages, checkpoints or streams", 12, anchor="middle", color=QUIET
        ),
        _line(260, 160, 260, 94),
        _line(600, 94, 600, 160),
        _text(270, 132, "block of text and receipt", 12, color=QUIET),
        _text(590, 132, "episode", 12, color=QUIET, anchor="end"),
    ]
    return _svg(860, 236, "A turn: recall before the model is asked, remember after it", parts)


def conditions() -> str:
    """Draw the conditions as a ladder: each rung adds one thing, so that a step tells what it is worth."""
    rungs = (
        ("none", "recalls nothing", "the baseline"),
        ("~write_only", "files, recalls nothing", "what filing and reflecting do"),
        ("~instructions", "a frame without an item", "being told of notes"),
        ("~placebo", "filler of the same length", "mere length"),
        ("~random", "random items of the bank", "examples, fitting or not"),
        ("memory", "items that fit", "relevance"),
        ("full_history", "all that there was", "is a memory system worth it?"),
    )
    parts = [
        _text(20, 26, "condition", 13, color=QUIET),
        _text(190, 26, "what the prompt gets", 13, color=QUIET),
        _text(500, 26, "what the step to it tells", 13, color=QUIET),
    ]
    for place, (name, gets, tells) in enumerate(rungs):
        y = 40 + place * 40
        fill = MEMORY if name == "memory" else PALE
        parts += [
            _box(20, y, 130, 28, fill),
            _text(85, y + 19, name, 14, anchor="middle", bold=True),
            _text(190, y + 19, gets, 14),
            _text(500, y + 19, tells, 14, color=QUIET),
        ]
        if place:
            parts.append(_line(480, y - 26, 480, y + 12))
    return _svg(
        760, 330, "Conditions, from no memory to all there was, and what each step tells", parts
    )


def verdicts() -> str:
    """Draw intervals and what they come to, with a margin of ten points."""
    left, unit = 230, 9
    zero = left + 20 * unit
    cases = (
        ("helps", 6, 24, GOOD), ("harms", -19, -4, BAD), ("no detectable difference", -6, 13, QUIET),
        ("equivalent (a control)", -5, 6, QUIET), ("cannot tell: too few runs", -18, 33, QUIET),
    )  # fmt: skip
    parts = [
        f'<rect x="{zero - 10 * unit}" y="30" width="{20 * unit}" height="200" fill="{PALE}"/>',
        _line(zero, 30, zero, 230, tip=False),
        _text(zero, 22, "margin", 12, anchor="middle", color=QUIET),
    ]
    for place, (name, low, high, color) in enumerate(cases):
        y = 52 + place * 38
        begin, end = zero + low * unit, zero + high * unit
        parts += [
            _text(left - 10, y + 5, name, 14, anchor="end"),
            _line(begin, y, end, y, tip=False, color=color, width=3),
            f'<circle cx="{(begin + end) / 2:g}" cy="{y}" r="6" fill="{color}"/>',
        ]
    parts += [_text(zero + step * unit, 250, f"{step:+d}" if step else "0", 12, anchor="middle", color=QUIET)
              for step in (-20, -10, 0, 10, 20, 30)]  # fmt: skip
    parts.append(
        _text(
            zero + 5 * unit,
            272,
            "difference against no memory, points",
            12,
            anchor="middle",
            color=QUIET,
        )
    )
    return _svg(740, 286, "Five intervals, and the verdict of each", parts)


FIGURES: Final = {"turn": turn, "conditions": conditions, "verdicts": verdicts}
"""Name of a file in docs/assets → what draws it."""
