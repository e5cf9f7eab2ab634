"""`langgraft preview` says what a plan is good for before it is paid for."""

import json
from pathlib import Path

import yaml
from typer.testing import CliRunner

from langgraft._core.errors import PlanError
from langgraft.cli.app import app


def test_preview_when_study_has_notes_then_prints_them_in_table_and_json() -> None:
    """The detectable difference of the demo stands in both, smaller plans seeing less."""
    shown = CliRunner().invoke(app, ["preview", "demo"])
    assert shown.exit_code == 0
    line = shown.output.strip().splitlines()[-1]
    assert line.startswith("detectable difference at 80 % power: about ")
    assert "(60 test items × 5 runs, 4 memories compared" in line  # noqa: RUF001
    full = json.loads(CliRunner().invoke(app, ["preview", "demo", "--json"]).output)
    assert full["notes"] == [line]
    limited = CliRunner().invoke(app, ["preview", "demo", "--limit", "1", "--json"])
    assert "the plan is too small (2 test items" in json.loads(limited.output)["notes"][0]


def test_preview_when_a_plan_registers_hypotheses_says_what_they_would_see(tmp_path: Path) -> None:
    """Each with its claim, family and level, and the true difference that would be found; a typo is one line."""
    plan = {
        "study": "continual",
        "tasks": {"A": "babyai/action_obj_door", "B": "babyai/pickup_loc"},
        "runs": 3,
        "baseline_runs": 3,
        "train_items": 4,
        "test_items": 30,
        "conditions": [{"name": "agg", "provider": "insight"}],
        "hypotheses": [
            {
                "name": "it helps",
                "treated": {"condition": "agg"},
                "baseline": {"condition": "none"},
                "measure": "success",
                "direction": "greater",
                "margin": 0.02,
            },
            {
                "name": "no worse",
                "treated": {"condition": "agg", "sequence": "A>B", "task": "B"},
                "baseline": {"condition": "agg", "sequence": "B", "task": "B"},
                "measure": "success",
                "direction": "non_inferior",
                "margin": 0.05,
            },
        ],
    }
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump(plan))
    shown = CliRunner().invoke(app, ["preview", str(path), "--json"])
    assert shown.exit_code == 0
    first, second, *_ = json.loads(shown.output)["notes"]
    assert first.startswith(
        "registered: it helps: success: (condition agg) - (condition none) > 0.02;"
    )
    assert "family 'registered' of 2, Holm at 0.05, general; seen four times in five where" in first
    assert float(first.split("where it is ")[1].split()[0]) > 2
    assert "shown four times in five within" in second
    assert second.endswith("more than its margin")
    plan["hypotheses"][1]["baseline"]["sequence"] = "C"  # type: ignore[index]
    path.write_text(yaml.safe_dump(plan))
    for command in (["preview", str(path)], ["run", str(path), "--out", str(tmp_path / "out")]):
        refused = CliRunner().invoke(app, command)
        assert refused.exit_code != 0
    assert isinstance(refused.exception, PlanError)
    assert "hypotheses.1.baseline.sequence: there is no 'C'" in str(refused.exception)
    assert not (tmp_path / "out").exists()
