"""Rankers by name."""

from typing import Any

import pytest

from langgraft._core.errors import SettingsError
from langgraft.memory.settings import make_ranker


@pytest.mark.parametrize("name", [["bm25"], {"bm25": 1}, None, 5, "BM25"])
def test_ranker_when_its_name_is_none_of_ours_is_refused(name: Any) -> None:
    """Whatever stands where a name should, the error says what may."""
    with pytest.raises(
        SettingsError,
        match=r"unknown ranker .*: (did you mean 'bm25'|there are bm25, dense, hybrid, mmr, term_overlap)",
    ):
        make_ranker({"ranker": name})


@pytest.mark.parametrize("value", [[1], None, {"a": 1}, "1.2"])
def test_ranker_when_a_setting_has_the_wrong_type_is_refused(value: Any) -> None:
    """A value that is no number is an error of the settings."""
    with pytest.raises(SettingsError, match="`k1` of BM25 must be a number, got"):
        make_ranker({"ranker": "bm25", "k1": value})


def test_ranker_when_made_from_its_own_description_is_the_same() -> None:
    """`describe` and `make_ranker` are inverse."""
    ranker = make_ranker({"ranker": "bm25", "k1": 1.2, "ties": "newest"})
    assert make_ranker(ranker.describe()) == ranker
