"""Facts as items of a bank: what a judge is shown, what verdicts link, when items hold, which become one."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, cast

from langgraft._core.canonical import JSON, digest
from langgraft._core.errors import InputError
from langgraft.memory.facts import (
    BEGINNING,
    OPEN,
    Dated,
    Fact,
    Link,
    fact_in,
    is_fact,
    linked,
    metadata_of,
    moment,
    plain,
    spans,
    text_of,
    written,
)
from langgraft.memory.model import Annotate, BankContent, Change, MemoryItem, Question, Verdict
from langgraft.memory.provider import FEEDBACK, with_feedback
from langgraft.memory.sources import source
from langgraft.memory.trust import TrustSettings, audience

SINCE: Final = "since"
UNTIL: Final = "until"
"""Notes: when an item holds, in seconds of the epoch; they follow from the items (`facts.spans`)."""

MERGING: Final = "merging"
"""Kind of the question which facts could be one."""
MOST_MERGED: Final = 50
"""Facts that one such question shows: the latest."""


@dataclass(frozen=True, slots=True)
class KeptFact:
    """A `fact` of the episode `episode_id` as a bank holds it."""

    id: str
    """The item's."""
    fact: Fact
    since: str
    """Since when it holds, as ISO 8601; empty: nobody dated it."""
    until: str
    """Until when; empty: nothing has ended it. One that was corrected ends when it begins."""
    said: str
    """When it was said."""
    episode_id: str


def key_of(fact: Fact, text: str) -> str:
    """Return what a fact is found by: its text and category, and the words it was drawn from."""
    return "\n".join(filter(None, (text, plain(fact.attribute), plain(fact.category), fact.quote)))


def shown(fact: Fact, since: float, until: float) -> dict[str, JSON]:
    """Return a fact as a judge sees it."""
    shown: dict[str, JSON] = {
        "subject": fact.subject,
        "attribute": fact.attribute,
        "value": fact.value,
        "kind": fact.kind,
        "said_by": fact.said_by,
        "since": written(since),
    }
    if written(until):
        shown["until"] = written(until)
    return shown if fact.holds else {**shown, "no_longer": True}


def dated(item: MemoryItem) -> Dated:
    """Return what `spans` needs to know of an item."""
    return Dated(item.order_index, item.metadata)


def said_at(item: MemoryItem) -> str:
    """Return when an item was said; what another memory wrote there may be anything."""
    said = item.metadata.get("said")
    try:
        return written(moment(cast("str", said), "`said`")) if said else ""
    except InputError:
        return ""


def link_to(links: dict[Link, list[str]], action: str, until: float, kept: MemoryItem) -> None:
    """Note what a new fact does to one kept; to say again what ends by itself lets it hold longer."""
    link = cast("Link", action)
    if link == "repeats" and min(until, dated(kept).own[1]) < OPEN:
        link = "replaces"
    links.setdefault(link, []).append(kept.id)


def completed(
    given: Mapping[Link, Sequence[str]], items: Mapping[str, MemoryItem]
) -> dict[Link, list[str]]:
    """Return links with what follows from them.

    What stands for a fact once that is gone is replaced or corrected with it; and what corrects a fact
    takes over which others it could not hold beside.
    """
    links: dict[Link, list[str]] = {name: [*ids] for name, ids in given.items()}
    for name in ("replaces", "corrects"):
        ids = links.get(name, [])
        for item in items.values():
            if set(linked(item.metadata, "repeats")) & set(ids) and item.id not in ids:
                ids.append(item.id)
    corrected = set(links.get("corrects", ()))
    for item in items.values():
        apart = linked(item.metadata, "replaces")
        if item.id in corrected:
            links.setdefault("replaces", []).extend(each for each in apart if each in items)
        elif corrected & set(apart):
            links.setdefault("replaces", []).append(item.id)
    return {
        name: [each for each in dict.fromkeys(ids) if name == "corrects" or each not in corrected]
        for name, ids in links.items()
    }


def _held(content: BankContent, trust: TrustSettings | None) -> Mapping[str, tuple[float, float]]:
    """Say when items hold; one that is withheld ends none that is recalled."""
    items = {name: dated(item) for name, item in content.items.items()}
    if trust is None:
        return spans(items)
    told = {name: audience(trust, item, content) for name, item in content.items.items()}

    def heard(one: str, other: str) -> bool:
        ours, theirs = told[one], told[other]
        return theirs is None or (ours is not None and ours <= theirs)

    return spans(items, heard)


def spanned(
    content: BankContent, trust: TrustSettings | None
) -> list[tuple[MemoryItem, float, float]]:
    """List facts with when they hold, the oldest first."""
    held = _held(content, trust)
    facts = [(item, *held[item.id]) for item in content.items.values() if is_fact(item.metadata)]
    return sorted(facts, key=lambda each: (each[1], each[0].order_index, each[0].id))


