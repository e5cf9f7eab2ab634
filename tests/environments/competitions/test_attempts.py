"""An attempt at a competition: what is taken out, what is told, and that no answer is looked at."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from counting_sandbox import CountingSandbox

from langgraft._core.errors import CompetitionError, InputError
from langgraft.environments.competitions.attempts import (
    SUBMISSIONS,
    Attempt,
    aattempt,
    attempt,
    input_files,
    judged,
    told,
)
from langgraft.environments.competitions.competition import Board, Competition, Grader, Thresholds
from langgraft.environments.sandboxes.sandbox import (
    ExecutionResult,
    Limits,
    ProgramError,
    PythonProgram,
)
from langgraft.environments.sandboxes.subprocess import SubprocessSandbox

pytest.importorskip("pandas", reason="needs pandas: pip install 'langgraft[mle]'")

SAMPLE = b"id,target\n1,0.5\n2,0.5\n3,0.5\n"
VALID = b"id,target\n1,0.1\n2,0.9\n3,0.4\n"
PROGRAM = PythonProgram("print('Validation AUC: 0.9')")


def _never(submission: Any, answers: Any) -> float:
    raise AssertionError("an attempt was graded")


@pytest.fixture
def competition(tmp_path: Path) -> Competition:
    """Make a competition whose private folder is not even there."""
    public, private = tmp_path / "public", tmp_path / "private"
    (public / "images").mkdir(parents=True)
    (public / "sample_submission.csv").write_bytes(SAMPLE)
    (public / "train.csv").write_bytes(b"id,target\n9,1\n")
    (public / "images" / "1.png").write_bytes(b"\x89PNG")
    return Competition(
        id="toy",
        name="Toy",
        description="Guess.",
        competition_type="simple",
        modality="tabular",
        metric_group=None,
        grader=Grader("auc-roc", _never),
        board=Board(Thresholds(0.9, 0.8, 0.7, 0.6, lower_is_better=False, teams=10)),
        raw_dir=tmp_path / "raw",
        public_dir=public,
        private_dir=private,
        answers=private / "answers.csv",
        sample_submission=public / "sample_submission.csv",
        prepare_fn=None,
    )


def result(files: Mapping[str, bytes] | None = None, **changes: Any) -> ExecutionResult:
    """Make the result of a program that printed a metric and left files."""
    fine = ExecutionResult(0, "Validation AUC: 0.9\n", "", duration=3.0, files=dict(files or {}))
    return replace(fine, **changes)


def sandbox(answer: ExecutionResult) -> CountingSandbox:
    """Make a sandbox in which every program ends so."""
    return CountingSandbox(lambda *_: answer)


def test_attempt_when_a_submission_is_left_then_takes_it_out_and_reads_the_metric(
    competition: Competition,
) -> None:
    """A valid submission comes with its bytes as they are, and the metric the program printed."""
    made = attempt(PROGRAM, competition, sandbox(result({"submission.csv": VALID})))
    assert made.submission == VALID
    assert made.submission_present
    assert made.submission_valid
    assert made.reasons == ()
    assert made.metric == 0.9


async def test_aattempt_when_asked_then_does_what_attempt_does(competition: Competition) -> None:
    """Sync and async come to the same."""
    answer = result({"submission.csv": VALID})
    made = await aattempt(PROGRAM, competition, sandbox(answer), seed=3)
    assert made == attempt(PROGRAM, competition, sandbox(answer), seed=3)


def test_attempt_when_it_runs_then_hands_on_all_that_decides_it(competition: Competition) -> None:
    """Program, files, time, seed and environment reach the sandbox, and AIDE's folder is there."""
    below = sandbox(result())
    attempt(
        PROGRAM,
        competition,
        below,
        seconds=5,
        seed=7,
        files={"notes.txt": b"x"},
        environment={"A": "b"},
    )
    (job,) = below.jobs
    assert (job.program, job.seconds, job.seed) == (PROGRAM, 5, 7)
    assert job.environment == {"A": "b"}
    assert job.files["notes.txt"] == b"x"
    assert any(name.startswith("working/") for name in job.files)
    assert job.collect == ("submission.csv", "working/submission.csv", "submission/submission.csv")


def test_attempt_when_two_submissions_are_left_then_counts_the_first_place(
    competition: Competition,
) -> None:
    """`submission.csv` goes before AIDE's `working/submission.csv`, which counts alone too."""
    both = {"working/submission.csv": b"id\n", "submission.csv": VALID}
    assert judged(result(both), competition).submission == VALID
    assert judged(result({"working/submission.csv": VALID}), competition).submission_valid


def test_attempt_when_the_submission_is_not_like_the_sample_then_says_why(
    competition: Competition,
) -> None:
    """What is wrong with it is told by the sample alone."""
    made = judged(result({"submission.csv": b"id,wrong\n1,2\n"}), competition)
    assert made.submission_valid is False
    assert made.reasons
    assert "wrong" in " ".join(made.reasons)


def test_attempt_when_none_is_left_then_is_absent_and_not_invalid(
    competition: Competition,
) -> None:
    """A missing submission is told apart from a wrong one."""
    made = judged(result(), competition)
    assert made.submission_valid is None
    assert not made.submission_present
    assert "left no submission.csv" in made.reasons[0]


def test_attempt_when_the_submission_is_a_link_then_is_absent_with_the_reason(
    competition: Competition,
) -> None:
    """What was refused on its way out is named, and the next place still counts."""
    refused = {"submission.csv": "a link"}
    made = judged(result(left_out=refused), competition)
    assert made.reasons == ("submission.csv was not taken out: a link",)
    elsewhere = judged(result({"working/submission.csv": VALID}, left_out=refused), competition)
    assert elsewhere.submission_valid


