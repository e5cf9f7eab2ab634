"""What every run at a competition begins with: its name, the task as memory is told it, and its data.

All of it is checked before a model is paid.
"""

import uuid
from collections.abc import Mapping
from typing import Any, Final

from langgraft._core.effects import Call, Program
from langgraft._core.errors import InputError
from langgraft.environments.competitions.attempts import INPUT
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.programs import ExecutionResult, Job, PythonProgram
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.nodes.replies import encodable

LONGEST_INSTRUCTION: Final = 500
"""Most characters of the task as memory is asked about it, and keeps it with each episode."""


def domain(competition: Competition) -> str:
    """Return the domain of a competition's episodes."""
    return f"mle/{competition.id}"


def instruction(competition: Competition) -> str:
    """Return the task in a line: its name, its metric and how its description begins."""
    text = f"{competition.name} (metric: {competition.grader.name}). {competition.description}"
    line = " ".join(encodable(text).split())
    if len(line) <= LONGEST_INSTRUCTION:
        return line
    return line[: LONGEST_INSTRUCTION - 1].rstrip() + "…"


_LARGEST_SEED: Final = 2**63 - 1
_PROBE_SECONDS: Final = 60.0
_PROBE: Final = """\
import os, sys
print(os.path.getsize(sys.argv[1]))
"""


def checked_name(state: Mapping[str, Any], what: str) -> str:
    """Return the name of a run; one is made up where none is given.

    Args:
        state: What it was invoked with: `episode_id`, `seed`.
        what: What it is, for messages: `search`.

    Raises:
        InputError: The name, or the seed, is not possible.
    """
    name, seed = state.get("episode_id"), state.get("seed", 0)
    if name is not None and not (isinstance(name, str) and name and encodable(name) == name):
        msg = f"the {what}'s `episode_id` is a text that is not empty, got {name!r:.80}"
        raise InputError(msg)
    if not isinstance(seed, int) or isinstance(seed, bool):
        msg = f"the {what}'s `seed` is a whole number, got {seed!r:.80}"
        raise InputError(msg)
    if abs(seed) > _LARGEST_SEED:
        msg = f"the {what}'s `seed` has to fit into 64 bits, got {seed!r:.80}"
        raise InputError(msg)
    return name or uuid.uuid4().hex


def probed(competition: Competition, sandbox: Sandbox) -> Program[Call, None]:
    """Look in the sandbox whether programs will find the data.

    Raises:
        InputError: They will not, or they find other data.
    """
    sample = competition.sample_submission.relative_to(competition.public_dir).as_posix()
    program = PythonProgram(_PROBE, name="probe.py", arguments=(f"{INPUT}/{sample}",))
    job = Job(program, seconds=_PROBE_SECONDS)
    result: ExecutionResult = yield Call(sandbox.run, sandbox.arun, job)
    _check_data(competition, result)


def _check_data(competition: Competition, result: ExecutionResult) -> None:
    there = result.stdout.strip()
    wanted = competition.sample_submission.stat().st_size
    if result.ok and there == str(wanted):
        return
    name = competition.sample_submission.name
    found = f"{there} bytes" if result.ok else "not there"
    if not result.ok and result.error is None:
        found = f"not known: a program that looks for it ended with {result.exit_code}"
    msg = (
        f"programs must find the data of {competition.id} in ./{INPUT} of the sandbox, but {name}"
        f" is {found} ({wanted} bytes in {competition.public_dir}): make the sandbox with"
        f" inputs={{{INPUT!r}: competition.public_dir}}"
    )
    raise InputError(msg)
