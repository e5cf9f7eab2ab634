"""LangGraph's own store tests are run on our stores, and every failure is accounted for."""

from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from acceptance import upstream
from acceptance.figure import Setting
from acceptance.upstream import SOURCE, measure
from acceptance.upstream_table import UPSTREAM, Upstream

TESTS = """
import pytest
from langgraph.store.memory import InMemoryStore
from langgraph.store.sqlite import SqliteStore

def test_ours():
    assert type(InMemoryStore()).__name__ == "Ranked"
    with SqliteStore.from_conn_string(":memory:") as store:
        store.setup()
        store.put(("a",), "k", {"text": "red"})
        assert store.search(("a",), query="red")[0].score > 0

async def test_async():
    assert await InMemoryStore().aget(("a",), "k") is None

@pytest.mark.parametrize("n", [1, 2, 3])
def test_known(n):
    assert n == 1
"""


def checkout(folder: Path) -> Path:
    """Make what looks like a checkout of LangGraph, with a few tests of ours in it."""
    tests = folder / "libs" / "checkpoint" / "tests"
    tests.mkdir(parents=True)
    (tests / "test_store.py").write_text(TESTS)
    return folder


@pytest.fixture(scope="module")
def outcomes() -> list[tuple[int, Counter[str]]]:
    """Return what the tests came to, once they have run: for each table they do so alike."""
    return []


@pytest.fixture
def _run_once(monkeypatch: pytest.MonkeyPatch, outcomes: list[tuple[int, Counter[str]]]) -> None:
    """Let the tests run when they are first asked for."""
    run = upstream._outcomes

    def once(*given: Any) -> tuple[int, Counter[str]]:
        if not outcomes:
            outcomes.append(run(*given))
        return outcomes[0]

    monkeypatch.setattr(upstream, "_outcomes", once)


@pytest.mark.usefixtures("_run_once")
@pytest.mark.parametrize(
    ("failures", "passed", "told"),
    [
        ({"test_known": "why"}, True, "3 of 5 cases pass; 2 cases of 1 tests fail as documented"),
        ({}, False, "3 of 5 cases pass; test_known fails"),
        ({"test_known": "", "test_ours": ""}, False, "3 of 5 cases pass; test_ours passes"),
    ],
    ids=["as documented", "undocumented", "mended"],
)
def test_upstream_when_run_holds_the_failures_against_the_table(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    failures: dict[str, str],
    passed: bool,
    told: str,
) -> None:
    """A new failure is told, and so is a documented one that is gone."""
    tests = Upstream("ranked", "ours", "langgraph-checkpoint", "checkpoint", failures)
    monkeypatch.setattr(upstream, "UPSTREAM", (tests,))
    monkeypatch.setenv(SOURCE, str(checkout(tmp_path / "langgraph")))
    work = tmp_path / "work"
    work.mkdir()
    (figure,) = measure(Setting(work, tmp_path, reduced=True, say=print))
    assert (figure.passed, figure.figure) == (passed, told)


def test_upstream_when_the_checkout_is_none_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without the tests nothing is judged, and the page says why."""
    monkeypatch.setenv(SOURCE, str(tmp_path))
    figures = measure(Setting(tmp_path, tmp_path, reduced=True, say=print))
    assert [figure.passed for figure in figures] == [None, None]
    assert "is no checkout of LangGraph" in figures[0].figure


def test_table_when_read_gives_a_reason_for_each_failure() -> None:
    """What is not explained is not accepted."""
    for tests in UPSTREAM:
        assert all(reason.endswith(".") for reason in tests.failures.values())
        assert all(name.startswith("test_") for name in tests.failures)
