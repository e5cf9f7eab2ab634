"""A ranking depends on the present documents and on nothing else."""

import itertools
import os
import random
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays
from numpy.typing import NDArray

from langgraft._core.canonical import JSON
from langgraft.memory.rankers import (
    BM25,
    MMR,
    Dense,
    Hybrid,
    Ranker,
    RankerIndex,
    Scored,
    TermOverlap,
    documents,
    lexical,
)
from langgraft.memory.rankers.base import Document, DurableIndex, put_all

WORDS = st.sampled_from(["go", "to", "red", "blue", "key", "1", "x", "open", "caf\u00e9", "go\x00"])
TEXTS = st.lists(WORDS, max_size=8).map(" ".join)
Write: TypeAlias = tuple[int, str | None]
WRITES = st.lists(st.tuples(st.integers(0, 9), st.none() | TEXTS), max_size=60)
RANKERS = st.sampled_from(
    [
        *(BM25(), BM25(ties="newest"), BM25(k1=0.9, b=0.3), BM25(query_counts=False)),
        *(BM25(idf="okapi"), TermOverlap(), TermOverlap(ties="newest")),
    ]
)
DURABLE = st.one_of(
    RANKERS,
    st.sampled_from(
        [
            Dense("hashing:32"),
            MMR(BM25()),
            MMR(Dense("hashing:16"), candidates=3),
            Hybrid((TermOverlap(), Dense("hashing:32")), pool=3),
        ]
    ),
)


def _play(ranker: Ranker, writes: list[Write]) -> RankerIndex:
    index = ranker.index()
    for key, text in writes:
        _write(index, key, text)
    return index


def _at_once(ranker: Ranker, writes: list[Write]) -> RankerIndex:
    index = ranker.index()
    put_all(index, [Document(key, text, (key,)) for key, text in _present(writes)])
    return index


def _write(index: RankerIndex, key: int, text: str | None) -> None:
    if text is None:
        index.remove(key)
    else:
        index.put(key, text, (key,))


def _present(writes: list[Write]) -> list[tuple[int, str]]:
    return [(key, text) for key, text in dict(writes).items() if text is not None]


@given(ranker=RANKERS, writes=WRITES, query=TEXTS, limit=st.integers(0, 12), data=st.data())
def test_ranking_when_documents_are_the_same_then_history_does_not_show(
    ranker: Ranker, writes: list[Write], query: str, limit: int, data: st.DataObject
) -> None:
    """Overwrites, removals and any order of arrival give the ranking of a fresh index."""
    present: list[Write] = [(key, text) for key, text in _present(writes)]
    shuffled = data.draw(st.permutations(present))
    expected = _play(ranker, shuffled).search(query, limit=limit)
    assert _play(ranker, writes).search(query, limit=limit) == expected
    assert _at_once(ranker, writes).search(query, limit=limit) == expected


@given(ranker=RANKERS, writes=WRITES, queries=st.lists(TEXTS, min_size=1, max_size=60))
def test_ranking_when_searched_between_writes_then_is_that_of_the_moment(
    ranker: Ranker, writes: list[Write], queries: list[str]
) -> None:
    """Searching never disturbs an index."""
    index = ranker.index()
    for i, (key, text) in enumerate(writes):
        _write(index, key, text)
        query = queries[i % len(queries)]
        expected = _play(ranker, list(_present(writes[: i + 1]))).search(query, limit=5)
        assert index.search(query, limit=5) == expected
        assert len(index) == len(_present(writes[: i + 1]))


