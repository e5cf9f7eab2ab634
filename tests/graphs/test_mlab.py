"""MLAB: an agent that replies in six fields and sees its last three steps."""

import itertools
import re
from pathlib import Path
from typing import Any

import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_core.messages import AIMessage
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.store.memory import InMemoryStore
from mlab_cases import FINAL, INPUT, edit, execute, fenced, ran, six, stepping
from tree_cases import BROKEN, RuleModel, good, sandbox

from langgraft import CodingMemory
from langgraft._core.errors import SettingsError
from langgraft.environments.competitions.competition import Competition
from langgraft.graphs import build_mlab_agent
from langgraft.memory.providers.coding import coding_preset
from langgraft.nodes.artifacts import FolderArtifacts, MemoryArtifacts
from langgraft.nodes.workbench.limits import RunLimits, TokenPrices
from langgraft.nodes.workbench.log import Action, EventLog, log_lines, read_log, steps_of
from langgraft.nodes.workbench.start import restore_run_memory

pytestmark = pytest.mark.matrix  # whole runs

pytest.importorskip("pandas", reason="needs pandas: pip install 'langgraft[mle]'")

LIST = six("List Files", {"dir_path": "."})
LONG = "for number in range(2000):\n    print('line', number)\n"


def actions(log: EventLog) -> list[Action]:
    """Return what the agent did."""
    return [event for event in log.events if isinstance(event, Action) and event.source == "agent"]


def whole() -> RuleModel:
    """Make a model that works at the task from its first look to its submission."""
    return stepping(
        six("Understand File", {"file_name": "input/train.csv", "things_to_look_for": "columns"}),
        edit("train.py", "Fit."),
        execute("train.py"),
        edit("train.py", "Fit better.", "Pass eta only. So it runs. And more."),
        execute("train.py", "I run it again."),
        six("Validate Submission"),
        aside=[fenced(BROKEN.format(number=1)), fenced(good(0.7))],
        understand="It has id, x and target.",
        diagnose='{"package": "general", "error": "TypeError: rate", "fix": "", "kind": "code"}',
        judge='{"action": "add"}',
    )


def test_run_when_it_ends_has_submission_metric_and_every_step(
    competition: Competition, tmp_path: Path
) -> None:
    """The log tells what was done and said, and the folder holds what is left of the run."""
    model = whole()
    kept = FolderArtifacts(tmp_path / "run" / "artifacts")
    out, log = ran(competition, model, artifacts=kept, folder=tmp_path / "run")
    assert (out["ended"], out["steps"], out["metric"], out["done"]) == ("finished", 7, 0.7, True)
    steps = steps_of(log)
    assert [step.action for step in steps][-2:] == ["Validate Submission", "Final Answer"]
    assert [step.failed for step in steps] == [False, False, True, False, False, False, False]
    assert steps[2].command == '{"script_name":"train.py"}'
    assert (steps[2].exc_type, steps[4].program) == ("TypeError", good(0.7))
    assert actions(log)[1].arguments["answer"] == BROKEN.format(number=1)
    assert actions(log)[0].arguments["answer"] == "It has id, x and target."
    assert {"Reflection", "Fact Check"} < actions(log)[0].arguments["fields"].keys()  # type: ignore[union-attr]
    asked = model.texts("edit")
    assert f"```python\n{BROKEN.format(number=1)}```" in asked[1]
    assert (tmp_path / "run" / "events.jsonl").read_text() == log_lines(log)
    assert (tmp_path / "run" / "solution.py").read_text() == good(0.7)
    assert (tmp_path / "run" / "submission.csv").exists()


def test_prompts_when_steps_go_by_show_the_last_three_alone(competition: Competition) -> None:
    """Each prompt has the task, three steps whole, and what is left, but no clock."""
    steps = [six("List Files", {"dir_path": "."}, f"thought {at}") for at in range(5)]
    model = stepping(*steps)
    ran(competition, model, limits=RunLimits(steps=9), packages=["numpy 2.4"])
    prompts = model.texts("think")
    shown = [re.findall(r"^## Step (\d+)$", prompt, re.MULTILINE) for prompt in prompts]
    assert shown == [[], ["0"], ["0", "1"], ["0", "1", "2"], ["1", "2", "3"], ["2", "3", "4"]]
    assert "Thought: thought 2\n" in prompts[5]
    assert "thought 1" not in prompts[5]
    assert prompts[5].count("```\ninput/\n```") == 3
    assert "\n- Steps: 4 of 9 left, 55 % used.\n" in prompts[5]
    assert "\n- Time: about 24 hours left of 24 hours, 0 % used.\n" in prompts[5]
    for said in ("Tell what $1 costs.", "numpy 2.4", "train.csv: 2 rows", "only your last 3 steps"):
        assert all(said in prompt for prompt in prompts)


