"""What a run came to, written down: as files, as a grade, and as a study's log holds it."""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from langgraft._core.canonical import JSON
from langgraft._core.clock import SystemClock
from langgraft.benchmarks.harness.files import atomic_write, make_directory
from langgraft.benchmarks.mle.agents import agent_named
from langgraft.benchmarks.mle.agents.base import SUBMISSION
from langgraft.benchmarks.mle.agents.settings import AgentName
from langgraft.benchmarks.mle.execute_agent import Found
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.grading import grade_submission, report, report_json

_ELSEWHERE: Final = {"created_at", "submission_path"}
"""Fields of a grade that differ between machines."""


def keep_files(found: Found, agent: AgentName, folder: Path) -> Path:
    """Write what a run left to a folder; return where its submission is, or would be.

    A run that left no file of a name removes one that was there.

    Raises:
        RunDirectoryError: A file cannot be written.
    """
    make_directory(folder)
    contents: dict[str, bytes | None] = dict.fromkeys(agent_named(agent).files)
    contents |= {SUBMISSION: found.submission, **found.came.files}
    for name, content in contents.items():
        if content is None:
            (folder / name).unlink(missing_ok=True)
        else:
            atomic_write(folder / name, content)
    return folder / SUBMISSION


def grade(submission: Path, competition: Competition) -> dict[str, JSON]:
    """Grade a submission; return what is the same on every machine of the report on it.

    Where there is no file nothing was submitted, which is no fault to be warned of.

    Raises:
        CompetitionError: The competition's own files are at fault.
        MissingExtraError: pandas or scikit-learn is not installed.
    """
    if submission.exists():
        made = grade_submission(submission, competition)
    else:
        made = report(None, competition, submission, exists=False, clock=SystemClock())
    return {key: value for key, value in report_json(made).items() if key not in _ELSEWHERE}


def result_of(
    found: Found, agent: AgentName, competition: Competition, report: Mapping[str, JSON]
) -> dict[str, JSON]:
    """Return what a study's log holds of a run: what all agents have, and the agent's own."""
    submission = found.submission
    return {
        "agent": agent,
        "competition": competition.id,
        "modality": competition.modality,
        "metric_group": competition.metric_group,
        "metric": competition.grader.name,
        "lower_is_better": competition.board.thresholds.lower_is_better,
        **found.came.fields,
        "validation": found.came.validation,
        "report": dict(report),
        "submission_sha256": "" if submission is None else hashlib.sha256(submission).hexdigest(),
        "usage": dict(found.usage),
    }
