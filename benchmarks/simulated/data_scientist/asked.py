"""What a prompt asks for: which of the tree's prompts it is, and what stands in its places."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from langgraft.memory.recall import BLOCK_END, BLOCK_START, strip_block
from langgraft.nodes.prompts import prompt

KINDS: Final = ("tree_draft", "tree_improve", "tree_debug", "tree_review", "diagnose")
"""Prompts that are understood, by the names they ship under."""

_PLACE: Final = re.compile(r"\$(\w+)")


@dataclass(frozen=True, slots=True)
class Asked:
    """A prompt taken apart."""

    kind: str
    """Name of the prompt."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """What stands in each place of the prompt, such as `task`, `code` and `output`."""
    notes: str = ""
    """What was recalled from memory, without the marks around it."""

    def part(self, name: str) -> str:
        """Return what stands in a place; empty where the prompt has no such place."""
        return self.parts.get(name, "")


def read_prompt(text: str, kinds: Sequence[str] = KINDS) -> Asked | None:
    """Take a prompt apart; `None` where it is none that is understood.

    A prompt is known by its own words: those that stand between its places have to occur in
    their order.

    Args:
        text: What was said.
        kinds: Names of the prompts it may be.
    """
    # The block stands before the instructions; output that quotes a block stands before that.
    bare = strip_block(text)
    for kind in kinds:
        parts = _filled(kind, bare)
        if parts is not None:
            return Asked(kind, parts, _notes(text, bare))
    return None


def _notes(text: str, bare: str) -> str:
    if text == bare:
        return ""
    return text.rpartition(BLOCK_START)[2].partition(BLOCK_END)[0]


@lru_cache(maxsize=32)
def _template(kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words between the places of a prompt, and the names of the places."""
    pieces = _PLACE.split(prompt(kind).text)
    return tuple(pieces[::2]), tuple(pieces[1::2])


def _filled(kind: str, text: str) -> dict[str, str] | None:
    words, names = _template(kind)
    at = text.find(words[0])
    if at < 0:
        return None
    at += len(words[0])
    found: dict[str, str] = {}
    for name, following in zip(names, words[1:], strict=True):
        ending = following.rstrip() if following is words[-1] else following
        end = text.find(ending, at) if ending else len(text)
        if end < 0:
            return None
        found[name] = text[at:end]
        at = end + len(ending)
    return found
