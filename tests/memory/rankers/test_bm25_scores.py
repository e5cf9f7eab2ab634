"""BM25 scores: what bm25s and rank_bm25 give, and what the formula promises."""

import math
from collections import Counter

import bm25s
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import SettingsError
from langgraft.memory.rankers import BM25, RankerIndex, tokenize
from langgraft.memory.rankers.base import Document, put_all
from langgraft.memory.rankers.lexical import Idf, inverse_document_frequency
from langgraft.memory.settings import make_ranker

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


def _written_out(
    texts: list[str], query: str, *, k1: float, b: float, idf: str, query_counts: bool
) -> dict[int, float]:
    """Scores of all documents that hold a word of the query, by the formulas, document by document.

    With `okapi` and each occurrence counted, rank_bm25's `BM25Okapi` gives `k1 + 1` times as much.
    """
    documents = [Counter(tokenize(text)) for text in texts]
    lengths = [words.total() for words in documents]
    held = Counter(word for words in documents for word in words)
    n = len(texts)
    rarity = {word: math.log(1 + (n - df + 0.5) / (df + 0.5)) for word, df in held.items()}
    if idf == "okapi":
        rarity = {word: math.log((n - df + 0.5) / (df + 0.5)) for word, df in held.items()}
        mean = sum(rarity.values()) / len(rarity) if rarity else 0.0
        rarity = {word: each if each >= 0 else 0.25 * mean for word, each in rarity.items()}
    asked = tokenize(query) if query_counts else list(dict.fromkeys(tokenize(query)))
    found: dict[int, float] = {}
    for place, words in enumerate(documents):
        for word in asked:
            if words[word]:
                norm = k1 * (1 - b + b * lengths[place] / (sum(lengths) / n))
                worth = rarity[word] * words[word] / (words[word] + norm)
                found[place] = found.get(place, 0.0) + worth
    return found


@AT_ONCE
@given(
    texts=CORPORA,
    query=TEXTS,
    k1=st.floats(0, 3),
    b=st.floats(0, 1),
    idf=st.sampled_from(["lucene", "okapi"]),
    query_counts=st.booleans(),
)
def test_bm25_when_any_setting_is_chosen_then_scores_are_the_formula_written_out(
    *,
    texts: list[str],
    query: str,
    k1: float,
    b: float,
    idf: Idf,
    query_counts: bool,
    at_once: bool,
) -> None:
    """Either idf and either count of query words: the same documents match, with these scores."""
    ranker = BM25(k1=k1, b=b, idf=idf, query_counts=query_counts)
    expected = _written_out(texts, query, k1=k1, b=b, idf=idf, query_counts=query_counts)
    scores = _scores(_index(texts, at_once=at_once, ranker=ranker), query)
    assert scores == pytest.approx(expected, abs=2e-9)
    assert list(scores.values()) == sorted(scores.values(), reverse=True)


@given(texts=CORPORA, query=st.lists(WORDS, min_size=1, max_size=6), data=st.data())
def test_bm25_when_query_counts_are_off_then_repeated_words_change_nothing(
    texts: list[str], query: list[str], data: st.DataObject
) -> None:
    """However often an observation names a cabinet, it is one word of the query."""
    index = _index(texts, ranker=BM25(query_counts=False))
    repeated = [*query, *data.draw(st.lists(st.sampled_from(query), max_size=20))]
    assert index.search(" ".join(repeated), limit=20) == index.search(" ".join(query), limit=20)


def test_bm25_when_a_word_is_repeated_then_counts_decide_what_comes_first() -> None:
    """A short text that holds the word said most wins, unless words count once."""
    texts = ["put a cup in cabinet", "clean a red cup and put it in a drawer"]
    query = (
        "clean a cup and put it in a drawer: cabinet 1, cabinet 2, cabinet 3, cabinet 4, cabinet 5"
    )
    first = {
        counts: _index(texts, ranker=BM25(query_counts=counts)).search(query, limit=1)[0].id
        for counts in (True, False)
    }
    assert first == {True: 0, False: 1}


def test_bm25_when_idf_is_okapis_then_what_most_texts_share_counts_against_them() -> None:
    """Where each word is in most texts, the text that is the query comes last."""
    texts = [" ".join(sorted({*"abcde"} - {letter})) for letter in "abcde"]
    query = texts[0]
    assert _index(texts).search(query, limit=1)[0].id == 0
    okapi = _index(texts, ranker=BM25(idf="okapi")).search(query, limit=9)
    assert len(okapi) == len(texts)
    assert okapi[-1].id == 0
    assert okapi[0].score < 0


@pytest.mark.parametrize(
    "settings", [{"k1": -0.1}, {"k1": math.nan}, {"k1": math.inf}, {"b": 1.5}, {"b": -1.0}]
)
def test_bm25_when_a_setting_is_out_of_range_then_raises(settings: dict[str, float]) -> None:
    """Settings without meaning are refused."""
    with pytest.raises(SettingsError, match=next(iter(settings))):
        BM25(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "settings", [{"idf": "robertson"}, {"idf": None}, {"query_counts": "no"}, {"query_counts": 0}]
)
def test_bm25_when_a_setting_is_of_another_kind_then_raises(settings: dict[str, object]) -> None:
    """The error names the setting and what it may be."""
    (name,) = settings
    with pytest.raises(SettingsError, match=f"`{name}` of BM25 must be"):
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


def test_bm25_when_described_then_settings_of_later_are_told_where_they_are_not_the_defaults() -> (
    None
):
    """Descriptions of runs from before there was a choice stay what they were, and give the same."""
    assert "query_counts" not in BM25().describe()
    changed = BM25(idf="okapi", query_counts=False, ties="newest")
    assert changed.describe().items() >= {"idf": "okapi", "query_counts": False}.items()
    for ranker in (BM25(), changed):
        assert make_ranker(ranker.describe()) == ranker
