"""Questions in other words than their texts, and how often rankers find these."""

from collections import Counter
from pathlib import Path

import pytest

from langgraft.benchmarks.exam.paraphrases import (
    DEPTHS,
    Paraphrase,
    markdown,
    paraphrases,
    ranks,
    rows,
)
from langgraft.memory.rankers import BM25
from langgraft.memory.settings import make_ranker

PAGE = Path(__file__).resolve().parents[3] / "docs" / "stores-and-rankers.md"


def test_questions_when_read_then_are_200_paraphrases_of_200_texts_in_ten_domains() -> None:
    """20 texts per domain have a paraphrase each, and 10 of them a question with shared words."""
    questions = paraphrases()
    counts = Counter((each.domain, each.kind) for each in questions)
    assert len(counts) == 20
    assert all(n == (20 if kind == "paraphrased" else 10) for (_, kind), n in counts.items())
    assert len({each.text for each in questions}) == 200
    assert len({each.id for each in questions}) == len({each.question for each in questions}) == 300


def test_table_when_recomputed_then_is_the_one_in_the_docs() -> None:
    """The page shows what the command prints."""
    assert markdown(paraphrases()) in PAGE.read_text(encoding="utf-8")


@pytest.mark.parametrize("depth", DEPTHS)
def test_semantic_when_words_are_shared_then_does_not_lose_to_bm25(depth: int) -> None:
    """Among the first and the first three, the hybrid has at least as many texts."""
    questions = [each for each in paraphrases() if each.kind == "overlapping"]
    words, both = (
        sum(rank <= depth for rank in ranks(make_ranker({"ranker": name}), questions))
        for name in ("bm25", "semantic")
    )
    assert both >= words > 0.9 * len(questions)


def test_ranks_when_a_text_is_not_found_then_it_comes_after_the_first_few() -> None:
    """A ranker that returns nothing has missed, and the share of words is that of the question."""
    first = Paraphrase("a", "d", "paraphrased", "the red door", "which red color?")
    second = Paraphrase("b", "d", "overlapping", "a key", "nothing")
    assert ranks(BM25(), [first, second]) == [1, 4]
    assert (first.overlap, second.overlap) == (1 / 3, 0.0)
    (_, bm25, *_, overlap) = rows([first, second])
    assert bm25[1].startswith("100.0 [")
    assert bm25[3].startswith("0.0 [")
    assert overlap[1] == "33"
