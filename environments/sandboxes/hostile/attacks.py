"""All attacks, how each must end, and how the ending of a program is named."""

import time
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass, fields
from importlib import resources
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from langgraft._core.errors import InputError
from langgraft.environments.sandboxes.hostile.surroundings import Surroundings
from langgraft.environments.sandboxes.requests import write_files
from langgraft.environments.sandboxes.sandbox import (
    MIB,
    Command,
    ExecutionResult,
    Job,
    Kernel,
    Limits,
    PythonProgram,
    Sandbox,
)

LIMITS: Final = Limits(
    seconds=20,
    memory=256 * MIB,
    cpus=1,
    pids=64,
    workspace=32 * MIB,
    tmp=16 * MIB,
    shm=16 * MIB,
    file=24 * MIB,
    open_files=256,
    output=8000,
    flood=128 * MIB,
    collected=8 * MIB,
    collected_files=50,
)
"""Small, so that every one is reached within a second or two."""

ON_DISK: Final = LIMITS.model_copy(update={"workspace_on": "disk", "workspace": 64 * MIB})
"""Of attacks on a workspace that lies on disk."""

SUCCEEDED: Final = "GOT "
"""How a program begins a line about something that should have failed."""

Check = Callable[[ExecutionResult], list[str]]
"""Says what is wrong with a result, a line each."""
Move = Callable[[Sandbox], ExecutionResult]
"""Carries an attack out in place of running its program; raises `NotContainedError`."""


class NotContainedError(Exception):
    """An attack in which the host took part reached something."""


def nothing_more(_: ExecutionResult) -> list[str]:
    """Ask for nothing beyond what holds for every attack."""
    return []


@dataclass(frozen=True, slots=True)
class Attack:
    """One attack."""

    name: str
    tries: str
    """In a few words, for the table."""
    endings: frozenset[str]
    """How it may be classified, as `ending` names it."""
    program: str = ""
    """Its file in `programs`, or a function of `overload.py`; empty where `move` does it all."""
    seconds: float | None = None
    """Wall clock, in place of the battery's."""
    collect: tuple[str, ...] = ()
    check: Check = nothing_more
    local: bool = False
    """Whether it needs an engine that sees this machine's folders."""
    move: Move | None = None
    on_disk: bool = False
    """Whether the workspace it is carried out in lies on disk."""

    def carry_out(self, sandbox: Sandbox, surroundings: Surroundings) -> ExecutionResult:
        """Do it, and return what came of it.

        Raises:
            NotContainedError: It reached something.
        """
        if self.move is not None:
            return self.move(sandbox)
        job = Job(
            PythonProgram(source(self.program), name=f"{self.program.removesuffix('.py')}.py"),
            files={"attempts.py": source("attempts.py").encode()},
            collect=self.collect,
            seconds=self.seconds,
            environment=surroundings.told,
        )
        return sandbox.run(job)


def source(name: str) -> str:
    """Return a hostile program: a file of `programs`, or `overload.py` with a call of a function."""
    folder = resources.files("langgraft.environments.sandboxes.hostile.programs")
    if name.endswith(".py"):
        return folder.joinpath(name).read_text(encoding="utf-8")
    return f"{source('overload.py')}\n\n{name}()\n"


def ending(result: ExecutionResult) -> str:
    """Name how a program ended, in a word or two.

    `timeout`, `oom, exit 137`, `ValueError`, `SIGSEGV`, `exit 0`, or `alive` for a kernel.
    """
    if result.stopped is not None:
        return result.stopped
    if result.oom:
        return f"oom, exit {result.exit_code}"
    # A program can forge what its interpreter tells of an exception: a name at least it must be.
    if result.error is not None and result.error.type.replace(".", "_").isidentifier():
        return result.error.type.rpartition(".")[2]
    if result.signal is not None:
        return result.signal
    return "alive" if result.exit_code is None else f"exit {result.exit_code}"


_PLAIN: Final = "print(6 * 7)"
_LEAVING: Final = ("../x", "/tmp/x", "a/../../x", "..", "a/..", "/", "", "a\0b")  # noqa: S108
_TAKEN: Final = 25
"""How often a file is collected while it is swapped."""

