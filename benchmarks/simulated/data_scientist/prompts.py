"""Which of the prompts that ship a text is, and what was filled in."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

from langgraft._core.canonical import text_digest
from langgraft.benchmarks.simulated.dice import Dice
from langgraft.memory.recall import BLOCK_END, BLOCK_START, strip_block
from langgraft.nodes.prompts import prompt

_PLACEHOLDER: Final = re.compile(r"\$(\w+)")


@dataclass(frozen=True, slots=True)
class FilledPrompt:
    """A prompt taken apart."""

    kind: str
    """Name of the prompt."""
    parts: Mapping[str, str] = field(default_factory=dict)
    """What stands for each placeholder, such as `task`, `code` and `output`."""
    notes: str = ""
    """What was recalled from memory, without the marks around it."""

    def part(self, name: str) -> str:
        """Return what stands for a placeholder; empty where the prompt has no such one."""
        return self.parts.get(name, "")


def read_prompt(text: str, kinds: Sequence[str]) -> FilledPrompt | None:
    """Take a prompt apart; `None` where it is none of these kinds.

    A prompt is known by its own words: those that stand between its placeholders have to occur in
    their order.
    """
    # The block stands before the instructions; output that quotes a block stands before that.
    bare = strip_block(text)
    notes = text.rpartition(BLOCK_START)[2].partition(BLOCK_END)[0] if text != bare else ""
    for kind in kinds:
        parts = _filled(kind, bare)
        if parts is not None:
            return FilledPrompt(kind, parts, notes)
    return None


def dice_for(seed: int, texts: Sequence[str], *, sampled: bool, sample: str) -> Dice:
    """Return what decides by the seed, a conversation without notes, and the name of the call."""
    # Blank lines are dropped, which notes leave behind: with and without them draws are the same.
    read = " ".join(" ".join(strip_block(text).split()) for text in texts)
    return Dice(seed, sampled, text_digest(read.encode("utf-8", "replace").decode("utf-8")), sample)


@lru_cache(maxsize=32)
def _template(kind: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return the words between the placeholders of a prompt, and their names."""
    pieces = _PLACEHOLDER.split(prompt(kind).text)
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
