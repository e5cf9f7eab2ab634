"""Files of runs beside their logs, and what a study has a say in."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from chain_study import ChainPlan, ChainStudy, chain_plan, run_chain
from langchain_core.language_models import BaseChatModel
from typing_extensions import override

from langgraft._core.errors import InfrastructureError, InputError
from langgraft.benchmarks.harness.log import PlanLog, run_folder
from langgraft.benchmarks.harness.study import BankPlace, ItemOutcome, RunSession, RunSpec
from langgraft.benchmarks.harness.verify import verify_directory
from langgraft.memory.model import MemoryDelta


class Writing:
    """A session that leaves a file for each item."""

    def __init__(self, inner: RunSession, place: BankPlace, seen: dict[str, list[str]]) -> None:
        assert place.files is not None
        self._inner = inner
        self._files = place.files
        self._seen = seen

    async def run_item(self, index: int, item_id: str) -> ItemOutcome:
        """Write what an item needs, then work through it."""
        work = self._files.work(index)
        self._seen[item_id] = sorted(each.name for each in work.parent.glob("*/*"))
        work.mkdir(parents=True, exist_ok=True)
        (work / item_id).write_text("under way")
        self._files.kept.mkdir(exist_ok=True)
        (self._files.kept / item_id).write_text("stays")
        return await self._inner.run_item(index, item_id)

    async def aclose(self) -> None:
        """Close the session inside."""
        await self._inner.aclose()


class WritingStudy(ChainStudy):
    """A study whose runs keep files."""

    default_store: ClassVar[str] = "chroma"

    def __init__(self, *args: Any) -> None:
        super().__init__(*args)
        self.seen: dict[str, dict[str, list[str]]] = {}
        self.refusal: InputError | None = None

    @override
    def make_ready(self, plan: ChainPlan) -> None:
        if self.refusal is not None:
            raise self.refusal

    @override
    def open(
        self,
        plan: ChainPlan,
        run: RunSpec,
        deltas: Sequence[MemoryDelta],
        model: BaseChatModel,
        place: BankPlace,
    ) -> RunSession:
        seen = self.seen.setdefault(run.name, {})
        return Writing(super().open(plan, run, deltas, model, place), place, seen)


async def test_work_when_its_item_is_committed_then_is_gone_and_what_is_kept_stays(
    tmp_path: Path,
) -> None:
    """An item finds no work of those before it, a finished run has none, and `verify` is content."""
    study = WritingStudy()
    await run_chain(tmp_path, chain_plan(streams=1, items=3), study)
    assert set(map(tuple, study.seen["0/first"].values())) == {()}
    for run in PlanLog(tmp_path).graph:
        folder = run_folder(tmp_path, run)
        assert not (folder / "work").exists()
        assert len([*(folder / "kept").iterdir()]) == 3
    assert verify_directory(tmp_path) == []


async def test_work_when_an_item_fails_then_is_there_when_it_is_tried_again(tmp_path: Path) -> None:
    """What an item left before it failed is found by the process that goes on with it."""
    failing = [True]

    def fail(run: str, item: str) -> None:
        if failing and (run, item) == ("0/first", "item-1"):
            raise InfrastructureError("the disk is away")

    study = WritingStudy(fail)
    plan = chain_plan(streams=1, items=3, probes=())
    await run_chain(tmp_path, plan, study)
    failing.clear()
    # As a process leaves it that was killed between a commit and what follows it.
    first = next(run for run in PlanLog(tmp_path).graph if run.name == "0/first")
    left = run_folder(tmp_path, first) / "work" / "0000"
    left.mkdir()
    (left / "item-0").write_text("under way")
    assert (await run_chain(tmp_path, plan, study)).complete
    assert study.seen["0/first"]["item-1"] == ["item-1"]


async def test_study_when_it_is_not_ready_then_nothing_is_written(tmp_path: Path) -> None:
    """What a study misses is said before there is a run directory."""
    study = WritingStudy()
    study.refusal = InputError("there is no engine: install one")
    with pytest.raises(InputError, match="no engine"):
        await run_chain(tmp_path / "out", study=study)
    assert not (tmp_path / "out").exists()


async def test_store_when_nobody_names_one_then_is_the_studys(tmp_path: Path) -> None:
    """A study says where banks lie by default; whoever runs it may say otherwise."""
    plan = chain_plan(streams=1, items=2, probes=())
    await run_chain(tmp_path / "default", plan, WritingStudy())
    await run_chain(tmp_path / "memory", plan, WritingStudy(), store="memory")
    assert (tmp_path / "default" / "store").is_dir()
    assert not (tmp_path / "memory" / "store").exists()
