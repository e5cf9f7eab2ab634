"""A forked store reads like a plain store that holds the merged content, and spares its base."""

import asyncio
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any, TypeAlias

import pytest
from dict_store import DictStore
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import (
    BaseStore,
    GetOp,
    ListNamespacesOp,
    MatchCondition,
    Op,
    PutOp,
    SearchOp,
)
from langgraph.store.memory import InMemoryStore

from langgraft._core.errors import InputError, ReadOnlyStoreError
from langgraft.memory import Episode, Outcome, RecallContext, Step
from langgraft.memory.providers import TrajectoryMemory
from langgraft.memory.rankers import BM25
from langgraft.memory.stores import ForkedStore, RankedStore, ReadOnlyStore
from langgraft.memory.stores.forked import FORK

NewStore = Callable[[], BaseStore]
Namespace: TypeAlias = tuple[str, ...]
Write: TypeAlias = tuple[Namespace, str, dict[str, Any] | None]

NAMESPACES = st.sampled_from([("a",), ("a", "b"), ("a", "b", "c"), ("c",)])
VALUES = st.fixed_dictionaries({"n": st.integers(0, 3), "text": st.sampled_from(["red", "blue"])})
WRITES = st.lists(
    st.tuples(NAMESPACES, st.sampled_from(["k1", "k2", "k3", "k4"]), st.none() | VALUES),
    max_size=25,
)
PREFIXES = st.sampled_from([(), ("a",), ("a", "b"), ("c",), ("d",)])
FILTERS = st.sampled_from([None, {"n": 1}, {"text": "red"}, {"n": {"$gte": 2}}])


def _play(store: BaseStore, writes: list[Write]) -> BaseStore:
    for namespace, key, value in writes:
        store.batch([PutOp(namespace, key, value)])
    return store


def _merged(*histories: list[Write]) -> dict[tuple[Namespace, str], dict[str, Any]]:
    last = {(ns, key): value for writes in histories for ns, key, value in writes}
    return {address: value for address, value in last.items() if value is not None}


def _plain(*histories: list[Write]) -> BaseStore:
    merged = _merged(*histories)
    return _play(InMemoryStore(), [(ns, key, value) for (ns, key), value in merged.items()])


def _everything(store: BaseStore, prefix: Namespace = (), **asked: Any) -> list[Any]:
    found = store.search(prefix, limit=100, **asked)
    return sorted((item.namespace, item.key, sorted(item.value.items())) for item in found)


@given(before=WRITES, after=WRITES, later=WRITES, prefix=PREFIXES, conditions=FILTERS)
def test_fork_when_written_then_reads_like_a_plain_store_with_the_merged_content(
    before: list[Write],
    after: list[Write],
    later: list[Write],
    prefix: Namespace,
    conditions: dict[str, Any] | None,
) -> None:
    """Gets and filtered searches agree, also for a fork of a fork."""
    base = _play(InMemoryStore(), before)
    held = deepcopy(base._data)  # type: ignore[attr-defined]
    fork = _play(ForkedStore(base, InMemoryStore()), after)
    second = _play(ForkedStore(fork, InMemoryStore()), later)
    for store, plain in ((fork, _plain(before, after)), (second, _plain(before, after, later))):
        expected = _everything(plain, prefix, filter=conditions)
        assert _everything(store, prefix, filter=conditions) == expected
        for namespace, key, _ in (*before, *after, *later):
            mine, theirs = store.get(namespace, key), plain.get(namespace, key)
            assert (mine and mine.value) == (theirs and theirs.value)
    present = {ns: items for ns, items in base._data.items() if items}  # type: ignore[attr-defined]
    assert present == {ns: items for ns, items in held.items() if items}


@given(before=WRITES, after=WRITES, prefix=PREFIXES, size=st.integers(1, 5))
def test_search_when_paged_then_pages_hold_every_record_once(
    before: list[Write], after: list[Write], prefix: Namespace, size: int
) -> None:
    """Pages of any size, laid end to end, are the whole listing in its order."""
    for new in (InMemoryStore, DictStore):
        fork = _play(ForkedStore(_play(new(), before), new()), after)
        whole = fork.search(prefix, limit=100)
        pages = [fork.search(prefix, limit=size, offset=at) for at in range(0, 60, size)]
        assert [item for page in pages for item in page] == whole
        assert _everything(fork, prefix) == _everything(_plain(before, after), prefix)


