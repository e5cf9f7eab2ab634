"""What an agent is told of its program: enough to mend it, and no more than it can read."""

from dataclasses import replace

import pytest

from langgraft.environments.sandboxes.result_text import told, trimmed
from langgraft.environments.sandboxes.sandbox import (
    MIB,
    ExecutionResult,
    Frame,
    Limits,
    ProgramError,
)

LIMITS = Limits(seconds=60, memory=1024 * MIB, workspace=100 * MIB, tmp=50 * MIB, shm=64 * MIB)
FINE = ExecutionResult(0, "fold 1\nfold 2\n", "", duration=12.34)


def test_told_when_all_went_well_then_shows_output_and_time() -> None:
    """A program that ended is told by what it printed and how long it took."""
    assert told(FINE, LIMITS) == "fold 1\nfold 2\n\nIt ran for 12.3 s of the 60 s allowed."


def test_told_when_nothing_was_printed_then_says_so() -> None:
    """Silence is told as such."""
    assert "printed nothing" in told(replace(FINE, stdout="\n"), LIMITS)


def test_told_when_the_job_had_its_own_time_then_tells_that() -> None:
    """The time that counted is the time that is told."""
    text = told(replace(FINE, stopped="timeout"), LIMITS, seconds=5)
    assert "TIMEOUT" in text
    assert "after 5 s" in text
    assert "of the 5 s allowed" in text


@pytest.mark.parametrize(
    ("duration", "allowed", "told_as"),
    [
        (12.34, 60, "less than the 60 seconds allowed"),
        (12.34, 7200, "less than a minute of the 120 minutes allowed"),
        (599, 7200, "less than 10 minutes of the 120 minutes allowed"),
        (3000, 7200, "less than an hour of the 120 minutes allowed"),
        (7000, 7200, "less than the 120 minutes allowed"),
        (0.5, 1, "less than the 1 second allowed"),
    ],
)
def test_told_when_it_is_not_to_be_exact_then_a_repetition_reads_the_same(
    duration: float, allowed: float, told_as: str
) -> None:
    """Seconds differ from run to run, and would make other prompts of the same search."""
    text = told(replace(FINE, duration=duration), LIMITS, seconds=allowed, exact=False)
    assert text == f"fold 1\nfold 2\n\nIt ran for {told_as}."
    ended = replace(FINE, duration=allowed + 0.1, stopped="timeout")
    assert "for all of the" in told(ended, LIMITS, seconds=allowed, exact=False)


@pytest.mark.parametrize(("length", "whole"), [(5100, True), (5101, False)])
def test_trimmed_when_longer_than_5100_characters_then_keeps_both_ends(
    length: int, whole: bool
) -> None:
    """Of a longer output the first and the last 2,500 characters are shown, and what is missing."""
    text = "a" * 2500 + "b" * (length - 5000) + "c" * 2500
    shown = trimmed(text)
    assert (shown == text) == whole
    assert shown.startswith("a" * 2500)
    assert shown.endswith("c" * 2500)
    assert ("[101 characters left out]" in shown) == (not whole)


def test_told_when_an_exception_ended_it_then_names_type_message_and_frames() -> None:
    """The exception is told even where the output around it was cut."""
    frames = (Frame("program.py", 3, "<module>", "fit()"), Frame("program.py", 1, "fit", ""))
    error = ProgramError("ValueError", "Input contains NaN", frames)
    text = told(replace(FINE, exit_code=1, stderr="x" * 9000, error=error), LIMITS)
    assert "Exception: ValueError: Input contains NaN\n" in text
    assert "  program.py, line 3, in <module>: fit()\n  program.py, line 1, in fit\n" in text
    assert "exit code 1" in text


def test_told_when_standard_error_is_noisy_then_still_shows_the_last_words() -> None:
    """Hundreds of warnings do not push out what a program prints in the end."""
    stdout = "".join(f"epoch {n}: loss {1 / (n + 1):.5f}\n" for n in range(400))
    noisy = replace(FINE, stdout=f"{stdout}FINAL SCORE 0.9\n", stderr="UserWarning: again\n" * 400)
    text = told(noisy, LIMITS)
    assert "FINAL SCORE 0.9" in text
    assert text.count("characters left out") == 2
    assert len(text) < 5300


def test_told_when_the_traceback_is_shown_then_does_not_tell_its_calls_again() -> None:
    """What standard error shows in full is not said twice."""
    stderr = 'Traceback …\n  File "program.py", line 3, in <module>\n    fit()\nKeyError: 1\n'
    error = ProgramError("KeyError", "1", (Frame("program.py", 3, "<module>", "fit()"),))
    text = told(replace(FINE, exit_code=1, stderr=stderr, error=error), LIMITS)
    assert text.count("line 3, in <module>") == 1
    assert "Exception: KeyError: 1" in text


def test_told_when_a_recursion_is_deep_then_leaves_out_its_middle() -> None:
    """A thousand frames are told by their two ends."""
    frames = tuple(Frame("program.py", n, "f", "f()") for n in range(1000))
    text = told(replace(FINE, error=ProgramError("RecursionError", "", frames)), LIMITS)
    assert "[990 more calls]" in text
    assert "line 2, in f" in text
    assert "line 993, in f" in text
    assert "line 500, in f" not in text


@pytest.mark.parametrize(
    ("result", "words"),
    [
        (replace(FINE, exit_code=137, signal="SIGKILL", stopped="timeout"), ["TIMEOUT", "60 s"]),
        (replace(FINE, exit_code=None, stopped="timeout"), ["interrupted after", "still there"]),
        (replace(FINE, stopped="output"), ["TOO MUCH OUTPUT", "256 MiB"]),
        (replace(FINE, exit_code=137, signal="SIGKILL", oom=True), ["OUT OF MEMORY", "1,024 MiB"]),
        (replace(FINE, exit_code=0, oom=True), ["OUT OF MEMORY", "fewer workers"]),
        (replace(FINE, exit_code=135, signal="SIGBUS"), ["/dev/shm", "64 MiB"]),
        (replace(FINE, exit_code=135), ["/dev/shm", "64 MiB"]),
        (replace(FINE, exit_code=139, signal="SIGSEGV"), ["ENDED BY SIGSEGV"]),
        (
            replace(FINE, exit_code=1, stderr="OSError: [Errno 28] No space left on device: 'a'"),
            ["NO SPACE LEFT", "100 MiB", "50 MiB"],
        ),
        (
            replace(FINE, exit_code=1, error=ProgramError("OSError", "[Errno 28] No space")),
            ["NO SPACE LEFT"],
        ),
        (replace(FINE, exit_code=153, signal="SIGXFSZ"), ["FILE TOO LARGE", "512 MiB"]),
        (replace(FINE, exit_code=None, kernel_lost=True), ["KERNEL LOST"]),
        (replace(FINE, exit_code=3), ["exit code 3"]),
    ],
)
def test_told_when_something_ended_it_then_says_which_limit_and_what_to_do(
    result: ExecutionResult, words: list[str]
) -> None:
    """A timeout, memory, shared memory, space, a signal and a code are told apart."""
    text = told(result, LIMITS)
    assert all(word in text for word in words), text


def test_told_when_memory_ran_out_then_does_not_tell_of_a_mere_signal() -> None:
    """The signal that a limit sends is no news."""
    killed = replace(FINE, exit_code=137, signal="SIGKILL")
    assert "ENDED BY" not in told(replace(killed, oom=True), LIMITS)
    assert "ENDED BY" not in told(replace(killed, stopped="timeout"), LIMITS)
