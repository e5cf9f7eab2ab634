"""The battery notices what is not contained: each kind of harm, done on purpose."""

import ast
import re
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib import resources
from types import SimpleNamespace
from typing import Any, cast

import pytest
import requests

from langgraft._core.errors import SandboxFailureError, SandboxUnavailableError
from langgraft.environments.sandboxes.hostile.attacks import (
    ATTACKS,
    Attack,
    NotContainedError,
    ending,
    source,
)
from langgraft.environments.sandboxes.hostile.battery import Battery, _running
from langgraft.environments.sandboxes.hostile.surroundings import Surroundings
from langgraft.environments.sandboxes.sandbox import (
    ExecutionResult,
    Job,
    ProgramError,
    PythonProgram,
)

PLAIN = ExecutionResult(0, "42\n", "", 0.1)
QUIET = Attack("quiet", "nothing", frozenset({"exit 0"}), program="crash")


class LeakySandbox:
    """A sandbox in which the attack does what a test wants; other programs are plain ones."""

    def __init__(self, attack: Callable[[], ExecutionResult], plain: ExecutionResult) -> None:
        self.attack = attack
        self.plain = plain

    def run(self, job: Job) -> ExecutionResult:
        """Run a program."""
        assert isinstance(job.program, PythonProgram)
        return self.attack() if job.program.name == "crash.py" else self.plain


@pytest.fixture
def surroundings() -> Iterator[Surroundings]:
    """Return surroundings that are watched."""
    with Surroundings() as opened:
        yield opened


def problems(
    surroundings: Surroundings,
    attack: Callable[[], ExecutionResult],
    *,
    plain: ExecutionResult = PLAIN,
    running: int = 0,
) -> str:
    """Carry an attack out in the leaky sandbox; return what the battery finds, as one text."""
    sandbox: Any = LeakySandbox(attack, plain)
    battery = Battery(sandbox, surroundings, lambda: running)
    return "\n".join(battery.carry_out(QUIET).problems)


def test_battery_when_nothing_happened_finds_nothing(surroundings: Surroundings) -> None:
    """It raises no false alarm."""
    assert problems(surroundings, lambda: PLAIN) == ""


def test_battery_when_an_attack_is_told_as_something_else_finds_it(
    surroundings: Surroundings,
) -> None:
    """A memory bomb that is told as a plain exit would teach an agent the wrong lesson."""
    found = problems(surroundings, lambda: replace(PLAIN, exit_code=137, signal="SIGKILL"))
    assert "SIGKILL" in found


def test_battery_when_an_attempt_succeeded_finds_it(surroundings: Surroundings) -> None:
    """Programs tell what they reached, and are believed."""
    found = problems(surroundings, lambda: replace(PLAIN, stdout="GOT become root: None\n"))
    assert "become root" in found


@pytest.mark.parametrize("where", ["stdout", "stderr", "files", "left_out"])
def test_battery_when_a_file_of_the_host_came_out_finds_it(
    surroundings: Surroundings, where: str
) -> None:
    """The canary's content is looked for in everything that comes back."""
    secret = surroundings.secret
    leaks: dict[str, Any] = {
        "stdout": secret,
        "stderr": secret,
        "files": {"a": b"x" + secret.encode()},
        "left_out": {"a": secret},
    }
    found = problems(surroundings, lambda: replace(PLAIN, **{where: leaks[where]}))
    assert "file of the host was read" in found


def test_battery_when_files_of_the_host_changed_finds_them(surroundings: Surroundings) -> None:
    """Canary and inputs must be as they were."""

    def attack() -> ExecutionResult:
        surroundings.canary.write_text("owned")
        (surroundings.inputs / "train.csv").unlink()
        (surroundings.inputs / "new.csv").touch()
        return PLAIN

    found = problems(surroundings, attack)
    assert all(name in found for name in ("canary.txt", "train.csv", "new.csv"))


@pytest.mark.parametrize("kind", [socket.SOCK_STREAM, socket.SOCK_DGRAM])
def test_battery_when_the_listener_was_reached_finds_it(
    surroundings: Surroundings, kind: socket.SocketKind
) -> None:
    """Both TCP and UDP are listened for, on every address."""

    def attack() -> ExecutionResult:
        with socket.socket(socket.AF_INET, kind) as sender:
            sender.connect(("127.0.0.1", surroundings.port))
            sender.send(b"x")
            while not surroundings.contacts:
                pass
        return PLAIN

    assert "listener was reached" in problems(surroundings, attack)


def test_battery_when_a_process_of_the_host_ended_finds_it(surroundings: Surroundings) -> None:
    """Killing everybody must not reach the host."""

    def attack() -> ExecutionResult:
        surroundings._process.kill()
        surroundings._process.wait()
        return PLAIN

    assert "process of the host" in problems(surroundings, attack)


