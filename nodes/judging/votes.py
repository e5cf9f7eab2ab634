"""`votes`: what should become of the rules, now that an episode is over (ExpeL)."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, Field
from typing_extensions import override

from langgraft.nodes.judging.shown import (
    Lowered,
    Ruling,
    Shown,
    Text,
    as_text,
    by_line,
    identified,
    one_line,
    same_words,
)
from langgraft.nodes.structured import Read, Reader, listed

_ALONE = "(there is none)"


class Rule(BaseModel):
    """A rule as it stands."""

    text: str
    votes: int | float = 0


class Operation(BaseModel):
    """What a model wants done with the rules."""

    action: Annotated[Literal["add", "agree", "edit", "remove"], Lowered]
    id: str | None = None
    text: str = ""

    def ruling(self) -> Ruling:
        """Return the operation with no more than it needs."""
        match self.action:
            case "add":
                return Ruling("add", text=self.text)
            case "edit":
                return Ruling("edit", self.id, self.text)
        return Ruling(self.action, self.id)


class Votes(Shown):
    """Rules by id, and an episode that speaks for or against them."""

    prompt: ClassVar[str] = "judge_votes"

    rules: Mapping[str, Rule]
    task: str
    outcome: Text
    trajectory: Text
    limit: int = Field(ge=0)
    """Most operations; at most one of them for a rule."""
    full: bool = False
    """There is no room for new rules."""
    other: Any = None
    """Another attempt at the task: a text, or JSON with its outcome and trajectory."""
    successes: Mapping[str, str] = Field(default_factory=dict)
    """Other attempts that succeeded, at any task."""

    @override
    def values(self, lessons: Sequence[str]) -> dict[str, str]:
        rules = {name: rule.model_dump(mode="json") for name, rule in self.rules.items()}
        return {
            "task": self.task,
            "outcome": self.outcome,
            "trajectory": self.trajectory,
            "other": _attempt(self.other),
            "successes": by_line(identified(self.successes)),
            "rules": by_line(identified(rules)),
            "lessons": by_line(lessons),
            "room": "no" if self.full else "yes",
            "limit": str(self.limit),
        }

    @override
    def reader(self) -> Reader[list[Ruling]]:
        read_operations = listed(Operation, self._objection)

        def read(value: Any) -> Read[list[Ruling]]:
            found = read_operations(value)
            return Read([operation.ruling() for operation in found.value], found.problems)

        return read

    @override
    def by_rules(self, lessons: Sequence[str]) -> list[Ruling]:
        """Agree with the rule that a lesson repeats; add a lesson that repeats none."""
        ids: dict[str, str] = {}
        for name, rule in self.rules.items():
            ids.setdefault(same_words(rule.text), name)
        rulings: dict[str, Ruling] = {}
        for lesson in lessons:
            words = same_words(lesson)
            if not words or words in rulings:
                continue
            if words in ids:
                rulings[words] = Ruling("agree", ids[words], by="rules")
            elif not self.full:
                rulings[words] = Ruling("add", text=lesson, by="rules")
        return list(rulings.values())[: self.limit]

    def _objection(self, operation: Operation, kept: Sequence[Operation]) -> str:
        if len(kept) >= self.limit:
            return f"at most {self.limit} operations are asked for"
        if operation.action == "add":
            return self._objection_to_adding(operation.text, kept)
        if operation.id not in self.rules:
            return f"no rule has the id {operation.id!r}; copy an id from the list"
        if any(operation.id == other.id for other in kept if other.action != "add"):
            return f"there is another operation for the rule {operation.id!r}"
        if operation.action == "edit" and not operation.text:
            return "an edit needs the new wording as `text`"
        return ""

    def _objection_to_adding(self, text: str, kept: Sequence[Operation]) -> str:
        words = same_words(text)
        if self.full:
            return "there is no room for new rules"
        if not words:
            return "a new rule needs its wording as `text`"
        if any(words == same_words(other.text) for other in kept if other.action == "add"):
            return "the same rule is added twice"
        return ""


def _attempt(other: Any) -> str:
    if other is None:
        return _ALONE
    if isinstance(other, Mapping) and "trajectory" in other:
        outcome = as_text(other.get("outcome", "not known"))
        return f"Outcome of the other attempt: {outcome}\n{as_text(other['trajectory'])}"
    return other if isinstance(other, str) else one_line(other)
