"""Advice in plain English: which goals a line speaks of, and what it says to do or not to do.

Words for kinds of goal, for their steps and for places are here; negation, contrast and what is said
of a step are read by `stances`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

from langgraft.benchmarks.simulated.alfworld.habits import (
    TREATED,
    Care,
    Counsel,
    Habits,
    Kind,
    Search,
)
from langgraft.benchmarks.simulated.alfworld.play import (
    KINDS,
    SURFACES,
    lacks_step,
    parse_attempt,
    shown_by,
)
from langgraft.benchmarks.simulated.conversation import CACHED_TEXTS
from langgraft.benchmarks.simulated.notes import parts_of, split_notes, stances

_SPECIAL: Mapping[Kind, re.Pattern[str]] = {
    Kind.CLEAN: re.compile(r"\b(?:clean(?:ed|ing|s)?|wash\w*|rins\w+|dirty|scrub\w*)\b"),
    Kind.HEAT: re.compile(r"\b(?:hot|heat\w*|warm\w*|cook\w*|microwav(?:ed|ing))\b"),
    Kind.COOL: re.compile(r"\b(?:cool(?:ed|ing|s)?|cold|chill\w*|refrigerat(?:e|ed|ing))\b"),
    Kind.PAIR: re.compile(r"\b(?:two|both|pairs?|several|multiple|2(?= \w+s))\b"),
    Kind.LIGHT: re.compile(
        r"\b(?:\w*lamps?|light)\b|\b(?:examin\w+|look(?:ing)? at)(?= (?:\w+ ){0,8}(?:under|with"
        r"|by|beneath)\b)"
    ),
}
_PLAIN = re.compile(r"\b(?:put|putting|plac\w+|mov\w+|stor\w+|deliver\w*)\b")
_ANYTHING = re.compile(
    r"(?:thing|object|item|target)s?|something|anything|it|what|to|is|first|one|in|on|for|them"
    r"|you|things"
)
_SEARCHING = re.compile(
    r"\b(?:find(?:ing)?|search(?:ing)?(?: for)?|look(?:ing)? for|locat(?:e|ing)|seek\w*"
    r"|where)(?: (?:an?|the|some))? (?P<thing>\w+)"
)
_LOOK = re.compile(
    r"\b(?:check|look|search|start|begin|inspect|found|scan|explor|visit|try|examin)\w*"
    r"|\b(?:find|is|are|be) (?:\w+ )?(?:in|on)\b|\b(?:likely|usually|often|tends?)\b"
)


def _treating(verb: str, always: str) -> re.Pattern[str]:
    """Look for a treatment, rather than for a thing that is treated."""
    return re.compile(
        rf"(?<!\ba )(?<!\bthe )(?<!\bis )(?<!\bsome )\b(?:{verb})\b(?= (?:it|them|that|the|this"
        rf"|your|each"
        rf"|every|an?|with|using|at|in|first|before\w*|under|thing|object|item|anything)\b)"
        rf"|\b(?:{always})\b"
    )


_STEPS: Mapping[Kind, re.Pattern[str]] = {
    Kind.CLEAN: _treating("clean", r"cleaned|cleaning|cleans|wash\w*|rins\w+|scrub\w*"),
    Kind.HEAT: _treating(
        "warm|cook|microwave", r"heat\w*|warm(?:ed|ing)|cook(?:ed|ing)|microwav(?:ed|ing)"
    ),
    Kind.COOL: _treating("cool", r"cooled|cooling|chill\w*|refrigerat(?:e|ed|ing)"),
    Kind.PAIR: re.compile(
        r"\bone (?:at a time|after (?:the other|another)|by one)\b|\bsecond(?: \w+)?\b"
        r"|\bother one\b|\bthe other\b"
        r"(?! \w)|\banother one\b|\b(?:go|come|head|return)\w* back\b|\breturn\w* for\b|\bseparately\b"
        r"|\b(?:two|2) (?:separate )?(?:trips|journeys|rounds|times)\b|\btwice\b|\brepeat\w*"
    ),
    Kind.LIGHT: re.compile(
        r"\b(?:us|switch|turn|toggl|activat|light)(?:e|ed|es|ing|ch|ched|ching)? (?:on )?(?:(?:up"
        r"|the|an?|that"
        r"|nearby|closest|nearest) )*(?:\w*lamp|light)(?: on)?\b|\b(?:\w*lamp"
        r"|light) (?:\w+ ){0,3}on\b(?! the)"
        r"|\blamp (?:\w+ ){0,2}used\b|\b(?:switch|turn)\w* (?:it )?on\b"
    ),
}
_AT: Mapping[Kind, re.Pattern[str]] = {
    kind: re.compile(
        rf"(?<!^the )\b(?:{names})s?\b(?! (?:is|was) (?:clean|cold|hot|empty|open|closed|full))"
    )
    for kind, names in (
        (Kind.CLEAN, "sink|sinkbasin"),
        (Kind.HEAT, "microwave"),
        (Kind.COOL, "fridge|refrigerator"),
    )
}
"""Words for where it is done; where the text tells where to look, they are places like others."""
_UNDONE: Mapping[frozenset[Kind], re.Pattern[str]] = {
    TREATED: re.compile(r"\bas (?:it )?is\b|\buntreated\b"),
    frozenset({Kind.CLEAN}): re.compile(r"\b(?:dirty|unwashed|uncleaned)\b"),
    frozenset({Kind.PAIR}): re.compile(
        r"\b(?:one|first) (?:of them )?(?:alone )?(?=(?:is|was) (?:not )?enough)"
        r"|\bone(?= suffices)|\b(?:stop\w* )?(?:after|with)"
        r" (?:just |only )?(?:the first|one)\b|\b(?:both|two|together)(?: \w+)? (?:at once|together"
        r"|simultaneously|at the same time)\b"
    ),
    frozenset({Kind.LIGHT}): re.compile(r"\b(?:lamp|light) (?:\w+ )?off\b"),
    frozenset(): re.compile(
        r"\b(?:put|plac|leav|set|drop|insert|stor)\w* (?:\w+ ){0,3}(?:in|into|inside|on) (?:an? |the )?"
        r"(?:sink(?:basin)?|microwave|fridge|refrigerator)\b"
    ),
}
"""Words for leaving the step out or for what cannot be done; and for what is no treatment yet."""
_OPENING = re.compile(r"\bopen(?:ed|ing)\b|\bopen (?!surf|place|spot|area)")
_LIKELY: Final = "likely"
_IN_ORDER: Final = "in order"
_OPENS: Final = "opens"
_SEARCH: Mapping[str, re.Pattern[str]] = {
    _LIKELY: re.compile(
        r"\b(?:likel\w+|probabl[ey]|usual(?:ly)?|typical(?:ly)?|common(?:ly)?|obvious|surfaces?|in the open"
        r"|open (?:places|spots"
        r"|areas))\b"
    ),
    _IN_ORDER: re.compile(
        r"\b(?:list(?:ed)? order|order (?:of|in) the list|in (?:the )?order|alphabetical\w*)\b"
    ),
    _OPENS: re.compile(
        r"\bopen(?:ing|ed)? (?:\w+ )?(?:closed|shut|every|each|all|every\w+|any\w+|cabinets?"
        r"|drawers?|them|it|what|containers?"
        r"|receptacles?|doors?)(?: (?!and|or)\w+)?(?: (?:and|or) \w+s)?\b|\blook\w* inside\b"
        r"|\b(?:closed|shut) \w+ (?:\w+ )?be opened\b"
    ),
}
_SPACED = re.compile(
    r"\b(dining|coffee|side|counter|sink|garbage|tv|stove|arm|laundry|bathtub|coffee) "
    r"(?=(?:table|top|basin|can|stand|burner|chair|hamper|machine))"
)
_ALSO: Mapping[str, tuple[str, ...]] = {
    "table": ("diningtable", "coffeetable", "sidetable"),
    "counter": ("countertop",),
    "refrigerator": ("fridge",),
    "shelve": ("shelf",),
    "couch": ("sofa",),
    "bookshelf": ("shelf",),
}
_PLACES = {name: re.compile(rf"\b{name}e?s?\b") for name in (*sorted(KINDS), *_ALSO)}


@dataclass(frozen=True, slots=True)
class Advice:
    """What a line says for one situation."""

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
        return kind in self.kinds and self.about in {"", thing, f"{thing}s"}


@lru_cache(maxsize=CACHED_TEXTS)
def parse_advice(line: str) -> tuple[Advice, ...]:
    """Read one line of advice, situation by situation."""
    return tuple(_advice(*part) for part in parts_of(_SPACED.sub(r"\1", line.lower()), _names_goal))


def habits_advised(advice: Iterable[Advice], kind: Kind) -> Habits:
    """Say what advice means for a kind of goal."""
    habits = Habits()
    for each in advice:
        care = Care.DO if kind in each.do else Care.OMIT if kind in each.dont else None
        search = Search.LIKELY if each.likely else None
        habits = habits.or_else(Habits(care, search, each.first))
    return habits


def _advice(situation: str, text: str) -> Advice:
    looks = _LOOK.search(text) is not None
    do, dont = _steps(text, looks=looks)
    named = frozenset() if situation else do | dont
    kinds = named or _kinds_in(situation or text)
    search = stances(text, {**_SEARCH, **_PLACES})
    first = _places(search) if looks and not (do | dont or _OPENING.search(text)) else ()
    likely = looks and not do and (search.get(_LIKELY) or search.get(_IN_ORDER) is False)
    return Advice(
        kinds=kinds,
        about=_about(situation),
        do=do & kinds,
        dont=dont & kinds,
        first=first,
        likely=likely or any(kind in SURFACES for kind in first),
        opens=search.get(_OPENS, False),
    )


def _names_goal(text: str) -> bool:
    return any(each.search(text) for each in (*_SPECIAL.values(), _PLAIN, _SEARCHING))


def _kinds_in(text: str) -> frozenset[Kind]:
    """Return the kinds of goal that a text names; one that only searches is for all of them."""
    special = {kind for kind, pattern in _SPECIAL.items() if pattern.search(text)}
    if special:
        return frozenset(special)
    plain = _PLAIN.search(text) and not _SEARCHING.search(text)
    return frozenset({Kind.PLACE}) if plain else frozenset(Kind)


def _about(situation: str) -> str:
    found = _SEARCHING.search(situation)
    return "" if found is None or _ANYTHING.fullmatch(found["thing"]) else found["thing"]


def _steps(text: str, *, looks: bool) -> tuple[frozenset[Kind], frozenset[Kind]]:
    """Return the kinds of goal whose step a text says to do, and to leave out."""
    done = [
        (kind, words) for each in (_STEPS, {} if looks else _AT) for kind, words in each.items()
    ]
    acts = {(frozenset({kind}), True, words.pattern): words for kind, words in done}
    acts |= {(kinds, False, words.pattern): words for kinds, words in _UNDONE.items()}
    do, dont = set[Kind](), set[Kind]()
    for (kinds, does, _), advised in stances(text, acts).items():
        (do if advised is does else dont).update(kinds)
    return frozenset(do), frozenset(dont - do)


def _places(said: Mapping[str, bool]) -> tuple[str, ...]:
    advised = [name for name, sought in said.items() if sought and name in _PLACES]
    return tuple(dict.fromkeys(kind for name in advised for kind in _ALSO.get(name, (name,))))


@lru_cache(maxsize=CACHED_TEXTS)
def counsel_for(kind: Kind, thing: str, notes: str) -> Counsel:
    """Read notes for one kind of goal and thing; what stands first wins where notes disagree."""
    advised, shown, opens, lacking = Habits(), Habits(), False, False
    for note in split_notes(notes):
        if note.attempt:
            attempt = parse_attempt(note.text)
            shown = shown.or_else(shown_by(attempt, kind))
            lacking = lacking or lacks_step(attempt, kind)
            continue
        advice = parse_advice(note.text)
        fitting = [part for part in advice if part.is_for(kind, thing)]
        advised = advised.or_else(habits_advised(fitting, kind))
        opens = opens or any(part.opens for part in fitting)
    return Counsel(advised, shown, lacking, opens)
