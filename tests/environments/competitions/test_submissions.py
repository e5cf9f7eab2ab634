"""Whether a submission is valid is told by the sample submission, and by nothing else."""

import os
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from toy_competition import predictions, write_competition

from langgraft._core.errors import CompetitionError
from langgraft.environments.competitions.competition import Competition, Values
from langgraft.environments.competitions.layout import read_competition
from langgraft.environments.competitions.submissions import check_submission

SAMPLE = "id,price,kind\na,0,x\nb,0,y\nc,0.5,\n"


class Untouchable:
    """Stands for the private folder: whatever is done with it fails."""

    def __getattr__(self, name: str) -> Any:
        raise AssertionError(f"the private folder was looked at: {name}")

    def __fspath__(self) -> str:
        raise AssertionError("the private folder was opened")


@pytest.fixture
def competition(tmp_path: Path) -> Competition:
    """Return a competition of which nothing but the sample submission is there."""
    found = read_competition(write_competition(tmp_path), tmp_path / "data")
    found.public_dir.mkdir(parents=True)
    found.sample_submission.write_text(SAMPLE)
    private: Any = Untouchable()
    return replace(found, private_dir=private, answers=private, gold_submission=private)


def reasons(text: str | bytes, competition: Competition) -> tuple[str, ...]:
    """Return why a submission is not valid, and hold the two ways to give it to each other."""
    data = text.encode() if isinstance(text, str) else text
    told = check_submission(data, competition)
    file = competition.public_dir / "submission.csv"
    file.write_bytes(data)
    assert check_submission(file, competition) == told
    assert told.valid == (not told.reasons)
    for reason in told.reasons:
        assert reason.isprintable()
        assert len(reason) < 400
    return told.reasons


@pytest.mark.parametrize(
    "text",
    [
        SAMPLE,
        "id,price,kind\nc,1e-3,\na,-5,q\nb,7,\n",
        "kind,id,price\nx,a,1\ny,b,2\nz,c,3\n",
        "\ufeffid,price,kind\r\na,0,x\r\nb,0,y\r\nc,0.5,\r\n",
        '"id","price","kind"\n"a","1","x"\n"b",2,"y, and\nmore"\n"c",3,"z"\n',
        "\n\nid,price,kind\n\na,0,x\nb,0,y\nc,1,z",
        "id,price,kind\na,True,x\nb,False,y\nc,True,z\n",
        f"id,price,kind\na,1,{'7 1 ' * 100_000}\nb,1,y\nc,1,z\n",
    ],
)
def test_submission_when_like_the_sample_is_valid(text: str, competition: Competition) -> None:
    """Rows and columns in any order, any finite numbers, any texts."""
    assert reasons(text, competition) == ()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "missing 'id', 'price', 'kind'"),
        ("id,price\na,0\nb,0\nc,0\n", "missing 'kind'"),
        ("id,price,kind,more\na,0,x,1\nb,0,y,1\nc,0,z,1\n", "not in the sample submission 'more'"),
        ("id,price,kind,kind\na,0,x,1\nb,0,y,1\nc,0,z,1\n", "more than once 'kind'"),
        (",id,price,kind\n0,a,0,x\n1,b,0,y\n2,c,0,z\n", "not in the sample submission ''"),
        ("id,price,kind\na,0,x\nb,0,y\n", "it has 2 rows, the sample submission 3"),
        ("id,price,kind\na,0,x\nb,0,y\nc,0,z\nd,0,z\n", "more rows than the 3"),
        ("id,price,kind\na,0,x\nb,0,y\nd,0,z\n", "1 ids are not in the sample submission: 'd'"),
        ("id,price,kind\na,0,x\nb,0,y\nd,0,z\n", "1 ids are missing: 'c'"),
        ("id,price,kind\na,0,x\nb,0,y\nb,0,z\n", "1 ids are there too often: 'b'"),
        ("id,price,kind\na,0,x\nb,0,y\n,0,z\n", "1 ids are missing: 'c'"),
        (
            "id,price,kind\na,,x\nb,0,y\nc,0,z\n",
            "column 'price': 1 value is no finite number: 'nan'",
        ),
        (
            "id,price,kind\na,inf,x\nb,0,y\nc,-inf,z\n",
            "2 values are no finite number: 'inf', '-inf'",
        ),
        ("id,price,kind\na,1,x\nb,high,y\nc,0,z\n", "no finite number: 'high'"),
        ("id,price,kind\na,1,x,4\nb,1,y,4\nc,0,z,4\n", "first row has 4 values, its header 3"),
        ("id,price,kind\na,1,x\nb,1,y,4\nc,0,z\n", "cannot be read as CSV"),
        ('id,price,kind\na,1,x\nb,1,"y\nc,0,z\n', "cannot be read as CSV"),
        (b"id,price,kind\na,1,\xff\xfe\nb,1,y\nc,0,z\n", "cannot be read as CSV"),
        *[
            (
                f"id,price,kind\na,{each},x\nb,{each},y\nc,{each},z\n",
                "3 values are no finite number",
            )
            for each in ("9" * 400, "9" * 5000, "1_0", "\u0661")
        ],
        (f"id,price,kind\na,{9**30},x\nb,1,y\nc,1,z\n", "too many digits"),
        (b"\x00" * 500, "columns are not those"),
        (b"\x89PNG\r\n\x1a\n\x00\x00" + bytes(range(256)) * 40, ""),
        (b"PK\x03\x04" + bytes(range(255, -1, -1)) * 40, ""),
    ],
)
def test_submission_when_not_like_the_sample_says_how(
    text: str | bytes, said: str, competition: Competition
) -> None:
    """Short, printable, and about what an agent has before it."""
    told = reasons(text, competition)
    assert told
    assert said in "; ".join(told)


