"""The forms in which conversations are written, and which episodes are."""

import json
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from chain_study import ChainPlan, ChainStudy, chain_plan, run_chain
from hypothesis import given
from hypothesis import strategies as st

from langgraft._core.errors import InfrastructureError, InputError, PlanError
from langgraft.benchmarks.harness.conversations import (
    Choice,
    Form,
    Message,
    PlayedEpisode,
    Recalled,
    export,
    up_to_the_last_learned,
    write_inspect,
)
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.study import PlanLogReader, RunSpec
from langgraft.benchmarks.studies import studies

REPLIES = st.lists(st.booleans(), min_size=1, max_size=12)
"""Of each reply of a conversation, whether something is to be learned from it."""


def conversation(learned: Sequence[bool]) -> list[Message]:
    """Return a conversation with these replies."""
    messages = [Message("system", "rules")]
    for number, each in enumerate(learned):
        messages += [Message("user", f"u{number}"), Message("assistant", f"a{number}", each)]
    return messages


def episode(**fields: Any) -> PlayedEpisode:
    """Return an episode that went well."""
    told = up_to_the_last_learned(conversation([True]))
    shown = Recalled(0, "q", "block", ({"id": "i"},), (0.5,))
    given: dict[str, Any] = {
        "run": "r",
        "condition": "agg",
        "split": "evaluate",
        "domain": "d",
        "task": "d/1",
        "success": True,
        "score": 1.0,
        "steps": [("", "", "seen"), ("thought", "act", "done")],
        "recalled": lambda: (shown,),
        "conversations": lambda _: told,
    }
    return PlayedEpisode(**given | fields)


def rows(episodes: Sequence[PlayedEpisode], form: Form, **options: Any) -> list[Any]:
    """Return what an export of all episodes holds."""
    with_memory = options.pop("with_memory", True)
    return [
        json.loads(line)
        for line in export(episodes, form, Choice(**options), with_memory=with_memory).lines
    ]


@given(REPLIES)
def test_prompt_completions_when_made_hold_each_learned_reply_after_all_before_it(
    learned: list[bool],
) -> None:
    """A row a reply, whose completion is that reply alone."""
    told = conversation(learned)
    plain = [each.to_json() for each in told]
    found = [row for each in up_to_the_last_learned(told) for row in each.prompt_completions()]
    assert found == [
        {"prompt": plain[:n], "completion": [plain[n]]}
        for n, each in enumerate(told)
        if each.learned
    ]


@given(REPLIES)
def test_openai_when_replies_are_not_learned_gives_them_no_weight(learned: list[bool]) -> None:
    """It ends with a reply that counts, and only replies have a weight."""
    for each in up_to_the_last_learned(conversation(learned)):
        messages: Any = each.openai()["messages"]
        assert messages[-1]["role"] == "assistant"
        assert "weight" not in messages[-1]
        weights = [m.get("weight", 1) for m in messages if m["role"] == "assistant"]
        assert weights == [int(one) for one in learned[: len(weights)]]
        assert not any("weight" in m for m in messages if m["role"] != "assistant")


def test_conversation_when_nothing_is_to_be_learned_is_none() -> None:
    """There would be nothing to train on."""
    assert up_to_the_last_learned(conversation([False, False])) == ()


def test_trajectory_when_asked_for_tells_the_episode_and_what_was_recalled() -> None:
    """One object; without memory nothing tells of it."""
    (row,) = rows([episode()], "trajectories")
    assert row == {
        "run": "r",
        "condition": "agg",
        "split": "evaluate",
        "domain": "d",
        "task": "d/1",
        "success": True,
        "score": 1.0,
        "steps": [
            {"thought": "", "action": "", "observation": "seen"},
            {"thought": "thought", "action": "act", "observation": "done"},
        ],
        "recalled": [
            {"step": 0, "query": "q", "block": "block", "items": [{"id": "i"}], "scores": [0.5]}
        ],
    }
    (bare,) = rows([episode()], "trajectories", with_memory=False)
    assert bare == {name: value for name, value in row.items() if name != "recalled"}


@pytest.mark.parametrize(
    ("options", "left"),
    [
        ({}, ["d/1", "d/2", "e/1"]),
        ({"success": True}, ["d/1", "e/1"]),
        ({"split": "train"}, ["e/1"]),
        ({"split": "evaluate"}, ["d/1", "d/2"]),
        ({"conditions": ("none",)}, ["d/2"]),
        ({"conditions": ("none", "agg"), "domains": ("d",)}, ["d/1", "d/2"]),
        ({"tasks": ("e/1",)}, ["e/1"]),
    ],
)
def test_episodes_when_chosen_pass_all_that_is_given(
    options: dict[str, Any], left: list[str]
) -> None:
    """Each filter narrows; several names of one kind widen."""
    played = [
        episode(),
        episode(task="d/2", success=False, condition="none"),
        episode(task="e/1", domain="e", split="train"),
    ]
    assert [row["task"] for row in rows(played, "trajectories", **options)] == left


