"""Erasure in run directories and caches of replies."""

import json
import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from chain_study import ChainPlan, ChainSession, ChainStudy, chain_plan, run_chain
from langchain_core.language_models import BaseChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration
from typing_extensions import override

from langgraft._core.errors import InfrastructureError, RunDirectoryError
from langgraft._core.files import atomic_write
from langgraft.benchmarks.harness.cache import ResponseCache
from langgraft.benchmarks.harness.directory import STORE, hold_process, hold_shard, locked
from langgraft.benchmarks.harness.erasing import ResponsePlace, RunDirectory
from langgraft.benchmarks.harness.log import PlanLog, checked_line, run_folder
from langgraft.benchmarks.harness.models import RESPONSES
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.study import BankPlace, ItemOutcome, RunSession, RunSpec
from langgraft.benchmarks.harness.verify import (
    ERASED,
    REPORT,
    read_erased,
    sealed_report,
    verify_directory,
)
from langgraft.memory.erasure import ErasureReceipt, Ledger, Wanted, erase
from langgraft.memory.erasure.places import BLANK, found_in
from langgraft.memory.model import MemoryDelta, MemoryItem, SetState

SECRET = 'zanzibar-7431 ü\nis "the" word'
TOLD = "0/first/2"


class TellingSession(ChainSession):
    """Says something at one item of the first stream, and repeats what it knows at every other."""

    @override
    def _item(self, identity: str, item_id: str, answer: str) -> MemoryItem:
        item = super()._item(identity, item_id, answer)
        if identity != TOLD:
            return item
        return item.model_copy(update={"text": f"note: {SECRET}", "key": f"about {SECRET}"})

    @override
    async def _work(self, index: int, item_id: str) -> ItemOutcome:
        known = [item.text for item in self._bank.items.values()]
        made = await super()._work(index, item_id)
        own = f"{self._run.name}/{index}" == TOLD
        steps = ["look around", f"I was told: {SECRET}"] if own else ["look around", *known]
        filed = MemoryDelta((SetState(f"filed/{self._run.name}/{index}", index),))
        deltas = (*made.deltas, filed) if made.deltas else ()
        self._bank.state |= {f"filed/{self._run.name}/{index}": index} if deltas else {}
        return ItemOutcome({**made.result, "steps": steps}, deltas, {"said": steps})


class TellingStudy(ChainStudy):
    """The chain study, with something in it that has to go."""

    @override
    def open(
        self,
        plan: ChainPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: BaseChatModel,
        place: BankPlace,
    ) -> RunSession:
        return TellingSession(plan, run, deltas, self._before_item)


PLAN = chain_plan(streams=2, items=4, probes=(3,))


@pytest.fixture
async def out(tmp_path: Path) -> Path:
    """A finished run directory that says the secret in results, banks, events, files and a report."""
    out = tmp_path / "run"
    await run_chain(out, PLAN, TellingStudy())
    kept = run_folder(out, PlanLog(out).graph["0/first"]) / "kept"
    kept.mkdir()
    atomic_write(kept / "page.html", f"<p>{SECRET}</p>".encode())
    atomic_write(kept / "other.html", b"<p>nothing</p>")
    with sealed_report(out) as report:
        report.mkdir()
        atomic_write(report / "index.html", SECRET.encode())
    assert not verify_directory(out)
    assert len(holding(out)) > 5
    return out


def holding(folder: Path) -> list[Path]:
    """Return the files that hold a word of it."""
    return found_in([folder], Wanted(phrases=("zanzibar-7431",)))


def logs(out: Path) -> dict[str, list[bytes]]:
    """Return the lines of all logs."""
    found = sorted(out.glob("runs/*/items.jsonl"))
    return {path.parent.name: path.read_bytes().splitlines() for path in found}


def erased(out: Path, tmp_path: Path, **asked: Any) -> ErasureReceipt:
    """Erase in the directory alone."""
    return erase([], ledger=Ledger(tmp_path / "ledger"), places=[RunDirectory(out)], **asked)


