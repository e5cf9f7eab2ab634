"""Who is to blame: what ends in a result, what is tried again, and what is an error at once."""

import asyncio
import signal
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_cases import python
from scripted_places import ScriptedSandbox, done, ended, saying, well

from langgraft._core.errors import InputError, SandboxFailureError, SandboxUnavailableError
from langgraft.environments.sandboxes import SubprocessSandbox, conversation, supervised
from langgraft.environments.sandboxes.cached import CachedSandbox
from langgraft.environments.sandboxes.inside.frames import BEAT, STDOUT, pack
from langgraft.environments.sandboxes.places import (
    Channel,
    ChannelClosedError,
    Place,
    receive_frame,
)
from langgraft.environments.sandboxes.sandbox import Command, Job, Program, PythonProgram

DEAD = saying(b"")
JOB = python("1")


@pytest.fixture(autouse=True)
def _impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Wait less for what will not come."""
    monkeypatch.setattr(supervised, "_PAUSE", 0.0)
    monkeypatch.setattr(conversation, "GRACE", 0.2)


@pytest.mark.parametrize(
    "failing",
    [
        [DEAD],
        [saying(b"garbage, and plenty of it")],
        [saying(pack(STDOUT, b"x") + ended(stdout_printed=1, exit_code="0") + done())],
        OSError("no connection"),
        ChannelClosedError("gone"),
        TimeoutError("no answer"),
        SandboxFailureError("the engine does not start it"),
    ],
)
def test_run_when_a_place_fails_then_a_fresh_one_takes_over(
    failing: object, caplog: pytest.LogCaptureFixture
) -> None:
    """What is not the program's doing shows in the log and not in the result."""
    with ScriptedSandbox(failing, [well("hello")]) as sandbox:  # type: ignore[arg-type]
        assert sandbox.run(JOB).stdout == "hello"
        assert all(place.destroyed for place in sandbox.opened)
        assert sandbox._places == set()
    assert "attempt 1 of 3" in caplog.text


def test_run_when_every_place_fails_then_it_says_why_and_what_to_do() -> None:
    """A sandbox that goes on failing is an error of the infrastructure."""
    with (
        ScriptedSandbox([DEAD], [DEAD], retries=1) as sandbox,
        pytest.raises(SandboxFailureError, match="failed 2 times, last because no such container"),
    ):
        sandbox.run(JOB)
    assert all(place.destroyed for place in sandbox.opened)


def test_run_when_there_is_no_engine_then_it_is_not_tried_again() -> None:
    """Without an engine trying again is of no use; one that was there may come back."""
    with (
        ScriptedSandbox(SandboxUnavailableError("no engine"), [well("x")]) as sandbox,
        pytest.raises(SandboxUnavailableError, match="no engine"),
    ):
        sandbox.run(JOB)
    with ScriptedSandbox([DEAD], SandboxUnavailableError("away"), [well("back")]) as sandbox:
        assert sandbox.run(JOB).stdout == "back"


def test_run_when_memory_takes_the_whole_place_then_it_is_the_programs_result() -> None:
    """The engine's word that memory ran out is believed, and what was printed is kept."""
    with ScriptedSandbox([saying(pack(STDOUT, b"so far"))], oom=True) as sandbox:
        result = sandbox.run(JOB)
    assert (result.oom, result.exit_code, result.signal) == (True, 137, "SIGKILL")
    assert (result.stdout, result.stopped) == ("so far", None)


def test_run_when_memory_ends_the_place_while_collecting_then_the_result_stays() -> None:
    """A program whose files fill the memory is told its own end."""
    script = saying(ended(exit_code=1, duration=2.0))
    with ScriptedSandbox([script], oom=True) as sandbox:
        result = sandbox.run(JOB)
    assert (result.oom, result.exit_code, result.duration) == (True, 1, 2.0)
    assert "before its files were collected" in result.left_out["."]


