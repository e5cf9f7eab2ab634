"""MLAB's tools on real files of a live workspace."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from mlab_cases import Bench
from tree_cases import toy

pytestmark = pytest.mark.matrix  # every tool, run

BINARY = """\
open("a.bin", "wb").write(bytes(range(256)))
open("zero.txt", "wb").write(b"a\\0b")
"""
LARGE = """\
with open("large.csv", "wb") as file:
    file.truncate(1 << 30)
"""
ODD = """\
import os
os.symlink("/etc", "outside")
os.symlink("do.py", "other.py")
os.mkfifo("pipe")
os.mkdir("folder")
open("tr*in.py", "w").write("print(1)")
open("naïve\\nname.txt", "w").write("x")
"""


@pytest.fixture(scope="module")
def bench(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bench]:
    """Return a workspace with odd files in it."""
    opened = Bench(toy(tmp_path_factory.mktemp("competition")))
    assert not opened.run(ODD + BINARY).failed
    yield opened
    opened.close()


def test_listing_when_a_folder_holds_all_sorts_tells_each_kind(bench: Bench) -> None:
    """Sizes are told, links are marked, and backups are not shown."""
    lines = bench.do("List Files", dir_path="./").text.splitlines()
    assert {"folder/", "input/", "a.bin (256 bytes)", "outside (a link)", "pipe (no file)"} <= {
        *lines
    }
    assert "'na\\xefve\\nname.txt' (1 bytes)" in lines
    assert not any(line.startswith(".edits") for line in lines)
    assert bench.do("List Files", dir_path="input").text.splitlines()[1] == "train.csv (24 bytes)"
    assert bench.do("List Files", dir_path="folder").text == "folder is empty."


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("/etc", "/etc is not inside the workspace: give a relative path"),
        ("~", "~ is not inside the workspace: give a relative path"),
        ("a/../../etc", "a/../../etc is not inside the workspace: leave out `..`"),
        ("outside", "outside is a link, which is not followed"),
        ("outside/ssh", "outside is a link, which is not followed"),
        ("absent", "there is no absent"),
        ("do.py", "do.py is a file: list a folder"),
        ("a\0b", "'a\\x00b' is no path of a file"),
        ("x" * 5000, f"{'x' * 200!r} is no path of a file"),
    ],
)
def test_listing_when_the_path_is_none_inside_is_told(bench: Bench, path: str, why: str) -> None:
    """A path that leaves the workspace, or leads over a link, is not followed."""
    seen = bench.do("List Files", dir_path=path)
    assert (seen.text, seen.failed, seen.executed) == (f"Not done: {why}.", True, False)


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("a.bin", "a.bin is no text in UTF-8 (256 bytes): look at it with a script"),
        ("zero.txt", "zero.txt is binary (3 bytes): look at it with a script"),
        ("pipe", "pipe cannot be read: pipe is a FIFO"),
        ("other.py", "other.py cannot be read: other.py is a link"),
        ("outside/hosts", "there is no file outside/hosts"),
        ("folder", "folder cannot be read: folder is a folder: collect `folder/**`"),
        ("input", "input is a folder: name a file in it"),
        ("input/absent.csv", "there is no file input/absent.csv"),
        ("absent.py", "there is no file absent.py"),
        ("tr?in.py", "there is no file tr?in.py"),
    ],
)
def test_file_when_it_cannot_be_read_as_text_is_told(bench: Bench, path: str, why: str) -> None:
    """Whatever lies there, the agent hears why it is not shown."""
    lines = {"start_line_number": 1, "end_line_number": 5}
    seen = bench.do("Inspect Script Lines", script_name=path, **lines)
    assert (seen.text, seen.failed) == (f"Not done: {why}.", True)


def test_file_when_it_has_a_gigabyte_is_told_with_its_size(bench: Bench) -> None:
    """It is neither read nor run; a copy would be the workspace's own."""
    path = "large.csv"
    assert bench.run(LARGE).failed  # no file may be that large here; half of it is enough
    bench.run(LARGE.replace("1 << 30", "1 << 29"))
    seen = bench.do(
        "Inspect Script Lines", script_name=path, start_line_number=1, end_line_number=2
    )
    assert seen.text.startswith(f"Not done: {path} cannot be read: {path} is too large: 536870912")
    assert bench.do("Execute Script", script_name=path).executed is False
    bench.run("import os\nos.unlink('large.csv')")


