"""Text-to-SQL: a real database by seed, questions from its schema, queries within bounds, exact scores."""

import re
import sqlite3

import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import InputError
from langgraft.environments.text_to_sql import OUTLET, SHOP, Company, SQLTask, TextToSQL
from langgraft.environments.text_to_sql.company import MOST_ROWS, Row, same_rows
from langgraft.environments.text_to_sql.world import _Writing

WORLDS = {company.name: TextToSQL(company) for company in (SHOP, OUTLET)}
SHOP_WORLD = WORLDS["shop"]
ROWS = st.lists(st.tuples(st.sampled_from(("a", "b", None)), st.integers(0, 3)), max_size=6)


def tasks(world: TextToSQL) -> list[SQLTask]:
    """Return the tasks of both splits."""
    return [*world.tasks("train"), *world.tasks("test")]


def content(world: TextToSQL) -> list[tuple[Row, ...]]:
    """Return the rows of all tables, as far as a query may."""
    return [world.query(f"SELECT * FROM {name} LIMIT 900").rows for name in world.tables]


# The database and its tasks ---------------------------------------------------------------


def test_world_when_made_again_with_its_seed_then_is_the_same() -> None:
    """Rows and tasks are functions of company and seed."""
    again, other = TextToSQL(SHOP, seed=0), TextToSQL(SHOP, seed=1)
    assert content(again) == content(SHOP_WORLD) != content(other)
    assert tasks(again) == tasks(SHOP_WORLD) != tasks(other)


def test_schema_when_walked_is_that_of_the_database() -> None:
    """Tables, types, keys and values come from the database, and every foreign key holds."""
    lines = SHOP_WORLD.tables["order_lines"]
    assert lines.references == {"order_id": "orders", "product_id": "products"}
    assert lines.numbers == ["quantity", "unit_price"]
    spoken = ("delivered", "placed", "shipped", "cancelled")  # as their letters sort
    assert SHOP_WORLD.tables["orders"].values == {"status": spoken}
    for table in SHOP_WORLD.tables.values():
        for column, target in table.references.items():
            lost = (
                f"SELECT count(*) FROM {table.name} WHERE {column} NOT IN (SELECT id FROM {target})"
            )
            assert SHOP_WORLD.query(lost).rows == ((0,),)


@pytest.mark.parametrize("world", WORLDS.values(), ids=list(WORLDS))
def test_splits_when_compared_never_meet(world: TextToSQL) -> None:
    """No id, question or gold query is in both, and both have every kind."""
    train, test = world.tasks("train"), world.tasks("test")
    for name in ("id", "question", "gold"):
        own = [[getattr(task, name) for task in split] for split in (train, test)]
        assert len({*own[0], *own[1]}) == len(train) + len(test)
    kinds = {"count", "negation", "date", "aggregate", "join", "group", "top"}
    assert {task.kind for task in train} == {task.kind for task in test} == kinds
    assert len(test) > 100


@pytest.mark.parametrize("world", WORLDS.values(), ids=list(WORLDS))
def test_gold_when_scored_is_right_and_finds_something(world: TextToSQL) -> None:
    """No task is solved by finding nothing."""
    for task in tasks(world):
        assert world.grade(task, task.gold) == (1.0, "the right rows")
        assert world.score(task, "SELECT 0") == world.score(task, "SELECT NULL") == 0.0
        assert world.score(task, "SELECT 1 WHERE 0") == 0.0


@pytest.mark.parametrize("company", [SHOP, OUTLET], ids=["shop", "outlet"])
def test_conventions_when_looked_for_are_in_no_schema(company: Company) -> None:
    """What is to be learned is not told, and it matters: without each, some gold query is wrong."""
    world = WORLDS[company.name]
    assert not re.search(r"cents|euro|second|1970|test|boxes|@", world.schema, re.IGNORECASE)
    assert not re.findall(r"'.'", world.schema)
    matters: dict[str, bool] = {}
    for task, ask in world._made.values():
        writing = _Writing(company, world.tables)
        writing.query(ask)
        for convention in writing.used:
            without = _Writing(company, world.tables, [convention]).query(ask)
            wrong = world.score(task, without) == 0
            matters[convention.right] = matters.get(convention.right, False) or wrong
    assert len(matters) >= 8
    assert all(matters.values()), [right for right, wrong in matters.items() if not wrong]


