"""`SubprocessSandbox`: what every sandbox does, and what it leaves behind: nothing."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sandbox_cases import ExceptionCases, SandboxCases, finished, python, writing_daemon

from langgraft._core.errors import InputError, SandboxFailureError, SandboxUnavailableError
from langgraft.environments.sandboxes import Command, Job, PythonProgram, SubprocessSandbox
from langgraft.environments.sandboxes.sandbox import MIB, Limits
from langgraft.environments.sandboxes.supervised import SupervisedSandbox

pytestmark = pytest.mark.matrix  # the suite of sandboxes

SMALL = Limits(
    seconds=300,
    cpus=1.5,
    output=8000,
    flood=20 * MIB,
    file=16 * MIB,
    collected=MIB,
    collected_files=50,
    open_files=256,
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SupervisedSandbox]:
    """Return a sandbox that most tests use."""
    with SubprocessSandbox(SMALL) as sandbox:
        yield sandbox


class TestSubprocessSandbox(SandboxCases, ExceptionCases):
    """What every sandbox does."""


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return the folder that sandboxes make theirs in."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


def alive(marker: Path) -> bool:
    """Return whether something still writes into a file."""
    before = marker.stat().st_size
    time.sleep(0.3)
    return marker.stat().st_size > before


def gone(folder: Path) -> bool:
    """Return whether a folder is empty, or becomes so while it is waited for."""
    until = time.monotonic() + 120
    while any(folder.iterdir()) and time.monotonic() < until:
        time.sleep(0.05)
    return not any(folder.iterdir())


def test_run_when_it_is_over_then_neither_folder_nor_process_is_left(
    folder: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Whatever a program leaves, its folder is removed and its daemons are killed."""
    marker = tmp_path_factory.mktemp("marker") / "alive"
    marker.touch()
    code = (
        f"{writing_daemon(str(marker))}"
        "os.mkdir('closed'); open('closed/x', 'w'); os.chmod('closed', 0)\n"
        "for i in range(1200):\n    os.mkdir('d'); os.chdir('d')\n"
        "time.sleep(0.2)"
    )
    with SubprocessSandbox(SMALL) as sandbox:
        assert sandbox.run(Job(PythonProgram(code))).ok
        assert not any(folder.iterdir())
        assert not alive(marker)


def test_run_when_this_process_is_killed_then_nothing_is_left(tmp_path: Path) -> None:
    """`kill -9` of whoever runs programs ends them, and removes their folder."""
    marker, folder = tmp_path / "alive", tmp_path / "folder"
    folder.mkdir()
    code = f"{writing_daemon(str(marker))}time.sleep(3600)"
    host = (
        "from langgraft.environments.sandboxes import *\n"
        f"SubprocessSandbox().run(Job(PythonProgram({code!r}), seconds=3600))"
    )
    process = subprocess.Popen([sys.executable, "-c", host], env={"TMPDIR": str(folder)})
    while not marker.exists():
        assert process.poll() is None
        time.sleep(0.05)
    assert any(folder.iterdir())
    process.send_signal(signal.SIGKILL)
    process.wait()
    assert gone(folder)
    assert not alive(marker)


