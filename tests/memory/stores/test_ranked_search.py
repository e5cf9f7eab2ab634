"""Searches with a query are answered by the ranker."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, GetOp, Item, Op, PutOp, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore

from langgraft._core.errors import InputError, SettingsError
from langgraft.memory.rankers import BM25, TermOverlap
from langgraft.memory.stores import RankedStore

NewStore = Callable[[], BaseStore]
NAMESPACE = ("bank", "one")


def _filled(store: BaseStore, **settings: Any) -> RankedStore:
    ranked = RankedStore(store, settings.pop("ranker", TermOverlap()), field="text", **settings)
    ranked.put(NAMESPACE, "a", {"text": "open the red door", "n": 3})
    ranked.put(NAMESPACE, "b", {"text": "go to the red ball 1", "n": 1})
    ranked.put(NAMESPACE, "c", {"text": "go to the blue box 1", "n": 2})
    ranked.put(("bank", "two"), "d", {"text": "put the red ball next to the red box", "n": 0})
    ranked.put(("bank", "two"), "e", {"title": "red ball"})
    ranked.put(("other",), "f", {"text": "red ball"})
    return ranked


def _keys(items: list[SearchItem]) -> list[str]:
    return [item.key for item in items]


def test_search_when_query_is_given_then_items_carry_our_scores(new_store: NewStore) -> None:
    """Results come best first, with score, value and times of the stored record."""
    ranked = _filled(new_store())
    found = ranked.search(NAMESPACE, query="red ball 1")
    assert [(item.key, item.score) for item in found] == [("b", 3.0), ("a", 1.0), ("c", 1.0)]
    stored = ranked.store.get(NAMESPACE, "b")
    assert isinstance(stored, Item)
    assert found[0].value == stored.value
    assert found[0].namespace == NAMESPACE
    assert (found[0].created_at, found[0].updated_at) == (stored.created_at, stored.updated_at)


def test_search_when_prefix_is_short_then_corpus_is_everything_below(new_store: NewStore) -> None:
    """A prefix covers its sub-namespaces, the empty one the whole store; labels match whole."""
    ranked = _filled(new_store())
    assert _keys(ranked.search(("bank",), query="red ball")) == ["b", "d", "a"]
    assert _keys(ranked.search((), query="red ball")) == ["b", "d", "f", "a"]
    assert ranked.search(("ban",), query="red ball") == []


def test_search_when_prefix_is_a_list_then_it_is_taken_as_a_tuple(new_store: NewStore) -> None:
    """A list as namespace finds the same records, with and without a query."""
    ranked = _filled(new_store())
    listed: Any = list(NAMESPACE)
    assert _keys(ranked.search(listed, query="red ball 1")) == ["b", "a", "c"]
    assert sorted(_keys(ranked.search(listed))) == ["a", "b", "c"]
    ranked.put(listed, "g", {"text": "red ball 1 g"})
    assert _keys(ranked.search(NAMESPACE, query="g")) == ["g"]
    assert ranked.get(listed, "g") is not None


def test_search_when_records_have_no_text_then_they_do_not_count() -> None:
    """Records without the field are neither ranked nor part of document frequencies."""
    few, many = (RankedStore(InMemoryStore(), BM25(), field="text") for _ in range(2))
    for ranked in (few, many):
        ranked.put(NAMESPACE, "a", {"text": "red ball"})
        ranked.put(NAMESPACE, "b", {"text": "blue box"})
    for i in range(20):
        many.put(NAMESPACE, f"x{i}", {"text": None} if i % 2 else {"other": "red"})
    scores = [
        [(item.key, item.score) for item in ranked.search(NAMESPACE, query="red")]
        for ranked in (few, many)
    ]
    assert scores[0] == scores[1]


def test_search_when_filtered_then_scores_are_those_of_the_whole_corpus(
    new_store: NewStore,
) -> None:
    """A filter removes results and leaves scores and order of the others alone."""
    ranked = _filled(new_store(), ranker=BM25())
    full = ranked.search(NAMESPACE, query="go to the red ball")
    thin = ranked.search(NAMESPACE, query="go to the red ball", filter={"n": {"$gte": 2}})
    assert [(item.key, item.score) for item in thin] == [
        (item.key, item.score) for item in full if item.value["n"] >= 2
    ]


def test_search_when_filter_is_selective_then_the_whole_ranking_is_gone_through(
    new_store: NewStore,
) -> None:
    """The last of 500 equal matches is found if it alone passes; offset and limit count it."""
    ranked = RankedStore(new_store(), BM25())
    for i in range(500):
        ranked.put(NAMESPACE, f"k{i:03}", {"text": "red ball", "n": i})
    last = {"filter": {"n": {"$gte": 497}}}
    assert _keys(ranked.search(NAMESPACE, query="red", limit=2, **last)) == ["k497", "k498"]  # type: ignore[arg-type]
    assert _keys(ranked.search(NAMESPACE, query="red", offset=2, **last)) == ["k499"]  # type: ignore[arg-type]
    assert ranked.search(NAMESPACE, query="red", filter={"n": 1000}) == []


@pytest.mark.parametrize(
    ("offset", "limit", "expected"),
    [(0, 2, "bd"), (1, 2, "da"), (2, 10, "ac"), (4, 5, ""), (0, 0, ""), (0, -1, ""), (-3, 1, "b")],
)
def test_search_when_paged_then_pages_are_slices_of_one_ranking(
    new_store: NewStore, offset: int, limit: int, expected: str
) -> None:
    """Offset and limit cut the full ranking; meaningless ones do no harm."""
    ranked = _filled(new_store())
    ops = [SearchOp(("bank",), None, limit, offset, "red ball 1")]
    assert "".join(_keys(ranked.batch(ops)[0])) == expected  # type: ignore[arg-type]


@pytest.mark.parametrize(("ties", "expected"), [("oldest", "cab"), ("newest", "bac")])
def test_search_when_scores_tie_then_order_field_decides(
    new_store: NewStore, ties: Any, expected: str
) -> None:
    """Equal scores come by the integer field and then by key, from the end that `ties` says."""
    ranked = RankedStore(new_store(), TermOverlap(ties=ties), order_field="meta.place")
    for key, place in (("b", 7), ("a", 7), ("c", 1)):
        ranked.put(NAMESPACE, key, {"text": "red", "meta": {"place": place}})
    assert "".join(_keys(ranked.search(NAMESPACE, query="red"))) == expected


def test_search_when_field_is_a_path_then_that_text_is_ranked(new_store: NewStore) -> None:
    """The text may lie deeper in the record."""
    ranked = RankedStore(new_store(), BM25(), field="lesson.key")
    ranked.put(NAMESPACE, "a", {"text": "red", "lesson": {"key": "blue"}})
    assert ranked.search(NAMESPACE, query="red") == []
    assert _keys(ranked.search(NAMESPACE, query="blue")) == ["a"]


def test_search_when_batch_also_writes_then_reads_see_the_state_before(
    new_store: NewStore,
) -> None:
    """In one batch, searches and gets ignore its puts, wherever they stand; the last put wins."""
    ranked = _filled(new_store())
    ops: list[Op] = [
        PutOp(NAMESPACE, "n", {"text": "green hat"}),
        SearchOp(NAMESPACE, query="green"),
        PutOp(NAMESPACE, "n", {"text": "green coat"}),
        GetOp(NAMESPACE, "n"),
        PutOp(NAMESPACE, "a", None),
        SearchOp(NAMESPACE, query="door"),
    ]
    results = ranked.batch(iter(ops))
    assert results[:5] == [None, [], None, None, None]
    assert _keys(results[5]) == ["a"]  # type: ignore[arg-type]
    assert [item.value["text"] for item in ranked.search(NAMESPACE, query="green coat hat")] == [
        "green coat"
    ]
    assert ranked.search(NAMESPACE, query="door") == []


def test_search_when_operator_is_unknown_then_the_batch_does_nothing(
    dict_store: BaseStore,
) -> None:
    """A filter that nobody understands is refused before anything is written."""
    ranked = RankedStore(dict_store, BM25())
    ops: list[Op] = [
        PutOp(NAMESPACE, "a", {"text": "red"}),
        SearchOp(NAMESPACE, {"n": {"$in": [1]}}, query="red"),
    ]
    with pytest.raises(InputError, match=r"\$in"):
        ranked.batch(ops)
    assert dict_store.log == []  # type: ignore[attr-defined]


def test_search_when_store_is_reopened_then_ranking_is_the_same(new_store: NewStore) -> None:
    """A second ranked store over the same records, written before, agrees with the first."""
    first = _filled(new_store(), ranker=BM25())
    second = RankedStore(first.store, BM25(), field="text")
    for query in ("red ball", "go to the box 1", "door"):
        assert second.search(("bank",), query=query) == first.search(("bank",), query=query)


_TEXTS = st.lists(st.sampled_from(["red", "blue", "1", "ball", "to"]), max_size=5).map(" ".join)
_WRITES = st.lists(
    st.tuples(
        st.sampled_from([("a",), ("a", "b"), ("c",)]),
        st.sampled_from("klmnop"),
        st.none() | st.just({"other": 1}) | st.builds(lambda text: {"text": text}, _TEXTS),
    ),
    max_size=30,
)


@given(writes=_WRITES, searched=st.sets(st.integers(0, 29)), query=_TEXTS)
def test_search_when_records_are_the_same_then_history_and_driver_do_not_show(
    writes: list[tuple[tuple[str, ...], str, dict[str, Any] | None]],
    searched: set[int],
    query: str,
) -> None:
    """Any writes, searched at any moments, sync or async, rank like the final records alone."""
    query = query or "red"
    live, live_async = (RankedStore(InMemoryStore(), BM25()) for _ in range(2))

    async def play() -> None:
        for i, (namespace, key, value) in enumerate(writes):
            await live_async.abatch([PutOp(namespace, key, value)])
            if i in searched:
                await live_async.asearch(("a",), query="red ball")

    asyncio.run(play())
    for i, (namespace, key, value) in enumerate(writes):
        live.batch([PutOp(namespace, key, value)])
        if i in searched:
            live.search(("a",), query="red ball")
    fresh = RankedStore(InMemoryStore(), BM25())
    final = {(namespace, key): value for namespace, key, value in writes}
    for (namespace, key), value in sorted(final.items(), reverse=True):
        if value is not None:
            fresh.put(namespace, key, value)

    def ranking(items: list[SearchItem]) -> list[object]:
        return [(item.namespace, item.key, item.value, item.score) for item in items]

    for prefix in ((), ("a",), ("a", "b")):
        expected = ranking(fresh.search(prefix, query=query))
        assert ranking(live.search(prefix, query=query)) == expected
        assert ranking(asyncio.run(live_async.asearch(prefix, query=query))) == expected


@pytest.mark.parametrize("settings", [{"max_indexes": 0}, {"field": ""}, {"order_field": ""}])
def test_ranked_store_when_a_setting_is_impossible_then_raises(settings: dict[str, Any]) -> None:
    """Settings without meaning are refused at construction."""
    with pytest.raises(SettingsError):
        RankedStore(InMemoryStore(), BM25(), **settings)