def respanned(
    content: BankContent, added: Sequence[MemoryItem], trust: TrustSettings | None
) -> list[Change]:
    """Say which notes tell when items hold, once others are added or gone."""
    items = {**content.items, **{item.id: item for item in added}}
    new = {item.id for item in added}
    changes: list[Change] = []
    for name, (since, until) in _held(BankContent(items, content.notes), trust).items():
        notes = {SINCE: since, UNTIL: until}
        held = {} if name in new else content.notes.get(name, {})
        if any(held.get(key) != value for key, value in notes.items()):
            changes.append(Annotate(name, cast("Mapping[str, JSON]", notes)))
    return changes


def kept_fact(item: MemoryItem, since: float, until: float) -> KeptFact:
    """Return a fact as an application sees it."""
    return KeptFact(
        item.id,
        fact_in(item.metadata),
        written(since),
        written(until),
        said_at(item),
        item.episode_id,
    )


def merging_questions(content: BankContent, trust: TrustSettings | None) -> list[Question]:
    """Ask of each subject and attribute which of its facts could be one; those with the most first.

    Facts are shown together that are recalled for the same users, and none that is withheld.

    A question shows the `subject`, the `attribute` and, by id, `facts`. A verdict's action is `merge`, its
    `item_id` a fact and its `text` the value that says it together with all that are given the same.
    """
    slots: dict[tuple[Any, ...], list[tuple[MemoryItem, float, float]]] = {}
    for item, since, until in spanned(content, trust):
        told = frozenset() if trust is None else audience(trust, item, content)
        if until == OPEN and item.metadata.get("ended") is not True and told is not None:
            slot = (*fact_in(item.metadata).slot, told)
            slots.setdefault(slot, []).append((item, since, until))
    questions = [
        Question(
            MERGING,
            "",
            {
                "subject": subject,
                "attribute": attribute,
                "facts": {
                    item.id: shown(fact_in(item.metadata), since, until)
                    for item, since, until in held[-MOST_MERGED:]
                },
            },
        )
        for (subject, attribute, _), held in slots.items()
        if len(held) > 1
    ]
    return sorted(questions, key=lambda each: -len(cast("Mapping[str, JSON]", each.shows["facts"])))


def merged_in(question: Question, verdicts: Sequence[Verdict]) -> dict[str, list[str]]:
    """Read off verdicts which facts of a question become one: the value that says them → their ids."""
    shown = cast("Mapping[str, JSON]", question.shows["facts"])
    together: dict[str, list[str]] = {}
    taken: set[str] = set()
    for verdict in verdicts:
        name, text = verdict.item_id or "", " ".join(verdict.text.split())
        if verdict.question_id != question.id or verdict.action != "merge":
            continue
        if name in shown and text and name not in taken:
            taken.add(name)
            together.setdefault(text, []).append(name)
    return {text: names for text, names in together.items() if len(names) > 1}


def merged_item(text: str, sources: Sequence[MemoryItem], order_index: int) -> MemoryItem:
    """Make the item of facts that became one."""
    facts = [fact_in(item.metadata) for item in sources]
    since = max(dated(item).own[0] for item in sources)
    said = max(
        (said_at(item) for item in sources),
        key=lambda at: moment(at, "`said`") if at else BEGINNING,
    )
    speakers = list(dict.fromkeys(fact.said_by for fact in facts))
    categories = {fact.category for fact in facts}
    fact = Fact(
        facts[0].subject,
        facts[0].attribute,
        text,
        facts[0].kind,
        speakers[0] if len(speakers) == 1 else " and ".join(speakers),
        category=categories.pop() if len(categories) == 1 else "",
    )
    names = [item.id for item in sources]
    links: dict[Link, list[str]] = {"replaces": names}
    wording = text_of(fact, since, OPEN)
    tasks = {item.task_id for item in sources}
    item = MemoryItem(
        id=f"merged/{digest([text, *names])[:16]}",
        text=wording,
        type="other",
        source_domain=sources[0].source_domain,
        episode_id="",
        success=None,
        order_index=order_index,
        task_id=tasks.pop() if len(tasks) == 1 else None,
        sources=tuple({source("item", n) for n in names} | {s for i in sources for s in i.sources}),
        key=key_of(fact, wording),
        metadata={
            **metadata_of(fact, since, OPEN, moment(said, "`said`") if said else BEGINNING, links),
            "merged": True,
        },
    )
    owed = [item.metadata[FEEDBACK] for item in sources if FEEDBACK in item.metadata]
    return with_feedback(item, "oracle" if "oracle" in owed else owed[0]) if owed else item
