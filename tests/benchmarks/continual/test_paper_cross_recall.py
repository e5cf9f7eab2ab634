"""Transfer by origin: what came of recalling the own task's experience, and the other's."""

from dataclasses import replace

import numpy as np
import pytest
from synthetic_log import SyntheticLog, World

from langgraft.benchmarks.continual.analysis import Analysis, analyze
from langgraft.benchmarks.continual.mechanisms import explain_transfer
from langgraft.benchmarks.continual.retrieval import Origin

WORLD = World(
    conditions=("raw", "ind"),
    controls=("raw+placebo",),
    effects={("raw", "A>B", "B"): -0.4},
    train_items=8,
    test_items=16,
    retrieved=1,
)
LOG = SyntheticLog(WORLD)


@pytest.fixture(scope="module")
def analysis() -> Analysis:
    """Analyze a study in which raw is hurt by the other task."""
    return analyze(LOG)


def test_changes_when_weighted_by_their_episodes_add_up_to_forward_transfer(
    analysis: Analysis,
) -> None:
    """Nothing of a transfer is lost between the two origins; easy and hard make all."""
    for row in analysis.transfers:
        if row.direction == "forward":
            found = {
                each.subset: each
                for each in analysis.cross_recalls
                if (each.condition, each.sequence) == (row.condition, row.sequence)
            }
            both = (found["all"].own, found["all"].other)
            total = sum(o.episodes * o.change.mean for o in both if o.change is not None)
            count = sum(origin.episodes for origin in both) + found["all"].nothing
            assert row.transfer.estimate is not None
            assert total / count == pytest.approx(row.transfer.estimate.value)
            parts = [found["easy"].other.episodes, found["hard"].other.episodes]
            assert sum(parts) == found["all"].other.episodes


def test_origin_when_counted_by_hand_is_that_of_the_first_item(analysis: Analysis) -> None:
    """An episode belongs to the task in which its best item was learned."""
    others, successes = [], []
    for replicate in range(WORLD.replicates):
        for result in LOG.results(f"raw/{replicate}/test B after A>B"):
            recalls = result["recalls"]
            assert isinstance(recalls, list)
            (first,) = recalls[0]["item_ids"]
            others.append("action_obj_door" in str(first))
            successes.append(bool(result["success"]))
    (row,) = [
        each
        for each in analysis.cross_recalls
        if (each.condition, each.sequence, each.subset) == ("raw", "A>B", "all")
    ]
    assert row.other_first is not None
    assert row.other_first.mean == pytest.approx(np.mean(others))
    assert row.other.episodes == sum(others)
    assert row.other.success is not None
    of_others = [s for s, other in zip(successes, others, strict=True) if other]
    assert row.other.success.mean == pytest.approx(np.mean(of_others))


def test_transfer_when_explained_names_share_success_and_change(analysis: Analysis) -> None:
    """For each memory and sequence a sentence on all items, and one on those failed without."""
    told = analysis.explanations.transfer
    assert len(told) == 2 * 2 * 2
    raw, hard = [text for text in told if text.startswith("raw, A→B")]
    assert "of the tests of B retrieve an experience of A first: with one of A," in raw
    assert "% succeed, after B alone" in raw
    assert "on items failed without memory: with one of A," in hard


def test_transfer_when_nothing_is_of_the_other_task_is_told_in_one_sentence(
    analysis: Analysis,
) -> None:
    """Sequences without any foreign recall are listed, not explained one by one."""
    nothing = Origin(0, None, None, None)
    rows = [
        replace(row, other=nothing) if row.condition == "raw" else row
        for row in analysis.cross_recalls
    ]
    first, *others = explain_transfer(rows)
    assert first == ("No test begins with an experience of the other task in raw A→B and raw B→A.")
    assert all(text.startswith("ind, ") for text in others)
