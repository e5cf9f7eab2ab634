"""Reading and verifying run directories."""

import asyncio
import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from chain_study import chain_plan, run_chain

from langgraft._core.errors import RunDirectoryError
from langgraft.benchmarks.harness.log import PlanLog, encode_record, open_run, run_folder
from langgraft.benchmarks.harness.study import PlanLogReader
from langgraft.benchmarks.harness.verify import verify_directory
from langgraft.memory.model import MemoryDelta, Remove, SetState, fold


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run directory; not to be changed."""
    out = tmp_path_factory.mktemp("finished")
    asyncio.run(run_chain(out, chain_plan(streams=1)))
    return out


@pytest.fixture
def copy(finished: Path, tmp_path: Path) -> Path:
    """A finished run directory to do harm to."""
    return shutil.copytree(finished, tmp_path / "copy")


def folder_of(out: Path, name: str) -> Path:
    """Return the folder of a run."""
    return run_folder(out, PlanLog(out).graph[name])


def test_log_when_read_then_gives_what_an_analysis_may_see(finished: Path) -> None:
    """Runs, results, deltas and progress of a plan come from its directory alone."""
    log = PlanLog(finished)
    reader: PlanLogReader = log
    assert [run.name for run in reader.runs] == [
        f"0/{name}" for name in ("first", "second", "third", "probe-0", "probe-3")
    ]
    assert reader.manifest["study"] == log.study == "chain"
    assert [len(reader.results(run.name)) for run in reader.runs] == [6] * 5
    assert (log.n_done, log.n_planned, log.complete) == (30, 30, True)
    deltas = [delta for item in reader.deltas("0/first") for delta in item]
    assert fold(deltas) == log.bank("0/first")
    assert fold(deltas[:4]) == log.bank("0/first", 2)
    second = [delta for item in reader.deltas("0/second") for delta in item]
    assert fold(deltas + second) == log.bank("0/second")


def test_log_when_asked_for_too_much_then_says_so(finished: Path, tmp_path: Path) -> None:
    """Unknown runs, items not there yet and directories of other kinds are named."""
    with pytest.raises(RunDirectoryError, match="no run is called 'x'"):
        PlanLog(finished).results("x")
    with pytest.raises(RunDirectoryError, match="holds 6 items of run '0/first'; 7 are needed"):
        PlanLog(finished).bank("0/first", 7)
    with pytest.raises(RunDirectoryError, match="is not a run directory"):
        PlanLog(tmp_path)


def test_log_when_plan_is_under_way_then_counts_whole_items(copy: Path) -> None:
    """A torn record under way counts for nothing and reading it is no error."""
    folder = folder_of(copy, "0/second")
    (folder / "DONE.json").unlink()
    data = (folder / "items.jsonl").read_bytes()
    (folder / "items.jsonl").write_bytes(data[:-1])
    log = PlanLog(copy)
    assert len(log.results("0/second")) == 5
    assert (log.progress()[1].done, log.progress()[1].finished) == (5, False)
    assert (log.n_done, log.complete) == (29, False)


def test_verify_when_all_is_well_then_finds_nothing_and_changes_nothing(finished: Path) -> None:
    """A directory as the harness leaves it gives no finding and is not touched."""
    before = {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()}
    assert verify_directory(finished) == []
    assert {path: path.read_bytes() for path in finished.rglob("*") if path.is_file()} == before


def test_verify_when_not_a_run_directory_then_refused(tmp_path: Path) -> None:
    """Something else is no run directory with findings; it is an error."""
    with pytest.raises(RunDirectoryError, match="is not a run directory"):
        verify_directory(tmp_path)


def flip_byte(path: Path) -> None:
    """Damage the first line."""
    data = path.read_bytes()
    path.write_bytes(data[:40] + bytes([data[40] ^ 1]) + data[41:])


def drop_line(path: Path) -> None:
    """Take the second line away."""
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:1] + lines[2:]))


def drop_last_line(path: Path) -> None:
    """Take the last line away."""
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))


def tear(path: Path) -> None:
    """Cut the last line and the mark that the run is done."""
    path.write_bytes(path.read_bytes()[:-3])
    (path.parent / "DONE.json").unlink()


def rewrite(item_id: str, delta: MemoryDelta) -> Callable[[Path], None]:
    """Replace the whole log by one sound record that does not belong there."""

    def change(path: Path) -> None:
        path.write_bytes(encode_record(0, item_id, {}, (delta,)))
        (path.parent / "DONE.json").unlink()

    return change


def edit(key: str, value: object) -> Callable[[Path], None]:
    """Change one field of a JSON file."""

    def change(path: Path) -> None:
        path.write_text(json.dumps({**json.loads(path.read_bytes()), key: value}))

    return change


@pytest.mark.parametrize(
    ("run", "file", "harm", "complaint"),
    [
        ("0/first", "items.jsonl", flip_byte, "line 1 is damaged but line 2 is sound"),
        ("0/first", "items.jsonl", drop_line, "line 2 holds index 2, expected 1"),
        ("0/second", "items.jsonl", drop_last_line, "says 6 items with SHA-256"),
        ("0/second", "items.jsonl", tear, "bytes of no record; running the plan again drops them"),
        ("0/second", "items.jsonl", rewrite("x", MemoryDelta()), "item 'x', expected 'item-0'"),
        (
            "0/second",
            "items.jsonl",
            rewrite("item-0", MemoryDelta((Remove("x", "?"),))),
            "do not fold",
        ),
        (
            "0/probe-3",
            "items.jsonl",
            rewrite("item-0", MemoryDelta((SetState("x", 1),))),
            "the run's bank is frozen",
        ),
        ("0/second", "DONE.json", edit("items", 5), "says 5 items"),
        ("0/second", "DONE.json", edit("sha256", "0" * 64), "SHA-256 000000000000"),
        ("0/second", "spec.json", edit("run_id", "0" * 12), "does not describe run '0/second'"),
        ("0/second", "spec.json", edit("identity", {}), "does not describe run '0/second'"),
        ("0/second", "spec.json", edit("bank", "0" * 64), "no longer comes out of its source"),
        ("0/second", "spec.json", Path.unlink, "is missing"),
        ("0/first", "events.jsonl", flip_byte, "line 1 is damaged"),
    ],
)
def test_verify_when_a_run_is_harmed_then_file_and_harm_are_named(
    copy: Path, run: str, file: str, harm: Callable[[Path], None], complaint: str
) -> None:
    """Each kind of damage to a run is found and told with the file."""
    path = folder_of(copy, run) / file
    harm(path)
    findings = [finding for finding in verify_directory(copy) if finding.path.parent == path.parent]
    assert any(complaint in finding.message for finding in findings), findings
    assert all(str(finding).startswith(f"{finding.path}: ") for finding in findings)


def test_verify_when_plan_or_runs_are_not_the_manifests_then_found(copy: Path) -> None:
    """A plan edited afterwards, runs taken away and folders of no run are found."""
    plan = copy / "plan.yaml"
    plan.write_text(plan.read_text(encoding="utf-8").replace("0.5", "0.6"), encoding="utf-8")
    rows = (copy / "runs.jsonl").read_bytes().splitlines(keepends=True)
    (copy / "runs.jsonl").write_bytes(b"".join(rows[:-1]))
    findings = {finding.path.name: finding.message for finding in verify_directory(copy)}
    assert findings["plan.yaml"] == "is not the plan of the manifest"
    assert findings["runs.jsonl"] == "does not hold the runs of the manifest"
    assert list(findings.values()).count("belongs to no run of the plan") == 1


async def test_run_directory_when_read_as_a_frame_has_a_row_an_item(tmp_path: Path) -> None:
    """Factors and results lie flat beside run and item, for whoever goes on with pandas."""
    await run_chain(tmp_path, chain_plan(streams=1, probes=(3,)))
    frame = open_run(tmp_path).frame()
    assert len(frame) == PlanLog(tmp_path).n_done == 24
    first = frame[frame.run == "0/probe-3"].iloc[2]
    assert (first["index"], first["item"], first["factor.chain"], first["known"]) == (
        2,
        "item-2",
        0,
        3,
    )
    assert first["answer"] == PlanLog(tmp_path).results("0/probe-3")[2]["answer"]
