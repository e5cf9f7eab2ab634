"""`FactMemory`: what holds when, by verdict; profiles, expiry, and consolidation that can be undone."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode

from langgraft._core.errors import InputError, SettingsError
from langgraft.memory.facts import Dated as At
from langgraft.memory.facts import Fact, moment, spans, written
from langgraft.memory.model import Episode, MemoryDelta, Verdict, fold
from langgraft.memory.providers import FactMemory, FactSettings
from langgraft.memory.recall import Budget

CITY = Fact("user", "city", "Rome", quote="I live in Rome.")


def memory_with(**given: Any) -> FactMemory:
    """Return an empty memory with these settings."""
    return FactMemory(InMemoryStore(), settings=FactSettings(**given))


def tell(memory: FactMemory, name: str, at: str, *facts: Fact, **actions: str) -> MemoryDelta:
    """File an episode in which facts are told; `actions` say what the judge answers: kept id → action."""
    episode = replace(make_episode(name), facts=facts, at=at)
    verdicts = tuple(
        Verdict(question.id, action, kept.replace("_", "/fact-"), "fact-0")
        for question in memory.questions(episode)
        for kept, action in actions.items()
    )
    return memory.file(replace(episode, verdicts=verdicts))


def values(memory: FactMemory, at: str = "", attribute: str = "city") -> list[str]:
    """Return the values that hold at a moment."""
    return [each.fact.value for each in memory.facts(at=at, attribute=attribute)]


def told(memory: FactMemory, query: str, at: str = "", budget: Budget | None = None) -> list[str]:
    """Return the facts that are recalled."""
    recall = memory.provide(query, replace(asking(), at=at), budget)
    return [item.text for item in recall.items if item.metadata.get("unit") == "fact"]


def test_fact_when_the_judge_says_so_replaces_another_from_then_on() -> None:
    """The old one holds of the time before; nothing is overwritten."""
    memory = memory_with()
    tell(memory, "a", "2026-01-01", CITY)
    tell(memory, "b", "2026-03-01", replace(CITY, value="Oslo"), a_0="replaces")
    assert (values(memory), values(memory, "2026-02-28"), values(memory, "2025-12-31")) == (
        ["Oslo"],
        ["Rome"],
        [],
    )
    assert told(memory, "the city of user") == ["city of user: Oslo (since 2026-03-01)"]
    assert told(memory, "the city of user", "2026-01-15") == [
        "city of user: Rome (since 2026-01-01)"
    ]
    (old, new) = memory.facts()
    assert (old.until, new.until) == ("2026-03-01T00:00:00Z", "")
    assert (new.fact.said_by, new.fact.turn, new.said) == ("user", 0, "2026-03-01T00:00:00Z")


def test_fact_when_no_verdict_says_otherwise_stands_beside_however_like() -> None:
    """Likeness replaces nothing: not without a judge, and not with a verdict on an older question."""
    memory = memory_with()
    tell(memory, "a", "2026-01-01", CITY)
    episode = replace(make_episode("b"), facts=(replace(CITY, value="Roma"),), at="2026-02-01")
    (question,) = memory.questions(episode)
    tell(memory, "c", "2026-01-15", replace(CITY, value="Rome, Italy"))
    stale = Verdict(question.id, "replaces", "a/fact-0", "fact-0")
    memory.file(replace(episode, verdicts=(stale,)))
    assert sorted(values(memory)) == ["Roma", "Rome", "Rome, Italy"]


def test_fact_when_corrected_never_held_and_what_it_ended_goes_on() -> None:
    """The right one holds since the wrong one was said to, and ends what that had ended."""
    memory = memory_with()
    tell(memory, "a", "2026-01-01", CITY)
    tell(memory, "b", "2026-03-01", replace(CITY, value="Oslo"), a_0="replaces")
    tell(memory, "c", "2026-04-01", replace(CITY, value="Lima"), b_0="corrects")
    days = ("2026-02-01", "2026-03-15", "2026-05-01")
    assert [values(memory, day) for day in days] == [["Rome"], ["Lima"], ["Lima"]]
    late = replace(CITY, value="Lima", since="2026-02-01", quote="It was in February.")
    tell(memory, "d", "2026-04-02", late, c_0="corrects")
    assert [values(memory, day) for day in ("2026-01-31", "2026-02-02")] == [["Rome"], ["Lima"]]


def test_fact_when_said_again_is_not_told_twice_and_stands_in_once_the_first_is_gone() -> None:
    """The same words need no judge; who said it last is still known where the first is forgotten."""
    memory = memory_with()
    tell(memory, "a", "2026-01-01", CITY)
    again = replace(make_episode("b"), facts=(replace(CITY, value=" rome"),), at="2026-02-01")
    assert not memory.questions(again)
    memory.file(again)
    assert values(memory) == ["Rome"]
    memory.forget("a/fact-0")
    assert values(memory) == ["rome"]


def test_fact_when_it_no_longer_holds_ends_what_said_so() -> None:
    """A pet that has gone leaves the other one."""
    memory = memory_with()
    pets = [Fact("user", "pet", name) for name in ("Rex", "Miso")]
    tell(memory, "a", "2026-01-01", *pets)
    gone = replace(pets[0], holds=False)
    tell(memory, "b", "2026-02-01", gone, a_0="replaces")
    held = [each.fact.value for each in memory.facts(at="", attribute="pet") if each.fact.holds]
    assert held == ["Miso"]


def test_fact_when_its_replacement_is_forgotten_holds_again_as_if_that_was_never_told() -> None:
    """An item takes its effects with it, so that withdrawing one is withdrawing all of it."""
    memory, other = memory_with(), memory_with()
    for each in (memory, other):
        tell(each, "a", "2026-01-01", CITY)
    before = memory.content()
    tell(memory, "b", "2026-03-01", replace(CITY, value="Oslo"), a_0="replaces")
    memory.forget("b/fact-0")
    after = memory.content()
    assert values(memory) == ["Rome"]
    assert (after.items["a/fact-0"], after.notes["a/fact-0"]) == (
        before.items["a/fact-0"],
        before.notes["a/fact-0"],
    )


def test_facts_when_filed_in_another_order_hold_at_the_same_times() -> None:
    """Turns that are filed in the background come as they come; dates decide what ended what."""
    late = replace(CITY, value="Oslo")
    first, second = memory_with(), memory_with()
    tell(first, "a", "2026-01-01", CITY)
    tell(first, "b", "2026-03-01", late, a_0="replaces")
    tell(second, "b", "2026-03-01", late)
    tell(second, "a", "2026-01-01", CITY, b_0="replaces")
    for day in ("2026-01-02", "2026-02-28", "2026-03-01", ""):
        assert values(first, day) == values(second, day)


def test_fact_when_its_category_expires_is_not_told_after_that() -> None:
    """Days are counted from when it was said to the moment that is asked about; saying it again renews it."""
    memory = memory_with(ttl_days={"state": 1})
    mood = Fact("user", "mood", "tired", category="state")
    tell(memory, "a", "2026-01-01T09:00:00Z", mood)
    assert told(memory, "mood of user", "2026-01-02T08:00:00Z")
    assert not told(memory, "mood of user", "2026-01-02T09:00:00Z")
    tell(memory, "b", "2026-01-01T21:00:00Z", mood)
    assert told(memory, "mood of user", "2026-01-02T20:00:00Z")
    tell(memory, "c", "2026-01-03", Fact("user", "hotel", "Ritz", until="2026-01-05"))
    assert values(memory, "2026-01-04", "hotel") == ["Ritz"]
    assert not values(memory, "2026-01-05", "hotel")


def test_profile_when_declared_is_told_whatever_is_asked_within_its_share() -> None:
    """Declared attributes of one subject, and categories of any; others only where they match."""
    declared = [{"name": "city"}, {"name": "pet", "many": True}]
    memory = memory_with(profile=declared, always=("allergy",), top_k_episodes=0)
    facts = (
        CITY,
        *(Fact("user", "pet", name) for name in ("Rex", "Miso")),
        Fact("Ann", "reacts to", "nuts", category="allergy"),
        Fact("Ann", "city", "Lima"),
    )
    tell(memory, "a", "2026-01-01", *facts)
    lines = told(memory, "xylophone")
    assert len(lines) == 4
    assert lines[0].startswith("city of user")
    assert not any("Lima" in line for line in lines)
    assert "city of Ann: Lima (since 2026-01-01)" in told(memory, "Lima")
    small = memory_with(profile=declared, always_share=0.1, top_k_episodes=0)
    tell(small, "a", "2026-01-01", *facts)
    recall = small.provide("Lima", asking(), Budget(tokens=120))
    assert {drop.reason for drop in recall.dropped} == {"over its share of the budget"}
    assert any("Lima" in item.text for item in recall.items)


def test_question_when_facts_are_told_shows_those_of_their_subject_alone() -> None:
    """Alike words about somebody else are no candidates; two values in one episode are compared too."""
    memory = memory_with(profile=[{"name": "city"}])
    tell(memory, "a", "2026-01-01", CITY, replace(CITY, subject="Ann"))
    episode = make_episode("b")
    moved = [replace(CITY, value=value) for value in ("Oslo", "Lima")]
    (question,) = memory.questions(replace(episode, facts=tuple(moved), at="2026-02-01"))
    shows: Any = question.shows
    assert list(shows["kept"]) == ["a/fact-0", "b/fact-0"]
    assert shows["facts"]["fact-0"]["several"] is False
    assert shows["facts"]["fact-1"]["quote"] == CITY.quote


def test_consolidation_when_judged_takes_the_place_of_its_sources_and_is_undone_by_forgetting() -> (
    None
):
    """It names its sources; what it stood for holds again, byte for byte, once it is gone."""
    memory = memory_with(max_episodes=0)
    log = [
        tell(memory, "a", "2026-01-01", Fact("user", "likes", "jazz", "preference")),
        tell(memory, "b", "2026-02-01", Fact("user", "likes", "jazz of the fifties", "preference")),
        tell(memory, "c", "2026-02-02", Fact("user", "likes", "chess", "preference")),
    ]
    before = memory.content()
    (question,) = memory.proposals()
    merge = [Verdict(question.id, "merge", f"{n}/fact-0", "jazz, of the fifties") for n in "ab"]
    log.append(memory.consolidate(merge))
    assert values(memory, attribute="likes") == ["jazz, of the fifties", "chess"]
    assert values(memory, "2026-01-15", "likes") == ["jazz"]
    (made,) = (item for item in memory.content().items.values() if item.metadata.get("merged"))
    assert {"item:a/fact-0", "item:b/fact-0"} <= set(made.sources)
    assert fold(log).to_bytes() == memory.content().to_bytes()
    log.append(memory.forget(made.id))
    after = memory.content()
    assert fold(log).to_bytes() == after.to_bytes()
    assert (after.items, after.notes) == (before.items, before.notes)


@pytest.mark.parametrize(
    "verdicts",
    [
        [],
        [("merge", "a/fact-0", "jazz")],
        [("merge", "a/fact-0", " "), ("merge", "b/fact-0", "")],
        [("merge", "a/fact-0", "x"), ("merge", "nobody", "x")],
        [("keep", "a/fact-0", "x"), ("keep", "b/fact-0", "x")],
    ],
)
def test_consolidation_when_empty_or_failed_changes_nothing(
    verdicts: list[tuple[str, str, str]],
) -> None:
    """Nothing said, one fact alone, no text, ids of nobody; and what the bank would ask otherwise by now."""
    memory = memory_with()
    for name, value in (("a", "jazz"), ("b", "swing")):
        tell(memory, name, "2026-01-01", Fact("user", "likes", value))
    (question,) = memory.proposals()
    before = memory.content().to_bytes()
    assert not memory.consolidate([Verdict(question.id, *each) for each in verdicts])
    assert memory.content().to_bytes() == before
    tell(memory, "c", "2026-01-02", Fact("user", "likes", "bebop"))
    stale = [Verdict(question.id, "merge", f"{name}/fact-0", "jazz") for name in "ab"]
    assert not memory.consolidate(stale)


def test_fact_when_edited_has_the_new_value_and_not_the_old_words() -> None:
    """The value is read off the text, and what it was drawn from no longer bears it out."""
    memory = memory_with(profile=[{"name": "city"}])
    tell(memory, "a", "2026-01-01", CITY)
    memory.edit("a/fact-0", text="city of user: Oslo (since 2026-01-01)")
    assert values(memory) == ["Oslo"]
    assert "Rome" not in memory.content().to_bytes().decode()
    assert told(memory, "anything") == ["city of user: Oslo (since 2026-01-01)"]
    with pytest.raises(InputError, match=r"`value` of item .* cannot be edited"):
        memory.edit("a/fact-0", metadata={"value": "Lima"})


def test_bank_when_imported_elsewhere_knows_the_same_times(tmp_path: Any) -> None:
    """What replaced what travels with the items; notes are worked out anew."""
    memory, other = memory_with(), memory_with()
    tell(memory, "a", "2026-01-01", CITY)
    tell(memory, "b", "2026-03-01", replace(CITY, value="Oslo"), a_0="replaces")
    memory.export_items(tmp_path / "bank.jsonl")
    other.import_items(tmp_path / "bank.jsonl")
    assert other.facts() == memory.facts()
    assert values(other) == ["Oslo"]


def test_moment_when_it_is_none_is_refused_where_it_is_said() -> None:
    """In an episode, a fact, a question; a time without a zone is UTC, and a day its beginning."""
    assert moment("2026-03-01", "it") == moment("2026-03-01T01:00:00+01:00", "it")
    assert written(moment("2026-03-01T00:00", "it")) == "2026-03-01T00:00:00Z"
    with pytest.raises(InputError, match="`at` of episode 'a' is a moment such as 2026-03-01"):
        replace(make_episode("a"), at="last May")
    with pytest.raises(InputError, match="`since` of a fact is a moment"):
        replace(CITY, since="May")
    with pytest.raises(SettingsError, match="`at` of a RecallContext is a moment"):
        replace(asking(), at="now")


def test_episode_when_it_has_facts_and_a_time_is_read_back_and_without_names_neither() -> None:
    """Logs of before stay the bytes they were."""
    bare = make_episode("a")
    assert not {"facts", "at"} & bare.to_json().keys()
    full = replace(bare, facts=(CITY,), at="2026-01-01")
    assert Episode.from_json(full.to_json()) == full


_LINKED = st.lists(
    st.tuples(
        st.integers(0, 4),
        st.sampled_from(["replaces", "corrects", "repeats"]),
        st.lists(st.integers(0, 5), max_size=2),
    ),
    max_size=6,
)


@given(_LINKED, st.randoms())
@settings(max_examples=60, deadline=None)
def test_spans_when_items_come_in_any_order_are_the_same_and_never_end_before_they_begin(
    drawn: list[tuple[int, str, list[int]]], random: Any
) -> None:
    """They follow from the items alone, whatever links point at, themselves included."""
    items = {
        str(number): At(
            number,
            {
                "unit": "fact",
                "since": f"2026-01-0{day + 1}",
                link: str([str(n) for n in ids]).replace("'", '"'),
            },
        )
        for number, (day, link, ids) in enumerate(drawn)
    }
    found = spans(items)
    assert all(since <= until for since, until in found.values())
    shuffled = list(items.items())
    random.shuffle(shuffled)
    assert spans(dict(shuffled)) == found


def test_verdict_when_it_is_about_another_subject_or_the_fact_itself_changes_nothing() -> None:
    """A judge that mixes people up, or compares a fact with itself, ends nothing and hides nothing."""
    memory = memory_with()
    tell(memory, "a", "2026-01-01", CITY, replace(CITY, subject="Ann"))
    moved = tuple(replace(CITY, subject=who, value="Oslo") for who in ("user", "Ann"))
    lima = replace(CITY, value="Lima")
    episode = replace(make_episode("b"), facts=(*moved, lima), at="2026-02-01")
    (question,) = memory.questions(episode)
    assert {"a/fact-1", "b/fact-0"} <= question.shows["kept"].keys()  # type: ignore[union-attr]
    mixed = Verdict(question.id, "replaces", "a/fact-1", "fact-0")
    itself = Verdict(question.id, "repeats", "b/fact-0", "fact-0")
    memory.file(replace(episode, verdicts=(mixed, itself)))
    held = sorted((each.fact.subject, each.fact.value) for each in memory.facts(at=""))
    assert held == [
        ("ann", "Oslo"),
        ("ann", "Rome"),
        ("user", "Lima"),
        ("user", "Oslo"),
        ("user", "Rome"),
    ]
