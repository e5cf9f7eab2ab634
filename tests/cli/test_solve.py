"""`langgraft solve` as a user meets it."""

import contextlib
import io
import json
import re
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any, NamedTuple

import mle_study
import pytest
from acceptance.command import clean_environment, command_line
from gates import Gate
from mle_study import GatedStudy, HouseStudy, solve_at
from mle_study import rule as mle_study_rule
from step_study import StepStudy
from toy_competition import ID, write_competition
from warm_python import Warm, ran

from langgraft._core.errors import InfrastructureError
from langgraft.benchmarks.mle.journals import read_journal
from langgraft.benchmarks.mle.study import MleStudy
from langgraft.cli.app import run_command_line

pytestmark = pytest.mark.matrix  # whole searches by the command line

REPOSITORY = Path(__file__).resolve().parents[2]


class Done(NamedTuple):
    """How a command ended."""

    code: int
    stdout: str
    stderr: str


def solve(*arguments: object, study: MleStudy | None = None) -> Done:
    """Run the command in this process, as the console script does."""
    out, err, code = io.StringIO(), io.StringIO(), None
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["langgraft", "solve", *map(str, arguments)])
        patch.setenv("COLUMNS", "60")
        patch.setattr(MleStudy, "simulated_model", (study or HouseStudy()).simulated_model)
        try:
            run_command_line()
        except SystemExit as ended:
            code = ended.code
    return Done(int(code or 0), out.getvalue(), err.getvalue())


def small(folder: Path) -> tuple[object, ...]:
    """Return the options of a small search for the toy competition, whose programs are harmless."""
    write_competition(folder / "mine")
    return (
        *("--folder", folder / "mine", "--data-dir", folder / "data", "--out", folder / "out"),
        *("--steps", 6, "--seconds", 20, "--sandbox", "subprocess"),
    )


@pytest.fixture
def options(tmp_path: Path) -> tuple[object, ...]:
    """Return the options of a small search in a folder of the test's own."""
    return small(tmp_path)


class Solved(NamedTuple):
    """A search that has ended: how, and with which options."""

    done: Done
    options: tuple[object, ...]
    out: Path


@pytest.fixture(scope="module")
def solved(tmp_path_factory: pytest.TempPathFactory) -> Solved:
    """Run a small search that no test changes."""
    folder = tmp_path_factory.mktemp("solved")
    options = small(folder)
    return Solved(solve(ID, *options), options, folder / "out")


def events(done: Done) -> list[Any]:
    """Return what a command told as JSON lines."""
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_solve_when_run_then_ends_with_submission_program_journal_page_and_grade(
    solved: Solved,
) -> None:
    """One command prepares the data, tells of each program, and leaves what a user wants."""
    done, _, out = solved
    assert done.code == 0, done.stderr
    lines = done.stdout.splitlines()
    assert sum(line.lstrip()[:1].isdigit() and "/6 " in line for line in lines) == 6
    assert any("(best so far)" in line for line in lines)
    assert any(line.startswith("grade: ") for line in lines)
    assert f"submission: {out / 'submission.csv'}" in lines
    journal = read_journal(out / "journal.json")
    assert len(journal.nodes) == 6
    solution = (out / "solution.py").read_text()
    assert solution in {node.code for node in journal.nodes}
    assert "<svg" in (out / "tree.html").read_text()
    assert json.loads((out / "grade.json").read_text())["valid_submission"]
    assert (out / "best" / "solution.py").exists()


def test_solve_when_asked_for_json_then_tells_the_same_in_objects(
    options: tuple[object, ...],
) -> None:
    """A line for each program, and one for the solution."""
    *programs, solution = events(solve(ID, *options, "--json"))
    assert [each["id"] for each in programs] == [f"00{n}" for n in range(6)]
    assert {each["event"] for each in programs} == {"program"}
    assert solution["event"] == "solution"
    assert solution["report"]["competition_id"] == ID
    assert {"submission", "solution", "journal", "tree", "grade"} == set(solution["files"])


def test_solve_when_repeated_then_runs_nothing_again_and_leaves_the_same_files(
    solved: Solved,
) -> None:
    """The same command in the same folder is the same search, which has ended."""
    names = ("submission.csv", "solution.py", "journal.json", "tree.html", "grade.json")
    before = {name: (solved.out / name).read_bytes() for name in names}
    again = events(solve(ID, *solved.options, "--json"))[-1]
    assert again["resumed"]
    assert "this search is done" in solve(ID, *solved.options).stdout
    assert {name: (solved.out / name).read_bytes() for name in names} == before


@pytest.mark.parametrize("name", ["checkpoints.sqlite", "usage.jsonl"])
def test_solve_when_a_file_of_its_work_is_damaged_then_names_it(
    tmp_path: Path, options: tuple[object, ...], name: str
) -> None:
    """What is needed to go on is believed only where it can be read."""
    (tmp_path / "out" / "work").mkdir(parents=True)
    (tmp_path / "out" / "work" / name).write_text("garbage\n" * 99)
    done = solve(ID, *options)
    assert done.code == 2
    (line,) = done.stderr.splitlines()
    assert name in line
    assert "damaged" in line


