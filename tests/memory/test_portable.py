"""A bank is the same bank wherever it is kept, whatever it holds."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, GetOp, PutOp
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode, make_item, scalars, texts
from postgres_server import Schemas

from langgraft._core.canonical import (
    JSON,
    canonical_json,
    portable_name,
    portable_record,
    travels,
    unseal,
)
from langgraft._core.effects import drive
from langgraft.memory.bank import apply_delta, read_content, read_state, records_namespace
from langgraft.memory.model import (
    Add,
    Annotate,
    Episode,
    Lesson,
    MemoryDelta,
    Outcome,
    Remove,
    SetState,
    fold,
)
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import InsightMemory, InsightSettings, TrajectoryMemory
from langgraft.memory.stores import ChromaStore

BANK = records_namespace(("portable",))

HOSTILE: dict[str, JSON] = {
    "nul": "a\x00b",
    "nul in a field": {"\x00": 1},
    "large float": 1e16,
    "larger float": -1.5e300,
    "negative zero": -0.0,
    "large integer": 10**40,
    "deep": [{"x": [[1e22]]}],
}
PLAIN: dict[str, JSON] = {
    "float": 0.1,
    "small float": 5e-324,
    "whole float": 123456789012345.0,
    "zero": 0.0,
    "integer": -(2**63),
    "text": "\x01\x1f\u2028\uffff🜁",
    "nothing": None,
}

values: st.SearchStrategy[Any] = st.recursive(
    st.none() | scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@pytest.mark.parametrize("value", HOSTILE.values(), ids=HOSTILE)
def test_value_when_a_database_would_change_it_does_not_travel(value: JSON) -> None:
    """What PostgreSQL or SQLite refuses or returns otherwise is known."""
    assert not travels(value)
    assert not travels({"in": [value]})


@pytest.mark.parametrize("value", PLAIN.values(), ids=PLAIN)
def test_value_when_no_database_changes_it_travels(value: JSON) -> None:
    """All else stays a plain field, to be read by whoever looks into the store."""
    assert travels(value)
    assert travels({"in": [value]})


@given(record=st.dictionaries(texts, values, max_size=3))
def test_record_when_made_portable_travels_and_says_what_it_held(record: dict[str, JSON]) -> None:
    """Plain or sealed, the same record is read from it."""
    portable = portable_record(record)
    assert travels(portable)
    assert canonical_json(dict(unseal(portable))) == canonical_json(record)


def test_record_when_sealed_can_still_be_filtered() -> None:
    """Its fields are there in a form that travels, and all that were fit are unchanged."""
    held: dict[str, JSON] = {
        "item": {"text": "a\x00b", "n": 3},
        "large": 1e16,
        "list": [-0.0, 0.5, True, None],
    }
    portable = portable_record(held)
    assert portable.pop("sealed")
    assert portable == {
        "item": {"text": "a\ufffdb", "n": 3},
        "large": "1e+16",
        "list": ["-0.0", 0.5, True, None],
    }


@given(names=st.sets(st.text(max_size=4) | st.just("x" * 3000), min_size=2, max_size=4))
def test_name_when_made_portable_stays_apart_from_others(names: set[str]) -> None:
    """Different names have different keys, also from the keys of others."""
    encodable = {name for name in names if not any("\ud800" <= c <= "\udfff" for c in name)}
    keys = {portable_name(name) for name in encodable}
    assert len(keys) == len(encodable)
    assert all(len(key.encode()) <= 1000 and travels(key) for key in keys)
    again = {portable_name(key) for key in keys if key not in encodable}
    assert not again & keys


@settings(
    max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(value=st.dictionaries(texts, values, max_size=3))
def test_value_when_it_travels_comes_back_from_postgres_to_the_byte(
    postgres: Schemas, opened: dict[str, BaseStore], value: dict[str, JSON]
) -> None:
    """What is left unsealed is safe to leave so."""
    store = opened.get("store") or opened.setdefault("store", postgres.store())
    store.batch([PutOp(("t",), "k", portable_record(value))])
    (item,) = store.batch([GetOp(("t",), "k")])
    got = dict(unseal(item.value))  # type: ignore[union-attr]
    assert canonical_json(got) == canonical_json(value)


@pytest.fixture
def opened() -> dict[str, BaseStore]:
    """Return where examples keep the store that they share."""
    return {}


def deltas() -> list[MemoryDelta]:
    """Return what fills a bank with all that is hard to keep."""
    names = ["plain", "nul\x00", "long " * 2000, "sha256:" + "0" * 64, ""]
    added = [
        Add(make_item(f"i{name}", text=f"t\x00{name}", order_index=number, episode_id=name))
        for number, name in enumerate(names)
    ]
    return [
        MemoryDelta(tuple(added)),
        MemoryDelta(tuple(Annotate(f"i{name}", {"all": HOSTILE}) for name in names)),
        MemoryDelta((Add(make_item("k", key="k\x00", metadata={"f": 1e17, "\x00": "\x00"})),)),
        MemoryDelta(tuple(SetState(f"s{name}", {"all": [HOSTILE, PLAIN]}) for name in names)),
        MemoryDelta((SetState("snul\x00", None), Remove("i", "old"), SetState("s", -0.0))),
    ]


def test_bank_when_it_holds_what_is_hard_to_keep_is_the_fold_in_postgres_too(
    postgres: Schemas,
) -> None:
    """Bytes of the content, and single values, are those of the log on every store."""
    for store in (InMemoryStore(), postgres.store()):
        for number, delta in enumerate(deltas()):
            drive(apply_delta(BANK, delta), store)
            folded = fold(deltas()[: number + 1])
            assert drive(read_content(BANK), store).to_bytes() == folded.to_bytes()
        keys = [*folded.state, "snul\x00"]
        read = drive(read_state(BANK, keys), store)
        assert canonical_json(read) == canonical_json([*folded.state.values(), None])


def test_state_when_its_name_is_hard_to_keep_is_not_recalled() -> None:
    """Bookkeeping has no text to rank by, whatever it is called."""
    memory = TrajectoryMemory(InMemoryStore())
    memory.file(make_episode("filed e1\x00", task="open the red door"))
    assert not memory.provide("filed e1", asking())
    assert all(
        "key" not in item.value
        for item in memory.store.search((), limit=99)
        if item.key.startswith("state/")
    )


def test_records_when_written_to_different_stores_are_the_same(postgres: Schemas) -> None:
    """What a bank's records look like depends on its content alone."""
    seen = []
    for store in (InMemoryStore(), postgres.store()):
        for delta in deltas():
            drive(apply_delta(BANK, delta), store)
        seen.append({item.key: canonical_json(item.value) for item in store.search((), limit=99)})
    assert seen[0] == seen[1]


