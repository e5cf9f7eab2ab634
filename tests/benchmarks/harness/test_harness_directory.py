"""Taking a run directory: refusals that change nothing, and starts cut short."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from chain_study import ChainPlan, ChainStudy, chain_plan, log_bytes, run_chain
from typing_extensions import override

from langgraft._core.canonical import JSON
from langgraft._core.errors import ResumeRefusedError, RunDirectoryError
from langgraft.benchmarks.harness.directory import differences
from langgraft.benchmarks.harness.plans import package_versions, prepare
from langgraft.benchmarks.harness.schedule import run_plan
from langgraft.benchmarks.harness.verify import verify_directory

PACKAGES = package_versions(ChainStudy(), chain_plan())


class Reworded(ChainStudy):
    """The study after one of its prompts was changed."""

    @override
    def fingerprints(self, plan: ChainPlan) -> Mapping[str, JSON]:
        return {"rule": {"capacity": 4}, "prompts": {"react": "ab" * 32}}


class Changed(NamedTuple):
    """What a directory is taken with that it was not started with."""

    plan: Mapping[str, object] = {}
    limit: int | None = None
    packages: Mapping[str, str] = PACKAGES
    study: ChainStudy = ChainStudy()


def all_bytes(out: Path) -> dict[Path, bytes]:
    """Return what every file of a directory holds."""
    return {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        (Changed(plan={"temperature": 0.7}), ["plan.temperature: 0.5 → 0.7"]),
        (Changed(plan={"base_url": "http://x"}), ["plan.base_url: none → http://x"]),
        (Changed(limit=2), ["limit: none → 2"]),
        (
            Changed(packages={**PACKAGES, "langgraph": "9.9.9"}),
            [f"package langgraph: {PACKAGES['langgraph']} → 9.9.9"],
        ),
        (Changed(study=Reworded()), ['prompts: nothing → {"react":"abababab']),
        (
            Changed(plan={"items": 7, "title": "longer"}),
            ['plan.title: "" → longer', "plan.items: 6 → 7"],
        ),
    ],
)
async def test_directory_when_something_changed_then_refused_with_differences(
    tmp_path: Path, changed: Changed, expected: list[str]
) -> None:
    """Another plan, limit, package or prompt is refused, told readably, and nothing changes."""
    await run_chain(tmp_path)
    before = all_bytes(tmp_path)
    plan, limit, packages, study = changed
    prepared = prepare(study, chain_plan(**plan), limit=limit, packages=packages)
    with pytest.raises(ResumeRefusedError) as caught:
        await run_plan(prepared, tmp_path, model_for=study.simulated_model)
    assert len(caught.value.differences) == len(expected)
    for difference, start in zip(caught.value.differences, expected, strict=True):
        assert difference.startswith(start)
    assert "\n" not in str(caught.value)
    assert all_bytes(tmp_path) == before


def test_refusal_when_much_changed_lists_the_first_and_counts_the_others() -> None:
    """A task put in front renumbers all behind it; the line stays one that is read."""
    changed = [f"plan.tests[{number}].id: a → b" for number in range(30)]
    refused = ResumeRefusedError("is another's", path=Path("runs"), differences=changed)
    assert str(refused).endswith(f"{changed[5]}; and 24 more")
    assert changed[6] not in str(refused)
    assert refused.differences == tuple(changed)


async def test_directory_when_study_expands_differently_then_runs_are_named(
    tmp_path: Path,
) -> None:
    """The same plan that gives other runs, because the study's code changed, is refused."""

    class Renamed(ChainStudy):
        @override
        def expand(self, plan: ChainPlan) -> tuple[object, ...]:  # type: ignore[override]
            return super().expand(plan)[:-1]

    await run_chain(tmp_path)
    with pytest.raises(ResumeRefusedError, match=r"runs \(10 → 9\): were '1/probe-3'"):
        await run_chain(tmp_path, study=Renamed())


@pytest.mark.parametrize("name", ["thesis.tex", "plan.yaml", "runs"])
async def test_directory_when_not_ours_then_refused_untouched(tmp_path: Path, name: str) -> None:
    """A directory that holds something else is left exactly as it is."""
    (tmp_path / name).write_text("precious", encoding="utf-8")
    with pytest.raises(RunDirectoryError, match=f"not empty and not a run directory.*{name}"):
        await run_chain(tmp_path)
    assert all_bytes(tmp_path) == {tmp_path / name: b"precious"}


async def test_directory_when_path_is_unwritable_then_one_line(tmp_path: Path) -> None:
    """A path that cannot be made is named in one line."""
    (tmp_path / "file").write_bytes(b"")
    with pytest.raises(RunDirectoryError, match="cannot make the directory") as caught:
        await run_chain(tmp_path / "file" / "out")
    assert "\n" not in str(caught.value)
    with pytest.raises(RunDirectoryError, match="cannot list"):
        await run_chain(tmp_path / "file")


@pytest.mark.parametrize(
    "leftovers",
    [
        ["plan.lock"],
        ["plan.lock", ".plan.yaml.tmp"],
        ["plan.lock", "plan.yaml", ".runs.jsonl.tmp"],
        ["plan.lock", "plan.yaml", "runs.jsonl", ".manifest.json.tmp"],
    ],
)
async def test_directory_when_start_was_cut_short_then_started_anew(
    tmp_path: Path, leftovers: list[str]
) -> None:
    """What a process killed while making the directory left behind does not stand in the way."""
    out = tmp_path / "out"
    out.mkdir()
    for name in leftovers:
        (out / name).write_text("half of", encoding="utf-8")
    assert (await run_chain(out)).complete
    await run_chain(tmp_path / "other")
    assert log_bytes(out) == log_bytes(tmp_path / "other")
    assert verify_directory(out) == []


@pytest.mark.parametrize("name", ["manifest.json", "plan.yaml", "runs.jsonl"])
async def test_directory_when_its_own_files_are_damaged_then_file_is_named(
    tmp_path: Path, name: str
) -> None:
    """A damaged manifest, plan or list of runs is named and not overwritten."""
    await run_chain(tmp_path)
    (tmp_path / name).write_bytes(b"\x00{")
    findings = verify_directory(tmp_path)
    assert findings
    assert all(name in str(finding.path) for finding in findings)
    if name == "manifest.json":
        with pytest.raises(RunDirectoryError, match=r"manifest\.json: is damaged"):
            await run_chain(tmp_path)
    assert (tmp_path / name).read_bytes() == b"\x00{"


def test_differences_when_values_are_nested_then_each_part_is_named() -> None:
    """Mappings and tables are compared part by part, digests are shortened."""
    old: JSON = {"a": [{"x": 1}, {"x": 2}], "b": [1, 2], "same": None, "prompt": "0" * 64}
    new: JSON = {"a": [{"x": 1}, {"x": 3}], "b": [1, 3], "same": None, "prompt": "1" * 64}
    assert list(differences(old, new, "plan")) == [
        "plan.a[1].x: 2 → 3",
        "plan.b: [1,2] → [1,3]",
        "plan.prompt: 000000000000 → 111111111111",
    ]
