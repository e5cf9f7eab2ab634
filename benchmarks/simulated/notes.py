"""Recalled notes: lines of advice, attempts written out, and what a line says for and against something.

    found = stances("Toggle it; walking through is a trap.", {"toggle": …, "through": …})
    # {"toggle": True, "through": False}

A learner brings words for the acts it knows. Each word of a note becomes a letter, by what it does
to the words around it (`_WORDS`), and patterns over these letters (`_RULES`) tell whether an act is
advised: by what stands before it (`never`, `instead of`, `forgot to`), and by what is said of it
after (`fails`, `is a trap`, `did the job`). Two negations make none. What was done in a story counts
by its end. What is asked, left open or said both ways says nothing.

Attempts are read in whatever form they are written: `Action: …`, `**Act 3:** …`, `> …`, numbered
lines, or sentences that tell of them. Of what cannot be read nothing is concluded.
"""

import re
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final, TypeVar

Act = TypeVar("Act", bound=Hashable)

_CONTRACTED: Final = re.compile(
    r"\b(do|does|did|is|was|are|were|wo|would|ca|could|should|has|have|had|must|need)n['’]?t\b"  # noqa: RUF001
)
_MARKS: Final = re.compile(r"(?<!\w)['‘’]|['‘’](?!\w)|[\"“”`*<>\[\]]")  # noqa: RUF001
_BULLET: Final = re.compile(r"^\W*(?:\d+[.)]\W*)?")
_DASH: Final = re.compile(r"\s(?:[-–—]+|→|[=-]>)\s|—")  # noqa: RUF001
_SENTENCE: Final = re.compile(r"(?<=[.!?;])\s+")
_HYPHEN: Final = re.compile(r"(?<=\w)-(?=\w)")

_SITUATION: Final = (
    re.compile(
        r"^(?:when(?:ever)?|if|in case|for|in order to|to|once|where|on|should|given|with|in)\b:? "
        r"(?P<when>(?!(?:you|i|we) (?:do|did) not (?!see|find|spot|know)).+?)(?:[:,;] ?|(?<!have) "
        r"(?=(?:you (?:must|should|need|only|can)|just|simply|always|never|do not)\b))(?P<rest>.+)$"
    ),
    re.compile(r"^(?P<when>(?!.*\b(?:needs?|use|must)\b.*:)[^,.;:?]{3,80}?) ?[:?] (?P<rest>.+)$"),
    re.compile(
        r"^(?P<rest>.+?),? ?\b(?:even )?(?:when(?:ever)?|if|in case)\b (?P<when>[^,;:.]*\b(?:goal|task"
        r"|asked|told|have to|had to|need|must|want|mission|objective|instruct\w+)\b[^,;:.?]*?)"
        r"(?P<more>,.*| and (?:avoid|do not|never|then|just|stop|use)\b.*|[.;!]?)$"
    ),
)
"""Where a sentence names the situation that it is for: before a comma, as a label, or at its end."""

