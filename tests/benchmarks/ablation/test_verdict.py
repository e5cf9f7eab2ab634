"""What is said of an ablation: in a terminal, on the page, as JSON, a frame, a summary, by the command line."""

import contextlib
import html
import io
import json
import re
import socket
import sys
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from ablation_cases import CODES, MEMORY, Clerk, asked, bank_file, function, lookups, tried
from langchain_core.language_models import GenericFakeChatModel
from langchain_core.messages import AIMessage

from langgraft.benchmarks.ablation import Ablation, Task
from langgraft.benchmarks.ablation.report import SIMULATED_NOTICE, rows_of
from langgraft.cli.app import run_command_line

HOSTILE = "</pre><script>alert('x')</script> | [a](javascript:b) `c` <!--"


@pytest.fixture(scope="module")
def helped(tmp_path_factory: pytest.TempPathFactory) -> Ablation:
    """Try a memory that helps, with credit and harm suite."""
    return tried(
        tmp_path_factory.mktemp("helped"),
        train=lookups(*CODES),
        test=asked(*CODES, times=2),
        conditions=("placebo", "rerun"),
        replicates=3,
        harm=True,
        credit=12,
    )


def text_of(page: str) -> str:
    """Return what a page says, in one line."""
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())


def test_verdict_when_memory_helps_then_says_so_first(helped: Ablation) -> None:
    """In one sentence with difference and interval, after the notice that the model is simulated."""
    notice, verdict, *_ = helped.lines()
    assert notice == SIMULATED_NOTICE
    assert re.match(
        r"trajectory helps: \+83\.3 pp \[.*\] against no memory \(.*12 items . 3 runs", verdict
    )
    assert helped.verdicts == {MEMORY: "helps"}
    assert helped.exit_code == 0


def test_verdict_when_memory_harms_then_exits_with_1(tmp_path: Path) -> None:
    """A bank of wrong codes for what the model knows."""
    bank = bank_file(tmp_path / "b.jsonl", wrong="the code of fay is 7")
    found = tried(tmp_path / "out", bank=bank, test=asked("fay", times=12), replicates=3)
    assert found.verdicts == {MEMORY: "harms"}
    assert found.lines()[1].startswith("trajectory harms: \N{MINUS SIGN}100.0 pp")
    assert found.exit_code == 1


def test_verdict_when_memory_changes_nothing_then_is_no_detectable_difference(
    tmp_path: Path,
) -> None:
    """Neither word is used."""
    found = tried(tmp_path, train=lookups("fay"), test=asked("fay", times=12), replicates=3)
    assert found.verdicts == {MEMORY: "no detectable difference"}
    assert found.exit_code == 0


def test_page_when_written_then_has_every_sentence_and_every_condition(helped: Ablation) -> None:
    """What a terminal says, a page says; and each number is in a table of the folder."""
    page = text_of(helped.page.read_text())
    for line in helped.lines()[1:]:
        assert " ".join(line.split()) in page
    assert "The model is simulated." in page
    for arm in helped.analysis.arms:
        assert arm.arm.name.partition("~")[2] in page
    for item in helped.analysis.memories[0].credits:
        assert item.id in page
    tables = {each.stem for each in (helped.page.parent / "tables").glob("*.csv")}
    assert {"conditions", "help_and_harm", "splits", "against_controls"} <= tables
    assert {"item_credit", "harm_suite", "harm_items"} <= tables


def test_json_and_frame_when_asked_then_hold_what_was_found(helped: Ablation) -> None:
    """JSON without infinities; a row for each attempt."""
    told = json.loads(json.dumps(helped.to_json(), allow_nan=False))
    assert told["simulated"]
    verdict = told["verdicts"][MEMORY]
    assert verdict["verdict"] == "helps"
    assert verdict["difference"]["value"] == pytest.approx(5 / 6)
    assert (verdict["gained_tasks"], verdict["lost_tasks"]) == (10, 0)
    assert sum(each["replays"] for each in verdict["credit"]) == 12
    assert told["seconds"].keys() == {each.arm.name for each in helped.analysis.arms}
    frame = helped.frame()
    assert len(frame) == len(helped.analysis.arms) * 12 * 3
    means = frame.groupby("condition").score.mean()
    assert means[MEMORY] == 1
    assert means["none"] == pytest.approx(1 / 6)
    assert frame[frame.condition == MEMORY].recalled.map(len).eq(1).all()


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Ablation:
    """Try an agent whose tasks, kinds and answers are markup."""

    class Hostile(Clerk):
        def reply(self, messages: Any, sampling: Any) -> str:
            return HOSTILE + super().reply(messages, sampling)

    def build(memory: Any, model: Any) -> Any:
        agent = function(memory, model)
        # Something besides memory differs, so that a check names a task.
        return lambda text: agent(text + " " * 3 + str(memory.describe())[:20].replace("none", "n"))

    test = [
        Task(f"{HOSTILE} {each.id}", each.input, HOSTILE, each.reference)
        for each in asked("ada", "bob")
    ]
    return tried(
        tmp_path_factory.mktemp("hostile"),
        build=build,
        test=test,
        title=HOSTILE,
        model=lambda seed: Hostile(seed=seed),
    )


