"""Hypotheses of a plan on their way into a run directory: before anything runs, and for good."""

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import yaml
from chain_study import ChainStudy, chain_plan, run_chain
from typing_extensions import override

from langgraft._core.canonical import digest
from langgraft._core.errors import PlanError, ResumeRefusedError, RunDirectoryError
from langgraft.benchmarks.comparison.verdicts import Better, Cell
from langgraft.benchmarks.harness.log import read_manifest
from langgraft.benchmarks.harness.plans import prepare
from langgraft.benchmarks.harness.study import RunSpec
from langgraft.benchmarks.harness.verify import sealed_report, verify_directory

CLAIM = {
    "name": "the second goes further",
    "treated": {"stream": "second"},
    "baseline": {"stream": "first"},
    "measure": "answer",
    "direction": "greater",
}


class Registering(ChainStudy):
    """The smallest study, of which something can be claimed."""

    @override
    def measures(self) -> Mapping[str, Better | None]:
        return {"answer": "higher"}

    @override
    def cell(self, run: RunSpec) -> Cell | None:
        chain, _, stream = run.name.partition("/")
        return {"chain": int(chain), "stream": stream}


def plan(**changed: Any) -> Any:
    """Return a plan that registers one claim."""
    return chain_plan(hypotheses=[{**CLAIM, **changed}])


async def test_hypotheses_when_a_plan_is_run_are_hashed_with_time_before_the_first_item(
    tmp_path: Path,
) -> None:
    """Digest and time stand in the manifest when the first item begins, and never change."""
    out, seen = tmp_path / "out", list[Any]()

    def look(_run: str, _item: str) -> None:
        seen.append(read_manifest(out)["registered"])

    before = datetime.now(UTC)
    await run_chain(out, plan(), Registering(look))
    told = yaml.safe_load((out / "plan.yaml").read_text())["hypotheses"]
    (first,) = {json.dumps(each, sort_keys=True) for each in seen}
    assert json.loads(first)["sha256"] == digest(told)
    at = datetime.fromisoformat(json.loads(first)["time"])
    assert before.replace(microsecond=0) <= at <= datetime.now(UTC)
    await run_chain(out, plan(), Registering())  # again, with nothing left to do
    assert json.dumps(read_manifest(out)["registered"], sort_keys=True) == first
    assert not verify_directory(out)


async def test_plan_when_it_registers_nothing_has_no_entry(tmp_path: Path) -> None:
    """A plan without hypotheses is none with an empty list of them."""
    await run_chain(tmp_path / "out", chain_plan(), Registering())
    assert "registered" not in read_manifest(tmp_path / "out")


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"margin": 0.1}, r"plan\.hypotheses\[0\]\.margin: 0\.0 → 0\.1"),
        ({"direction": "less"}, r"plan\.hypotheses\[0\]\.direction: greater → less"),
        ({"alpha": 0.1}, r"plan\.hypotheses\[0\]\.alpha: 0\.05 → 0\.1"),
        (None, r"plan\.hypotheses"),
    ],
)
async def test_hypotheses_when_changed_after_the_start_are_refused(
    tmp_path: Path, changed: dict[str, Any] | None, said: str
) -> None:
    """A claim that fits the data is not the one that was made; the difference is named."""
    await run_chain(tmp_path / "out", plan(), Registering())
    other = chain_plan() if changed is None else plan(**changed)
    with pytest.raises(ResumeRefusedError, match=said):
        await run_chain(tmp_path / "out", other, Registering())


@pytest.mark.parametrize(
    ("changed", "said"),
    [
        ({"treated": {"stream": "secnd"}}, "hypotheses.0.treated.stream: there is no 'secnd'"),
        ({"baseline": {"steam": "first"}}, "hypotheses.0.baseline: there is no factor 'steam'"),
        ({"measure": "luck"}, "hypotheses.0.measure: there is no 'luck'"),
    ],
)
async def test_hypotheses_when_they_name_what_is_not_there_are_refused_before_anything(
    tmp_path: Path, changed: dict[str, Any], said: str
) -> None:
    """The message names the place, and no directory is made."""
    with pytest.raises(PlanError, match=said):
        await run_chain(tmp_path / "out", plan(**changed), Registering())
    assert not (tmp_path / "out").exists()


def test_hypotheses_when_a_study_takes_none_are_refused() -> None:
    """A study that compares nothing cannot be claimed anything of."""
    with pytest.raises(PlanError, match="hypotheses: the study 'chain' takes none"):
        prepare(ChainStudy(), plan())


def tampered(out: Path, *, plan_digest: bool, registered: str) -> None:
    """Change a margin in `plan.yaml`, and what the manifest says of it as far as asked."""
    told = yaml.safe_load((out / "plan.yaml").read_text())
    told["hypotheses"][0]["margin"] = 0.5
    (out / "plan.yaml").write_text(yaml.safe_dump(told, sort_keys=False))
    manifest = json.loads((out / "manifest.json").read_text())
    if plan_digest:
        manifest["plan"] = digest(told)
    if registered == "gone":
        del manifest["registered"]
    (out / "manifest.json").write_text(json.dumps(manifest))


@pytest.mark.parametrize(
    ("plan_digest", "registered", "said"),
    [
        (False, "kept", "not the plan of the manifest"),
        (True, "kept", "not those that were registered"),
        (True, "gone", "not those that were registered"),
    ],
)
async def test_hypotheses_when_tampered_with_afterwards_are_seen_and_no_report_is_made(
    tmp_path: Path, plan_digest: bool, registered: str, said: str
) -> None:
    """A claim that was made to fit shows, also where the plan's own digest was mended."""
    out = tmp_path / "out"
    await run_chain(out, plan(), Registering())
    tampered(out, plan_digest=plan_digest, registered=registered)
    assert any(said in str(finding) for finding in verify_directory(out))
    refused = pytest.raises(RunDirectoryError, match="no report is made of a damaged log")
    with refused, sealed_report(out):
        pass
