"""Each text is embedded once, and no bad answer is believed."""

import math
import pickle
from typing import Any

import pytest
from table_embeddings import TableEmbeddings

from langgraft._core.errors import InfrastructureError, SettingsError
from langgraft.memory.embedders import CachedEmbedder, MemoryVectors, make_embedder


def _by_length(text: str) -> list[float]:
    return [float(len(text)), 1.0]


async def _vectors(embedder: CachedEmbedder, mode: str, texts: list[str]) -> list[list[float]]:
    if mode == "sync":
        return embedder.embed_documents(texts)
    return await embedder.aembed_documents(texts)


async def _query(embedder: CachedEmbedder, mode: str, text: str) -> list[float]:
    return embedder.embed_query(text) if mode == "sync" else await embedder.aembed_query(text)


MODES = pytest.mark.parametrize("mode", ["sync", "async"])


@MODES
async def test_texts_when_repeated_then_are_embedded_once(mode: str) -> None:
    """Doubles in a batch and texts of earlier batches are not asked for; order and number stay."""
    table = TableEmbeddings(_by_length)
    embedder = make_embedder(table)
    first = await _vectors(embedder, mode, ["a", "bb", "a"])
    assert first == [[1, 1], [2, 1], [1, 1]]
    assert await _vectors(embedder, mode, ["ccc", "bb"]) == [[3, 1], [2, 1]]
    assert await _vectors(embedder, mode, []) == []
    name = "embed_documents" if mode == "sync" else "aembed_documents"
    assert table.calls == [(name, ["a", "bb"]), (name, ["ccc"])]


@MODES
async def test_query_when_model_embeds_it_otherwise_then_is_cached_by_itself(mode: str) -> None:
    """A text as a query and the same text as a document are two vectors, each asked for once."""
    table = TableEmbeddings(_by_length, {"a": [7.0, 7.0]})
    embedder = make_embedder(table)
    for _ in range(2):
        assert await _query(embedder, mode, "a") == [7, 7]
        assert await _vectors(embedder, mode, ["a"]) == [[1, 1]]
    assert len(table.calls) == 2


@MODES
async def test_embedder_when_used_one_way_then_its_other_methods_are_not_called(mode: str) -> None:
    """The synchronous path calls synchronous methods only, the asynchronous one asynchronous."""
    table = TableEmbeddings(_by_length)
    embedder = make_embedder(table)
    await _vectors(embedder, mode, ["a"])
    await _query(embedder, mode, "a")
    assert {name.startswith("a") for name, _ in table.calls} == {mode == "async"}


BAD = {
    "too few vectors": [[1.0, 2.0]],
    "too many vectors": [[1.0, 2.0]] * 3,
    "different lengths": [[1.0, 2.0], [1.0]],
    "NaN": [[1.0, 2.0], [math.nan, 1.0]],
    "infinity": [[1.0, 2.0], [math.inf, 1.0]],
    "beyond float32": [[1.0, 2.0], [1e39, 1.0]],
    "beyond float64": [[1, 2], [10**400, 1]],
    "no numbers": [["a", "b"], ["c", "d"]],
    "nothing": None,
    "no dimensions": [[], []],
    "flat": [1.0, 2.0],
}


@MODES
@pytest.mark.parametrize("answer", BAD.values(), ids=BAD.keys())
async def test_answer_when_unusable_then_is_refused_and_nothing_kept(
    mode: str, answer: Any
) -> None:
    """The error names the embedder; the same texts are asked for again."""
    table = TableEmbeddings(_by_length)
    embedder = make_embedder(table, fingerprint="my model")
    good = table.embed_documents, table.aembed_documents

    async def answered(texts: list[str]) -> Any:
        return answer

    table.embed_documents, table.aembed_documents = lambda texts: answer, answered  # type: ignore[method-assign]
    with pytest.raises(InfrastructureError, match=r"embedder .*my model.* returned"):
        await _vectors(embedder, mode, ["a", "bb"])
    table.embed_documents, table.aembed_documents = good  # type: ignore[method-assign]
    assert await _vectors(embedder, mode, ["a", "bb"]) == [[1, 1], [2, 1]]


def test_answer_when_dimensions_change_then_is_refused() -> None:
    """A model that was exchanged behind its name does not mix with what is cached."""
    table = TableEmbeddings({"a": [1, 2], "b": [1, 2, 3]})
    embedder = make_embedder(table)
    embedder.embed_documents(["a"])
    with pytest.raises(InfrastructureError, match="vectors of 3 numbers, where they had 2"):
        embedder.embed_query("b")
    assert embedder.embed_documents(["a"]) == [[1, 2]]


@MODES
async def test_embedder_when_it_fails_then_error_passes_and_next_call_retries(mode: str) -> None:
    """What the model raises is raised; nothing is remembered of it."""
    table = TableEmbeddings(_by_length)
    embedder = make_embedder(table)
    table.error = ConnectionError("down")
    with pytest.raises(ConnectionError, match="down"):
        await _vectors(embedder, mode, ["a"])
    table.error = None
    assert await _vectors(embedder, mode, ["a"]) == [[1, 1]]


def test_cache_when_full_then_least_recently_used_go() -> None:
    """A small cache asks again for what it dropped, and never returns anything wrong."""
    table = TableEmbeddings(_by_length)
    embedder = make_embedder(table, cache=MemoryVectors(2))
    embedder.embed_documents(["a", "bb"])
    embedder.embed_documents(["a"])
    embedder.embed_documents(["ccc"])
    assert embedder.embed_documents(["a", "bb", "ccc"]) == [[1, 1], [2, 1], [3, 1]]
    assert table.asked() == ["a", "bb", "ccc", "bb"]
    with pytest.raises(SettingsError, match="capacity must be at least 1, got 0"):
        MemoryVectors(0)


def test_cache_when_caller_changes_what_it_got_then_stays_as_it_was() -> None:
    """Rows are copies."""
    embedder = make_embedder(TableEmbeddings(_by_length))
    embedder.vectors(["a"], "document")[:] = 5
    assert embedder.embed_documents(["a"]) == [[1, 1]]


def test_text_when_it_has_no_utf8_then_is_embedded_all_the_same() -> None:
    """A lone surrogate, which JSON lets into stores, is a text like others."""
    embedder = make_embedder("hashing:8")
    assert embedder.embed_documents(["red \ud800"]) == embedder.embed_documents(["red"])


def test_embedder_when_pickled_then_is_equal_and_works() -> None:
    """Workers in other processes get the same embedder with a cache of their own."""
    embedder = make_embedder("hashing:16")
    embedder.embed_query("red")
    copied = pickle.loads(pickle.dumps(embedder))
    assert copied == embedder
    assert hash(copied) == hash(embedder)
    assert copied.embed_query("red") == embedder.embed_query("red")
