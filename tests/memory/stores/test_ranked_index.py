"""What a ranked store ranks of a record: what LangGraph's `index` says."""

import asyncio
import datetime as dt
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langgraph.store.base import BaseStore, ListNamespacesOp, PutOp, SearchItem, SearchOp
from langgraph.store.memory import InMemoryStore

from langgraft._core.errors import InputError
from langgraft.memory.embedders.named import HashingEmbeddings
from langgraft.memory.rankers import BM25
from langgraft.memory.stores import RankedStore, ReadOnlyStore
from langgraft.memory.stores.put_indexes import INDEX

NewStore = Callable[[], BaseStore]
NAMESPACE = ("notes", "ada")
VALUE = {"title": "the red door", "body": {"lines": ["a key\nopens it", 7]}, "n": 1}


def _keys(items: list[SearchItem]) -> list[str]:
    return [item.key for item in items]


def _found(store: BaseStore, query: str, prefix: tuple[str, ...] = NAMESPACE) -> list[str]:
    return _keys(store.search(prefix, query=query))


@pytest.fixture(params=["live", "built later", "frozen", "kept in a directory"])
def filled(request: pytest.FixtureRequest, new_store: NewStore, tmp_path: Path) -> RankedStore:
    """A ranked store with four records, however it came to know of them."""
    store = new_store()
    kept = tmp_path if request.param == "kept in a directory" else None
    ranked = RankedStore(store, BM25(), directory=kept)
    if request.param in ("live", "kept in a directory"):
        assert _found(ranked, "red") == []
    ranked.put(NAMESPACE, "whole", VALUE)
    ranked.put(NAMESPACE, "hidden", VALUE, index=False)
    ranked.put(NAMESPACE, "titled", VALUE, index=["title"])
    ranked.put(NAMESPACE, "lines", VALUE, index=["body.lines[*]", "n"])
    ranked.close()
    match request.param:
        case "built later":
            return RankedStore(store, BM25())
        case "frozen":
            return RankedStore(ReadOnlyStore(store), BM25())
        case "kept in a directory":
            return RankedStore(store, BM25(), directory=kept)
    return ranked


def test_record_when_its_put_said_an_index_is_found_by_that(filled: RankedStore) -> None:
    """Not at all, by the fields that were named, or else by the whole of it; after a restart too."""
    assert sorted(_found(filled, "red")) == ["titled", "whole"]
    assert sorted(_found(filled, "opens")) == ["lines", "whole"]
    assert sorted(_found(filled, "7")) == ["lines", "whole"]
    assert _found(filled, "title") == ["whole"]
    assert sorted(_keys(filled.search(NAMESPACE, query="door key", filter={"n": 1}))) == [
        "lines",
        "titled",
        "whole",
    ]
    assert sorted(_found(filled, "red", ())) == ["titled", "whole"]
    filled.close()


def test_record_when_put_again_without_an_index_is_ranked_as_any(new_store: NewStore) -> None:
    """What an earlier put said is forgotten, and what a deleted record's put said as well."""
    store = new_store()
    ranked = RankedStore(store, BM25())
    for key in ("a", "b"):
        ranked.put(NAMESPACE, key, VALUE, index=False)
    assert _found(ranked, "red") == []
    ranked = RankedStore(store, BM25())
    ranked.put(NAMESPACE, "a", VALUE)
    ranked.delete(NAMESPACE, "b")
    assert _found(ranked, "red") == ["a"]
    ranked.put(NAMESPACE, "b", VALUE)
    assert _found(RankedStore(store, BM25()), "red") == ["a", "b"]


def test_records_when_read_are_what_was_put() -> None:
    """Of what is kept beside them nothing shows, nor in their namespaces of the wrapped store."""
    ranked, plain = RankedStore(InMemoryStore(), BM25()), InMemoryStore()
    stores: list[BaseStore] = [ranked, plain]
    for store in stores:
        for number in range(6):
            index: Any = (None, False, ["title"])[number % 3]
            namespace = (("a",), ("a", "b"), ("c", "d"))[number % 3]
            store.put(namespace, f"k{number}", {"title": "red", "n": number}, index=index)
        store.put(("a", "b"), "k1", {"title": "red"}, index=["title"])
    for store in (stores[0], ranked.store):
        found = store.get(("a", "b"), "k1")
        assert found is not None
        assert found.value == {"title": "red"}
        assert sorted(_keys(store.search(("a",)))) == ["k0", "k1", "k3", "k4"]
    for depth in (None, 1):
        for offset, limit in ((0, 9), (1, 1), (2, 5)):
            asked = [ListNamespacesOp(None, depth, limit, offset)]
            assert ranked.batch(asked) == plain.batch(asked)
    everything = [_keys(store.search((), limit=9)) for store in (ranked, plain)]
    assert sorted(everything[0]) == sorted(everything[1])
    pages = [_keys(ranked.search((), limit=2, offset=offset)) for offset in (0, 2, 4)]
    assert [key for page in pages for key in page] == everything[0]