def test_battery_when_something_runs_on_finds_it(
    surroundings: Surroundings, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A container that still runs a program after the run is told."""
    monkeypatch.setattr("langgraft.environments.sandboxes.hostile.battery._SETTLING", 0.0)
    assert "1 containers" in problems(surroundings, lambda: PLAIN, running=1)


def test_battery_when_the_engine_is_blamed_finds_it(surroundings: Surroundings) -> None:
    """What a program did must never be told as a failure of the engine."""

    def attack() -> ExecutionResult:
        raise SandboxFailureError("exit code 137")

    assert "failure of the engine" in problems(surroundings, attack)


def test_battery_when_the_next_program_is_poisoned_finds_it(surroundings: Surroundings) -> None:
    """The plain program afterwards must print what it prints, and nothing else."""
    poisoned = replace(PLAIN, stdout="POISONED\n42\n")
    assert "POISONED" in problems(surroundings, lambda: PLAIN, plain=poisoned)


def test_battery_when_the_engine_goes_away_says_so_in_a_line() -> None:
    """Who checks an engine that stops meanwhile is told that, without a traceback."""

    def refuse(**_: object) -> None:
        raise requests.ConnectionError("refused")

    gone: Any = SimpleNamespace(api=SimpleNamespace(containers=refuse))
    with pytest.raises(SandboxUnavailableError, match="no Docker engine answers"):
        _running(gone)


def test_battery_when_the_host_was_tricked_says_how(surroundings: Surroundings) -> None:
    """Attacks in which the host takes part tell what they reached."""

    def trick(_: Any) -> ExecutionResult:
        raise NotContainedError("a file was put through a link")

    sandbox: Any = LeakySandbox(lambda: PLAIN, PLAIN)
    battery = Battery(sandbox, surroundings, lambda: 0)
    outcome = battery.carry_out(replace(QUIET, move=trick))
    assert outcome.problems == ("a file was put through a link",)
    assert not outcome.contained


@pytest.mark.parametrize(
    ("result", "name"),
    [
        (PLAIN, "exit 0"),
        (replace(PLAIN, exit_code=None), "alive"),
        (replace(PLAIN, exit_code=139, signal="SIGSEGV"), "SIGSEGV"),
        (replace(PLAIN, exit_code=1, error=ProgramError("a.b.Own", "")), "Own"),
        (replace(PLAIN, exit_code=7, error=ProgramError("", "forged")), "exit 7"),
        (replace(PLAIN, exit_code=137, oom=True, signal="SIGKILL"), "oom, exit 137"),
        (replace(PLAIN, exit_code=137, oom=True, stopped="timeout"), "timeout"),
    ],
)
def test_ending_when_named_tells_the_cause_before_its_effects(
    result: ExecutionResult, name: str
) -> None:
    """A signal sent by the sandbox is told as why it was sent."""
    assert ending(result) == name


def test_programs_when_listed_are_each_used_by_an_attack_and_say_what_they_try() -> None:
    """No program lies there that nothing runs, and none without a word on what it does."""
    folder = resources.files("langgraft.environments.sandboxes.hostile.programs")
    there = {path.name for path in folder.iterdir() if path.name.endswith(".py")}
    short = [
        each for each in ast.parse(source("overload.py")).body if isinstance(each, ast.FunctionDef)
    ]
    used = {attack.program for attack in ATTACKS if attack.program}
    whole = there - {"__init__.py", "attempts.py", "overload.py"}
    assert whole | {each.name for each in short} == used
    assert all(source(name).startswith('"""') for name in there)
    assert all(map(ast.get_docstring, short))


def test_program_when_it_is_a_short_one_is_called_in_a_file_of_its_name() -> None:
    """What runs is one function of `overload.py`, and tracebacks name it."""
    ran: list[PythonProgram] = []

    def run(job: Job) -> ExecutionResult:
        assert isinstance(job.program, PythonProgram)
        ran.append(job.program)
        return PLAIN

    attack = next(each for each in ATTACKS if each.program == "crash")
    attack.carry_out(cast("Any", SimpleNamespace(run=run)), cast("Any", SimpleNamespace(told={})))
    calls = [
        each.value.func.id
        for each in ast.parse(ran[0].code).body
        if isinstance(each, ast.Expr)
        and isinstance(each.value, ast.Call)
        and isinstance(each.value.func, ast.Name)
    ]
    assert (ran[0].name, calls) == ("crash.py", ["crash"])


def test_programs_when_read_name_no_address_outside_of_this_machine() -> None:
    """Nothing that runs in the battery can contact anybody, contained or not."""
    address = re.compile(r"\b\d{1,3}(?:\.\d{1,3}){3}\b|https?://|\.(?:com|org|net|io)\b")
    names = {attack.program for attack in ATTACKS if attack.program}
    assert not [name for name in names if address.search(source(name))]
