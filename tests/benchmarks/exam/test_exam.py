"""The exam: questions that follow by rule, a reader of text alone, references, and the table."""

import json
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from langgraft.benchmarks.comparison import proportion
from langgraft.benchmarks.exam.histories import (
    KINDS,
    QUESTIONS,
    History,
    Question,
    make_histories,
)
from langgraft.benchmarks.exam.results import markdown, rows, tables
from langgraft.benchmarks.exam.sitting import everybody, read, take_exam
from langgraft.cli.app import app
from langgraft.memory.model import Episode, MemoryDelta
from langgraft.memory.provider import Need
from langgraft.memory.providers import SimpleRAG
from langgraft.memory.recall import render_block

DOCS: Final = Path(__file__).parents[3] / "docs" / "memory-exam.md"
ASKED: Final = Question("recall", "Ada", "city", "Where?", ("Lyon", "Porto", "Graz"), ("city",))


@pytest.fixture(scope="module")
def histories() -> tuple[History, ...]:
    """Return one history of either world, twice."""
    return make_histories(4)


@settings(max_examples=6, deadline=None)
@given(seed=st.integers(0, 10_000))
def test_oracle_whatever_is_drawn_answers_every_question(seed: int) -> None:
    """So questions follow from what was told, and the reader can read it."""
    marks = take_exam("oracle", make_histories(2, seed=seed))
    assert marks.of(None) == (2 * QUESTIONS * len(KINDS),) * 2
    assert marks.stale[0] == 0


def test_shuffled_memory_scores_what_chance_gives() -> None:
    """Evidence of the wrong subject is worth what it is in the mean over all wrong subjects."""
    marks = take_exam("shuffled", make_histories())
    chance = dict(marks.chance)
    for kind in KINDS:
        found = proportion(*marks.of(kind))
        assert round(found.low, 9) <= chance[kind] <= found.high  # 0 is a rounding error above 0
    assert 0 < marks.of("recall")[0] < marks.of("recall")[1] / 3


def test_no_memory_can_only_be_silent(histories: tuple[History, ...]) -> None:
    """It is right where nothing was told, and nowhere else."""
    marks = take_exam("none", histories)
    assert {kind for kind in KINDS if marks.of(kind)[0]} == {"abstention"}
    assert marks.of("abstention") == (16, 16)
    assert (marks.tokens, marks.reused) == (0, None)


def test_histories_of_the_same_seed_are_the_same_and_of_another_are_others() -> None:
    """In any process: nothing depends on hashes or clocks."""
    assert make_histories(2) == make_histories(2)
    assert make_histories(2) != make_histories(2, seed=1)
    told = [session.told for history in make_histories(2) for session in history.sessions]
    assert [each.sentence for each in told[:1]] + [told[-1].day] == [
        "On 2026-01-05 Chidi said: the instrument of Chidi is drums.",
        "2026-03-09",
    ]


def test_questions_do_not_tell_their_answers(histories: tuple[History, ...]) -> None:
    """Nor does a session tell of a slot that is never told."""
    for history in histories:
        for question in history.questions:
            assert not any(answer in question.text for answer in question.answers)
            told = history.about(question.subject, question.attribute)
            assert (question.kind == "abstention") == (not told)
            for session in told:
                episode = session.episode
                assert session.told.value in episode.lessons[0].text
                assert session.told.value in f"{episode.task} {episode.steps}"


READINGS: Final[dict[str, tuple[list[str], Question, set[str]]]] = {
    "one sentence": (["The city of Ada is Lyon."], ASKED, {"Lyon"}),
    "another subject": (["The city of Bela is Lyon."], ASKED, set()),
    "another attribute": (["Ada saw Lyon."], ASKED, set()),
    "the latest day": (
        ["On 2026-02-01 the city of Ada was Lyon.", "On 2026-01-01 the city of Ada was Graz."],
        ASKED,
        {"Lyon"},
    ),
    "no day tells which": (["The city of Ada is Lyon.", "The city of Ada is Graz."], ASKED, set()),
    "a day above it": (
        ["It is 2026-02-01.\nThe city of Ada is Lyon.", "It is 2026-01-01.\nAda's city: Graz."],
        ASKED,
        {"Lyon"},
    ),
    "a day above another item": (
        ["It is 2026-02-01.\nRain.", "The city of Ada is Lyon.", "The city of Ada is Graz."],
        ASKED,
        set(),
    ),
    "what has ended": (
        ["city of Ada: Graz (since 2026-01-01, until 2026-02-01)"],
        ASKED,
        set(),
    ),
    "up to a day": (
        ["On 2026-02-01 the city of Ada was Lyon.", "On 2026-01-01 the city of Ada was Graz."],
        replace(ASKED, kind="as of", on="2026-01-15"),
        {"Graz"},
    ),
    "before another": (
        ["city of Ada: Graz (since 2026-01-01)", "city of Ada: Lyon (since 2026-02-01)"],
        replace(ASKED, kind="order", before="Lyon"),
        {"Graz"},
    ),
    "all that is said": (
        ["Ines: the city of Ada is Lyon.", "Luka: the city of Ada is Graz."],
        replace(ASKED, kind="contradiction"),
        {"Lyon", "Graz"},
    ),
}


