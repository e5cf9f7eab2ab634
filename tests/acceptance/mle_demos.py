"""What the demos of agents for competitions have in common: plans that ship, time, contrasts."""

from pathlib import Path
from typing import Any

import yaml

from acceptance.command import Ended
from acceptance.figure import Figure, Setting
from langgraft._core.canonical import JSON
from langgraft.benchmarks.comparison.estimates import Estimate
from langgraft.benchmarks.mle.analysis import Analysis
from langgraft.benchmarks.studies import shipped_plans


def shipped(name: str) -> dict[str, Any]:
    """Return a plan that ships."""
    plan: dict[str, Any] = yaml.safe_load(shipped_plans()[name].read_text(encoding="utf-8"))
    return plan


def write_plan(setting: Setting, name: str, plan: dict[str, Any]) -> Path:
    """Write a plan, with data of its own."""
    path = setting.work / f"{name}.yaml"
    own: dict[str, JSON] = {**plan, "data_dir": str(setting.work / "data")}
    path.write_text(yaml.safe_dump(own), encoding="utf-8")
    return path


def ends_in_time(
    setting: Setting, promise: str, ended: tuple[Ended, Ended], how: str, *, longest: float
) -> Figure:
    """Tell how long a demo took; at reduced size that is not judged.

    Args:
        setting: Where it was.
        promise: What is promised.
        ended: The preview, and the run.
        how: Command and size.
        longest: Seconds.
    """
    previewed, done = ended
    foretold = next((line for line in previewed.stdout.splitlines() if "minute" in line), "")
    complaint = "" if done.code == 0 else f": {done.stderr.strip()[-300:]}"
    return Figure(
        promise,
        f"{how}, competitions prepared on the way; the preview says: {foretold.strip()}",
        f"{done.seconds:.0f} s, exit code {done.code}{complaint}",
        f"< {longest:g} s, exit code 0",
        done.code == 0 and (setting.reduced or done.seconds < longest),
    )


def contrast(
    analysis: Analysis,
    how: str,
    of: tuple[str, str],
    promise: str,
    *,
    below: bool | None = None,
) -> Figure:
    """Tell a condition's difference, judged for other seeds of these competitions.

    A few competitions say little of others: that interval is told beside it.
    """
    found = analysis.contrast(*of)
    scale, digits = found.measure.scale, found.measure.digits

    def told(estimate: Estimate | None) -> str:
        if estimate is None:
            return "no spread between seeds, so no interval,"
        ends = f"[{scale * estimate.low:.{digits}f}, {scale * estimate.high:.{digits}f}]"
        return f"{scale * estimate.value:+.{digits}f} {ends}"

    lower = found.same_items is not None and found.same_items.high < 0
    bound = {None: "", True: "the 95 % interval is below 0", False: "the 95 % interval is not"}
    return Figure(
        promise,
        f"{how}; difference from no memory in {found.measure.unit}, {found.pairs} pairs",
        f"{told(found.same_items)} over other seeds of these competitions; {told(found.estimate)}"
        " over other competitions, too",
        bound[below],
        None if below is None else lower == below,
    )
