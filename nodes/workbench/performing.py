"""What comes of an action: what its performer found, and the observation it makes.

A performer does an action in a live workspace. It has to be a pure function of the action and
what the workspace holds, as it is done again where a workspace has to be built anew.
"""

import glob
import json
import re
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from signal import Signals
from typing import Any, Final, Literal, TypeAlias, TypeVar

from langgraft._core.effects import Call
from langgraft._core.errors import InputError
from langgraft.environments.competitions.attempts import reported_metric
from langgraft.environments.sandboxes import result_text
from langgraft.environments.sandboxes.requests import check_name
from langgraft.environments.sandboxes.sandbox import Command, ExecutionResult, Kernel, Limits
from langgraft.memory.model import strip_block
from langgraft.nodes.program_text import LONGEST_MESSAGE, raised_by, without_memory
from langgraft.nodes.replies import encodable
from langgraft.nodes.tracebacks import parse_traceback
from langgraft.nodes.workbench.job_program import MARK
from langgraft.nodes.workbench.log import Action, Observation

T = TypeVar("T")

KernelCall: TypeAlias = Callable[[Kernel, float], Call]
"""Something that is asked of a kernel, whose executions have so many seconds."""
KernelProgram: TypeAlias = Generator[KernelCall, Any, T]
"""Yields calls, and is sent what the kernel answered; what it refuses is raised at the `yield`."""

_OF_CELL: Final = 30.0
"""Seconds that a cell has beyond those that it waits for a job."""
LONGEST_TEXT: Final = 64_000
"""Most characters kept of what came of an action: head and tail."""
LONGEST_PROGRAM: Final = 400_000
"""Most bytes of a script that is kept as the program that ran."""
LONGEST_NAME: Final = 200
"""Most characters kept of an exception's class."""

_SCRIPT: Final = re.compile(
    r"(?:^|[\s;&|(])python3?(?:\s+-[uBO]+)*\s+"
    r"""("[^"\n]+\.py"|'[^'\n]+\.py'|[^\s;&|<>()'"-][^\s;&|<>()'"]*\.py)(?=$|[\s;&|)<>])""",
    re.MULTILINE,
)
_HERE: Final = re.compile(
    r"(?:^|[\s;&|(])python3?(?:\s+-[uBO]+)*(?:\s+-)?\s*<<-?\s*(['\"]?)(\w{1,200})\1[^\n]*\n",
    re.MULTILINE,
)
_CELL: Final = re.compile(r"<cell \d+>")
_ENDED: Final = re.compile(r"(\bbash: line \d+:) +\d+ (?=[A-Z])")
"""What a shell says of a command that a signal ended: `bash: line 1:   13 Killed   …`."""


@dataclass(frozen=True, slots=True)
class Performed:
    """What came of an action."""

    text: str = ""
    """What to tell of it; where something ran, in front of what the sandbox tells."""
    failed: bool = False
    """It could not be done; where something ran, the result says it."""
    result: ExecutionResult | None = None
    """Of what ran, if something did."""
    program: str = ""
    """The Python that ran."""
    running: bool = False
    """A command was started or looked at that goes on."""
    submission: Literal["valid", "invalid", "absent"] | None = None
    """What was found where a submission was looked at."""


Performer: TypeAlias = Callable[[Action], KernelProgram[Performed]]


def run_cell(code: str) -> KernelProgram[ExecutionResult]:
    """Run a cell."""
    result: ExecutionResult = yield lambda kernel, seconds: Call(
        kernel.execute, kernel.aexecute, code, seconds=seconds
    )
    return result


def run_command(
    command: Command, *, collect: tuple[str, ...] = ()
) -> KernelProgram[ExecutionResult]:
    """Run a command beside the kernel, and take files out afterwards."""
    result: ExecutionResult = yield lambda kernel, seconds: Call(
        kernel.run, kernel.arun, command, seconds=seconds, collect=collect
    )
    return result


