"""The command line as a user meets it, wrong input included."""

import asyncio
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer
import yaml
from chain_study import ChainStudy, chain_plan, run_chain
from memory_command import Done
from memory_command import ran_here as langgraft

from langgraft import __version__
from langgraft._core.errors import InfrastructureError, PlanError
from langgraft._core.texts import printable
from langgraft.benchmarks.harness.log import checked_line
from langgraft.benchmarks.harness.verify import plan_digest
from langgraft.benchmarks.studies import choose, read_shipped_plans
from langgraft.cli.app import app
from langgraft.cli.printing import show_table

SMALL = {
    "study": "continual",
    "title": "Smallest",
    "train_items": 2,
    "test_items": 2,
    "runs": 1,
    "baseline_runs": 1,
    "rerun": False,
    "sequences": ["A>B"],
    "conditions": [{"name": "agg", "provider": "insight"}],
}


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a plan that takes seconds."""
    path = tmp_path_factory.mktemp("plan") / "small.yaml"
    path.write_text(yaml.safe_dump(SMALL))
    return path


@pytest.fixture(scope="module")
def finished(plan: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a finished run directory."""
    out = tmp_path_factory.mktemp("out") / "run"
    done = langgraft("run", plan, "--out", out)
    assert done.returncode == 0, done.stderr
    return out


def test_version_when_asked_is_the_packages() -> None:
    """In one line, and nothing else is done."""
    done = langgraft("--version")
    assert (done.returncode, done.stdout) == (0, f"langgraft {__version__}\n")


def refusal(done: Done) -> str:
    """Return the one line of a refusal."""
    assert done.returncode == 2, done.stdout + done.stderr
    assert done.stdout == ""
    assert done.stderr.startswith("langgraft: ")
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    return done.stderr


