"""The page of figures says what was measured, and what failed."""

import json
from pathlib import Path

import pytest
from acceptance import full_size, kill, sandboxes
from acceptance.__main__ import find_checkout, main
from acceptance.figure import Figure, Setting, verdict, write_page
from acceptance.groups import Group, measure_groups, say

from langgraft._core.errors import InputError

GOOD = Figure("it holds", "by | looking", "1", "1", passed=True)
BAD = Figure("it does not", "by looking", "0", "1", passed=False)
TOLD = Figure("it is so", "by looking", "7", "", passed=None)


def test_page_when_written_marks_each_row_and_counts_the_judged_ones(tmp_path: Path) -> None:
    """A failure is marked, what is only reported is not counted, and cells stay cells."""
    page = write_page(tmp_path, "heading", [("one", [GOOD, BAD]), ("two", [TOLD]), ("none", [])])
    text = page.read_text(encoding="utf-8")
    assert "1 of 2 judged figures pass" in text
    assert r"| it holds | by \| looking | 1 | 1 | pass |" in text
    assert "| it does not | by looking | 0 | 1 | **FAIL** |" in text
    assert "## none" not in text
    listed = json.loads((tmp_path / "figures.json").read_text(encoding="utf-8"))["figures"]
    assert [row["passed"] for row in listed] == [True, False, None]
    assert verdict([TOLD]) == "0 of 0 judged figures pass"


def test_group_when_its_measurement_breaks_is_a_promise_that_fails(tmp_path: Path) -> None:
    """One broken measurement is told, and hides no other."""

    def measure(_: Setting) -> list[Figure]:
        raise ValueError("no luck")

    setting = Setting(tmp_path, tmp_path, reduced=True, say=print)
    (figure,) = Group("title", measure).figures(setting)
    assert figure.passed is False
    assert figure.figure == "ValueError: no luck"


def test_groups_when_sizes_are_reduced_are_measured_side_by_side_and_speeds_after_them(
    tmp_path: Path,
) -> None:
    """Each group has a folder of its own and keeps its place; what times itself is alone."""
    groups = [
        Group("speed", full_size.measure, alone=True),
        Group("killed", kill.measure),
        Group("attacked", sandboxes.measure_battery),
    ]
    done = list(measure_groups(groups, Setting(tmp_path, tmp_path, reduced=True, say=say)))
    assert {each.number for each in done[:2]} == {1, 2}
    assert [(each.number, each.title, list(each.figures)) for each in done[2:]] == [
        (0, "speed", [])
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["00", "01", "02"]
    assert all(figure.passed is None for each in done for figure in each.figures)


def test_checkout_when_there_is_none_is_asked_for_in_words(tmp_path: Path) -> None:
    """An installed package cannot be cloned, and is told so."""
    with pytest.raises(InputError, match="no git checkout"):
        find_checkout(tmp_path / "site-packages" / "langgraft" / "__init__.py")


def test_acceptance_when_asked_wrongly_ends_with_2(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A group that does not exist and a path in the way are refused in one line."""
    (tmp_path / "file").write_text("")
    assert main(["--out", str(tmp_path / "out"), "--only", "nonsense"]) == 2
    assert main(["--out", str(tmp_path / "out"), "--only", "babyai", "--skip", "BabyAI"]) == 2
    assert main(["--out", str(tmp_path / "file"), "--only", "babyai"]) == 2
    lines = capsys.readouterr().err.splitlines()
    assert ["nonsense" in lines[0], "without 'BabyAI'" in lines[1]] == [True, True]
    assert ["file" in lines[2], len(lines)] == [True, 3]
