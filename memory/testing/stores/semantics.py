"""Semantic search: stores that rank by an `index` of vectors."""

import asyncio
import hashlib
import math
import re
from collections.abc import Iterator

import pytest
from langchain_core.embeddings import Embeddings
from langgraph.store.base import BaseStore, IndexConfig, PutOp

from langgraft._core.errors import SettingsError
from langgraft.memory.testing.stores.suite import Calls, StoreSuite
from langgraft.memory.testing.suite import needs

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
