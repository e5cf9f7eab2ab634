"""Machine-learning competitions in MLE-bench's layout: their data, their boards, their grades.

    from langgraft.environments.competitions import (
        Registry, check_submission, grade_submission, prepare_competition
    )

    competition = Registry("data").get_competition("digits")
    prepare_competition(competition)
    check_submission("submission.csv", competition).reasons    # what an agent may know
    grade_submission("submission.csv", competition).gold_medal  # what it may not

competition   one competition: texts, folders, metric, board; the medal rule
layout        a folder in MLE-bench's layout, read and checked
registry      finds competitions: those that ship, MLE-bench's (an installed one's, and the 22 lite
              ones without it), a folder of one's own
preparing     makes the data, all of it or nothing; checksums
archives      unpacks archives among the data, once: what agents find
submissions   whether a submission is valid, by the sample submission alone
graders       metrics as grade functions
grading       a grade, and the report as `mlebench grade` writes it
attempts      what came of a program for a competition, as an agent is told; the metric that it says it reached;
              whether it asks for source data
preview       what a prompt says of the data
shipped/      competitions made from data inside well-known packages

Grades, checks and preparation need the extra `mle` (pandas, scikit-learn); listing competitions
and the medal rule do not.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft._core.errors import CompetitionError
    from langgraft.environments.competitions.archives import Unpacked, unpack_archives
    from langgraft.environments.competitions.attempts import (
        Attempt,
        aattempt,
        attempt,
        input_files,
        told,
    )
    from langgraft.environments.competitions.competition import (
        Board,
        Competition,
        GradeFunction,
        Grader,
        Medal,
        MetricGroup,
        Modality,
        Thresholds,
        above_median,
        medal,
        rank,
    )
    from langgraft.environments.competitions.graders import InvalidSubmissionError
    from langgraft.environments.competitions.grading import (
        CompetitionReport,
        GradingReport,
        grade_jsonl,
        grade_submission,
    )
    from langgraft.environments.competitions.preparing import prepare_competition
    from langgraft.environments.competitions.registry import Registry
    from langgraft.environments.competitions.submissions import Validity, check_submission

__all__ = [
    "Attempt",
    "Board",
    "Competition",
    "CompetitionError",
    "CompetitionReport",
    "GradeFunction",
    "Grader",
    "GradingReport",
    "InvalidSubmissionError",
    "Medal",
    "MetricGroup",
    "Modality",
    "Registry",
    "Thresholds",
    "Unpacked",
    "Validity",
    "aattempt",
    "above_median",
    "attempt",
    "check_submission",
    "grade_jsonl",
    "grade_submission",
    "input_files",
    "medal",
    "prepare_competition",
    "rank",
    "told",
    "unpack_archives",
]

_MODULES = {
    "archives": ("Unpacked", "unpack_archives"),
    "attempts": ("Attempt", "aattempt", "attempt", "input_files", "told"),
    "competition": (
        "Competition",
        "GradeFunction",
        "Grader",
        "MetricGroup",
        "Modality",
        "Board",
        "Medal",
        "Thresholds",
        "above_median",
        "medal",
        "rank",
    ),
    "graders": ("InvalidSubmissionError",),
    "grading": ("CompetitionReport", "GradingReport", "grade_jsonl", "grade_submission"),
    "preparing": ("prepare_competition",),
    "registry": ("Registry",),
    "submissions": ("Validity", "check_submission"),
}
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "CompetitionError": "langgraft._core.errors",
        **{name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names},
    },
)