async def test_item_when_erased_is_in_no_byte_and_other_lines_are_as_they_were(
    out: Path, tmp_path: Path
) -> None:
    """Logs, events, banks, kept files and report; what did not say it is the same bytes."""
    before = logs(out)
    receipt = erased(out, tmp_path, item=TOLD)
    assert receipt.complete
    assert not holding(tmp_path)
    after = logs(out)
    for run, lines in before.items():
        for old, new in zip(lines, after[run], strict=True):
            assert (old == new) == (b"zanzibar" not in old)
    kept = run_folder(out, PlanLog(out).graph["0/first"]) / "kept"
    assert [path.name for path in kept.iterdir()] == ["other.html"]
    assert not (out / REPORT).exists()


@pytest.mark.parametrize("asked", [{"item": TOLD}, {"episode": TOLD}])
async def test_directory_when_erased_in_verifies_and_names_the_receipt(
    out: Path, tmp_path: Path, asked: dict[str, str]
) -> None:
    """Each bank still folds, with the item's place and without what it said; nothing is damaged."""
    erased(out, tmp_path, **asked)
    (finding,) = verify_directory(out)
    assert finding.on_request
    assert "erased on request (receipt 1)" in str(finding)
    item = PlanLog(out).bank("0/first").items.get(TOLD)
    assert item is not None
    assert (item.text, item.key) == (BLANK, None)
    outcome = await run_chain(out, PLAN, TellingStudy())
    assert outcome.exit_code == 0
    with sealed_report(out) as report:
        report.mkdir()
        atomic_write(report / "index.html", b"again")
    assert [each for each in verify_directory(out) if not each.on_request] == []


async def test_plan_when_erased_in_halfway_is_gone_on_with(tmp_path: Path) -> None:
    """From the bank without it; nothing of it comes back, and the whole verifies."""
    out = tmp_path / "run"

    def stop(run: str, item: str) -> None:
        if (run, item) == ("0/second", "item-2"):
            raise InfrastructureError("no power")

    assert (await run_chain(out, PLAN, TellingStudy(stop))).exit_code == 1
    erased(out, tmp_path, item=TOLD)
    await run_chain(out, PLAN, TellingStudy())
    assert PlanLog(out).complete
    assert not holding(out)
    assert all(finding.on_request for finding in verify_directory(out))


async def test_log_when_changed_after_an_erasure_is_found(out: Path, tmp_path: Path) -> None:
    """Who changes a line and all its digests is found by what the erasure left."""
    erased(out, tmp_path, item=TOLD)
    folder = run_folder(out, PlanLog(out).graph["0/third"])
    lines = (folder / "items.jsonl").read_bytes().splitlines()
    body = json.loads(lines[-1].partition(b" ")[2])
    body["result"]["answer"] = "better"
    lines[-1] = checked_line(json.dumps(body))[:-1]
    atomic_write(folder / "items.jsonl", b"".join(line + b"\n" for line in lines))
    (folder / "DONE.json").unlink()
    found = [str(each) for each in verify_directory(out)]
    assert any("is not what the last erasure left" in each for each in found)


async def test_directory_when_a_plan_is_run_in_it_is_not_erased_in(
    out: Path, tmp_path: Path
) -> None:
    """The error says so; the same call goes on once it has ended, and is told of meanwhile."""
    before = logs(out)
    with locked(out), pytest.raises(RunDirectoryError, match="another process is working here"):
        erased(out, tmp_path, item=TOLD)
    assert logs(out) == before
    assert erased(out, tmp_path, item=TOLD).complete
    assert not holding(tmp_path)


