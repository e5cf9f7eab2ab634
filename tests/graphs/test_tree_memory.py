"""The tree agent with memory: what is recalled, what is filed, and in which order."""

from collections.abc import Callable
from typing import Any, cast

import pytest
from langgraph.store.memory import InMemoryStore
from tree_cases import (
    BROKEN,
    FIX,
    Hurrying,
    RuleModel,
    feedback,
    good,
    programs,
    reply,
    reviewing,
    sandbox,
    searched,
    writing,
)

from langgraft.environments.competitions.competition import Competition
from langgraft.graphs import build_tree_agent
from langgraft.memory.controls import Frozen, Placebo, RandomRetrieval, WriteOnly
from langgraft.memory.model import BLOCK_START, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.memory.providers import make_provider
from langgraft.nodes.search import AIDEPolicy, MemoryArtifacts, Search, restore_memory

pytestmark = pytest.mark.matrix  # whole searches with each memory

pytest.importorskip("pandas", reason="needs pandas: pip install 'langgraft[mle]'")

ALL: dict[str, Any] = {"stages": ["draft", "debug", "improve"]}


def coding(**settings: Any) -> MemoryProvider[Any]:
    """Make a coding memory of one's own."""
    return make_provider("coding", InMemoryStore(), settings={**ALL, **settings})


def search(
    competition: Competition, memory: MemoryProvider[Any], code: RuleModel, **settings: Any
) -> Search:
    """Search with a memory."""
    return searched(competition, code, memory=memory, **settings)[1]


def test_failure_when_a_program_raises_is_diagnosed_filed_and_recalled(
    competition: Competition,
) -> None:
    """The next prompt has the error, and the journal the receipt and the kinds."""
    memory = coding()
    code = programs(reply(BROKEN.format(number=1)), reply(good()))
    first, second, _ = search(competition, memory, code).nodes
    assert first.error is not None
    assert first.error["error"] == "TypeError: fit() got an unexpected keyword argument 'rate'"
    assert (first.receipt or {})["item_ids"] == []
    assert (second.receipt or {})["item_ids"] == ["s/000/error-0"]
    assert second.recalled_kinds == ("code",)
    assert second.recalled in code.texts("write")[1]
    assert BLOCK_START not in code.texts("write")[0]
    (item,) = memory.content().items.values()
    assert (item.source_domain, item.task_id, item.success) == ("mle/toy", "toy", False)


def test_repair_when_it_works_verifies_what_its_plan_says(competition: Competition) -> None:
    """The parent's error is filed once more with that fix, as known to work."""
    memory = coding()
    policy = AIDEPolicy(drafts=1, debug_probability=1.0)
    repaired = reply(good(), plan=f"{FIX} So it runs. And more.")
    code = programs(reply(BROKEN.format(number=1)), repaired)
    found = search(competition, memory, code, policy=policy, steps=2)
    assert [node.is_buggy for node in found.nodes] == [True, False]
    content = memory.content()
    known = content.items["s/001/error-0"]
    assert known.metadata["error"] == (found.nodes[0].error or {})["error"]
    assert known.metadata["fix"] == f"{FIX} So it runs."
    assert content.notes[known.id]["verified"]


def test_debugging_when_memory_is_asked_shows_it_the_failure(competition: Competition) -> None:
    """What is compared with the bank is the parent's error, also one that a limit caused."""
    policy = AIDEPolicy(drafts=2, debug_probability=1.0)
    slow = "import time\ntime.sleep(60)\n"
    code = programs(reply(BROKEN.format(number=1)), reply(slow), reply(good()))
    place = Hurrying(competition)
    found = search(competition, coding(), code, policy=policy, steps=4, sandbox=place)
    searched = {node.parent_id: (node.receipt or {})["searched"] for node in found.nodes[2:]}
    assert searched["000"] == "TypeError: fit() got an unexpected keyword argument 'rate'"
    assert str(searched["001"]).startswith("TimeoutError: the program was stopped after")
    slow_node = found.nodes[1]
    assert slow_node.error is not None
    assert slow_node.exc_type == "TimeoutError"


@pytest.mark.parametrize("width", [1, 2])
def test_bank_when_the_search_ends_is_the_fold_of_its_journal(
    width: int, competition: Competition
) -> None:
    """What was learned can be had from the journal alone; the next search begins with it."""
    memory = coding()
    found = search(competition, memory, writing(), steps=8, width=width)
    assert fold(found.deltas).digest == memory.content().digest
    assert len(memory.content().items) > 0


