"""Facts: what was said of a subject, since when it holds, what ends it, and the items that keep it.

A fact is a triple (subject, attribute, value) with the words it was drawn from. It becomes one item, which is
never changed afterwards. What a later fact does to an earlier one stands in the later one's metadata:

===========  ==========================================================================================
link         says
===========  ==========================================================================================
`replaces`   the two do not hold at once: the one that holds since later ends the other, whichever of
             them was filed first
`corrects`   the other was never true, and what it replaced was not replaced by it
`repeats`    the other says so already: this one stands for it only where that is gone
===========  ==========================================================================================

So the time in which each item holds (`spans`) follows from the items alone: in whatever order they were
filed or imported it is the same, and an item that goes takes its effects with it: what it had ended
holds again.
"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Final, Literal, TypeAlias, get_args

from pydantic import BaseModel, ConfigDict, Field

from langgraft._core.canonical import canonical_json
from langgraft._core.errors import InputError

FactKind: TypeAlias = Literal["fact", "preference"]
"""What is so, or what somebody wants."""

Link: TypeAlias = Literal["replaces", "corrects", "repeats"]
"""What a fact does to an earlier one."""

LINKS: Final[tuple[Link, ...]] = get_args(Link)

BEGINNING: Final = datetime.min.replace(tzinfo=UTC).timestamp()
"""Since when what nobody dated holds, in seconds of the epoch."""
OPEN: Final = datetime.max.replace(tzinfo=UTC).timestamp()
"""Until when what nothing has ended holds."""


def moment(text: str, what: str) -> float:
    """Read a moment as seconds of the epoch; one without a time zone is UTC, a day is its beginning.

    Args:
        text: The moment, as ISO 8601 has it: `2026-03-01`, `2026-03-01T09:30:00+01:00`.
        what: What it is, for the message.

    Raises:
        InputError: It is none.
    """
    try:
        read = datetime.fromisoformat(text)
        return (read if read.tzinfo else read.replace(tzinfo=UTC)).timestamp()
    except (TypeError, ValueError, OverflowError) as error:
        msg = f"{what} is a moment such as 2026-03-01 or 2026-03-01T09:30:00Z; got {text!r:.80}"
        raise InputError(msg) from error


def written(seconds: float) -> str:
    """Write a moment as ISO 8601, in UTC; empty where nobody dated it, or nothing ended it."""
    if not BEGINNING < seconds < OPEN:
        return ""
    return datetime.fromtimestamp(seconds, UTC).isoformat().replace("+00:00", "Z")


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that was said, and that may change: a `value` of an attribute of a subject, drawn `by` whom.

    Raises:
        InputError: `kind` is none, or `since` or `until` no moment.
    """

    subject: str
    """Whom or what it is about: `user`, a name."""
    attribute: str
    """What is said of it: `city`, `employer`, `favorite food`."""
    value: str
    kind: FactKind = "fact"
    said_by: str = "user"
    """Who said it: `user`, `assistant`, the name of a tool."""
    turn: int = 0
    """In which step of the episode, from 0; the task is of step 0, too."""
    quote: str = ""
    """The words it was drawn from."""
    since: str = ""
    """Since when it holds, as ISO 8601; empty: since it was said."""
    until: str = ""
    """Until when, where that was said."""
    category: str = ""
    """What it belongs to: `health`, `state`; settings say how long that holds, and what is always told."""
    holds: bool = True
    """False: that it holds no longer was all that was said."""
    by: Literal["model", "rules"] = "model"

    def __post_init__(self) -> None:
        if self.kind not in get_args(FactKind):
            msg = (
                f"`kind` of a fact is one of {', '.join(get_args(FactKind))}; got {self.kind!r:.80}"
            )
            raise InputError(msg)
        for name in ("since", "until"):
            if getattr(self, name):
                moment(getattr(self, name), f"`{name}` of a fact")

    @property
    def slot(self) -> tuple[str, str]:
        """Subject and attribute, in the one way in which memory writes them."""
        return plain(self.subject), plain(self.attribute)

    def says(self, other: "Fact") -> bool:
        """Whether the two say the same, case and blanks aside."""
        ours, theirs = ((f.slot, plain(f.value), f.holds) for f in (self, other))
        return ours == theirs


class Attribute(BaseModel):
    """An attribute that settings declare: its facts are told always."""

    model_config = ConfigDict(frozen=True, extra="forbid", hide_input_in_errors=True)

    name: str = Field(pattern=r"\w")
    """As facts name it."""
    description: str = ""
    """What it means, for whoever extracts facts."""
    many: bool = False
    """Several values may hold at once: a second pet is no other pet."""
    category: str = ""
    """The category of its facts, where they name none."""


def plain(text: str) -> str:
    """Return a name as memory writes it: in lower case, with single blanks."""
    return " ".join(text.replace("_", " ").split()).casefold()


# Facts as items ---------------------------------------------------------------------------

UNIT: Final = "fact"
"""`unit` in the metadata of items that are facts."""

READ_OFF: Final = frozenset(
    ("key", "unit", "subject", "attribute", "value", "quote", "since", "until", "ended", *LINKS)
)
"""What is read off a fact, so that nobody edits it by itself."""


