"""The tree agent: a search for the best program, from its first draft to its submission."""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from counting_sandbox import CountingSandbox
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from tree_cases import (
    ABSENT,
    BROKEN,
    Hurrying,
    feedback,
    good,
    programs,
    reply,
    reviewing,
    sandbox,
    searched,
    toy,
    writing,
)
from typing_extensions import override

from langgraft import CodingMemory
from langgraft._core.errors import SandboxFailureError, SettingsError
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.sandbox import ExecutionResult, Job
from langgraft.environments.sandboxes.subprocess import SubprocessSandbox
from langgraft.graphs import build_tree_agent
from langgraft.nodes.search import (
    AIDEPolicy,
    MemoryArtifacts,
    read_best,
)

pytest.importorskip("pandas", reason="needs pandas: pip install 'langgraft[mle]'")


def test_search_when_it_ends_submits_the_best_program(competition: Competition) -> None:
    """The output names program, metric and submission, and the journal has them all."""
    code = programs(reply(good(0.5)), reply(good(0.8)), reply(ABSENT))
    out, found = searched(competition, code)
    assert (out["episode_id"], out["chosen"], out["metric"], out["done"]) == ("s", "001", 0.8, True)
    assert out["candidates"] == [{"node": "001", "metric": 0.8, "metrics": []}]
    assert out["submission"] == found.submission("001") != ""
    assert [node.id for node in found.nodes] == ["000", "001", "002"]
    assert [node.submission for node in found.nodes] == ["valid", "valid", "absent"]
    assert found.nodes[0].plan == "First I try this. Then I see. And more."
    assert found.nodes[0].code == good(0.5)
    assert found.nodes[2].is_buggy
    assert found.nodes[2].metric is None


def test_search_when_lower_is_better_follows_the_board(tmp_path: Path) -> None:
    """The direction is the board's, and no model is asked for it."""
    competition = toy(tmp_path / "toy", lower_is_better=True)
    out, _ = searched(competition, programs(*(reply(good(metric)) for metric in (0.5, 0.3, 0.8))))
    assert (out["chosen"], out["metric"]) == ("001", 0.3)


def test_search_when_nothing_works_submits_nothing(competition: Competition) -> None:
    """It still ends, and the journal says why each program is buggy."""
    code = programs(reply(BROKEN.format(number=1)), "No.", reply("import time\ntime.sleep(60)\n"))
    out, found = searched(competition, code, sandbox=Hurrying(competition))
    assert (out["chosen"], out["metric"], out["submission"], out["done"]) == ("", None, "", True)
    raised, empty, slow = found.nodes
    assert (raised.exc_type, raised.reasons[0]) == ("TypeError", "it raised TypeError")
    assert raised.exc_value == "fit() got an unexpected keyword argument 'rate'"
    assert empty.reasons[0].startswith("the reply held no program: it holds no fenced block")
    assert (empty.code, empty.output, empty.submission) == ("", "", None)
    assert (slow.timed_out, slow.exc_type) == (True, "TimeoutError")
    assert slow.reasons[0] == "it was stopped after 60 seconds"


def test_prompts_when_programs_follow_on_others_show_what_the_policy_wants_seen(
    competition: Competition,
) -> None:
    """Drafts and improvements see what worked, repairs the failure, and nobody a duration."""
    policy = AIDEPolicy(drafts=2, debug_probability=1.0)
    code = programs(reply(good(0.5)), reply(BROKEN.format(number=7)), reply(good(0.7)))
    _, found = searched(competition, code, policy=policy, steps=4, packages=["numpy 2.4"])
    assert [node.parent_id for node in found.nodes] == [None, None, "001", "002"]
    first, second, repair, improvement = code.texts("write")
    assert "No attempt has worked so far." in first
    assert "Validation metric: 0.5" in second
    assert "numpy 2.4" in first
    assert "train.csv" in first
    assert "Tell what $1 costs." in first
    assert "fit(eta=1, rate=7)" in repair
    assert "unexpected keyword argument 'rate'" in repair
    assert "It ran for less than the 60 seconds allowed." in repair
    assert good(0.7).strip() in improvement
    assert not any("0.0 s" in node.output or "0.1 s" in node.output for node in found.nodes)