def test_branches_when_both_fail_are_judged_one_after_the_other(competition: Competition) -> None:
    """The second one's question shows what the first one filed."""
    judge = reviewing()
    code = programs(
        reply(BROKEN.format(number=1)), reply(BROKEN.format(number=2).replace("rate", "pace"))
    )
    found = search(competition, coding(), code, steps=2, width=2, feedback_model=judge)
    (question,) = judge.texts("judge")
    assert "s/000/error-0" in question
    first, second = found.nodes
    assert "judge" not in first.asked
    (asked,) = cast("list[dict[str, Any]]", second.asked["judge"])
    assert (asked["kind"], asked["by"]) == ("novelty", "model")


@pytest.mark.parametrize(
    ("control", "speaks"),
    [(Placebo, True), (RandomRetrieval, True), (WriteOnly, False), (Frozen, True)],
)
def test_controls_when_they_wrap_a_bank_recall_in_its_place(
    control: Callable[..., MemoryProvider[Any]], speaks: bool, competition: Competition
) -> None:
    """What only recalls files nothing and asks no model for what it would not file."""
    inner = coding()
    search(competition, inner, programs(reply(BROKEN.format(number=1)), reply(good())), steps=2)
    before = inner.content().digest
    code, review = programs(reply(BROKEN.format(number=3)), reply(good())), reviewing()
    found = search(competition, control(inner), code, steps=2, feedback_model=review)
    assert bool(found.nodes[0].recalled) == speaks
    if control is WriteOnly:
        return
    assert inner.content().digest == before
    assert found.deltas == ()
    assert review.texts("diagnose") == []


def test_memory_when_it_is_not_to_learn_stays_as_it_is(competition: Competition) -> None:
    """It recalls; nothing is diagnosed, judged or filed."""
    memory = coding()
    search(competition, memory, writing(), steps=3)
    before, review = memory.content().digest, reviewing()
    found = search(competition, memory, writing(), learn=False, feedback_model=review)
    assert memory.content().digest == before
    assert found.deltas == ()
    assert any(node.recalled for node in found.nodes)
    assert review.texts("diagnose") == review.texts("judge") == []


def test_memory_when_it_keeps_lessons_has_them_drawn(competition: Competition) -> None:
    """Any provider goes with the search that asks for no draft."""
    memory = make_provider("insight", InMemoryStore(), settings={})
    code = programs(reply(good()))
    found = search(competition, memory, code, steps=2)
    assert "write the submission" in found.nodes[1].recalled
    assert "reflect" in found.nodes[0].asked
    assert "write the submission" in code.texts("write")[1]


@pytest.mark.parametrize(
    "bad", ["", "nothing", '{"is_bug": 7}', "[" * 50_000, '{"package": null}', "\ud800"]
)
def test_search_when_feedback_is_no_use_ends_all_the_same(
    bad: str, competition: Competition
) -> None:
    """Rules stand in for reviews, diagnoses and verdicts, and say so."""
    found = search(
        competition, coding(), writing(), steps=4, width=2, feedback_model=reviewing(lambda *_: bad)
    )
    assert len(found.nodes) == 4
    for node in found.nodes:
        asked: Any = node.asked
        assert asked["review"]["by"] == "rules"
        assert node.error is None or node.error["by"] == "rules"


def test_bank_when_it_is_lost_is_restored_from_the_search(competition: Competition) -> None:
    """A process that goes on needs nothing but the search's state and contents."""
    memory, artifacts = coding(), MemoryArtifacts()
    search(competition, memory, writing(), steps=3)
    with sandbox(competition) as place:
        agent = build_tree_agent(
            writing(), competition=competition, sandbox=place, artifacts=artifacts, memory=memory,
            feedback_model=reviewing(), steps=4, seconds=60,
        )  # fmt: skip
        state = list(agent.stream({"episode_id": "t"}, stream_mode="values"))[-1]
    fresh = coding()
    restore_memory(fresh, artifacts, state)
    assert fresh.content().digest == memory.content().digest


def test_recall_when_memory_speaks_only_late_begins_there(competition: Competition) -> None:
    """The step that memory hears of is the program's number."""
    found = search(competition, coding(from_step=2), writing(), steps=6)
    first = [node.step for node in found.nodes if node.recalled]
    assert all(step >= 2 for step in first)
    assert first


def test_feedback_rule_when_nothing_fits_says_so() -> None:
    """The support's own rule never answers what it was not written for."""
    with pytest.raises(AssertionError, match="nobody knows"):
        feedback("What is this?", "s/000/what")


async def test_search_when_memory_is_asked_in_threads_complains_of_no_span(
    competition: Competition, caplog: pytest.LogCaptureFixture
) -> None:
    """A span that begins in one thread ends in another: it must not be the current one of either."""
    async with sandbox(competition) as place:
        agent = build_tree_agent(
            writing(), competition=competition, sandbox=place, memory=coding(),
            feedback_model=reviewing(), steps=4, seconds=60,
        )  # fmt: skip
        await agent.ainvoke({"episode_id": "s"})
    assert [each for each in caplog.records if "context" in each.getMessage()] == []
