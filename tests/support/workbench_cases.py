"""A run that is done by hand, step by step, in a real workspace."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from tree_cases import sandbox

from langgraft.environments.competitions.competition import Competition
from langgraft.environments.sandboxes.sandbox import Sandbox
from langgraft.environments.sandboxes.subprocess import SubprocessSandbox
from langgraft.nodes.artifacts import Artifacts, MemoryArtifacts
from langgraft.nodes.workbench.deps import RunDeps
from langgraft.nodes.workbench.log import Action, EventLog, Observation, append_events, read_log
from langgraft.nodes.workbench.performing import (
    KernelProgram,
    Performed,
    perform_cell,
    perform_command,
    read_file,
)
from langgraft.nodes.workbench.sessions import Workspaces
from langgraft.nodes.workbench.start import perform_validation

CHANGING = frozenset({"run_bash", "run_python"})


def performer(
    competition: Competition | None = None,
) -> Callable[[Action], KernelProgram[Performed]]:
    """Make what does the few actions of these tests."""

    def perform(action: Action) -> KernelProgram[Performed]:
        told = str(next(iter(action.arguments.values()), ""))
        if action.name == "run_bash":
            return perform_command(told)
        if action.name == "run_python":
            return perform_cell(told)
        if action.name == "read":
            return _read(told)
        assert competition is not None
        return perform_validation(competition)

    return perform


def _read(path: str) -> KernelProgram[Performed]:
    found = yield from read_file(path)
    return Performed(found.decode("utf-8", "replace") if isinstance(found, bytes) else found)


def workspaces(place: Sandbox, competition: Competition | None = None, **given: Any) -> Workspaces:
    """Make the live workspaces of an agent with these few actions."""
    perform = given.pop("perform", performer(competition))
    settings = {"changing": CHANGING, "metric": "auc-roc", "seconds": 60.0, **given}
    return Workspaces(place, perform, **settings)


@dataclass
class HandRun:
    """A run whose every action a test gives."""

    spaces: Workspaces
    artifacts: Artifacts = field(default_factory=MemoryArtifacts)
    name: str = "run"
    reference: str = ""

    @property
    def log(self) -> EventLog:
        """What happened so far."""
        return read_log(self.artifacts, self.reference)

    def action(self, name: str, what: str = "", thought: str = "") -> Action:
        """Return the agent's next action."""
        given = {"what": what} if what else {}
        number = len(self.log.events)
        return Action(id=number, source="agent", name=name, arguments=given, thought=thought)

    def note(self, action: Action, seen: Observation) -> Observation:
        """Add an action and what was observed of it to the log."""
        self.reference = append_events(self.artifacts, self.reference, [action, seen])
        return seen

    def do(self, name: str, what: str = "", thought: str = "") -> Observation:
        """Do something and note it."""
        action = self.action(name, what, thought)
        return self.note(action, self.spaces.run(self.name, self.log, action))

    def cell(self, code: str, thought: str = "") -> Observation:
        """Run a cell."""
        return self.do("run_python", code, thought)

    def bash(self, line: str, thought: str = "") -> Observation:
        """Run a command line."""
        return self.do("run_bash", line, thought)

    def elsewhere(self) -> "HandRun":
        """Return the run as another process goes on with it: with no kernel at all."""
        other = workspaces(self.spaces.sandbox, perform=self.spaces._perform)
        return HandRun(other, self.artifacts, self.name, self.reference)


def output(seen: Observation) -> str:
    """Return what was printed, without what is told of how it ended."""
    return seen.text.partition("\n\nIt ran for")[0]


def desk_of(competition: Competition, run: HandRun, **given: Any) -> RunDeps:
    """Make the deps of a run."""
    return RunDeps(competition, run.artifacts, run.spaces, **given)


__all__ = [
    "HandRun",
    "SubprocessSandbox",
    "desk_of",
    "output",
    "performer",
    "sandbox",
    "workspaces",
]
