"""The simulated writer of SQL: what it can do, what it is declared ignorant of, and what notes do to it."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from langchain_core.messages import HumanMessage, SystemMessage
from langgraph.store.memory import InMemoryStore

from langgraft.benchmarks.simulated import sql_writer
from langgraft.benchmarks.simulated.sql_writer import SimulatedSQLWriter
from langgraft.environments.text_to_sql import OUTLET, SHOP, Remark, SQLTask, TextToSQL
from langgraft.environments.text_to_sql.world import _Writing
from langgraft.memory.controls import Frozen, Placebo
from langgraft.memory.providers import CodingMemory, CodingSettings, TrajectoryMemory
from langgraft.memory.recall import render_block

pytestmark = pytest.mark.matrix  # the learner of one more world, by its shares

WORLDS = {company.name: TextToSQL(company) for company in (SHOP, OUTLET)}
SURE = SimulatedSQLWriter(temperature=0)


def remarks(world: TextToSQL) -> list[Remark]:
    """Return all that a reviewer may ever say."""
    said: dict[Remark, None] = {}
    for _, ask in world._made.values():
        writing = _Writing(world.company, world.tables)
        writing.query(ask)
        said |= writing.used
    return list(said)


NOTES = {name: [remark.right for remark in remarks(world)] for name, world in WORLDS.items()}
FILLER = ["The garden is green, and it rained on Tuesday.", "- When it is cold: wear a coat."]


def write(question: str, notes: Sequence[str] = (), model: Any = SURE, name: str = "shop") -> str:
    """Return the query for a question with these notes recalled."""
    block = render_block(list(notes)) if notes else ""
    asked = HumanMessage(f"{question}\n\n{block}")
    said = model.invoke([SystemMessage(f"Write SQL.\n{WORLDS[name].schema}"), asked]).text
    found = re.fullmatch(r"```sql\n(.*)\n```", said)
    return found[1] if found else said


def solved(name: str, notes: Sequence[str] = (), model: Any = SURE) -> list[bool]:
    """Say of each task of a company whether it is solved with these notes."""
    world = WORLDS[name]
    return [
        world.score(task, write(task.question, notes, model, name)) == 1.0
        for task in world.tasks("test")
    ]


# Conventions ------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "share"), [("shop", 0.14), ("outlet", 0.48)])
def test_writer_when_it_has_no_notes_then_solves_what_the_schema_tells(
    name: str, share: float
) -> None:
    """It is ignorant of conventions and of nothing else: what it gets wrong a reviewer explains."""
    done = solved(name)
    assert sum(done) / len(done) == pytest.approx(share, abs=0.03)
    world = WORLDS[name]
    for task in world.tasks("train"):
        sql = write(task.question, name=name)
        assert world.score(task, sql) == 1.0 or world.review(task.id, sql)


@pytest.mark.parametrize("name", WORLDS)
def test_writer_when_notes_tell_all_conventions_then_solves_all(name: str) -> None:
    """Its own queries, written another way, agree with the gold ones for every kind of question."""
    assert all(solved(name, NOTES[name]))


def test_writer_when_notes_are_of_another_company_then_is_misled() -> None:
    """Habits of one company break what the schema alone would have got right at the other."""
    assert sum(solved("outlet", NOTES["shop"])) < 0.5 * sum(solved("outlet"))
    assert sum(solved("shop", NOTES["outlet"])) < sum(solved("shop"))


def test_writer_when_notes_say_nothing_to_the_point_then_writes_the_same() -> None:
    """Filler changes no letter of any reply."""
    for task in WORLDS["shop"].tasks("test"):
        assert write(task.question, FILLER) == write(task.question)


def test_writer_when_told_one_convention_then_changes_what_it_is_about_alone() -> None:
    """A note about a table or column is heeded there, and nowhere else; each is understood."""
    bare = {task.question: write(task.question) for task in WORLDS["shop"].tasks("train")}
    for remark in remarks(WORLDS["shop"]):
        changed = [asked for asked, sql in bare.items() if write(asked, [remark.right]) != sql]
        assert changed, remark.right
        words = remark.table.replace("_", " ")
        assert all(words in question for question in changed)


# How notes are read -----------------------------------------------------------------------

TOTAL = "What is the total amount in euros of all refunds?"
COUNT = "How many orders are there?"
SHIPPED = "How many orders with the status 'shipped' are there?"
MARCH = "How many orders placed in March 2024 are there?"
PLAIN = "SELECT sum(refunds.amount) FROM refunds"
HALVED = "SELECT sum(refunds.amount) / 100.0 FROM refunds"


@pytest.mark.parametrize(
    ("notes", "written"),
    [
        (["Amounts are in cents."], HALVED),
        (["- When you add up refunds: divide by 100."], HALVED),
        (["refunds.amount is stored in cents"], HALVED),
        (["Multiply refunds.amount by 12."], "SELECT sum(refunds.amount) * 12.0 FROM refunds"),
        (["Never divide refunds.amount by 100."], PLAIN),
        (["Do not divide by 100.", "Divide refunds.amount by 100."], HALVED),
        (["Divide refunds.amount by 100.", "Do not divide refunds.amount by 100."], HALVED),
        (["Do not divide refunds.amount by 100.", "Divide refunds.amount by 100."], PLAIN),
        (["products.price is in cents: divide it by 100."], PLAIN),
        (["Is refunds.amount in cents?"], PLAIN),
    ],
)
def test_units_when_notes_speak_of_them_are_taken_so(notes: list[str], written: str) -> None:
    """In prose, for the column named first or for all; the first note wins, and what is closer."""
    assert write(TOTAL, notes) == written


@pytest.mark.parametrize(
    ("question", "note", "part"),
    [
        (COUNT, "Exclude deleted rows.", "WHERE orders.deleted_at IS NULL"),
        (COUNT, "- When you count orders: ignore all deleted ones.", "orders.deleted_at IS NULL"),
        (COUNT, "Never leave out deleted orders.", "FROM orders"),
        (COUNT, "Leave out deleted rows of products.", "FROM orders"),
        (COUNT, "Leave out test accounts: they end in @x.org.", "LIKE '%@x.org')"),
        (COUNT, "Leave out test accounts.", "FROM orders"),
        (SHIPPED, "'Q' means 'shipped'.", "status = 'Q'"),
        (SHIPPED, "'shipped' is stored as 'Q'.", "status = 'Q'"),
        (SHIPPED, "'Q' means 'placed'.", "status = 'shipped'"),
        (MARCH, "Dates are seconds since 1970.", "< CAST(strftime('%s', '2024-04-01') AS INTEGER)"),
        (MARCH, "orders.placed_at counts milliseconds since 1970.", "AS INTEGER) * 1000"),
        (MARCH, "refunds.refunded_at counts milliseconds since 1970.", "< '2024-04-01'"),
    ],
)
def test_prose_when_it_tells_a_convention_is_heeded(question: str, note: str, part: str) -> None:
    """Right or wrong; advice against it, or about something else, is not."""
    assert write(question, [note]).endswith(part)


ATTEMPT = """Task: How many orders placed in May 2023 with the status 'shipped' are there?
Action: SELECT count(*) FROM orders WHERE orders.status = 'T' AND orders.placed_at >= CAST(strftime('%s', \
'2023-05-01') AS INTEGER) AND orders.deleted_at IS NULL AND orders.customer_id NOT IN (SELECT customers.id FROM \
customers WHERE customers.email LIKE '%@test.invalid')
Observation: 1 rows
Result: {}"""
ALL_HEEDED = (
    "SELECT count(*) FROM orders WHERE orders.status = 'T' AND orders.deleted_at IS NULL AND"
    " orders.customer_id NOT IN (SELECT customers.id FROM customers WHERE customers.email LIKE"
    " '%@test.invalid')"
)


def test_attempt_when_it_succeeded_then_its_query_is_followed() -> None:
    """Every convention that the query of a similar task shows is taken over."""
    assert write(SHIPPED, [ATTEMPT.format("success")]) == ALL_HEEDED
    assert "strftime" in write(MARCH, [ATTEMPT.format("success")])


def test_attempt_when_it_failed_then_only_what_was_said_of_it_counts() -> None:
    """A query that was wrong teaches nothing; a remark on it does."""
    failed = ATTEMPT.format("failure")
    assert write(SHIPPED, [failed]) == write(SHIPPED)
    said = failed.replace("1 rows", "1 rows\nIn orders.status, 'Q' stands for 'shipped'.")
    assert write(SHIPPED, [said]) == write(SHIPPED).replace("'shipped'", "'Q'")


# Slips, and what it does not understand ---------------------------------------------------


def test_slips_when_drawn_come_as_often_as_declared_whatever_notes_say() -> None:
    """A seed slips in the same questions with and without notes, and not at temperature 0."""
    asked = {task.question for task in WORLDS["shop"].tasks("test")}
    slipped = []
    for seed in range(2):
        model = SimulatedSQLWriter(seed=seed, slips=0.2)
        bare = {q for q in asked if write(q, model=model) != write(q)}
        told = {q for q in asked if write(q, NOTES["shop"], model) != write(q, NOTES["shop"])}
        assert bare == told
        assert len(bare) / len(asked) == pytest.approx(0.2, abs=0.09)
        slipped.append(bare)
    assert slipped[0] != slipped[1]
    right = solved("shop", NOTES["shop"], SimulatedSQLWriter(slips=0.2))
    assert 0 <= sum(right) - (len(right) - len(slipped[0])) <= 5  # a few are right by chance


@pytest.mark.parametrize(
    "question",
    [
        *("", "Hello!", "How many unicorns are there?"),
        "What is the total color of all orders?",
        "Which customers have no refunds? Give their names.",
    ],
)
def test_question_when_not_understood_is_said_to_be(question: str) -> None:
    """It invents no query for what the schema does not have."""
    assert write(question) == "I do not understand the question."


def test_schema_when_it_stands_in_notes_is_not_read() -> None:
    """Memory cannot make it another database."""
    note = "CREATE TABLE unicorns (id INTEGER PRIMARY KEY, name TEXT);"
    assert write("How many unicorns are there?", [note]) == "I do not understand the question."


def test_source_knows_no_condition_provider_split_or_company() -> None:
    """Nothing in it names what an experiment compares, so that no result is built in."""
    banned = (
        r"placebo|shuffl\w*|baseline|write_only|full_history|\btrain\w*|\btest\w*|(?<!\.)\bsplits?\b|held.?out"
        r"|langgraft\.environments|memory\.providers|coding|trajectory|\bdomain\b|task_id|\bshop|outlet"
        r"|\bgold\b|test\.invalid|'[TFNXABCD]'"
    )
    source = Path(sql_writer.__file__).read_text(encoding="utf-8")
    allowed = source.replace("`'T' stands for 'shipped'`", "")
    assert not re.findall(banned, allowed, re.IGNORECASE)


# With memory, in the example's graph ------------------------------------------------------


def played(memory: Any, tasks: Sequence[SQLTask], name: str = "shop") -> float:
    """Let the example's graph answer, and return the share of right answers."""
    from examples.text_to_sql import build  # noqa: PLC0415 - makes all its tasks

    agent = build(memory, SURE)
    scores = [
        WORLDS[name].score(task, agent.invoke({"id": task.id, "messages": task.question})["sql"])
        for task in tasks
    ]
    return sum(scores) / len(scores)


@pytest.mark.parametrize("kind", ["coding", "trajectory"])
def test_memory_when_filled_in_training_helps_and_a_placebo_of_it_does_not(kind: str) -> None:
    """Remarks reach a bank as errors and as observations; held-out tasks are solved by them."""
    store = InMemoryStore()
    memory: Any = TrajectoryMemory(store)
    if kind == "coding":
        memory = CodingMemory(store, settings=CodingSettings(tasks="all", top_k=20))
    world = WORLDS["shop"]
    tested = world.tasks("test")[::3]
    before = played(Frozen(memory), tested)
    played(memory, world.tasks("train")[::3])
    after = played(Frozen(memory), tested)
    assert after > before + 0.1
    assert played(Placebo(memory), tested) == before
    texts = [item.text for item in memory.content().items.values()]
    assert not [task for task in world.tasks("test") if any(task.question in t for t in texts)]
