"""Attempts that `InsightMemory` keeps to compare others with."""

from collections.abc import Mapping
from typing import Any

import pytest
from langgraph.store.memory import InMemoryStore
from memory_cases import asking, make_episode

from langgraft.memory.model import Episode, Lesson, Outcome, Step, fold
from langgraft.memory.providers import InsightMemory, InsightSettings
from langgraft.memory.providers.insight import LONGEST_ATTEMPT, LONGEST_TEXT, shortened

RED, BLUE, KEY = "open the red door", "open the blue door", "pick up a key"


def memory_with(attempts: int = 3, **fields: Any) -> InsightMemory:
    """Make a provider that keeps attempts."""
    settings = InsightSettings.model_validate({"attempts": attempts, **fields})
    return InsightMemory(InMemoryStore(), settings=settings)


def ended(identity: str, task: str = RED, *, success: bool | None = True, **fields: Any) -> Episode:
    """Make an episode that ended so."""
    outcome = Outcome(success, reason="why")
    return make_episode(identity, task=task, outcome=outcome, **fields)


def compared(memory: InsightMemory, episode: Episode) -> str:
    """Return the id of the episode's counterpart; empty where there is none."""
    found = memory.counterpart(episode)
    return found.episode_id if found else ""


async def test_counterpart_when_asked_for_is_the_most_similar_that_ended_the_other_way() -> None:
    """Outcome, likeness and age decide, in its domain; asking changes nothing."""
    memory = memory_with()
    memory.file(ended("won key", KEY))
    memory.file(ended("won red"))
    memory.file(ended("won blue", BLUE))
    memory.file(ended("lost red", success=False))
    memory.file(ended("lost red again", success=False))
    before = memory.content().digest
    assert compared(memory, ended("new", success=False)) == "won red"
    assert compared(memory, ended("new", BLUE, success=False)) == "won blue"
    assert compared(memory, ended("new")) == "lost red again"
    found = memory.counterpart(ended("new"))
    assert found == await memory.acounterpart(ended("new"))
    assert found is not None
    assert (found.task, found.outcome) == (RED, Outcome(success=False, reason="why"))
    assert found.steps == make_episode().steps
    assert memory.content().digest == before


def test_counterpart_when_an_attempt_is_of_the_same_task_is_that_one() -> None:
    """Two attempts at one task can be compared best, whatever it is called."""
    memory = memory_with()
    memory.file(ended("same", "as told before", task_id="t7"))
    memory.file(ended("alike"))
    assert compared(memory, ended("new", success=False, task_id="t7")) == "same"


def test_counterpart_when_nothing_is_comparable_is_none() -> None:
    """Nor what is of another domain, of another kind, or of an outcome nobody knows."""
    memory = memory_with()
    memory.file(ended("elsewhere", domain="other"))
    memory.file(ended("unlike", KEY))
    memory.file(ended("unknown", success=None))
    assert compared(memory, ended("new", success=False)) == ""
    assert compared(memory, ended("new", success=None)) == ""
    assert compared(memory_with(0), ended("new")) == ""


def test_counterpart_when_the_other_was_judged_by_gold_answers_is_none() -> None:
    """A lesson of a comparison could not say that it owes something to them."""
    memory = memory_with(feedback="oracle")
    outcome = Outcome(success=True, feedback="oracle")
    memory.file(make_episode("told", task=RED, outcome=outcome))
    assert compared(memory, ended("new", success=False)) == ""


def test_attempts_when_there_are_more_than_asked_for_make_the_oldest_go() -> None:
    """By outcome and domain, so that a rare failure is not lost among successes."""
    memory = memory_with(2)
    memory.file(ended("lost", success=False))
    for number in range(5):
        memory.file(ended(f"won {number}", task_id=f"t{number}"))
    state = memory.content().state.values()
    kept = {each["episode_id"] for each in state if isinstance(each, Mapping)}
    assert kept == {"lost", "won 3", "won 4"}
    assert compared(memory, ended("new", success=False, task_id="t0")) == "won 4"


def test_attempts_when_a_bank_is_folded_from_its_log_are_found_again() -> None:
    """What is compared survives a kill as the lessons do."""
    memory, again = memory_with(), memory_with()
    deltas = [memory.file(ended(f"e{n}", success=bool(n % 2))) for n in range(7)]
    again.restore(fold(deltas))
    assert again.content().digest == memory.content().digest
    assert again.counterpart(ended("new")) == memory.counterpart(ended("new"))


@pytest.mark.parametrize("granularity", ["aggregate", "individual", "adaptive"])
def test_attempts_when_kept_change_neither_items_nor_what_is_recalled(granularity: str) -> None:
    """They are no items: scores, order and exports are those of a bank without them."""
    without, with_ = (
        memory_with(0, granularity=granularity),
        memory_with(3, granularity=granularity),
    )
    for number, task in enumerate([RED, BLUE, KEY, RED]):
        lessons = (Lesson(f"do {number}", task), Lesson("look around"))
        episode = ended(f"e{number}", task, success=bool(number % 2), lessons=lessons)
        without.file(episode)
        with_.file(episode)
    assert with_.content().items == without.content().items
    for task in (RED, BLUE, KEY, "look"):
        assert with_.provide(task, asking()) == without.provide(task, asking())
    assert not [key for key in without.content().state if key.startswith("attempts/")]


def test_attempts_when_an_episode_has_no_lessons_are_kept_all_the_same() -> None:
    """What failed without a lesson can still teach one when something succeeds."""
    memory = memory_with(success_only=True)
    memory.file(ended("lost", success=False, lessons=()))
    assert not memory.content().items
    assert compared(memory, ended("new")) == "lost"


def test_trajectories_when_long_are_cut_in_the_middle_and_in_long_texts() -> None:
    """Beginning and end stay, in a prompt of bounded length; lone surrogates are no trouble."""
    steps = [Step("", f"act {number}", "x" * 300) for number in range(99)]
    cut = shortened([Step("", "", "y" * 9999 + "\ud83d"), *steps])
    assert len(cut[0].observation) == LONGEST_TEXT
    assert cut[1] == steps[0]
    assert cut[-1] == steps[-1]
    assert sum("turns are left out" in step.observation for step in cut) == 1
    assert sum(len(s.action + s.observation) for s in cut) > LONGEST_ATTEMPT / 2
    assert sum(len(s.action + s.observation) for s in cut) < LONGEST_ATTEMPT + 100
    memory = memory_with()
    memory.file(ended("e", steps=(Step("", "\ud83d", "y" * 9999),)))
    found = memory.counterpart(ended("new", success=False))
    assert found is not None
    assert found.steps[0].action == "?"