def test_solve_when_memory_is_a_folder_then_the_next_search_knows_what_failed(
    tmp_path: Path, options: tuple[object, ...]
) -> None:
    """Memory outlives a search: the first draft of the next one is written with it."""
    given = (ID, *options, "--json", "--memory", tmp_path / "bank")
    first = events(solve(*given))
    second = events(solve(*given, "--out", tmp_path / "second"))
    assert not first[0]["recalled"]
    assert any(each["buggy"] for each in first[:-1])
    assert second[0]["recalled"]
    # The first one, repeated, is still what it was.
    assert events(solve(*given))[:-1] == first[:-1]


STEP_FILES = ("events.jsonl", "steps.json", "submission.csv", "solution.py", "grade.json")


@pytest.mark.kill
@pytest.mark.parametrize("agent", ["chain", "mlab"])
def test_solve_when_another_agent_is_stopped_and_repeated_then_leaves_the_same_bytes(
    tmp_path: Path, options: tuple[object, ...], agent: str
) -> None:
    """A line a step, and the files of one that nobody stopped; memory is used and filled."""

    def away(sample: str) -> None:
        if "/step-3/" in sample:
            raise InfrastructureError("the network is away")

    given = (ID, *options, "--agent", agent, "--memory", "memory")
    whole = solve(*given, "--out", tmp_path / "whole", study=StepStudy())
    assert whole.code == 0, whole.stderr
    lines = whole.stdout.splitlines()
    assert "6 steps" in lines[0]
    assert [line.split()[0] for line in lines if "/6 " in line] == [f"{n}/6" for n in range(1, 7)]
    assert any("(best so far)" in line for line in lines)
    assert any(line.startswith("ended: steps; validation rmse") for line in lines)
    stopped = solve(*given, study=StepStudy(away))
    assert (stopped.code, "run the same command again" in stopped.stderr) == (1, True)
    again = solve(*given, study=StepStudy())
    assert f"going on with the run in {tmp_path / 'out'}" in again.stdout
    for name in STEP_FILES:
        assert (tmp_path / "out" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    *steps, solution = events(solve(*given, "--json", study=StepStudy()))
    assert [each["step"] for each in steps] == list(range(6))
    assert (solution["ended"], solution["resumed"]) == ("steps", True)
    assert set(solution["files"]) == {"submission", "solution", "events", "steps", "grade"}


def test_solve_when_asked_for_evolution_then_tells_of_merges_and_goes_on_with_it_alone(
    tmp_path: Path, options: tuple[object, ...]
) -> None:
    """A line names both parents, and what was asked for is kept with the search."""
    policy = "{name: evolution, generation: 2, crossover: 1.0, crossover_from: 1}"
    told = solve(ID, *options, "--policy", policy)
    assert told.code == 0, told.stderr
    assert re.search(r"^\d/6 \d{3} merge of \d{3} and \d{3} ", told.stdout, re.MULTILINE)
    kept = json.loads((tmp_path / "out" / "solve.json").read_text())["plan"]["agents"][0]["policy"]
    assert (kept["name"], kept["generation"]) == ("evolution", 2)
    nodes = read_journal(tmp_path / "out" / "journal.json").nodes
    assert any(each.partner_id is not None for each in nodes)
    assert "policy.name: evolution → greedy" in solve(ID, *options).stderr


REFUSED = [
    (("housing-prices",), "there is no competition 'housing-prices': did you mean 'house-prices'"),
    ((ID, "--steps", "5", "--seconds", "inf"), "seconds"),
    ((ID, "--model", "gpt"), "not of the form provider:model"),
    ((ID, "--base-url", "http://127.0.0.1:9"), "not for the simulated model"),
    ((ID, "--memory", "ftp://x"), "no store is called"),
    ((ID, "--memory", ""), "is no folder"),
    (("/nowhere/toy",), "neither a competition's id nor a folder that holds config.yaml"),
    ((ID, "--sandbox", "none"), "sandbox"),
    ((ID, "--folder", "/nowhere"), "no folder of competitions"),
    ((ID, "--agent", "chain", "--policy", "uct"), "--policy is not for --agent chain"),
    ((ID, "--policy", "beam"), "policy"),
    ((ID, "--policy", "{name: uct, d: 1}"), "policy uct has no setting 'd'"),
    ((ID, "--policy", "{name: uct"), "is neither a name nor settings as YAML"),
    ((ID, "--agent", "forest"), "--agent: no agent is called 'forest'"),
    ((ID, "--agent", "chain", "--width", "2"), "--width is not for --agent chain, but for tree"),
    ((ID, "--hours", "0"), "hours"),
]


@pytest.mark.parametrize(("given", "why"), REFUSED, ids=[why for _, why in REFUSED])
def test_solve_when_asked_for_the_impossible_then_says_so_in_a_line_and_writes_nothing(
    tmp_path: Path, options: tuple[object, ...], given: tuple[str, ...], why: str
) -> None:
    """Bad input ends with 2 before there is a folder or data."""
    done = solve(given[0], *options, *given[1:])
    assert done.code == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    assert why in line
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine"]


def test_solve_when_there_is_no_engine_then_says_how_to_get_one_and_writes_nothing(
    tmp_path: Path, options: tuple[object, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without Docker nothing runs, and nothing falls back to this machine."""
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    done = solve(ID, *options, "--sandbox", "docker")
    assert done.code == 2
    assert "no Docker engine answers" in done.stderr
    assert sorted(each.name for each in tmp_path.iterdir()) == ["mine"]


def test_solve_when_the_folder_is_not_its_own_then_leaves_it_alone(
    tmp_path: Path, options: tuple[object, ...], solved: Solved
) -> None:
    """A folder with other files, or of another search, is refused and stays as it is."""
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.tex").write_text("…")
    done = solve(ID, *options)
    assert done.code == 2
    assert "thesis.tex" in done.stderr
    assert [each.name for each in (tmp_path / "out").iterdir()] == ["thesis.tex"]
    other = solve(ID, *solved.options, "--steps", 7)
    assert other.code == 2
    assert "plan.agents[0].steps: 6 → 7" in other.stderr
    other = solve(ID, *solved.options, "--agent", "chain", "--seconds", 30)
    assert other.stderr.endswith("plan.agents[0].name: tree → chain; plan.seconds: 20.0 → 30.0\n")


@pytest.mark.kill
def test_solve_when_killed_then_stopped_and_repeated_then_leaves_the_same_bytes(
    tmp_path: Path, options: tuple[object, ...]
) -> None:
    """A real process, ended by signals with two programs in flight; the same command goes on."""
    gate = Gate(tmp_path / "gate")
    # What is held at the gate has the time of a program.
    given = (ID, *options, "--steps", 4, "--width", 2, "--memory", "memory", "--seconds", 600)
    gate.open(99)
    done = solve(*given, "--out", tmp_path / "whole", study=GatedStudy(gate))
    assert done.code == 0, done.stderr
    out = tmp_path / "out"
    assert _ended(gate, given, signal.SIGKILL, after=0).code == -signal.SIGKILL
    stopped = _ended(gate, given, signal.SIGTERM, after=2)
    assert stopped.code == 130
    assert "run the same command again" in stopped.stderr
    gate.open(99)
    again = solve(*given, study=GatedStudy(gate))
    assert again.code == done.code, again.stderr
    assert f"going on with the search in {out}" in again.stdout
    assert gate.came == 2
    for name in ("journal.json", "tree.html", "submission.csv", "solution.py", "grade.json"):
        assert (out / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()


def _ended(gate: Gate, given: tuple[object, ...], ending: signal.Signals, after: int) -> Done:
    """Run the command in a process of its own; end it when two more programs run than `after`."""
    gate.open(after)
    with Warm(solve_at, gate, tuple(map(str, given))) as process:
        gate.wait_for(after + 2, process)
        process.send_signal(ending)
        return Done(*process.ended())


def test_solve_when_given_the_example_folder_then_runs_in_docker(
    tmp_path: Path, docker_image: str
) -> None:
    """A competition of one's own runs with one command, its folder named, programs contained."""
    done = subprocess.run(
        command_line(
            "solve",
            REPOSITORY / "examples" / "own_competition" / "rents",
            *("--data-dir", tmp_path / "data", "--out", tmp_path / "out"),
            *("--steps", 2, "--seconds", 60, "--json"),
        ),
        env=clean_environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode in {0, 1}, done.stderr
    *programs, solution = map(json.loads, done.stdout.splitlines())
    assert [each["event"] for each in programs] == ["program"] * 2
    assert solution["event"] == "solution"
    assert (tmp_path / "out" / "tree.html").exists()


def test_solve_when_others_used_its_memory_meanwhile_then_takes_nothing_back(
    tmp_path: Path, options: tuple[object, ...]
) -> None:
    """A search that was stopped does not undo what the next one taught the same memory."""
    given = (ID, *options, "--memory", tmp_path / "bank")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(mle_study, "rule", _fail_late)
        stopped = solve(*given)
    assert stopped.code == 1
    assert "run the same command again" in stopped.stderr
    assert solve(*given, "--out", tmp_path / "second").code == 0
    refused = solve(*given)
    assert refused.code == 2
    assert "memory has learned from others" in refused.stderr
    store = f"chroma:{tmp_path / 'bank'}"
    known = ran("memory", "show", "--store", store, "--provider", "coding")
    assert known.returncode == 0, known.stderr
    assert "error_trace" in known.stdout


def _fail_late(text: str, sample: str) -> str:
    if "/004/" in sample:
        raise InfrastructureError("the network is away")
    return mle_study_rule(text, sample)