def test_search_when_it_is_repeated_is_the_same_to_the_byte(competition: Competition) -> None:
    """The reference of the journal vouches for all of it; another seed searches elsewhere."""
    first, found = searched(competition, writing(), steps=7)
    again, _ = searched(competition, writing(), steps=7)
    other, elsewhere = searched(competition, writing(), {"episode_id": "s", "seed": 4}, steps=7)
    assert first == again
    assert other["journal"] != first["journal"]
    assert [n.parent_id for n in found.nodes] != [n.parent_id for n in elsewhere.nodes]


async def test_search_when_it_is_asynchronous_finds_the_same(competition: Competition) -> None:
    """Sync and async are one graph, also where branches work side by side."""
    expected, _ = searched(competition, writing(), steps=7, width=3, candidates=2)
    artifacts = MemoryArtifacts()
    async with sandbox(competition) as place:
        agent = build_tree_agent(
            writing(), competition=competition, sandbox=place, artifacts=artifacts,
            feedback_model=reviewing(), steps=7, width=3, candidates=2, seconds=60,
        )  # fmt: skip
        assert await agent.ainvoke({"episode_id": "s"}) == expected


def test_branches_when_they_work_side_by_side_see_what_the_wave_began_with(
    competition: Competition,
) -> None:
    """The last wave is as wide as there are steps left."""
    policy = AIDEPolicy(drafts=9)
    code = writing(lambda text, sample: reply(good(0.5)))
    _, found = searched(competition, code, steps=5, width=2, policy=policy)
    assert [node.step for node in found.nodes] == [0, 1, 2, 3, 4]
    seen = [text.count("Validation metric: 0.5") for text in code.texts("write")]
    assert seen == [0, 0, 2, 2, 4]


def test_model_calls_when_they_are_made_name_their_samples(competition: Competition) -> None:
    """Each call of a search has a name of its own, by search, program and purpose."""
    code, review = writing(), reviewing()
    searched(competition, code, {"episode_id": "x"}, steps=2, feedback_model=review)
    assert min(sample for sample, _ in code.asked) == "x/000/write"
    assert [sample for sample, _ in review.asked] == ["x/000/review", "x/001/review"]


def test_candidates_when_there_are_several_are_run_again_on_fresh_splits(
    competition: Competition,
) -> None:
    """The best mean of the fresh metrics is submitted; one that fails there is passed over."""
    lucky, steady = good(0.9, drift=-0.3), good(0.8, drift=-0.01)
    fails = good(0.85).replace("split * 0.0", "0 // (1 - split)")
    code = programs(*(reply(each) for each in (lucky, steady, fails, good(0.1))))
    out, found = searched(competition, code, steps=4, candidates=3)
    assert [each["node"] for each in out["candidates"]] == ["000", "002", "001"]
    assert out["candidates"][0]["metrics"] == pytest.approx([0.6, 0.3])
    assert out["candidates"][1]["metrics"][0] is None
    assert (out["chosen"], out["metric"]) == ("001", 0.8)
    assert out["submission"] == found.submission("001")


@pytest.mark.parametrize("candidates", [1, 2])
def test_splits_when_nothing_is_run_again_are_not_spoken_of(
    competition: Competition, candidates: int
) -> None:
    """Neither in prompts nor in the environment of programs."""
    shows = f"import os\nprint('split', os.environ.get('SPLIT_SEED'))\n{good(0.5)}"
    code = programs(reply(shows), reply(good(0.4)))
    _, found = searched(competition, code, steps=2, candidates=candidates)
    told = ['int(os.environ.get("SPLIT_SEED", "0"))`' in text for text in code.texts("write")]
    assert told == [candidates > 1] * 2
    assert f"split {0 if candidates > 1 else None}" in found.nodes[0].output