def test_reasons_when_there_are_no_rows_are_about_rows(competition: Competition) -> None:
    """No column has a wrong value then."""
    told = reasons("id,price,kind\n", competition)
    assert told == ("it has 0 rows, the sample submission 3", "3 ids are missing: 'a', 'b', 'c'")


def test_reasons_when_many_rows_are_wrong_name_three(competition: Competition) -> None:
    """And as much of each as helps."""
    rows = [f"r{number:03}" for number in range(200)]
    sample = pd.DataFrame({"id": rows, "price": 0, "kind": "x"})
    sample.to_csv(competition.sample_submission, index=False)
    wrong = sample.assign(id=["x" * 500 + each for each in rows], price="\x1b[31m" + "y" * 900)
    missing, extra, numbers = reasons(wrong.to_csv(index=False), competition)
    assert missing == "200 ids are missing: 'r000', 'r001', 'r002' …"
    assert extra.count("xxx…'") == 3
    assert "200 values" in numbers
    assert r"'\x1b[31myyy" in numbers


def test_ids_when_numbers_are_compared_as_numbers(competition: Competition) -> None:
    """`1.0` and `01` are 1; an empty one is missing, not all of them."""
    competition.sample_submission.write_text("id,price\n1,0\n2,0\n")
    assert reasons("id,price\n2.0,0\n01,0\n", competition) == ()
    assert reasons("id,price\n1,0\n,0\n", competition) == ("1 ids are missing: '2'",)
    assert len(reasons("id,price\na,0\nb,0\n", competition)) == 2


def test_ids_when_some_are_twice_in_the_sample_are_twice_in_submissions(
    competition: Competition,
) -> None:
    """As in MLE-bench's detecting-insults, whose ids are comments, in the last column."""
    competition.sample_submission.write_text("Insult,Comment\n0,you\n0,you\n0,me\n")
    insults = replace(competition, id_columns=("Comment",))
    assert reasons("Insult,Comment\n1,me\n0,you\n1,you\n", insults) == ()
    told = reasons("Insult,Comment\n1,me\n0,me\n1,you\n", insults)
    assert told == ("1 ids are missing: 'you'", "1 ids are there too often: 'me'")


def test_ids_when_of_two_columns_are_compared_together(competition: Competition) -> None:
    """Neither column tells rows apart by itself."""
    competition.sample_submission.write_text("day,hour,price\n1,1,0\n1,2,0\n2,1,0\n")
    both = replace(competition, id_columns=("day", "hour"))
    assert reasons("day,hour,price\n2,1,0\n1,2,0\n1,1,0\n", both) == ()
    assert "1 ids are missing: '2 / 1'" in reasons("day,hour,price\n2,2,0\n1,2,0\n1,1,0\n", both)


def test_frame_when_checked_is_held_to_the_same(competition: Competition) -> None:
    """As a file of it would be."""
    frame = pd.DataFrame({"id": list("abc"), "price": [0.5, 1, 2], "kind": "x"})
    assert check_submission(frame, competition).valid
    assert not check_submission(frame.iloc[:2], competition).valid
    assert not check_submission(frame.assign(price=[1, float("nan"), 2]), competition).valid


def test_file_when_none_that_can_be_taken_is_not_valid(
    competition: Competition, tmp_path: Path
) -> None:
    """Absent, a folder, a pipe nobody writes to, a link, perhaps to the answers."""
    link, pipe = tmp_path / "link.csv", tmp_path / "pipe.csv"
    link.symlink_to(competition.sample_submission)
    os.mkfifo(pipe)
    for path in (tmp_path / "absent.csv", tmp_path, pipe, link, Path("a\0b"), Path("a" * 5000)):
        told = check_submission(path, competition)
        assert not told.valid
        assert str(tmp_path) not in told.reasons[0]
    assert check_submission(link, competition).reasons == ("it is a symbolic link, not a file",)


