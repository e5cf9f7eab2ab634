"""What a run may use, as its prompts tell it."""

import re
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from langgraft.environments.sandboxes.sandbox import Limits
from langgraft.nodes.competition_run import Bounds, roughly
from langgraft.nodes.prompts import prompt


def told(spent: float, *, done: int = 0, **given: Any) -> str:
    """Return the block of bounds."""
    bounds = Bounds(Limits(), **{"seconds": 60.0, "steps": 10, "hours": 24.0, **given})
    return bounds.text(prompt("bounds"), done=done, spent=spent)


def test_time_when_told_is_told_roughly() -> None:
    """So that a repetition seldom reads otherwise."""
    times = [roughly(seconds) for seconds in (86_390, 3601, 3600, 1199, 1, 0)]
    hours, minutes = ["about 24 hours", "about 2 hours"], ["about 60 minutes", "about 20 minutes"]
    assert times == [*hours, *minutes, "about 10 minutes", "no time"]


@given(st.floats(0, 100_000), st.floats(0, 1))
def test_bounds_when_little_time_goes_by_are_the_same(spent: float, share: float) -> None:
    """Within an hour, and near the end within ten minutes, no word changes."""
    rest = max(86_400 - spent, 0.0)
    unit = 3600 if rest > 3600 else 600
    least = (rest // unit) * unit if rest % unit else rest
    later = 86_400 - (least + (rest - least) * max(share, 0.01))
    assert told(later) == told(spent)


@given(st.floats(0, 1e6), st.floats(0.01, 100), st.integers(0, 30), st.integers(1, 20))
def test_bounds_when_more_was_used_than_allowed_tell_that_nothing_is_left(
    spent: float, hours: float, done: int, steps: int
) -> None:
    """Shares are from 0 to 100, and only what is over has no time left."""
    text = told(spent, hours=hours, done=done, steps=steps)
    shares = [int(share) for share in re.findall(r"(-?\d+) % used", text)]
    assert len(shares) == 2
    assert all(0 <= share <= 100 for share in shares)
    assert ("Time: no time left" in text) == (spent >= hours * 3600)
    assert (f"Steps: 0 of {steps} left" in text) == (done >= steps)


def test_bounds_when_the_workspace_is_on_disk_tell_it() -> None:
    """Files take memory, or they do not: who has 200 GiB of disk need not spare them."""
    assert "2,048 MiB for all processes together, with the files that they write; the" in told(0)
    on_disk = Bounds(Limits(workspace_on="disk"), 60.0, 10).text(prompt("bounds"), done=0, spent=0)
    memory = next(line for line in on_disk.splitlines() if "Memory" in line)
    assert memory == (
        "- Memory: 2,048 MiB for all processes together; the workspace: 512 MiB on disk, and what"
        " writes more is stopped."
    )


def test_bounds_when_there_are_weights_tell_their_names() -> None:
    """By the names that programs ask for, and where they lie; without any no word is lost on it."""
    assert "weights" not in told(0)
    names = tuple(f"owner/net{number}" for number in range(70))
    line = told(0, weights=names).splitlines()[-1]
    assert line.startswith("- Pretrained weights, read-only in ./weights,")
    assert "owner/net0, owner/net1, " in line
    assert line.endswith("owner/net59, and 10 more.")


def test_execution_when_the_run_ends_before_its_time_gets_what_is_left() -> None:
    """In whole minutes, which a model may be shown, and never nothing."""
    bounds = Bounds(Limits(), 7200.0, 10, 24.0)
    times = [bounds.allowed(spent) for spent in (0, 86_400 - 7199, 86_400 - 59.5, 90_000)]
    assert times == [7200.0, 7140.0, 59.0, 1.0]
    assert Bounds(Limits(), 7200.0, 10).allowed(1e9) == 7200.0
