"""Where code that a model wrote runs: limits, results, and the places that hold it.

    from langgraft.environments.sandboxes import DockerSandbox, Job, Limits, PythonProgram

    with DockerSandbox(limits=Limits(seconds=600)) as sandbox:
        result = sandbox.run(Job(PythonProgram(code), collect=("submission.csv",)))
        with sandbox.kernel(preload=["pandas"]) as kernel:
            print(kernel.execute("pandas.__version__").stdout)

    limits      what a program may use
    programs    what runs: Python source or a command
    results     what came of it
    sandbox     the `Sandbox` and `Kernel` protocols
    docker/     `DockerSandbox`: a fresh hardened container for each program
    subprocess  `SubprocessSandbox`: isolates nothing; only by its name
    cached      `CachedSandbox`: over another, runs each program once
    files       names on their way in and out, and writing what came out into a folder

How it works: `inside/` is what runs in a place, first of all its supervisor; `handshake`, `wire`,
`answers` and `conversation` talk to it and trust nothing it says; `supervised` and `kernels` make that a
sandbox, which retries what is not the program's doing.

Scores never come from in here: whatever a program prints or writes is its own word, and is
graded outside.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft._core.errors import SandboxFailureError, SandboxUnavailableError
    from langgraft.environments.sandboxes.cached import CachedSandbox
    from langgraft.environments.sandboxes.docker import DockerSandbox
    from langgraft.environments.sandboxes.files import write_files
    from langgraft.environments.sandboxes.limits import Limits
    from langgraft.environments.sandboxes.programs import Command, Job, PythonProgram
    from langgraft.environments.sandboxes.results import ExecutionResult, Frame, ProgramError
    from langgraft.environments.sandboxes.sandbox import Kernel, Sandbox
    from langgraft.environments.sandboxes.subprocess import SubprocessSandbox

__all__ = [
    "CachedSandbox",
    "Command",
    "DockerSandbox",
    "ExecutionResult",
    "Frame",
    "Job",
    "Kernel",
    "Limits",
    "ProgramError",
    "PythonProgram",
    "Sandbox",
    "SandboxFailureError",
    "SandboxUnavailableError",
    "SubprocessSandbox",
    "write_files",
]

_HERE = "langgraft.environments.sandboxes"
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "CachedSandbox": f"{_HERE}.cached",
        "Command": f"{_HERE}.programs",
        "DockerSandbox": f"{_HERE}.docker",
        "ExecutionResult": f"{_HERE}.results",
        "Frame": f"{_HERE}.results",
        "Job": f"{_HERE}.programs",
        "Kernel": f"{_HERE}.sandbox",
        "Limits": f"{_HERE}.limits",
        "ProgramError": f"{_HERE}.results",
        "PythonProgram": f"{_HERE}.programs",
        "Sandbox": f"{_HERE}.sandbox",
        "SandboxFailureError": "langgraft._core.errors",
        "SandboxUnavailableError": "langgraft._core.errors",
        "SubprocessSandbox": f"{_HERE}.subprocess",
        "write_files": f"{_HERE}.files",
    },
)