_WORDS: Final = (
    # Plain words, some of which look like negations or negate something else.
    (
        "w",
        (
            r"(?<=\w )(?:you|we|that|which) (?:are|were|have|had|can) (?:not|never)|not yet|right (?:in|at)"
            r"|(?:is|are|was|were) not (?:\w+ )?(?:visible|in (?:view|sight)|seen|present|found)"
            r"|over (?:and over|to)|(?:again|time) and again"
        ),
    ),
    ("o", r"not (?:only|just|merely|simply)"),
    ("n", r"(?:do not|never|avoid|without|stop) (?:wast\w+ (?:\w+ )?\w+|bother\w*)"),
    # Something was left out that should have been done.
    (
        "f",
        r"forg[eo]t\w*|fail(?:s|ed|ing|ure)? to|neglect\w*|should have|hesitate to|miss(?:ed|ing)",
    ),
    # Bad; good, in the end; fit, as far as it goes.
    (
        "b",
        (
            r"fail(?:s|ed|ures?|ing)?|refus\w+|reject\w+|un(?:recogni|success|help|necessar)\w+|wrong(?:ly)?"
            r"|in(?:valid|effective|correct|sufficient)|mistakes?|errors?|traps?|useless|pointless|futile"
            r"|in vain|wast\w+|bad|poor|backfir\w+|harm\w*|hurts?|nowhere|lost|los(?:es?|ing)|costs?|stuck"
            r"|dead end|illegal|ignored|nothing (?:happen\w*|chang\w*|came|comes)|overshoot\w*|optional"
            r"|(?:does|did|achiev\w+|gain\w*|br\w+) nothing|worse|worthless|tempt\w+|avoided|overkill|beware"
            r"|no (?:effect|good|progress|success|result|luck|avail|difference)|pitfall|myth|redundant"
            r"|forbidden|too (?:far|much|little|many)|not worth|r[au]n out|time[ds]? out|in circles"
            r"|out of (?:steps|rounds|moves|turns)|less (?:likely|useful|effective)|fruitless"
            r"|without (?:success|result|effect)|br(?:eak|oke)\w*|slow(?:er|ly)?|prevent\w*|stops? the"
        ),
    ),
    (
        "g",
        (
            r"work(?:s|ed)?|succe\w+|w[oi]ns?|solv\w+|complet\w+|accepted|recogni[sz]ed|tricks?|finish\w*"
            r"|done|help(?:s|ed)?|pays|paid off|reward\w*|ends|ended|(?:was|is) (?:reached|met|achieved)"
            r"|did it|does it|led (?:\w+ )?to"
        ),
    ),
    (
        "e",
        (
            r"needed|required|necessary|mandatory|essential|crucial|enough|suffic\w+|correct|counts?|valid"
            r"|best|(?:is|was) right|reliabl\w+|all (?:it|that|you)"
        ),
    ),
    # Was not done; goes without; before; is denied; is advised against.
    (
        "d",
        (
            r"(?:did|had|have) not|skipp?ed|omitted|left out|(?:i|we|you|agent) never"
            r"|(?:if|since|because|as) (?:\w+ )?(?:do|does|is) not"
        ),
    ),
    ("l", r"without|unless"),
    ("u", r"before|until|till"),
    (
        "v",
        (
            r"(?:does|is|was|are|were|will|would|can|could|has) not|cannot"
            r"|(?:not|never) (?:what|enough|sufficient|the way|how)"
        ),
    ),
    (
        "n",
        (
            r"(?:do |should |must )?not|never|avoid(?:s|ing)?|instead of|rather than|than|refrain\w*|neither"
            r"|resist\w*|quit|beats?|outperforms?|(?<!is )(?<!was )over|needless|hardly|against"
            r"|no(?: (?:need|use|point|reason|sense|one))?|nobody|none|nothing (?:\w+ ){0,3}(?:by|from|in)"
        ),
    ),
    ("m", r"skip\w*|omit\w*|leav\w+ (?:it )?out|drop\w*"),
    ("j", r"stop(?:ped)?(?=\W+\w+ing\b|\W*$)"),
    ("r", r"twice|again|more than once|second time|blindly|from (?:afar|a distance)"),
    # Has to be; may be; on a condition; for a reason; or else.
    (
        "t",
        (
            r"must|should|ought to|needs?|ha(?:ve|s) to|finally|eventually|in the end|always"
            r"|only (?:\w+ ){0,4}(?:after|by|when|once|if)"
        ),
    ),
    ("q", r"whether|either|maybe|perhaps|unsure|unclear"),
    ("c", r"when(?:ever)?|if|once"),
    ("k", r"because|since|as|so that"),
    ("x", r"otherwise|or else"),
    # A story; what points back; what links; what parts clauses.
    (
        "s",
        r"i|we|my|agent|tr(?:ied|ying)|kept|used|spent|assumed|thought|expected|attempted|believed",
    ),
    (
        "p",
        (
            r"it|that|this|which|they|these|those|doing so|you"
            r"|the (?:goal|task|episode|environment|game)"
        ),
    ),
    ("h", r"to|was|is|were|are|by|from|of|with|came"),
    (",", r"but|yet|while|whereas|although|though|then|so|hence|instead"),
    ("+", r"and"),
    ("y", r"or|nor"),
    ("w", r"\w+"),
)
"""Letter → words, the first that fits. `A` is the act in question, `a` another one."""
_MARKED: Final = {".": ".", ";": ".", "!": ".", "?": "?"}
"""Letter of a punctuation mark; a comma, colon or bracket is a break between clauses."""
_LEXICON: Final = re.compile(
    "|".join(rf"(\b(?:{words})\b)" for _, words in _WORDS) + r"|[.;!?,:()]"
)

_NEAR: Final = r"[^,.?Aa+xcku]{0,7}"
"""A few words of one clause."""
_CLAUSE: Final = r"(?:[wh]{0,2}a)?[^,.?Aa+xcku]{0,8}"
"""The rest of a clause that names an act, perhaps by two names."""
_ON: Final = r"[,.+]{1,3}(?:[ps][wh]{0,6})?"
"""How what is said of an act goes on in another clause: `…, but it …`."""
_SAME: Final = re.compile("[whpk,]{0,3}")
"""What may stand between two words for an act that are one mention of it."""

