"""Kinds of questions that memory asks: what each shows, how it is put, read and ruled on.

==================  ========================================================================
`votes`             What should become of the rules after an episode (ExpeL).
`novelty`           Does an error with its fix add anything to the nearest ones kept.
`contradiction`     Which notes contradict a draft (Agent KB's gate, memory-transplants §4.2).
`facts`             Which facts kept the new ones of an episode replace, correct or repeat.
`merging`           Which facts of one subject and attribute could be one.
==================  ========================================================================

Each kind has a form (`Shown`) that reads what a question shows, and rules of its own that stand in
for a model. `langgraft.nodes.judge` puts the questions.
"""

import json
import re
from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field
from typing_extensions import override

from langgraft._core.canonical import JSON
from langgraft._core.untrusted import unreadable_as
from langgraft.memory.model import By
from langgraft.nodes.structured import MOST_ENTRIES, Read, Reader, listed, typed

_SPACE = re.compile(r"\s+")


@dataclass(frozen=True, slots=True)
class Ruling:
    """One judgment; with the question's id it is a `langgraft.memory.model.Verdict`."""

    action: str
    item_id: str | None = None
    text: str = ""
    by: By = "model"


class Shown(BaseModel):
    """What a question of one kind shows; fields it does not know are left alone."""

    model_config = ConfigDict(frozen=True)

    prompt: ClassVar[str]
    """Name of the prompt that ships for this kind."""

    @property
    def asked_by(self) -> str:
        """Name of the prompt for this question."""
        return self.prompt

    @abstractmethod
    def values(self, lessons: Sequence[str]) -> dict[str, str]:
        """Return what fills in the prompt."""

    @abstractmethod
    def reader(self) -> Reader[list[Ruling]]:
        """Return what reads a model's reply, and refuses whatever was not shown."""

    @abstractmethod
    def by_rules(self, lessons: Sequence[str]) -> list[Ruling]:
        """Rule without a model; always the same for the same question."""

    @property
    def needless(self) -> str:
        """Why there is nothing to ask a model; empty where there is."""
        return ""


def as_text(value: Any) -> str:
    """Return a text as it is, and anything else as JSON."""
    return value if isinstance(value, str) else one_line(value)


def one_line(value: JSON) -> str:
    """Write JSON on one line, so that nothing in it can pass for the prompt's own words."""
    # `splitlines` also breaks at these, and so may whoever reads the prompt.
    text = json.dumps(value, ensure_ascii=False)
    return text.replace("\u2028", "\\u2028").replace("\u2029", "\\u2029").replace("\x85", "\\u0085")


def by_line(values: Iterable[JSON]) -> str:
    """Write JSON, one value a line."""
    return "\n".join(map(one_line, values)) or "(none)"


def identified(items: Mapping[str, JSON]) -> list[JSON]:
    """Put the id of each item into it; a bare text becomes the item's `text`."""
    return [
        {"id": name} | (dict(item) if isinstance(item, Mapping) else {"text": item}) | {"id": name}
        for name, item in items.items()
    ]


def same_words(text: str) -> str:
    """Return a text without what makes no difference: case, space, a mark at the end."""
    return _SPACE.sub(" ", text).strip().rstrip(".!").casefold()


def _lowered(value: Any) -> Any:
    return value.strip().lower() if isinstance(value, str) else value


Lowered = BeforeValidator(_lowered)
"""Reads `Agree` as `agree`."""

Text = Annotated[str, BeforeValidator(as_text)]
"""A text, or other JSON written as one."""


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

    def repeats(self, other: "Record", *, exactly: bool = False) -> bool:
        """Say whether two errors are the same but for what varies, or word for word."""
        compared = same_words if exactly else masked
        same = compared(self.error)
        return bool(same) and same == compared(other.error) and self.package == other.package


class Decision(BaseModel):
    """What a model makes of a record."""

    action: Annotated[Literal["add", "none"], Lowered]
    repeats: str | None = None


class Novelty(Shown):
    """A new record, and those of the collection that come nearest."""

    prompt: ClassVar[str] = "judge_novelty"

    record: Record
    neighbours: Mapping[str, Record]
    same: Literal["cause", "message"] = "cause"
    """What makes two errors one: the cause and the fix, or the message, word for word."""

    @property
    @override
    def asked_by(self) -> str:
        return "judge_novelty_message" if self.same == "message" else self.prompt

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
        """Call it a repetition where a neighbour has the same package and error.

        By its cause, an error is the same whatever its quotations, paths and numbers are.
        """
        for name, neighbour in self.neighbours.items():
            if self.record.repeats(neighbour, exactly=self.same == "message"):
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
        """Make the reader; notes that a reply passes over are ruled on, and named as a problem."""
        read_stances = listed(Stance, self._objection)

        def read(value: Any) -> Read[list[Ruling]]:
            found = read_stances(value)
            given = {stance.id: Ruling(stance.verdict, stance.id) for stance in found.value}
            if not given:
                msg = "there is no entry for any note"
                raise ValueError(msg)
            rulings = [given.get(name) or self._rule(name) for name in self.candidates]
            missing = [name for name in self.candidates if name not in given]
            lacking = (f"there is no entry for {', '.join(missing)}",) if missing else ()
            return Read(rulings, (*found.problems, *lacking))

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


