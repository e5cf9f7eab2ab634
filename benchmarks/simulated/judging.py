"""Rules by which a simulated model answers the prompts of judge, validate, draft and extract.

Those for facts know a dozen forms of sentences, which `fact_histories` writes and other text has by chance, and read
nothing between the lines. What is asked, reported or read out is in none of the forms.

================  =========================================================================
Extracting        one fact a sentence, with the sentence as its quotation
Relating          another value of an attribute that has one value replaces it, corrects it
                  where the quotation begins with `I was wrong`; the same value repeats it;
                  `no longer` replaces the value that it names. Attributes that are not
                  among the forms go by the rules of `nodes.judging.Relations`
Merging           facts whose values begin alike are one, with the longest
================  =========================================================================

The rules read the text of the prompt and nothing else, and know the prompts that ship by their first
line. They are no language model: what they say is good for running a graph from end to end, and
says nothing of how a model would judge.

=================  ==================================================================
Rules to vote on   Agrees with a rule that a lesson repeats. Of rules that name what
                   was done (half of their longer words stand in the trajectory) it
                   agrees with all after a success and removes all after a failure.
                   Where there is room it adds the lessons that no rule repeats; if
                   there are none, after a success, one rule with the last action.
Error records      A record repeats one of the same package whose error is the same
                   but for quotations, paths and numbers; else it adds something.
Notes and draft    They contradict each other if both state an answer, and not the
                   same one.
Lessons            Not valid if shorter than 20 characters or longer than 1,000, said
                   twice, or the task over again. Score 0.9 if a longer word of the
                   lesson stands in the task or the trajectory, else 0.2.
Facts              As above.
Draft              `The answer is` the last number of the task; without one, that it
                   would look around first.
=================  ==================================================================
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final

from pydantic import ValidationError

from langgraft.nodes.judging import Contradiction, Novelty, Relations, same_words
from langgraft.nodes.prompts import prompt
from langgraft.nodes.screening import validate_by_rules

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


BORNE_OUT = 0.9
"""Score of a lesson that has a word of the attempt in it."""
OUT_OF_PLACE = 0.2
"""Score of one that has none."""
NAMED = 0.5
"""Part of a rule's longer words that the trajectory must hold for the rule to count as followed."""

_LONG_WORD = re.compile(r"[a-z]{4,}")
_NUMBER = re.compile(r"\d+(?:\.\d+)?")
_LAST_ACTION = re.compile(r"^Action:[ \t]*(\S[^\n]*)$", re.MULTILINE)
_LIMIT = re.compile(r"at most (\d+) operations")


def judging_reply(text: str) -> str | None:
    """Return the reply to a prompt of judge, validate or draft; `None` to anything else."""
    rule = _rules().get(text.partition("\n")[0])
    return None if rule is None else rule(text)


@lru_cache(maxsize=1)
def _rules() -> Mapping[str, Callable[[str], str]]:
    rules = {
        "judge_votes": _vote,
        "judge_novelty": _tell_new,
        "judge_novelty_message": _tell_new,
        "judge_contradiction": _compare,
        "validate": _validate,
        "draft": _draft,
        "extract_facts": lambda text: extracted(_objects(text, "Conversation")),
        "judge_facts": lambda text: related(
            _objects(text, "New facts"), _objects(text, "Kept facts")
        ),
        "judge_merge": lambda text: merged(_objects(text, "Facts about the")),
    }
    return {_first_line(name): rule for name, rule in rules.items()}


@lru_cache
def _first_line(name: str) -> str:
    return prompt(name).text.partition("\n")[0]