_LAY_LINKS: Final = """
import os
os.mkdir('/tmp/elsewhere')
os.symlink('/tmp/elsewhere', 'data')
os.symlink('/tmp/elsewhere/leaf', 'leaf.csv')
os.mkfifo('pipe.csv')
os.mkdir('folder.csv')
"""
_LOOK: Final = "import os; print(os.listdir('/tmp/elsewhere'))"
_SWAP: Final = """
import os, threading
def swap():
    while True:
        for name, target in (('file.csv', '/etc/passwd'), ('folder', '/etc')):
            try:
                os.symlink(target, 'next')
                os.rename('next', name)
                os.unlink(name)
                if name == 'folder':
                    os.mkdir(name)
                    open('folder/passwd', 'w').write('ok')
                    os.unlink('folder/passwd')
                    os.rmdir(name)
                else:
                    open('next', 'w').write('ok')
                    os.rename('next', name)
            except OSError:
                pass
threading.Thread(target=swap, daemon=True).start()
"""


_TAKE_PROCESSES: Final = """
import os, time
while True:
    try:
        if os.fork() == 0:
            time.sleep(1000)
    except OSError:
        break
"""
_CANNOT_RUN: Final = 126
"""What a shell's exit code is where a command is there and cannot be started."""


def forge_in_kernel(sandbox: Sandbox) -> ExecutionResult:
    """Write frames to all that a kernel has open, then use it."""
    code = source("forged_frames.py").replace("os._exit(7)", "")
    with closing(sandbox.kernel()) as kernel:
        # What it says of itself, the kernel lost included, is its own word.
        kernel.execute(code, seconds=5)
        return _plain(kernel)


def take_all_processes(sandbox: Sandbox) -> ExecutionResult:
    """Leave no room for a further process in a kernel, then have a command run beside it."""
    with closing(sandbox.kernel()) as kernel:
        kernel.execute(_TAKE_PROCESSES)
        result = kernel.run(Command(["true"]))
        if result.exit_code != _CANNOT_RUN:
            raise NotContainedError(
                f"a command ran where there was no room for it: {result.exit_code}"
            )
        return _plain(kernel)


def put_outside(sandbox: Sandbox) -> ExecutionResult:
    """Put files under names that leave the workspace: each must be refused."""
    for name in _LEAVING:
        try:
            sandbox.run(Job(PythonProgram(_PLAIN), files={name: b"hostile"}))
        except InputError:
            continue
        raise NotContainedError(f"a file was put under the name {name!r}")
    return sandbox.run(Job(PythonProgram(_PLAIN)))


def put_through_links(sandbox: Sandbox) -> ExecutionResult:
    """Put files where a cell has laid links: nothing may be written through them."""
    with closing(sandbox.kernel()) as kernel:
        kernel.execute(_LAY_LINKS)
        for name in ("data/x.csv", "data/deep/x.csv", "leaf.csv", "pipe.csv", "folder.csv"):
            try:
                kernel.put({name: b"hostile"})
            except InputError:
                continue
        result = kernel.execute(_LOOK)
        if result.stdout != "[]\n":
            raise NotContainedError(
                f"a file was put through a link: {result.stdout or result.stderr!r}"
            )
        return _plain(kernel)


def swap_while_collected(sandbox: Sandbox) -> ExecutionResult:
    """Collect what a thread of a cell swaps for links all the time."""
    with closing(sandbox.kernel()) as kernel:
        kernel.execute(_SWAP)
        for _ in range(_TAKEN):
            files, _left_out = kernel.collect(("file.csv", "folder/*", "**"))
            wrong = [name for name, content in files.items() if content not in (b"ok", b"")]
            if wrong:
                raise NotContainedError(f"{wrong[0]} was collected through a link")
        return _plain(kernel)


_WRITE_ON = "i=0; while true; do head -c 4000000 /dev/zero > left$i; i=$((i+1)); sleep 0.02; done"
_WRITING: Final = f"import subprocess; subprocess.Popen(['sh', '-c', {_WRITE_ON!r}])"
_SIZE: Final = "import os; print(sum(os.stat(n).st_blocks for n in os.listdir('.')) * 512)"