@given(before=WRITES, after=WRITES, later=WRITES)
def test_namespaces_when_listed_then_are_those_that_hold_a_record(
    before: list[Write], after: list[Write], later: list[Write]
) -> None:
    """Namespaces come with their first record and go with their last, in forks of forks too."""
    # Not over an `InMemoryStore`, which lists what was only looked at.
    fork = _play(ForkedStore(_play(DictStore(), before), InMemoryStore()), after)
    second = _play(ForkedStore(fork, DictStore()), later)
    for store, merged in ((fork, _merged(before, after)), (second, _merged(before, after, later))):
        namespaces = {namespace for namespace, _ in merged}
        assert store.list_namespaces() == sorted(namespaces)
        assert store.list_namespaces(max_depth=1) == sorted({name[:1] for name in namespaces})


@given(before=WRITES, after=WRITES)
def test_fork_when_opened_again_on_the_same_stores_then_is_the_same_fork(
    before: list[Write], after: list[Write]
) -> None:
    """What was deleted stays deleted: it is kept in the overlay."""
    base, overlay = _play(InMemoryStore(), before), InMemoryStore()
    fork = _play(ForkedStore(base, overlay), after)
    assert _everything(ForkedStore(base, overlay)) == _everything(fork)
    assert ForkedStore(base, overlay).list_namespaces() == fork.list_namespaces()


def test_operation_when_it_is_none_is_refused_before_anything_is_written() -> None:
    """A batch with something else in it is a mistake, not an empty answer."""
    fork = ForkedStore(InMemoryStore(), InMemoryStore())
    with pytest.raises(InputError, match=r"carries out GetOp.*got 'put'"):
        fork.batch([PutOp(("a",), "k", {"n": 1}), "put"])  # type: ignore[list-item]
    assert fork.get(("a",), "k") is None


async def test_fork_when_driven_asynchronously_then_answers_the_same(new_store: NewStore) -> None:
    """One logic serves threads and event loops."""
    base = new_store()
    base.put(("a",), "k", {"text": "red"})
    base.put(("a",), "m", {"text": "blue"})
    fork = ForkedStore(base, new_store())
    await fork.aput(("a", "b"), "n", {"text": "green"})
    await fork.adelete(("a",), "k")
    ops: list[Op] = [
        GetOp(("a",), "k"),
        GetOp(("a",), "m"),
        SearchOp(("a",), filter={"text": "green"}),
        ListNamespacesOp(),
    ]
    assert await fork.abatch(iter(ops)) == fork.batch(iter(ops))
    assert [item.key for item in await fork.asearch(("a",))] == ["m", "n"]
    puts = [fork.aput(("c",), str(i), {"text": "x"}) for i in range(20)]
    await asyncio.gather(*puts)
    assert len(await fork.asearch(("c",), limit=50)) == 20


def test_batch_when_it_reads_and_writes_then_reads_see_the_state_before() -> None:
    """The last write of a record counts, and results come in the order of the operations."""
    base = InMemoryStore()
    base.put(("a",), "k", {"n": 1})
    fork = ForkedStore(base, InMemoryStore())
    write, read, *_, found = fork.batch(
        [
            PutOp(("a",), "k", None),
            GetOp(("a",), "k"),
            PutOp(("a",), "k", {"n": 2}),
            PutOp(("a",), "new", {"n": 3}),
            SearchOp(("a",)),
        ]
    )
    assert write is None
    assert read.value == {"n": 1}  # type: ignore[union-attr]
    assert [item.value for item in found] == [{"n": 1}]  # type: ignore[union-attr]
    assert [item.value for item in fork.search(("a",))] == [{"n": 2}, {"n": 3}]


