"""Advice in plain English: which goals a line speaks of, and what it says to do or not to do.

The rules look for words, not for sentences known beforehand. They read single clauses and
simple negations, and can be fooled as any keyword rule can.
"""

import re
from dataclasses import dataclass
from enum import Enum, auto

from langgraft.benchmarks.simulated.babyai.habits import Door, Habits, Search, Spelling
from langgraft.benchmarks.simulated.babyai.sight import DOOR_KINDS, OBJECT_KINDS, OBJECTS, Kind

_THINGS = rf"(?:{OBJECTS}|object|thing|item|target)(?:e?s)?"
_ARRIVE = (
    r"(?:go(?:ing)? (?:up )?to|reach(?:ing)?|walk(?:ing)? (?:up )?to|get(?:ting)? to"
    r"|stand(?:ing)? (?:at|before|in front of)|find(?:ing)?)"
)
_KINDS = (
    (
        Kind.TAKE,
        re.compile(
            r"\bpick(?:ing|ed|s)?[- ](?:\w+ ){0,4}?up\b|\bpickup\b|\b(?:grab|collect|fetch)\w*"
            rf"|\btak(?:e|ing) (?:\w+ ){{0,2}}{_THINGS}\b"
        ),
    ),
    (
        Kind.OPEN,
        re.compile(
            r"\bopen(?:ing)? (?:(?:a|an|the|any|some|this|that) |it\b)|\bopening doors?\b"
            r"|\b(?:to|must|should) open\b"
        ),
    ),
    (Kind.REACH_DOOR, re.compile(rf"\b{_ARRIVE} (?:\w+ ){{0,2}}?doors?\b")),
    (Kind.REACH_OBJECT, re.compile(rf"\b{_ARRIVE} (?:\w+ ){{0,2}}?{_THINGS}\b")),
)

_LEADING = re.compile(r"^(?:when|if|whenever|in case|for)\b:? (.+?)[:,;] (.+)$", re.DOTALL)
_TRAILING = re.compile(r"\b(?:when|if|whenever|in order to|to)\b([^,;:.]+)")
_QUOTES = re.compile(r"(?<!\w)['‘’]|['‘’](?!\w)|[\"“”`*<>]")  # noqa: RUF001
_CLAUSE = re.compile(r"[.;:,!?]|\bbut\b|\bwhile\b|\bso that\b")


class _Act(Enum):
    PASS = auto()
    TOGGLE = auto()
    FACE = auto()
    JOINED = auto()
    SPACED = auto()
    STAY = auto()
    LEAVE = auto()


_MENTIONS = re.compile(
    r"(?P<LEAVE>\bleav(?:e|ing) (?:the|this|that|your) (?:\w+ )?room"
    r"|\b(?:other|another|next|new|unvisited|unexplored|further|more|different|unseen) rooms?\b"
    r"|\brooms? (?:that )?(?:you )?(?:have |has |were |are )?(?:not|never)\b"
    r"|\bexplor\w+|\broom (?:by|after) room\b|\b(?:each|every) room\b"
    r"|\b(?:go|going|walk|walking|pass|passing|move|moving|step|stepping|search|searching)"
    r" through (?:\w+ ){0,3}doors\b)"
    r"|(?P<PASS>\b(?:toggl\w+|open) and (?:go|walk|pass|step)\w* through\b"
    r"|\b(?:go|going|walk|walking|pass|passing|mov\w+|step\w*) through\b)"
    r"|(?P<TOGGLE>\btoggl\w+)"
    r"|(?P<FACE>\b(?:go|going|walk|walking|get|getting) (?:up )?to\b"
    r"|\b(?:stop|stand)\w* (?:right )?in front of\b|\bfac(?:e|ing)\b)"
    r"|(?P<JOINED>\bpickup\b|\b(?:one|single) word\b|\bwithout (?:a |the |any )?space\b)"
    r"|(?P<SPACED>\btwo words\b|\bwith (?:a |the )?space\b)"
    r"|(?P<STAY>\bturn\w* (?:\w+ )?(?:around|round|in place|left|right|on the spot)\b"
    r"|\blook\w* (?:all )?around\b"
    r"|\b(?:same|this|start|starting|first|current) room\b|\bstay\w*)"
)
_NOT_BEFORE = re.compile(
    r"\b(?:instead of|rather than|not|never|avoid|don'?t|stop|without|no need to|no use)"
    r"(?:\W+\w+){0,3}\W*$"
)
_NOT_AFTER = re.compile(
    r"^\W*(?:\w+\W+){0,4}?(?:does not|doesn'?t|do not|don'?t|never|fail\w*|(?:is|was|were|are) not"
    r"|isn'?t|wasn'?t|will not|won'?t|did not|didn'?t|cannot|can'?t|(?:is |was )?rejected"
    r"|(?:is |was )?refused|(?:is |was )wrong|(?:is |was )?useless)\b"
)