def test_file_when_huge_is_not_read(competition: Competition, tmp_path: Path) -> None:
    """A gigabyte, as a hole in a file, costs nothing."""
    huge = tmp_path / "huge.csv"
    with huge.open("wb") as file:
        file.truncate(1 << 30)
    assert "too large: 1,073,741,824 bytes" in check_submission(huge, competition).reasons[0]


@pytest.mark.parametrize(
    "text",
    [
        ",".join(["id", "price", "kind", *map(str, range(200_000))]) + "\na,0,x\n",
        "id,price,kind\na,0," + "," * 1_000_000 + "\n",
        'id,price,kind\n"\n",' + "," * 1_000_000 + "\n",
        "id,price,kind\na,0," + "x" * 3_000_000 + "\n",
        "x" * 3_000_000,
    ],
    ids=["columns", "values", "values behind a line break", "a value", "a header"],
)
def test_file_when_absurdly_wide_is_not_parsed(text: str, competition: Competition) -> None:
    """A million columns would be gigabytes of frame."""
    assert len(reasons(text, competition)) == 1


def test_sample_when_in_an_archive_is_read(competition: Competition) -> None:
    """As MLE-bench leaves it for the text normalization challenges."""
    path = competition.public_dir / "sample.csv.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("sample.csv", SAMPLE)
    zipped = replace(competition, sample_submission=path)
    assert check_submission(SAMPLE.encode(), zipped).valid


def test_sample_when_absent_or_private_is_the_competitions_fault(
    competition: Competition, tmp_path: Path
) -> None:
    """Not the submission's: the data is not prepared, or the sample would have to be looked up."""
    hidden = replace(competition, sample_submission=tmp_path / "private" / "sample.csv")
    with pytest.raises(CompetitionError, match="in its private folder"):
        check_submission(b"", hidden)
    competition.sample_submission.unlink()
    with pytest.raises(CompetitionError, match="the data of house-prices is not prepared"):
        check_submission(predictions().encode(), competition)


PROBABILITIES = "id,a,b\nx,0.5,0.5\ny,0.5,0.5\nz,0.5,0.5\n"


@pytest.mark.parametrize(
    ("values", "rows", "said"),
    [
        (Values(least=0, most=1, sum=1), "x,0.5,0.5\ny,1,0\nz,0.333333,0.666667\n", ""),
        (
            Values(least=0, most=1, sum=1),
            "x,0.7,0.7\ny,1,0\nz,0.2,0.7\n",
            "no rows that do not add up to 1: 2 times, as in '1.4', '0.8",
        ),
        (Values(least=0, most=1), "x,0.7,0.7\ny,1,1\nz,0,0\n", ""),
        (
            Values(least=0, most=1),
            "x,1.5,0\ny,0,0\nz,0,0\n",
            "'a': the metric takes no values above 1",
        ),
        (
            Values(least=0),
            "x,0,0\ny,0,-1e-9\nz,0,-2\n",
            "'b': the metric takes no values below 0: 2 times",
        ),
        (Values(least=0), "x,0,0\ny,0,99\nz,0,1.5\n", ""),
        (Values(whole=True), "x,1,2\ny,3.0,0\nz,-2,1\n", ""),
        (
            Values(whole=True),
            "x,1,2\ny,3.5,0\nz,2,1\n",
            "no values that are no whole number: 1 times",
        ),
        (Values(), "x,-1e9,2\ny,3.5,0\nz,2,1\n", ""),
    ],
)
def test_numbers_when_the_metric_refuses_them_are_not_valid(
    values: Values, rows: str, said: str, competition: Competition
) -> None:
    """Whatever the answers are: an agent is told of it before it is too late."""
    competition.sample_submission.write_text(PROBABILITIES)
    asked = replace(competition, grader=replace(competition.grader, values=values))
    told = reasons(f"id,a,b\n{rows}", asked)
    assert told == () if not said else len(told) == 1 and said in told[0]


def test_columns_when_the_index_was_written_too_then_say_so(competition: Competition) -> None:
    """What pandas does unless it is told not to: the column has no name."""
    written = "".join(f"{n},{line}\n" for n, line in enumerate(predictions().splitlines()))
    (told,) = check_submission(written.replace("0,", ",", 1).encode(), competition).reasons
    assert told.endswith("a column without a name is what a table written with its index has")