def test_default_when_the_wrapped_store_has_fields_is_theirs() -> None:
    """`IndexConfig.fields` says what is indexed where a put does not; `field` says it first."""
    config: Any = {"dims": 8, "embed": HashingEmbeddings(8), "fields": ["title"]}
    for field, query in ((None, "red"), ("body.lines", "opens")):
        ranked = RankedStore(InMemoryStore(index=config), BM25(), field=field)
        ranked.put(NAMESPACE, "a", VALUE)
        ranked.put(NAMESPACE, "b", VALUE, index=False)
        assert [word for word in ("red", "opens") if _found(ranked, word)] == [query]
        assert _found(ranked, query) == ["a"]


def test_index_when_not_heeded_is_for_the_wrapped_store_alone(dict_store: Any) -> None:
    """As with banks: records are found by `field`, and nothing is kept beside them."""
    ranked = RankedStore(dict_store, BM25(), field="title", heed_index=False)
    ranked.put(NAMESPACE, "a", VALUE, index=False)
    assert _found(ranked, "red") == ["a"]
    puts = [op for ops in dict_store.log for op in ops if isinstance(op, PutOp)]
    assert puts == [PutOp(NAMESPACE, "a", VALUE, False)]


@pytest.mark.parametrize("index", [True, "title", [1], 5])
def test_index_when_it_is_neither_false_nor_paths_is_refused(index: Any, dict_store: Any) -> None:
    """Nothing is written."""
    ranked = RankedStore(dict_store, BM25())
    with pytest.raises(InputError, match="`index` of a put is False or a list of paths"):
        ranked.batch([PutOp(NAMESPACE, "a", VALUE), PutOp(NAMESPACE, "b", VALUE, index)])
    with pytest.raises(InputError, match="write to another namespace"):
        ranked.put((INDEX, "a"), "b", VALUE)
    assert dict_store.log == []


def test_value_when_json_does_not_hold_it_is_ranked_by_what_it_does() -> None:
    """A store in memory takes any object; a search goes on all the same."""
    ranked = RankedStore(InMemoryStore(), BM25())
    value = {"at": dt.datetime.now(tz=dt.UTC), 5: {"red"}, "name": ("door", b"x")}
    ranked.put(NAMESPACE, "a", value)  # type: ignore[arg-type]
    assert _found(ranked, "door") == _found(ranked, "name") == ["a"]


_STEPS = st.lists(
    st.tuples(
        st.sampled_from("ab"),
        st.sampled_from([None, False, ["title"], ["body"], ["title", "body"]]),
        st.sampled_from(["put", "put", "delete", "search", "reopen"]),
    ),
    max_size=12,
)


@given(_STEPS)
def test_history_when_any_is_found_as_the_last_put_of_each_record_says(
    steps: list[tuple[str, Any, str]],
) -> None:
    """Writes, deletions, searches and restarts in any order, half of them asynchronous."""
    store = InMemoryStore()
    ranked = RankedStore(store, BM25())
    last: dict[str, Any] = {}
    for number, (key, index, what) in enumerate(steps):
        if what == "reopen":
            ranked = RankedStore(store, BM25())
        elif what == "search":
            ranked.batch([SearchOp((), query="red")])
        else:
            value = {"title": "red", "body": "blue"} if what == "put" else None
            op = PutOp(NAMESPACE, key, value, index)
            if number % 2:
                asyncio.run(ranked.abatch([op]))
            else:
                ranked.batch([op])
            last.pop(key, None)
            if value is not None:
                last[key] = ["title", "body"] if index is None else index or []
    for word, field in (("red", "title"), ("blue", "body")):
        expected = sorted(key for key, fields in last.items() if field in fields)
        assert sorted(_found(ranked, word, ())) == expected
        assert sorted(_found(ranked, word)) == expected
