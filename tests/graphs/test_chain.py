"""The chain agent with a real sandbox: whatever a model replies, the run ends, and says why."""

import itertools
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from chain_cases import Reply, ToolModel, call, calls, ran, scripted, spoiled
from langchain_core.language_models import FakeListChatModel
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from tree_cases import good, sandbox

from langgraft._core.errors import SettingsError
from langgraft.environments.competitions.competition import Competition
from langgraft.graphs import build_chain_agent
from langgraft.nodes.artifacts import MemoryArtifacts
from langgraft.nodes.workbench.limits import RunLimits, TokenPrices, estimated_tokens
from langgraft.nodes.workbench.log import (
    Action,
    Event,
    EventLog,
    Observation,
    log_lines,
    read_log,
    steps_of,
)

pytest.importorskip("pandas", reason="needs pandas: pip install 'langgraft[mle]'")

WORK: Sequence[Reply] = (
    call("run_bash", "I look at the data.", command="ls input"),
    call("run_python", code="x = 20\nx + 1"),
    call("run_python", code="x * 2"),
    call("edit_file", command="create", path="s.py", file_text=good(0.7)),
    call("edit_file", command="str_replace", path="s.py", old_str="0.7", new_str="0.8"),
    call("edit_file", command="undo_edit", path="s.py"),
    call("edit_file", command="insert", path="s.py", insert_line=0, new_str="# mine"),
    call("edit_file", command="view", path="s.py", view_range=[1, 2]),
    calls(("run_bash", {"command": "python3 s.py"}), ("finish", {})),
    call("validate_submission"),
    call("think", thought="It is valid."),
    call("finish", message="Done."),
)


def seen(log: Sequence[Event]) -> list[str]:
    """Return the observations' texts."""
    return [event.text for event in log if isinstance(event, Observation)]


def names(log: Sequence[Event]) -> list[str]:
    """Return what the agent did."""
    return [each.name for each in log if isinstance(each, Action) and each.source == "agent"]


async def test_run_when_the_model_works_by_tools_hands_in_what_it_made(
    competition: Competition, tmp_path: Path
) -> None:
    """Tools do what they say, the kernel lives on, log, submission and program are left; sync and
    async are one agent.
    """  # noqa: D205
    model = scripted(*WORK)
    out, log = ran(competition, model, folder=tmp_path / "run", limits=RunLimits(steps=12))
    assert (out["ended"], out["steps"], out["metric"]) == ("finished", 12, 0.7)
    texts = seen(log.events)
    assert "train.csv" in texts[0]
    assert texts[2].startswith("40\n")
    assert texts[7].endswith("     1  # mine\n     2  import os")
    assert "valid" in texts[9]
    assert names(log.events)[8] == "run_bash"
    assert "(finish)" in model.asked[9][-1].text
    assert "Steps: 3 of 12 left, 75 % used." in model.asked[9][-1].text
    assert model.bound == ["run_bash", "run_python", "edit_file", "validate_submission", "think",
                           "finish"]  # fmt: skip
    assert model.samples[9] == "e/step-9/think"
    left = {path.name for path in (tmp_path / "run").iterdir()}
    assert left == {"artifacts", "events.jsonl", "submission.csv", "solution.py"}
    assert (tmp_path / "run" / "events.jsonl").read_text() == log_lines(log)
    assert "made-up" not in log_lines(log)
    assert "import os" in (tmp_path / "run" / "solution.py").read_text()
    _, other = await aran(competition, WORK, limits=RunLimits(steps=12))
    assert log_lines(other) == log_lines(log)


async def test_run_when_replies_are_hostile_goes_on(competition: Competition) -> None:
    """Unreadable calls, unknown tools, nothing at all, binary output, paths that lead out: each is
    a step that says what is wrong.
    """  # noqa: D205
    hostile = (
        spoiled("run_python", '{"code": "'),
        call("rm -rf /\ud83d", x="\ud83d"),
        call("run_bash", command=["ls"]),
        AIMessage(""),
        "What shall I do?",
        call("run_bash", command="head -c 3000 /dev/urandom | tr -d '\\n' ; printf 'a\\0b'"),
        call("run_bash", command="x\0y"),
        call("edit_file", command="create", path="../out", file_text="x"),
        call("edit_file", command="create", path="input/train.csv", file_text="x"),
        call("edit_file", command="view", path="big"),
        call("edit_file", command="str_replace", path="nowhere"),
        call("run_python", code="raise ValueError('\ud83d <langgraft'"),
        call("validate_submission"),
        call("browse", url="https://example.com"),
        call("finish"),
    )
    out, log = await aran(competition, hostile)
    assert (out["ended"], out["steps"], out["submission"]) == ("finished", len(hostile), "")
    steps = steps_of(log)
    invalid = {1: "no tool", 0: "JSON object", 2: "command", 13: "no tool 'browse'"}
    for place, told in invalid.items():
        assert steps[place].action == "invalid"
        assert told in steps[place].output
    assert [steps[place].action for place in (3, 4)] == ["message", "message"]
    assert steps[5].executed
    assert all(step.failed for step in steps[6:14])
    assert steps[12].submission == "absent"
    log_lines(log).encode()


