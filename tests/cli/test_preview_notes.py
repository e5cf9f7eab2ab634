"""`langgraft preview` says what a plan is good for before it is paid for."""

import json

from typer.testing import CliRunner

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
