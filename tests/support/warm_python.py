"""Processes of their own that have the usual libraries loaded already: a server forks them.

Imports are most of what a command costs a test. All else is as in any process: it has its own
signals, environment and folder, and can be killed. Only the seed of its hashes is its server's: where
bytes have to be the same whatever that is, one side of the comparison is made by somebody else.
"""

import atexit
import gc
import importlib
import io
import multiprocessing.process
import os
import runpy
import signal
import sys
import types
import warnings
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, partial
from multiprocessing import forkserver, get_context
from multiprocessing.connection import Connection
from pathlib import Path
from subprocess import TimeoutExpired
from tempfile import TemporaryFile
from typing import Any, Final, NamedTuple, Self
from unittest.mock import patch

LOADED: Final = (
    *("chromadb", "langchain.agents", "langgraph.prebuilt", "scipy.stats", "matplotlib.pyplot"),
    *("langchain_openai", "aiohttp.web", "jinja2", "pandas", "pytest"),
    "langgraft.benchmarks.continual.report",
    "langgraft.benchmarks.continual.figures",
    "langgraft.benchmarks.mle.figures",
    "langgraft.benchmarks.harness.models",
    "langgraft.benchmarks.simulated.server",
    "langgraft.benchmarks.simulated.babyai",
    "langgraft.cli.running",
    "langgraft.cli.serving",
    "langgraft.environments.babyai",
)
TESTING: Final = """import sys, pytest
loaded = ["-W", "ignore::pytest.PytestAssertRewriteWarning"]
sys.exit(pytest.main([*loaded, *{arguments!r}]))
"""
"""Code of what `python -m pytest` does with its arguments."""
_TESTS: Final = Path(__file__).resolve().parents[1]
_SERVES: Final = "LANGGRAFT_TESTS_SERVE"
CONTEXT: Final = get_context("forkserver")
"""Its processes are forked by the server, once that is begun."""


class Ended(NamedTuple):
    """How a process ended."""

    returncode: int
    stdout: str
    stderr: str


@dataclass(frozen=True)
class _Place:
    folder: str
    environment: Mapping[str, str]
    apart: bool


def begin(process: multiprocessing.process.BaseProcess) -> None:
    """Start a process of `CONTEXT` whose end nobody asks for but who has it.

    Each start asks it of all processes that the module lists. Of two threads that ask at once, one is told 255.
    """
    process.start()
    vars(multiprocessing.process)["_children"].discard(process)


class Warm:
    """A process that calls a function of a module; used as a `subprocess.Popen` of texts is.

    What it says on standard error is in a file: nobody has to read it for it to go on.

    Args:
        work: The function. What it returns, or the `SystemExit` it raises, is the exit code.
        arguments: What it is called with.
        folder: Where it begins; `None`: where this process is.
        environment: All of it; `None`: that of this process.
        apart: Whether it leads a session of its own.
    """

    def __init__(
        self,
        work: Callable[..., object],
        *arguments: object,
        folder: Path | None = None,
        environment: Mapping[str, str] | None = None,
        apart: bool = False,
    ) -> None:
        begin_server()
        there = dict(os.environ if environment is None else environment)
        place = _Place(str(folder or Path.cwd()), there, apart)
        printed, out = CONTEXT.Pipe(duplex=False)
        self._said = TemporaryFile("w+", encoding="utf-8", errors="replace")  # noqa: SIM115
        said = Connection(os.dup(self._said.fileno()), readable=False)
        self._process = CONTEXT.Process(target=_work, args=(out, said, place, work, arguments))
        begin(self._process)
        out.close()
        said.close()
        self.stdout: io.TextIOWrapper = os.fdopen(os.dup(printed.fileno()), encoding="utf-8")
        printed.close()

    @property
    def pid(self) -> int:
        """Its number."""
        assert self._process.pid is not None
        return self._process.pid

    @property
    def returncode(self) -> int | None:
        """How it ended, as of `subprocess.Popen`; `None` while it runs."""
        return self._process.exitcode

    def poll(self) -> int | None:
        """Return how it ended; `None` while it runs."""
        return self._process.exitcode

    def wait(self, timeout: float | None = None) -> int:
        """Wait until it has ended.

        Raises:
            TimeoutExpired: It still runs.
        """
        self._process.join(timeout)
        code = self._process.exitcode
        if code is None:
            raise TimeoutExpired("a warm process", timeout or 0.0)
        return code

    def communicate(self) -> tuple[str, str]:
        """Wait until it has ended, and return what it printed since, and all it said of errors."""
        printed = self.stdout.read()
        self.wait()
        self._said.seek(0)
        return printed, self._said.read()

    def ended(self) -> Ended:
        """Wait until it has ended; return how."""
        printed, said = self.communicate()
        return Ended(self.wait(), printed, said)

    def send_signal(self, number: int) -> None:
        """Send it a signal, if it still runs."""
        if self.poll() is None:
            with suppress(ProcessLookupError):  # its server has seen it end, and not told yet
                os.kill(self.pid, number)

    def kill(self) -> None:
        """End it."""
        self.send_signal(signal.SIGKILL)

    def terminate(self) -> None:
        """Have it end."""
        self.send_signal(signal.SIGTERM)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is not None:
            self.kill()
        self.stdout.close()
        self.wait()
        self._said.close()