def test_reply_when_it_has_not_the_form_is_asked_for_again_and_is_no_step(
    competition: Competition,
) -> None:
    """The complaint says what is wrong, and the log keeps the replies that were none."""
    replies = iter(["I am done.", LIST.replace("Thought:", "Idea:"), LIST, FINAL])
    model = RuleModel(rule=lambda _text, _sample: next(replies))
    out, log = ran(competition, model, retries=2)
    assert (out["steps"], out["ended"]) == (2, "finished")
    first, last = actions(log)
    said: Any = first.arguments["asked"]
    assert [each["problem"] for each in said] == [
        "the field `Reflection:` is missing",
        "the field `Thought:` is missing",
    ]
    assert said[0]["said"] == "I am done."
    assert "asked" not in last.arguments
    complaints = [text for _, text in model.asked if "cannot be used" in text]
    assert "is missing" in complaints[0]


def test_run_when_no_reply_has_the_form_ends_and_still_submits(competition: Competition) -> None:
    """What was said is in the log, and what lies in the workspace counts."""
    wrote = (edit("train.py"), execute("train.py"), "No.")
    model = stepping(*wrote, aside=[fenced(good(0.6))])
    out, log = ran(competition, model, retries=1)
    assert (out["ended"], out["metric"], bool(out["submission"])) == ("no valid reply", 0.6, True)
    last = actions(log)[-1]
    assert (last.name, last.arguments["said"], len(model.texts("think"))) == ("invalid", "No.", 4)


def test_model_when_it_refuses_is_asked_again_until_the_run_ends(competition: Competition) -> None:
    """A refusal is no step, and raises nothing."""
    refusal = AIMessage("", additional_kwargs={"refusal": "I will not."})
    out, log = ran(competition, RuleModel(rule=lambda *_: refusal), retries=1)
    assert out["ended"] == "no valid reply"
    problem = str(actions(log)[-1].arguments["problem"])
    assert problem == "the model gave none: refusal: I will not."


def test_step_when_its_tool_or_input_cannot_be_used_is_one_and_told(
    competition: Competition,
) -> None:
    """It counts as a step that failed, and the run goes on."""
    model = stepping(six("Surf", {}), six("Execute Script", "{nothing"), LIST)
    _, log = ran(competition, model)
    steps = steps_of(log)
    assert [(step.action, step.failed) for step in steps[:3]] == [
        ("invalid", True),
        ("invalid", True),
        ("List Files", False),
    ]
    assert steps[0].output.startswith("Not done: there is no tool 'Surf'; there are: List Files,")
    assert "Action: Surf\nAction Input: {}" in model.texts("think")[1]


def test_tools_when_their_model_gives_nothing_tell_so(competition: Competition) -> None:
    """Neither a reply without a script nor a file that cannot be shown ends the run."""
    absent = {"file_name": "absent.md", "things_to_look_for": "x"}
    outside = {"script_name": "a.py", "edit_instruction": "x", "save_name": "/etc/a.py"}
    model = stepping(
        edit("train.py"),
        six("Understand File", absent),
        six("Edit Script (AI)", outside),
        aside=["Sorry."] * 3,
    )
    _, log = ran(competition, model)
    told = [step.output for step in steps_of(log)]
    assert told[0].startswith("Not done: no model gave an answer (it holds no fenced block")
    assert told[1] == "Not done: there is no file absent.md."
    assert told[2].startswith("Not done: /etc/a.py is not inside the workspace")
    assert model.texts("understand") == []


