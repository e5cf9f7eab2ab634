"""The page on how to run the study: what it says of plans is so."""

import json
import os
import re
from pathlib import Path

import pytest
from typer.testing import CliRunner

from langgraft.benchmarks.mle.agents.settings import SECTIONS
from langgraft.benchmarks.mle.conditions import NAMED
from langgraft.benchmarks.mle.plan import MlePlan
from langgraft.benchmarks.reporting.words import DASH
from langgraft.benchmarks.studies import shipped_plans
from langgraft.cli.app import app
from langgraft.environments.competitions.registry import Registry

PAGE = (Path(__file__).resolve().parents[3] / "docs" / "mle-study.md").read_text(encoding="utf-8")
PLANS = ("demo-mle", "demo-mle-chain", "mle-shipped", "mle-policies", "mle-lite")


def previewed(plan: str) -> dict[str, object]:
    """Return what `langgraft preview` says of a plan."""
    shown = CliRunner().invoke(app, ["preview", plan, "--json"])
    assert shown.exit_code == 0, shown.output
    found: dict[str, object] = json.loads(shown.output)
    return found


def size_row(plan: str) -> str:
    """Return the row of the page's table of sizes, as `preview` counts now."""
    found = previewed(plan)
    totals, notes = found["total"], found["notes"]
    assert isinstance(totals, list)
    assert isinstance(notes, list)
    text = "\n".join(notes)
    programs = re.findall(r"^programs.*?: at most ([\d,]+) in", text, re.MULTILINE)
    time = "".join(re.findall(r"^time: at most about (.+?) if", text, re.MULTILINE)) or DASH
    cells = [*totals, sum(int(count.replace(",", "")) for count in programs)]
    return f"| `{plan}` | {' | '.join(f'{cell:,}' for cell in cells)} | {time} |"


@pytest.mark.parametrize("plan", PLANS)
def test_sizes_of_the_page_when_read_are_what_preview_says(
    plan: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Runs, items, model calls, programs and time on two processors: a row to paste if not."""
    monkeypatch.setattr(os, "cpu_count", lambda: 2)
    assert size_row(plan) in PAGE.splitlines()


def test_commands_of_the_page_when_they_name_plans_name_those_that_ship() -> None:
    """Nobody types a plan that is not there."""
    named = set(re.findall(r"langgraft (?:run|preview) (\S+)", PAGE))
    assert named <= set(shipped_plans())


def test_plan_of_the_page_when_saved_can_be_previewed(tmp_path: Path) -> None:
    """The plan of one's own is accepted as it stands, and says whose data is missing."""
    (code,) = re.findall(r"^```yaml\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    plan = tmp_path / "own_study.yaml"
    plan.write_text(f"{code}data_dir: {tmp_path}\n")
    notes = previewed(str(plan))["notes"]
    assert "the data of 4 competitions is not prepared" in str(notes)


def test_conditions_and_settings_of_the_page_when_listed_are_all_there_are() -> None:
    """No condition, and no setting of an agent or a plan, is left out."""
    words = set(re.findall(r"`(\w+)`", PAGE))
    settings = {name for section in SECTIONS.values() for name in section.model_fields}
    plan = set(MlePlan.model_fields) - {"study", "title", "agents"}
    assert (set(NAMED) | settings | plan) - words - {"name"} == set()


def test_medals_that_the_page_says_tell_little_do() -> None:
    """Thresholds of the lite competitions that lie together."""
    found = Registry()
    boards = {
        each: found.get_competition(each).board.thresholds
        for each in found.get_lite_competition_ids()
    }
    same = [each for each, of in boards.items() if of.silver == of.bronze]
    assert same == ["aerial-cactus-identification", "tabular-playground-series-dec-2021"]
    close = [each for each, of in boards.items() if abs(of.bronze - of.median) < 0.00002]
    assert len(close) == 2
    assert all(each.startswith("text-normalization") for each in close)
