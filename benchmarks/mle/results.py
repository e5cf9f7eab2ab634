"""What runs came to, written down: as files, as a grade, as a study's log holds it, and as a list.

MLE-bench lists submissions to be graded again by anybody:

    langgraft competitions grade report/submissions.jsonl

A line for each run that ended, `{"competition_id": …, "submission_path": …}`. Where nothing was
submitted there is no file at the path, as MLE-bench has it.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from langgraft._core.canonical import JSON, canonical_json
from langgraft._core.effects import SystemClock
from langgraft._core.files import atomic_write, make_directory
from langgraft.benchmarks.harness.log import PlanLog, run_folder
from langgraft.benchmarks.harness.study import RunFiles
from langgraft.benchmarks.mle.agents import agent_named
from langgraft.benchmarks.mle.agents.base import SUBMISSION
from langgraft.benchmarks.mle.agents.settings import AgentName
from langgraft.benchmarks.mle.execute_agent import Found
from langgraft.benchmarks.mle.plan import SEARCH
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.grading import grade_submission, report, report_json

SUBMISSIONS: Final = "submissions.jsonl"
"""The file that lists submissions."""

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


def list_submissions(log: PlanLog, out: Path) -> Path:
    """List the submissions of a run directory in a file of the folder `out`; return the file.

    Raises:
        RunDirectoryError: It cannot be written.
    """
    lines = []
    for run in log.graph:
        if run.spec.factors["phase"] != SEARCH:
            continue
        kept = RunFiles(run_folder(log.path, run), log.path).kept
        for record in log.records(run.name):
            path = (kept / record.item_id / SUBMISSION).resolve()
            row = {"competition_id": record.result["competition"], "submission_path": str(path)}
            lines.append(f"{canonical_json(row)}\n")
    make_directory(out)
    atomic_write(out / SUBMISSIONS, "".join(lines).encode())
    return out / SUBMISSIONS