async def aran(
    competition: Competition, replies: Sequence[Reply], **settings: Any
) -> tuple[dict[str, Any], EventLog]:
    """Run the agent without blocking."""
    artifacts = MemoryArtifacts()
    async with sandbox(competition) as place:
        agent = build_chain_agent(
            scripted(*replies), competition=competition, sandbox=place, artifacts=artifacts,
            seconds=60, **settings,
        )  # fmt: skip
        out = await agent.ainvoke({"episode_id": "e"})
    return out, read_log(artifacts, out["log"])


CIRCLES: dict[str, Sequence[Reply]] = {
    "pairs": [call("run_bash", command="ls input")] * 4,
    "errors": [call("run_python", code="1/0")] * 3,
    "messages": ["I am done."] * 3,
    "alternation": [call("think", thought=each) for each in ("to be", "or not") * 3],
}


@pytest.mark.parametrize("rule", CIRCLES)
def test_run_when_the_agent_goes_in_circles_stops(competition: Competition, rule: str) -> None:
    """Each rule ends the run, by its name, as soon as it holds."""
    out, _ = ran(competition, scripted(*CIRCLES[rule], call("finish")))
    assert (out["ended"], out["steps"]) == (f"stuck: {rule}", len(CIRCLES[rule]))


def test_run_when_it_may_recover_goes_on_without_the_circles_and_stops_in_the_end(
    competition: Competition,
) -> None:
    """The loop is out of sight, the agent is told, and so often as is allowed."""
    first = call("run_bash", command="echo first")
    loop = call("run_bash", command="cat nothing-there")
    model = scripted(first, *[loop] * 3, call("run_bash", command="echo second"), *[loop] * 9)
    out, log = ran(competition, model, on_stuck="recover", recoveries=2)
    assert (out["ended"], out["steps"]) == ("stuck: errors", 11)
    assert [step.attempt for step in steps_of(log)] == [0] * 4 + [1] * 4 + [2] * 3
    prompt = "\n".join(each.text for each in model.asked[5])
    assert "cat nothing-there" not in prompt + str(model.asked[5])
    assert "failed three times in a row" in prompt
    assert "first" in prompt
    assert "second" in prompt


@pytest.mark.parametrize("known", [None, 8_000])
def test_run_when_the_model_reads_little_never_ends_of_it(
    competition: Competition, known: int | None
) -> None:
    """With a model of 8,000 tokens a long run is condensed over and over, told or untold."""
    model = ToolModel(rule=lambda _, step: call("think", thought=f"{step} " * 700), context=8_000)
    out, log = ran(competition, model, limits=RunLimits(steps=60), context=known)
    assert (out["ended"], out["steps"]) == ("steps", 60)
    condensed = [each for each in log.events if isinstance(each, Action) and "cond" in each.name]
    assert 5 < len(condensed) < 40
    assert len(model.asked[-1]) > 4
    if known:
        assert max(map(estimated_tokens, model.asked)) < 7_000


def test_run_when_the_first_message_alone_is_too_long_trims_it(competition: Competition) -> None:
    """A task longer than the window is shown with its middle left out; with no room at all the run
    ends, and says why.
    """  # noqa: D205
    long = replace(competition, description="word " * 20_000)
    work = [call("run_bash", command=f"echo {number}") for number in range(3)]
    for context in (None, 8_000):
        model = scripted(*work, call("finish"), context=8_000)
        out, log = ran(long, model, context=context)
        assert out["ended"] == "finished"
        assert seen(log.events)[1].startswith("1\n")
        assert "left out]" in model.asked[-1][1].text
        assert "echo 2" in str(model.asked[-1])
    out, _ = ran(long, scripted(call("finish"), context=50))
    assert (out["ended"], out["steps"]) == ("context", 0)


def test_run_when_a_limit_is_reached_ends_by_it(competition: Competition) -> None:
    """Steps, hours and money each end a run, and what lies there is handed in."""
    endless = [call("think", thought=str(number)) for number in range(50)]
    out, _ = ran(competition, scripted(*WORK), limits=RunLimits(steps=9))
    assert (out["ended"], out["metric"], bool(out["submission"])) == ("steps", 0.7, True)
    ticks = iter(range(0, 10**6, 100))
    out, _ = ran(competition, scripted(*endless), limits=RunLimits(hours=0.5),
                 clock=lambda: next(ticks))  # fmt: skip
    assert (out["ended"], out["steps"]) == ("hours", 9)
    model = scripted(*endless)
    limits, prices = RunLimits(dollars=0.01), TokenPrices(prompt=1.0, completion=4.0)
    out, _ = ran(competition, model, limits=limits, prices=prices)
    assert out["ended"] == "dollars"
    sent = sum(map(estimated_tokens, model.asked))
    assert 0.005 < sent / 1e6 < 0.01