def test_choice_when_a_name_is_of_no_episode_is_refused() -> None:
    """A typing error must not pass for an empty selection; names that there are, are told."""
    with pytest.raises(InputError, match=r"no episode .* condition 'aggg'; there are agg"):
        rows([episode()], "openai", conditions=("agg", "aggg"))


def test_export_when_nothing_is_left_is_refused() -> None:
    """No empty file passes for a data set."""
    with pytest.raises(InputError, match=r"of 1 episodes in the log 0 are chosen$"):
        rows([episode(success=False)], "openai", success=True)
    with pytest.raises(InputError, match="1 are chosen, and none holds a reply to learn from"):
        rows([episode(conversations=lambda _: ())], "sft")


def test_export_when_an_episode_holds_nothing_counts_it() -> None:
    """What has no line is told of."""
    played = [episode(), episode(conversations=lambda _: ())]
    made = export(played, "sft", Choice(), with_memory=True)
    assert (made.episodes, made.empty, len(made.lines)) == (2, 1, 1)


def test_lines_when_texts_hold_anything_are_ascii() -> None:
    """They steer no terminal, and come back as they were."""
    text = "caf\u00e9 \x1b[31m \u009b \u2028 \U0001f600"
    (line,) = export(
        [episode(steps=[("", "", text)])], "trajectories", Choice(), with_memory=False
    ).lines
    assert line.isascii()
    assert line.count("\n") == 1
    assert "\x1b" not in line
    assert json.loads(line)["steps"][0]["observation"] == text


def test_study_when_its_log_holds_no_conversation_says_why() -> None:
    """One error names the study."""
    nothing: Any = None
    with pytest.raises(
        PlanError, match=r"study 'mle' cannot be exported: .* no prompts or replies"
    ):
        studies()["mle"].episodes(nothing, nothing)


# Logs as Inspect keeps them ----------------------------------------------------------------


class TellingStudy(ChainStudy):
    """Chains whose items are told as episodes of one reply."""

    def __init__(self, told: Any = lambda _: up_to_the_last_learned(conversation([True]))) -> None:
        super().__init__()
        self._told = told

    def went_well(self, result: Any) -> bool:
        """Say whether an answer begins with a letter."""
        return str(result["answer"])[0].isalpha()

    def episodes(self, plan: ChainPlan, log: PlanLogReader) -> Iterator[PlayedEpisode]:
        """Yield an episode an item."""
        for run in log.runs:
            for index, _ in enumerate(log.results(run.name)):
                task = run.item_ids[index]
                yield episode(run=run.name, task=task, conversations=self._told)


def archive(path: Path) -> dict[str, Any]:
    """Return the members of a log by name."""
    with zipfile.ZipFile(path) as opened:
        assert opened.testzip() is None
        return {name: json.loads(opened.read(name)) for name in opened.namelist()}


def told_by(
    out: Path, study: ChainStudy, folder: Path, choice: Choice | None = None
) -> dict[str, dict[str, Any]]:
    """Export a directory and return the logs by the names of their runs."""
    write_inspect(study, chain_plan(), PlanLog(out), folder, choice or Choice(), with_memory=True)
    logs = [archive(path) for path in folder.iterdir()]
    return {log["header.json"]["eval"]["task"]: log for log in logs}


async def test_inspect_when_a_plan_ran_has_a_log_a_run_and_a_sample_an_item(tmp_path: Path) -> None:
    """Header, list and samples agree, and the same directory gives the same bytes."""
    await run_chain(tmp_path / "out", chain_plan(streams=1))
    logs = told_by(tmp_path / "out", TellingStudy(), tmp_path / "logs")
    assert len(logs) == 5
    for name, log in logs.items():
        header, listed = log["header.json"], log["summaries.json"]
        samples = {key: each for key, each in log.items() if key.startswith("samples/")}
        assert header["status"] == "success"
        assert header["eval"] == log["_journal/start.json"]["eval"] | {
            "dataset": header["eval"]["dataset"],
            "config": {"epochs": 1},
        }
        assert len(samples) == len(listed) == header["results"]["completed_samples"] == 6
        assert {f"samples/{each['id']}_epoch_{each['epoch']}.json" for each in listed} == {*samples}
        good = [each["scores"]["success"]["value"] == "C" for each in samples.values()]
        assert header["results"]["scores"][0]["metrics"]["accuracy"]["value"] == sum(good) / 6
        assert [each["metadata"]["index"] for each in samples.values()] == [*range(6)]
        assert name in header["eval"]["metadata"]["run"]
    first = logs["0/first"]["samples/item-0_epoch_1.json"]
    assert [each["role"] for each in first["messages"]] == ["system", "user", "assistant"]
    assert [each["content"] for each in first["input"]] == ["rules", "u0"]
    assert first["output"]["completion"] == "a0"
    told_by(tmp_path / "out", TellingStudy(), tmp_path / "again")
    for path in (tmp_path / "logs").iterdir():
        assert path.read_bytes() == (tmp_path / "again" / path.name).read_bytes()


