"""BM25 scores: what bm25s gives, and what the formula promises."""

import math

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import SettingsError
from langgraft.memory.rankers import BM25, RankerIndex, tokenize
from langgraft.memory.rankers.base import Document, put_all
from langgraft.memory.rankers.lexical import inverse_document_frequency

AT_ONCE = pytest.mark.parametrize("at_once", [False, True], ids=["one by one", "at once"])

WORDS = st.sampled_from(["go", "to", "the", "red", "blue", "key", "1", "2", "é", "open"])
TEXTS = st.lists(WORDS, max_size=12).map(" ".join)
CORPORA = st.lists(TEXTS, min_size=1, max_size=12)


def _index(texts: list[str], *, at_once: bool = False, ranker: BM25 | None = None) -> RankerIndex:
    index = (ranker or BM25()).index()
    documents = [Document(place, text, (place,)) for place, text in enumerate(texts)]
    if at_once:
        put_all(index, documents)
        return index
    for each in documents:
        index.put(each.id, each.text, each.order)
    return index


def _scores(index: RankerIndex, query: str) -> dict[object, float]:
    return {hit.id: hit.score for hit in index.search(query, limit=len(index))}


def _oracle(
    texts: list[str], query: str, *, k1: float = 1.5, b: float = 0.75, dtype: str = "float32"
) -> dict[int, float]:
    """Positive scores that bm25s gives, by default in its own default precision."""
    oracle = bm25s.BM25(k1=k1, b=b, method="lucene", dtype=dtype)
    oracle.index([tokenize(text) for text in texts], show_progress=False)
    known = [token for token in tokenize(query) if token in oracle.vocab_dict]
    if not known:
        return {}
    scores = oracle.get_scores(known)
    return {int(place): float(scores[place]) for place in np.flatnonzero(scores)}


@AT_ONCE
@pytest.mark.parametrize(
    ("words", "dtype", "tolerance"),
    # Whole problems score up to 140, where bm25s in float32 and in float64 are 7e-5 apart.
    [(30, "float32", 1e-5), (None, "float64", 2e-9)],
    ids=["sentences", "whole problems"],
)
def test_bm25_when_texts_are_real_then_scores_equal_bm25s(
    math_problems: list[str], at_once: bool, words: int | None, dtype: str, tolerance: float
) -> None:
    """On MATH problems, queried with other problems, the same texts match with bm25s' scores."""
    corpus, queries = math_problems[:250], math_problems[250:]
    index = _index(corpus, at_once=at_once)
    for problem in queries:
        query = " ".join(tokenize(problem)[:words])
        expected = _oracle(corpus, query, dtype=dtype)
        scores = _scores(index, query)
        assert scores.keys() == expected.keys()
        assert max(abs(scores[place] - expected[place]) for place in expected) < tolerance


@AT_ONCE
@given(
    texts=CORPORA,
    query=TEXTS,
    k1=st.floats(0, 3),
    b=st.floats(0, 1),
)
def test_bm25_when_corpus_is_any_then_scores_equal_bm25s(
    texts: list[str], query: str, k1: float, b: float, at_once: bool
) -> None:
    """Repeated query terms, empty documents, unknown words and all settings agree with bm25s."""
    if not any(map(tokenize, texts)):
        return
    scores = _scores(_index(texts, at_once=at_once, ranker=BM25(k1=k1, b=b)), query)
    assert scores == pytest.approx(_oracle(texts, query, k1=k1, b=b), abs=1e-5)


def test_bm25_when_computed_by_hand_then_score_is_the_formula() -> None:
    """The documented formula, with a repeated query term counted each time."""
    index = _index(["red red ball", "blue box"])
    mean = 5 / 2
    idf = math.log(1 + (2 - 1 + 0.5) / (1 + 0.5))
    norm = 1.5 * (0.25 + 0.75 * 3 / mean)
    expected = 2 * idf * 2 / (norm + 2) + idf * 1 / (norm + 1)
    assert index.search("red ball red", limit=1)[0].score == pytest.approx(expected, abs=1e-9)


