"""`contradiction`: which notes contradict a draft (Agent KB's gate, memory-transplants §4.2)."""

import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel
from typing_extensions import override

from langgraft.nodes.judging.shown import Lowered, Ruling, Shown, by_line, identified
from langgraft.nodes.structured import Read, Reader, listed

CONTRADICTS = "contradicts"
AGREES = "agrees"


class Stance(BaseModel):
    """What a model makes of one note."""

    id: str
    verdict: Annotated[Literal["contradicts", "agrees"], Lowered]


class Contradiction(Shown):
    """A draft, and notes that may contradict it."""

    prompt: ClassVar[str] = "judge_contradiction"

    task: str
    draft: str
    candidates: Mapping[str, str]

    @override
    def values(self, lessons: Sequence[str]) -> dict[str, str]:
        notes = by_line(identified(self.candidates))
        return {"task": self.task, "draft": self.draft, "candidates": notes}

    @override
    def reader(self) -> Reader[list[Ruling]]:
        """Make the reader; notes that a reply passes over are ruled on, and told."""
        read_stances = listed(Stance, self._objection)

        def read(value: Any) -> Read[list[Ruling]]:
            found = read_stances(value)
            given = {stance.id: Ruling(stance.verdict, stance.id) for stance in found.value}
            if not given:
                msg = "there is no entry for any note"
                raise ValueError(msg)
            rulings = [given.get(name) or self._rule(name) for name in self.candidates]
            missing = [name for name in self.candidates if name not in given]
            told = (f"there is no entry for {', '.join(missing)}",) if missing else ()
            return Read(rulings, (*found.problems, *told))

        return read

    @override
    def by_rules(self, lessons: Sequence[str]) -> list[Ruling]:
        """Call it a contradiction where note and draft both state an answer, and not the same."""
        return [self._rule(name) for name in self.candidates]

    @property
    @override
    def needless(self) -> str:
        if not self.draft.strip():
            return "there is no draft"
        return "" if self.candidates else "there are no notes"

    def _rule(self, name: str) -> Ruling:
        ours, theirs = final_answer(self.draft), final_answer(self.candidates[name])
        differ = bool(ours) and bool(theirs) and ours != theirs
        return Ruling(CONTRADICTS if differ else AGREES, name, by="rules")

    def _objection(self, stance: Stance, kept: Sequence[Stance]) -> str:
        if stance.id not in self.candidates:
            return f"no note has the id {stance.id!r}; copy the ids from the list"
        if any(stance.id == other.id for other in kept):
            return f"there is another entry for {stance.id!r}"
        return ""


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