def is_fact(metadata: Mapping[str, Any]) -> bool:
    """Say whether an item of this metadata is a fact."""
    return metadata.get("unit") == UNIT


def label(fact: Fact) -> str:
    """Return how the text of a fact begins: all but its value."""
    begun = f"{' '.join(fact.attribute.split())} of {' '.join(fact.subject.split())}: "
    return begun if fact.holds else f"{begun}no longer "


def text_of(fact: Fact, since: float, until: float) -> str:
    """Write a fact for a prompt, on one line: `city of user: Rome (since 2026-03-01)`."""
    told = []
    if written(since):
        told.append(f"since {written(since)[:10]}")
    if written(until):
        told.append(f"until {written(until)[:10]}")
    if plain(fact.said_by) != "user":
        told.append(f"said by {' '.join(fact.said_by.split())}")
    behind = f" ({', '.join(told)})" if told else ""
    return f"{label(fact)}{' '.join(fact.value.split())}{behind}"


def metadata_of(
    fact: Fact, since: float, until: float, said: float, links: Mapping[Link, Iterable[str]]
) -> dict[str, str | int | float | bool]:
    """Return the metadata of a fact's item; what says nothing is left out.

    Args:
        fact: The fact.
        since: Since when it holds, in seconds.
        until: Until when at most.
        said: When it was said.
        links: What it does to which items.
    """
    subject, attribute = fact.slot
    told: dict[str, str | int | float | bool] = {
        "unit": UNIT,
        "subject": subject,
        "attribute": attribute,
        "value": fact.value.strip(),
        "kind": fact.kind,
        "said_by": fact.said_by,
        "turn": fact.turn,
    }
    optional: dict[str, str] = {
        "category": plain(fact.category),
        "quote": fact.quote,
        "said": written(said),
        "since": written(since),
        "until": written(until),
        "by": "rules" if fact.by == "rules" else "",
    }
    for name in LINKS:
        ids = [*links.get(name, ())]
        optional[name] = canonical_json(ids) if ids else ""
    told |= {name: value for name, value in optional.items() if value}
    return told if fact.holds else {**told, "ended": True}


def fact_in(metadata: Mapping[str, Any]) -> Fact:
    """Read the fact that an item's metadata holds; what somebody else wrote there may be anything."""

    def text(name: str) -> str:
        value = metadata.get(name, "")
        return value if isinstance(value, str) else str(value)

    turn = metadata.get("turn", 0)
    return Fact(
        text("subject"),
        text("attribute"),
        text("value"),
        "preference" if text("kind") == "preference" else "fact",
        text("said_by"),
        turn if isinstance(turn, int) else 0,
        text("quote"),
        written(_read(metadata, "since", BEGINNING)),
        written(_read(metadata, "until", OPEN)),
        text("category"),
        metadata.get("ended") is not True,
        "rules" if text("by") == "rules" else "model",
    )


def linked(metadata: Mapping[str, Any], link: Link) -> tuple[str, ...]:
    """Return the ids of the items that an item does something to."""
    try:
        ids = json.loads(metadata.get(link, "[]"))
    except (TypeError, ValueError, RecursionError):
        return ()
    return tuple(each for each in ids if isinstance(each, str)) if isinstance(ids, list) else ()


def _read(metadata: Mapping[str, Any], name: str, otherwise: float) -> float:
    value = metadata.get(name)
    if not value:
        return otherwise
    try:
        return moment(value, name)
    except InputError:  # an import may hold anything
        return otherwise


# When items hold --------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Dated:
    """What `spans` needs to know of an item."""

    order: int
    metadata: Mapping[str, Any]

    @property
    def own(self) -> tuple[float, float]:
        """Since and until when it says itself that it holds; what is no fact, since it was said."""
        if not is_fact(self.metadata):
            return _read(self.metadata, "said", BEGINNING), OPEN
        return _read(self.metadata, "since", BEGINNING), _read(self.metadata, "until", OPEN)


def spans(
    items: Mapping[str, Dated], heard: Callable[[str, str], bool] = lambda _one, _other: True
) -> dict[str, tuple[float, float]]:
    """Say since and until when each item holds; one that never does ends when it begins.

    Args:
        items: All items of a bank, by id.
        heard: Says whether the first of two items is told wherever the second would be. One that is
            not ends none that is, and none is silent for it.
    """
    own = {name: item.own for name, item in items.items()}
    until = {name: end for name, (_, end) in own.items()}
    facts = [(name, item) for name, item in items.items() if is_fact(item.metadata)]
    silent = {
        other
        for name, item in facts
        for other in linked(item.metadata, "corrects")
        if other in items and heard(name, other)
    }
    silent |= {
        name
        for name, item in facts
        if any(other in items and heard(other, name) for other in linked(item.metadata, "repeats"))
    }
    for name, item in facts:
        for other in linked(item.metadata, "replaces"):
            if other not in items or other == name or silent & {name, other}:
                continue
            if not heard(name, other):
                continue
            pair = (own[name][0], item.order, name), (own[other][0], items[other].order, other)
            earlier, later = sorted(pair)
            until[earlier[2]] = min(until[earlier[2]], later[0])
    for name in silent:
        until[name] = own[name][0]
    return {name: (own[name][0], max(own[name][0], until[name])) for name in items}
