"""Readings of a record may arrive in any order: the newest counts."""

from collections.abc import Callable

import pytest

from langgraft.memory.rankers import Scored, TermOverlap
from langgraft.memory.rankers.base import Document
from langgraft.memory.stores.corpora import Corpora, Corpus, IndexedRecord
from langgraft.memory.stores.programs import Address

ADDRESS: Address = (("bank", "one"), "k")


def _entry(text: str) -> IndexedRecord:
    return IndexedRecord(Document(ADDRESS, text, (0,)), {"text": text})


def _query(word: str) -> Callable[[Corpus], list[Scored]]:
    return lambda corpus: corpus.index.search(word, limit=1)


def _open(corpora: Corpora) -> tuple[Corpus, dict[Address, int]]:
    opened = corpora.open(("bank",))
    assert opened is not None
    return opened[0], dict(opened[1])


@pytest.fixture
def corpora() -> Corpora:
    """One empty index under ("bank",), ready to be searched."""
    corpora = Corpora(capacity=4)
    with corpora.building(("bank",), TermOverlap().index()) as corpus:
        corpora.install(corpus)
    return corpora


def test_corpora_when_an_old_reading_arrives_late_then_the_newer_one_stays(
    corpora: Corpora,
) -> None:
    """A slow reader cannot put back what was overwritten meanwhile, even beside another write."""
    corpora.mark([ADDRESS])
    corpus, old = _open(corpora)
    corpora.mark([ADDRESS])
    _, new = _open(corpora)
    assert corpora.search(corpus, {ADDRESS: _entry("new")}, new, _query("new"))
    corpora.mark([ADDRESS])
    assert not corpora.search(corpus, {ADDRESS: _entry("old")}, old, _query("old"))
    assert corpora.search(corpus, {}, {}, _query("new"))


def test_corpora_when_written_after_being_read_then_the_record_is_read_again(
    corpora: Corpora,
) -> None:
    """A reading that began before a write ended does not count as having seen it."""
    corpora.mark([ADDRESS])
    corpus, before = _open(corpora)
    corpora.mark([ADDRESS])
    assert corpora.search(corpus, {ADDRESS: _entry("old")}, before, _query("old"))
    _, again = _open(corpora)
    assert list(again) == [ADDRESS]
    assert corpora.search(corpus, {ADDRESS: _entry("new")}, again, _query("new"))
    assert _open(corpora)[1] == {}


def test_corpora_when_a_write_is_under_way_then_its_records_are_read_at_every_search(
    corpora: Corpora,
) -> None:
    """Until a write ends nobody knows when it takes effect; records elsewhere are left alone."""
    with corpora.writing([ADDRESS, (("other",), "k")]):
        for _ in range(2):
            corpus, versions = _open(corpora)
            assert list(versions) == [ADDRESS]
            corpora.search(corpus, {ADDRESS: _entry("old")}, versions, _query("old"))
    assert list(_open(corpora)[1]) == [ADDRESS]


def test_corpora_when_cleared_then_nothing_is_ready_nor_becomes_so(corpora: Corpora) -> None:
    """Indexes that were being built when `clear` was called are not installed."""
    with corpora.building(("new",), TermOverlap().index()) as corpus:
        corpora.clear()
        corpora.install(corpus)
    assert corpora.open(("bank",)) is None
    assert corpora.open(("new",)) is None


def test_corpora_when_written_during_a_building_then_the_time_counts_as_disturbed(
    corpora: Corpora,
) -> None:
    """So does the time of a write that began before, and none in which nothing was written."""
    index = TermOverlap().index()
    with corpora.writing([ADDRESS]), corpora.building(("bank",), index) as corpus:
        assert not corpora.undisturbed(corpus), "under way when the building began"
        assert not corpora.undisturbed(corpus), "still under way"
    with corpora.building(("bank",), index) as corpus:
        assert corpora.undisturbed(corpus)
        with corpora.writing([ADDRESS]):
            pass
        assert not corpora.undisturbed(corpus)
        with corpora.writing([(("other",), "k")]):
            assert corpora.undisturbed(corpus)