def test_attempt_when_judged_then_opens_nothing_private(
    competition: Competition, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No file outside of the public folder is opened, whatever the program left."""
    opened: list[Path] = []
    real = Path.open

    def watched(path: Path, *arguments: Any, **named: Any) -> Any:
        opened.append(path)
        return real(path, *arguments, **named)

    competition.private_dir.mkdir()
    competition.answers.write_bytes(b"id,target\n1,0\n2,1\n3,0\n")
    monkeypatch.setattr(Path, "open", watched)
    for content in (VALID, b"", b"\xff\xfe", b"id,target\n"):
        judged(result({"submission.csv": content}), competition)
    inputs = input_files(competition)
    assert all(path.is_relative_to(competition.public_dir) for path in (*opened, *inputs.values()))


def test_attempt_when_the_answers_change_then_tells_the_same(competition: Competition) -> None:
    """Nothing that is told depends on an answer."""
    told_without = judged(result({"submission.csv": VALID}), competition)
    competition.private_dir.mkdir()
    competition.answers.write_bytes(b"other,columns\n")
    assert judged(result({"submission.csv": VALID}), competition) == told_without


def test_attempt_when_the_program_prints_a_score_then_it_is_only_its_own_word(
    competition: Competition,
) -> None:
    """A boast is told as the program's, and makes no submission valid."""
    made = judged(result(stdout="Final score: 1.0\nmedal: gold\n"), competition)
    assert made.metric == 1.0
    assert not made.submission_valid
    text = told(made, Limits())
    assert "as the program reports it: 1" in text


def test_attempt_when_the_program_asks_for_the_source_then_says_where_and_tells_no_agent(
    competition: Competition,
) -> None:
    """A report can show who looked answers up; the agent is not taught what counts."""
    made_of = replace(competition, source_modules=("statsmodels",))
    code = "import statsmodels.api as sm\nprint('Validation AUC: 0.9')\n"
    made = judged(result({"submission.csv": VALID}), made_of, code)
    assert [leak.line for leak in made.leaks] == [1]
    assert "statsmodels" not in told(made, Limits())
    assert judged(result(), made_of, PROGRAM.code).leaks == ()


def test_input_files_when_asked_then_are_the_public_data_at_input(competition: Competition) -> None:
    """Where there is no mount, the data goes in as files, at the same place."""
    names = list(input_files(competition))
    assert names == ["input/images/1.png", "input/sample_submission.csv", "input/train.csv"]


def _told(made: Attempt) -> str:
    return told(made, Limits(seconds=60))


def test_told_when_all_is_well_then_is_output_time_submission_and_metric(
    competition: Competition,
) -> None:
    """An agent reads what was printed, how long it took, and what is left of it."""
    assert _told(judged(result({"submission.csv": VALID}), competition)) == (
        "Validation AUC: 0.9\n\n"
        "It ran for 3.0 s of the 60 s allowed.\n\n"
        "Submission: present and valid.\n\n"
        "Validation metric, as the program reports it: 0.9."
    )


def test_told_when_all_goes_wrong_then_names_each(competition: Competition) -> None:
    """Exception, limit, missing submission and missing metric are all told."""
    failed = result(
        stdout="",
        stderr="Traceback …",
        exit_code=1,
        oom=True,
        error=ProgramError("MemoryError", "no more"),
    )
    text = _told(judged(failed, competition))
    assert "OUT OF MEMORY" in text
    assert "Exception: MemoryError: no more" in text
    assert "Submission: absent.\n- the program left no" in text
    assert "Validation metric: none (no line of its output names a metric" in text


def test_told_when_the_submission_is_wrong_then_lists_why(competition: Competition) -> None:
    """Each reason has a line of its own."""
    made = judged(result({"submission.csv": b"id,target\n1,x\n1,2\n"}), competition)
    text = _told(made)
    assert "Submission: present, but not valid.\n- " in text
    assert all(f"- {reason}" in text for reason in made.reasons)


@pytest.mark.parametrize("place", SUBMISSIONS)
def test_attempt_when_really_run_then_finds_the_data_and_its_submission_is_found(
    competition: Competition, place: str
) -> None:
    """A program reads `./input`, writes to either place, and is told as it was."""
    code = f"""
import csv
rows = list(csv.DictReader(open("input/sample_submission.csv")))
with open("{place}", "w") as file:
    file.write("id,target\\n" + "".join(row["id"] + ",0.25\\n" for row in rows))
print("Validation AUC: 75 %")
"""
    with SubprocessSandbox() as really:
        made = attempt(PythonProgram(code), competition, really, files=input_files(competition))
    assert made.result.ok
    assert made.submission == b"id,target\n1,0.25\n2,0.25\n3,0.25\n"
    assert made.submission_valid
    assert made.metric == 0.75


async def test_attempt_when_it_cannot_be_judged_then_nothing_is_run(
    competition: Competition,
) -> None:
    """Neither for data that is not prepared, nor for what is no program."""
    unused = sandbox(result())
    with pytest.raises(InputError, match=r"give PythonProgram\(code\)"):
        attempt("print(1)", competition, unused)  # type: ignore[arg-type]
    competition.sample_submission.unlink()
    with pytest.raises(CompetitionError, match="the data of toy is not prepared"):
        attempt(PROGRAM, competition, unused)
    with pytest.raises(CompetitionError, match="the data of toy is not prepared"):
        await aattempt(PROGRAM, competition, unused)
    assert unused.jobs == []
