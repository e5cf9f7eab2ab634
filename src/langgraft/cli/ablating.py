"""The command `ablate`: does memory help an agent of one's own?"""

from pathlib import Path
from typing import Any

from langgraft._core.canonical import JSON
from langgraft._core.files import atomic_write
from langgraft.benchmarks.ablation.experiment import Experiment
from langgraft.benchmarks.ablation.running import Ablation, ablate, preview_ablation
from langgraft.benchmarks.ablation.study import load_experiment
from langgraft.benchmarks.harness.progress import make_progress
from langgraft.cli.printing import complain, say, show_table, write_json


def preview(experiment: str, *, harm: bool, credit: int, as_json: bool) -> None:
    """Show what an experiment takes, and what it could find.

    Raises:
        InputError: It cannot be imported, or asks for something impossible.
    """
    found = preview_ablation(load_experiment(experiment), harm=harm, credit=credit)
    if as_json:
        told: dict[str, JSON] = {
            "attempts": found.attempts,
            "calls": found.calls,
            "most_prompt_tokens": found.prompt_tokens,
            "most_completion_tokens": found.completion_tokens,
            "notes": list(found.notes),
        }
        write_json(told)
        return
    for line in str(found).splitlines():
        say(line)


def run(experiment: str, *, out: Path, summary: Path | None, as_json: bool, **choices: Any) -> int:
    """Run an experiment, or go on where it was stopped; return the exit code.

    Args:
        experiment: `package.module:object`.
        out: The run directory.
        summary: File that the verdict is written to as Markdown.
        as_json: Whether progress and verdict are written as JSON.
        **choices: As `ablate` takes them.

    Raises:
        InputError: It cannot be imported, or something given is wrong.
        LanggraftError: It was stopped.
    """
    complain(f"importing {experiment}")
    loaded: Experiment = load_experiment(experiment)
    progress = make_progress("json" if as_json else "auto")
    try:
        found = ablate(loaded, out=out, name=experiment, progress=progress, **choices)
    finally:
        progress.close()
    if summary is not None:
        atomic_write(summary, found.summary().encode())
    _show(found, as_json=as_json)
    return found.exit_code


def _show(found: Ablation, *, as_json: bool) -> None:
    if as_json:
        write_json(found.to_json())
        return
    if found.analysis.arms:
        seconds = found.latency
        rows = [(*row, f"{seconds.get(row[0], 0.0):.2f}") for row in found.rows()]
        show_table(found.title, (*found.columns, "seconds"), rows)
    for line in (*found.lines(), f"page: {found.page}"):
        say(line)
