"""Settings: from plain values, described, and refused in one line."""

from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore

from langgraft._core.canonical import canonical_json
from langgraft._core.errors import SettingsError
from langgraft.memory.model import Episode, Outcome, Step
from langgraft.memory.providers import (
    PROVIDERS,
    InsightMemory,
    InsightSettings,
    NoMemory,
    TrajectoryMemory,
    TrajectorySettings,
    make_provider,
    provider_settings,
)
from langgraft.memory.rankers import BM25, TermOverlap


@pytest.mark.parametrize(
    ("name", "settings", "said"),
    [
        ("trajectroy", {}, "unknown provider 'trajectroy': did you mean 'trajectory'?"),
        ("", {}, "unknown provider ''"),
        ("no.such.module:Memory", {}, "cannot be imported: No module named 'no'"),
        ("langgraft.memory.model:Nothing", {}, "cannot be imported: "),
        (":Memory", {}, "cannot be imported: Empty module name"),
        (".here:Memory", {}, "cannot be imported: "),
        ("json:loads", {}, "is no `MemoryProvider`, but <function loads"),
        ("langgraft.memory:MemoryProvider", {}, "has no `_learn`, `_recall`: they are yours to"),
        (
            "insight",
            {"topk": 3},
            "provider 'insight': InsightSettings: there is no topk: did you mean 'top_k'?",
        ),
        ("insight", {3: 1}, "InsightSettings: there is no 3: "),
        ("insight", {"k": 3}, "there is no k: there are feedback, same_task, credit, "),
        ("insight", [3], "provider 'insight': settings are a mapping, got [3]"),
        ("insight", None, "provider 'insight': settings are a mapping, got None"),
        ("insight", {"top_k": 0}, "top_k: input should be greater than or equal to 1 (got 0)"),
        (
            "insight",
            {"granularity": "Single"},
            "'aggregate', 'individual' or 'adaptive' (got 'Single')",
        ),
        ("insight", {"fold_above": 0}, "fold_above: input should be greater than 0 (got 0)"),
        ("trajectory", {"mmr": 1.5}, "mmr: input should be less than or equal to 1 (got 1.5)"),
        ("insight", {"own_domain_share": 0}, "own_domain_share: input should be greater than 0"),
        ("insight", {"candidates": 0}, "candidates: input should be greater than or equal to 1"),
        ("insight", {"margin": 1}, "margin: input should be less than 1 (got 1)"),
        ("insight", {"key_fields": []}, "key_fields: "),
        ("insight", {"query_fields": ["goal"]}, "query_fields.0: "),
        ("insight", {"ranker": 5}, "ranker: not a ranker, nor the name or the settings of one"),
        ("insight", {"ranker": {"ranker": ["bm25"]}}, "ranker: not a ranker"),
        ("insight", {"ranker": {"k1": 1}}, "settings of a ranker name it as `ranker`"),
        ("insight", {"ranker": "BM26"}, "provider 'insight': unknown ranker 'BM26'"),
        ("insight", {"ranker": {"ranker": "bm25", "k2": 1}}, "provider 'insight': ranker 'bm25'"),
        ("insight", {"ranker": {"ranker": "bm25", "b": 2}}, "b must be between 0 and 1, got 2"),
        ("insight", {"top_k": "many", "a\nb": 1}, "'a\\nb': "),
        ("none", {"top_k": 1}, "provider 'none': ProviderSettings: there is no top_k: "),
    ],
)
def test_settings_when_wrong_are_refused_in_one_line(name: str, settings: Any, said: str) -> None:
    """The line says which provider, which setting, and what it got."""
    with pytest.raises(SettingsError) as caught:
        provider_settings(name, settings)
    assert said in str(caught.value)
    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("name", PROVIDERS)
def test_provider_when_named_is_built_with_its_defaults(name: str) -> None:
    """Every name in the table works, and describes itself as JSON."""
    memory = make_provider(name, InMemoryStore(), settings={})
    assert memory.name == name
    canonical_json(memory.describe())
    assert memory.architecture == make_provider(name, InMemoryStore(), settings={}).architecture


def test_provider_when_named_by_path_is_built() -> None:
    """A provider of a user's own needs no entry in the table."""
    memory = make_provider(
        "langgraft.memory.providers.insight:InsightMemory", InMemoryStore(), settings={"top_k": 2}
    )
    assert isinstance(memory, InsightMemory)
    assert memory.settings.top_k == 2


@pytest.mark.parametrize(
    ("given", "ranker"),
    [
        ("term_overlap", TermOverlap()),
        ({"ranker": "bm25", "k1": 1.2}, BM25(k1=1.2)),
        (TermOverlap(ties="newest"), TermOverlap(ties="newest")),
    ],
)
def test_ranker_when_given_by_name_settings_or_itself_is_that_ranker(
    given: Any, ranker: object
) -> None:
    """Plans name rankers, programs pass them."""
    assert provider_settings("insight", {"ranker": given}) == InsightSettings.model_validate(
        {"ranker": ranker}
    )


def test_settings_when_equal_are_equal_hashable_and_frozen() -> None:
    """Settings can be keys, and tell architectures apart."""
    same = InsightSettings(top_k=2), InsightSettings(top_k=2)
    assert same[0] == same[1]
    assert len({*same, InsightSettings()}) == 2
    other = InsightMemory(InMemoryStore(), settings=same[0])
    assert other.architecture != InsightMemory(InMemoryStore()).architecture


COMMON = {"feedback": "environment", "same_task": "allow", "credit": False, "forgetting": []}


def test_settings_when_described_are_the_papers_defaults() -> None:
    """The published description is stable: a digest of it names an architecture."""
    assert InsightMemory(InMemoryStore()).describe() == {
        "provider": "insight",
        "settings": {
            **COMMON,
            "ranker": {
                "ranker": "bm25",
                "idf": "lucene",
                "k1": 1.5,
                "b": 0.75,
                "ties": "newest",
                "tokenizer": BM25().describe()["tokenizer"],
            },
            "granularity": "aggregate",
            "top_k": 1,
            "requery_interval": None,
            "requery_on_change": False,
            "attempts": 0,
            "margin": 0.1,
            "fold_above": None,
            "mmr": None,
            "candidates": 200,
            "own_domain_share": None,
            "success_only": False,
            "key_fields": ["task"],
            "query_fields": ["task"],
            "requery_fields": ["task", "observation"],
        },
    }


def test_settings_when_of_another_provider_are_refused() -> None:
    """A mix-up is found where it is made."""
    with pytest.raises(SettingsError, match="must be an InsightSettings, got TrajectorySettings"):
        InsightMemory(InMemoryStore(), settings=TrajectorySettings())  # type: ignore[arg-type]


def test_no_memory_when_given_no_store_needs_none() -> None:
    """The baseline stands alone."""
    assert NoMemory().describe() == {"provider": "none", "settings": COMMON}


def test_providers_when_put_on_one_store_keep_banks_of_their_own() -> None:
    """Swapping the provider over the same store starts from an empty bank."""
    store = InMemoryStore()
    episode = Episode("e", "d", "t", "do it", (Step("", "", "seen"),), Outcome(success=True))
    trajectories, insights = TrajectoryMemory(store), InsightMemory(store)
    assert trajectories.file(episode)
    assert insights.content().items == {}
    assert insights.file(episode)
    assert list(trajectories.content().items) == ["e/trajectory"]