def test_run_when_memory_takes_the_place_before_any_code_ran_then_the_files_are_to_blame(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No program did it, and another place would end in the same way."""

    def gone(_conversation: object, _files: object) -> None:
        raise ChannelClosedError("gone")

    monkeypatch.setattr(conversation.Conversation, "put", gone)
    with ScriptedSandbox([DEAD], oom=True) as sandbox:
        with pytest.raises(InputError, match="before any code ran"):
            sandbox.run(JOB)
        assert len(sandbox.opened) == 1


def test_run_when_a_supervisor_does_not_end_a_program_then_we_do() -> None:
    """Past the deadline and some grace the place is destroyed, and the program timed out."""

    def hang(end: socket.socket) -> None:
        while end.recv(1 << 16):
            pass

    with ScriptedSandbox([hang]) as sandbox:
        result = sandbox.run(Job(Command("true"), seconds=0.1))
    assert result.timed_out
    assert sandbox.opened[0].destroyed


@pytest.mark.parametrize(
    "job",
    [
        Job(Command("")),
        Job(Command([])),
        Job(Command(["a\0"])),
        Job(PythonProgram("1", name="../x.py")),
        Job(PythonProgram("1"), files={"program.py": b""}),
        Job(PythonProgram("1"), seconds=0),
        Job(PythonProgram("1"), seconds=float("nan")),
        Job(PythonProgram("1"), seed=-1),
        Job(PythonProgram("1"), environment={"A=B": "1"}),
        Job(PythonProgram("1"), collect=("../*",)),
    ],
)
def test_run_when_a_job_cannot_be_had_then_nothing_is_opened(job: Job) -> None:
    """Mistakes in a job are told before anything starts."""
    with ScriptedSandbox() as sandbox, pytest.raises(InputError):
        sandbox.run(job)


@pytest.mark.parametrize(
    "job",
    [
        "print(1)",
        PythonProgram("1"),
        Job("print(1)"),  # type: ignore[arg-type]
        Job(PythonProgram(None)),  # type: ignore[arg-type]
        Job(PythonProgram(b"1")),  # type: ignore[arg-type]
        Job(PythonProgram("1", name=None)),  # type: ignore[arg-type]
        Job(PythonProgram("1", arguments=(1,))),  # type: ignore[arg-type]
        Job(PythonProgram("1", arguments="-v")),  # type: ignore[arg-type]
        Job(Command(None)),  # type: ignore[arg-type]
        Job(Command(["ls", 1])),  # type: ignore[list-item]
        Job(PythonProgram("1"), files=["a"]),  # type: ignore[arg-type]
        Job(PythonProgram("1"), files={"a": "text"}),  # type: ignore[dict-item]
        Job(PythonProgram("1"), files={1: b""}),  # type: ignore[dict-item]
        Job(PythonProgram("1"), collect=(1,)),  # type: ignore[arg-type]
        Job(PythonProgram("1"), collect=None),  # type: ignore[arg-type]
        Job(PythonProgram("1"), seconds="3"),  # type: ignore[arg-type]
        Job(PythonProgram("1"), seed=1.5),  # type: ignore[arg-type]
        Job(PythonProgram("1"), seed=True),
        Job(PythonProgram("1"), environment={"A": 1}),  # type: ignore[dict-item]
    ],
)
def test_run_when_something_of_a_job_is_of_a_wrong_type_then_it_says_what_to_give(
    job: Job, tmp_path: Path
) -> None:
    """What a type checker would find is told readably to whoever runs none; cached or not."""
    with ScriptedSandbox() as sandbox, pytest.raises(InputError, match="give"):
        sandbox.run(job)
    with (
        CachedSandbox(ScriptedSandbox(), tmp_path / "kept.db") as cached,
        pytest.raises(InputError, match="give"),
    ):
        cached.run(job)


def test_run_when_we_look_late_then_what_came_in_time_counts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A process that was stopped for a while, as by Ctrl-Z, blames no program for it."""

    def late(channel: Channel, *, timeout: float) -> tuple[int, bytes]:
        time.sleep(0.2)
        return receive_frame(channel, timeout=timeout)

    monkeypatch.setattr(conversation, "receive_frame", late)
    monkeypatch.setattr(conversation, "GRACE", 60.0)
    with ScriptedSandbox([well("hello")]) as sandbox:
        monkeypatch.setattr(conversation._Deadline, "__init__", _due_already)
        result = sandbox.run(Job(Command("true")))
    assert (result.stdout, result.stopped) == ("hello", None)


def _due_already(deadline: "conversation._Deadline", _seconds: float) -> None:
    deadline._due, deadline._end = time.monotonic(), None


def test_run_when_a_supervisor_talks_for_ever_then_it_is_overdue_all_the_same() -> None:
    """Every wait has an end, also for one that never falls silent."""

    def talk(end: socket.socket) -> None:
        while True:
            end.sendall(pack(BEAT) * 1000)

    with ScriptedSandbox([talk]) as sandbox:
        assert sandbox.run(Job(Command("true"), seconds=0.1)).timed_out


async def test_aexecute_when_cancelled_while_others_run_then_it_does_not_wait_for_them() -> None:
    """Who gives up on a cell is not held by the one before it."""
    begun, go = threading.Event(), threading.Event()

    def slow(end: socket.socket) -> None:
        begun.set()
        assert go.wait(60)
        well("slow")(end)

    with ScriptedSandbox([slow, well("next")]) as sandbox, sandbox.kernel() as kernel:
        first = asyncio.create_task(kernel.aexecute("1"))
        assert await asyncio.to_thread(begun.wait, 60)
        second = asyncio.create_task(kernel.aexecute("2"))
        await asyncio.sleep(0.05)
        second.cancel()
        with pytest.raises(asyncio.CancelledError):
            await second
        assert not first.done()
        go.set()
        assert (await first).stdout == "slow"
        assert kernel.execute("3").stdout == "next"


def test_sandbox_when_limits_are_none_of_ours_then_it_says_what_to_give() -> None:
    """A mapping is no limits, and fewer than no retries cannot be had."""
    with pytest.raises(InputError, match="give `Limits`"):
        SubprocessSandbox({"seconds": 3})  # type: ignore[arg-type]
    with pytest.raises(InputError, match="retries is -1"):
        SubprocessSandbox(retries=-1)


def test_kernel_when_something_is_of_a_wrong_type_then_it_says_so_and_lives_on() -> None:
    """Mistakes of the caller reach no kernel."""
    with ScriptedSandbox([well("1")]) as sandbox, sandbox.kernel() as kernel:
        with pytest.raises(InputError, match="code is NoneType: give str"):
            kernel.execute(None)  # type: ignore[arg-type]
        with pytest.raises(InputError, match="give Command"):
            kernel.run(PythonProgram("1"))  # type: ignore[arg-type]
        with pytest.raises(InputError, match="preload"):
            sandbox.kernel(preload="json")
        assert kernel.execute("1").stdout == "1"


@pytest.mark.parametrize("program", [PythonProgram("x = '" + "é" * 10 + "'"), Command(["ls"])])
def test_run_when_a_job_is_fine_then_it_is_asked_for(program: Program) -> None:
    """Programs of both kinds reach a supervisor."""
    with ScriptedSandbox([well("")]) as sandbox:
        assert sandbox.run(Job(program)).ok


def test_execute_when_memory_takes_the_whole_place_then_the_next_cell_has_a_new_one() -> None:
    """State is lost, which is said, and the kernel can be used again."""
    with ScriptedSandbox([DEAD], [well("new")], oom=True) as sandbox:
        kernel = sandbox.kernel()
        result = kernel.execute("x = bytearray(10**12)")
        assert (result.oom, result.kernel_lost) == (True, True)
        assert "files of its workspace" in result.stderr
        assert kernel.execute("1").stdout == "new"
        assert sandbox.opened[0].destroyed
        kernel.close()


def test_execute_when_the_place_dies_then_it_is_not_the_cells_doing() -> None:
    """Without the engine's word for it a death is infrastructure's, and state is not made up."""
    with ScriptedSandbox([well("1"), DEAD]) as sandbox:
        kernel = sandbox.kernel()
        assert kernel.execute("1").stdout == "1"
        for _ in range(2):
            with pytest.raises(SandboxFailureError, match="no such container"):
                kernel.execute("1")


@pytest.fixture
def interruptible() -> Iterator[None]:
    """Raise `KeyboardInterrupt` on SIGINT, also where a shell had it ignored from the start."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures("interruptible")
def test_execute_when_waiting_is_interrupted_then_the_kernel_answers_nothing_else() -> None:
    """After Ctrl-C the next cell does not get the result of the one before."""

    def interrupted(_end: socket.socket) -> None:
        signal.raise_signal(signal.SIGINT)

    with ScriptedSandbox([interrupted]) as sandbox:
        kernel = sandbox.kernel()
        with pytest.raises(KeyboardInterrupt):
            kernel.execute("import time; time.sleep(60)")
        with pytest.raises(SandboxFailureError, match="interrupted: open another"):
            kernel.execute("1")
        assert sandbox.opened[0].destroyed


def test_close_when_a_lost_kernel_is_being_reopened_then_nothing_stays_open() -> None:
    """A kernel closed at an odd moment holds no place."""
    with ScriptedSandbox([DEAD], [well("new")], oom=True) as sandbox:
        kernel = sandbox.kernel()
        assert kernel.execute("x = bytearray(10**12)").kernel_lost
        reopen = kernel._open_place

        def closed_meanwhile() -> tuple[Place, conversation.Conversation]:
            opened = reopen()
            kernel.close()
            return opened

        kernel._open_place = closed_meanwhile
        with pytest.raises(SandboxFailureError, match="closed"):
            kernel.execute("1")
        assert sandbox._places == set()


def test_kernel_when_a_place_fails_while_opening_then_a_fresh_one_takes_over() -> None:
    """Opening a kernel is tried again as a run is."""
    with ScriptedSandbox(OSError("no"), [well("1")]) as sandbox, sandbox.kernel() as kernel:
        assert kernel.execute("1").stdout == "1"