def test_folder_when_it_is_given_has_contents_and_the_best_solution(
    competition: Competition, tmp_path: Path
) -> None:
    """Both are on disk while the search goes on, and outlive it."""
    code = programs(*(reply(good(metric)) for metric in (0.5, 0.8, 0.6)))
    folder = tmp_path / "search"
    seen: list[str | None] = []

    def looking(text: str, sample: str) -> str:
        best = read_best(folder)
        seen.append(None if best is None else best.node.id)
        return feedback(text, sample)

    with sandbox(competition) as place:
        agent = build_tree_agent(
            code, competition=competition, sandbox=place, feedback_model=reviewing(looking),
            folder=folder, steps=3, seconds=60,
        )  # fmt: skip
        out = agent.invoke({"episode_id": "s"})
    assert seen == [None, "000", "001"]
    best = read_best(folder)
    assert best is not None
    assert (best.node.id, best.solution) == ("001", good(0.8))
    assert (folder / "artifacts").is_dir()
    assert out["chosen"] == "001"


def test_search_when_it_is_streamed_tells_of_programs_and_calls(competition: Competition) -> None:
    """Updates come from the branches too, and model replies by their samples."""
    with sandbox(competition) as place:
        agent = build_tree_agent(
            writing(), competition=competition, sandbox=place, feedback_model=reviewing(),
            steps=2, width=2, seconds=60,
        )  # fmt: skip
        modes: Sequence[Any] = ["updates", "messages"]
        parts = list(agent.stream({"episode_id": "s"}, stream_mode=modes, subgraphs=True))
    streamed: Any = parts
    updated = [next(iter(data)) for _, mode, data in streamed if mode == "updates"]
    assert updated.count("execute") == 2
    assert updated[-1] == "choose"
    samples = {data[1]["langgraft_sample"] for _, mode, data in streamed if mode == "messages"}
    assert {"s/000/write", "s/001/write", "s/000/review"} <= samples


def test_sandbox_when_it_fails_stops_the_search(competition: Competition) -> None:
    """A container that died is not the program's doing, and nothing is filed for it."""

    def answer(job: Job, count: int) -> ExecutionResult:
        if count == 1:
            size = (competition.public_dir / "sample_submission.csv").stat().st_size
            return ExecutionResult(0, f"{size}\n", "", duration=0.1)
        raise SandboxFailureError("the engine died")

    agent = build_tree_agent(
        writing(lambda text, sample: reply(good())),
        competition=competition, sandbox=CountingSandbox(answer), steps=1,
    )  # fmt: skip
    with pytest.raises(SandboxFailureError, match="the engine died"):
        agent.invoke({"episode_id": "s"})


def ticking(seconds: float) -> Callable[[], float]:
    """Make a clock that goes on by so much at each look."""
    looks = itertools.count(0, seconds)
    return lambda: next(looks)


def test_search_when_its_hours_are_over_begins_no_further_program(competition: Competition) -> None:
    """Each node of a branch takes 100 s here: three programs of 300 s fill 800 s."""
    code = programs(reply(good(0.5)), reply(good(0.8)), reply(good(0.7)))
    out, found = searched(
        competition, code, steps=9, hours=800 / 3600, clock=ticking(100), candidates=2
    )
    assert [node.metric for node in found.nodes] == [0.5, 0.8, 0.7]
    assert (out["chosen"], out["done"]) == ("001", True)
    assert not out["candidates"] or not out["candidates"][0]["metrics"]  # nothing is run again
    first, second, third = code.texts("write")
    assert "- Steps: 9 of 9 left, 0 % used.\n- Time: about 20 minutes left" in first
    assert "- Steps: 7 of 9 left, 22 % used.\n- Time: about 10 minutes left" in third
    assert second != third


def test_search_when_programs_work_side_by_side_counts_the_slowest(
    competition: Competition,
) -> None:
    """A wave takes as long as its slowest program, so that twice as many fit into the hours."""
    policy = AIDEPolicy(drafts=9)
    code = programs(reply(good(0.5)))
    _, alone = searched(
        competition, code, steps=9, hours=1, sandbox=Slow(competition), policy=policy
    )
    _, two = searched(
        competition, code, steps=9, hours=1, width=2, sandbox=Slow(competition), policy=policy
    )
    assert (len(alone.nodes), len(two.nodes)) == (2, 4)