def test_fork_when_read_and_written_then_asks_its_base_for_nothing_but_reads() -> None:
    """No write, and no refresh of a time to live, ever reaches the base."""
    base = DictStore()
    base.put(("a",), "k", {"text": "red"})
    base.log.clear()
    fork = ForkedStore(base, InMemoryStore())
    fork.put(("a",), "k", {"text": "blue"})
    fork.delete(("a",), "k")
    fork.get(("a",), "k", refresh_ttl=True)
    fork.get(("a",), "m", refresh_ttl=True)
    fork.search(("a",), refresh_ttl=True)
    fork.list_namespaces()
    asked = [op for batch in base.log for op in batch]
    assert asked
    assert not any(isinstance(op, PutOp) for op in asked)
    assert not any(getattr(op, "refresh_ttl", False) for op in asked)


def test_record_when_rewritten_then_keeps_its_time_of_creation() -> None:
    """A record deleted and written again is a new one, as in any store."""
    base = InMemoryStore()
    base.put(("a",), "k", {"n": 1})
    base.put(("a",), "m", {"n": 1})
    fork = ForkedStore(ReadOnlyStore(base), InMemoryStore())
    fork.put(("a",), "k", {"n": 2})
    fork.put(("a",), "k", {"n": 3})
    old, new = base.get(("a",), "k"), fork.get(("a",), "k")
    assert old is not None
    assert new is not None
    assert new.created_at == old.created_at < new.updated_at
    assert [item.created_at for item in fork.search(("a",), filter={"n": 3})] == [old.created_at]
    fork.delete(("a",), "k")
    fork.put(("a",), "k", {"n": 4})
    again = fork.get(("a",), "k")
    assert again is not None
    assert again.created_at > old.created_at


def test_record_when_it_expires_in_the_overlay_then_the_base_does_not_show() -> None:
    """A rewritten record that the overlay forgets by itself is gone."""
    base, overlay = InMemoryStore(), InMemoryStore()
    base.put(("a",), "k", {"n": 1})
    fork = ForkedStore(base, overlay)
    fork.put(("a",), "k", {"n": 2})
    overlay.delete(("a",), "k")  # as a sweep of expired records does
    assert fork.get(("a",), "k") is None
    assert fork.search(("a",)) == []
    assert fork.list_namespaces() == []


@pytest.mark.parametrize("value", [{"n": 1}, None], ids=["put", "delete"])
def test_write_when_its_namespace_is_kept_for_tombstones_then_nothing_is_written(
    dict_store: DictStore, value: dict[str, int] | None
) -> None:
    """No user's record can collide with a tombstone, and none is to be seen."""
    base = InMemoryStore()
    base.put(("a",), "k", {"n": 1})
    fork = ForkedStore(base, dict_store)
    with pytest.raises(InputError, match=f"starts with '{FORK}'"):
        fork.batch([PutOp(("a",), "m", {"n": 1}), PutOp((FORK, "a"), "k", value)])
    assert not dict_store.records
    fork.delete(("a",), "k")
    assert [namespace for namespace, _ in dict_store.records] == [(FORK, "a")]
    assert fork.get((FORK, "a"), "k") is None
    assert fork.search((FORK,)) == fork.search(()) == []
    listed = [
        ListNamespacesOp(),
        ListNamespacesOp(match_conditions=(MatchCondition("suffix", ("a",)),)),
    ]
    assert fork.batch(listed) == [[], []]


def test_namespaces_when_matched_cut_and_paged_then_are_those_of_both_stores() -> None:
    """Conditions, depth, limit and offset apply to the union."""
    base = InMemoryStore()
    for label in "abc":
        base.put(("x", label), "k", {"n": 1})
    fork = ForkedStore(base, InMemoryStore())
    fork.put(("x", "d", "deep"), "k", {"n": 1})
    fork.put(("y",), "k", {"n": 1})
    fork.delete(("x", "b"), "k")
    assert fork.list_namespaces(prefix=("x",)) == [("x", "a"), ("x", "c"), ("x", "d", "deep")]
    assert fork.list_namespaces(max_depth=2, limit=2, offset=1) == [("x", "c"), ("x", "d")]
    assert fork.list_namespaces(prefix=("*", "a")) == [("x", "a")]


