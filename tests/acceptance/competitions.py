"""Competitions that ship: the same bytes everywhere, medals that mean something, no leaks."""

import csv
import shutil
import time
from pathlib import Path

from boards.attacks import attack, solved_alphabet
from boards.boards import Made, fresh_splits, make_board, most_common, separation
from boards.catalog import IDS, find, load
from boards.contests import Contest, Data
from boards.traces import find_traces

from acceptance.command import clean_environment, command_line, contents, run
from acceptance.figure import Figure, Setting, share
from langgraft.environments.competitions import shipped
from langgraft.environments.competitions.competition import Competition, medal
from langgraft.environments.competitions.grading import grade_submission
from langgraft.environments.competitions.registry import Registry

APART = 3.0
"""Standard errors that gold and median are to be apart at least."""
SAME = 0.8
"""Share of fresh splits on which a pipeline is to reach the same medal."""
JOINED = 0.01
"""Share of the test's rows that may be found in the source as they are."""
QUICK = ("weather", "phrases")
"""Competitions whose boards are looked at in a reduced run."""


def measure(setting: Setting) -> list[Figure]:
    """Prepare all that ship, grade their samples, and judge all or some of their boards."""
    figures = [_same_bytes(setting)]
    registry = Registry(setting.work / "competitions-1")
    competitions = {name: registry.get_competition(name) for name in IDS}
    for competition in competitions.values():
        figures += [_sample(competition), _traces(competition)]
    for name in QUICK if setting.reduced else IDS:
        setting.say(f"the board of {name}, on fresh splits, and looked up in its source")
        contest, data = find(name), load(name)
        figures += _board(contest, data)
        figures += _held_out(contest, competitions[name], setting.size(10, 3))
        figures += _looked_up(contest, data, competitions[name])
    return figures


def _same_bytes(setting: Setting) -> Figure:
    """Prepare all twice, in processes with different seeds of Python's hashes."""
    wrong = []
    folders = [setting.work / f"competitions-{seed}" for seed in (1, 2)]
    for seed, folder in enumerate(folders, 1):
        shutil.rmtree(folder, ignore_errors=True)
        setting.say(f"preparing {len(IDS)} competitions, PYTHONHASHSEED={seed}")
        command = command_line("competitions", "prepare", *IDS, "--data-dir", folder)
        ended = run(command, environment=clean_environment() | {"PYTHONHASHSEED": str(seed)})
        if ended.code:
            wrong.append(f"prepare ended with {ended.code}: {ended.stderr[-200:]}")
    first, second = map(contents, folders)
    wrong += [name for name in sorted(first | second) if first.get(name) != second.get(name)]
    total = len(first | second)
    return Figure(
        "Competitions that ship prepare byte-identically, and as their checksums say",
        f"all {len(IDS)}, twice, in fresh processes with different hash seeds",
        share(total - len(wrong), total, wrong),
        "all files",
        passed=not wrong and total > len(IDS),
    )


def _sample(competition: Competition) -> Figure:
    report = grade_submission(competition.sample_submission, competition)
    thresholds = competition.board.thresholds
    score, median = report.score, thresholds.median
    worse = score is not None and not thresholds.reached(score, median)
    return Figure(
        f"{competition.id}: the sample submission is valid, and worse than the median",
        f"graded, {thresholds.teams} teams",
        f"{score}, median {median:.5f}" if report.valid_submission else "not valid",
        "so",
        passed=report.valid_submission and worse,
    )


def _traces(competition: Competition) -> Figure:
    found = find_traces(competition)
    return Figure(
        f"{competition.id}: neither order, ids, files nor public tables tell answers",
        "999 permutations; sizes and times of files; columns",
        "; ".join(found) or "nothing",
        "nothing",
        passed=not found,
    )


def _board(contest: Contest, data: Data) -> list[Figure]:
    """Train the whole board anew."""
    started = time.process_time()
    made = make_board(contest, data)
    seconds = time.process_time() - started
    apart = separation(contest, made)
    moved = _moved(contest.id, made)
    return [
        Figure(
            f"{contest.id}: the board that ships is what its script makes",
            f"{len(made.entries)} teams trained anew, {seconds:.1f} s on one core",
            f"scores differ by {moved:.5f} at most",
            "",
            passed=None,  # other versions of scikit-learn may train otherwise
        ),
        Figure(
            f"{contest.id}: gold and median are apart",
            f"paired bootstrap over {apart.units:,} of the test, {apart.draws:,} draws:"
            f" {apart.gold} against {apart.median}",
            f"{apart.errors:.1f} standard errors ({apart.difference:.5f})",
            f"{APART:g}",
            passed=apart.errors >= APART,
        ),
    ]


def _moved(name: str, made: Made) -> float:
    """Return how far a team's score is from the one that ships, at most."""
    file = Path(next(iter(shipped.__path__))) / name / "leaderboard.csv"
    with file.open(newline="") as lines:
        scores = {row["teamName"]: float(row["score"]) for row in csv.DictReader(lines)}
    return max(abs(scores[entry.team] - entry.score) for entry in made.entries)


def _held_out(contest: Contest, competition: Competition, count: int) -> list[Figure]:
    """Look at the medals of the pipeline that is on no board."""
    found = list(fresh_splits(contest.id, competition.board, count))
    usual, times = most_common(found)
    places = ", ".join(str(each.place) for each in found)
    by_shipped = sum(each.shipped_medal == usual for each in found)
    return [
        Figure(
            f"{contest.id}: a pipeline on no board reaches the same medal on fresh splits",
            f"{contest.held_out.name}; {count} splits, the whole board remade on each",
            f"{usual or 'none'} on {times} of {count} (places {places});"
            f" {by_shipped} of {count} by the thresholds that ship",
            f"{SAME:.0%}",
            passed=times >= SAME * count if count >= 10 else None,
        )
    ]


def _looked_up(contest: Contest, data: Data, competition: Competition) -> list[Figure]:
    """Look the test up in the source, as a cheat would where it can be imported."""
    found = attack(contest, data)
    earned = medal(found.score, competition.board)
    more = ""
    if contest.id == "phrases":
        solved = solved_alphabet(contest, data)
        won = medal(solved, competition.board) or "nothing"
        more = f"; with the alphabet found out, {solved:.5f}, {won}"
    gold = competition.board.thresholds.gold
    return [
        Figure(
            f"{contest.id}: rows of the test are not found in the source",
            "all columns, exactly",
            f"{found.joined:.2%}",
            f"at most {JOINED:.0%}",
            passed=found.joined <= JOINED,
        ),
        Figure(
            f"{contest.id}: what looking up the source would earn, were it at hand",
            f"{found.how}; the best setting, chosen by the answers",
            f"{found.score:.5f}, {earned or 'nothing'} (gold {gold:.5f}){more}",
            "",
            passed=None,
        ),
    ]
