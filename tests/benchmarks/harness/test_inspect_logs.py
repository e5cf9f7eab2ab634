"""Logs that Inspect's viewer opens; its own reader has its say in acceptance."""

import json
import zipfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from chain_study import ChainPlan, ChainStudy, chain_plan, run_chain

from langgraft._core.errors import InfrastructureError, InputError, PlanError
from langgraft.benchmarks.harness.conversations import (
    Choice,
    Message,
    PlayedEpisode,
    up_to_the_last_learned,
)
from langgraft.benchmarks.harness.inspect_logs import write_inspect
from langgraft.benchmarks.harness.log import PlanLog
from langgraft.benchmarks.harness.study import PlanLogReader, RunSpec

TOLD = up_to_the_last_learned(
    [Message("system", "rules"), Message("user", "u0"), Message("assistant", "a0", learned=True)]
)


def episode(**fields: Any) -> PlayedEpisode:
    """Return an episode of two steps."""
    given: dict[str, Any] = {
        "condition": "agg",
        "split": "evaluate",
        "domain": "d",
        "success": True,
        "score": 1.0,
        "steps": [("", "", "seen"), ("thought", "act", "done")],
        "recalled": lambda: (),
    }
    return PlayedEpisode(**given | fields)


class TellingStudy(ChainStudy):
    """Chains whose items are told as episodes of one reply."""

    def __init__(self, told: Any = lambda _: TOLD) -> None:
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
        assert good == [each["metadata"]["answer"][0].isalpha() for each in samples.values()]
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