def _one_hot(texts: list[str]) -> list[list[float]]:
    words = ("red", "blue", "green")
    return [[0.1 + text.split().count(word) for word in words] for text in texts]


def test_query_when_both_stores_score_then_results_are_merged_by_score() -> None:
    """A fork of an indexed store finds what one indexed store with the merged content finds."""
    index: Any = {"dims": 3, "embed": _one_hot, "fields": ["text"]}
    texts = ["red", "red red blue", "blue", "green red", "green", "red blue green"]
    base, plain = InMemoryStore(index=index), InMemoryStore(index=index)
    fork = ForkedStore(base, InMemoryStore(index=index))
    for i, text in enumerate(texts):
        base.put(("a",), str(i), {"text": text})
    for key, text in (("1", "green green"), ("new", "red red")):
        fork.put(("a",), key, {"text": text})
    fork.delete(("a",), "0")
    for i, text in enumerate(["green green", *texts[2:], "red red"], start=1):
        plain.put(("a",), "new" if i == 6 else str(i), {"text": text})
    for query in ("red", "green blue"):
        for limit, offset in ((10, 0), (2, 0), (3, 2)):
            mine = fork.search(("a",), query=query, limit=limit, offset=offset)
            theirs = plain.search(("a",), query=query, limit=limit, offset=offset)
            assert [item.score for item in mine] == [item.score for item in theirs]
        assert {item.key for item in mine} == {item.key for item in theirs}


@given(before=WRITES, after=WRITES, frozen=st.booleans())
def test_ranked_store_when_over_a_fork_then_ranks_like_over_the_merged_content(
    before: list[Write], after: list[Write], frozen: bool
) -> None:
    """The ranker sees the fork as one corpus, while it is written and afterwards."""
    base = _play(InMemoryStore(), before)
    fork = ForkedStore(ReadOnlyStore(base), InMemoryStore())
    ranked = RankedStore(fork, BM25())
    for i, write in enumerate(after):
        if i % 5 == 0:
            ranked.search(("a",), query="red")
        _play(ranked, [write])
    plain = RankedStore(_plain(before, after), BM25())
    ranked = RankedStore(ReadOnlyStore(fork), BM25()) if frozen else ranked
    expected = [(item.key, item.score) for item in plain.search(("a",), query="red", limit=50)]
    assert [(i.key, i.score) for i in ranked.search(("a",), query="red", limit=50)] == expected


def _episode(identity: str, task: str) -> Episode:
    return Episode(
        id=identity,
        domain="babyai/go_to_red_ball",
        task_id=identity,
        task=task,
        steps=(Step(thought="", action="go", observation="a door"),),
        outcome=Outcome(success=True),
    )


def test_provider_when_two_forks_learn_from_one_frozen_bank_then_they_diverge_alone(
    tmp_path: Path,
) -> None:
    """Each fork holds what it learned on top of the bank; the bank stays as it was."""
    store = InMemoryStore()
    bank = TrajectoryMemory(store)
    for i in range(5):
        bank.file(_episode(f"e{i}", f"go to the red ball {i}"))
    before = bank.content().digest
    forks = [TrajectoryMemory(ForkedStore(ReadOnlyStore(store), InMemoryStore())) for _ in "ab"]
    for name, fork in zip("ab", forks, strict=True):
        fork.file(_episode(name, f"open the {name} box"))
        context = RecallContext(domain="babyai", task_id="t", episode_id="t")
        recalled = fork.provide(f"open the {name} box", context).items
        assert recalled[0].episode_id == name
        assert fork.export_items(tmp_path / f"{name}.jsonl") == 6
    assert len({bank.content().digest, *(fork.content().digest for fork in forks)}) == 3
    assert bank.content().digest == before
    with pytest.raises(ReadOnlyStoreError):
        TrajectoryMemory(ReadOnlyStore(store)).file(_episode("z", "x"))
