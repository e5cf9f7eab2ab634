"""The submissions of a study as MLE-bench lists them, to be graded again by anybody.

    langgraft competitions grade report/submissions.jsonl

A line for each run that ended, `{"competition_id": …, "submission_path": …}`. Where nothing was
submitted there is no file at the path, as MLE-bench has it.
"""

from pathlib import Path
from typing import Final

from langgraft._core.canonical import canonical_json
from langgraft.benchmarks.harness.files import atomic_write, make_directory
from langgraft.benchmarks.harness.log import PlanLog, run_folder
from langgraft.benchmarks.harness.study import RunFiles
from langgraft.benchmarks.mle.agents.base import SUBMISSION
from langgraft.benchmarks.mle.runs import SEARCH

SUBMISSIONS: Final = "submissions.jsonl"


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