def take_out(*patterns: str) -> KernelProgram[tuple[dict[str, bytes], dict[str, str]]]:
    """Take files out: those collected, and those left out with the reason."""
    collected: tuple[dict[str, bytes], dict[str, str]] = yield lambda kernel, _: Call(
        kernel.collect, kernel.acollect, patterns
    )
    return collected


def put_in(files: Mapping[str, bytes]) -> KernelProgram[None]:
    """Write files into the workspace."""
    yield lambda kernel, _: Call(kernel.put, kernel.aput, files)


def read_file(path: str) -> KernelProgram[bytes | str]:
    """Read a file of the workspace: its content, or as text why it cannot be read."""
    try:
        files, left_out = yield from take_out(glob.escape(path))
    except InputError as error:
        return str(error)
    if path in files:
        return files[path]
    return left_out.get(path, "there is no such file")


def perform_cell(code: str) -> KernelProgram[Performed]:
    """Run a cell."""
    result = yield from run_cell(code)
    return Performed(result=result, program=code)


def perform_command(line: str) -> KernelProgram[Performed]:
    """Run a command line with bash, and note the program where it runs a Python script."""
    script, program = script_of(line), here_program(line)
    before = (yield from _source(script)) if script else ""
    collect = (glob.escape(script),) if script else ()
    result = yield from run_command(Command(["bash", "-c", line]), collect=collect)
    # A command may first write the script that it runs.
    after = result.files.get(script)
    return Performed(
        result=result, program=program or (before if after is None else _program(after))
    )


def perform_job(ask: Mapping[str, Any], *, wait: float) -> KernelProgram[Performed]:
    """Run a command that goes on where it takes long, or look at one that does.

    It is a process of the interpreter, and ends with it. What it prints is told as it comes, standard
    error among the rest.

    Args:
        ask: `line`, of a command to start; or `job`, its number, with `input` and `interrupt`.
        wait: Seconds to wait for its end.
    """
    result: ExecutionResult = yield lambda kernel, seconds: Call(
        kernel.execute,
        kernel.aexecute,
        _job_cell({**ask, "wait": min(wait, seconds), "limit": seconds}),
        seconds=seconds + _OF_CELL,
    )
    before, mark, written = result.stdout.rpartition(MARK)
    if not mark:  # the interpreter was lost, or broken by what ran in it
        return Performed(result=result)
    told = json.loads(written)
    if "unknown" in told:
        there = ", ".join(map(str, told["unknown"])) or "none"
        return Performed(f"Not done: there is no such job. Running: {there}.", failed=True)
    printed = told["printed"]
    if not told["ended"]:
        number = told["job"]
        text = f"{printed.rstrip()}\n\n[Job {number} goes on: see what comes of it with `job`.]"
        return Performed(text.strip(), running=True)
    if ask.get("interrupt"):
        return Performed(f"{printed.rstrip()}\n\n[Job {told['job']} was interrupted.]".strip())
    script = script_of(told["line"])
    program = here_program(told["line"]) or ((yield from _source(script)) if script else "")
    ended = replace(
        result,
        stdout=f"{before}{printed}",
        duration=float(told["seconds"]),
        exit_code=_as_in_a_shell(told["code"]),
        signal=None if told["timed_out"] else _signal(told["code"]),
        stopped="timeout" if told["timed_out"] else None,
    )
    return Performed(result=ended, program=program)


def _job_cell(ask: Mapping[str, Any]) -> str:
    source = files("langgraft.nodes.workbench").joinpath("job_program.py").read_text("utf-8")
    names = f'{{"ASK": {dict(ask)!r}, "__name__": "jobs"}}'
    return f'exec(compile({source!r}, "jobs", "exec"), {names})'


def _as_in_a_shell(code: int) -> int:
    return code if code >= 0 else 128 - code


def _signal(code: int) -> str | None:
    try:
        return Signals(-code).name if code < 0 else None
    except ValueError:
        return f"signal {-code}"