def write_between_cells(sandbox: Sandbox) -> ExecutionResult:
    """Leave a process that writes to the workspace, and wait: it must be ended without being asked."""
    with closing(sandbox.kernel()) as kernel:
        kernel.execute(_WRITING)
        for _ in range(24):  # a busy machine may take its time to write so much
            time.sleep(5)
            lost = kernel.execute(_SIZE)
            if lost.stopped or int(lost.stdout) > 10 * sandbox.limits.workspace:
                break
        if lost.stopped != "disk" or not lost.kernel_lost:
            raise NotContainedError(f"the next cell was told {ending(lost)!r} of it")
        held = int(kernel.execute(_SIZE).stdout)
        time.sleep(1)
        if held != int(kernel.execute(_SIZE).stdout) or held > 10 * sandbox.limits.workspace:
            raise NotContainedError(f"{held} bytes were written, or it went on writing")
        return _plain(kernel)


def _plain(kernel: Kernel) -> ExecutionResult:
    result = kernel.execute(_PLAIN)
    if result.stdout != "42\n":
        raise NotContainedError(
            f"the kernel was of no use afterwards: {result.stdout or result.stderr!r}"
        )
    return result


_PRINTED: Final = 100_000_000
_MESSAGE: Final = 1 << 20
_CLAIMED: Final = {"score", "medal", "valid", "valid_submission", "is_valid", "any_medal"}


def _tried_all(result: ExecutionResult) -> list[str]:
    if "all tried" in result.stdout.splitlines():
        return []
    return [f"the program did not get to its end: {(result.stderr or result.stdout)[-200:]!r}"]


def _bounded(result: ExecutionResult) -> list[str]:
    # What is cut is told in a line of its own.
    most = LIMITS.output + 200
    sizes = {"output": len(result.stdout), "errors": len(result.stderr)}
    return [f"{size} characters of {name} kept" for name, size in sizes.items() if size > most]


def _all_printed(result: ExecutionResult) -> list[str]:
    counted = [] if result.printed[0] == _PRINTED else [f"{result.printed[0]} bytes counted"]
    return counted + _bounded(result)


def _late_file(result: ExecutionResult) -> list[str]:
    return [] if "late.txt" in result.files else ["its file was not collected"]


def _only_files(result: ExecutionResult) -> list[str]:
    """Also write what came out to a folder in which a link lies in the way."""
    wrong = [name for name in result.files if name.startswith(("/", "../")) or "/../" in name]
    links = ["out", "canary", "process", "alias", "pipe", "socket"]
    wrong += [f"{name}.csv" for name in links if f"{name}.csv" in result.files]
    wrong += [name for name in result.files if name.startswith(("folder/", "up/", "inner/root/"))]
    if "ok.csv" not in result.files:
        wrong.append("ok.csv (not)")
    return [f"collected: {name!r}" for name in wrong] + _written_outside(result)


def _written_outside(result: ExecutionResult) -> list[str]:
    with TemporaryDirectory() as kept:
        elsewhere, target = Path(kept, "elsewhere"), Path(kept, "target")
        elsewhere.mkdir()
        target.mkdir()
        for name in ("ok.csv", "inner"):
            (target / name).symlink_to(elsewhere / name)
        with suppress(InputError, OSError):
            write_files(result.files, target)
        return [f"written through a link: {path.name}" for path in elsewhere.iterdir()]


def _no_score(result: ExecutionResult) -> list[str]:
    believed = _CLAIMED & {field.name for field in fields(result)}
    said = [] if "score" in result.stdout else ["what it printed is lost"]
    return [f"its claim became {name}" for name in sorted(believed)] + said


def _small_error(result: ExecutionResult) -> list[str]:
    size = 0 if result.error is None else len(result.error.message)
    return [f"a message of {size} characters"] if size > _MESSAGE else []


def _only_gone(result: ExecutionResult) -> list[str]:
    return [] if result.stdout == "gone\n" else [f"it printed {result.stdout[:100]!r}"]


def _ends(*how: str) -> frozenset[str]:
    return frozenset(how)


_DONE: Final = _ends("exit 0")
_ALIVE: Final = _ends("alive")

