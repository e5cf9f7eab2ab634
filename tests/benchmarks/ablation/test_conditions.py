"""What each condition puts into the prompts, what is held equal, and what training leaves in a bank."""

import difflib
import re
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from ablation_cases import (
    AGENTS,
    CODES,
    MEMORY,
    Clerk,
    asked,
    bank_file,
    function,
    is_right,
    lookups,
    middleware_agent,
    results,
    tried,
)
from langchain.agents import create_agent
from langgraph.checkpoint.memory import InMemorySaver
from memory_cases import make_episode

from langgraft.benchmarks.ablation import Ablation, Task
from langgraft.benchmarks.ablation.experiment import CONDITIONS
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.memory.controls import FILLER
from langgraft.memory.model import BLOCK_END, BLOCK_START
from langgraft.memory.recall import BLOCK_INTRODUCTION
from langgraft.nodes.middleware import MemoryMiddleware

pytestmark = pytest.mark.matrix  # whole studies

BLOCK = re.compile(rf"{BLOCK_START}.*?{BLOCK_END}", re.DOTALL)


def block(result: Mapping[str, Any]) -> str:
    """Return the recalled block in the prompt that a model was sent, or nothing."""
    found = BLOCK.findall(result["prompt"])
    assert len(found) <= 1
    return "".join(found)