def test_file_when_it_is_long_is_read_in_parts_that_are_put_together(
    competition: Competition,
) -> None:
    """Ten parts of 10,000 characters are read, and what is beyond is said not to be."""
    text = "".join(f"{number:07}\n" for number in range(13_000))
    (competition.public_dir / "notes.txt").write_text(text)
    wanted = {"file_name": "input/notes.txt", "things_to_look_for": "sevens"}
    model = stepping(six("Understand File", wanted), understand="Seen.")
    _, log = ran(competition, model)
    asked = model.texts("understand")
    assert len(asked) == 11
    assert any("part 10 of 10" in text for text in asked)
    told = "only the first 100,000 of 104,000 characters were read"
    assert actions(log)[0].arguments["answer"] == f"Seen.\n\n[{told}]"


@pytest.mark.parametrize(("said", "shown"), [("In short.", "In short."), ("", "line 1999\n")])
def test_observation_when_it_is_long_is_shown_in_short_and_logged_whole(
    said: str, shown: str, competition: Competition
) -> None:
    """Where no model shortens it, its beginning and its end are shown."""
    model = stepping(edit("a.py"), execute("a.py"), aside=[fenced(LONG)], summarize=said)
    _, log = ran(competition, model)
    assert len(steps_of(log)[1].output) > 15_000
    prompt = model.texts("think")[2]
    assert shown in prompt
    assert len(prompt) < 15_000
    assert len(model.texts("summarize")) == (2 if said else 1)


def test_file_when_no_part_of_it_is_read_is_told_as_not_done(competition: Competition) -> None:
    """An answer that is none is no observation of the file."""
    wanted = {"file_name": "input/train.csv", "things_to_look_for": "columns"}
    _, log = ran(competition, stepping(six("Understand File", wanted), understand=""))
    step = steps_of(log)[0]
    assert step.failed
    assert step.output == "Not done: no model gave an answer (the model said nothing)."


@pytest.mark.parametrize(("room", "ended"), [(6400, "finished"), (3000, "context")])
def test_prompt_when_the_model_has_no_room_shows_less_until_nothing_is_left_to_cut(
    room: int, ended: str, competition: Competition
) -> None:
    """Steps go first, then their middles, then the task's; only then the run ends."""
    long = "x = '" + "long " * 2000 + "'\n"
    model = stepping(*[edit("a.py")] * 4, aside=[fenced(f"{long}y = {at}\n") for at in range(4)])
    rule = model.rule

    def bounded(text: str, sample: str) -> str | AIMessage:
        if sample.split("/")[2] == "think" and len(text) > room:
            raise ContextOverflowError("too long")
        return rule(text, sample)

    out, _ = ran(competition, RuleModel(rule=bounded), limits=RunLimits(steps=6))
    assert out["ended"] == ended
    assert out["steps"] == (5 if ended == "finished" else 0)


@pytest.mark.parametrize(
    ("limits", "steps", "ended"),
    [
        (RunLimits(steps=2), 2, "steps"),
        (RunLimits(steps=9, hours=0.01), 2, "hours"),
        (RunLimits(steps=9, dollars=0.002), 1, "dollars"),
    ],
)
def test_run_when_a_limit_is_reached_ends_by_it(
    limits: RunLimits, steps: int, ended: str, competition: Competition
) -> None:
    """A clock that jumps ten seconds at each look, and a dollar for a million tokens."""
    clock = itertools.count(0, 10)
    model = stepping(*[LIST] * 9)
    prices = TokenPrices(prompt=1.0, completion=1.0)
    out, _ = ran(competition, model, limits=limits, prices=prices, clock=lambda: next(clock))
    assert (out["ended"], out["steps"]) == (ended, steps)


async def test_run_when_held_asynchronously_has_the_same_log(competition: Competition) -> None:
    """One logic, two drivers."""
    _, log = ran(competition, whole())
    kept = MemoryArtifacts()
    with sandbox(competition) as place:
        agent = build_mlab_agent(whole(), competition=competition, sandbox=place, artifacts=kept)
        out = await agent.ainvoke(INPUT)
    assert log_lines(read_log(kept, out["log"])) == log_lines(log)


def _memory() -> CodingMemory:
    return CodingMemory(InMemoryStore(), settings=coding_preset("verified"))


