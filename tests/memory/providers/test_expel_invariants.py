"""`ExpeL` by votes under any verdicts: what holds whatever a judge says."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from typing import Any, cast

from hypothesis import given, settings
from hypothesis import strategies as st
from langgraph.store.memory import InMemoryStore
from memory_cases import HOSTILE, asking, make_episode, texts

from langgraft.memory.model import (
    BankContent,
    By,
    Episode,
    Lesson,
    MemoryDelta,
    Outcome,
    SetState,
    Verdict,
    fold,
)
from langgraft.memory.provider import EPISODES
from langgraft.memory.providers import ExpeL, ExpeLSettings, VoteSettings
from langgraft.memory.recall import Budget

SMALL = ExpeLSettings(
    max_insights=4,
    max_trajectories=3,
    top_k_trajectories=2,
    votes=VoteSettings(
        max_rules=2, full_margin=1, max_operations=3, success_batch=2, shown_characters=9
    ),
)


def voting(chosen: ExpeLSettings = SMALL) -> ExpeL:
    """Make a small provider that lets a judge vote."""
    return ExpeL(InMemoryStore(), settings=chosen)


@dataclass(frozen=True)
class Said:
    """One thing a judge says: `rule` picks one that is shown, or is no id at all."""

    action: str
    rule: int | str | None
    text: str
    by: By
    stale: bool


actions = st.sampled_from(["add", "agree", "edit", "remove", "ADD", "none", "", "\x00"])
words = st.sampled_from(["look", " Look ", "wait", "wait a bit", *HOSTILE]) | texts
said = st.builds(
    Said,
    action=actions,
    rule=st.integers(0, 5) | st.none() | st.sampled_from(["no such rule", "", "\ud800", "\x00"]),
    text=words,
    by=st.sampled_from(["model", "rules"]),
    stale=st.sampled_from([False, False, False, True]),
)
turns = st.lists(
    st.tuples(
        st.sampled_from(["t1", "t2", ""]),
        st.sampled_from([True, False, None]),
        st.lists(said, max_size=6),
    ),
    max_size=7,
)


def verdicts_of(memory: ExpeL, episode: Episode, listed: list[Said]) -> tuple[Verdict, ...]:
    """Turn what a judge says into verdicts on what is shown now."""
    (question,) = memory.questions(episode)
    shown = list(cast("dict[str, Any]", question.shows["rules"]))

    def identity(rule: int | str | None) -> str | None:
        if isinstance(rule, int):
            return shown[rule % len(shown)] if shown else "e0/rule-0"
        return rule

    return tuple(
        Verdict(
            "stale" if each.stale else question.id,
            each.action,
            identity(each.rule),
            each.text,
            each.by,
        )
        for each in listed
    )


def votes_in(content: BankContent) -> dict[str, int]:
    """Return the votes of each rule."""
    return {
        item.id: cast("int", content.notes[item.id]["votes"])
        for item in content.items.values()
        if item.type == "strategic"
    }


@settings(max_examples=60)
@given(turns=turns, query=texts, tokens=st.none() | st.integers(0, 120))
def test_bank_when_judged_in_any_way_keeps_its_invariants(
    turns: list[tuple[str, bool | None, list[Said]]], query: str, tokens: int | None
) -> None:
    """Votes stay above 0, caps hold after upkeep, and the deltas fold to the bank."""
    memory = voting()
    log: list[MemoryDelta] = []
    for number, (task_id, success, listed) in enumerate(turns):
        episode = make_episode(f"e{number}", task_id=task_id, outcome=Outcome(success))
        episode = replace(episode, verdicts=verdicts_of(memory, episode, listed))
        before = votes_in(memory.content())
        log.append(memory.file(episode))
        after = votes_in(memory.content())
        _check_votes(before, after)
        assert not memory.file(episode)
        assert memory.questions(episode) == []
        assert not memory.manage()
        kinds = [item.type for item in memory.content().items.values()]
        assert kinds.count("strategic") <= 4
        assert kinds.count("operational") <= 3
    logged = [MemoryDelta.from_json(delta.to_json()) for delta in log]
    content = memory.content()
    assert fold(logged).to_bytes() == content.to_bytes()
    recall = memory.provide(query, asking(task_id="t1"), Budget(tokens=tokens))
    assert tokens is None or recall.tokens <= tokens
    assert memory.content() == content


def _check_votes(before: dict[str, int], after: dict[str, int]) -> None:
    """One episode moves at most three rules, each within what an operation may do."""
    assert all(votes > 0 for votes in after.values())
    kept = before.keys() & after.keys()
    assert all(after[name] - before[name] in {-3, -1, 0, 1} for name in kept)
    moved = [name for name in kept if after[name] != before[name]]
    gone, new = before.keys() - after.keys(), after.keys() - before.keys()
    edited = [name for name in new if after[name] > 2 and gone]
    assert len(moved) + max(len(gone), len(edited)) <= 3
    assert len(new) <= 3


@given(listed=st.lists(said, min_size=1, max_size=6))
def test_verdicts_when_on_nothing_that_is_shown_change_nothing(listed: list[Said]) -> None:
    """Ids that were not shown, and answers to other questions, are as good as silence."""
    silent, memory = voting(), voting()
    for each in (silent, memory):
        episode = make_episode("e0")
        answers = [Said("add", None, text, "model", stale=False) for text in ("look", "wait")]
        each.file(replace(episode, verdicts=verdicts_of(each, episode, answers)))
    episode = make_episode("e1")
    hostile = [
        Said(one.action, one.rule, one.text, one.by, stale=True)
        if isinstance(one.rule, int) or one.action == "add"
        else one
        for one in listed
    ]
    memory.file(replace(episode, verdicts=verdicts_of(memory, episode, hostile)))
    silent.file(episode)
    assert memory.content() == silent.content()


def test_rules_when_judged_by_sixteen_threads_at_once_lose_no_vote() -> None:
    """Answers count where the bank stands as it was shown, and are given again where not."""
    memory = voting(ExpeLSettings(votes=VoteSettings()))
    start = make_episode("start", lessons=(Lesson("unused"),))
    answers = [Said("add", None, text, "model", stale=False) for text in ("look", "wait")]
    log = [memory.file(replace(start, verdicts=verdicts_of(memory, start, answers)))]

    def run(number: int) -> MemoryDelta:
        episode = make_episode(f"e{number}")
        memory.questions(episode)  # when others are still at work
        return fan_in.submit(lambda: _file(memory, episode, f"start/rule-{number % 2}")).result()

    # One fan-in asks again before each filing.
    with ThreadPoolExecutor(1) as fan_in, ThreadPoolExecutor(16) as pool:
        log += [delta for delta in pool.map(run, [*range(32), *range(32)]) if delta]
    assert len(log) == 33
    assert votes_in(memory.content()) == {"start/rule-0": 18, "start/rule-1": 18}
    assert fold(sorted(log, key=_position)) == memory.content()


def _file(memory: ExpeL, episode: Episode, rule: str) -> MemoryDelta:
    verdicts = tuple(Verdict(question.id, "agree", rule) for question in memory.questions(episode))
    return memory.file(replace(episode, verdicts=verdicts))


def test_episodes_when_filed_by_sixteen_threads_without_order_keep_the_invariants() -> None:
    """Whoever is late has no vote; no update is lost, and the deltas fold."""
    memory = voting()

    def run(number: int) -> MemoryDelta:
        episode = make_episode(f"e{number}", outcome=Outcome(number % 3 > 0))
        asked = memory.questions(episode)
        verdicts = tuple(Verdict(question.id, "add", None, f"{number}") for question in asked)
        return memory.file(replace(episode, verdicts=verdicts))

    with ThreadPoolExecutor(16) as pool:
        log = [delta for delta in pool.map(run, [*range(48), *range(48)]) if delta]
    content = memory.content()
    assert len(log) == content.state[EPISODES] == 48
    assert sum(item.type == "operational" for item in content.items.values()) == 3
    assert content.state["succeeded"] == 32
    assert all(votes == 2 for votes in votes_in(content).values())
    assert fold(sorted(log, key=_position)) == content


def _position(delta: MemoryDelta) -> int:
    (count,) = (
        change.value for change in delta if isinstance(change, SetState) and change.key == EPISODES
    )
    return cast("int", count)
