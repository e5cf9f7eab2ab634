"""Searching: how many, from where, in which order, by which filters; and by an `index` of vectors."""

import asyncio
import hashlib
import math
import re
from collections.abc import Iterator
from typing import Any

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, IndexConfig, PutOp, SearchItem

from langgraft._core.errors import SettingsError
from langgraft.memory.testing.base import needs
from langgraft.memory.testing.stores.base import Calls, StoreSuite

NAMESPACE = ("searching",)


class SearchCases(StoreSuite):
    """A search without a query lists records."""

    def _fill(self, calls: Calls, count: int) -> list[str]:
        # One at a time: LangGraph does not say how records of one moment are ordered.
        return sorted(calls.fill(NAMESPACE, {f"k{n:02}": {"n": n} for n in range(count)}))

    def test_search_when_nothing_is_there_finds_nothing(self, calls: Calls) -> None:
        """An unknown prefix is an empty answer, not an error."""
        assert calls.search(NAMESPACE) == []
        assert calls.search(()) == []

    def test_search_when_no_limit_is_given_returns_ten(self, calls: Calls) -> None:
        """Ten is LangGraph's default."""
        self._fill(calls, 12)
        found = calls.search(NAMESPACE)
        assert len(found) == 10
        assert all(isinstance(item, SearchItem) for item in found)

    def test_search_when_limited_returns_that_many_of_them(self, calls: Calls) -> None:
        """More is never returned, and less only where there is no more."""
        keys = self._fill(calls, 12)
        for limit in (0, 1, 11, 12, 13, 100_000):
            found = [item.key for item in calls.search(NAMESPACE, limit=limit)]
            assert len(found) == len(set(found)) == min(limit, 12)
            assert set(found) <= set(keys)

    def test_pages_when_put_together_are_all_records_each_once(self, calls: Calls) -> None:
        """Limit and offset cut one order, which does not change between two searches."""
        keys = self._fill(calls, 12)
        for size in (1, 5, 12):
            found = [
                item.key
                for offset in range(0, 15, size)
                for item in calls.search(NAMESPACE, limit=size, offset=offset)
            ]
            assert sorted(found) == keys
        assert calls.search(NAMESPACE, offset=12) == []

    def test_order_when_searched_again_is_the_same(self, calls: Calls) -> None:
        """Nothing but a write changes the order of an answer."""
        self._fill(calls, 12)
        first = [item.key for item in calls.search(NAMESPACE, limit=12)]
        for _ in range(3):
            assert [item.key for item in calls.search(NAMESPACE, limit=12)] == first

    def test_search_when_records_changed_returns_them_as_they_are(self, calls: Calls) -> None:
        """Every search sees every write before it."""
        keys = self._fill(calls, 5)
        calls.put(NAMESPACE, keys[0], {"n": "new"})
        calls.delete(NAMESPACE, keys[1])
        found = {item.key: item.value["n"] for item in calls.search(NAMESPACE)}
        assert found == {"k00": "new", "k02": 2, "k03": 3, "k04": 4}


NUMBERS = ("numbers",)

VALUES: dict[str, dict[str, Any]] = {
    "dune": {"kind": "book", "year": 1965, "rating": 9.5, "tags": ["sand", "war"], "read": True},
    "emma": {"kind": "book", "year": 1815, "rating": -1, "by": {"name": "Jane", "born": 1775}},
    "alien": {"kind": "film", "year": 1979, "rating": 10, "read": False, "by": {"name": "Ridley"}},
    "heat": {"kind": "film", "year": 995, "by": None, "rating": 100.25},
    "note": {"text": "no fields of the others"},
}