@dataclass(frozen=True, slots=True)
class Advice:
    """One line of advice."""

    kinds: frozenset[Kind]
    """The kinds of goal it is for."""
    named: bool
    """Whether it names a kind of goal, or only speaks of objects or doors at large."""
    do: frozenset[_Act]
    dont: frozenset[_Act]


def parse_advice(line: str) -> Advice:
    """Read one line of advice."""
    text = _QUOTES.sub("", line.lower()).strip(" -•\t")
    leading = _LEADING.match(text)
    situation, advice = leading.groups() if leading else ("", text)
    kinds = _kinds_in(situation)
    if not kinds and not leading:
        clauses = [found.group(1) for found in _TRAILING.finditer(text)]
        kinds = next(filter(None, map(_kinds_in, clauses)), _kinds_in(text))
    do, dont = _mentions(advice)
    return Advice(kinds or _at_large(situation or text), bool(kinds), do, dont)


def habits_advised(
    advice: Advice, kind: Kind
) -> tuple[Habits, frozenset[Spelling | Door | Search]]:
    """Say what advice means for a kind of goal: options to take, and options to avoid."""
    if kind not in advice.kinds:
        return Habits(), frozenset()
    search, shunned = _search(advice, kind)
    if not advice.named:
        return Habits(search=search), shunned
    if kind is Kind.TAKE:
        spelling, avoided = _spelling(advice)
        return Habits(spelling=spelling, search=search), avoided | shunned
    if kind in DOOR_KINDS:
        door, poor = _door(advice, kind)
        return Habits(door=door, search=search), poor | shunned
    return Habits(search=search), shunned


def _kinds_in(text: str) -> frozenset[Kind]:
    """Return the kind named first, or all that are named where the text says `or`."""
    found = [(m.start(), kind) for kind, pattern in _KINDS if (m := pattern.search(text))]
    if " or " in text:
        return frozenset(kind for _, kind in found)
    return frozenset(kind for _, kind in sorted(found)[:1])


def _at_large(text: str) -> frozenset[Kind]:
    if re.search(rf"\b{_THINGS}\b", text):
        return OBJECT_KINDS
    return DOOR_KINDS if re.search(r"\bdoor\b", text) else frozenset()


def _mentions(text: str) -> tuple[frozenset[_Act], frozenset[_Act]]:
    do: set[_Act] = set()
    dont: set[_Act] = set()
    for clause in _CLAUSE.split(text):
        found = list(_MENTIONS.finditer(clause))
        starts = [0, *(mention.end() for mention in found)]
        ends = [*(mention.start() for mention in found[1:]), len(clause)]
        for mention, start, end in zip(found, starts, ends, strict=False):
            before, after = clause[start : mention.start()], clause[mention.end() : end]
            negated = _NOT_BEFORE.search(before) or _NOT_AFTER.match(after)
            (dont if negated else do).add(_Act[mention.lastgroup or ""])
    return frozenset(do), frozenset(dont - do)


def _spelling(advice: Advice) -> tuple[Spelling | None, frozenset[Spelling | Door | Search]]:
    if _Act.JOINED in advice.do:
        return Spelling.JOINED, frozenset()
    if _Act.SPACED in advice.do or _Act.JOINED in advice.dont:
        return Spelling.SPACED, frozenset()
    return None, frozenset({Spelling.SPACED} if _Act.SPACED in advice.dont else ())


def _door(advice: Advice, kind: Kind) -> tuple[Door | None, frozenset[Spelling | Door | Search]]:
    if kind is Kind.OPEN and _Act.TOGGLE in advice.do:
        return Door.TOGGLE, frozenset()
    if kind is Kind.REACH_DOOR and _Act.FACE in advice.do:
        return Door.FACE, frozenset()
    if _Act.PASS in advice.do:
        return Door.PASS, frozenset()
    if _Act.FACE in advice.do and _Act.PASS not in advice.dont:
        return Door.FACE, frozenset()
    poor = {_Act.PASS: Door.PASS, _Act.TOGGLE: Door.TOGGLE, _Act.FACE: Door.FACE}
    return None, frozenset(door for act, door in poor.items() if act in advice.dont)


def _search(
    advice: Advice, kind: Kind
) -> tuple[Search | None, frozenset[Spelling | Door | Search]]:
    leaving = {_Act.LEAVE, _Act.PASS} if kind in OBJECT_KINDS else {_Act.LEAVE}
    leave, stay = bool(leaving & advice.do), _Act.STAY in advice.do
    if leave and stay:
        return Search.SURVEY, frozenset()
    if leave:
        return Search.LEAVE, frozenset()
    if stay or _Act.LEAVE in advice.dont:
        return Search.STAY, frozenset()
    return None, frozenset({Search.STAY} if _Act.STAY in advice.dont else ())