def contents(folder: Path) -> dict[Path, bytes]:
    """Return every file below a folder."""
    return {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_plans_when_listed_as_json_are_complete() -> None:
    """`plans --json` names what ships."""
    listed = json.loads(langgraft("plans", "--json").stdout)
    assert [plan["name"] for plan in listed] == [
        "continual-babyai",
        "continual-memory",
        "demo-alfworld",
        "demo-mle-chain",
        "demo-mle",
        "demo-sequences",
        "demo-transplant",
        "demo",
        "memory-transplants-1000",
        "memory-transplants",
        "mle-lite",
        "mle-policies",
        "mle-shipped",
        "readings",
        "remedies-alfworld",
        "remedies-babyai",
        "systems-babyai",
    ]


@pytest.mark.matrix  # every plan that ships
def test_plans_when_listed_pass_all_checks_and_are_as_large_as_said() -> None:
    """`plans` imports no provider and checks no settings of one: here they are checked."""
    for name, study, plan in read_shipped_plans():
        try:
            runs = study.expand(plan)
        except PlanError:  # its games are not here
            continue
        prepared = choose(name, model=None, base_url=None, limit=None)
        assert prepared.plan == plan
        assert tuple(run.spec for run in prepared.graph) == runs
        assert study.size(plan) == (len(runs), sum(run.length for run in runs))


@pytest.mark.parametrize(("columns", "lines"), [("80", 0), ("30", 2)])
def test_table_when_the_terminal_has_no_room_for_its_words_breaks_none(
    columns: str, lines: int, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each row is a few lines then, which can be copied whole."""
    monkeypatch.setenv("COLUMNS", columns)
    names = ["agg+placebo+a-very-long-name", "agg+shuffled+a-very-long-name"]
    show_table("Memories", ["memory", "score"], [[name, "12"] for name in names])
    told = capsys.readouterr().out
    assert all(name in told for name in names)
    assert sum(line.startswith("  score   12") for line in told.splitlines()) == lines


def test_preview_when_limited_counts_fewer_items(plan: Path) -> None:
    """`preview` says how much a plan asks for, before anything is paid."""
    full = json.loads(langgraft("preview", plan, "--json").stdout)
    limited = json.loads(langgraft("preview", plan, "--limit", 1, "--json").stdout)
    assert full["total"][1] == 2 * limited["total"][1] > 0


@pytest.mark.usefixtures("no_figures")
def test_run_when_done_writes_report_and_says_where(plan: Path, finished: Path) -> None:
    """Running a finished plan again changes nothing and reports again."""
    before = contents(finished / "runs")
    done = langgraft("run", plan, "--out", finished)
    assert done.returncode == 0
    assert str(finished / "report" / "index.html") in done.stdout
    assert "agg" in done.stdout
    assert contents(finished / "runs") == before


def test_status_and_verify_when_finished_find_nothing_missing(finished: Path) -> None:
    """A finished directory is complete and sound."""
    assert json.loads(langgraft("status", finished, "--json").stdout)["complete"] is True
    assert json.loads(langgraft("verify", finished, "--json").stdout)["findings"] == []
    assert "integrity" in langgraft("verify", finished).stdout


def test_watch_when_a_plan_is_done_ends_with_its_page_and_its_counts(
    finished: Path, tmp_path: Path
) -> None:
    """The page is the last one, and loads itself no more; every item was scored."""
    page = tmp_path / "page.html"
    done = langgraft("watch", finished, "--page", page)
    assert (done.returncode, done.stderr) == (0, "")
    items = json.loads(langgraft("status", finished, "--json").stdout)["runs"]
    total = sum(run["done"] for run in items)
    assert f"{total}/{total} items (100%), {len(items)}/{len(items)} runs done" in done.stdout
    text = page.read_text()
    assert "All runs are done." in text
    assert 'http-equiv="refresh"' not in text
    assert "These are counts" not in text
    successes = re.findall(r"<td>(\d+) of (\d+)</td>\n<td>[\d,]+</td>", text)
    assert sum(int(of) for _, of in successes) == 2 * total  # by condition, and by run


def test_watch_when_no_page_is_wanted_or_possible_says_lines_and_leaves_nothing(
    finished: Path, tmp_path: Path
) -> None:
    """Without a page nothing is written; a page that cannot be written is told in a line."""
    before = contents(finished)
    assert langgraft("watch", finished, "--no-page").returncode == 0
    assert contents(finished) == before
    (tmp_path / "file").write_text("")
    told = langgraft("watch", finished, "--page", tmp_path / "file" / "page.html")
    assert ("page.html" in told.stderr, told.stderr.count("\n")) == (True, 1)
    assert "not a run directory" in refusal(langgraft("watch", tmp_path))


def test_watch_when_nobody_works_any_more_ends_with_1(finished: Path, tmp_path: Path) -> None:
    """A plan that stopped long ago says how to go on."""
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    for folder in (copy / "runs").iterdir():
        (folder / "DONE.json").unlink()
        (folder / "events.jsonl").write_bytes(
            checked_line('{"event": "opened", "time": 1, "committed": 1}')
            + checked_line('{"event": "failed", "time": 2, "reason": "<b>", "text": "\\u001b[31m"}')
            + checked_line('{"event": "closed", "time": 3}')
        )
    done = langgraft("watch", copy)
    assert done.returncode == 1
    again = f"langgraft run {copy / 'plan.yaml'} --out {copy}"
    assert f"stopped (nobody is running it); go on with: {again}" in done.stdout
    assert "\x1b" not in done.stdout
    assert "<b>" not in (copy / "watch.html").read_text()


def test_inspect_when_exported_is_a_folder_of_logs(finished: Path, tmp_path: Path) -> None:
    """A folder has to be named and free, and holds a log a run."""
    asked = ("export", finished, "--format", "inspect")
    assert "name a folder with --out" in refusal(langgraft(*asked))
    out = tmp_path / "logs"
    done = langgraft(*asked, "--out", out)
    assert (done.returncode, done.stderr) == (0, "")
    assert {path.suffix for path in out.iterdir()} == {".eval"}
    assert f"{len([*out.iterdir()])} logs of" in done.stdout
    assert "--force" in refusal(langgraft(*asked, "--out", out))
    assert langgraft(*asked, "--out", out, "--force", "--condition", "agg").returncode == 0


def test_verify_when_a_byte_is_wrong_names_the_file(finished: Path, tmp_path: Path) -> None:
    """Damage is found, and the exit code says so."""
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    log = next(path for path in sorted(copy.rglob("items.jsonl")) if path.stat().st_size)
    data = bytearray(log.read_bytes())
    data[len(data) // 2] ^= 1
    log.write_bytes(data)
    page = copy / "report" / "index.html"
    before = page.stat().st_mtime_ns
    done = langgraft("verify", copy)
    assert done.returncode == 1
    assert "items.jsonl" in done.stdout
    assert "items.jsonl" in refusal(langgraft("report", copy))
    assert page.stat().st_mtime_ns == before


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"study": "nonsense"}, "nonsense"),
        ({"trian_items": 5}, "trian_items"),
        ({"train_items": 0}, "train_items"),
        ({"train_items": "many"}, "train_items"),
        ({"conditions": []}, "conditions"),
        ({"conditions": [{"name": "x", "provider": "nobody"}]}, "nobody"),
        ({"conditions": [{"name": "x", "provider": "insight", "settings": {"k": 1}}]}, "k"),
        ({"controls": [{"control": "placebo", "of": "raw"}]}, "raw+placebo"),
        ({"tasks": {"A": "babyai/dance", "B": "babyai/find_obj"}}, "babyai/dance"),
        ({"runs": 3}, "baseline_runs"),
    ],
)
def test_run_when_the_plan_is_wrong_says_what_and_where(
    change: dict[str, object], says: str, tmp_path: Path
) -> None:
    """A malformed plan is refused in one line, and nothing is written."""
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump({**SMALL, **change}))
    line = refusal(langgraft("run", path, "--out", tmp_path / "out"))
    assert says in line
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("text", ["", "- 1\n- 2\n", "study: [", "\x00"])
def test_run_when_the_plan_is_not_a_mapping_names_the_file(text: str, tmp_path: Path) -> None:
    """Whatever stands in the file, the line says which file."""
    path = tmp_path / "plan.yaml"
    path.write_text(text)
    assert str(path) in refusal(langgraft("run", path, "--out", tmp_path / "out"))


@pytest.mark.parametrize("model", ["nobody:gpt", "openai:gpt-4.1-mini", "gibberish"])
def test_run_when_the_model_cannot_be_made_changes_nothing(
    model: str, plan: Path, tmp_path: Path
) -> None:
    """An unknown provider or a missing key stops before a directory is made."""
    done = langgraft("run", plan, "--out", tmp_path / "out", "--model", model)
    assert model.partition(":")[0] in refusal(done).lower() + done.stderr
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("store", "says"),
    [
        ("nonsense", "no store is called 'nonsense'; there are memory, chroma"),
        ("", "no store is called ''"),
        ("chroma:", "no store is called 'chroma:'"),
        ("http://127.0.0.1:1", "no Chroma server answers at http://127.0.0.1:1"),
        ("postgresql://bob:s3cret@127.0.0.1:1/x", "store postgresql://127.0.0.1:1/x cannot be"),
        ("postgresql://bob:s3/cret@127.0.0.1:1/x", "store postgresql://…: not a URL"),
    ],
)
def test_run_when_the_store_cannot_be_opened_changes_nothing(
    store: str, says: str, plan: Path, tmp_path: Path
) -> None:
    """A wrong name or a server that is down is one line without a password, and no directory."""
    line = refusal(langgraft("run", plan, "--out", tmp_path / "out", "--store", store))
    assert says in line
    assert "cret" not in line
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("no_figures")
def test_run_when_banks_lie_in_the_directory_then_results_are_the_same_bytes(
    plan: Path, finished: Path, tmp_path: Path
) -> None:
    """`--store chroma` keeps its files in the run directory, and changes no item."""
    done = langgraft("run", plan, "--out", tmp_path / "out", "--store", "chroma")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "out" / "store").is_dir()
    items = {
        path.relative_to(tmp_path / "out"): path.read_bytes()
        for path in tmp_path.rglob("items.jsonl")
    }
    assert items
    assert all((finished / name).read_bytes() == found for name, found in items.items())


def test_run_when_the_directory_is_of_another_plan_says_what_differs(
    plan: Path, finished: Path, tmp_path: Path
) -> None:
    """A directory goes on with what it was started with, and with nothing else."""
    other = tmp_path / "other.yaml"
    other.write_text(yaml.safe_dump({**SMALL, "temperature": 0.7}))
    before = contents(finished)
    line = refusal(langgraft("run", other, "--out", finished))
    assert "temperature" in line
    assert "0.7" in line
    assert contents(finished) == before


def test_run_when_the_directory_is_something_else_leaves_it_alone(
    plan: Path, tmp_path: Path
) -> None:
    """Somebody's folder is not taken over."""
    (tmp_path / "thesis.tex").write_text("precious")
    refusal(langgraft("run", plan, "--out", tmp_path))
    assert list(tmp_path.iterdir()) == [tmp_path / "thesis.tex"]


def test_run_when_the_path_cannot_be_written_says_which(plan: Path, tmp_path: Path) -> None:
    """A file in the way is named."""
    (tmp_path / "file").write_text("")
    assert "file" in refusal(langgraft("run", plan, "--out", tmp_path / "file" / "out"))


def test_status_when_hundreds_of_runs_are_unfinished_lists_those_that_are_begun(
    tmp_path: Path,
) -> None:
    """A screen shows a hundred of them, those under way first; JSON has all."""

    def fail(run: str, item: str) -> None:
        if (run, item) != ("39/first", "item-0"):
            msg = "the network is away"
            raise InfrastructureError(msg)

    asyncio.run(run_chain(tmp_path, chain_plan(streams=40), ChainStudy(fail)))
    lines = langgraft("status", tmp_path).stdout.splitlines()
    (begun,) = (place for place, line in enumerate(lines) if "39/first" in line)
    assert begun < 6  # a title and a head stand above it
    assert "and 100 more unfinished runs; --json lists all" in lines
    again = f"langgraft run {tmp_path / 'plan.yaml'} --out {tmp_path}"
    assert f"stopped (nobody is running it); go on with: {again}" in lines
    assert len(json.loads(langgraft("status", tmp_path, "--json").stdout)["runs"]) == 200


@pytest.mark.parametrize("command", ["status", "report", "verify"])
def test_reading_commands_when_there_is_no_run_say_so(command: str, tmp_path: Path) -> None:
    """A folder without a run is not an empty run."""
    assert str(tmp_path) in refusal(langgraft(command, tmp_path))


def test_module_when_run_in_a_process_refuses_the_same_way(tmp_path: Path) -> None:
    """`python -m langgraft` is the console script: one line and exit code 2."""
    command = [sys.executable, "-m", "langgraft", "status", str(tmp_path)]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert str(tmp_path) in refusal(Done(ended.returncode, ended.stdout, ended.stderr))


TITLES = [
    "\x1b[2J\x1b]0;owned\x07",
    "[bold red]x[/nope]",
    "[link=http://x]y[/link]",
    "\u202eabc\x9b2J",
]


@pytest.mark.parametrize("title", TITLES)
def test_preview_when_the_title_holds_escapes_then_they_are_spelled_out(
    title: str, tmp_path: Path
) -> None:
    """What steers a terminal is shown, not obeyed, in tables, JSON and errors; markup is text."""
    path = tmp_path / "plan.yaml"
    path.write_text(json.dumps({**SMALL, "title": title}))
    shown = langgraft("preview", path)
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(json.dumps({**SMALL, title: title}))
    for done in (shown, langgraft("preview", path, "--json"), langgraft("preview", wrong)):
        assert all(each.isprintable() for each in (done.stdout + done.stderr).replace("\n", ""))
    assert printable(title) in shown.stdout


def test_traceback_when_asked_for_then_steers_no_terminal(tmp_path: Path) -> None:
    """All is told with --debug, in lines that can be read."""
    wrong = tmp_path / "wrong.yaml"
    wrong.write_text(json.dumps({**SMALL, "a\x1b[2J": 1}))
    done = langgraft("--debug", "preview", wrong)
    assert done.returncode == 2
    assert "Traceback" in done.stderr
    assert "\x1b" not in done.stderr


def test_plan_when_it_names_code_then_only_run_imports_it_and_says_so(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To look at somebody's plan, and at what came of it, nothing of theirs is executed."""
    marker = tmp_path / "marker"
    (tmp_path / "foreign_memory.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    named = "foreign_memory:Memory"
    path = tmp_path / "plan.yaml"
    path.write_text(yaml.safe_dump({**SMALL, "conditions": [{"name": "agg", "provider": named}]}))
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    resolved = (copy / "plan.yaml").read_text()
    (copy / "plan.yaml").write_text(resolved.replace("provider: insight", f"provider: {named}"))
    shown = langgraft("preview", path)
    assert shown.returncode == 0
    assert named in shown.stdout
    for command in ("status", "verify", "report"):
        langgraft(command, copy)
    assert not marker.exists()
    ran = langgraft("run", path, "--out", tmp_path / "out")
    assert ran.returncode == 2
    assert ran.stderr.startswith(f"importing {named}, which the plan names\n")
    assert marker.exists()
    assert not (tmp_path / "out").exists()


IMPORTING = {
    *("preview", "run", "serve-simulated", "ablate", "exam", "solve", "memory transplant", "plans"),
    *("bench", "competitions list", "competitions show", "competitions prepare"),
    *(
        "competitions check",
        "competitions grade",
        "sandbox build",
        "sandbox check",
        "sandbox clean",
    ),
}
"""Commands that read no run directory: they take a plan, an experiment, a competition or a class."""
READING: dict[str, tuple[str, ...]] = {
    "status": ("DIR",),
    "watch": ("DIR", "--no-page"),
    "report": ("DIR",),
    "verify": ("DIR",),
    "export": ("DIR", "--format", "sft"),
    "tree": ("DIR",),
    "memory show": ("DIR",),
    "memory search": ("DIR", "door"),
    "memory diff": ("DIR", "DIR"),
    "memory export": ("DIR", "--out", "OUT"),
    "memory import": ("DIR", "--store", "sqlite:OUT", "--provider", "insight"),
    "memory forget": ("ID", "--store", "DIR", "--provider", "insight"),
    "memory edit": ("ID", "--store", "DIR", "--provider", "insight", "--text", "a"),
    "memory clear": ("--store", "DIR", "--provider", "insight", "--yes"),
    "memory erase": ("--item", "x", "--places", "DIR", "--dry-run"),
    "memory receipts": ("DIR",),
    "memory why": ("ID", "--store", "DIR", "--provider", "insight"),
    "memory scan": ("DIR",),
    "memory revoke": ("web:x", "--store", "DIR", "--provider", "insight"),
    "memory release": ("ID", "--store", "DIR", "--provider", "insight"),
    "memory convert": ("DIR", "--out", "OUT"),
    "cache stats": ("DIR",),
    "cache export": ("DIR", "--out", "OUT"),
    "cache import": ("OUT", "--into", "DIR"),
    "cache trim": ("DIR", "--to", "1"),
}
"""What each other command is given to read."""


def commands_of(group: Any) -> Iterator[str]:
    """Yield the names of all commands."""
    for name, command in typer.main.get_command(group).commands.items():  # type: ignore[attr-defined]
        inside = getattr(command, "commands", None)
        yield from [name] if inside is None else (f"{name} {each}" for each in inside)


def test_directory_when_its_plan_names_code_then_no_command_imports_it_unasked(
    finished: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A booby-trapped memory in a run directory is not touched by any command that reads it."""
    marker = tmp_path / "marker"
    (tmp_path / "trapped.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    assert set(commands_of(app)) == IMPORTING | set(READING), "say what a new command reads"
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    resolved = (copy / "plan.yaml").read_text()
    trapped = resolved.replace("provider: insight", "provider: trapped:Memory")
    (copy / "plan.yaml").write_text(trapped)
    manifest = json.loads((copy / "manifest.json").read_text())
    manifest["plan"] = plan_digest(copy)
    (copy / "manifest.json").write_text(json.dumps(manifest))
    for name, words in READING.items():
        out = str(tmp_path / "out")
        given = [each.replace("DIR", str(copy)).replace("OUT", out) for each in words]
        done = langgraft(*name.split(), *given)
        assert not marker.exists(), name
        if name == "export":
            assert "give --trust-modules if you trust it" in refusal(done)
    langgraft("export", copy, "--format", "sft", "--trust-modules")
    assert marker.exists()


def test_log_when_made_of_empty_lines_or_objects_then_refused_in_one_line(
    finished: Path, tmp_path: Path
) -> None:
    """Millions of lines or values are no log; deep ones are damage like any other."""
    for data in (b"{}\n" * 2_000_000, b"[" * 100_000):
        copy = tmp_path / "copy"
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(finished, copy)
        (copy / "runs.jsonl").write_bytes(data)
        assert "is damaged: " in refusal(langgraft("status", copy))
        shutil.copy(finished / "runs.jsonl", copy)
        (copy / "manifest.json").write_bytes(data)
        assert "is damaged: " in refusal(langgraft("status", copy))


@pytest.mark.parametrize(
    ("form", "keys"),
    [
        ("sft", {"prompt", "completion"}),
        ("openai", {"messages"}),
        (
            "trajectories",
            {
                "run",
                "condition",
                "split",
                "domain",
                "task",
                "success",
                "score",
                "steps",
                "recalled",
            },
        ),
    ],
)
def test_episodes_when_exported_are_json_lines(finished: Path, form: str, keys: set[str]) -> None:
    """To standard output nothing else is written, and the same twice."""
    done = langgraft("export", finished, "--format", form)
    assert (done.returncode, done.stderr) == (0, "")
    found = [json.loads(line) for line in done.stdout.splitlines()]
    assert found
    assert all(set(each) == keys for each in found)
    assert langgraft("export", finished, "--format", form).stdout == done.stdout


def test_export_when_its_file_is_there_is_replaced_only_by_force(
    finished: Path, tmp_path: Path
) -> None:
    """It is written whole, or left as it was."""
    out = tmp_path / "data.jsonl"
    asked = ("export", finished, "--format", "openai", "--out", out)
    done = langgraft(*asked)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{len(out.read_text().splitlines())} lines of" in done.stdout
    out.write_text("mine")
    assert "is there already; --force replaces it" in refusal(langgraft(*asked))
    assert out.read_text() == "mine"
    assert "nothing to export" not in langgraft(*asked, "--force").stdout
    assert out.read_text() != "mine"
    assert sorted(tmp_path.iterdir()) == [out]


def test_export_when_episodes_are_chosen_holds_those(finished: Path) -> None:
    """Filters by name, by split and by success; each is of the log."""
    asked = ("export", finished, "--format", "trajectories", "--condition", "agg")
    train = langgraft(*asked, "--split", "train", "--without-memory").stdout.splitlines()
    found = [json.loads(line) for line in train]
    assert {(each["condition"], each["split"]) for each in found} == {("agg", "train")}
    assert all("recalled" not in each for each in found)
    good = langgraft(*asked, "--success").stdout.splitlines()
    assert {json.loads(line)["success"] for line in good} == {True}


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (("--format", "csv"), "--format is sft, openai, trajectories or inspect, got 'csv'"),
        (("--format", "sft", "--split", "test"), "--split is train or evaluate, got 'test'"),
        (("--format", "sft", "--condition", "x"), "no episode of the log has condition 'x'"),
        (("--format", "sft", "--out", "/nowhere/x.jsonl"), "cannot be written"),
    ],
)
def test_export_when_options_are_impossible_is_refused(
    finished: Path, options: tuple[str, ...], told: str
) -> None:
    """One line, and nothing written."""
    assert told in refusal(langgraft("export", finished, *options))


def test_export_when_the_log_is_damaged_writes_nothing(finished: Path, tmp_path: Path) -> None:
    """It is verified first, as a report's is."""
    copy = tmp_path / "copy"
    shutil.copytree(finished, copy)
    path = next(copy.rglob("items.jsonl"))
    path.write_bytes(path.read_bytes().replace(b"success", b"succeSs", 1))
    said = refusal(langgraft("export", copy, "--format", "sft", "--out", tmp_path / "out"))
    assert "nothing is exported of a damaged log" in said
    assert not (tmp_path / "out").exists()
    assert "not a run directory" in refusal(langgraft("export", tmp_path, "--format", "sft"))


def test_run_when_ray_is_asked_for_and_not_installed_names_the_extra(
    plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is begun, and nobody else needs Ray."""
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "langgraft.benchmarks.harness.cluster", raising=False)
    done = langgraft("run", plan, "--out", tmp_path / "out", "--ray", "auto")
    assert done.returncode != 0
    assert done.stderr.count("\n") == 1
    assert "needs `ray`, which is not installed: pip install 'langgraft[ray]'" in done.stderr
    assert not (tmp_path / "out").exists()


def test_run_when_both_a_shard_and_a_cluster_are_asked_for_is_refused(
    plan: Path, tmp_path: Path
) -> None:
    """A shard is one process."""
    done = langgraft("run", plan, "--out", tmp_path, "--ray", "auto", "--shard", "0/2")
    assert "--shard and --ray" in refusal(done)


def test_cache_when_moved_and_bounded_by_commands_then_tells_what_it_did(tmp_path: Path) -> None:
    """Count, export, import, trim; what cannot be done is one line, and leaves everything as it was."""
    from langchain_core.messages import AIMessage  # noqa: PLC0415  (of what is kept)
    from langchain_core.outputs import ChatGeneration  # noqa: PLC0415

    from langgraft.benchmarks.harness.cache import ResponseCache  # noqa: PLC0415

    out, lines, other = tmp_path / "run", tmp_path / "x.jsonl", tmp_path / "other.sqlite"
    assert "responses.sqlite" in refusal(langgraft("cache", "stats", tmp_path))
    assert not any(tmp_path.iterdir())
    with ResponseCache(out / "responses.sqlite") as cache:
        for number in range(100):
            said = ChatGeneration(message=AIMessage(f"{number} " * 400))
            cache.update(f"p{number}", '{"identity":{"model":"openai:m"}}', [said])
    told = json.loads(langgraft("cache", "stats", out, "--json").stdout)
    assert (told["replies"], told["models"]) == (100, {"openai:m": 100})
    assert langgraft("cache", "export", out, "--out", lines).stdout == f"{lines}: 100 replies\n"
    assert "--force replaces it" in refusal(langgraft("cache", "export", out, "--out", lines))
    done = langgraft("cache", "import", lines, other)
    assert done.stdout == f"{other}: 100 replies are new, 0 requests were answered already\n"
    lines.write_bytes(lines.read_bytes()[:-20])
    assert f"{lines}: " in refusal(langgraft("cache", "import", lines, other))
    assert "is in use" not in langgraft("cache", "trim", other, "--most-bytes", 50_000).stderr
    assert other.stat().st_size <= 50_000
    again = langgraft("run", "demo", "--out", tmp_path / "new", "--replay", other)
    assert "simulated model is asked anew: there is nothing to replay" in refusal(again)
    real = ("run", "demo", "--model", "openai:m", "--out", tmp_path / "new", "--replay", lines)
    assert f"{lines}: not a response cache" in refusal(langgraft(*real))
    assert not (tmp_path / "new").exists()
