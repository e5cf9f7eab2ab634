"""Prompts that ask and tell more than AIDE's: complexity that grows, parents, chains of failures."""

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tree_cases import good, reply, scripted, toy

from langgraft.environments.sandboxes.subprocess import SubprocessSandbox
from langgraft.nodes.artifacts import MemoryArtifacts
from langgraft.nodes.search.deps import CurrentTreePrompts, SearchDeps, TreePrompts
from langgraft.nodes.search.journal import JournalNode, append_record
from langgraft.nodes.search.programs import LONGEST_ANCESTRY, ancestors, complexity, write_node

LEVELS = ("simple", "normal", "advanced")


def node(step: int, parent: int | None = None, metric: float | None = None) -> JournalNode:
    """Make a program: without a metric one that failed."""
    return JournalNode(
        step=step,
        id=f"n{step}",
        parent_id=None if parent is None else f"n{parent}",
        plan=f"Plan {step}.",
        code=f"x = {step}\n",
        metric=metric,
        is_buggy=metric is None,
        analysis=f"Analysis {step}.",
        output=f"Printed by {step}.\n\nIt ran for less than a minute of the 2 minutes allowed.",
    )


def asked(
    folder: Path, nodes: list[JournalNode], stage: str, parent: str | None, **settings: Any
) -> str:
    """Return what a model is asked for the next program."""
    artifacts, reference = MemoryArtifacts(), ""
    for each in nodes:
        reference = append_record(artifacts, reference, each)
    competition = toy(folder, lower_is_better=True)
    prompts = settings.pop("prompts", CurrentTreePrompts())
    deps = SearchDeps(competition, artifacts, SubprocessSandbox(), prompts)
    model = scripted(reply(good()))
    state: Any = {"episode_id": "s", "journal": reference, "preview": artifacts.keep(b"The data.")}
    state["work"] = {"step": len(nodes), "id": "new", "stage": stage, "parent_id": parent}
    write_node(deps, model).invoke(state)
    return model.asked[0][1]


def test_draft_when_there_are_more_already_is_to_be_more_elaborate(tmp_path: Path) -> None:
    """Two simple ones, two stronger ones, then ambitious ones; AIDE's are simple throughout."""
    for count, words in ((0, "Make it simple"), (3, "Make it stronger"), (7, "Make it ambitious")):
        drafts = [node(step, metric=0.5) for step in range(count)]
        assert words in asked(tmp_path, drafts, "draft", None)
        published = asked(tmp_path, drafts, "draft", None, prompts=TreePrompts())
        assert "Leave ensembles and the search for hyperparameters to later" in published


def test_improvement_when_asked_for_shows_what_the_parent_reached_and_how_long_it_ran(
    tmp_path: Path,
) -> None:
    """Its metric, which way that goes, and what it printed; children make it more elaborate."""
    nodes = [node(0, metric=0.25), node(1, metric=0.75), node(2, 0, 0.5), node(3, 0, 0.5)]
    text = asked(tmp_path, nodes, "improve", "n0")
    assert "validation metric: 0.25 (lower is better)" in text
    assert "Printed by 0." in text
    for prompts in (TreePrompts(), CurrentTreePrompts()):
        told = asked(tmp_path, nodes, "improve", "n0", prompts=prompts)
        assert (
            "- The previous solution ran for less than a minute of the 2 minutes allowed." in told
        )
    assert "Make a change of some weight" in text
    assert "Make a small change" in asked(tmp_path, nodes, "improve", "n1")
    assert "The data." in text


def test_repair_when_asked_for_shows_what_failed_before_it(tmp_path: Path) -> None:
    """The chain back to what worked, oldest first, and nothing of other branches."""
    nodes = [node(0, metric=0.1), node(1, 0), node(2), node(3, 1), node(4, 3)]
    text = asked(tmp_path, nodes, "debug", "n4")
    shown = [step for step in range(5) if f"Plan {step}." in text]
    assert shown == [1, 3, 4]
    assert text.index("Plan 1.") < text.index("Plan 3.") < text.index("Plan 4.")
    assert "Plan 1." not in asked(tmp_path, nodes, "debug", "n4", prompts=TreePrompts())


@given(st.integers(1, 40), st.integers(0, 3_000))
def test_ancestors_when_they_are_many_or_long_stay_within_bounds(count: int, size: int) -> None:
    """The newest stay, and what is left out is said."""
    chain = [
        node(step, None if step == 0 else step - 1).model_copy(update={"analysis": "a" * size})
        for step in range(count)
    ]
    text = ancestors(chain, chain[-1].id)
    assert len(text) < LONGEST_ANCESTRY + 2 * count + 100
    assert f"Plan {count - 1}." in text
    assert ("left out" in text) == ("Plan 0." not in text)


@pytest.mark.parametrize(("count", "level"), [(0, 0), (1, 0), (2, 1), (3, 1), (4, 2), (9, 2)])
def test_complexity_when_programs_are_counted_leaves_merges_and_other_parents_out(
    count: int, level: int
) -> None:
    """Only programs of the same kind make the next one more elaborate."""
    nodes = [node(0, metric=1), *(node(step, 0, 1) for step in range(1, count + 1))]
    merged = node(50, 0, 1).model_copy(update={"partner_id": "n1"})
    others = [node(51, 1, 1), node(52, 1, 1), merged]
    assert complexity(LEVELS, [*nodes, *others], "n0") == LEVELS[level]
    assert complexity((), nodes, "n0") == ""
