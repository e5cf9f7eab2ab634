"""What agents for competitions share: their contents, how a run begins, and memory where it goes on.

A run (a tree search, or the run of an agent that works step by step) is kept as a chain of contents,
and its state holds the reference of the last one. All that it needs is checked before a model is
paid. What memory held as it began is kept too: with what the run changed in it since, a process that
goes on with the run can give memory the bank that the run has.
"""

import json
import math
import uuid
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from typing_extensions import TypedDict

from langgraft._core.canonical import JSON
from langgraft._core.effects import Call, Program, in_thread
from langgraft._core.errors import InputError
from langgraft._core.texts import Prompt
from langgraft.environments.competitions.archives import Unpacked, unpack_archives
from langgraft.environments.competitions.attempts import INPUT, WEIGHTS
from langgraft.environments.competitions.competition import Competition
from langgraft.environments.competitions.preview import data_preview
from langgraft.environments.sandboxes.result_text import size_text, span
from langgraft.environments.sandboxes.sandbox import (
    ExecutionResult,
    Job,
    Limits,
    PythonProgram,
    Sandbox,
)
from langgraft.memory.model import BankContent, MemoryDelta, MemoryItem, fold
from langgraft.memory.provider import MemoryProvider
from langgraft.nodes.artifacts import Artifacts, keep_json, read_json
from langgraft.nodes.replies import encodable

LONGEST_INSTRUCTION: Final = 500
"""Most characters of the task as memory is asked about it, and keeps it with each episode."""

BankOf: TypeAlias = Callable[[Artifacts, Mapping[str, Any]], BankContent]
"""Says what memory holds as a run has it, by its state."""


@dataclass(frozen=True, slots=True)
class CompetitionDeps:
    """What the nodes of any agent for competitions depend on."""

    competition: Competition
    artifacts: Artifacts
    """Where contents are kept."""

    def keep(self, value: JSON) -> str:
        """Keep a value as canonical JSON, and return its reference."""
        return keep_json(self.artifacts, value)

    def read(self, reference: str | None) -> dict[str, Any]:
        """Read a mapping that was kept; without a reference it is empty.

        Raises:
            InputError: Nothing is kept under that reference, or it is damaged.
        """
        return read_json(self.artifacts, reference)


Gpus: TypeAlias = Literal["all"] | int | None
"""Graphics processors of a program: how many, or `all`; `None`: none."""

BOUNDS: Final = "cpus gpus memory workspace limit left steps used time weights"
"""Placeholders of the prompt `bounds`."""
_GPUS: Final = {"None": "none", "all": "all that the machine has"}
_MOST_WEIGHTS: Final = 60
"""Names that are told; the rest is to be seen in the folder."""
_MINUTE: Final = 60
HOUR: Final = 3600