@pytest.mark.parametrize("case", READINGS)
def test_reader_answers_from_the_text_alone(case: str) -> None:
    """By subject, attribute, value and day."""
    texts, question, answer = READINGS[case]
    assert read(render_block(texts), question) == answer


class Elephant(SimpleRAG):
    """A memory that says it forgets, and does not."""

    name = "elephant"

    def forget(self, item_id: str) -> MemoryDelta:
        """Do nothing."""
        return MemoryDelta()


class Nosy(SimpleRAG):
    """A memory that has nothing drawn from episodes, and remembers what it was handed."""

    name = "nosy"
    needs = frozenset[Need]()
    handed: ClassVar[list[Episode]] = []

    def file(self, episode: Episode, *, generation: str | None = None) -> MemoryDelta:
        """Keep what was handed in, too."""
        self.handed.append(episode)
        return super().file(episode, generation=generation)


def test_memory_of_ones_own_is_marked_and_caught_when_it_does_not_forget(
    histories: tuple[History, ...],
) -> None:
    """It knows what was told, before and after."""
    marks = take_exam(f"{__name__}:Elephant", histories[:2])
    assert marks.of("forgetting")[0] == 0
    assert take_exam("simple_rag", histories[:2]).of("forgetting")[0] > 0
    assert marks.of("recall")[0] > 0
    assert marks.needs == ("lessons",)


def test_memory_is_handed_only_what_it_needs(histories: tuple[History, ...]) -> None:
    """Lessons and facts cost model calls: whoever does not ask for them gets none."""
    take_exam(f"{__name__}:Nosy", histories[:1])
    assert len(Nosy.handed) == len(histories[0].sessions)
    assert not any(episode.lessons or episode.facts for episode in Nosy.handed)


def test_superseded_value_given_as_current_is_counted(histories: tuple[History, ...]) -> None:
    """One item by spelling is often an old one; the newest episodes never are."""
    assert take_exam("reasoning_bank", histories).stale[0] > 0
    assert take_exam("recency", histories).stale == (0, 16)


def test_prompt_is_reused_where_the_same_history_is_recalled(
    histories: tuple[History, ...],
) -> None:
    """What begins as at the question before costs a cache of prefixes nothing."""
    history, retrieval = (
        take_exam(name, histories[:2]).reused for name in ("recency", "simple_rag")
    )
    assert history is not None
    assert retrieval is not None
    assert history > 0.9
    assert retrieval < 0.5


def test_command_writes_table_page_and_figures(tmp_path: Path) -> None:
    """Of the memories named and of the references; a second time the same bytes."""
    command = ["exam", "--memory", "none", "--out", str(tmp_path), "--json"]
    summary = tmp_path / "exam.md"
    found = CliRunner().invoke(app, [*command, "--summary", str(summary)])
    told = json.loads(found.stdout)
    assert [each["memory"] for each in told] == ["oracle", "shuffled", "none"]
    assert told[2]["kinds"]["abstention"] == [48, 48]
    assert "no model takes part" in (tmp_path / "index.html").read_text().lower()
    marks = [take_exam(name, make_histories()) for name in ("oracle", "shuffled", "none")]
    assert summary.read_text() == markdown(marks)
    exam, costs, columns = tables(marks)
    assert (tmp_path / "tables" / "exam.csv").read_text() == exam.to_csv()
    assert len(list(rows(marks))) == len(marks) + 1
    assert len(costs.rows) == len(marks)
    assert all(row[2] for row in columns.rows)


def test_command_when_there_is_no_such_memory_says_so_before_anybody_sits_down() -> None:
    """In a line."""
    refused = CliRunner().invoke(app, ["exam", "--memory", "elephants"])
    assert "unknown provider 'elephants'" in str(refused.exception)


@pytest.mark.matrix
def test_table_in_the_docs_is_what_the_command_gives() -> None:
    """`langgraft exam --summary` writes it."""
    histories = make_histories()
    found = markdown([take_exam(name, histories) for name in everybody()])
    assert found in DOCS.read_text(encoding="utf-8"), found