def test_page_when_tasks_and_answers_are_markup_then_escapes_them(hostile: Ablation) -> None:
    """They are shown, and no script runs."""
    page = hostile.page.read_text()
    assert "<script>alert" not in page
    assert "<!--" not in page
    assert page.count("</pre>") == page.count("<pre>")
    assert HOSTILE in text_of(page.replace("</pre>", "").replace("<pre>", ""))


def test_summary_when_tasks_are_markup_then_escapes_them(hostile: Ablation) -> None:
    """Nothing makes a link, a tag, code or a further cell."""
    told = hostile.summary()
    bare = re.sub(r"\\.", "", told)
    assert "<script" not in bare
    assert "<!--" not in bare
    assert "](" not in bare
    assert "\\<script\\>" in told


def test_summary_when_written_then_is_a_table_of_conditions(helped: Ablation) -> None:
    """A heading, sentences, a row a condition, all of as many cells."""
    told = helped.summary()
    rows = [line for line in told.splitlines() if line.startswith("|")]
    assert len(rows) == 2 + len(helped.analysis.arms)
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {7}
    assert f"> {SIMULATED_NOTICE}" in told


# The command line ---------------------------------------------------------------------------


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str


def langgraft(*arguments: object) -> Done:
    """Run a command in this process, as the console script does."""
    out, err = io.StringIO(), io.StringIO()
    with (
        pytest.MonkeyPatch.context() as patch,
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
    ):
        patch.setattr(sys, "argv", ["langgraft", *map(str, arguments)])
        patch.setenv("COLUMNS", "160")
        try:
            run_command_line()
        except SystemExit as ended:
            code = ended.code
    return Done(int(code or 0), out.getvalue(), err.getvalue())


MODULE = """
from ablation_cases import asked, experiment as made, lookups, middleware_agent
def make():
    return made(train=lookups("ada", "bob", "cyd"), test=asked("ada", "bob", "cyd", times=4), replicates=3)
experiment = make()
number = 3
def broken():
    raise RuntimeError("no such file")
own = lambda: made(build=lambda memory: str, model=None)
unknown = lambda: made(memory="trajectories")
coding = lambda: made(memory="coding", build=middleware_agent)
no_bank = lambda: made(bank="nowhere.jsonl")
bad_bank = lambda: made(bank="my_experiment.py")
no_such_claim = lambda: made(hypotheses=[{
    "name": "h", "treated": {"control": ""}, "baseline": {"condition": "none"}, "measure": "luck",
    "direction": "greater"}])
broken_build = lambda: made(build=lambda memory, model: 1 / 0)
"""