@given(corpus=st.integers(1, 10**7), data=st.data())
def test_idf_when_term_matches_then_is_positive(corpus: int, data: st.DataObject) -> None:
    """Even a term that every document holds is worth something."""
    documents = data.draw(st.integers(1, corpus))
    assert inverse_document_frequency(documents, corpus=corpus) > 0


@AT_ONCE
def test_bm25_when_every_real_text_holds_a_term_then_its_score_is_positive(
    math_problems: list[str], at_once: bool
) -> None:
    """Each word of the corpus scores above zero in exactly the texts that hold it."""
    texts = [f"find {text}" for text in math_problems[:100]]
    index = _index(texts, at_once=at_once)
    tokens = [set(tokenize(text)) for text in texts]
    for term in sorted(set().union(*tokens)):
        scores = _scores(index, term)
        assert scores.keys() == {place for place, words in enumerate(tokens) if term in words}
        assert min(scores.values()) > 0


@AT_ONCE
@given(
    corpus=st.lists(st.lists(WORDS, min_size=1, max_size=8), min_size=1, max_size=8),
    query=st.lists(WORDS, min_size=1, max_size=5),
    data=st.data(),
)
def test_bm25_when_one_more_query_term_at_equal_length_then_score_is_not_lower(
    corpus: list[list[str]], query: list[str], data: st.DataObject, at_once: bool
) -> None:
    """Replacing a word the query lacks by one it holds never lowers that document's score."""
    place = data.draw(st.integers(0, len(corpus) - 1))
    changed = [list(words) for words in corpus]
    others = [i for i, word in enumerate(corpus[place]) if word not in query]
    if not others:
        changed[place].append("filler")
        corpus = [list(words) for words in changed]
        others = [len(changed[place]) - 1]
    changed[place][data.draw(st.sampled_from(others))] = data.draw(st.sampled_from(query))
    before = _scores(
        _index([" ".join(words) for words in corpus], at_once=at_once), " ".join(query)
    )
    after = _scores(
        _index([" ".join(words) for words in changed], at_once=at_once), " ".join(query)
    )
    assert after[place] >= before.get(place, 0.0)


@AT_ONCE
@given(
    documents=st.lists(
        st.lists(st.integers(0, 12), min_size=4, max_size=4, unique=True).map(tuple),
        min_size=1,
        max_size=20,
        unique_by=frozenset,
    ),
    data=st.data(),
)
def test_bm25_when_a_document_is_the_query_then_it_ranks_first(
    documents: list[tuple[int, ...]], data: st.DataObject, at_once: bool
) -> None:
    """Among documents of equal length without repeats, the exact match leads."""
    texts = [" ".join(f"w{word}" for word in words) for words in documents]
    place = data.draw(st.integers(0, len(texts) - 1))
    assert _index(texts, at_once=at_once).search(texts[place], limit=1)[0].id == place


@pytest.mark.parametrize(
    "settings", [{"k1": -0.1}, {"k1": math.nan}, {"k1": math.inf}, {"b": 1.5}, {"b": -1.0}]
)
def test_bm25_when_a_setting_is_out_of_range_then_raises(settings: dict[str, float]) -> None:
    """Settings without meaning are refused."""
    with pytest.raises(SettingsError, match=next(iter(settings))):
        BM25(**settings)  # type: ignore[arg-type]


def test_bm25_when_described_then_names_its_settings() -> None:
    """Equal settings are one ranker; its description is JSON for a manifest."""
    assert hash(BM25(k1=1.5)) == hash(BM25())
    assert BM25(b=0.5).describe() == {
        "ranker": "bm25",
        "idf": "lucene",
        "k1": 1.5,
        "b": 0.5,
        "ties": "oldest",
        "tokenizer": "lowercase unicode words, NFC",
    }
