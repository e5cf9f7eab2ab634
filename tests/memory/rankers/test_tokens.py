"""What a word is."""

import re
import unicodedata

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from langgraft.memory.embedders import HashingEmbeddings
from langgraft.memory.rankers import BM25, TermOverlap
from langgraft.memory.rankers.base import Document, Ranker, put_all
from langgraft.memory.words import count_tokens_approximately, hidden_characters, tokenize


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("Go to fridge 1.", ["go", "to", "fridge", "1"]),
        ("x = 2", ["x", "2"]),
        ("not the, THE a", ["not", "the", "the", "a"]),
        ("Éclair naïve 東京 ΔRR", ["éclair", "naïve", "東京", "δrr"]),
        ("cafe\u0301 \u1112\u1161\u11ab A\u030a", ["caf\u00e9", "\ud55c", "\u00e5"]),
        ("go_to left-hand can't", ["go_to", "left", "hand", "can", "t"]),
        ("iPhone\u624b\u673a15", ["iphone", "手机", "15"]),
        ("無線LANの調子", ["無線", "lan", "の調", "調子"]),
        ("猫, 犬", ["猫", "犬"]),
        ("한국어 검색", ["한국", "국어", "검색"]),
        ("น้ำ", ["น้", "้ำ"]),
        ("\uff37\uff49-\uff26\uff49 \uff76\uff9e\uff97\uff7d", ["wi", "fi", "ガラ", "ラス"]),
        ("हिन्दी में", ["हिन्दी", "में"]),
        ("", []),
        (" \n.,;! ", []),
    ],
)
def test_tokenize_when_given_text_then_keeps_every_word_in_order(
    text: str, tokens: list[str]
) -> None:
    """Words are lowercase runs in NFC; scripts without spaces give bigrams; nothing is left out."""
    assert tokenize(text) == tokens


SPACED = st.text(st.characters(max_codepoint=0x5FF, categories=("L", "N", "P", "Z")), max_size=30)
"""Latin, Greek, Cyrillic, Armenian and Hebrew letters."""
MIXED = st.lists(st.sampled_from(["無", "線", "網", "a", "b1", " ", "\uff0c"]), max_size=12).map(
    "".join
)
RANKERS = pytest.mark.parametrize("ranker", [BM25(), TermOverlap()], ids=["bm25", "overlap"])


@given(SPACED)
def test_tokenize_when_words_have_spaces_then_they_are_runs_of_letters_and_digits(
    text: str,
) -> None:
    """Bigrams of other scripts change no token, length or size of such a text."""
    assert tokenize(text) == re.findall(r"\w+", unicodedata.normalize("NFC", text.lower()))
    assert hidden_characters(text) == []
    assert count_tokens_approximately(text) == -(-len(text) // 4)


@RANKERS
@given(texts=st.lists(MIXED, max_size=6), query=MIXED, gone=st.integers(0, 5))
def test_index_when_texts_are_put_at_once_or_one_by_one_then_ranks_the_same(
    ranker: Ranker, texts: list[str], query: str, gone: int
) -> None:
    """Characters that only bigrams show are put, removed and counted like all other terms."""
    documents = [Document(place, text, (place,)) for place, text in enumerate(texts)]
    whole, single, kept = ranker.index(), ranker.index(), ranker.index()
    put_all(whole, documents)
    for each in documents:
        single.put(each.id, each.text, each.order)
    assert whole.search(query, limit=9) == single.search(query, limit=9)
    put_all(kept, [each for each in documents if each.id != gone])
    for index in (whole, single):
        index.remove(gone)
        assert index.search(query, limit=9) == kept.search(query, limit=9)


@RANKERS
@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("網", {0, 1}),
        ("壞", {0}),
        ("無線網路", {0, 1}),
        ("貓", {2}),
        ("狗", set()),
        ("路很", set()),
    ],
)
def test_search_when_a_query_has_one_character_then_finds_the_texts_that_hold_it(
    ranker: Ranker, query: str, found: set[int]
) -> None:
    """At any place of a run; a longer query has to share two characters in a row."""
    index = ranker.index()
    texts = ["辦公室的無線網路壞了", "換了無線網路卡", "貓", "network down"]
    put_all(index, [Document(n, text, (n,)) for n, text in enumerate(texts)])
    assert {hit.id for hit in index.search(query, limit=9)} == found


def test_bm25_when_a_text_has_a_run_then_its_length_is_its_bigrams() -> None:
    """As in Lucene: characters that are indexed for short queries do not make a text longer."""
    index = BM25(k1=1.0, b=1.0).index()
    put_all(index, [Document(0, "無線網路", (0,)), Document(1, "one two three", (1,))])
    (hit,) = index.search("網路", limit=9)
    (other,) = index.search("three", limit=9)
    assert hit.score == other.score


def test_tokens_when_a_text_has_no_spaces_then_each_character_counts() -> None:
    """A Chinese text is about as many tokens as characters, not a quarter of them."""
    assert count_tokens_approximately("辦公室的無線網路壞了" * 100) == 1000
    assert count_tokens_approximately("wifi網路") == 3
    assert count_tokens_approximately("\uff76\uff9e\uff97\uff7d") == 4
    assert hidden_characters("\uff76\uff9e\uff97\uff7d") == ["ガ", "ラ", "ス"]


def test_vectors_when_texts_share_two_characters_then_are_alike() -> None:
    """The hashing embedder compares runs by bigrams and characters, like all other rankers."""
    asked, held, other = HashingEmbeddings().vectors(["網路", "辦公室的無線網路壞了", "今天天氣好"])
    assert asked @ held > 0.2 > abs(float(np.float32(asked @ other)))