async def test_directory_when_a_shard_is_run_in_it_is_not_erased_in(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nor while a process works in it for one that died: neither holds the directory itself."""
    monkeypatch.setattr("langgraft.benchmarks.harness.directory._ORPHAN_SECONDS", 0.1)
    before = logs(out)
    works = [hold_shard(out, prepare(TellingStudy(), PLAN), 0, 2), hold_process(out, 1)]
    for work in works:
        with work, pytest.raises(RunDirectoryError, match="another process is working here"):
            erased(out, tmp_path, item=TOLD)
        assert logs(out) == before
    assert erased(out, tmp_path, item=TOLD).complete


async def test_erasure_when_cut_short_is_told_by_verify_and_ended(
    out: Path, tmp_path: Path
) -> None:
    """Until then the directory is damaged, and says how to mend it."""
    atomic_write(out / ERASED, checked_line('{"receipt":1}'))
    assert "was cut short: erase again" in " ".join(map(str, verify_directory(out)))
    erased(out, tmp_path, item=TOLD)
    assert all(finding.on_request for finding in verify_directory(out))


async def test_erasure_when_killed_before_caches_are_deleted_then_the_next_deletes_them(
    out: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By then no log says it any more; caches go nevertheless, and the lines are named that changed."""
    cache = out / STORE
    cache.mkdir()
    (cache / "bank").write_text("what no phrase finds")

    def die(_: Path) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr("langgraft.benchmarks.harness.erasing._delete", die)
        with pytest.raises(KeyboardInterrupt):
            erased(out, tmp_path, item=TOLD)
    lines = [entry["lines"] for entry in read_erased(out)]
    assert lines
    assert lines[0]
    assert erased(out, tmp_path, item=TOLD).number == 1
    assert not cache.exists()
    assert not holding(tmp_path)
    assert [entry["ended"] for entry in read_erased(out)] == lines


async def test_links_and_pipes_in_a_directory_are_neither_followed_nor_waited_for(
    out: Path, tmp_path: Path
) -> None:
    """What they lead to is not deleted; of a folder that lies elsewhere the receipt says so."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "mine.txt").write_text(SECRET)
    first, second = sorted((out / "runs").iterdir())[:2]
    for folder in (first / "kept", second / "kept"):
        shutil.rmtree(folder, ignore_errors=True)
    (first / "kept").symlink_to(elsewhere)
    (second / "kept").mkdir()
    os.mkfifo(second / "kept" / "pipe")
    (second / "kept" / "loop").symlink_to(second / "kept" / "loop")
    receipt = erased(out, tmp_path, item=TOLD)
    assert (elsewhere / "mine.txt").read_text() == SECRET
    assert [each.left for each in receipt.places] == [
        (f"{first / 'kept'}: a link, which is not followed: erase where it leads",)
    ]
    assert holding(out) == []


async def test_directory_that_does_not_speak_of_it_is_left_as_it_is(tmp_path: Path) -> None:
    """No file of it is written."""
    out = tmp_path / "run"
    await run_chain(out, PLAN)
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    receipt = erased(out, tmp_path, item="elsewhere", mentions=["zanzibar-7431"])
    assert receipt.complete
    after = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    assert after == before


def kept(cache: ResponseCache, prompt: str, reply: str) -> None:
    """Keep a reply."""
    cache.update(prompt, "model", [ChatGeneration(message=AIMessage(reply))])


def test_replies_when_they_or_their_requests_say_it_are_forgotten(tmp_path: Path) -> None:
    """In whichever way JSON writes it; others are answered as before."""
    path = tmp_path / RESPONSES
    with ResponseCache(path) as cache:
        kept(cache, json.dumps([{"content": f"note: {SECRET}"}]), "ok")
        kept(cache, json.dumps([{"content": "what is the word?"}]), f"note: {SECRET}")
        for number in range(50):
            kept(cache, f"question {number}", f"answer {number}")
    with ResponseCache(path) as other:  # somebody else has it open
        other.lookup("question 1", "model")
        mentions = [SECRET]
        places = [ResponsePlace(path)]
        ledger = Ledger(tmp_path / "ledger")
        receipt = erase([], item="any item", ledger=ledger, places=places, mentions=mentions)
        assert receipt.complete
        assert len(other) == 50
        found = other.lookup("question 1", "model")
        assert found is not None
        assert found[0].text == "answer 1"
    assert not holding(tmp_path)
    assert sum(each.removed for each in receipt.places) == 2
