"""Term overlap ranks by distinct shared words."""

import pytest

from langgraft._core.errors import SettingsError
from langgraft.memory.rankers import RankerIndex, Scored, TermOverlap


def _index(ranker: TermOverlap, texts: dict[str, str]) -> RankerIndex:
    index = ranker.index()
    for place, (document, text) in enumerate(texts.items()):
        index.put(document, text, (place,))
    return index


def test_overlap_when_words_repeat_then_counts_distinct_query_terms() -> None:
    """Repeats in the query or the document do not raise the score."""
    index = _index(TermOverlap(), {"a": "red red red", "b": "red ball", "c": "blue box"})
    assert index.search("red ball red green", limit=10) == [Scored("b", 2.0), Scored("a", 1.0)]


@pytest.mark.parametrize(("ties", "expected"), [("oldest", ["a", "b"]), ("newest", ["c", "b"])])
def test_overlap_when_scores_tie_then_order_decides(ties: str, expected: list[str]) -> None:
    """The setting says from which end equal documents are taken, also at the cut."""
    ranker = TermOverlap(ties=ties)  # type: ignore[arg-type]
    index = _index(ranker, {"a": "red key", "b": "red box", "c": "red ball"})
    assert [hit.id for hit in index.search("red", limit=2)] == expected


def test_overlap_when_described_then_names_its_settings() -> None:
    """Equal rankers are equal, hashable, printable, and describe themselves as JSON."""
    assert {TermOverlap(), TermOverlap(ties="oldest")} == {TermOverlap()}
    assert repr(TermOverlap()) == "TermOverlap(ties='oldest')"
    assert TermOverlap(ties="newest").describe() == {
        "ranker": "term_overlap",
        "ties": "newest",
        "tokenizer": "lowercase unicode words, NFC",
    }


def test_overlap_when_ties_is_unknown_then_raises() -> None:
    """A misspelled setting is refused by name and value."""
    with pytest.raises(SettingsError, match="'youngest'"):
        TermOverlap(ties="youngest")  # type: ignore[arg-type]