def test_run_when_little_time_is_left_gives_executions_no_more(competition: Competition) -> None:
    """What runs near the end of the run's hours is stopped with it."""
    work = [call("run_python", code="import time; time.sleep(50)"), call("finish")]
    ticks = iter(range(0, 10**6, 100))
    # The model's call takes 100 s of 101.
    out, log = ran(competition, scripted(*work), limits=RunLimits(hours=101 / 3600),
                   clock=lambda: next(ticks))  # fmt: skip
    assert steps_of(log)[0].timed_out
    assert out["ended"] == "hours"


def test_run_when_it_can_browse_reads_pages_and_goes_on_where_they_cannot_be_read(
    competition: Competition,
) -> None:
    """`browse` is an action where something is passed for it; what it raises is told."""

    def page(url: str) -> str:
        if "gone" in url:
            raise OSError("no such host")
        return f"\ud83dWelcome to {url}"

    work = [call("browse", url=each) for each in ("a.org", "gone.org")]
    model = scripted(*work, call("finish"))
    _, log = ran(competition, model, browse=page)
    assert "browse" in model.bound
    assert seen(log.events)[:2] == [
        "?Welcome to a.org", "The page could not be read: OSError: no such host",
    ]  # fmt: skip


def test_build_when_settings_cannot_be_refuses_them(competition: Competition) -> None:
    """A model without tools, and numbers out of range, are found before anything is paid."""
    with sandbox(competition) as place:
        wrong: list[tuple[dict[str, Any], str]] = [
            ({"model": FakeListChatModel(responses=["x"])}, "calls no tools"),
            ({"context": 0}, "context"),
            ({"recoveries": -1}, "recoveries"),
            ({"on_stuck": "panic"}, "on_stuck"),
            ({"seconds": float("nan")}, "seconds"),
            ({"browse": "firefox"}, "browse"),
            ({"packages": "numpy"}, "packages"),
            ({"limits": RunLimits(dollars=1)}, "prices"),
        ]
        for settings, told in wrong:
            with pytest.raises(SettingsError, match=told):
                build_chain_agent(
                    **{"model": scripted("x"), **settings}, competition=competition, sandbox=place
                )


def test_checkpoint_when_a_run_is_long_is_no_larger(competition: Competition) -> None:
    """The state holds references and numbers only."""
    saver = InMemorySaver()
    thread: Any = {"configurable": {"thread_id": "t"}}
    model = ToolModel(rule=lambda _, step: call("think", thought=f"{step} " * 500))
    with sandbox(competition) as place:
        agent = build_chain_agent(
            model, competition=competition, sandbox=place, checkpointer=saver,
            limits=RunLimits(steps=30),
        )  # fmt: skip
        agent.invoke({"episode_id": "e"}, thread)
    sizes = [len(str(each.values)) for each in agent.get_state_history(thread)]
    assert max(sizes) < 1_500


@pytest.mark.parametrize("use_all", [True, False])
def test_prompts_when_the_agent_may_finish_say_so(competition: Competition, use_all: bool) -> None:
    """It is asked to use all its time, or it is told that it need not."""
    model = scripted(*WORK)
    ran(competition, model, limits=RunLimits(steps=12), use_all_time=use_all)
    system = model.asked[0][0].text
    assert "- `finish` ends the work at once" in system
    assert ("expected to use all" in system, "need not use all" in system) == (use_all, not use_all)


def test_prompts_when_time_goes_by_tell_the_time_that_the_state_has(
    competition: Competition,
) -> None:
    """The bounds end each prompt, once, and tell how much of steps and hours is left."""
    looks = itertools.count(0, 900)
    model = scripted(*WORK)
    limits = RunLimits(steps=12, hours=10)
    ran(competition, model, limits=limits, clock=lambda: next(looks), gpus=1, weights=["timm/net"])
    told = [messages[-1].text.rpartition("What a run may use")[2] for messages in model.asked]
    assert "; graphics processors: 1.\n" in told[0]
    weights = told[0][told[0].index("\n- Pretrained") :]
    assert weights.endswith(": timm/net.")
    assert told[0].endswith(
        "12 of 12 left, 0 % used.\n- Time: about 10 hours left of 10 hours, 0 % used." + weights
    )
    assert told[9].endswith(
        "3 of 12 left, 75 % used.\n- Time: about 6 hours left of 10 hours, 40 % used." + weights
    )
    assert all(
        sum(each.text.count("What a run may use") for each in messages) == 1
        for messages in model.asked
    )