def test_names_when_unknown_are_refused() -> None:
    """A split or task that is not there is named."""
    with pytest.raises(InputError, match="'dev'"):
        SHOP_WORLD.tasks("dev")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="outlet/count/0"):
        SHOP_WORLD.review("outlet/count/0", "SELECT 1")


# Queries within bounds --------------------------------------------------------------------

NESTED = "WITH t0 AS (SELECT 1 x), " + ", ".join(
    f't{n}/**/AS--\n(SELECT a.x FROM [t{n - 1}] a, "t{n - 1}" b)' for n in range(1, 25)
)
SAME_NAME = "WITH t AS (" * 22 + "SELECT 1 x" + ") SELECT a.x FROM t a, t b" * 22


@pytest.mark.parametrize(
    ("sql", "error"),
    [
        ("DELETE FROM orders", "not authorized"),
        ("UPDATE orders SET status = 'X'", "not authorized"),
        ("CREATE TEMP TABLE t (x)", "not authorized"),
        ("ATTACH ':memory:' AS other", "not authorized"),
        ("VACUUM INTO '/tmp/copy.sqlite'", "authorization denied"),
        ("PRAGMA writable_schema = 1", "not authorized"),
        ("BEGIN", "not authorized"),
        ("SELECT load_extension('x')", "not authorized"),
        ("SELECT 1; DELETE FROM orders", "one statement"),
        ("SELECT total FROM orders", "no such column: total"),
        ("", "no query"),
        ("-- nothing", "no query"),
        ("SELECT '\0'", "null character"),
        ("SELECT '\ud800'", "surrogates"),
        ("SELECT CAST(x'ff' AS TEXT)", "UTF-8"),
        ("SELECT 1 FROM orders a, orders b", f"more than {MOST_ROWS} rows"),
        ("SELECT count(*) FROM orders a, orders b, orders c", "interrupted"),
        (
            "WITH RECURSIVE n(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM n) SELECT max(x) FROM n",
            "interrupted",
        ),
        ("SELECT zeroblob(1000000000)", "too big"),
        (f"{NESTED} SELECT count(*) FROM t24", "WITH clauses"),
        (SAME_NAME, "WITH clauses"),
        ("SELECT 1" + " " * 10_000, "longer than 10000"),
        ("SELECT * FROM (" * 12 + "SELECT *, * FROM orders" + ")" * 12, ""),
    ],
)
def test_query_when_hostile_then_is_told_why_and_changes_nothing(sql: str, error: str) -> None:
    """No query writes, attaches, loads, runs forever or fills the memory; its error is the reason."""
    before = content(SHOP_WORLD)
    task = SHOP_WORLD.tasks("test")[0]
    score, reason = SHOP_WORLD.grade(task, sql)
    assert score == 0.0
    assert error in reason
    assert content(SHOP_WORLD) == before


def test_query_when_written_with_clauses_then_runs() -> None:
    """What models write in earnest is let through: `WITH`, windows, subqueries, literals with `AS (`."""
    sql = """WITH real(id) AS MATERIALIZED (SELECT id FROM orders WHERE deleted_at IS NULL),
      again AS (SELECT a.id FROM real a JOIN real b ON a.id = b.id)
    SELECT count(*), 'x AS (', max(n) FROM again, (SELECT count(*) OVER w AS n FROM real
      WINDOW w AS (ORDER BY id) LIMIT 1)"""
    columns = """WITH c AS (SELECT o.customer_id, count(*) AS n FROM orders o GROUP BY o.customer_id),
      p AS (SELECT c.customer_id, c.n, customers.name FROM c JOIN customers ON customers.id = c.customer_id
        WHERE c.n > 1 AND c.n < 50 ORDER BY c.n),
      q AS (SELECT p.name, p.n FROM p WHERE p.n > 2 AND p.n < 40 AND p.name <> '' AND p.name < 'Z')
    SELECT q.name, q.n FROM q WHERE q.n < 9 AND q.n > 0 ORDER BY q.n, q.name"""
    assert len(SHOP_WORLD.query(columns).rows) > 20
    answer = SHOP_WORLD.query(sql)
    assert answer.error == ""
    assert answer.rows[0][1:] == ("x AS (", 1)