@pytest.mark.parametrize("at", ["think", "diagnose"])
def test_run_when_it_is_taken_up_elsewhere_ends_with_the_same_log(
    at: str, competition: Competition
) -> None:
    """Another agent with another workspace does again what was done, and asks nothing again."""
    memory = _memory()
    _, log = ran(competition, whole(), memory=memory)
    kept, saver, config = MemoryArtifacts(), InMemorySaver(), {"configurable": {"thread_id": "t"}}
    first, again = whole(), _memory()
    rule, crashes = first.rule, [at]

    def crashing(text: str, sample: str) -> str | AIMessage:
        _, step, what = sample.split("/")[:3]
        if what in crashes and (step == "step-4" or what == "diagnose"):
            crashes.clear()
            raise RuntimeError("gone")
        return rule(text, sample)

    def agent(place: Any, memory: CodingMemory) -> Any:
        return build_mlab_agent(
            RuleModel(rule=crashing),
            competition=competition,
            sandbox=place,
            memory=memory,
            artifacts=kept,
            checkpointer=saver,
        )

    with sandbox(competition) as place, pytest.raises(RuntimeError, match="gone"):
        agent(place, again).invoke(INPUT, config, durability="sync")
    with sandbox(competition) as place:
        taken_up, fresh = agent(place, again), _memory()
        restore_run_memory(fresh, kept, taken_up.get_state(config).values)
        out = agent(place, fresh).invoke(None, config, durability="sync")
    assert log_lines(read_log(kept, out["log"])) == log_lines(log)
    assert fresh.content().digest == memory.content().digest


def test_memory_when_a_script_fails_and_then_runs_has_the_fix_for_the_next_run(
    competition: Competition,
) -> None:
    """What was said beside the edit is proven, and stands in the prompts of another run."""
    memory = _memory()
    _, log = ran(competition, whole(), memory=memory)
    assert steps_of(log)[2].error is not None
    entries = [item for item in memory.content().items.values() if item.metadata.get("verified")]
    assert [item.metadata["fix"] for item in entries] == ["Pass eta only. So it runs."]
    model = stepping(LIST)
    _, told = ran(competition, model, memory=memory, learn=False)
    assert all("Pass eta only." in prompt for prompt in model.texts("think"))
    assert "Pass eta only." in steps_of(told)[0].recalled


def test_script_when_it_worked_before_and_is_run_again_puts_no_other_right(
    competition: Competition,
) -> None:
    """Scripts of one run have most of their words in common; going back to one is no fix."""
    steps = edit("good.py"), execute("good.py"), edit("bad.py"), execute("bad.py")
    broken = good(0.7) + "raise TypeError('fit() got an unexpected keyword argument')\n"
    model = stepping(*steps, execute("good.py"), aside=[fenced(good(0.7)), fenced(broken)])
    memory = _memory()
    ran(competition, model, memory=memory)
    entries = memory.content().items.values()
    assert [bool(item.metadata.get("verified")) for item in entries] == [False]


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({"window": 0}, "window must be a whole number of at least 1, got 0"),
        ({"retries": -1}, "retries must be a whole number of at least 0, got -1"),
        ({"seconds": 0}, "seconds must be a number above 0, got 0"),
        ({"limits": RunLimits(dollars=1.0)}, "needs to know what tokens cost"),
        (
            {"packages": "numpy"},
            "`packages` of build_mlab_agent must be a list or None, got 'numpy'",
        ),
        (
            {"memory": InMemoryStore()},
            "`memory` of build_mlab_agent must be a MemoryProvider, such as",
        ),
    ],
)
def test_agent_when_a_setting_is_not_possible_is_not_built(
    settings: dict[str, Any], problem: str, competition: Competition
) -> None:
    """The message says what is wrong, before a model is paid."""
    with sandbox(competition) as place:
        given: dict[str, Any] = {"model": stepping(), "competition": competition, "sandbox": place}
        with pytest.raises(SettingsError, match=problem):
            build_mlab_agent(**{**given, **settings})


@pytest.mark.parametrize("use_all", [True, False])
def test_prompts_when_the_agent_may_finish_say_so(competition: Competition, use_all: bool) -> None:
    """It is asked to use all its time, or it is told that it need not."""
    model = whole()
    ran(competition, model, use_all_time=use_all)
    first, *_ = model.texts("think")
    assert "- `Final Answer` ends the work at once" in first
    assert ("expected to use all" in first, "need not use all" in first) == (use_all, not use_all)
