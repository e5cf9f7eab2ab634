"""A coding memory from runs of AIDE: made up ones, and the real ones where they are."""

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from acceptance.coding import measure
from acceptance.figure import Setting
from coding_hits import (
    alike,
    bootstrap_by_runs,
    chance_of_hit,
    compare,
    leave_one_run_out,
    likeness,
    sign_flip_p,
)
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import InputError
from langgraft.benchmarks.mle.coding_memory import (
    build_memory,
    entry_table,
    journal_episodes,
    journal_items,
    write_table,
)
from langgraft.benchmarks.mle.journals import read_journals
from langgraft.memory.recall import RecallContext
from langgraft.memory.stores import ChromaStore
from langgraft.nodes.search.journal import Journal, JournalNode

CODE = "import lightgbm as lgb\nlgb.train({}, d, early_stopping_rounds=3)"
STOPPING = (
    "It crashed with TypeError: train() got an unexpected keyword argument 'early_stopping_rounds'."
)


def node(name: str, step: int, parent: str | None = None, **fields: Any) -> JournalNode:
    """Make a node; what is not given is that of a failure."""
    plain = {"plan": f"Plan of {name}. More of it. And more.", "code": CODE, "is_buggy": True}
    plain |= {"analysis": STOPPING, "exc_type": "TypeError"}
    return JournalNode.model_validate(
        {"id": name, "step": step, "parent_id": parent, **plain, **fields}
    )


def ran(name: str, step: int, parent: str | None) -> JournalNode:
    """Make a node that ran."""
    fields = {"is_buggy": False, "metric": 0.5, "exc_type": None, "analysis": "It ran."}
    return node(name, step, parent, **fields)


def journal(task: str, number: int, *nodes: JournalNode) -> Journal:
    """Make a run."""
    return Journal(f"{task}-{number:08x}", task, nodes)


KEY = {"exc_type": "KeyError", "analysis": "It crashed with a KeyError: 'label'."}
RUNS = [
    journal("leaf", 1, node("a", 0), ran("b", 1, "a"), node("c", 2, "b", **KEY)),
    journal("leaf", 2, node("a", 0), node("b", 1, "a"), node("c", 2)),
    journal("dogs", 3, node("a", 0), node("b", 1, **KEY), ran("c", 2, "b"), ran("d", 3, "b")),
]


def test_episodes_when_a_child_ran_have_its_plan_as_the_verified_fix() -> None:
    """Two sentences of the plan; the child resolves the failure, and only the first such child."""
    episodes = {episode.id: episode for episode in journal_episodes(RUNS[2])}
    key = episodes["dogs-00000003/b"].errors[0]
    assert (key.error, key.fix, key.by) == ("KeyError: 'label'", "Plan of c. More of it.", "rules")
    assert episodes["dogs-00000003/c"].resolves == ("dogs-00000003/b",)
    assert episodes["dogs-00000003/d"].resolves == ()
    rows = entry_table(build_memory(RUNS[2:]))
    assert [(row.package, row.fix, row.verified, row.seen) for row in rows] == [
        ("lightgbm", "", False, 1),
        ("general", "Plan of c. More of it.", True, 1),
    ]


def test_episodes_when_a_journal_has_diagnoses_take_them_as_they_are() -> None:
    """A search of ours diagnosed its failures; its journal says how, and a repair proves a fix."""
    told: dict[str, Any] = {
        "package": "pandas",
        "error": "KeyError: 'sex'",
        "fix": "Drop it.",
        "kind": "code",
    }
    told |= {"verified": False, "by": "model"}
    ours = journal("leaf", 1, node("a", 0, error=told), node("b", 1, error=told), ran("c", 2, "b"))
    advised, proven = (episode.errors[0] for episode in journal_episodes(ours)[:2])
    assert (advised.package, advised.fix, advised.verified) == ("pandas", "Drop it.", False)
    assert (proven.by, proven.fix, proven.verified) == ("model", "Plan of c. More of it.", True)
    odd = journal("leaf", 1, node("a", 0, error={"package": "pandas"}))
    with pytest.raises(InputError, match=r"program 'a' \(step 0\): `error` is no error record"):
        build_memory([RUNS[0], odd])


def test_memory_when_built_in_a_store_is_found_again_and_grows_by_new_runs(tmp_path: Path) -> None:
    """In Chroma on disk; runs that are there already change nothing."""
    with ChromaStore.open(tmp_path / "memory") as store:
        first = build_memory(RUNS[:1], store=store).content()
    with ChromaStore.open(tmp_path / "memory") as store:
        assert build_memory(RUNS[:1], store=store).content() == first
        grown = build_memory(RUNS, store=store)
        assert grown.content() == build_memory(RUNS).content()
        asking = RecallContext(
            domain="mle/dogs", task_id="dogs", episode_id="x/0", stage="debug", observation=str(KEY)
        )
        (found, *_) = grown.provide("", asking).items
    assert found.metadata["fix"] == "Plan of c. More of it."


def test_items_when_taken_from_journals_are_those_of_the_memory() -> None:
    """In order, and as they would be exported."""
    content = build_memory(RUNS).content()
    assert {item.id: item for item in journal_items(RUNS)} == content.items
    assert [item.order_index for item in journal_items(RUNS)] == list(range(len(content.items)))