def started(
    *words: object,
    folder: Path | None = None,
    environment: Mapping[str, str] | None = None,
    apart: bool = False,
    figures: bool = False,
    cold: bool = False,
) -> Warm:
    """Begin a `langgraft` command.

    Args:
        words: The command and what it is given.
        folder: As of `Warm`.
        environment: As of `Warm`.
        apart: As of `Warm`.
        figures: Whether its reports have figures: drawing takes most of their time.
        cold: Whether processes that it starts in turn (`--processes`) load everything themselves.
    """
    told = tuple(map(str, words))
    place: Any = {"folder": folder, "environment": environment, "apart": apart}
    return Warm(_command, told, figures, cold, **place)


def ran(*words: object, folder: Path | None = None, figures: bool = False) -> Ended:
    """Run a `langgraft` command to its end."""
    with started(*words, folder=folder, figures=figures) as process:
        return process.ended()


def ran_script(script: Path, *words: object, environment: Mapping[str, str] | None = None) -> Ended:
    """Run a program to its end, which may fork."""
    with started_script(script, *words, environment=environment) as process:
        return process.ended()


def started_script(
    script: Path, *words: object, environment: Mapping[str, str] | None = None
) -> Warm:
    """Begin a program."""
    return Warm(_script, str(script), tuple(map(str, words)), environment=environment)


def started_code(code: str, *words: object, environment: Mapping[str, str] | None = None) -> Warm:
    """Begin what `python -c` would be given."""
    return Warm(_execute, code, None, tuple(map(str, words)), environment=environment)


def run_code(
    code: str,
    folder: Path,
    script: Path | None = None,
    environment: Mapping[str, str] | None = None,
) -> str:
    """Run code in a folder to a good end; return what it printed.

    Args:
        code: What `python -c` would be given.
        folder: Where.
        script: The file whose code it is, if it is one.
        environment: As of `Warm`.
    """
    name = None if script is None else str(script)
    with Warm(_execute, code, name, (), folder=folder, environment=environment) as process:
        done = process.ended()
    assert done.returncode == 0, done.stderr
    return done.stdout


class _Forking:
    """The part of a context of `multiprocessing` that starts the processes of a plan."""

    Pipe = staticmethod(CONTEXT.Pipe)

    @staticmethod
    def Process(  # noqa: N802 - its name there
        *, target: Callable[..., object], args: Sequence[object], **how: Any
    ) -> multiprocessing.process.BaseProcess:
        """Make one that has the environment of this process, and the server's standard streams."""
        return CONTEXT.Process(target=_there, args=(dict(os.environ), target, args), **how)


def forking(_method: str) -> Any:
    """Return what starts processes of a plan with everything loaded, for `multiprocessing.get_context`."""
    return _Forking


def _there(
    environment: Mapping[str, str], work: Callable[..., object], arguments: Sequence[object]
) -> None:
    os.environ.clear()
    os.environ.update(environment)
    work(*arguments)