class FilterCases(StoreSuite):
    """A record is returned if its value meets every condition."""

    @pytest.fixture
    def shelf(self, calls: Calls) -> Calls:
        """Return a store with a few records of different shapes."""
        calls.fill(NAMESPACE, VALUES)
        return calls

    @pytest.fixture
    def numbers(self, calls: Calls) -> Calls:
        """Return a store whose records all have the fields that are compared."""
        calls.fill(NUMBERS, {key: value for key, value in VALUES.items() if "year" in value})
        return calls

    def test_filter_when_empty_lets_everything_through(self, shelf: Calls) -> None:
        """No condition is no filter."""
        assert shelf.keys(NAMESPACE, filter={}) == sorted(VALUES)

    def test_filter_when_a_plain_value_is_given_compares_for_equality(self, shelf: Calls) -> None:
        """Texts, numbers and flags are compared as they are."""
        assert shelf.keys(NAMESPACE, filter={"kind": "film"}) == ["alien", "heat"]
        assert shelf.keys(NAMESPACE, filter={"year": 1965}) == ["dune"]
        assert shelf.keys(NAMESPACE, filter={"rating": 9.5}) == ["dune"]
        assert shelf.keys(NAMESPACE, filter={"read": False}) == ["alien"]
        assert shelf.keys(NAMESPACE, filter={"year": "1965"}) == []

    def test_filter_when_a_list_is_given_compares_it_whole(self, shelf: Calls) -> None:
        """Lists are equal in length, order and members."""
        assert shelf.keys(NAMESPACE, filter={"tags": ["sand", "war"]}) == ["dune"]
        assert shelf.keys(NAMESPACE, filter={"tags": ["war", "sand"]}) == []
        assert shelf.keys(NAMESPACE, filter={"tags": ["sand"]}) == []

    def test_filter_when_a_mapping_is_given_asks_for_what_it_names(self, shelf: Calls) -> None:
        """A nested condition holds for the fields it has; the others do not matter."""
        assert shelf.keys(NAMESPACE, filter={"by": {"name": "Jane"}}) == ["emma"]
        assert shelf.keys(NAMESPACE, filter={"by": {"name": "Jane", "born": 1776}}) == []

    def test_filter_when_conditions_are_nested_compares_inside(self, calls: Calls) -> None:
        """Operators work inside a nested mapping."""
        for born in (1775, 1937):
            calls.put(NAMESPACE, str(born), {"by": {"born": born}})
        assert calls.keys(NAMESPACE, filter={"by": {"born": {"$lt": 1800}}}) == ["1775"]

    def test_filter_when_several_fields_are_given_wants_all(self, shelf: Calls) -> None:
        """Conditions add up."""
        assert shelf.keys(NAMESPACE, filter={"kind": "film", "year": 1979}) == ["alien"]
        assert shelf.keys(NAMESPACE, filter={"kind": "film", "year": 1965}) == []

    def test_filter_when_none_is_given_finds_the_field_that_holds_it(self, shelf: Calls) -> None:
        """A field that holds nothing can be asked for."""
        assert "heat" in shelf.keys(NAMESPACE, filter={"by": None})
        assert "emma" not in shelf.keys(NAMESPACE, filter={"by": None})

    def test_eq_when_given_does_as_a_plain_value(self, shelf: Calls) -> None:
        """`$eq` is equality."""
        assert shelf.keys(NAMESPACE, filter={"kind": {"$eq": "film"}}) == ["alien", "heat"]
        assert shelf.keys(NAMESPACE, filter={"tags": {"$eq": ["sand", "war"]}}) == ["dune"]

    def test_ne_when_the_field_is_there_leaves_out_what_is_equal(self, shelf: Calls) -> None:
        """`$ne` is inequality."""
        found = shelf.keys(NAMESPACE, filter={"kind": {"$ne": "film"}})
        assert {"dune", "emma"} <= set(found)
        assert not {"alien", "heat"} & set(found)

    def test_ne_when_the_field_is_missing_lets_the_record_through(self, shelf: Calls) -> None:
        """What is not there is not equal."""
        assert shelf.keys(NAMESPACE, filter={"kind": {"$ne": "film"}}) == ["dune", "emma", "note"]

    def test_gt_when_given_compares_numbers(self, numbers: Calls) -> None:
        """`$gt` is strictly greater, as numbers: 995 is less than 1815."""
        assert numbers.keys(NUMBERS, filter={"year": {"$gt": 1815}}) == ["alien", "dune"]
        assert numbers.keys(NUMBERS, filter={"rating": {"$gt": 9.5}}) == ["alien", "heat"]

    def test_gte_when_given_compares_numbers(self, numbers: Calls) -> None:
        """`$gte` is greater or equal."""
        assert numbers.keys(NUMBERS, filter={"year": {"$gte": 1815}}) == ["alien", "dune", "emma"]

    def test_lt_when_given_compares_numbers(self, numbers: Calls) -> None:
        """`$lt` is strictly less; negative numbers are."""
        assert numbers.keys(NUMBERS, filter={"year": {"$lt": 1815}}) == ["heat"]
        assert numbers.keys(NUMBERS, filter={"rating": {"$lt": 9.5}}) == ["emma"]

    def test_lte_when_given_compares_numbers(self, numbers: Calls) -> None:
        """`$lte` is less or equal."""
        assert numbers.keys(NUMBERS, filter={"year": {"$lte": 1815}}) == ["emma", "heat"]

    def test_operators_when_several_are_given_want_all(self, numbers: Calls) -> None:
        """Two operators on one field make a range."""
        span = {"year": {"$gte": 1000, "$lt": 1979}}
        assert numbers.keys(NUMBERS, filter=span) == ["dune", "emma"]

    def test_comparison_when_the_field_is_missing_leaves_the_record_out(self, shelf: Calls) -> None:
        """A missing field is neither greater nor less, and no error."""
        assert shelf.keys(NAMESPACE, filter={"missing": {"$gt": 0}}) == []
        assert shelf.keys(NAMESPACE, filter={"missing": {"$lte": 0}}) == []

    def test_comparison_when_the_field_holds_a_text_leaves_the_record_out_of_numbers(
        self, shelf: Calls
    ) -> None:
        """A text that is no number is neither greater nor less than one, and no error."""
        assert shelf.keys(NAMESPACE, filter={"kind": {"$gt": 5}}) == []
        assert shelf.keys(NAMESPACE, filter={"kind": {"$lt": 5}}) == []

    def test_operator_when_unknown_is_refused(self, shelf: Calls) -> None:
        """An operator that does not exist is an error, not an empty answer."""
        with pytest.raises(Exception):  # noqa: B017, PT011 - which one is the store's to say
            shelf.search(NAMESPACE, filter={"year": {"$near": 1965}})

    def test_filter_when_names_and_values_are_hostile_takes_them_literally(
        self, calls: Calls
    ) -> None:
        """Nothing in a filter is read as a query language."""
        names = ["a-b", "1st", "it's", 'say "x"', "é", "a b", "a$", "x') OR 1=1 --", "[0]"]
        for name in names:
            calls.put(NAMESPACE, name, {name: name, "same": "x' OR '1'='1"})
        for name in names:
            assert calls.keys(NAMESPACE, filter={name: name}) == [name]
            assert calls.keys(NAMESPACE, filter={name: "' OR '1'='1"}) == []
        assert calls.keys(NAMESPACE, filter={"same": "x' OR '1'='1"}) == sorted(names)

    def test_filter_when_beside_a_prefix_and_a_limit_goes_first(self, shelf: Calls) -> None:
        """Limit and offset count what the filter let through."""
        shelf.put(("elsewhere",), "other", {"kind": "film"})
        found = [
            item.key
            for offset in range(3)
            for item in shelf.search(NAMESPACE, filter={"kind": "film"}, limit=1, offset=offset)
        ]
        assert sorted(found) == ["alien", "heat"]

    @needs("dotted_filters")
    def test_filter_when_its_name_is_a_path_looks_inside(self, shelf: Calls) -> None:
        """A dotted name stands for a field of a field."""
        assert shelf.keys(NAMESPACE, filter={"by.name": "Jane"}) == ["emma"]
        assert shelf.keys(NAMESPACE, filter={"by.born": {"$lt": 1800}}) == ["emma"]


