"""Advice in plain English: which goals a line speaks of, and what it says to do or not to do.

The rules look for words, not for sentences known beforehand. They read single clauses and
simple negations, and can be fooled as any keyword rule can.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from langgraft.benchmarks.simulated.alfworld.goals import Kind
from langgraft.benchmarks.simulated.alfworld.habits import Care, Habits, Search
from langgraft.benchmarks.simulated.alfworld.places import KINDS, SURFACES
from langgraft.benchmarks.simulated.conversation import CACHED_TEXTS

_SPECIAL: Mapping[Kind, re.Pattern[str]] = {
    Kind.CLEAN: re.compile(r"\b(?:clean(?:ed|ing)?|wash\w*|rins\w+|dirty)\b"),
    Kind.HEAT: re.compile(r"\b(?:hot|heat\w*|warm\w*|cook\w*)\b"),
    Kind.COOL: re.compile(r"\b(?:cool(?:ed|ing)?|cold|chill\w*)\b"),
    Kind.PAIR: re.compile(r"\b(?:two|both|pair|several)\b"),
    Kind.LIGHT: re.compile(r"\b(?:\w*lamp|light|examin\w+|look(?:ing)? at)\b"),
}
_PLAIN = re.compile(r"\b(?:put|putting|plac\w+|mov\w+|stor\w+|deliver\w*)\b")
_ANYTHING = ["things?", "objects?", "items?", "something", "anything", "it", "what", "target"]
_SEARCHING = re.compile(
    r"\b(?:find(?:ing)?|search(?:ing)?(?: for)?|look(?:ing)? for|locat(?:e|ing)"
    r"|where)(?: (?:an?|the|some))? (?P<thing>\w+)"
)
_LEADING = re.compile(r"^(?:when|if|whenever|in case|for)\b:? (.+?)[:,;] (.+)$", re.DOTALL)
_QUOTES = re.compile(r"(?<!\w)['‘’]|['‘’](?!\w)|[\"“”`*<>]")  # noqa: RUF001
_CLAUSE = re.compile(r"[.;:!?]|\bbut\b|\bwhile\b|\bso that\b")


def _done_to(verbs: str, station: str) -> re.Pattern[str]:
    """Look for a treatment that is advised, rather than for a thing that is to be treated."""
    return re.compile(
        rf"\b(?:{verbs})\b (?:\w+ ){{0,4}}?"
        rf"(?:(?:with|using|under|before|first|beforehand)\b|(?:in|at) (?:an? |the )?{station})"
    )


_STEPS: Mapping[Kind, re.Pattern[str]] = {
    Kind.CLEAN: _done_to("clean(?:ing)?|wash(?:ing)?|rins(?:e|ing)", "sink"),
    Kind.HEAT: _done_to("heat(?:ing)?|warm(?:ing)?", "microwave"),
    Kind.COOL: _done_to("cool(?:ing)?|chill(?:ing)?", "fridge"),
    Kind.PAIR: re.compile(
        r"\bone (?:at a time|after the other|by one)\b|\b(?:the )?(?:second|other) one\b"
    ),
    Kind.LIGHT: re.compile(
        r"\b(?:us|switch|turn)(?:e|ing)? (?:\w+ )?(?:on )?(?:the |a )?\w*lamp\b"
    ),
}
_LOOK = re.compile(r"\b(?:check|look|search|start|begin|find|inspect|found)\w*\b")
_LIKELY = re.compile(r"\b(?:likely|usual(?:ly)?|typical(?:ly)?|surfaces?|in the open)\b")
_OPENS = re.compile(
    r"\bopen(?:ing)? (?:\w+ )?(?:closed|shut|every|each|all|cabinets?|drawers?|them|it|what)\b"
)
_NOT = re.compile(
    r"\b(?:instead of|rather than|over|not|never|avoid\w*|without|no need|no use)\b|n't\b"
)
_NOT_YET = re.compile(r"\b(?:before|until|unless)\b")
_KIND = re.compile(rf"\b({'|'.join(sorted(KINDS, key=len, reverse=True))})e?s?\b")
_TABLES = {"table": ("diningtable", "coffeetable", "sidetable"), "counter": ("countertop",)}
_SHORT = re.compile(r"\b(table|counter)s?\b")


@dataclass(frozen=True, slots=True)
class Advice:
    """One line of advice."""

    kinds: frozenset[Kind]
    """The kinds of goal it is for."""
    about: str
    """The thing whose whereabouts it tells; empty where it names none."""
    do: frozenset[Kind]
    """Kinds of goal whose step it says to do."""
    dont: frozenset[Kind]
    """Kinds of goal whose step it says to leave out."""
    first: tuple[str, ...]
    """Kinds of places that it says to look at."""
    likely: bool
    """Whether it says to look at likely places first."""
    opens: bool
    """Whether it says to open what is closed."""

    def is_for(self, kind: Kind, thing: str) -> bool:
        """Say whether it speaks of a goal and a thing like these."""
        return kind in self.kinds and self.about in {"", thing}


@lru_cache(maxsize=CACHED_TEXTS)
def parse_advice(line: str) -> Advice:
    """Read one line of advice."""
    text = _QUOTES.sub("", line.lower()).strip(" -•\t")
    leading = _LEADING.match(text)
    situation, advice = leading.groups() if leading else ("", text)
    do, dont = _steps(advice)
    first = () if do or not _LOOK.search(advice) else _places(advice)
    likely = bool(not do and _LOOK.search(advice) and _LIKELY.search(advice))
    return Advice(
        kinds=_kinds_in(situation) if leading else _kinds_in(text),
        about=_about(situation),
        do=do,
        dont=dont,
        first=first,
        likely=likely or any(kind in SURFACES for kind in first),
        opens=_OPENS.search(advice) is not None,
    )


def habits_advised(advice: Advice, kind: Kind) -> Habits:
    """Say what advice means for a kind of goal."""
    care = Care.DO if kind in advice.do else Care.OMIT if kind in advice.dont else None
    return Habits(care, Search.LIKELY if advice.likely else None, advice.first)


def _kinds_in(text: str) -> frozenset[Kind]:
    """Return the kinds of goal that a text names; one that only searches is for all of them."""
    special = {kind for kind, pattern in _SPECIAL.items() if pattern.search(text)}
    if special:
        return frozenset(special)
    plain = _PLAIN.search(text) and not _SEARCHING.search(text)
    return frozenset({Kind.PLACE}) if plain else frozenset(Kind)


def _about(situation: str) -> str:
    found = _SEARCHING.search(situation)
    if found is None or any(re.fullmatch(word, found["thing"]) for word in _ANYTHING):
        return ""
    return found["thing"]


def _steps(text: str) -> tuple[frozenset[Kind], frozenset[Kind]]:
    do: set[Kind] = set()
    dont: set[Kind] = set()
    for clause in _CLAUSE.split(text):
        for kind, pattern in _STEPS.items():
            if found := pattern.search(clause):
                (dont if _negated(clause[: found.start()]) else do).add(kind)
    return frozenset(do), frozenset(dont - do)


def _negated(before: str) -> bool:
    """Say whether what follows is advised against; `not … before` and the like advise it."""
    negations = len(_NOT.findall(before))
    first = _NOT.search(before)
    if first and _NOT_YET.search(before, first.end()):
        negations += 1
    return negations % 2 == 1


def _places(text: str) -> tuple[str, ...]:
    named: list[tuple[int, tuple[str, ...]]] = [
        *((found.start(), (str(found.group(1)),)) for found in _KIND.finditer(text)),
        *((found.start(), _TABLES[found.group(1)]) for found in _SHORT.finditer(text)),
    ]
    return tuple(dict.fromkeys(kind for _, kinds in sorted(named) for kind in kinds))