@cache
def begin_server() -> None:
    """Begin the server, if that was not done: it loads what processes need, and forks them.

    They have LangGraph's strict serializer, which is chosen as it is loaded.
    """
    paths = [str(_TESTS / "support"), *filter(None, [os.environ.get("PYTHONPATH")])]
    told = {_SERVES: "1", "PYTHONPATH": os.pathsep.join(paths), "LANGGRAPH_STRICT_MSGPACK": "true"}
    with patch.dict(os.environ, told):
        CONTEXT.set_forkserver_preload([__name__])
        forkserver.ensure_running()


# In the server ----------------------------------------------------------------------------


def _load() -> None:
    import langgraft  # noqa: PLC0415 - in the server only

    gc.disable()  # looking through what is imported again and again takes as long
    for load in (
        *(partial(importlib.import_module, name) for name in LOADED),
        *(partial(getattr, langgraft, name) for name in langgraft.__all__),
    ):
        with suppress(ImportError):  # an extra that is not installed here
            load()
    with suppress(ImportError):
        _prepare()
    gc.freeze()
    gc.enable()


def _prepare() -> None:
    """Do once what takes each command longest before its first item, and in its report.

    The code that decides results is parsed, levels are registered and templates compiled; each is
    cached by what it is made from.
    """
    from jinja2 import TemplateError  # noqa: PLC0415 - in the server only

    from langgraft.benchmarks.harness.plans import source_files  # noqa: PLC0415
    from langgraft.benchmarks.reporting.pages import environment  # noqa: PLC0415
    from langgraft.environments.babyai.environment import gymnasium  # noqa: PLC0415

    source_files(name for name in LOADED if name.startswith("langgraft."))
    gymnasium()
    pages = environment("langgraft.benchmarks.continual")
    for name in pages.list_templates():
        with suppress(TemplateError):  # one that other reports have filters for
            pages.get_template(name)


# In its processes -------------------------------------------------------------------------


def _work(
    out: Connection,
    said: Connection,
    place: _Place,
    work: Callable[..., object],
    arguments: Sequence[object],
) -> None:
    """Be what was asked for, and call the function."""
    if place.apart:
        os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for there, number in ((nothing, 0), (out.fileno(), 1), (said.fileno(), 2)):
        os.dup2(there, number)
    for each in (out, said):
        each.close()
    # Those of the server remember whether they could be sought in.
    sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    errors = "backslashreplace"
    sys.stderr = open(2, "w", 1, encoding="utf-8", errors=errors, closefd=False)  # noqa: SIM115
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.environ.clear()
    os.environ.update(place.environment)
    os.chdir(place.folder)
    multiprocessing.process.ORIGINAL_DIR = place.folder  # type: ignore[attr-defined]
    try:
        raise SystemExit(work(*arguments))
    finally:
        atexit._run_exitfuncs()  # multiprocessing leaves that out


def _command(words: Sequence[str], figures: bool, cold: bool) -> None:
    from langgraft.__main__ import main  # noqa: PLC0415 - in its own process only

    if not cold:
        from langgraft.benchmarks.harness import processes  # noqa: PLC0415

        server: Any = forkserver._forkserver
        server.ensure_running = lambda: None  # it is the one that forked this process
        vars(processes)["get_context"] = forking
    for study in () if figures else ("continual", "mle"):
        drawing: Any = importlib.import_module(f"langgraft.benchmarks.{study}.figures")
        drawing.draw = lambda *_: {}
    _alone(str(Path.cwd()))
    sys.argv = ["langgraft", *words]
    main()


def _script(script: str, words: Sequence[str]) -> None:
    sys.argv = [script, *words]
    runpy.run_path(script, run_name="__main__")


def _execute(code: str, script: str | None, words: Sequence[str]) -> None:
    _alone(str(Path(script).parent) if script else "")
    sys.argv = [script or "-c", *words]
    module = types.ModuleType("__main__")
    if script:
        module.__file__ = script
    sys.modules["__main__"] = module
    warnings.filterwarnings("error", category=UserWarning, module="__main__")
    exec(compile(code, script or "<string>", "exec"), vars(module))


def _alone(first: str) -> None:
    """Find modules where a program would, not where tests do."""
    told = filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))
    others = [path for path in sys.path if not Path(path).is_relative_to(_TESTS)]
    sys.path[:] = [first, *told, *others]


if os.environ.pop(_SERVES, None):
    _load()
