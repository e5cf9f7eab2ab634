"""Learners understand most notes, turn next to none around, and the page says which."""

import html
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft.benchmarks.simulated.alfworld import advice as household
from langgraft.benchmarks.simulated.alfworld.advice import parse_advice
from langgraft.benchmarks.simulated.alfworld.habits import Care
from langgraft.benchmarks.simulated.alfworld.habits import Kind as Chore
from langgraft.benchmarks.simulated.babyai import advice as rooms
from langgraft.benchmarks.simulated.babyai.habits import Door, Kind, Search, Spelling
from langgraft.benchmarks.simulated.data_scientist.notes import habits_for, read_notes
from langgraft.benchmarks.simulated.data_scientist.tasks import Task
from langgraft.benchmarks.simulated.notes import stances
from langgraft.memory.recall import BLOCK_INTRODUCTION

PAGE = Path(__file__).parents[3] / "docs" / "simulated-notes.md"
UNSEEN = "## Notes written afterwards"
SILENT = "—"
WORDS = {
    Spelling.JOINED: "one word",
    Spelling.SPACED: "two words",
    Door.TOGGLE: "toggle",
    Door.PASS: "walk through",
    Door.FACE: "stop before it",
    Search.STAY: "stay",
    Search.LEAVE: "leave",
    Search.SURVEY: "look, then leave",
}
QUESTIONS: dict[str, tuple[Kind, str]] = {
    "pick up an object": (Kind.TAKE, "spelling"),
    "open a door": (Kind.OPEN, "door"),
    "go to a door": (Kind.REACH_DOOR, "door"),
    "find an object": (Kind.TAKE, "search"),
}
MISTAKES = {
    "an argument that was renamed": ("OneHotEncoder", "sparse"),
    "an argument that is gone": ("LogisticRegression", "multi_class"),
}
"""What a program failed of, where a note says how to repair it."""
ALIKE = (
    {"one word", "not two words"},
    {"leave", "look, then leave", "not stay"},
    {"stop before it", "not walk through"},
    {"toggle", "not walk through"},
)
"""Readings that come to the same, for one kind of goal or another."""


class Row(NamedTuple):
    """A note in a table of the page."""

    about: str
    note: str
    says: str
    read: str

    @property
    def understood(self) -> bool:
        """Whether it is read as what it says, or as what comes to that."""
        return self.says == self.read or any({self.says, self.read} <= alike for alike in ALIKE)


def rows_of(text: str) -> Iterator[Row]:
    """Yield the rows of the tables in a part of the page."""
    about = ""
    for line in text.splitlines():
        if line.startswith("### "):
            about = line.removeprefix("### ")
        elif about and line.startswith("| ") and not line.startswith(("| note ", "|---")):
            note, says, read = line.strip("| ").split(" | ")
            yield Row(about, html.unescape(note), says, read)


SEEN_ROWS, UNSEEN_ROWS = (list(rows_of(part)) for part in PAGE.read_text("utf-8").split(UNSEEN))


def reading(about: str, note: str) -> str:
    """Return what a learner makes of a note, in the words of the page."""
    world, _, kind = about.partition(": ")
    readers = {"BabyAI": in_rooms, "ALFWorld": in_houses, "Programs": in_programs}
    return readers[world](kind, note)


def in_rooms(question: str, note: str) -> str:
    """Say which way of acting a note advises in BabyAI, or which ones it advises against."""
    kind, habit = QUESTIONS[question]
    counsel = rooms.counsel_for(kind, note)
    if option := getattr(counsel.advised, habit):
        return WORDS[option]
    options = {"spelling": Spelling, "door": Door, "search": Search}[habit]
    avoided = [WORDS[each] for each in counsel.avoided if isinstance(each, options)]
    return ", ".join(f"not {each}" for each in sorted(avoided)) or SILENT


def in_houses(kind: str, note: str) -> str:
    """Say whether a note has the step of a chore done, or where it has a thing looked for."""
    if kind != "find a thing":
        care = household.counsel_for(Chore(kind), "mug", note).advised.care
        return {Care.DO: "do it", Care.OMIT: "leave it out"}[care] if care else SILENT
    thing = next((part.about for part in parse_advice(note) if part.about), "mug")
    counsel = household.counsel_for(Chore.PLACE, thing, note)
    if len(counsel.advised.first) == 1:
        return counsel.advised.first[0]
    if counsel.advised.search:
        return "likely places"
    return ", ".join(counsel.advised.first) or ("open what is closed" if counsel.opens else SILENT)