@pytest.fixture(scope="module", params=["create_agent", "chain", "function"])
def all_conditions(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Ablation:
    """Run every condition, with an agent that files by itself and one that does not."""
    words = [*CODES]
    return tried(
        tmp_path_factory.mktemp("all"),
        build=AGENTS[request.param],
        train=lookups(*words),
        test=asked(*words),
        conditions=tuple(CONDITIONS),
        model=lambda seed: Clerk(seed=seed, unsteady=0.3),
    )


def blocks(found: Ablation, condition: str) -> list[str]:
    """Return the block of every attempt under a condition, in one order for all conditions."""
    return [block(each) for each in results(found, condition)]


def test_conditions_when_tried_then_put_into_prompts_what_they_say(
    all_conditions: Ablation,
) -> None:
    """No block, the item of the task, another item, filler, a bare frame, nothing, all."""
    found = all_conditions
    for bare in ("none", "rerun", f"{MEMORY}~write_only"):
        assert not any(blocks(found, bare)), bare
    real = blocks(found, MEMORY)
    for result, shown in zip(results(found, MEMORY), real, strict=True):
        assert f"code of {result['kind']}" in shown
        assert shown == result["block"].strip()
    random = blocks(found, f"{MEMORY}~random")
    assert all("Look up: what is the code of" in each for each in random)
    assert Counter(a == b for a, b in zip(real, random, strict=True))[False] > len(real) / 2
    for shown, filler in zip(real, blocks(found, f"{MEMORY}~placebo"), strict=True):
        assert "code of" not in filler
        assert any(each in filler for each in FILLER)
        assert abs(len(shown) - len(filler)) <= 4, "as many tokens, at four characters each"
    for bare in blocks(found, f"{MEMORY}~instructions"):
        inside = bare.removeprefix(BLOCK_START).removesuffix(BLOCK_END)
        assert inside.strip() == BLOCK_INTRODUCTION
    assert all(
        each.count("Look up: what is the code of") == len(CODES)
        for each in blocks(found, "full_history")
    )


def test_first_prompts_when_compared_then_differ_in_the_memory_section_alone(
    all_conditions: Ablation,
) -> None:
    """By a diff of every prompt with the one without memory, and by the digests that a check compares."""
    without = {
        (each["task"], run): each for run, arm in runs(all_conditions, "none") for each in arm
    }
    for arm in all_conditions.analysis.arms:
        for run, attempts in runs(all_conditions, arm.arm.name):
            for each in attempts:
                bare = without[each["task"], run]
                assert each["rest_sha256"] == bare["rest_sha256"]
                changed = [
                    line[2:]
                    for line in difflib.ndiff(
                        bare["prompt"].split("\n"), each["prompt"].split("\n")
                    )
                    if line[0] in "+-" and line[2:].strip()
                ]
                assert all(line in each["block"] for line in changed), changed
                assert bool(changed) == bool(each["block"])
    assert gate(all_conditions, "G2: same prompts") == "passed"


def runs(found: Ablation, condition: str) -> list[tuple[int, list[Mapping[str, Any]]]]:
    """Return the attempts under a condition by replicate."""
    arm = next(each for each in found.analysis.arms if each.arm.name == condition)
    return [(run, list(some.values())) for run, some in arm.results.items()]


def gate(found: Ablation, name: str) -> str:
    """Return how a check ended."""
    return next(each.state for each in found.analysis.gates if each.name.startswith(name))


def detail(found: Ablation, name: str) -> str:
    """Return what a check says."""
    return next(each.detail for each in found.analysis.gates if each.name.startswith(name))


def test_rerun_when_samples_vary_then_has_others_while_controls_share_them(
    all_conditions: Ablation,
) -> None:
    """Chance shows in the rerun alone: the same prompt gets the same answer in all other conditions."""

    def answers(condition: str) -> list[str]:
        return [each["answer"] for each in results(all_conditions, condition)]

    assert answers("none") != answers("rerun")
    assert answers("none") == answers(f"{MEMORY}~write_only")


def test_write_only_when_tried_then_files_what_it_does_in_the_test(
    all_conditions: Ablation,
) -> None:
    """Its bank grows, and no other one does."""
    log = PlanLog(all_conditions.out)
    assert len(log.bank(f"test {MEMORY}~write_only/0").items) == 2 * len(CODES)
    for frozen in (MEMORY, f"{MEMORY}~random", "full_history"):
        assert len(log.bank(f"test {frozen}/0").items) == len(CODES)


def test_prompts_when_build_sneaks_something_into_one_condition_then_a_check_fails(
    tmp_path: Path,
) -> None:
    """What is measured is then not memory alone; the task is named."""

    def build(memory: Any, model: Any) -> Any:
        agent = function(memory, model)
        helps = memory.describe().get("provider") or memory.describe()

        def sneaking(text: str) -> str:
            return agent(f"Be careful. {text}" if "trajectory" in str(helps) else text)

        return sneaking

    found = tried(tmp_path, build=build)
    assert gate(found, "G2: same prompts") == "failed"
    assert "'test-ada-0'" in detail(found, "G2: same prompts")
    assert found.exit_code == 1


def test_recall_when_build_ignores_memory_then_a_check_fails(tmp_path: Path) -> None:
    """No verdict on a memory that was never asked."""
    found = tried(tmp_path, build=lambda memory, model: lambda text: model.invoke(text).text)
    assert found.verdicts == {MEMORY: "not tested"}
    assert "never asked 'trajectory'" in detail(found, "Something was recalled")
    assert found.exit_code == 1


def test_agent_that_shares_a_checkpointer_when_tried_then_attempts_do_not_meet(
    tmp_path: Path,
) -> None:
    """A thread of one attempt has no message of another condition, which asks the same."""
    saver = InMemorySaver()

    def build(memory: Any, model: Any) -> Any:
        return create_agent(model, [], middleware=[MemoryMiddleware(memory)], checkpointer=saver)

    found = tried(tmp_path, build=build, conditions=("placebo",))
    assert gate(found, "G2: same prompts") == "passed"
    assert all(each["prompt"].count("[human]") == 1 for each in results(found, f"{MEMORY}~placebo"))


# Training ---------------------------------------------------------------------------------


@pytest.mark.parametrize("build", [middleware_agent, function], ids=["files", "files nothing"])
@pytest.mark.parametrize("score", [0.25, 0.75])
def test_training_when_done_then_each_attempt_is_filed_once_with_its_score(
    tmp_path: Path, build: Any, score: float
) -> None:
    """Whether or not the graph files: one item a task, successful as scored, of its task and kind."""
    found = tried(tmp_path, build=build, score=lambda task, output: score, replicates=1)
    items = found.bank(MEMORY)
    assert sorted((each.task_id, each.source_domain) for each in items) == [
        ("train-ada", "ada"),
        ("train-bob", "bob"),
    ]
    assert {each.success for each in items} == {score >= 0.5}
    assert all(re.search(r"Action: the code of \w+ is 10\d", each.text) for each in items)
    assert not any(BLOCK_START in each.text for each in items)


def test_training_when_replicates_repeat_it_then_each_has_an_order_of_its_own(
    tmp_path: Path,
) -> None:
    """Orders differ, and what is learned in each is the same."""
    found = tried(tmp_path, train=lookups(*CODES), replicates=3)
    orders = [[each.task_id for each in found.bank(MEMORY, run=run)] for run in range(3)]
    assert len({tuple(each) for each in orders}) > 1
    assert {tuple(sorted(map(str, each))) for each in orders} == {
        tuple(sorted(f"train-{word}" for word in CODES))
    }


def test_feedback_when_withheld_then_memory_knows_no_outcome(tmp_path: Path) -> None:
    """`None` keeps the score from memory; gold answers are declared."""
    told = tried(tmp_path / "none", feedback=None, replicates=1)
    assert {each.success for each in told.bank(MEMORY)} == {None}
    gold = tried(tmp_path / "gold", feedback="oracle", replicates=1)
    assert {each.success for each in gold.bank(MEMORY)} == {True}
    (spec,) = gold.analysis.plan.memories
    assert spec.settings == {"feedback": "oracle"}


@pytest.mark.parametrize("build", [middleware_agent, function], ids=["files", "files nothing"])
@pytest.mark.parametrize(("right", "word"), [(True, "success"), (False, "failure")])
def test_lessons_when_memory_needs_them_then_are_drawn_once_the_score_is_known(
    tmp_path: Path, build: Any, right: bool, word: str
) -> None:
    """Reflection is told how the attempt ended, whoever files it."""
    found = tried(
        tmp_path,
        build=build,
        memory="insight",
        train=lookups("ada"),
        score=lambda task, output: right and is_right(task, output),
        replicates=1,
    )
    (item,) = found.bank("insight")
    assert f"{word} taught that the code of ada is 101" in item.text
    assert {each["usage"]["replies"] for each in results(found, "insight")} == {1}


def test_episodes_when_given_then_are_filed_without_playing(tmp_path: Path) -> None:
    """No attempt is made for them, and memory holds them."""
    calls: list[str] = []

    def build(memory: Any, model: Any) -> Any:
        agent = function(memory, model)

        def counted(text: str) -> Any:
            calls.append(text)
            return agent(text)

        return counted

    episodes = [make_episode("e1", task="what is the code of ada?"), make_episode("e2")]
    found = tried(tmp_path, build=build, episodes=episodes, replicates=1, test=asked("ada"))
    assert len(calls) == 2
    assert {each.episode_id for each in found.bank(MEMORY)} == {"e1", "e2"}


def test_bank_when_imported_then_is_what_is_tried(tmp_path: Path) -> None:
    """Its items are recalled under their own ids."""
    bank = bank_file(tmp_path / "bank.jsonl", one="the code of ada is 101", two="nothing of use")
    found = tried(tmp_path / "out", bank=bank, test=asked("ada"))
    assert [each.id for each in found.bank(MEMORY)] == ["one", "two"]
    assert [each["recalled"][0]["id"] for each in results(found, MEMORY)] == ["one", "one"]
    assert [each["score"] for each in results(found, MEMORY)] == [1, 1]


def test_sources_when_several_then_each_is_a_condition_of_its_own(tmp_path: Path) -> None:
    """`memory@source`, with its controls; each knows what it was trained on."""
    found = tried(
        tmp_path,
        train={"a": lookups("ada"), "b": lookups("bob")},
        test=asked("ada", "bob"),
        conditions=("placebo",),
        replicates=1,
    )
    names = [each.arm.name for each in found.analysis.arms]
    at = [f"{MEMORY}@{source}{control}" for source in "ab" for control in ("", "~placebo")]
    assert names == ["none", *at]
    assert [each["score"] for each in results(found, f"{MEMORY}@a")] == [1, 0]
    assert [each["score"] for each in results(found, f"{MEMORY}@b")] == [0, 1]
    assert found.verdicts.keys() == {f"{MEMORY}@a", f"{MEMORY}@b"}


def test_memories_when_several_then_each_has_its_settings(tmp_path: Path) -> None:
    """By name, with settings; the same provider twice."""
    wide = {"provider": "trajectory", "settings": {"top_k": 2}}
    found = tried(tmp_path, memory={"one": "trajectory", "two": wide}, replicates=1)
    assert {len(each["recalled"]) for each in results(found, "one")} == {1}
    assert {len(each["recalled"]) for each in results(found, "two")} == {2}


# What goes wrong in an agent ----------------------------------------------------------------


def test_errors_of_the_agent_when_raised_then_count_as_0_and_are_told(tmp_path: Path) -> None:
    """Each by name and number; where most attempts end so, the check fails."""

    def failing(*words: str) -> Any:
        def build(memory: Any, model: Any) -> Any:
            agent = function(memory, model)

            def fails(text: str) -> str:
                if any(f"code of {word}" in text for word in words):
                    raise KeyError(text)
                return agent(text)

            return fails

        return build

    some = tried(tmp_path / "some", build=failing("bob"), test=asked("ada", "bob", "fay"))
    attempts = {each["task"]: each for each in results(some, MEMORY)}
    assert attempts["test-bob-0"]["score"] == 0
    assert attempts["test-bob-0"]["error"].startswith("KeyError: ")
    assert "4 of 12 attempts ended in an error and count as 0: KeyError 4" in detail(
        some, "Agent's own"
    )
    assert gate(some, "Agent's own") == "passed"
    most = tried(tmp_path / "most", build=failing("bob", "ada"), test=asked("ada", "bob", "fay"))
    assert gate(most, "Agent's own") == "failed"


class PageError(Exception):
    """What a client of web pages raises."""

    status_code = 404


def test_page_that_a_tool_does_not_find_when_raised_then_is_the_agents_error(
    tmp_path: Path,
) -> None:
    """A 404 of a web page is no unknown model: the attempt counts, and the run goes on."""

    def build(memory: Any, model: Any) -> Any:
        agent = function(memory, model)

        def looks(text: str) -> str:
            agent(text)
            raise PageError("not found")

        return looks

    found = tried(tmp_path, build=build, test=[Task("t", "what is the code of ada?")], replicates=1)
    assert [each["error"] for each in results(found, "none")] == ["PageError: not found"]