def test_link_in_the_data_when_it_leads_outside_is_not_followed(tmp_path: Path) -> None:
    """Data is read on the host, where a link could lead to the answers."""
    competition = toy(tmp_path / "toy")
    (tmp_path / "answers.csv").write_text("1,1\n")
    (competition.public_dir / "more.csv").symlink_to(tmp_path / "answers.csv")
    os.mkfifo(competition.public_dir / "pipe")
    made = Bench(competition)
    lines = {"start_line_number": 1, "end_line_number": 5}
    seen = made.do("Inspect Script Lines", script_name="input/more.csv", **lines)
    assert seen.text == "Not done: input/more.csv is a link that leads elsewhere."
    pipe = made.do("Inspect Script Lines", script_name="input/pipe", **lines)
    assert pipe.text == "Not done: input/pipe cannot be read: it is not a regular file."
    longest = made.do("Inspect Script Lines", script_name=f"input/{'n' * 300}", **lines)
    assert longest.text.startswith("Not done: there is no file input/nnn")
    whole = made.do("Inspect Script Lines", script_name="input/train.csv", **lines)
    assert whole.text.splitlines()[0] == "input/train.csv, lines 1 to 3 of 3:"
    made.close()


def test_lines_when_asked_for_are_shown_at_most_a_hundred_at_a_time(bench: Bench) -> None:
    """They are shown as they stand; other ranges are told what there is."""
    bench.edit("long.py", "".join(f"x = {number}\n" for number in range(150)))

    def lines(first: int, last: int) -> str:
        given = {"start_line_number": first, "end_line_number": last}
        return bench.do("Inspect Script Lines", script_name="long.py", **given).text

    assert lines(149, 999) == "long.py, lines 149 to 150 of 150:\nx = 148\nx = 149"
    assert len(lines(1, 100).splitlines()) == 101
    assert lines(1, 101) == "Not done: at most 100 lines are shown at a time."
    assert lines(0, 3) == lines(151, 151) == lines(5, 4)
    assert lines(5, 4) == "Not done: long.py has the lines 1 to 150."


def test_copy_when_it_is_asked_for_copies_files_and_folders_but_no_links(bench: Bench) -> None:
    """Links stay behind, folders are made, and the data cannot be written."""

    def copied(source: str, destination: str) -> str:
        return bench.do("Copy File", source=source, destination=destination).text

    assert copied("do.py", "deep/er/do.py") == "do.py was copied to deep/er/do.py."
    assert copied("do.py", "deep") == "do.py was copied to deep/do.py."
    assert copied("deep", "deeper") == "deep was copied to deeper."
    assert bench.do("List Files", dir_path="deeper").text.startswith("do.py (")
    assert copied("deep", "deep/in") == (
        "Not done: deep/in lies in deep, which cannot be copied into itself."
    )
    assert copied("do.py", "./do.py") == "Not done: do.py is its own destination."
    assert copied("do.py", "outside/x").startswith("Not done: outside is a link")
    assert copied("other.py", "x.py").startswith("Not done: other.py is a link")
    assert copied("pipe", "x.py") == "Not done: pipe is no regular file."
    assert copied("do.py", "do.py/x.py").startswith("Not done: it could not be done")
    assert copied("do.py", "input/x.py").startswith("Not done: ./input is read-only")
    assert copied("do.py", ".").startswith("Not done: the workspace itself is no file")