class KnownFact(BaseModel):
    """A fact as a judge sees it; fields beyond these are shown as they are."""

    model_config = ConfigDict(extra="allow")

    subject: str
    attribute: str
    value: str
    no_longer: bool = False
    several: bool | None = None
    """Whether several values may hold at once; `None`: nobody declared it."""

    def written(self) -> dict[str, JSON]:
        """Return it as JSON, without what nobody said."""
        return self.model_dump(mode="json", exclude_unset=True)

    def in_place_of(self, other: "KnownFact") -> bool:
        """Whether the two are about one attribute of one subject."""
        names = ((same_words(f.subject), same_words(f.attribute)) for f in (self, other))
        return len(set(names)) == 1


class Relation(BaseModel):
    """What a new fact does to one that is kept."""

    fact: str
    action: Annotated[Literal["replaces", "corrects", "repeats"], Lowered]
    id: str


class Relations(Shown):
    """New facts, and those kept of their subjects."""

    prompt: ClassVar[str] = "judge_facts"

    facts: Mapping[str, KnownFact]
    kept: Mapping[str, KnownFact]

    @override
    def values(self, lessons: Sequence[str]) -> dict[str, str]:
        new = [{"fact": name} | fact.written() for name, fact in self.facts.items()]
        kept = {name: fact.written() for name, fact in self.kept.items()}
        return {"facts": by_line(new), "kept": by_line(identified(kept))}

    @override
    def reader(self) -> Reader[list[Ruling]]:
        read_relations = listed(Relation, self._objection)

        def read(value: Any) -> Read[list[Ruling]]:
            found = read_relations(value)
            rulings = [Ruling(each.action, each.id, each.fact) for each in found.value]
            return Read(rulings, found.problems)

        return read

    @override
    def by_rules(self, lessons: Sequence[str]) -> list[Ruling]:
        """Have a fact repeat one of the same words, and replace another value only where one may hold.

        What is no longer so replaces what says that it is.
        """
        rulings = []
        for name, fact in self.facts.items():
            for held, kept in self.kept.items():
                if not fact.in_place_of(kept):
                    continue
                same = same_words(fact.value) == same_words(kept.value)
                if same and fact.no_longer == kept.no_longer:
                    rulings.append(Ruling("repeats", held, name, "rules"))
                elif same or (fact.several is False and not fact.no_longer):
                    rulings.append(Ruling("replaces", held, name, "rules"))
        return rulings

    @property
    @override
    def needless(self) -> str:
        return "" if self.facts and self.kept else "there is nothing to compare"

    def _objection(self, relation: Relation, kept: Sequence[Relation]) -> str:
        if relation.fact not in self.facts:
            return f"no new fact has the name {relation.fact!r}; copy a name from the list"
        if relation.id not in self.kept:
            return f"no kept fact has the id {relation.id!r}; copy an id from the list"
        if any((relation.fact, relation.id) == (other.fact, other.id) for other in kept):
            return f"there is another entry for {relation.fact!r} and {relation.id!r}"
        return ""


class Merger(BaseModel):
    """Facts that could be one."""

    ids: list[str] = Field(max_length=MOST_ENTRIES)
    value: str


class Merging(Shown):
    """Facts of one subject and attribute."""

    prompt: ClassVar[str] = "judge_merge"

    subject: str
    attribute: str
    facts: Mapping[str, KnownFact]

    @override
    def values(self, lessons: Sequence[str]) -> dict[str, str]:
        facts = {name: fact.written() for name, fact in self.facts.items()}
        # On one line, so that no name can pass for the prompt's own words.
        subject, attribute = one_line(self.subject), one_line(self.attribute)
        return {
            "subject": subject,
            "attribute": attribute,
            "facts": by_line(identified(facts)),
        }

    @override
    def reader(self) -> Reader[list[Ruling]]:
        read_mergers = listed(Merger, self._objection)

        def read(value: Any) -> Read[list[Ruling]]:
            found = read_mergers(value)
            rulings = [
                Ruling("merge", name, each.value.strip())
                for each in found.value
                for name in each.ids
            ]
            return Read(rulings, found.problems)

        return read

    @override
    def by_rules(self, lessons: Sequence[str]) -> list[Ruling]:
        """Leave all as it is: rules cannot tell what belongs together."""
        return []

    def _objection(self, merger: Merger, kept: Sequence[Merger]) -> str:
        taken = {name for other in kept for name in other.ids}
        if unknown := [name for name in merger.ids if name not in self.facts]:
            return f"no fact has the id {unknown[0]!r}; copy ids from the list"
        if len(set(merger.ids)) < 2 or len(set(merger.ids)) < len(merger.ids):  # noqa: PLR2004
            return "an entry names at least two facts, each once"
        if taken & set(merger.ids):
            return "a fact is in two entries"
        if not merger.value.strip():
            return "a merged fact needs its `value`"
        if any(same_words(merger.value) == same_words(other.value) for other in kept):
            return "two entries have the same `value`"
        return ""


_BOXED = re.compile(r"\\boxed\s*\{")
_STATED = re.compile(r"\banswer\s*(?:is|:|=)\s*+:?[ \t]*+(\S[^\n]*)", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.;!?](?:\s|$)")
_NUMBER = re.compile(r"(?<![\w.])-?\d{1,40}(?:,\d{3})*(?:\.\d{1,40})?(?:/\d{1,40})?(?![\w])")
_THEN_WORDS = re.compile(rf"[$*`]*({_NUMBER.pattern})[$*`]*,?\s+[^\W\d_]{{2,}}")
"""A number with words after it: a unit, or a reason."""
_BARE = str.maketrans("", "", "$* \t`\"'")


@unreadable_as(lambda _: "")
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