_VERB: Final = re.compile(r"\w+(?:ing|[^e]ed)\b|went\b|left\b")
_PASSIVE: Final = re.compile(r"\b(?:be|been|being|is|are|was|were|get|gets|it)\W*$")
_FAILED: Final = re.compile("[bvd]|n[wh]{0,2}g")
_LONGEST: Final = 1_000
"""Characters of a line that are read: advice is shorter, and what reads it is no match for more."""
_FOR, _AGAINST, _OPEN, _TOLD = "for", "against", "open", "told"
_RULES: Final = tuple(
    (re.compile(letters), stance)
    for letters, stance in (
        (r"A[^.]*\?|q[^,.]*A", _OPEN),
        (rf"o{_NEAR}A", _OPEN),
        # Never without it; not before it is done; do not forget it; it is no mistake.
        (rf"[nvdb][^.x]*[lu]{_NEAR}A", _FOR),
        (rf"f{_NEAR}A|[nvdb]{_NEAR}m{_NEAR}A", _FOR),
        (r"[nlm][wh]{0,2}A[^,.?+]{0,6}h[wps]{0,3}b", _FOR),
        (rf"[nvd]{_NEAR}[bf]{_NEAR}A|bk?{_NEAR}[nvd]{_NEAR}A", _FOR),
        # Left out: to no good end, or to a good one.
        (rf"[dl]{_NEAR}A[^.]*(?:\.[wp]{{0,2}})?[bfvn]|[bdfvn][^.]*d{_NEAR}A", _FOR),
        (rf"[dl]{_NEAR}A[^.]*[ge]|g[^.]*d{_NEAR}A", _AGAINST),
        (rf"d{_NEAR}A", _OPEN),
        # Not yet; not once more; not at all.
        (rf"[nv]{_NEAR}A[^.,Aa]*[ul]", _FOR),
        (rf"[nv]{_NEAR}A[wh]{{0,3}}r", _OPEN),
        # Two negations that none of the above explains; the better of two acts.
        (rf"[nvdlmbf][^.,?a]*(?:[nvlm]{_NEAR}A|A{_CLAUSE}[bvd])", _OPEN),
        (r"[bnvm][^,.A]*a[whp]{0,4}n[wh]{0,2}A", _FOR),
        (rf"jw?A|[nvlm]{_NEAR}(?:a[wh]{{0,4}}(?:\+|y[wh]{{0,2}}))?A", _AGAINST),
        (r"(?<!c)(?<!cp)b[wp]{0,2}h[whps]{0,3}A|bk[spwk]{0,6}A", _AGAINST),
        # What is said of it after.
        (rf"A{_CLAUSE}[nvd][wh]{{0,2}}b|A{_CLAUSE}{_ON}[nvd][wh]{{0,2}}b", _FOR),
        (rf"A{_CLAUSE}(?:b|[vd]|n[wh]{{0,2}}[ge])", _AGAINST),
        (rf"A{_CLAUSE}{_ON}(?:b|[vd]|n[wh]{{0,2}}[ge])(?![^,.ck]{{0,5}}a)", _AGAINST),
        (rf"A{_CLAUSE}(?:{_ON})?[ge]", _FOR),
        # Nothing is said of it: a condition, a duty, a story, something negated from afar.
        (rf"c{_NEAR}A", _OPEN),
        (rf"t{_NEAR}A", _FOR),
        (rf"s{_NEAR}A", _TOLD),
        (rf"[nvlmdb][^.,?]*A|k{_NEAR}A|A[^.?axck]*[bv]", _OPEN),
        (r"A", _FOR),
    )
)
"""The first that is found in a note's letters decides on the act that is `A` in them."""


def _plain_words(line: str) -> str:
    """Take marks off a line and spell contractions out."""
    text = _CONTRACTED.sub(lambda found: _spelled_out(found[1]), line.lower())
    text = _BULLET.sub("", _MARKS.sub("", _DASH.sub(" : ", text)))
    return _HYPHEN.sub(" ", text).strip()


