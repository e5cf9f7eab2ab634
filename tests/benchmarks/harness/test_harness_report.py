"""A sealed report: every file of it, and all it rests on, is as it was when it was written."""

import asyncio
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from chain_study import ChainStudy, chain_plan, run_chain

from langgraft._core.errors import RunDirectoryError
from langgraft.benchmarks.harness.log import PlanLog, checked_line
from langgraft.benchmarks.harness.verify import sealed_report, verify_directory


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run directory with its report and a file to look at; not to be changed."""
    out = tmp_path_factory.mktemp("reported")
    asyncio.run(run_chain(out, chain_plan(streams=1)))
    kept = next((out / "runs").iterdir()) / "kept" / "item-0"
    kept.mkdir(parents=True)
    (kept / "solution.py").write_text("print(1)\n", encoding="utf-8")
    report(out)
    return out


@pytest.fixture
def copy(reported: Path, tmp_path: Path) -> Path:
    """The same, to do harm to."""
    return shutil.copytree(reported, tmp_path / "copy")


def report(out: Path) -> None:
    """Write and seal the study's report."""
    with sealed_report(out) as folder:
        (folder / "tables").mkdir(parents=True, exist_ok=True)
        (folder / "tables" / "runs.csv").write_text("run,items\n", encoding="utf-8")
        ChainStudy().report(chain_plan(streams=1), PlanLog(out), folder)


def found(out: Path) -> dict[str, str]:
    """Return what is found wrong, by path."""
    return {
        finding.path.relative_to(out).as_posix(): finding.message
        for finding in verify_directory(out)
    }


def claims(out: Path) -> list[Path]:
    """List the files that carry a claim."""
    names = (
        *("manifest.json", "plan.yaml", "runs.jsonl", "report/**/*", "runs/*/kept/*/*"),
        *(f"runs/*/{name}" for name in ("spec.json", "items.jsonl", "events.jsonl", "DONE.json")),
    )
    return sorted(path for name in names for path in out.glob(name) if path.is_file())


def change(path: Path) -> None:
    """Change a file so that whatever reads it still can."""
    data = path.read_bytes()
    path.write_bytes(data.replace(b'"python":"', b'"python":"9') + b"\n")


def test_verify_when_a_report_is_sealed_then_finds_nothing(reported: Path) -> None:
    """A report as it was written, beside the log it was made from, is as its digests say."""
    assert found(reported) == {}


@pytest.mark.parametrize("harm", [change, Path.unlink])
def test_verify_when_any_file_with_a_claim_is_harmed_then_names_it(
    reported: Path, tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    """Tables, pages, files to look at, events, manifest, marks: each is named, altered or gone."""
    unseen = []
    for number, path in enumerate(claims(reported)):
        name = path.relative_to(reported)
        copy = shutil.copytree(reported, tmp_path / str(number))
        harm(copy / name)
        try:
            seen = found(copy)
        except RunDirectoryError:  # without a manifest it is no run directory
            assert name.as_posix() == "manifest.json"
            continue
        if not any(place == name.as_posix() or name.name in told for place, told in seen.items()):
            unseen.append(name.as_posix())
    # A line break after the list of digests changes nothing that is read.
    assert unseen == (["report/digests.json"] if harm is change else [])


def test_verify_when_a_file_was_put_into_the_report_then_names_it(copy: Path) -> None:
    """What the report did not write is no part of it."""
    (copy / "report" / "tables" / "better.csv").write_text("a,b\n", encoding="utf-8")
    (next((copy / "runs").iterdir()) / "notes.txt").write_text("?", encoding="utf-8")
    messages = found(copy)
    assert "not of the report" in messages.pop("report/tables/better.csv")
    assert list(messages.values()) == ["is no file of a run"]


@pytest.mark.parametrize("content", [b"", b"[]", b'{"files":3}', b"\xff"])
def test_verify_when_the_list_of_digests_is_damaged_then_names_it(
    copy: Path, content: bytes
) -> None:
    """Without a list that can be read nothing of the report counts as checked."""
    (copy / "report" / "digests.json").write_bytes(content)
    assert "is damaged" in found(copy)["report/digests.json"]


def test_verify_when_an_event_is_left_out_then_names_the_file(copy: Path) -> None:
    """Events have checksums line by line, and the report knows how many there were."""
    path = next((copy / "runs").glob("*/events.jsonl"))
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    assert list(found(copy).values()) == ["is not what it was when the report was written"]


def test_verify_when_a_run_went_on_after_its_report_then_finds_nothing(copy: Path) -> None:
    """Logs grow, and a crash may cut their last line: neither is damage."""
    path = next((copy / "runs").glob("*/events.jsonl"))
    with path.open("ab") as stream:
        stream.write(checked_line('{"event":"opened"}') + b"0123")
    assert found(copy) == {}


def test_report_when_the_log_is_damaged_then_is_refused_in_one_line(copy: Path) -> None:
    """Verification comes first: nothing is told of a damaged log, and the old report stays."""
    for path in (copy / "runs").glob("*/events.jsonl"):
        path.write_bytes(path.read_bytes().replace(b"opened", b"0pened"))
    before = {path: path.read_bytes() for path in (copy / "report").rglob("*") if path.is_file()}
    with pytest.raises(RunDirectoryError, match=r"line 1 is damaged.*and 4 more") as caught:
        report(copy)
    assert "\n" not in str(caught.value)
    assert before == {path: path.read_bytes() for path in before}


def test_report_when_an_earlier_one_was_cut_short_then_its_drafts_are_no_part_of_it(
    copy: Path,
) -> None:
    """A kill in the middle of writing a file, the list of digests included, harms no later report."""
    for name in ("digests.json", "report.txt"):
        (copy / "report" / f".{name}.tmp").write_text("half of", encoding="utf-8")
    assert found(copy) == {}
    report(copy)
    assert found(copy) == {}


def test_report_when_a_run_was_cut_short_then_is_written(copy: Path) -> None:
    """A torn last line is what a kill leaves behind, and no reason to refuse."""
    path = max((copy / "runs").glob("*/items.jsonl"))
    (path.parent / "DONE.json").unlink()
    path.write_bytes(path.read_bytes()[:-3])
    report(copy)
    assert [finding.interrupted for finding in verify_directory(copy)] == [True]