def test_edits_when_taken_back_undo_each_other_down_to_no_script(bench: Bench) -> None:
    """Each edit keeps what was there before it, also that nothing was."""
    path = "models/a b.py"
    assert bench.edit(path, "x = 1\n").text.startswith(f"{path} was written. It was not there")
    changed = bench.edit(path, "x = 2\n").text
    assert "\n-x = 1\n+x = 2" in changed
    assert bench.edit(path, "x = 2\n").text.endswith("(Nothing changed.)")

    def back() -> str:
        return bench.do("Undo Edit Script", script_name=path).text

    assert back() == f"The last edit of {path} was taken back. It now reads:\nx = 2\n"
    assert back().endswith("It now reads:\nx = 1\n")
    assert back().endswith("before it, there was no such script.")
    assert back() == f"Not done: no edit of {path} is left to take back."


def test_edit_when_saved_elsewhere_leaves_the_script_and_tells_the_difference(
    bench: Bench,
) -> None:
    """What is taken back is the file that was written."""
    bench.edit("one.py", "x = 1\n")
    given = {"script_name": "one.py", "edit_instruction": "", "save_name": "two.py"}
    seen = bench.do("Edit Script (AI)", answer="x = 2\n", **given)
    assert "--- one.py\n+++ two.py" in seen.text
    assert bench.do("Undo Edit Script", script_name="two.py").failed is False
    assert "two.py" not in bench.do("List Files", dir_path=".").text
    given["save_name"] = "other.py"
    assert bench.do("Edit Script (AI)", answer="x", **given).text.startswith(
        "Not done: other.py is a link"
    )


def test_script_when_it_runs_tells_output_ending_and_metric(bench: Bench) -> None:
    """Both streams are told, and what the script was is kept."""
    seen = bench.run('import sys\nprint("Validation metric: 0.75")\nprint("w", file=sys.stderr)\n')
    assert (seen.executed, seen.failed, seen.metric, seen.exit_code) == (True, False, 0.75, 0)
    assert seen.program.startswith("import sys")
    assert "Validation metric: 0.75\n\n[standard error]\nw" in seen.text
    assert "less than" in seen.text


def test_script_when_it_fails_tells_what_it_printed_before_too(bench: Bench) -> None:
    """MLAB tells standard error alone then; what came before often says why."""
    seen = bench.run('print("rows: 0")\nraise ValueError("no rows")\n')
    assert (seen.failed, seen.exception, seen.message) == (True, "ValueError", "no rows")
    assert seen.text.index("rows: 0") < seen.text.index("ValueError: no rows")
    assert bench.do("Execute Script", script_name="input/train.csv").text.endswith("copy it first.")
    named = bench.edit("-c", "print('as a file')\n")
    assert not named.failed
    assert "as a file" in bench.do("Execute Script", script_name="-c").text
    assert "1" in bench.do("Execute Script", script_name="tr*in.py").text.splitlines()[0]


def test_script_when_it_takes_too_long_is_stopped(tmp_path: Path) -> None:
    """The workspace lives on, with all files."""
    made = Bench(toy(tmp_path / "toy"), seconds=2)
    made.edit("kept", "1\n")
    seen = made.run("import time\ntime.sleep(60)\n")
    assert (seen.timed_out, seen.exception, seen.lost) == (True, "TimeoutError", "")
    assert "kept (2 bytes)" in made.do("List Files", dir_path=".").text
    made.close()


def test_submission_when_validated_is_held_against_the_sample_alone(bench: Bench) -> None:
    """It is absent, wrong with reasons, or valid."""
    absent = bench.do("Validate Submission")
    assert (absent.submission, absent.failed) == ("absent", True)
    bench.run("open('submission.csv', 'w').write('id,target\\n1,0.5\\n')")
    wrong = bench.do("Validate Submission")
    assert (wrong.submission, wrong.failed) == ("invalid", True)
    assert "- " in wrong.text
    bench.run("import shutil\nshutil.copy('input/sample_submission.csv', 'submission.csv')")
    assert bench.do("Validate Submission").submission == "valid"