@given(ranker=DURABLE, before=WRITES, after=WRITES, query=TEXTS)
def test_ranking_when_saved_and_loaded_in_between_then_history_does_not_show(
    ranker: Ranker, before: list[Write], after: list[Write], query: str
) -> None:
    """An index from files goes on as the saved one would, and can be saved again."""
    expected = _play(ranker, [*before, *after]).search(query, limit=12)
    with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
        index = _saved_and_loaded(_play(ranker, before), ranker, Path(first))
        index.search(query, limit=2)
        for key, text in after[: len(after) // 2]:
            _write(index, key, text)
        index = _saved_and_loaded(index, ranker, Path(second))
        for key, text in after[len(after) // 2 :]:
            _write(index, key, text)
        assert index.search(query, limit=12) == expected
        assert len(index) == len(_present([*before, *after]))


def _saved_and_loaded(index: RankerIndex, ranker: Ranker, folder: Path) -> RankerIndex:
    loaded = ranker.index()
    assert isinstance(index, DurableIndex)
    assert isinstance(loaded, DurableIndex)
    index.save(folder)
    loaded.load(folder)
    return loaded


def test_hybrid_when_a_part_cannot_be_saved_then_is_filled_again(tmp_path: Path) -> None:
    """A ranker of one's own can be fused and kept, though its index knows no files."""

    @dataclass(frozen=True)
    class Plain:
        def index(self) -> RankerIndex:
            return BM25().index()

        def describe(self) -> dict[str, JSON]:
            return {"ranker": "plain"}

    for ranker in (Hybrid((TermOverlap(), Plain())), MMR(Plain())):
        index = _play(ranker, [(i, f"red {i % 3}" if i % 2 else "blue") for i in range(9)])
        folder = tmp_path / type(ranker).__name__
        folder.mkdir()
        loaded = _saved_and_loaded(index, ranker, folder)
        assert loaded.search("red 1", limit=9) == index.search("red 1", limit=9)


def test_index_when_loaded_then_ids_orders_and_texts_are_those_that_were_saved(
    tmp_path: Path,
) -> None:
    """Nested tuples, line breaks, empty texts and lone surrogates survive."""
    texts = ["red\nred", "", "r\u00e9d red", "red \ud800"]
    index = BM25().index()
    for i, text in enumerate(texts):
        index.put((("a\n", str(i)), "k"), text, (0, i, "k\n"))
    loaded = _saved_and_loaded(index, BM25(), tmp_path)
    assert loaded.search("red", limit=9) == index.search("red", limit=9)
    for i, text in enumerate(texts):
        loaded.put((("a\n", str(i)), "k"), text, (0, -i, "k\n"))
    assert len(loaded) == 4
    assert len(loaded.search("red", limit=9)) == 3


def test_index_when_loaded_then_ids_of_one_checksum_are_told_apart(tmp_path: Path) -> None:
    """Ids are looked up by their CRC-32 first, and many texts share one."""
    index = BM25().index()
    for order, name in enumerate(("plumless", "buckeroo", "neither")):
        index.put(name, "red", (order,))
    loaded = _saved_and_loaded(index, BM25(), tmp_path)
    loaded.remove("buckeroo")
    loaded.put("plumless", "blue", (0,))
    loaded.remove("buckeroo")
    assert [hit.id for hit in loaded.search("red blue", limit=9)] == ["plumless", "neither"]
    assert len(loaded) == 2


@given(texts=st.lists(st.sampled_from(["a b", "b a", "a b c", "c", "b"]), max_size=40))
def test_ranking_when_many_tie_then_order_decides_within_every_limit(texts: list[str]) -> None:
    """A shorter list is always the head of a longer one, from either end of the ties."""
    for ties, step in (("oldest", 1), ("newest", -1)):
        ranker = BM25(ties=ties)  # type: ignore[arg-type]
        index = _play(ranker, list(enumerate(texts)))
        full = index.search("a b", limit=100)
        assert full == sorted(full, key=lambda hit: (-hit.score, step * int(str(hit.id))))
        for limit in range(len(full)):
            assert index.search("a b", limit=limit) == full[:limit]


@pytest.mark.parametrize("ranker", [BM25(), TermOverlap()])
def test_search_when_nothing_can_match_then_is_empty(ranker: Ranker) -> None:
    """An empty corpus, empty texts, unknown words and empty queries give no result at all."""
    index = ranker.index()
    assert index.search("red", limit=5) == []
    index.put("a", "", (0,))
    index.put("b", "...", (1,))
    assert index.search("red", limit=5) == []
    index.put("c", "x", (2,))
    assert [hit.id for hit in index.search("x unknown", limit=5)] == ["c"]
    for query in ("", "?!", "unknown"):
        assert index.search(query, limit=5) == []
    assert index.search("x", limit=0) == []
    index.remove("nobody")
    assert len(index) == 3


def test_search_when_documents_do_not_match_then_they_do_not_fill_the_limit() -> None:
    """Fewer matches than the limit means fewer results, also beyond the size of the corpus."""
    index = BM25().index()
    for i in range(5):
        index.put(i, "red 1" if i % 2 else "blue 2", (i,))
    assert [hit.id for hit in index.search("1", limit=50)] == [1, 3]


def test_index_when_scores_nearly_tie_then_exact_scores_decide() -> None:
    """Documents that float32 cannot tell apart are ordered alike however they came."""
    texts = [f"a {'b ' * (2000 + i)}" for i in range(300)]
    writes: list[Write] = list(enumerate(reversed(texts)))
    for query in ("b", "a b", "b a a b"):
        expected = _play(BM25(), writes).search(query, limit=40)
        assert len({hit.score for hit in expected}) > 1
        assert _at_once(BM25(), writes).search(query, limit=40) == expected


def test_index_when_summation_splits_a_tie_then_order_still_decides() -> None:
    """Scores that are equal up to the order of summation tie, though float32 tells them apart."""
    counts = list(itertools.permutations((1, 2, 3, 5, 8)))
    writes: list[Write] = [
        (i, " ".join(f"{word} " * count for word, count in zip("abcde", row, strict=True)))
        for i, row in enumerate(counts)
    ]
    writes += [(1000 + i, "something else altogether") for i in range(40)]
    index = _at_once(BM25(), writes)
    for limit in (1, 7, 50):
        hits = index.search("a b c d e", limit=limit)
        assert [hit.id for hit in hits] == list(range(limit))
        assert hits == _play(BM25(), writes).search("a b c d e", limit=limit)


_THREADS_SCRIPT = """
import random
from langgraft.memory.rankers import BM25, MMR, Dense, Hybrid, TermOverlap
from langgraft.memory.rankers.base import Document, put_all
draw = random.Random(0)
texts = [" ".join(f"w{int(draw.paretovariate(0.6)) % 500}" for _ in range(20)) for _ in range(500)]
def show(ranker, at_once):
    index = ranker.index()
    documents = [Document(i, text, (i,)) for i, text in enumerate(texts)]
    if at_once:
        put_all(index, documents)
    for each in () if at_once else documents:
        index.put(each.id, each.text, each.order)
    print([[(hit.id, hit.score.hex()) for hit in index.search(q, limit=20)] for q in texts[:10]])
for ranker in (BM25(), TermOverlap()):
    show(ranker, False)
    show(ranker, True)
for ranker in (Dense(), Hybrid(), MMR(Dense()), MMR(Hybrid())):
    show(ranker, False)
"""


def test_ranking_when_blas_has_one_or_two_threads_then_is_the_same_to_the_last_bit() -> None:
    """Scores and order are equal bit for bit, of every ranker, whatever Python's hash seed is."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_NUM_THREADS")
    one, two = (
        subprocess.run(
            [sys.executable, "-c", _THREADS_SCRIPT],
            env={**os.environ, **dict.fromkeys((*names, "PYTHONHASHSEED"), threads)},
            capture_output=True,
            text=True,
            check=True,
        ).stdout.splitlines()
        for threads in ("1", "2")
    )
    assert one == two
    bm25, bm25_at_once, overlap, overlap_at_once, *vectors = one
    assert bm25 == bm25_at_once
    assert overlap == overlap_at_once
    assert len(vectors) == 4


def test_changing_index_when_a_bank_turns_over_then_dead_slots_are_swept() -> None:
    """A first-in first-out bank of 50 stays small over 5,000 writes, and ranks like a fresh one."""
    writes: list[Write] = []
    for i in range(2500):
        writes.append((i, f"red w{i % 7} key {i}"))
        if i >= 50:
            writes.append((i - 50, None))
    index = _play(BM25(), writes)
    assert index.documents.size < 200  # type: ignore[attr-defined]
    assert len(index) == 50
    expected: list[Scored] = _play(BM25(), list(_present(writes))).search("red w3 2490", limit=9)
    assert index.search("red w3 2490", limit=9) == expected


def test_index_when_float32_cannot_hold_the_scores_then_ranks_all_the_same() -> None:
    """Scores that all but vanish still tell what matches from what does not."""
    writes: list[Write] = [(i, "red " * (i % 3) + "blue") for i in range(50)]
    ranker = BM25(k1=1e60)
    for limit in (3, 100):
        expected = _play(ranker, writes).search("red", limit=limit)
        assert _at_once(ranker, writes).search("red", limit=limit) == expected
        assert len(expected) == min(limit, 33)


@pytest.mark.parametrize("ranker", [BM25(), BM25(k1=0.0, ties="newest"), TermOverlap()])
def test_search_when_common_terms_are_only_looked_up_then_the_ranking_is_that_of_all(
    ranker: Ranker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaving out what cannot be among the best changes neither ranks, scores nor counts of ties."""
    draw = random.Random(0)
    words = [f"w{int(draw.paretovariate(0.7))}" for _ in range(2000)]
    index = ranker.index()
    put_all(index, [Document(i, _drawn(draw, words, 25), (i % 3, i)) for i in range(3000)])
    for i in draw.sample(range(3000), 500):
        index.remove(i)
    for i in range(2900, 3200):
        index.put(i, _drawn(draw, words, 25), (0, i))
    for limit in (1, 10, 40):
        query = _drawn(draw, words, 12) or "w1"
        monkeypatch.setattr(lexical, "_FEW", 10_000)
        expected = [(hit, hit.tied) for hit in index.search(query, limit=limit)]
        monkeypatch.setattr(lexical, "_FEW", 100)
        assert [(hit, hit.tied) for hit in index.search(query, limit=limit)] == expected


@given(ranker=DURABLE, before=WRITES, many=WRITES, query=TEXTS)
def test_ranking_when_documents_are_put_at_once_then_is_that_of_one_by_one(
    ranker: Ranker, before: list[Write], many: list[Write], query: str
) -> None:
    """Putting many documents replaces, keeps and adds what putting each would."""
    puts = [(key, text) for key, text in many if text is not None]
    index = _play(ranker, before)
    put_all(index, [Document(key, text, (key,)) for key, text in puts])
    expected = _play(ranker, [*before, *puts])
    assert index.search(query, limit=12) == expected.search(query, limit=12)
    assert len(index) == len(expected)


def _drawn(draw: random.Random, words: list[str], most: int) -> str:
    return " ".join(draw.choices(words, k=draw.randint(0, most)))


def test_ranking_when_there_are_more_words_than_16_bits_number_then_is_that_of_one_by_one() -> None:
    """Words are numbered and sorted by the halves of their numbers."""
    documents = [
        Document(n, " ".join(f"w{n * 100 + place}" for place in range(100)) + f" w{n // 2}", (n,))
        for n in range(700)
    ]
    at_once, one_by_one = BM25().index(), BM25().index()
    put_all(at_once, documents)
    for document in documents:
        one_by_one.put(*document)
    for query in ("w7 w3", "w65540 w65536 w4", "w69999 w0 w349"):
        assert at_once.search(query, limit=9) == one_by_one.search(query, limit=9) != []


def test_index_when_loaded_then_a_word_whose_documents_left_is_not_found_again(
    tmp_path: Path,
) -> None:
    """A word is looked up in the files once, also where nothing of it is left."""
    index = BM25().index()
    index.put("a", "red ball", (0,))
    index.put("b", "blue ball", (1,))
    loaded = _saved_and_loaded(index, BM25(), tmp_path)
    for each in (index, loaded):
        assert [hit.id for hit in each.search("red", limit=5)] == ["a"]
        each.remove("a")
        assert each.search("red", limit=5) == []
        each.put("c", "red box", (2,))
    assert loaded.search("red", limit=5) == index.search("red", limit=5) != []


@pytest.mark.parametrize("room", [0, documents._MAPPED_BYTES])
@given(
    array=arrays(
        st.sampled_from(["<f4", "<f8", "<i8", "<i4", ">i4", "|u1", "|b1"]),
        array_shapes(min_dims=0, min_side=0, max_side=40),
    )
)
def test_array_when_saved_by_numpy_is_read_as_numpy_reads_it(
    room: int, array: NDArray[Any]
) -> None:
    """Of whatever type and shape, at once or where it is looked at; what is changed is not in the file."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(documents, "_MAPPED_BYTES", room)
        path = Path(folder) / "array.npy"
        np.save(path, array)
        before = path.read_bytes()
        found = documents.mapped(path)
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tobytes() == array.tobytes()
        found[...] = 0
        assert path.read_bytes() == before