def test_table_when_written_lists_task_package_error_and_fix() -> None:
    """As Table 4 of the paper, one line an entry, whatever the texts hold."""
    text = write_table(entry_table(build_memory(RUNS)))
    assert text.startswith("| task | package | error | fix |")
    assert "| leaf | lightgbm | TypeError: train() got an unexpected" in text
    odd = node("x", 0, exc_type=None, analysis="a | b\nc")
    assert len(write_table(entry_table(build_memory([journal("t", 1, odd)]))).splitlines()) == 3


def test_hits_when_runs_are_held_out_are_found_among_the_others_alone() -> None:
    """The same class and package, or the same symbol; a run never answers itself."""
    asked = leave_one_run_out(RUNS)
    assert len(asked) == 7
    assert all(each.hit for each in asked)
    same = leave_one_run_out(RUNS, tasks="same")
    assert {each.run for each in same} == {"leaf-00000001", "leaf-00000002"}
    assert {each.error: each.hit for each in same} == {
        "TypeError: train() got an unexpected keyword argument 'early_stopping_rounds'": True,
        "KeyError: 'label'": False,
    }
    found = compare(asked)
    assert (found.n, found.runs, found.rate, found.reachable) == (7, 3, 1.0, 1.0)


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        (("KeyError: 'a'", "pandas"), ("KeyError: 'b'", "pandas"), True),
        (("KeyError: 'a'", "pandas"), ("KeyError: 'a'", "numpy"), False),
        (("TypeError: f() got an unexpected keyword argument 'a'", "x"),
         ("ValueError: f() got an unexpected keyword argument 'a'", "y"), True),
        (("It ended.", "general"), ("It ended.", "general"), False),
    ],
)  # fmt: skip
def test_hit_when_judged_needs_class_and_package_or_the_symbol(
    first: tuple[str, str], second: tuple[str, str], expected: bool
) -> None:
    """Errors that name nothing are like nothing."""
    assert alike(*first, *second) is alike(*second, *first) is expected


@given(st.integers(1, 8), st.data())
def test_chance_when_counted_is_that_of_all_draws(candidates: int, data: st.DataObject) -> None:
    """Against every draw there is."""
    hits, drawn = data.draw(st.integers(0, candidates)), data.draw(st.integers(1, 9))
    draws = list(itertools.combinations(range(candidates), min(drawn, candidates)))
    share = sum(any(each < hits for each in draw) for draw in draws) / len(draws)
    assert chance_of_hit(hits, candidates, drawn) == pytest.approx(share)


def test_bootstrap_when_runs_are_few_is_that_of_all_resamples() -> None:
    """Against all n to the n ordered draws, and near seeded draws for many runs."""
    by_run = {"a": [1.0, 0.0, 1.0], "b": [0.0], "c": [0.5, 0.25], "d": [-0.5, 0.1, 0.0, 0.0]}
    runs = list(by_run.values())
    means = [
        sum(map(sum, drawn)) / sum(map(len, drawn)) for drawn in itertools.product(runs, repeat=4)
    ]
    expected = np.quantile(means, [0.025, 0.975], method="inverted_cdf")
    assert bootstrap_by_runs(by_run) == pytest.approx(tuple(expected))
    many = {str(n): [float(n % 2)] for n in range(40)}
    low, high = bootstrap_by_runs(many)
    assert (low, high) == pytest.approx((0.35, 0.65), abs=0.051)


def test_sign_flips_when_few_cannot_say_more_than_their_number_allows() -> None:
    """Five runs that agree give 1/16; without any difference there is nothing to tell."""
    assert sign_flip_p([1, 2, 3, 4, 5]) == pytest.approx(2 / 32)
    assert sign_flip_p([0, 0]) == 1
    assert sign_flip_p([1.0] * 20) < 0.001


def test_comparison_when_nothing_was_asked_is_refused() -> None:
    """No error, no rate."""
    with pytest.raises(ValueError, match="nothing was asked"):
        compare([])
    with pytest.raises(ValueError, match="compared over tasks"):
        likeness(build_memory(RUNS[:1]))


def test_likeness_when_tasks_have_errors_of_their_own_is_higher_within() -> None:
    """Paired over tasks; an entry is not compared with itself."""

    def failing(task: str, words: str) -> Journal:
        tales = [f"{words} number {n} {words}" for n in ("one", "two", "three")]
        nodes = [node(str(n), n, exc_type=None, analysis=tale) for n, tale in enumerate(tales)]
        return journal(task, 1, *nodes)

    memory = build_memory([failing("leaf", "leaves withered"), failing("dogs", "kennels barked")])
    found = likeness(memory)
    assert (found.errors, found.tasks) == (6, 2)
    assert 0 <= found.across < found.within < 1
    assert found.ratio > 1
    assert math.isfinite(found.t)
    assert likeness(memory, nearest=1).within > found.within


def test_runs_when_real_are_kept_whole(data_dir: Path) -> None:
    """All failures of the real runs; what is judged of them is measured by acceptance."""
    folder = data_dir / "aide"
    if not folder.is_dir():
        pytest.skip("LANGGRAFT_DATA has no folder `aide`")
    journals = read_journals(folder)
    rows = entry_table(build_memory(journals))
    assert sum(row.seen for row in rows) == sum(len(each.buggy) for each in journals)
    assert {row.kind for row in rows} <= {"code", "environment", "resource"}


def test_figures_when_there_is_no_data_say_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is judged that was not measured."""
    monkeypatch.setenv("LANGGRAFT_DATA", str(tmp_path))
    (figure,) = measure(Setting(tmp_path, tmp_path, reduced=True, say=print))
    assert figure.passed is None
    assert "LANGGRAFT_DATA" in figure.figure
