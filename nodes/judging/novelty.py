"""`novelty`: does an error, with its fix, add anything to the nearest ones that are kept."""

import re
from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict
from typing_extensions import override

from langgraft.nodes.judging.shown import Lowered, Ruling, Shown, by_line, identified, one_line
from langgraft.nodes.structured import Read, Reader, typed

_MASKS = (
    # An apostrophe within a word opens no quotation.
    (re.compile(r"(?<!\w)'[^'\n]*'(?!\w)|\"[^\"\n]*\"|`[^`\n]*`"), "<quoted>"),
    (re.compile(r"(?:[A-Za-z]:)?(?:[\\/][\w.@+~-]+)+[\\/]?"), "<path>"),
    (re.compile(r"\b0x[0-9a-fA-F]+\b|\d+(?:[.,]\d+)*"), "<number>"),
    (re.compile(r"\s+"), " "),
)


def masked(error: str) -> str:
    """Return an error message without its quotations, paths and numbers, which vary."""
    for pattern, mask in _MASKS:
        error = pattern.sub(mask, error)
    return error.strip().casefold()


class Record(BaseModel):
    """An error and what removed it; fields beyond these are shown as they are."""

    model_config = ConfigDict(extra="allow")

    package: str
    error: str
    fix: str

    def repeats(self, other: "Record") -> bool:
        """Say whether two errors are the same but for what varies."""
        same = masked(self.error)
        return bool(same) and same == masked(other.error) and self.package == other.package


class Decision(BaseModel):
    """What a model makes of a record."""

    action: Annotated[Literal["add", "none"], Lowered]
    repeats: str | None = None


class Novelty(Shown):
    """A new record, and those of the collection that come nearest."""

    prompt: ClassVar[str] = "judge_novelty"

    record: Record
    neighbours: Mapping[str, Record]

    @override
    def values(self, lessons: Sequence[str]) -> dict[str, str]:
        kept = {name: record.model_dump(mode="json") for name, record in self.neighbours.items()}
        record = one_line(self.record.model_dump(mode="json"))
        return {"record": record, "neighbours": by_line(identified(kept))}

    @override
    def reader(self) -> Reader[list[Ruling]]:
        read_decision = typed(Decision, self._objection)

        def read(value: Any) -> Read[list[Ruling]]:
            made = read_decision(value).value
            return Read([Ruling(made.action, made.repeats if made.action == "none" else None)])

        return read

    @override
    def by_rules(self, lessons: Sequence[str]) -> list[Ruling]:
        """Call it a repetition where a neighbour has the same masked error and package."""
        for name, neighbour in self.neighbours.items():
            if self.record.repeats(neighbour):
                return [Ruling("none", name, by="rules")]
        return [Ruling("add", by="rules")]

    @property
    @override
    def needless(self) -> str:
        return "" if self.neighbours else "there is nothing it could repeat"

    def _objection(self, decision: Decision) -> str:
        if decision.action == "none" and decision.repeats not in self.neighbours:
            return f"no record has the id {decision.repeats!r}; copy the id of the one it repeats"
        return ""