def parts_of(line: str, names_goal: Callable[[str], object]) -> Iterator[tuple[str, str]]:
    """Yield the situations that a line speaks of, and what it says of each.

    Args:
        line: A line of notes.
        names_goal: Tells whether a clause names a situation that the learner knows.
    """
    situation, said = "", list[str]()
    for sentence in _SENTENCE.split(_plain_words(line[:_LONGEST])):
        found = [each for pattern in _SITUATION if (each := pattern.match(sentence))]
        named = next((each for each in found if names_goal(each["when"])), None)
        if named is None:
            said.append(sentence)
            continue
        if situation:
            yield situation, " ".join(said)
            said = []
        said.append(named["rest"] + (named.groupdict().get("more") or ""))
        situation = named["when"]
    yield situation, " ".join(said)


def stances(text: str, acts: Mapping[Act, re.Pattern[str]]) -> dict[Act, bool]:
    """Say what a text advises (`True`) and advises against (`False`), in the order of its words.

    Where the words for two acts overlap, those that begin first count, and the longer ones.
    """
    found = sorted(
        ((m.start(), -m.end(), act) for act, words in acts.items() for m in words.finditer(text)),
        key=lambda mention: mention[:2],
    )
    letters, end = "", 0
    named, last = dict[int, Act](), None
    for start, minus, act in found:
        if start < end:
            continue
        between = _letters(text[end:start])
        if act is not last or not _SAME.fullmatch(between):
            letters += between + _manner(text, start, letters + between)
            named[len(letters)] = last = act
            letters += "a"
        end = -minus
    letters += _letters(text[end:])
    said: dict[Act, set[bool]] = {}
    for at, act in named.items():
        stance = _stance(f"{letters[:at]}A{letters[at + 1 :]}")
        if stance is not None:
            said.setdefault(act, set()).add(stance)
    return {act: stance.pop() for act, stance in said.items() if len(stance) == 1}


def _spelled_out(verb: str) -> str:
    return {"wo": "will", "ca": "can"}.get(verb, verb) + " not"


def _letters(text: str) -> str:
    return "".join(
        _WORDS[found.lastindex - 1][0] if found.lastindex else _MARKED.get(found[0], ",")
        for found in _LEXICON.finditer(text)
    )


def _manner(text: str, start: int, before: str) -> str:
    """Return a letter for an act that is told of (`toggled`) or is a topic (`Toggling …`)."""
    verb = _VERB.match(text, start)
    if verb is None:
        return ""
    if verb[0].endswith("ing"):
        return "c" if before[-1:] in {"", *".,+?"} else ""
    return "" if _PASSIVE.search(text[:start]) else "s"


def _stance(letters: str) -> bool | None:
    stance = next(stance for pattern, stance in _RULES if pattern.search(letters))
    if stance is not _TOLD:
        return None if stance is _OPEN else stance is _FOR
    failed = _FAILED.search(letters) is not None
    if failed == ("g" in _FAILED.sub("", letters)) or (failed and "a" in letters):
        return None
    return not failed


_FIELDS: Final[Mapping[str, str]] = {
    "Task": "task",
    "Thought": r"thought|think(?:ing)?|reasoning",
    "Action": r"action|act|command",
    "Observation": r"observation|obs|env(?:ironment)?|response",
    "Result": r"result|outcome|status",
}
_NAMED: Final = "|".join(f"(?P<{name}>{words})" for name, words in _FIELDS.items())
_FIELD: Final = re.compile(
    rf"^[^\w\n]*(?:(?:step|turn"
    rf"|round)?[ \t]*\d+[^\w\n]+)?(?:{_NAMED})[ \t]*\d*[^\w\n]*?[:=>\]]+[*_\"' \t]*"
    r"|^[ \t]*(?P<step>>|(?:step[ \t]+)?\d+[.):])[*_`\"' \t]*(?=\w)",
    re.IGNORECASE | re.MULTILINE,
)
_ADVICE: Final = re.compile(r"- When ")
_WHEN: Final = re.compile(r"^\W*(?:when to use|situation|condition)\W+(.+)$", re.IGNORECASE)
_LABEL: Final = re.compile(
    r"^\W*(?:lesson|content|insight|advice|experience)\W*:\s*", re.IGNORECASE
)

_STEP_ENDS: Final = re.compile(r"[.;!\n]+(?:\s|$)|,? (?:and|then|before|after) |, ")
_LEAD: Final = re.compile(
    r"^(?:(?:i|we|you|the agent|then|next|first|finally|and|afterwards|also|it) )+"
)
_PAST: Final[Mapping[str, str]] = {
    "went": "go",
    "walked": "go",
    "took": "take",
    "placed": "put",
    "toggled": "toggle",
    "moved": "move",
    "used": "use",
    "examined": "examine",
    "closed": "close",
}
_REGULAR: Final = frozenset({"opened", "cleaned", "heated", "cooled", "turned", "looked", "washed"})
_FIRST_WORD: Final = re.compile(r"\w+")
_NO_SUCCESS: Final = re.compile(r"fail|unsuccess|not |unsolved|incomplete|false")
_SUCCEEDED: Final = re.compile(r"succe|solved|complete|won\b|done|true")