def in_programs(kind: str, note: str) -> str:
    """Say what a note on a failure has a program write or not write, or which models it shuns."""
    habits = habits_for(Task(metric="accuracy", target="kind", outputs=("kind",)))
    if kind not in MISTAKES:
        return ", ".join(sorted(read_notes(note, habits).limited)) or SILENT
    call, argument = MISTAKES[kind]
    habit = next(each for each in habits if each.about == (call, argument))
    error = f"{call}.__init__() got an unexpected keyword argument '{argument}'"
    notes = read_notes(f"Package: sklearn\nError: TypeError: {error}\nFix: {note}", [habit])
    names = {habit.repair.text: "leave it out"} | {
        each.text: each.words[0].strip('"=')
        for each in (habit.repair, *habit.others, habit.mistake)
        if each.words
    }
    if habit.name in notes.known:
        return names[notes.known[habit.name].text]
    return ", ".join(f"not {names[text]}" for _, text in sorted(notes.refuted)) or SILENT


@pytest.mark.parametrize("about", sorted({row.about for row in SEEN_ROWS}))
def test_notes_on_the_page_are_read_as_the_page_says(about: str) -> None:
    """The tables show the rules at work, not an intention."""
    rows = [row for row in SEEN_ROWS + UNSEEN_ROWS if row.about == about]
    assert rows == [row._replace(read=reading(about, row.note)) for row in rows]


@pytest.mark.parametrize("rows", [SEEN_ROWS, UNSEEN_ROWS], ids=["seen", "unseen"])
def test_notes_are_mostly_understood_and_hardly_ever_turned_around(rows: list[Row]) -> None:
    """At least 60 % are read as they mean it; at most 5 % as something else."""
    telling = [row for row in rows if row.says != SILENT]
    wrong = [row for row in rows if row.read != SILENT and not row.understood]
    assert len(telling) >= 60
    assert sum(row.understood for row in telling) >= 0.6 * len(telling)
    assert len(wrong) <= 0.05 * len(telling), wrong


def test_every_kind_of_goal_has_its_paraphrases_negations_and_near_misses() -> None:
    """No table holds one sort of note only."""
    for about in {row.about for row in SEEN_ROWS}:
        says = [row.says for row in SEEN_ROWS if row.about == about]
        assert len(says) >= 25
        assert SILENT in says
        assert len(set(says)) > 2


@pytest.mark.parametrize("about", sorted({row.about for row in SEEN_ROWS}))
def test_what_introduces_recalled_notes_says_nothing(about: str) -> None:
    """The frame of the notes is no note."""
    assert reading(about, BLOCK_INTRODUCTION) == SILENT


ACTS = {"push": re.compile(r"push\w*"), "pull": re.compile(r"pull\w*")}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("push it, do not pull it", {"push": True, "pull": False}),
        ("never push or pull", {"push": False, "pull": False}),
        ("rather than pulling, push", {"push": True, "pull": False}),
        ("pulling is a trap; push", {"push": True, "pull": False}),
        ("pulling never fails", {"pull": True}),
        ("do not leave before you push", {"push": True}),
        ("without pushing, nothing happens", {"push": True}),
        ("not only push but also pull", {"pull": True}),
        ("i pushed and it worked", {"push": True}),
        ("i pushed and it failed", {"push": False}),
        ("i pushed", {}),
        ("should you push?", {}),
        ("pushing takes time", {}),
        ("push. pushing is wrong.", {}),
    ],
)
def test_stance_is_told_by_negation_verdict_and_end(text: str, said: dict[str, bool]) -> None:
    """An act is advised, advised against, or neither; what is said both ways is left open."""
    assert stances(text, ACTS) == said


@given(st.lists(st.sampled_from([*"abcdpx.,;:?'-", "not", "push", "pull", "never", "if", " "])))
def test_any_words_are_read(parts: list[str]) -> None:
    """No text is too strange."""
    assert stances(" ".join(parts), ACTS).keys() <= ACTS.keys()
