"""Attacks in which the host takes part: it puts files in, and takes files out of a kernel."""

from contextlib import closing
from typing import Final

from langgraft._core.errors import InputError
from langgraft.environments.sandboxes.hostile.attack import NotContainedError, source
from langgraft.environments.sandboxes.programs import Command, Job, PythonProgram
from langgraft.environments.sandboxes.results import ExecutionResult
from langgraft.environments.sandboxes.sandbox import Kernel, Sandbox

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
            msg = f"a command ran where there was no room for it: {result.exit_code}"
            raise NotContainedError(msg)
        return _plain(kernel)


def put_outside(sandbox: Sandbox) -> ExecutionResult:
    """Put files under names that leave the workspace: each must be refused."""
    for name in _LEAVING:
        try:
            sandbox.run(Job(PythonProgram(_PLAIN), files={name: b"hostile"}))
        except InputError:
            continue
        msg = f"a file was put under the name {name!r}"
        raise NotContainedError(msg)
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
            msg = f"a file was put through a link: {result.stdout or result.stderr!r}"
            raise NotContainedError(msg)
        return _plain(kernel)


def swap_while_collected(sandbox: Sandbox) -> ExecutionResult:
    """Collect what a thread of a cell swaps for links all the time."""
    with closing(sandbox.kernel()) as kernel:
        kernel.execute(_SWAP)
        for _ in range(_TAKEN):
            files, _left_out = kernel.collect(("file.csv", "folder/*", "**"))
            wrong = [name for name, content in files.items() if content not in (b"ok", b"")]
            if wrong:
                msg = f"{wrong[0]} was collected through a link"
                raise NotContainedError(msg)
        return _plain(kernel)


def _plain(kernel: Kernel) -> ExecutionResult:
    result = kernel.execute(_PLAIN)
    if result.stdout != "42\n":
        msg = f"the kernel was of no use afterwards: {result.stdout or result.stderr!r}"
        raise NotContainedError(msg)
    return result