def test_search_when_another_process_goes_on_with_it_tells_the_time_that_was_used(
    competition: Competition,
) -> None:
    """Of what clocks say nothing but differences counts; another search has all its hours."""
    artifacts, saver = MemoryArtifacts(), InMemorySaver()
    config: Any = {"configurable": {"thread_id": "t"}}
    code = programs(reply(good(0.5)))

    def go_on(steps: int, name: str, clock: Callable[[], float]) -> list[str]:
        before = len(code.asked)
        with sandbox(competition) as place:
            agent = build_tree_agent(
                code, competition=competition, sandbox=place, artifacts=artifacts, steps=steps,
                feedback_model=reviewing(), hours=2000 / 3600, clock=clock, checkpointer=saver,
                seconds=60,
            )  # fmt: skip
            agent.invoke({"episode_id": name}, config)
        return [text.rpartition("- Time: ")[2][:16] for _, text in code.asked[before:]]

    assert go_on(1, "s", ticking(100)) == ["about 40 minutes"]
    later = itertools.count(1_000_000, 100)
    assert go_on(4, "s", lambda: next(later)) == [
        "about 30 minutes",
        "about 30 minutes",
        "about 20 minutes",
    ]
    assert go_on(1, "other", ticking(100)) == ["about 40 minutes"]


class Slow(SubprocessSandbox):
    """Says of each program that it ran for half an hour, as of one that is looked up."""

    def __init__(self, competition: Competition) -> None:
        super().__init__(inputs={"input": competition.public_dir})

    @override
    def run(self, job: Job) -> ExecutionResult:
        return replace(super().run(job), duration=1800.0)


def test_program_when_the_search_ends_before_its_time_teaches_memory_nothing(
    competition: Competition,
) -> None:
    """What only the end of the hours stopped tells of no program."""
    memory = CodingMemory(InMemoryStore())
    code = programs(reply("import time\ntime.sleep(60)\n"))
    # recall, write: 200 s of 201
    _, found = searched(
        competition, code, steps=3, hours=201 / 3600, clock=ticking(100), memory=memory, seconds=60
    )
    (node,) = found.nodes
    assert (node.timed_out, node.reasons[0]) == (True, "it was stopped after 1 second")
    assert node.error is None
    assert not memory.content().items


INVALID = good(0.9).replace("3,0.4", "4,0.4")


@pytest.mark.parametrize(("setting", "chosen"), [(True, "000"), (False, "001")])
def test_submission_when_it_is_not_valid_is_a_failure_unless_existence_is_all_that_counts(
    competition: Competition, setting: bool, chosen: str
) -> None:
    """As AIDE in MLE-bench has it, a file that is there is enough."""
    code = programs(reply(good(0.5)), reply(INVALID), reply(ABSENT))
    out, found = searched(competition, code, invalid_is_bug=setting)
    assert out["chosen"] == chosen
    assert [node.is_buggy for node in found.nodes] == [False, setting, True]
    assert found.nodes[1].submission == "invalid"


@pytest.mark.parametrize("hours", [0, -1.0, float("nan"), float("inf")])
def test_hours_when_they_are_no_time_are_refused(competition: Competition, hours: float) -> None:
    """Before anything is asked."""
    with pytest.raises(SettingsError, match="hours"):
        searched(competition, programs(reply(good())), hours=hours)


@pytest.mark.parametrize(
    ("gpus", "said"), [(None, "none"), (2, "2"), ("all", "all that the machine has")]
)
def test_prompts_when_a_program_is_asked_for_say_what_it_may_use(
    competition: Competition, gpus: Any, said: str
) -> None:
    """Also when debugging: processors, memory, the time of one program, what is left."""
    policy = AIDEPolicy(drafts=1, debug_probability=1.0)
    code = programs(reply(BROKEN.format(number=1)), reply(good(0.5)))
    searched(competition, code, policy=policy, gpus=gpus, weights=["timm/net"])
    for number, text in enumerate(code.texts("write")):
        assert f"- Processors: 2; graphics processors: {said}.\n" in text
        assert "- Memory: 2,048 MiB for all processes" in text
        assert "the workspace: 512 MiB." in text
        assert "- One execution: 60 seconds at most, and never longer" in text
        assert f"- Steps: {3 - number} of 3 left, " in text
        assert "- Time: the run as a whole has no limit.\n" in text
        assert "(HF_HOME and TORCH_HOME are set): timm/net." in text
        assert "whatever else the task's description asks for" in text
        assert "was split anew" in text