NAMESPACE = ("semantics",)
DIMENSIONS = 256


class WordVectors(Embeddings):
    """Counts words, each at a place that its digest names: texts with common words are near."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one unit vector a text."""
        return [self.embed_query(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """Return the unit vector of a text."""
        vector = [0.0] * DIMENSIONS
        for word in re.findall(r"\w+", text.lower()):
            vector[hashlib.sha256(word.encode()).digest()[0]] += 1.0
        norm = math.sqrt(sum(x * x for x in vector)) or 1.0
        return [x / norm for x in vector]


def word_index() -> IndexConfig:
    """Return the `index` that the semantic cases want a store to be opened with."""
    return {"dims": DIMENSIONS, "embed": WordVectors(), "fields": ["text"]}


TEXTS = {
    "door": {"text": "the red door opens with a key", "n": 1},
    "ball": {"text": "the blue ball is under the table", "n": 2},
    "box": {"text": "a green box holds nothing", "n": 1},
}


class SemanticCases(StoreSuite):
    """A query returns records by the nearness of their indexed fields, nearest first."""

    @pytest.fixture
    def semantic_store(self) -> Iterator[BaseStore]:
        """Return an empty store opened with `word_index()`: yours, if `semantic`."""
        msg = f"{type(self).__name__} says `semantic = True`: it needs a fixture `semantic_store`"
        raise SettingsError(msg)

    @pytest.fixture
    def ranked(
        self, request: pytest.FixtureRequest, semantic_store: BaseStore, runner: asyncio.Runner
    ) -> Calls:
        """Return a store with an index and three texts."""
        calls = Calls(semantic_store, runner.run, synchronous=request.param == "sync")
        calls.fill(NAMESPACE, TEXTS)
        return calls

    @staticmethod
    def _order(ranked: Calls, query: str, **options: object) -> list[str]:
        return [item.key for item in ranked.search(NAMESPACE, query=query, **options)]

    @needs("semantic")
    def test_query_when_asked_returns_the_nearest_first_with_scores(self, ranked: Calls) -> None:
        """Scores fall, and the text that shares most words comes first."""
        found = ranked.search(NAMESPACE, query="red door key")
        assert found[0].key == "door"
        scores = [item.score for item in found if item.score is not None]
        assert scores == sorted(scores, reverse=True)
        assert len(scores) >= 1

    @needs("semantic")
    def test_query_when_a_text_changed_ranks_by_the_new_one(self, ranked: Calls) -> None:
        """An overwritten text is not found by what it said."""
        ranked.put(NAMESPACE, "box", {"text": "red door key", "n": 1})
        assert self._order(ranked, "red door key")[0] == "box"
        ranked.delete(NAMESPACE, "box")
        assert self._order(ranked, "red door key")[0] == "door"

    @needs("semantic")
    def test_query_when_a_text_is_gone_does_not_rank_by_it(self, ranked: Calls) -> None:
        """No vector outlives its text."""
        ranked.put(NAMESPACE, "door", {"n": 1})
        scored = {
            item.key: item.score or 0.0 for item in ranked.search(NAMESPACE, query="red door key")
        }
        assert scored.get("door", 0.0) < 0.1

    @needs("semantic")
    def test_texts_when_equal_in_one_batch_are_both_indexed(self, ranked: Calls) -> None:
        """Two records may say the same."""
        same = {"text": "a purple bicycle"}
        ranked.batch([PutOp(NAMESPACE, "one", same), PutOp(NAMESPACE, "two", same)])
        assert sorted(self._order(ranked, "purple bicycle")[:2]) == ["one", "two"]

    @needs("semantic")
    def test_record_when_put_without_an_index_is_not_ranked(self, ranked: Calls) -> None:
        """`index=False` keeps a record out of the ranking, not out of the store."""
        ranked.put(NAMESPACE, "hidden", {"text": "red door key"}, index=False)
        assert self._order(ranked, "red door key")[0] == "door"
        assert ranked.value(NAMESPACE, "hidden") == {"text": "red door key"}

    @needs("semantic")
    def test_query_when_filtered_ranks_what_passes(self, ranked: Calls) -> None:
        """A filter goes before limit and offset."""
        assert self._order(ranked, "the blue ball", filter={"n": 2}) == ["ball"]
        assert "ball" not in self._order(ranked, "the blue ball", filter={"n": 1})

    @needs("semantic")
    def test_pages_when_put_together_are_the_ranking(self, ranked: Calls) -> None:
        """Limit and offset cut one order."""
        query = "the red door, the blue ball, a green box"
        whole = self._order(ranked, query)
        assert sorted(whole) == sorted(TEXTS)
        pages = [self._order(ranked, query, limit=1, offset=n) for n in range(3)]
        assert [key for page in pages for key in page] == whole
