"""Boards are made of pipelines, can be made again, and say how they were made."""

import csv
import dataclasses
import json
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("sklearn")

from boards.__main__ import description, leaderboard, main, write
from boards.attacks import best
from boards.boards import Made, enter, make_board, predict, separation
from boards.catalog import IDS, find, load
from boards.traces import find_traces, probability

from langgraft._core.errors import InputError
from langgraft.environments.competitions import shipped
from langgraft.environments.competitions.grading import grade_submission
from langgraft.environments.competitions.preparing import prepare_competition
from langgraft.environments.competitions.registry import Registry

pytestmark = pytest.mark.matrix  # boards of every competition that ships

FOLDER = Path(next(iter(shipped.__path__)))


@pytest.fixture(scope="module")
def weather() -> Made:
    """Make the board of the smallest contest."""
    return make_board(find("weather"), load("weather"))


def test_board_when_made_twice_is_the_same_file(weather: Made, tmp_path: Path) -> None:
    """Seeds, one thread and fixed rows leave nothing to chance; the files say what was made."""
    contest, first = find("weather"), tmp_path / "first"
    write(contest.id, first)
    assert (first / "leaderboard.csv").read_text() == leaderboard(weather)
    again = description(contest, load(contest.id), weather)
    assert (first / "board.json").read_text() == again
    assert (first / "checksums.yaml").read_bytes() == (
        FOLDER / "weather" / "checksums.yaml"
    ).read_bytes()
    told = json.loads((first / "board.json").read_text())
    assert [team["team"] for team in told["teams"]] == _teams(first / "leaderboard.csv")
    assert "scikit-learn" in told["packages"]
    assert told["held out"]["team"] not in _teams(first / "leaderboard.csv")


@pytest.mark.parametrize("name", IDS)
def test_board_when_shipped_holds_the_teams_of_its_contest(name: str) -> None:
    """Nobody on a board is unknown, the pipeline held out is not on it, best is first."""
    contest = find(name)
    file = FOLDER / name / "leaderboard.csv"
    assert sorted(_teams(file)) == sorted(contest.names)
    assert contest.held_out.name not in contest.names
    assert len(set(contest.names)) == len(contest.names)
    with file.open(newline="") as lines:
        scores = [float(row["score"]) for row in csv.DictReader(lines)]
    assert scores == sorted(scores, reverse=not contest.lower_is_better)


def test_document_when_it_lists_what_ships_has_their_thresholds(tmp_path: Path) -> None:
    """The table is what the boards say."""
    text = (Path(__file__).parents[2] / "docs" / "competitions.md").read_text(encoding="utf-8")
    for name in IDS:
        board = Registry(tmp_path).get_competition(name).board.thresholds
        scores = (board.gold, board.silver, board.bronze, board.median)
        (row,) = (line for line in text.splitlines() if line.startswith(f"| `{name}` |"))
        told = [cell.strip() for cell in row.strip("|").split("|")][4:]
        assert told == [str(board.teams), *(f"{score:.5f}" for score in scores)]


@pytest.mark.parametrize(
    "name",
    [
        "visits",
        "weather",
        pytest.param("digits", marks=pytest.mark.matrix),
        pytest.param("phrases", marks=pytest.mark.matrix),
    ],
)
def test_team_when_graded_by_the_competition_has_its_score_on_the_board(
    name: str, tmp_path: Path
) -> None:
    """What a board computes is what the competition's own grader says of the submission."""
    pandas = pytest.importorskip("pandas")
    contest, data = find(name), load(name)
    team = contest.teams[4]
    prediction = predict(contest, data, team)
    competition = Registry(tmp_path).get_competition(name)
    prepare_competition(competition)
    submission = pandas.read_csv(competition.sample_submission)
    submission[submission.columns[1:]] = contest.finish(prediction).reshape(len(submission), -1)
    submission.to_csv(tmp_path / "submission.csv", index=False)
    report = grade_submission(tmp_path / "submission.csv", competition)
    assert report.score == pytest.approx(enter(contest, data, "", prediction).score, abs=2e-5)


def test_separation_when_teams_are_the_same_rows_is_measured_on_pairs(weather: Made) -> None:
    """The difference is that of the board, its error less than that of unpaired scores."""
    found = separation(find("weather"), weather, draws=200)
    losses = {entry.team: entry.losses for entry in weather.entries}
    difference = losses[found.median] - losses[found.gold]
    assert found.difference == pytest.approx(difference.mean(), abs=2e-5)
    assert found.error == pytest.approx(difference.std() / np.sqrt(found.units), rel=0.2)


def test_board_when_higher_is_better_has_the_highest_first() -> None:
    """Places, the difference of teams and the best of several follow the metric's direction."""
    contest = find("digits")
    few = {"how often each was", "8 neighbors", "naive Bayes"}
    teams = tuple(team for team in contest.teams if team.name in few)
    contest, data = dataclasses.replace(contest, teams=teams, blends=()), load("digits")
    made = make_board(contest, data)
    assert [entry.team for entry in made.entries] == [
        "8 neighbors",
        "naive Bayes",
        "how often each was",
    ]
    assert not made.board.thresholds.lower_is_better
    assert made.board.thresholds.gold == made.entries[0].score
    found = separation(contest, made, draws=200)
    assert found.difference == pytest.approx(made.entries[0].score - made.entries[1].score)
    predictions = [predict(contest, data, team) for team in contest.teams]
    assert best(contest, data, predictions) == made.entries[0].score


def test_traces_when_order_tells_answers_are_found() -> None:
    """Sorted and clustered answers are seen, shuffled ones are not."""
    shuffled = [str(value) for value in np.random.default_rng(0).integers(5, size=300)]
    assert probability(sorted(shuffled), draws=999, seed=0) < 0.01
    assert probability([str(place // 10 % 3) for place in range(300)], draws=999, seed=0) < 0.01
    assert probability(shuffled, draws=999, seed=0) > 0.01


def test_traces_when_a_competition_is_prepared_are_none(tmp_path: Path) -> None:
    """What ships gives nothing away; an answer put among the public files is found."""
    competition = Registry(tmp_path).get_competition("textures")
    prepare_competition(competition)
    assert find_traces(competition) == []
    leak = competition.public_dir / "leak.csv"
    leak.write_bytes(competition.answers.read_bytes())
    assert any("leak.csv" in line for line in find_traces(competition))


def test_boards_when_asked_for_what_does_not_ship_say_what_does(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An id that is none is refused in a line."""
    with pytest.raises(InputError, match="visits, weather"):
        find("nonsense")
    assert main(["nonsense", "--out", str(tmp_path)]) == 2
    assert "nonsense" in capsys.readouterr().err


def _teams(file: Path) -> list[str]:
    with file.open(newline="") as lines:
        return [row["teamName"] for row in csv.DictReader(lines)]