@pytest.mark.parametrize("granularity", ["aggregate", "individual"])
def test_memory_when_kept_in_a_database_recalls_the_same_and_has_the_same_digest(
    postgres: Schemas, tmp_path: Path, granularity: Any
) -> None:
    """A provider does not notice which store it is on."""
    setting = InsightSettings(granularity=granularity, top_k=3)
    with ChromaStore.open(tmp_path / "chroma") as chroma:
        stores = [InMemoryStore(), postgres.store(), chroma]
        insights: list[MemoryProvider[Any]] = [
            InsightMemory(store, settings=setting) for store in stores
        ]
        raws: list[MemoryProvider[Any]] = [TrajectoryMemory(store) for store in stores]
        for episode in stream():
            for memories in (insights, raws):
                first, *others = [memory.file(episode) for memory in memories]
                assert others == [first, first]
        for memories in (insights, raws):
            assert len({memory.content().digest for memory in memories}) == 1
            for word in [*WORDS, "red key", ""]:
                recalls = [memory.provide(word, asking()) for memory in memories]
                assert recalls == [recalls[0]] * 3


WORDS = ["red", "blue", "door\x00", "key", "100%", "a_b"]


def stream() -> list[Episode]:
    """Return episodes whose texts overlap, tie, and hold what is hard to keep."""
    tasks = [
        " ".join(WORDS[(number * step) % len(WORDS)] for step in (1, 2, 3)) for number in range(24)
    ]
    return [
        make_episode(
            f"e{number}\x00",
            task=task,
            lessons=(Lesson(task, "near a door"), Lesson("look")),
            outcome=Outcome(success=number % 3 > 0, score=-0.0),
        )
        for number, task in enumerate(tasks)
    ]