@dataclass(frozen=True, slots=True)
class Bounds:
    """What a run may use, as each of its prompts tells it."""

    limits: Limits
    """Of the sandbox."""
    seconds: float
    """Wall clock of one execution."""
    steps: int
    """Of the whole run."""
    hours: float | None = None
    """Of the whole run; `None`: nothing but the steps ends it."""
    gpus: Gpus = None
    weights: Sequence[str] = ()
    """Names of pretrained weights that programs find."""

    def text(self, prompt: Prompt, *, done: int, spent: float) -> str:
        """Fill in the prompt `bounds`.

        Args:
            prompt: With the placeholders of `BOUNDS`.
            done: Steps so far.
            spent: Seconds so far, as the run's state has them: a process that goes on with the run
                tells the same.
        """
        left = max(self.steps - done, 0)
        filled = prompt.render(
            cpus=f"{self.limits.cpus:g}",
            gpus=_GPUS.get(str(self.gpus), str(self.gpus)),
            memory=self._memory(),
            workspace=self._workspace(),
            limit=span(self.seconds),
            left=str(left),
            steps=str(self.steps),
            used=str(100 * (self.steps - left) // self.steps),
            time=self._time(spent),
            weights=self._weights(),
        )
        return filled.strip()

    def _memory(self) -> str:
        told = f"{size_text(self.limits.memory)} for all processes together"
        on_disk = self.limits.workspace_on == "disk"
        return told if on_disk else f"{told}, with the files that they write"

    def _workspace(self) -> str:
        told = size_text(self.limits.workspace)
        on_disk = self.limits.workspace_on == "disk"
        return f"{told} on disk, and what writes more is stopped" if on_disk else told

    def _weights(self) -> str:
        """Tell of weights in a line of their own, where there are any."""
        if not self.weights:
            return ""
        shown = ", ".join(self.weights[:_MOST_WEIGHTS])
        more = len(self.weights) - _MOST_WEIGHTS
        return (
            f"\n- Pretrained weights, read-only in ./{WEIGHTS}, that libraries find by name without a"
            f" network (HF_HOME and TORCH_HOME are set): {shown}"
            + (f", and {more} more." if more > 0 else ".")
        )

    def _time(self, spent: float) -> str:
        if self.hours is None:
            return "the run as a whole has no limit"
        rest = max(self.hours * HOUR - spent, 0.0)
        # Of what is told, so that both change together, and seldom.
        used = max(1 - _rounded_up(rest) / (self.hours * HOUR), 0)
        return f"{roughly(rest)} left of {self.hours:g} hours, {100 * used:.0f} % used"

    def over(self, spent: float) -> bool:
        """Say whether the hours are used."""
        return self.hours is not None and spent >= self.hours * HOUR

    def share(self, spent: float) -> float:
        """Return the share of the hours that is used, at most 1; 0 where there is no limit."""
        return 0.0 if self.hours is None else min(spent / (self.hours * HOUR), 1.0)

    def allowed(self, spent: float) -> float:
        """Return the wall clock that an execution may take now: not longer than the run goes on.

        What the run has left counts in whole minutes, or else seconds: a model may be shown it.
        """
        if self.hours is None:
            return self.seconds
        rest = self.hours * HOUR - spent
        unit = _MINUTE if rest >= _MINUTE else 1
        return min(self.seconds, max(rest // unit * unit, 1.0))


def roughly(seconds: float) -> str:
    """Write a time that is left so roughly that a repetition seldom reads otherwise."""
    told = _rounded_up(seconds)
    if seconds > HOUR:
        return f"about {told // HOUR} hours"
    return f"about {told // _MINUTE} minutes" if told else "no time"


def _rounded_up(seconds: float) -> int:
    """Return whole hours, and of less than one tens of minutes, in seconds."""
    unit = HOUR if seconds > HOUR else 10 * _MINUTE
    return math.ceil(seconds / unit) * unit


class Begun(TypedDict):
    """A run that a thread has begun."""

    episode_id: str
    """Its name: one that a later input does not replace is left over from it."""
    preview: str
    """Reference of the data preview."""
    bank: str
    """Reference of what memory held then, where the run teaches it; else empty."""


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


def beginning(
    deps: CompetitionDeps,
    sandbox: Sandbox,
    memory: MemoryProvider[Any] | None,
    state: Mapping[str, Any],
    *,
    what: str,
    chain: str,
) -> Program[Call, tuple[Begun, str]]:
    """Check what a run needs, look at its data, and note what memory holds.

    Args:
        deps: What its nodes depend on.
        sandbox: Where its programs run.
        memory: The provider that the run teaches, if it does.
        state: What it was invoked with, on top of what its thread holds: `episode_id`, `seed`.
        what: What it is, for messages: `search`.
        chain: Key of the state under which the reference of its last content is.

    Returns:
        The run, and the reference of what the thread has of it; none where it begins afresh.

    Raises:
        InputError: The name or the seed is not possible, or programs do not find the data.
        CompetitionError: An archive of the data is not unpacked, for what it holds or a full disk.
    """
    name = _checked_name(state, what)
    data: Unpacked = yield in_thread(unpack_archives, deps.competition)
    yield from _probed(deps.competition, sandbox, data)
    bank = ""
    if memory is not None:
        content: BankContent = yield Call(memory.content, memory.acontent)
        bank = deps.keep(content.to_json())
    before = state.get("begun")
    goes_on = state.get(chain, "") if before and before["episode_id"] == name else ""
    if before and goes_on:
        bank = before["bank"] or bank
    preview = encodable(data_preview(data.folder, notes=data.notes))
    kept = deps.artifacts.keep(preview.encode())
    return Begun(episode_id=name, preview=kept, bank=bank), goes_on


def bank_after(
    artifacts: Artifacts, state: Mapping[str, Any], deltas: Iterable[MemoryDelta]
) -> BankContent:
    """Return what memory holds as a run has it: what it began with, and all it changed.

    Raises:
        InputError: The bank is missing or damaged.
    """
    start = BankContent()
    if reference := _begun_with(state):
        written = json.loads(artifacts.read(reference))
        items = [MemoryItem.from_json(item) for item in written["items"].values()]
        items.sort(key=lambda item: (item.order_index, item.id))
        start = BankContent({item.id: item for item in items}, written["notes"], written["state"])
    return fold(deltas, start)


def restoring(
    memory: MemoryProvider[Any], artifacts: Artifacts, state: Mapping[str, Any], bank_of: BankOf
) -> Program[Call, None]:
    """Make a bank hold what it is to hold where a run goes on; nothing is changed where it does.

    Raises:
        InputError: A record or the bank is missing or damaged.
        ReadOnlyStoreError: It is another one, and frozen.
    """
    if not _begun_with(state):
        return
    wanted = bank_of(artifacts, state)
    content: BankContent = yield Call(memory.content, memory.acontent)
    if content.digest != wanted.digest:
        yield Call(memory.restore, memory.arestore, wanted)


def _begun_with(state: Mapping[str, Any]) -> str:
    """Return the reference of the bank that a run began with; nothing where it teaches none."""
    return str(state.get("begun", {}).get("bank", ""))


_LARGEST_SEED: Final = 2**63 - 1
_PROBE_SECONDS: Final = 60.0
_PROBE: Final = """\
import os, sys
for name in sys.argv[1:]:
    print(os.path.getsize(name), flush=True)
"""


def _checked_name(state: Mapping[str, Any], what: str) -> str:
    """Return the name of a run; one is made up where none is given."""
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


def _probed(competition: Competition, sandbox: Sandbox, data: Unpacked) -> Program[Call, None]:
    """Look in the sandbox whether programs will find the data, and what archives held."""
    sample = competition.sample_submission.relative_to(competition.public_dir)
    paths = [data.folder / sample, *([] if data.witness is None else [data.folder / data.witness])]
    names = tuple(f"{INPUT}/{path.relative_to(data.folder).as_posix()}" for path in paths)
    job = Job(PythonProgram(_PROBE, name="probe.py", arguments=names), seconds=_PROBE_SECONDS)
    result: ExecutionResult = yield Call(sandbox.run, sandbox.arun, job)
    seen, sizes = result.stdout.split(), [str(path.stat().st_size) for path in paths]
    if result.ok and seen == sizes:
        return
    at = next((at for at, wanted in enumerate(sizes) if seen[at : at + 1] != [wanted]), 0)
    path, wanted = paths[at], sizes[at]
    found = f"{seen[at]} bytes" if len(seen) > at else "not there"
    if not result.ok and result.error is None:
        found = f"not known: a program that looks for it ended with {result.exit_code}"
    msg = (
        f"programs must find the data of {competition.id} in ./{INPUT} of the sandbox, but"
        f" {path.name} is {found} ({wanted} bytes in {data.folder}): make the sandbox"
        f" with inputs={{{INPUT!r}: competition.input_dir}}"
    )
    raise InputError(msg)
