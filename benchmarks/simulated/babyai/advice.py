"""Advice in plain English, by the goals that a line speaks of, and attempts written out, by the ways they show.

Words for kinds of goal and for ways of acting are here; negation, contrast and what is said of a way
of acting are read by `stances`.
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import Enum, auto
from functools import lru_cache
from typing import TypeAlias

from langgraft.benchmarks.simulated.babyai.habits import (
    DOOR_KINDS,
    OBJECT_KINDS,
    OBJECTS,
    Counsel,
    Door,
    Habits,
    Kind,
    Search,
    Spelling,
    View,
    parse_goal,
    parse_view,
)
from langgraft.benchmarks.simulated.conversation import CACHED_TEXTS
from langgraft.benchmarks.simulated.notes import parts_of, read_attempt, split_notes, stances

_JOINED = re.compile(r"pickup\b")
_SPACED = re.compile(r"(?:pick|take|grab|get|collect) ")
_KNOWN = re.compile(
    r"(?:go (?:to|through)|turn|move|pickup|pick|take|grab|get|collect|toggle|drop|check)\b"
)
LOOK_AROUND = 3
"""Turns that, with the first view, show all four sides."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One action and what came of it."""

    action: str
    view: View

    @property
    def failed(self) -> bool:
        """Whether the world refused it."""
        return self.view.refused

    @property
    def unread(self) -> bool:
        """Whether something was done that is not understood."""
        return not (self.failed or _KNOWN.match(self.action))


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt at a task, as far as its text tells."""

    task: str
    first: View
    turns: tuple[Turn, ...]
    success: bool | None
    """`None` where the text does not say."""


def form_of(action: str) -> Spelling | Door | None:
    """Say which way of acting an action shows."""
    if _JOINED.match(action):
        return Spelling.JOINED
    if _SPACED.match(action):
        return Spelling.SPACED
    if action.startswith(("toggle and go through ", "go through ")):
        return Door.PASS
    if action.startswith("toggle"):
        return Door.TOGGLE
    return Door.FACE if action.startswith("go to ") else None


@lru_cache(maxsize=CACHED_TEXTS)
def parse_attempt(text: str) -> Attempt:
    """Read an attempt that is written out."""
    written = read_attempt(text)
    first = parse_view(written.openings[-1] if written.openings else "")
    turns = tuple(Turn(action, parse_view(seen)) for action, seen in written.steps)
    return Attempt(written.task, first, turns, written.success)


def habits_of(attempt: Attempt) -> Habits:
    """Return the ways of acting that a successful attempt shows."""
    forms = [form for turn in attempt.turns if not turn.failed and (form := form_of(turn.action))]
    spellings = [form for form in forms if isinstance(form, Spelling)]
    doors = [form for form in forms if isinstance(form, Door)]
    return Habits(
        spelling=spellings[-1] if spellings else None,
        door=doors[-1] if doors else None,
        search=search_of(attempt),
    )


def search_of(attempt: Attempt) -> Search | None:
    """Return how an attempt looked for its goal; `None` where too little of it is understood."""
    actions = [turn.action for turn in attempt.turns]
    passes = [i for i, action in enumerate(actions) if form_of(action) is Door.PASS]
    turned = [i for i, action in enumerate(actions) if action.startswith("turn ")]
    if passes:
        before = sum(1 for i in turned if i < passes[0])
        return Search.SURVEY if before >= LOOK_AROUND else Search.LEAVE
    if not actions or any(turn.unread for turn in attempt.turns):
        return None
    moved = actions.count("move forward")
    if moved > len(turned):
        return Search.WANDER
    return Search.STAY if turned else Search.GUESS


_THINGS = rf"(?:{OBJECTS}|object|thing|item)(?:e?s)?"
_GO = r"(?:go|going|went|walk\w*|get|getting|mov\w+|head\w*|travel\w*|navigat\w+|step\w*)"
_THING = re.compile(rf"\b{_THINGS}\b")
_ARRIVE = (
    rf"(?:{_GO} (?:(?:up|over|right|straight) )?to|reach\w*|approach\w*|arriv\w+ at"
    r"|stand\w* (?:at|before|in front of))"
)
_KINDS = (
    (
        Kind.TAKE,
        re.compile(
            r"\bpick(?:ing|ed|s)?[- ](?:\w+ ){0,4}?up\b|\bpick_?ups?\b"
            r"|\b(?:grab|collect|fetch|retriev|obtain|acquir)\w*"
            rf"|\btak(?:e|ing) (?:\w+ ){{0,2}}{_THINGS}\b"
        ),
    ),
    (
        Kind.OPEN,
        re.compile(
            r"\bopen(?:ing|ed|s)?[- ](?:up )?(?:(?:\w+ ){0,3}?doors?|it|one|goals?|tasks?|missions?)\b"
            r"|\bdoors?[- ]opening\b|\b(?:to|must|should|be) open(?:ed)?\b|\bopened\b"
        ),
    ),
    (Kind.REACH_DOOR, re.compile(rf"\b{_ARRIVE} (?:\w+ ){{0,3}}?doors?\b")),
    (Kind.REACH_OBJECT, re.compile(rf"\b{_ARRIVE} (?:\w+ ){{0,3}}?{_THINGS}\b")),
)
_OUT_OF_SIGHT = re.compile(
    r"\b(?:not|never|nowhere|no|nothing) (?:\w+ ){0,2}?(?:visible|in (?:view|sight|th(?:e"
    r"|is) (?:current |same |first |starting )?room)|see\w*|saw|there|here|present"
    r"|shown|listed|spot\w*|find|found|locate\w*|sign|trace)\b|\bout of (?:sight|view)\b|\binvisible\b"
    r"|\b(?:un(?:seen|located)|hidden|missing|absent|search\w*|look(?:ing)? for|find\w*|locat\w+)\b"
    r"|\bbehind\b"
)
_TRAILING = re.compile(
    r"\b(?:when(?:ever)?|if|in order to|to|for|(?:goal|task|mission|objective)s?(?: of)?)\b([^,;:.]+)"
)
_LITERAL = re.compile(
    r"(?:(?<=['\"`‘“])|(?<=write )|(?<=type )|(?<=use )|(?<=using )|(?<=command )|(?<=action ))"  # noqa: RUF001
    r"pick[ -]up\b|\bpick[ -]up(?= (?:(?:\w+ ){0,4}?(?:is|was|gets?|got|fails?|failed|does|never)"
    r"|with|as|in)\b)"
)
"""`pick up` as the wording of an action, and not as what is to be done."""
_BESIDE_PICKUP = re.compile(
    r"\bpick[ -]up\b(?! (?:an?|the|something|anything|it|objects?|things?)\b)"
)


class _Act(Enum):
    PASS = auto()
    TOGGLE = auto()
    FACE = auto()
    STOP = auto()
    OPEN = auto()
    JOINED = auto()
    SPACED = auto()
    TURN = auto()
    REMAIN = auto()
    LEAVE = auto()


_OTHER = (
    r"(?:other|another|next|new|adjacent|adjoining|neighbou?ring|unvisited|unexplored|further|more"
    r"|different|unseen|remaining)"
)
_GOAL = r"(?:goal|task|mission|objective|episode)s?\b"
_MENTIONS: Mapping[_Act, re.Pattern[str]] = {
    _Act.LEAVE: re.compile(
        r"\b(?:leav(?:e|ing)|exit\w*|left|out of|quit\w*|abandon\w*) (?:(?:the|this|that|your)"
        rf" (?:\w+ )?(?:room|area|place)|right away|early|at once|it(?! (?:closed|open|alone|be"
        rf"|as|at)))\b|\b{_OTHER} (?:\w+ )?(?:rooms?|areas?|ones?)\b"
        r"|\brooms? (?:that )?(?:you )?(?:have |has |were |are )?(?:not|never|yet)\b"
        r"|\bexplor\w+(?! (?:this|the current|the same|here))|\broom (?:by|after) room\b"
        rf"|\b(?:each|every) room\b|\b(?:{_GO}|pass\w*|search\w*|look\w*) (?:through|behind|beyond)"
        r" (?:\w+ ){0,3}doors\b|\bleave(?=[.,;!]|$)|\belsewhere\b|\bmov\w+ on\b|\bnext door\b"
        r"|\bventur\w+"
    ),
    _Act.PASS: re.compile(
        r"\b(?:toggl\w+|open\w*) (?:it )?and (?:then )?(?:go|walk|pass|step|mov)\w* through\b"
        rf"|\b(?:{_GO}|pass\w*|run\w*|charg\w+|barg\w+|march\w*|cross\w*|proceed\w*) (?:\w+ )?"
        r"(?:through|inside|into it)\b|\b(?:walk|step|go|went|charg|barg)\w* (?:right "
        r"|straight )?in\b(?! front)|\benter\w*\b|\bcross\w*\b|\b(?:the )?(?:other|far) side\b"
        r"|\b(?:through|past|beyond) (?:it|(?:the|a|any) (?:\w+ )?door(?:way)?s?)\b"
    ),
    _Act.TOGGLE: re.compile(r"\btoggl\w+"),
    _Act.FACE: re.compile(
        rf"(?<!goal to )(?<!task to )\b{_GO} (?:(?:up|over|right|straight"
        rf"|directly) )?to\b(?! (?:an? |the |any )?(?:{_OTHER}|\w* ?rooms?))(?!(?: [\w-]+){{1,4}} {_GOAL})"
        r"|\bfac(?:e|ing)\b|(?<!was )(?<!is )(?<!be )\breach\w*|\bapproach\w*|\barriv\w+"
        r"|\b(?:walk|go|get|come)"
        r" (?:up|close)\b"
    ),
    _Act.STOP: re.compile(
        r"\b(?:stop|stand|halt|wait|stay|remain|park)\w* (?:\w+ )?(?:in front|before|there|at|next to"
        r"|beside|outside|short|on (?:this|your) side)\b|\bin front of\b|\badjacent to\b"
        r"|\bnext to\b|\b(?:stop|halt)\b(?! \w+ing)"
    ),
    _Act.OPEN: re.compile(
        r"(?<!(?<!need )(?<!have )(?<!had )to )\b(?:open(?:ed|ing)?|try(?:ing)?|tried|check(?:ed"
        r"|ing)?|us(?:e|ed|ing)|head(?:ed|ing)? for|tak(?:e|ing)|took) (?:up )?"
        r"(?:it|them|anything|(?:\w+ ){0,3}?doors?)\b"
    ),
    _Act.JOINED: re.compile(
        r"\bpickup\b|\b(?:one|single) (?:\w+ )?word\b|\b(?:without|no|omit\w*|drop\w*|remov\w+"
        r"|los[ei]\w*"
        r"|leav\w+ out|delet\w+) (?:(?:a|the|any) )?(?:space|blank|gap)s?\b|\bjoin\w*\b"
        r"|\b(?:cop(?:y|ied)|spell\w*|exact\w*|verbatim|as) (?:\w+ ){0,6}?(?:list\w*|shown"
        r"|available actions)\b"
    ),
    _Act.SPACED: re.compile(
        r"\bpick_up\b|\b(?:two|separate) words?\b|\bseparat\w* (?:the )?words?\b|\b(?:with )?(?:(?:a|the) )?(?:space|blank"
        r"|gap)\b|\bsplit\w*"
    ),
    _Act.TURN: re.compile(
        r"\b(?:turn|spin|rotat|whirl)\w* (?:\w+ )?(?:around|round|in place|(?:left"
        r"|right)(?: (?:and|or) (?:left|right))?|on the spot|in circles"
        r"|there|here)\b|\blook\w* (?:\w+ )?(?:around|about|in (?:all|every) directions?)\b"
        r"|\bspin\w*|\brotat\w+"
        r"|\bscan\w*|\bsurvey\w*|\bturning\b|\bfull (?:turn|circle|rotation)\b|\b360\b"
        r"|\b(?:search|inspect|explor|check|sweep)\w* (?:this|the (?:current|same|whole|entire)) room\b"
    ),
    _Act.REMAIN: re.compile(
        r"\b(?:same|this|start|starting|first|current) room\b|\b(?:stay|remain|linger"
        r"|wait)\w*(?! (?:calm|cool|patient|careful|focused|alert))"
    ),
}
_Avoided: TypeAlias = frozenset[Spelling | Door | Search]


@dataclass(frozen=True, slots=True)
class Advice:
    """What a line says for one situation."""

    kinds: frozenset[Kind]
    """The kinds of goal it is for."""
    named: bool
    """Whether it names a kind of goal, or only speaks of objects or doors at large."""
    do: frozenset[_Act]
    dont: frozenset[_Act]


@lru_cache(maxsize=CACHED_TEXTS)
def parse_advice(line: str) -> tuple[Advice, ...]:
    """Read one line of advice, situation by situation."""
    words = _LITERAL.sub("pick_up", line.lower())
    if "pickup" in words:
        words = _BESIDE_PICKUP.sub("pick_up", words)
    return tuple(_advice(*part) for part in parts_of(words, _names_goal))


def habits_advised(advice: Iterable[Advice], kind: Kind) -> tuple[Habits, _Avoided]:
    """Say what advice means for a kind of goal: options to take, and options to avoid."""
    habits, avoided = Habits(), _Avoided()
    for each in advice:
        if kind in each.kinds:
            option, poor = _advised(each, kind)
            habits, avoided = habits.or_else(option), avoided | poor
    return habits, avoided


def _advice(situation: str, text: str) -> Advice:
    kinds = _kinds_in(situation)
    if not situation:
        clauses = [found.group(1) for found in _TRAILING.finditer(text)]
        kinds = next(filter(None, map(_kinds_in, clauses)), _kinds_in(text))
        if kinds <= DOOR_KINDS and _OUT_OF_SIGHT.search(text) and _THING.search(text):
            kinds = frozenset()  # Doors are means here: an object is searched for.
    said = stances(text, _MENTIONS)
    do = frozenset(act for act, advised in said.items() if advised)
    about = _at_large(situation or text)
    if not kinds and said.keys() & {_Act.JOINED, _Act.SPACED}:
        kinds = frozenset({Kind.TAKE})
    elif not kinds and about == DOOR_KINDS and _Act.TOGGLE in do:
        kinds = frozenset({Kind.OPEN})
    return Advice(kinds or about, bool(kinds), do, frozenset(said.keys() - do))


def _advised(advice: Advice, kind: Kind) -> tuple[Habits, _Avoided]:
    search, shunned = _search(advice, kind)
    if advice.named and kind is Kind.TAKE:
        spelling, avoided = _spelling(advice)
        return Habits(spelling=spelling, search=search), avoided | shunned
    if advice.named and kind in DOOR_KINDS:
        door, poor = _door(advice, kind)
        return Habits(door=door, search=search), poor | shunned
    return Habits(search=search), shunned


def _names_goal(text: str) -> frozenset[Kind]:
    return _kinds_in(text) or _at_large(text)


def _kinds_in(text: str) -> frozenset[Kind]:
    """Return the kind named first, or all that are named where the text says `or`."""
    found = [(m.start(), kind) for kind, pattern in _KINDS if (m := pattern.search(text))]
    if " or " in text:
        return frozenset(kind for _, kind in found)
    return frozenset(kind for _, kind in sorted(found)[:1])


def _at_large(text: str) -> frozenset[Kind]:
    """Return the kinds of goal that a text is about without naming one."""
    if _THING.search(text):
        return OBJECT_KINDS
    if re.search(r"\bdoors?\b", text):
        return DOOR_KINDS
    return frozenset(Kind) if _OUT_OF_SIGHT.search(text) else frozenset()


def _spelling(advice: Advice) -> tuple[Spelling | None, _Avoided]:
    if _Act.JOINED in advice.do:
        return Spelling.JOINED, frozenset()
    if _Act.SPACED in advice.do or _Act.JOINED in advice.dont:
        return Spelling.SPACED, frozenset()
    return None, frozenset({Spelling.SPACED} if _Act.SPACED in advice.dont else ())


def _door(advice: Advice, kind: Kind) -> tuple[Door | None, _Avoided]:
    if kind is Kind.OPEN and _Act.TOGGLE in advice.do:
        return Door.TOGGLE, frozenset()
    if kind is Kind.REACH_DOOR and {_Act.FACE, _Act.STOP} & advice.do:
        return Door.FACE, frozenset()
    if _Act.PASS in advice.do:
        return Door.PASS, frozenset()
    if _Act.STOP in advice.do and _Act.PASS not in advice.dont:
        return Door.FACE, frozenset()
    poor = {_Act.PASS: Door.PASS, _Act.FACE: Door.FACE, _Act.STOP: Door.FACE}
    if kind is Kind.REACH_DOOR:
        poor |= {_Act.OPEN: Door.PASS, _Act.TOGGLE: Door.PASS}
    else:
        poor[_Act.TOGGLE] = Door.TOGGLE
    return None, frozenset(door for act, door in poor.items() if act in advice.dont)


def _search(advice: Advice, kind: Kind) -> tuple[Search | None, _Avoided]:
    leaving = {_Act.LEAVE, _Act.PASS, _Act.OPEN} if kind in OBJECT_KINDS else {_Act.LEAVE}
    leave = bool(leaving & advice.do) or _Act.REMAIN in advice.dont
    if leave:
        return Search.SURVEY if _Act.TURN in advice.do else Search.LEAVE, frozenset()
    if {_Act.TURN, _Act.REMAIN} & advice.do or _Act.LEAVE in advice.dont:
        return Search.STAY, frozenset()
    return None, frozenset({Search.STAY} if _Act.TURN in advice.dont else ())


@lru_cache(maxsize=CACHED_TEXTS)
def counsel_for(kind: Kind, notes: str) -> Counsel:
    """Read notes for one kind of goal; what stands first wins where notes disagree."""
    advised, avoided = Habits(), frozenset[Spelling | Door | Search]()
    for note in split_notes(notes):
        read = _imitate(parse_attempt(note.text), kind) if note.attempt else _heed(note.text, kind)
        habits, poor = read
        advised = advised.or_else(habits)
        avoided |= poor
    return Counsel(advised, avoided)


def _heed(line: str, kind: Kind) -> tuple[Habits, _Avoided]:
    return habits_advised(parse_advice(line), kind)


def _imitate(attempt: Attempt, kind: Kind) -> tuple[Habits, _Avoided]:
    """Do as a successful attempt did, whatever it was for; learn from failure of the same kind."""
    if attempt.success:
        return habits_of(attempt), frozenset()
    goal = parse_goal(attempt.task)
    if attempt.success is None or goal is None or goal.kind is not kind:
        return Habits(), frozenset()
    return Habits(), frozenset(first_failure(attempt, kind))


def first_failure(attempt: Attempt, kind: Kind) -> tuple[Spelling | Door | Search, ...]:
    """Return what went wrong first in a failed attempt, as far as it shows."""
    for turn in attempt.turns:
        form = form_of(turn.action)
        if turn.failed and isinstance(form, Spelling):
            return (form,)
        if kind in DOOR_KINDS and isinstance(form, Door):
            return (form,)
    search = search_of(attempt)
    leaving = (Search.SURVEY, Search.LEAVE)
    return leaving if search in leaving else (search,) if search else ()
