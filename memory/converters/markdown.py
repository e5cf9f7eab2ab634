"""`AGENTS.md`, `MEMORY.md`, `CLAUDE.md`: Markdown that agents read at every start, as items.

A list item is one memory, and so is a paragraph or a block of code outside of lists; headings, joined
by ` > `, are the domain of what stands below them. Lines that belong to a list item are indented, so
that a list within it stays part of its text. A file holds texts and headings and nothing else: it is
read by a model as it is, and a comment for us would cost every reader tokens.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from langgraft._core.canonical import digest
from langgraft._core.errors import BankFormatError, InputError
from langgraft.memory.converters.forms import unique
from langgraft.memory.model import MemoryItem

DOMAIN: Final = "agents_md"
"""The domain of what stands below no heading."""
_HEADING: Final = re.compile(r"(#{1,6})[ \t]+(.*?)[ \t]*(?:[ \t]#+[ \t]*)?$")
_BULLET: Final = re.compile(r"(?:[-*+]|\d{1,9}[.)])(?:[ \t]+(.*)|)$")
_FENCE: Final = re.compile(r"(`{3,}|~{3,})")
_BETWEEN: Final = " > "


class Markdown:
    """The form of headed lists."""

    name = "agents_md"

    def read(self, data: bytes, path: Path) -> tuple[list[MemoryItem], Counter[str]]:
        """Make items of a file's bytes, in its order; front matter and comments are not kept.

        Raises:
            BankFormatError: It is not UTF-8, or a text is none that an item can have.
        """
        lost: Counter[str] = Counter()
        try:
            text = data.decode("utf-8").replace("\r\n", "\n").removeprefix("\ufeff")
        except UnicodeDecodeError as error:
            msg = f"not UTF-8 at byte {error.start}"
            raise BankFormatError(msg, path=path) from error
        items: list[MemoryItem] = []
        for row, domain, memory in _memories(_without_front_matter(text, lost), lost):
            try:
                items.append(_item(memory, domain, len(items)))
            except InputError as error:
                raise BankFormatError(str(error), path=path, row=row) from error
        return unique(items, lost), lost

    def write(self, items: Sequence[MemoryItem]) -> tuple[bytes, list[MemoryItem]]:
        """Return the file of items, and those of them that are in it: all that have a text."""
        written = [item for item in items if item.text.strip()]
        lines: list[str] = []
        domain = DOMAIN
        for item in written:
            if item.source_domain != domain:
                domain = item.source_domain
                lines += ["", f"## {' '.join(domain.split())}", ""]
            first, *others = item.text.split("\n")
            lines.append(f"- {first}")
            lines += [f"  {line}" if line else "" for line in others]
        return ("\n".join(lines).lstrip("\n") + "\n").encode(), written


def _item(text: str, domain: str, number: int) -> MemoryItem:
    return MemoryItem.from_json(
        {
            "id": f"md-{digest([text, domain])[:12]}",
            "text": text,
            "type": "other",
            "source_domain": domain,
            "episode_id": "",
            "success": None,
            "order_index": number,
        }
    )


def _without_front_matter(text: str, lost: Counter[str]) -> list[str]:
    """Return the lines; those of YAML at the beginning, which says how a file is used, are blank."""
    lines = text.split("\n")
    if lines[0] == "---" and "---" in lines[1:]:
        end = lines.index("---", 1)
        lost["front matter"] += 1
        lines[: end + 1] = [""] * (end + 1)
    return lines


def _memories(lines: Sequence[str], lost: Counter[str]) -> Iterator[tuple[int, str, str]]:
    """Yield row, domain and text of each memory."""
    path: list[tuple[int, str]] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        domain = _BETWEEN.join(name for _, name in path) or DOMAIN
        if not line.strip():
            at += 1
        elif heading := _HEADING.match(line):
            depth = len(heading[1])
            path = [(level, name) for level, name in path if level < depth]
            if heading[2]:
                path.append((depth, heading[2]))
            at += 1
        elif line.startswith("<!--"):
            lost["comments"] += 1
            while at < len(lines) and "-->" not in lines[at]:
                at += 1
            at += 1
        else:
            bullet = _BULLET.match(line)
            end = _item_end(lines, at) if bullet else _paragraph_end(lines, at)
            first = (bullet[1] or "") if bullet else line
            others = lines[at + 1 : end]
            text = "\n".join([first, *(map(_outdented, others) if bullet else others)]).rstrip("\n")
            if text.strip():
                yield at + 1, domain, text
            at = end


def _item_end(lines: Sequence[str], at: int) -> int:
    """Return where a list item ends: blank lines belong to it where an indented one follows."""
    end = at + 1
    for number in range(at + 1, len(lines)):
        line = lines[number]
        if line.strip() and not line.startswith((" ", "\t")):
            if number == end and not (_HEADING.match(line) or _BULLET.match(line)):
                end = number + 1  # a line that goes on without being indented
                continue
            break
        if line.strip():
            end = number + 1
    return end


def _paragraph_end(lines: Sequence[str], at: int) -> int:
    """Return where a paragraph or a block of code ends."""
    if fence := _FENCE.match(lines[at]):
        for number in range(at + 1, len(lines)):
            if lines[number].startswith(fence[1]) and not lines[number].strip("`~ "):
                return number + 1
        return len(lines)
    for number in range(at + 1, len(lines)):
        line = lines[number]
        if not line.strip() or _HEADING.match(line) or _BULLET.match(line) or _FENCE.match(line):
            return number
    return len(lines)


def _outdented(line: str) -> str:
    if line.startswith("\t"):
        return line[1:]
    return line[min(2, len(line) - len(line.lstrip(" "))) :]