@dataclass(frozen=True, slots=True)
class Note:
    """A part of recalled notes that stands on its own."""

    text: str
    attempt: bool
    """Whether it tells of an attempt, `Task: … Result: …`, rather than giving advice."""


def split_notes(notes: str) -> Iterator[Note]:
    """Take notes apart into lines of advice and written-out attempts, in order.

    A situation on a line of its own is put before the advice that follows it.
    """
    attempt: list[str] = []
    situation = ""
    for line in notes.splitlines():
        field = _FIELD.match(line)
        name = field.lastgroup if field else None
        if attempt and (name == "Task" or _ADVICE.match(line)):
            yield Note("\n".join(attempt), attempt=True)
            attempt = []
        if attempt or name in {"Task", "Thought", "Action", "Observation"}:
            attempt.append(line)
            if name == "Result":
                yield Note("\n".join(attempt), attempt=True)
                attempt = []
        elif named := _WHEN.match(line):
            situation = named.group(1).rstrip(".: ")
        elif text := _LABEL.sub("", line).strip():
            yield Note(f"When {situation}: {text}" if situation else text, attempt=False)
            situation = ""
    if attempt:
        yield Note("\n".join(attempt), attempt=True)


def fields_of(attempt: str) -> Iterator[tuple[str, str]]:
    """Yield `Task`, `Thought`, `Action`, `Observation` and `Result` of an attempt, as they come.

    Lines that follow an action are what came of it, where no observation is named as such; lines
    that follow the task tell of actions, clause by clause.
    """
    fields = list(_FIELD.finditer(attempt))
    ends = [field.start() for field in fields[1:]] + [len(attempt)]
    for number, (field, end) in enumerate(zip(fields, ends, strict=True)):
        name = "Action" if field.lastgroup == "step" else str(field.lastgroup)
        value = attempt[field.end() : end].strip()
        first, _, rest = value.partition("\n")
        observed = number + 1 < len(fields) and fields[number + 1].lastgroup == "Observation"
        if name == "Action":
            yield name, _plain_action(first)
            if rest.strip() and not observed:
                yield "Observation", rest.strip()
        elif name == "Task":
            yield name, first.strip("*_ ")
            for clause in filter(None, map(_plain_action, _STEP_ENDS.split(rest))):
                yield "Action", clause
        else:
            yield name, value


@dataclass(frozen=True, slots=True)
class WrittenAttempt:
    """An attempt, as far as its text tells."""

    task: str
    openings: tuple[str, ...]
    """What was seen before anything was done."""
    steps: tuple[tuple[str, str], ...]
    """Actions, each with what came of it; empty where the text does not say."""
    success: bool | None
    """`None` where the text does not say."""


def read_attempt(text: str) -> WrittenAttempt:
    """Read `Task: … Thought: … Action: … Observation: … Result: …`; any part may be missing."""
    task, action, success = "", "", None
    openings: list[str] = []
    steps: list[tuple[str, str]] = []
    for field, value in fields_of(text):
        match field:
            case "Task":
                task = value
            case "Action":
                steps += [(action, "")] if action else []
                action = value
            case "Observation" if action:
                steps.append((action, value))
                action = ""
            case "Observation" if not steps:
                openings.append(value)
            case "Result":
                success = _succeeded(value)
    steps += [(action, "")] if action else []
    return WrittenAttempt(task, tuple(openings), tuple(steps), success)


def _succeeded(result: str) -> bool | None:
    """Say whether a result tells of success; `None` where it does not say."""
    words = result.lower()
    if _NO_SUCCESS.search(words):
        return False
    return True if _SUCCEEDED.search(words) else None


def _plain_action(text: str) -> str:
    """Take marks off an action and put what is told of one as a command: `I went to` → `go to`."""
    words = _LEAD.sub("", text.lower().strip(" \t*_`'\"[](){}<>.,!"))
    verb = _FIRST_WORD.match(words)
    if verb is None:
        return words
    word = verb[0].removesuffix("ed") if verb[0] in _REGULAR else verb[0]
    return _PAST.get(word, word) + words[verb.end() :]