def perform_script(script: str, *arguments: str) -> KernelProgram[Performed]:
    """Run a Python script of the workspace."""
    program = yield from _source(script)
    result = yield from run_command(Command(["python3", "-u", script, *arguments]))
    return Performed(result=result, program=program)


def script_of(line: str) -> str:
    """Return the Python script that a command line runs, the last one; nothing where it runs none."""
    found = _SCRIPT.findall(line)
    name = found[-1].strip("\"'").removeprefix("./") if found else ""
    try:
        return check_name(name) if name else ""
    except InputError:  # not in the workspace
        return ""


def here_program(line: str) -> str:
    """Return the program that a command line hands to Python as its input, or nothing."""
    begun = _HERE.search(line)
    if begun is None:
        return ""
    ended = re.compile(rf"^[ \t]*{begun[2]}[ \t]*$", re.MULTILINE).search(line, begun.end())
    return "" if ended is None else line[begun.end() : ended.start()].removesuffix("\n")


def observed(
    performed: Performed, action: Action, *, limits: Limits, seconds: float, metric: str = ""
) -> Observation:
    """Make the observation of an action that was performed; it follows the action in the log.

    Args:
        performed: What came of it.
        action: What was done.
        limits: Of the sandbox.
        seconds: Wall clock it was given.
        metric: The competition's name of it, for reading the one that was reported.
    """
    base = {
        "id": action.id + 1,
        "cause": action.id,
        "program": encodable(performed.program),
        "running": performed.running,
        "submission": performed.submission,
    }
    result = performed.result
    if result is None:
        return Observation(**base, text=kept_text(performed.text), failed=performed.failed)
    cleaned = _without_numbers(without_memory(result))
    report = result_text.told(cleaned, limits, seconds=seconds, exact=False, room=LONGEST_TEXT)
    exception, message = _exception(cleaned, seconds)
    return Observation(
        **base,
        text=kept_text(f"{performed.text}\n\n{report}" if performed.text else report),
        failed=performed.failed or not result.ok,
        executed=True,
        exit_code=result.exit_code,
        exception=exception,
        message=message,
        timed_out=result.timed_out,
        allowed=seconds if result.timed_out else None,
        oom=result.oom,
        lost=_lost(result),
        metric=reported_metric(cleaned, metric).value if metric else None,
    )


def kept_text(text: str) -> str:
    """Return a text as it is kept: without memory, bounded, encodable."""
    return result_text.trimmed(encodable(strip_block(text)), LONGEST_TEXT)


def _without_numbers(result: ExecutionResult) -> ExecutionResult:
    """Take the numbers of cells and of ended processes out, before anything is cut.

    A cell's number says how many ran in this very kernel before it, a process's how many the
    workspace had: both differ between a run that was resumed and one that was not.
    """
    error = result.error
    if error is not None:
        error = replace(error, message=_unnumbered(error.message))
    stdout, stderr = _unnumbered(result.stdout), _unnumbered(result.stderr)
    return replace(result, stdout=stdout, stderr=stderr, error=error)


def _unnumbered(text: str) -> str:
    return _ENDED.sub(r"\1 ", _CELL.sub("<cell>", text))


def _exception(result: ExecutionResult, seconds: float) -> tuple[str, str]:
    name, message = raised_by(result, seconds)
    if name is None and not result.ok:
        raised = parse_traceback(result.stderr) or parse_traceback(result.stdout)
        if raised is not None:
            name, message = raised.name, raised.message[:LONGEST_MESSAGE]
    return encodable(name or "")[:LONGEST_NAME], encodable(message or "")


def _lost(result: ExecutionResult) -> Literal["", "kernel", "workspace"]:
    if result.workspace_lost:
        return "workspace"
    return "kernel" if result.kernel_lost else ""


def _source(script: str) -> KernelProgram[str]:
    found = yield from read_file(script)
    return _program(found) if isinstance(found, bytes) else ""


def _program(content: bytes) -> str:
    if len(content) > LONGEST_PROGRAM:
        return ""
    return encodable(content.decode("utf-8", "replace"))