ATTACKS: Final[tuple[Attack, ...]] = (
    Attack("fork bomb", "processes without end", _ends("timeout"), "fork_bomb", seconds=1.5),
    Attack("memory bomb", "memory without end", _ends("oom, exit 137"), "memory_bomb"),
    Attack(
        "child's memory bomb",
        "memory without end in a child of a program that ends well",
        _ends("oom, exit 0"),
        "child_memory_bomb",
    ),
    Attack("disk filler", "fill every folder there is", _DONE, "fill_disk.py", check=_tried_all),
    Attack(
        "many files",
        "files without end, each empty",
        _ends("exit 0", "oom, exit 137"),
        "many_files",
    ),
    Attack("large file", "one file beyond the limit", _ends("OSError"), "large_file"),
    Attack("open files", "open files without end", _ends("OSError"), "open_files"),
    Attack(
        "endless output", "print without end", _ends("output"), "endless_output", check=_bounded
    ),
    Attack(
        "binary output",
        "print 100 MB that are no text",
        _DONE,
        "binary_output",
        check=_all_printed,
    ),
    Attack("processor hog", "compute for ever", _ends("timeout"), "processor_hog", seconds=1),
    Attack(
        "ignored signals",
        "stay, deaf to every signal",
        _ends("timeout"),
        "ignored_signals",
        seconds=5,
        collect=("late.txt",),
        check=_late_file,
    ),
    Attack("daemons", "outlive the run", _DONE, "daemons.py", check=_only_gone),
    Attack("crash", "crash the interpreter", _ends("SIGSEGV"), "crash"),
    Attack("kill everybody", "kill all processes", _ends("SIGKILL"), "kill_everybody"),
    Attack(
        "huge error",
        "raise with 60 MB of text",
        _ends("Forged"),
        "huge_error",
        check=_small_error,
    ),
    Attack(
        "endless error",
        "raise what never says what it is",
        _ends("timeout"),
        "endless_error",
        seconds=1,
    ),
    Attack(
        "network",
        "reach this machine, a name, raw sockets",
        _DONE,
        "network.py",
        check=_tried_all,
    ),
    Attack(
        "host files",
        "read the host's files and disks, ask its engine",
        _DONE,
        "host_files.py",
        check=_tried_all,
    ),
    Attack(
        "privileges",
        "become root; mount, make devices, load modules, raise limits",
        _DONE,
        "privileges.py",
        check=_tried_all,
    ),
    Attack(
        "first process",
        "kill, stop, trace, read or cripple the supervisor",
        _DONE,
        "first_process.py",
        check=_tried_all,
    ),
    Attack("forged frames", "speak like the supervisor", _ends("exit 7"), "forged_frames.py"),
    Attack(
        "signal flood",
        "keep the supervisor busy with signals",
        _ends("timeout"),
        "signal_flood",
        seconds=1,
    ),
    Attack(
        "descriptor flood",
        "write without end to what was inherited",
        _ends("timeout"),
        "descriptor_flood",
        seconds=1,
    ),
    Attack(
        "forged frames in a kernel",
        "speak like the supervisor, from a cell",
        _ALIVE,
        move=forge_in_kernel,
    ),
    Attack(
        "no process left",
        "leave the supervisor no room to start anything",
        _ALIVE,
        move=take_all_processes,
    ),
    Attack(
        "forged scores",
        "claim a score, print a grading report",
        _DONE,
        "forged_scores.py",
        collect=("*.csv", "*.json", "**/*.json"),
        check=_no_score,
    ),
    Attack(
        "inputs", "change what can only be read", _DONE, "inputs.py", check=_tried_all, local=True
    ),
    Attack("poison", "leave traps for later programs", _DONE, "poison.py"),
    Attack(
        "links taken out",
        "have links, pipes and odd names collected",
        _DONE,
        "links.py",
        collect=("**", "out.csv", "folder/passwd", "up/etc/passwd", "inner/root/etc/passwd"),
        check=_only_files,
    ),
    *(
        Attack(f"disk: {name}", tries, _ends("disk"), program, seconds=60, on_disk=True)
        for name, tries, program in (
            ("filler", "fill the disk that the workspace lies on", "fill_workspace"),
            ("deleted files", "hold files on it that are in no folder", "deleted_files"),
            ("closed folder", "fill it where nobody may look", "closed_folder"),
            ("nested folders", "fill it a thousand folders deep", "nested_folders"),
            ("empty files", "use up its files", "empty_files"),
        )
    ),
    Attack(
        "disk: left writing",
        "fill it from a process that a cell left",
        _ALIVE,
        move=write_between_cells,
        on_disk=True,
    ),
    Attack("names put in", "leave the workspace by a file's name", _DONE, move=put_outside),
    Attack(
        "links put through",
        "lay links where files are put next",
        _ALIVE,
        move=put_through_links,
    ),
    Attack(
        "swapped while taken out",
        "swap a file for a link while it is collected",
        _ALIVE,
        move=swap_while_collected,
    ),
)