# Scores -----------------------------------------------------------------------------------


@given(rows=ROWS, data=st.data())
def test_rows_when_in_another_order_are_equal_as_multisets_alone(
    rows: list[Row], data: st.DataObject
) -> None:
    """An order counts where one is asked for, and how often a row comes always does."""
    others = data.draw(st.permutations(rows))
    assert same_rows(rows, others, ordered=False)
    assert same_rows(rows, others, ordered=True) == (rows == others)
    assert not same_rows(rows, [*others, ("a", 1)], ordered=False)
    if rows:
        assert same_rows(rows, [*others[1:], others[0]], ordered=False)
        changed = [*others[1:], (others[0][0], 9)]
        assert not same_rows(rows, changed, ordered=False)


@pytest.mark.parametrize(
    ("row", "other", "equal"),
    [
        ((3,), (3.0,), True),
        ((0.1 + 0.2,), (0.3,), True),
        ((1e9,), (1e9 + 1,), True),
        ((1.0,), (1.01,), False),
        (("3",), (3,), False),
        ((None,), (0,), False),
        ((None,), (None,), True),
        (("a", 1), ("a",), False),
    ],
)
def test_values_when_compared_are_equal_within_tolerance(row: Row, other: Row, equal: bool) -> None:
    """Numbers are equal within a millionth, texts to the letter, and NULL to itself."""
    assert same_rows([row], [other], ordered=True) is equal
    assert same_rows([row], [other], ordered=False) is equal


def test_score_when_an_order_is_asked_for_then_another_order_is_wrong() -> None:
    """Top questions have ordered answers; groups have not."""
    top = next(t for t in SHOP_WORLD.tasks("test") if t.kind == "top")
    group = next(t for t in SHOP_WORLD.tasks("test") if t.kind == "group")
    assert SHOP_WORLD.score(top, f"SELECT * FROM ({top.gold})") == 1.0
    assert SHOP_WORLD.score(top, f"SELECT * FROM ({top.gold}) ORDER BY name DESC, 2") == 0.0
    assert SHOP_WORLD.score(group, f"SELECT * FROM ({group.gold}) ORDER BY name DESC") == 1.0
    results = [row[1] for row in SHOP_WORLD.query(top.gold).rows]
    assert results == sorted(results, reverse=True)  # type: ignore[type-var]


# Feedback ---------------------------------------------------------------------------------


@pytest.mark.parametrize("world", WORLDS.values(), ids=list(WORLDS))
def test_review_when_a_convention_is_disregarded_then_names_it(world: TextToSQL) -> None:
    """Whatever conventions a wrong query lacks, the remarks explain its rows, and hold no answer."""
    said = 0
    for task, ask in world._made.values():
        writing = _Writing(world.company, world.tables)
        writing.query(ask)
        for convention in writing.used:
            sql = _Writing(world.company, world.tables, [convention]).query(ask)
            remarks = world.review(task.id, sql)
            if task.split == "test" or world.score(task, sql):
                assert remarks == ()
                continue
            said += 1
            (remark,) = remarks
            repaired = _Writing(world.company, world.tables, remarks).query(ask)
            assert same_rows(world.query(sql).rows, world.query(repaired).rows, ordered=False)
            assert task.gold not in remark.right
            assert "SELECT" not in remark.wrong + remark.right
    assert said > 50


def test_review_when_a_query_is_wrong_otherwise_then_is_silent() -> None:
    """A reviewer guesses nothing: not of errors, nor of rows that no convention explains."""
    task = SHOP_WORLD.tasks("train")[0]
    for sql in ("SELECT -1", "SELECT total FROM orders", "DELETE FROM orders", task.gold):
        assert SHOP_WORLD.review(task.id, sql) == ()


def test_file_when_opened_by_queries_then_is_a_database_of_its_own() -> None:
    """Each world has its own file, which goes with it."""
    world = TextToSQL(OUTLET, seed=3)
    path = world._path
    assert sqlite3.connect(path).execute("SELECT count(*) FROM orders").fetchone() == (420,)
    del world
    assert not path.exists()