@pytest.fixture
def module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Write an experiment into the current folder, and return what it is called by."""
    (tmp_path / "my_experiment.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [*sys.path])
    monkeypatch.delitem(sys.modules, "my_experiment", raising=False)
    return "my_experiment"


def test_command_when_run_then_shows_what_the_page_says(module: str, tmp_path: Path) -> None:
    """A table, the verdict, the page; the summary in a file; and again for nothing."""
    done = langgraft("ablate", f"{module}:make", "--out", "out", "--summary", "s.md")
    assert done.code == 0, done.err
    assert SIMULATED_NOTICE in done.out
    assert re.search(r"trajectory helps: \+100\.0 pp", done.out)
    assert "out/report/index.html" in done.out
    assert "seconds" in done.out
    assert "trajectory helps" in (tmp_path / "s.md").read_text()
    again = langgraft("ablate", f"{module}:make", "--out", "out", "--json", "--harm")
    assert again.code == 2
    assert "harm" in again.err


def test_command_when_json_is_asked_for_then_is_only_that(module: str) -> None:
    """With harm suite and credit, in the default directory."""
    done = langgraft("ablate", f"{module}:experiment", "--json", "--harm", "--credit", "6")
    assert done.code == 0, done.err
    told = json.loads(done.out)  # progress goes to standard error
    assert told["verdicts"][MEMORY]["verdict"] == "helps"
    assert sum(each["replays"] for each in told["verdicts"][MEMORY]["credit"]) == 6
    assert Path("runs/ablate-my_experiment-experiment/report/index.html").is_file()


def test_command_when_a_preview_is_asked_for_then_runs_nothing(module: str) -> None:
    """In words and as JSON."""
    done = langgraft("ablate", f"{module}:experiment", "--preview")
    assert done.code == 0
    assert "81 attempts, about 81 model calls" in done.out
    told = langgraft("ablate", f"{module}:experiment", "--preview", "--json")
    assert json.loads(told.out)["attempts"] == 81
    assert not Path("runs").exists()


def test_command_when_the_change_regressed_then_exits_with_1(module: str, tmp_path: Path) -> None:
    """Held against a bank that knows more."""
    bank = bank_file(tmp_path / "b.jsonl", one="the code of fay is 106")
    passed = langgraft("ablate", f"{module}:experiment", "--out", "a", "--against", bank)
    assert passed.code == 0, passed.err
    assert "Passed: " in passed.out
    told = langgraft("ablate", f"{module}:experiment", "--out", "a", "--against", bank, "--preview")
    assert "the guard stops as soon as it is sure" in told.out


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["nothing"], "named 'package.module:object'"),
        (["nowhere_at_all:x"], "cannot be imported: ModuleNotFoundError"),
        (["my_experiment:absent"], "cannot be imported: AttributeError"),
        (["my_experiment:number"], "is 3, and no `Experiment`"),
        (["my_experiment:broken"], "cannot be imported: RuntimeError: no such file"),
        (
            ["my_experiment:experiment", "--against", "/nowhere.jsonl"],
            "/nowhere.jsonl: cannot be read",
        ),
        (["my_experiment:experiment", "--max-calls", "3"], "cap a model by name"),
        (["my_experiment:experiment", "--credit", "-1"], "--credit"),
        (["my_experiment:experiment", "--base-url", "http://127.0.0.1:9/v1"], "add --model"),
        (
            ["my_experiment:own", "--model", "openai:x"],
            "`build` of my_experiment:own takes no model",
        ),
        (["my_experiment:unknown"], "trajectories"),
        (["my_experiment:unknown", "--preview"], "trajectories"),
        (["my_experiment:coding", "--preview"], "CodingMemory learns from error records"),
        (["my_experiment:no_bank", "--preview"], "nowhere.jsonl: cannot be read"),
        (["my_experiment:bad_bank", "--preview"], "my_experiment.py"),
        (["my_experiment:no_such_claim", "--preview"], "hypotheses.0.measure"),
        (["my_experiment:broken_build", "--preview"], "`build`"),
        (["my_experiment:experiment", "--preview", "--model", "nothing"], "provider:model"),
    ],
)
@pytest.mark.usefixtures("module")
def test_command_when_given_something_wrong_then_says_so_in_a_line(
    arguments: list[str], told: str
) -> None:
    """No traceback, exit code 2, nothing written."""
    done = langgraft("ablate", *arguments)
    assert done.code == 2
    assert told in done.err
    assert "Traceback" not in done.err
    assert not Path("runs").exists()


def closed_url() -> str:
    """Return the address of a server that nobody runs."""
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{listening.getsockname()[1]}/v1"


@pytest.mark.parametrize(
    "command", [("ablate", "my_experiment:experiment"), ("run", "demo", "--out", "runs")]
)
@pytest.mark.usefixtures("module")
def test_command_when_no_model_server_listens_then_says_so_once_and_asks_nothing(
    command: tuple[str, ...],
) -> None:
    """One line names the address and what to do; nothing is written, and nothing is tried again."""
    url = closed_url()
    done = langgraft(*command, "--model", "openai:qwen3", "--base-url", url)
    assert done.code == 2
    assert f"the model server {url} cannot be reached" in done.err
    assert "--base-url" in done.err
    assert done.err.count(url) == 1
    assert not Path("runs").exists()


def test_command_when_a_model_is_named_then_it_is_asked_in_place_of_the_experiments(
    module: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The preview has its price, and says what a run would still miss; the address goes along."""
    monkeypatch.setenv("OPENAI_API_KEY", "")
    named = ("ablate", f"{module}:experiment", "--preview", "--model", "openai:gpt-4.1-mini")
    done = langgraft(*named)
    assert done.code == 0, done.err
    assert re.search(r"at most [\d.]+ dollars", done.out)
    assert "a run is not possible yet" in done.out
    local = langgraft(*named, "--base-url", closed_url())
    assert "a run is not possible yet" not in local.out  # a preview asks no server


async def test_ablation_when_a_loop_is_running_then_works_all_the_same(tmp_path: Path) -> None:
    """As in a notebook."""
    assert tried(tmp_path, replicates=1).verdicts == {MEMORY: "cannot tell"}


class Mute(GenericFakeChatModel):
    """A model that does not say what it uses."""


def test_verdict_when_most_attempts_fail_says_what_was_raised(tmp_path: Path) -> None:
    """As a model without tools does: not a number alone, but the error itself, and exit code 1."""

    def build(memory: Any) -> Any:
        def agent(text: str) -> str:
            msg = "this model has no tools"
            raise NotImplementedError(msg)

        return agent

    found = tried(tmp_path, build=build, model=None)
    (told,) = [line for line in found.lines() if line.startswith("Agent's own errors: ")]
    assert told.endswith("Most often: NotImplementedError: this model has no tools")
    assert found.exit_code == 1


def test_tokens_when_the_agents_own_model_tells_none_are_a_dash(tmp_path: Path) -> None:
    """Nothing was counted, which is not nothing sent."""

    def build(memory: Any) -> Any:
        return Mute(messages=iter([AIMessage("7")] * 99))

    found = tried(tmp_path, build=build, model=None)
    for row in rows_of(found.analysis):
        assert row[-2:] == ("\N{EN DASH}",) * 2