def _vote(text: str) -> str:
    rules = _objects(text, "Rules")
    lessons = [each for each in _json_lines(text, "Lessons") if isinstance(each, str)]
    words = {same_words(str(rule.get("text"))): str(rule.get("id")) for rule in rules}
    repeated = [words[same_words(each)] for each in lessons if same_words(each) in words]
    done = _between(text, "\nTrajectory:\n", "\n\nAnother attempt at the same task")
    success = _line(text, "Outcome").startswith("success")
    chosen = dict.fromkeys(repeated, "agree")
    for rule in rules:
        if _share(str(rule.get("text")), done) >= NAMED:
            chosen.setdefault(str(rule.get("id")), "agree" if success else "remove")
    operations: list[dict[str, str]] = [{"action": do, "id": name} for name, do in chosen.items()]
    if _line(text, "Room for new rules") == "yes":
        drawn = lessons or list(_rule_of(text, done) if success else ())
        new = [each for each in dict.fromkeys(drawn) if same_words(each) not in words]
        operations += [{"action": "add", "text": each} for each in new]
    limit = _LIMIT.search(text)
    return json.dumps(operations[: int(limit.group(1)) if limit else 0])


def _rule_of(text: str, done: str) -> Iterator[str]:
    actions = _LAST_ACTION.findall(done)
    if actions:
        yield f"To {_line(text, 'Task')}: {actions[-1]}."


def shown_novelty(text: str) -> Novelty | None:
    """Read what a prompt of novelty shows; `None` where it shows no records."""
    same = "message" if text.startswith(_first_line("judge_novelty_message")) else "cause"
    record = next(_json_lines(text, "New record"), None)
    kept = {str(each.get("id")): each for each in _objects(text, "Nearest records")}
    try:
        return Novelty.model_validate({"record": record, "neighbours": kept, "same": same})
    except ValidationError:
        return None


def _tell_new(text: str) -> str:
    shown = shown_novelty(text)
    if shown is None:
        return json.dumps({"action": "add"})
    (ruling,) = shown.by_rules(())
    repeats = {} if ruling.item_id is None else {"repeats": ruling.item_id}
    return json.dumps({"action": ruling.action, **repeats})


def _compare(text: str) -> str:
    draft = _between(text, "\nDraft:\n", "\n\nNotes, one JSON object a line:")
    notes = {str(each.get("id")): str(each.get("text")) for each in _objects(text, "Notes")}
    shown = Contradiction(task="", draft=draft, candidates=notes)
    stances = [{"id": each.item_id, "verdict": each.action} for each in shown.by_rules(())]
    return json.dumps(stances)


def _validate(text: str) -> str:
    lessons = _objects(text, "Lessons")
    task = _line(text, "Task")
    attempt = task + _between(text, "\nTrajectory:", "\n\nScore every lesson")
    judged = validate_by_rules([str(each.get("text")) for each in lessons], task)
    scores = [
        {
            "lesson": lesson.get("lesson"),
            "valid": said.kept,
            "score": BORNE_OUT if _share(said.text, attempt) > 0 else OUT_OF_PLACE,
            "reason": said.reason,
        }
        for lesson, said in zip(lessons, judged, strict=True)
    ]
    return json.dumps(scores)


def _draft(text: str) -> str:
    numbers = _NUMBER.findall(_between(text, "\nTask: ", "\n\nWhat is known so far:"))
    if numbers:
        return f"I guess from the task.\nThe answer is {numbers[-1]}."
    return "I would look around first, and then take what the task names."


def _share(text: str, within: str) -> float:
    """Return what part of a text's longer words another text has too."""
    words = set(_LONG_WORD.findall(text.lower()))
    return len(words & set(_LONG_WORD.findall(within.lower()))) / len(words) if words else 0.0


def _line(text: str, label: str) -> str:
    """Return what stands behind `label:` on the first line that starts so."""
    found = re.search(rf"^{label}:[ \t]*([^\n]*)", text, re.MULTILINE)
    return found.group(1).strip() if found else ""


def _between(text: str, start: str, end: str) -> str:
    return text.partition(start)[2].partition(end)[0]


def _objects(text: str, label: str) -> Sequence[Mapping[str, Any]]:
    return [each for each in _json_lines(text, label) if isinstance(each, dict)]


def _json_lines(text: str, label: str) -> Iterator[Any]:
    """Read the JSON on the lines below the first one that starts with `label` and ends with a colon."""
    found = re.search(rf"^{label}[^\n]*:\n((?:[^\n]+\n)*)", text, re.MULTILINE)
    for line in found.group(1).splitlines() if found else ():
        try:
            yield json.loads(line)
        except (ValueError, RecursionError):
            continue
