"""A reader by rules: what a recalled block says to a question, from its text alone.

It stands where a model would, so that a mark is one of the memory. It takes as evidence every sentence
that names the subject, has a word of the attribute and one of the values the attribute can have, and
dates it by the day in the sentence, or else by the last one named above it in the same item. It then
answers as somebody would who believes all of it: the latest value, the latest up to a day, the one
before another, or all that is said. Where evidence disagrees and nothing dates it, it says nothing.

What it cannot do: it knows no synonyms and no pronouns, follows nothing over two sentences, does not
read dates in words, and takes "not in Lyon" for Lyon. A memory that words things anew may know more
than it is given marks for.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from langgraft.benchmarks.exam.histories import Question
from langgraft.memory.model import BLOCK_END, BLOCK_START

_SENTENCE: Final = re.compile(r"(?<=[.!?])\s+|\n")
_DAY: Final = re.compile(r"\b\d{4}-\d\d-\d\d\b")
_UNTIL: Final = re.compile(r"\buntil (\d{4}-\d\d-\d\d)\b")
_WORD: Final = re.compile(r"[a-z]+")


@dataclass(frozen=True, slots=True)
class Evidence:
    """What one sentence says of a slot."""

    value: str
    day: str
    """Since when; empty where nothing says so."""
    until: str


def read(block: str, question: Question) -> frozenset[str]:
    """Answer a question from a recalled block; nothing where it does not say, or one cannot tell."""
    found = list(evidence(block, question))
    if question.kind == "contradiction":
        return frozenset(each.value for each in found)
    if question.before:
        return _before(found, question.before)
    if question.on:
        found = [each for each in found if each.day and each.day <= question.on]
    found = [each for each in found if not each.until or each.until > (question.on or "9999")]
    latest = max((each.day for each in found), default="")
    values = frozenset(each.value for each in found if each.day == latest)
    return values if len(values) == 1 else frozenset()


def evidence(block: str, question: Question) -> Iterator[Evidence]:
    """Find what a block says of the slot that is asked about."""
    subject = set(_WORD.findall(question.subject.lower()))
    values = {value.lower(): value for value in question.values}
    text = block.replace(BLOCK_START, "").replace(BLOCK_END, "")
    for item in text.split("\n\n"):
        day = ""
        for sentence in _SENTENCE.split(item):
            ended = _UNTIL.search(sentence)
            days = [each for each in _DAY.findall(sentence) if not ended or each != ended[1]]
            day = days[0] if days else day
            words = _WORD.findall(sentence.lower())
            named = [values[word] for word in words if word in values]
            if subject <= set(words) and set(question.words) & set(words) and len(named) == 1:
                yield Evidence(named[0], day, ended[1] if ended else "")


def _before(found: list[Evidence], value: str) -> frozenset[str]:
    """Return the value that was dated last before another began."""
    begins = min((each.day for each in found if each.value == value and each.day), default="")
    earlier = [each for each in found if each.value != value and each.day and each.day < begins]
    latest = max((each.day for each in earlier), default="")
    return frozenset(each.value for each in earlier if each.day == latest)