def test_run_when_a_program_kills_its_supervisor_then_it_is_tried_again_and_told(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """A supervisor that dies is never a result; here, where nothing is isolated, it can be."""
    code = "import os\nos.kill(os.getppid(), 9)\nimport time\ntime.sleep(1)"
    with SubprocessSandbox(SMALL, retries=1) as sandbox:
        with pytest.raises(SandboxFailureError, match=r"failed 2 times.*ended with -9"):
            sandbox.run(python(code))
        assert "attempt 1 of 2" in caplog.text
        assert finished(sandbox.run(python("print(1)"))) == "1\n"
    assert not any(folder.iterdir())


def test_kernel_when_its_supervisor_is_killed_then_it_is_gone_for_good() -> None:
    """State that is lost is not made up for in silence."""
    with SubprocessSandbox(SMALL) as sandbox:
        kernel = sandbox.kernel()
        with pytest.raises(SandboxFailureError, match="open another"):
            kernel.execute("import os, time\nos.kill(os.getppid(), 9)\ntime.sleep(1)")
        with pytest.raises(SandboxFailureError, match="gone"):
            kernel.execute("1")


def test_close_when_something_runs_then_it_ends(folder: Path) -> None:
    """A closed sandbox holds nothing and runs nothing."""
    sandbox = SubprocessSandbox(SMALL)
    kernel = sandbox.kernel()
    sandbox.close()
    sandbox.close()
    assert not any(folder.iterdir())
    with pytest.raises(SandboxFailureError):
        kernel.execute("1")
    with pytest.raises(SandboxUnavailableError, match="closed"):
        sandbox.run(Job(Command("true")))


def test_run_when_inputs_are_given_then_they_are_in_the_workspace(tmp_path: Path) -> None:
    """Inputs are found by name; they are never collected."""
    (tmp_path / "train.csv").write_text("a,b\n")
    with SubprocessSandbox(SMALL, inputs={"input": tmp_path}) as sandbox:
        result = sandbox.run(Job(Command("cat input/train.csv"), collect=("**",)))
        assert (result.stdout, result.files) == ("a,b\n", {})
        assert result.left_out == {"input": "a link"}
    with pytest.raises(InputError, match="not there"):
        SubprocessSandbox(inputs={"input": str(tmp_path / "absent")})


def test_run_when_paths_are_printed_then_the_random_name_is_not_told() -> None:
    """Two runs of one program are told alike."""
    code = "import os\nprint(os.getcwd(), os.path.abspath('x'))\nopen(os.path.abspath('absent'))"
    with SubprocessSandbox(SMALL) as sandbox:
        first, second = (sandbox.run(python(code)) for _ in range(2))
    assert first.stdout == second.stdout == ". x\n"
    assert first.stderr == second.stderr
    assert first.error == second.error
    assert first.error is not None
    assert first.error.frames[0].file == "program.py"


def test_run_when_the_interpreter_is_not_there_then_it_says_what_to_give() -> None:
    """What cannot be started is the caller's mistake."""
    with (
        SubprocessSandbox(SMALL, python="/no/python") as sandbox,
        pytest.raises(SandboxUnavailableError, match="give `python`"),
    ):
        sandbox.run(python("1"))


def test_digest_when_limits_or_inputs_differ_then_it_differs(tmp_path: Path) -> None:
    """What decides a result is in the digest."""
    digests = {
        SubprocessSandbox().digest,
        SubprocessSandbox(SMALL).digest,
        SubprocessSandbox(inputs={"a": tmp_path}).digest,
    }
    assert len(digests) == 3
    assert SubprocessSandbox(SMALL).digest in digests


@pytest.mark.parametrize("version", ["3.8", "3.9", "3.12", "3.13"])
def test_run_when_the_interpreter_is_another_then_it_works_as_well(version: str) -> None:
    """Supervisor, launcher and kernel run on Python 3.8 and later."""
    found = _interpreter(version)
    with SubprocessSandbox(SMALL, python=found) as sandbox:
        code = "import sys\nprint(sys.version_info[:2])\n1/0"
        result = sandbox.run(Job(PythonProgram(code), collect=("[z-a]", "[", "prog*")))
        assert list(result.files) == ["program.py"]
        assert result.stdout == f"({version.replace('.', ', ')})\n"
        assert result.error is not None
        with sandbox.kernel() as kernel:
            assert finished(kernel.execute("x = 2\nx")) == "2\n"
            assert kernel.execute("f = lambda: 1/0\nf()").error is not None


def _interpreter(version: str) -> str:
    with contextlib.suppress(OSError):
        for name in (f"python{version}", *_pyenv(version)):
            ran = subprocess.run([name, "-c", "import ctypes"], capture_output=True, check=False)
            if ran.returncode == 0:
                return name
    pytest.skip(f"no python{version} on this machine")


def _pyenv(version: str) -> list[str]:
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    return [str(path) for path in root.glob(f"versions/{version}.*/bin/python{version}")]
