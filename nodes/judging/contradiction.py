"""`contradiction`: which notes contradict a draft (Agent KB's gate, memory-transplants §4.2)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel
from typing_extensions import override

from langgraft.nodes.judging.final_answers import final_answer
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
