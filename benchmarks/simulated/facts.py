"""Rules by which a simulated model notes down facts, and says what new ones do to those kept.

They know a dozen forms of sentences, which `fact_histories` writes and other text has by chance, and read
nothing between the lines. What is asked, reported or read out is in none of the forms.

================  =========================================================================
Extracting        one fact a sentence, with the sentence as its quotation
Relating          another value of an attribute that has one value replaces it, corrects it
                  where the quotation begins with `I was wrong`; the same value repeats it;
                  `no longer` replaces the value that it names. Attributes that are not
                  among the forms go by the rules of `nodes.judging.Relations`
Merging           facts whose values begin alike are one, with the longest
================  =========================================================================
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, Final

from pydantic import ValidationError

from langgraft.nodes.judging import Relations, same_words

SINGLE: Final = ("city", "employer", "favorite food", "mood", "staying in")
"""Attributes that have one value at a time."""
SEVERAL: Final = ("pet", "likes")
WRONG: Final = "I was wrong"

_DAY = r"\d{4}-\d\d-\d\d"
_WHO = r"(?P<who>I|[A-Z][a-z]+)"
_WHOSE = r"(?P<who>My|my|[A-Z][a-z]+'s)"
_FORMS: Final = tuple(
    (attribute, re.compile(form))
    for attribute, form in (
        ("city", rf"{_WHO} moved to (?P<value>.+)\."),
        ("city", rf"As you know, {_WHO} lives? in (?P<value>.+)\."),
        ("city", rf"{WRONG}: it is (?P<value>.+) that {_WHO} moved to, not .+\."),
        ("employer", rf"{_WHO} started working at (?P<value>.+)\."),
        (
            "employer",
            rf"Since (?P<since>{_DAY}) {_WHO} (?:have|has) been working at (?P<value>.+)\.",
        ),
        ("employer", rf"{WRONG}: it is (?P<value>.+) that {_WHO} started working at, not .+\."),
        ("favorite food", rf"{_WHOSE} favorite food is (?P<value>.+) now\."),
        (
            "favorite food",
            rf"{WRONG}: it is (?P<value>.+) that is {_WHOSE} favorite food, not .+\.",
        ),
        ("pet", rf"{_WHO} got a \w+ called (?P<value>.+)\."),
        ("pet", rf"{_WHO} no longer (?P<gone>have|has) (?P<value>.+)\."),
        ("likes", rf"{_WHO} likes? (?P<value>.+)\."),
        ("likes", rf"{_WHO} no longer (?P<gone>likes?) (?P<value>.+)\."),
        ("mood", rf"{_WHO} (?:am|is) (?P<value>\w+) today\."),
        ("staying in", rf"{_WHO} (?:am|is) staying in (?P<value>.+) until (?P<until>{_DAY})\."),
    )
)
_PREFERENCES: Final = ("favorite food", "likes")
_SENTENCE = re.compile(r"[^.?!\n]+[.?!]")


def extracted(turns: Sequence[Mapping[str, Any]]) -> str:
    """Return the facts of a conversation as a JSON list."""
    found = [
        told
        for turn in turns
        if turn.get("who") == "user"
        for sentence in _SENTENCE.findall(str(turn.get("said", "")))
        if (told := _read(sentence.strip(), turn.get("turn", 0))) is not None
    ]
    return json.dumps(found)


def _read(sentence: str, turn: int) -> dict[str, Any] | None:
    for attribute, form in _FORMS:
        found = form.fullmatch(sentence)
        if found is None:
            continue
        said = found.groupdict()
        who = said["who"].removesuffix("'s")
        return {
            "subject": "user" if who in ("I", "My", "my") else who,
            "attribute": attribute,
            "value": said["value"],
            "kind": "preference" if attribute in _PREFERENCES else "fact",
            "turn": turn,
            "quote": sentence,
            "since": said.get("since") or "",
            "until": said.get("until") or "",
            "category": "state" if attribute == "mood" else "",
            "holds": not said.get("gone"),
        }
    return None


def related(new: Sequence[Mapping[str, Any]], kept: Sequence[Mapping[str, Any]]) -> str:
    """Return what new facts do to those kept, as a JSON list."""
    entries = []
    for fact in new:
        for held in kept:
            action = _relation(fact, held)
            if action:
                entries.append({"fact": fact.get("fact"), "action": action, "id": held.get("id")})
    return json.dumps(entries)


def _relation(fact: Mapping[str, Any], held: Mapping[str, Any]) -> str:
    try:
        shown = Relations.model_validate({"facts": {"new": fact}, "kept": {"old": held}})
    except ValidationError:
        return ""
    new, old = shown.facts["new"], shown.kept["old"]
    attribute = same_words(new.attribute)
    if not new.in_place_of(old) or attribute not in (*SINGLE, *SEVERAL):
        return next((ruling.action for ruling in shown.by_rules(())), "")
    if same_words(new.value) == same_words(old.value):
        return "repeats" if new.no_longer == old.no_longer else "replaces"
    if attribute in SEVERAL:
        return ""
    return "corrects" if str(fact.get("quote", "")).startswith(WRONG) else "replaces"


def merged(facts: Sequence[Mapping[str, Any]]) -> str:
    """Return which facts could be one, as a JSON list."""
    groups: dict[str, list[Mapping[str, Any]]] = {}
    for fact in facts:
        groups.setdefault(same_words(str(fact.get("value"))).partition(" ")[0], []).append(fact)
    proposed = [
        {
            "ids": [fact.get("id") for fact in group],
            "value": max((str(fact.get("value")) for fact in group), key=len),
        }
        for group in groups.values()
        if len(group) > 1
    ]
    return json.dumps(proposed)
