"""Where code that a model wrote runs: limits, results, and the places that hold it.

    from langgraft.environments.sandboxes import DockerSandbox, Job, Limits, PythonProgram

    with DockerSandbox(limits=Limits(seconds=600)) as sandbox:
        result = sandbox.run(Job(PythonProgram(code), collect=("submission.csv",)))
        with sandbox.kernel(preload=["pandas"]) as kernel:
            print(kernel.execute("pandas.__version__").stdout)

    sandbox     what runs, what it may use, what came of it; the `Sandbox` and `Kernel` protocols
    docker/     `DockerSandbox`: a fresh hardened container for each program
    subprocess  `SubprocessSandbox`: isolates nothing; only by its name
    cached      `CachedSandbox`: over another, runs each program once
    requests    what callers hand in, checked; and writing what came out into a folder

How it works: `inside/` is what runs in a place, first of all its supervisor; `places` greets it,
`conversation` talks to it, and trusts nothing it says; `supervised` makes that a sandbox, with kernels,
which retries what is not the program's doing.

Scores never come from in here: whatever a program prints or writes is its own word, and is
graded outside.
"""

from typing import TYPE_CHECKING

from langgraft._core.lazy import lazy_exports

if TYPE_CHECKING:
    from langgraft._core.errors import SandboxFailureError, SandboxUnavailableError
    from langgraft.environments.sandboxes.cached import CachedSandbox
    from langgraft.environments.sandboxes.docker import DockerSandbox
    from langgraft.environments.sandboxes.requests import write_files
    from langgraft.environments.sandboxes.sandbox import (
        Command,
        ExecutionResult,
        Frame,
        Job,
        Kernel,
        Limits,
        ProgramError,
        PythonProgram,
        Sandbox,
    )
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

_MODULES = {
    "cached": ("CachedSandbox",),
    "docker": ("DockerSandbox",),
    "sandbox": (
        *("Command", "ExecutionResult", "Frame", "Job", "Limits", "ProgramError", "PythonProgram"),
        "Kernel",
        "Sandbox",
    ),
    "requests": ("write_files",),
    "subprocess": ("SubprocessSandbox",),
}
__getattr__, __dir__ = lazy_exports(
    __name__,
    {
        "SandboxFailureError": "langgraft._core.errors",
        "SandboxUnavailableError": "langgraft._core.errors",
        **{name: f"{__name__}.{module}" for module, names in _MODULES.items() for name in names},
    },
)
