"""Reading plan files: every mistake is one line that says where and what."""

from pathlib import Path

import pytest
from chain_study import ChainPlan, ChainStudy, chain_plan
from typing_extensions import override

from langgraft._core.errors import PlanError
from langgraft.benchmarks.harness.plans import load_plan, prepare, resolved_yaml

STUDIES = {"chain": ChainStudy()}


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (b"study: chain\nitems: many\n", "items: input should be a valid integer.* .got 'many'."),
        (b"study: chain\nitemz: 3\n", "there is no itemz: did you mean 'items'"),
        (b"study: chains\n", "study: expected one of chain; got 'chains'"),
        (b"items: 3\n", "study: expected one of chain; got nothing"),
        (b"study: [chain]\n", r"study: expected one of chain; got \['chain'\]"),
        (b"- study\n", "a plan is a mapping of fields, got list"),
        (b"", "a plan is a mapping of fields, got NoneType"),
        (b"study: chain\n items: 3\n", "is not YAML: line 2, column 7"),
        (b"study: chain\nitems: 3\nitems: 4\n", "line 3, column 1: .*'items' is given twice"),
        (b"study: !!python/object:os.system x\n", "is not YAML: line 1, column 8"),
        (b"study: chain\x00\n", "is not YAML"),
        (b"study: \xff\n", r"is not UTF-8 text \(byte 7\)"),
    ],
)
def test_plan_when_malformed_then_one_line_says_where_and_what(
    tmp_path: Path, text: bytes, complaint: str
) -> None:
    """A malformed plan is refused in one line with path, place and value."""
    path = tmp_path / "plan.yaml"
    path.write_bytes(text)
    with pytest.raises(PlanError, match=complaint) as caught:
        load_plan(path, STUDIES)
    assert str(caught.value).startswith(f"{path}: ")
    assert "\n" not in str(caught.value)
    assert caught.value.path == path


def test_plan_when_file_is_missing_then_named(tmp_path: Path) -> None:
    """A file that is not there, or is a directory, is named."""
    with pytest.raises(PlanError, match=r"nothing\.yaml: cannot be read: No such file"):
        load_plan(tmp_path / "nothing.yaml", STUDIES)
    with pytest.raises(PlanError, match="cannot be read: Is a directory"):
        load_plan(tmp_path, STUDIES)


def test_plan_when_resolved_then_reads_back_equal(tmp_path: Path) -> None:
    """The resolved plan of a run directory is itself a plan file, with the same content."""
    path = tmp_path / "plan.yaml"
    plan = chain_plan(title="on: «off»", temperature=1e-7, probes=(1, 2))
    path.write_bytes(resolved_yaml(plan.model_dump(mode="json")))
    study, again = load_plan(path, STUDIES)
    assert study is STUDIES["chain"]
    assert again == plan


def test_prepare_when_a_value_is_not_json_then_refused() -> None:
    """A plan that has no canonical form is refused before anything is written."""
    with pytest.raises(PlanError, match="not JSON"):
        prepare(ChainStudy(), ChainPlan(study="chain", pause=float("nan")))


def test_prepare_when_repeated_then_manifest_is_equal() -> None:
    """The manifest depends on nothing but plan, study and installed packages."""
    assert (
        prepare(ChainStudy(), chain_plan()).manifest == prepare(ChainStudy(), chain_plan()).manifest
    )


def test_packages_when_a_study_names_some_then_are_held_beside_those_of_every_study() -> None:
    """What a study computes with is its own affair; what is not installed has no version."""

    class Computing(ChainStudy):
        @override
        def packages(self, plan: ChainPlan) -> tuple[str, ...]:
            return ("numpy", "no-such-package")

    plain = prepare(ChainStudy(), chain_plan()).packages
    assert "langgraph" in plain
    assert prepare(Computing(), chain_plan()).packages.keys() - plain.keys() == {"numpy"}