async def test_inspect_when_a_plan_was_stopped_says_by_what(tmp_path: Path) -> None:
    """A run that failed has an error, one that was never opened no log."""

    def refuse(run: str, item: str) -> None:
        if (run, item) == ("0/second", "item-2"):
            raise InfrastructureError("the network is down")

    await run_chain(tmp_path / "out", chain_plan(streams=1), ChainStudy(refuse))
    logs = told_by(tmp_path / "out", ChainStudy(), tmp_path / "logs")
    assert {*logs} == {"0/first", "0/second", "0/probe-0", "0/probe-3"}
    header = logs["0/second"]["header.json"]
    assert (header["status"], header["results"]["completed_samples"]) == ("error", 2)
    assert "the network is down" in header["error"]["message"]
    assert header["results"]["scores"] == []


async def test_inspect_when_prompts_cannot_be_made_again_shows_steps_and_counts_why(
    tmp_path: Path,
) -> None:
    """To read, steps are better than nothing; whoever exports is told."""

    def lost(_: bool) -> Any:
        raise InputError("run 'x': a placebo's filler is in no log")

    await run_chain(tmp_path / "out", chain_plan(streams=1))
    study, plan, log = TellingStudy(lost), chain_plan(), PlanLog(tmp_path / "out")
    made = write_inspect(study, plan, log, tmp_path / "logs", Choice(), with_memory=True)
    assert (made.logs, made.samples) == (5, 30)
    assert made.unshown == {" a placebo's filler is in no log": 30}
    sample = archive(next((tmp_path / "logs").iterdir()))["samples/item-0_epoch_1.json"]
    assert [(each["role"], each["content"]) for each in sample["messages"]] == [
        ("user", "seen"),
        ("assistant", "thought\nact"),
        ("user", "done"),
    ]


async def test_inspect_when_samples_are_chosen_holds_those_alone(tmp_path: Path) -> None:
    """As of lines, names of nothing are refused; and so is a choice where there are no episodes."""
    await run_chain(tmp_path / "out", chain_plan(streams=1))
    logs = told_by(
        tmp_path / "out", TellingStudy(), tmp_path / "logs", Choice(tasks=("item-1", "item-4"))
    )
    assert {each["id"] for log in logs.values() for each in log["summaries.json"]} == {
        "item-1",
        "item-4",
    }
    with pytest.raises(InputError, match="no episode of the log has task 'item-9'"):
        told_by(tmp_path / "out", TellingStudy(), tmp_path / "x", Choice(tasks=("item-9",)))
    with pytest.raises(PlanError, match="cannot be exported"):
        told_by(tmp_path / "out", ChainStudy(), tmp_path / "x", Choice(success=True))


class OddStudy(ChainStudy):
    """Runs whose items have names that lead out of folders, and say things to browsers."""

    ids = ("../../etc/passwd", "/root", "a\\..\\b", "<script>alert(1)</script>", "same", "same")

    def expand(self, plan: ChainPlan) -> tuple[RunSpec, ...]:
        """List one run."""
        return (RunSpec(self.name, "<b>../..</b>", {"condition": "</script>"}, self.ids),)


async def test_inspect_when_names_are_hostile_stays_in_its_folder(tmp_path: Path) -> None:
    """No member or file leads anywhere else, ids are as in names, and repeated items are epochs."""
    await run_chain(tmp_path / "out", chain_plan(), OddStudy())
    (log,) = told_by(tmp_path / "out", OddStudy(), tmp_path / "logs").values()
    (path,) = (tmp_path / "logs").iterdir()
    assert path.name.endswith("_-b-b-_" + PlanLog(tmp_path / "out").graph.runs[0].id + ".eval")
    names = [name for name in log if name.startswith("samples/")]
    assert not any(".." in name or name.startswith("/") or "\\" in name for name in names)
    listed = [(each["id"], each["epoch"]) for each in log["summaries.json"]]
    assert len({*listed}) == len(OddStudy.ids)
    assert listed[-2:] == [("same", 1), ("same", 2)]
    assert [f"samples/{name}_epoch_{epoch}.json" for name, epoch in listed] == names
    kept = [log[name]["metadata"]["item"] for name in names]
    assert tuple(kept) == OddStudy.ids
    assert log["header.json"]["eval"]["config"] == {"epochs": 2}
